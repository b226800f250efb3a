package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/personkey"
)

// personTable keeps who people are and who pays for them, in bytes that no caller can
// edit.
type personTable struct {
	infos     map[healthdata.UserRef][]byte
	coverages map[uuid.UUID]keptCoverage
	payors    map[healthlab.TeamID][]keptPayor
}

type keptCoverage struct {
	healthdata.UserRef
	primary     bool
	from, until time.Time
	doc         []byte
}

type keptPayor struct {
	code string
	at   time.Time
	doc  []byte
}

func newPersonTable() *personTable {
	return &personTable{infos: map[healthdata.UserRef][]byte{}, coverages: map[uuid.UUID]keptCoverage{}, payors: map[healthlab.TeamID][]keptPayor{}}
}

// erase removes what is known of a user. It is called with the lock held.
func (t *personTable) erase(team healthlab.TeamID, user healthlab.UserID) {
	who := healthdata.UserRef{Team: team, User: user}
	delete(t.infos, who)
	for id, c := range t.coverages {
		if c.UserRef == who {
			delete(t.coverages, id)
		}
	}
}

type persons struct {
	*database
	users   *userTable
	persons *personTable
}

func (v persons) PutUserInfo(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, info people.UserInfo) error {
	doc, err := sealDocument(ctx, v.keys, personkey.Ref{Team: team, User: user}, personkey.RowUserInfo, info)
	if err != nil {
		return err
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	v.persons.infos[healthdata.UserRef{Team: team, User: user}] = doc
	return nil
}

func (v persons) UserInfo(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (info people.UserInfo, err error) {
	if err := v.lock(ctx); err != nil {
		return info, err
	}
	defer v.mu.Unlock()
	doc, ok := v.persons.infos[healthdata.UserRef{Team: team, User: user}]
	if !ok || v.users.isDeleted(team, user) {
		return info, fmt.Errorf("%w: demographics", healthlab.NotFound)
	}
	return info, openDocument(ctx, v.keys, personkey.Ref{Team: team, User: user}, personkey.RowUserInfo, doc, &info)
}

func (v persons) AddCoverage(ctx context.Context, c people.Coverage) error {
	doc, err := sealDocument(ctx, v.keys, personkey.Ref{Team: c.Team, User: c.User}, personkey.RowInsurance(c.ID), c.Record)
	if err != nil {
		return err
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	t := v.persons
	who := healthdata.UserRef{Team: c.Team, User: c.User}
	if _, taken := t.coverages[c.ID]; taken {
		return fmt.Errorf("%w: the record's id is taken", healthlab.Conflict)
	}
	next := keptCoverage{UserRef: who, primary: c.Record.IsPrimary, from: instant(c.ValidFrom), doc: doc}
	for id, old := range t.coverages {
		if old.UserRef == who && old.primary == next.primary && old.until.IsZero() {
			next.from = latest(next.from, old.from.Add(time.Microsecond))
			old.until = next.from
			t.coverages[id] = old
		}
	}
	t.coverages[c.ID] = next
	return nil
}

func (k keptCoverage) load(ctx context.Context, keys *personkey.Keys, id uuid.UUID) (people.Coverage, error) {
	c := people.Coverage{ID: id, Team: k.Team, User: k.User, ValidFrom: k.from, ValidUntil: k.until}
	return c, openDocument(ctx, keys, personkey.Ref{Team: k.Team, User: k.User}, personkey.RowInsurance(id), k.doc, &c.Record)
}

func (v persons) Coverage(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (people.Coverage, error) {
	if err := v.lock(ctx); err != nil {
		return people.Coverage{}, err
	}
	defer v.mu.Unlock()
	k, ok := v.persons.coverages[id]
	if !ok || k.Team != team || v.users.isDeleted(team, k.User) {
		return people.Coverage{}, fmt.Errorf("%w: insurance record", healthlab.NotFound)
	}
	return k.load(ctx, v.keys, id)
}

func (v persons) CoverageAt(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, primary bool, at time.Time) (people.Coverage, error) {
	if err := v.lock(ctx); err != nil {
		return people.Coverage{}, err
	}
	defer v.mu.Unlock()
	if v.users.isDeleted(team, user) {
		return people.Coverage{}, fmt.Errorf("%w: insurance record", healthlab.NotFound)
	}
	for id, k := range v.persons.coverages {
		valid := k.until.IsZero() && (at.IsZero() || !at.Before(k.from)) || !at.IsZero() && !at.Before(k.from) && at.Before(k.until)
		if k.UserRef == (healthdata.UserRef{Team: team, User: user}) && k.primary == primary && valid {
			return k.load(ctx, v.keys, id)
		}
	}
	return people.Coverage{}, fmt.Errorf("%w: insurance record", healthlab.NotFound)
}

func (v persons) AddPayor(ctx context.Context, p people.StoredPayor) error {
	p.CreatedAt = instant(p.CreatedAt)
	doc, err := document(p)
	if err != nil {
		return err
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	own := v.persons.payors[p.Team]
	if slices.ContainsFunc(own, func(k keptPayor) bool { return k.code == p.PayorCode }) {
		return fmt.Errorf("%w: the payor's code is taken", healthlab.Conflict)
	}
	own = append(own, keptPayor{p.PayorCode, p.CreatedAt, doc})
	slices.SortFunc(own, func(a, b keptPayor) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.code, b.code)) })
	v.persons.payors[p.Team] = own
	return nil
}

func (v persons) Payors(ctx context.Context, team healthlab.TeamID) ([]people.StoredPayor, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	var out []people.StoredPayor
	for _, k := range v.persons.payors[team] {
		var p people.StoredPayor
		if err := json.Unmarshal(k.doc, &p); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}
