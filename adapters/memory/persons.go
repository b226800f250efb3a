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
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/personkey"
)

// personTable keeps who people are and who pays for them, in bytes that no caller can
// edit.
type personTable struct {
	infos     map[teamUser][]byte
	coverages map[uuid.UUID]keptCoverage
	payors    map[healthlab.TeamID][]keptPayor
}

type teamUser struct {
	team healthlab.TeamID
	user healthlab.UserID
}

type keptCoverage struct {
	teamUser
	primary     bool
	from, until time.Time
	doc         []byte
}

type keptPayor struct {
	code string
	at   time.Time
	doc  []byte
}

func newPersonTable() personTable {
	return personTable{infos: map[teamUser][]byte{}, coverages: map[uuid.UUID]keptCoverage{}, payors: map[healthlab.TeamID][]keptPayor{}}
}

// erase removes what is known of a user. It is called with the lock held.
func (t *personTable) erase(team healthlab.TeamID, user healthlab.UserID) {
	who := teamUser{team, user}
	delete(t.infos, who)
	for id, c := range t.coverages {
		if c.teamUser == who {
			delete(t.coverages, id)
		}
	}
}

// Persons returns the store as a [people.Store].
func (s *Store) Persons() people.Store { return persons{s} }

type persons struct{ s *Store }

func (v persons) PutUserInfo(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, info people.UserInfo) error {
	doc, err := sealDocument(ctx, v.s.keys, personkey.Ref{Team: team, User: user}, personkey.RowUserInfo, info)
	if err != nil {
		return err
	}
	if err := v.s.lock(ctx); err != nil {
		return err
	}
	defer v.s.mu.Unlock()
	v.s.persons.infos[teamUser{team, user}] = doc
	return nil
}

func (v persons) UserInfo(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (info people.UserInfo, err error) {
	if err := v.s.lock(ctx); err != nil {
		return info, err
	}
	defer v.s.mu.Unlock()
	doc, ok := v.s.persons.infos[teamUser{team, user}]
	if !ok || v.s.users.isDeleted(team, user) {
		return info, fmt.Errorf("%w: demographics", healthlab.NotFound)
	}
	return info, openDocument(ctx, v.s.keys, personkey.Ref{Team: team, User: user}, personkey.RowUserInfo, doc, &info)
}

func (v persons) AddCoverage(ctx context.Context, c people.Coverage) error {
	doc, err := sealDocument(ctx, v.s.keys, personkey.Ref{Team: c.Team, User: c.User}, personkey.RowInsurance(c.ID), c.Record)
	if err != nil {
		return err
	}
	if err := v.s.lock(ctx); err != nil {
		return err
	}
	defer v.s.mu.Unlock()
	t := &v.s.persons
	who := teamUser{c.Team, c.User}
	if _, known := t.infos[who]; !known {
		return fmt.Errorf("%w: demographics", healthlab.NotFound)
	}
	if _, taken := t.coverages[c.ID]; taken {
		return fmt.Errorf("%w: the record's id is taken", healthlab.Conflict)
	}
	next := keptCoverage{teamUser: who, primary: c.Record.IsPrimary, from: instant(c.ValidFrom), doc: doc}
	for id, old := range t.coverages {
		if old.teamUser == who && old.primary == next.primary && old.until.IsZero() {
			next.from = later(next.from, old.from.Add(time.Microsecond))
			old.until = next.from
			t.coverages[id] = old
		}
	}
	t.coverages[c.ID] = next
	return nil
}

func (k keptCoverage) load(ctx context.Context, keys *personkey.Keys, id uuid.UUID) (people.Coverage, error) {
	c := people.Coverage{ID: id, Team: k.team, User: k.user, ValidFrom: k.from, ValidUntil: k.until}
	return c, openDocument(ctx, keys, personkey.Ref{Team: k.team, User: k.user}, personkey.RowInsurance(id), k.doc, &c.Record)
}

func (v persons) Coverage(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (people.Coverage, error) {
	if err := v.s.lock(ctx); err != nil {
		return people.Coverage{}, err
	}
	defer v.s.mu.Unlock()
	k, ok := v.s.persons.coverages[id]
	if !ok || k.team != team || v.s.users.isDeleted(team, k.user) {
		return people.Coverage{}, fmt.Errorf("%w: insurance record", healthlab.NotFound)
	}
	return k.load(ctx, v.s.keys, id)
}

func (v persons) CoverageAt(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, primary bool, at time.Time) (people.Coverage, error) {
	if err := v.s.lock(ctx); err != nil {
		return people.Coverage{}, err
	}
	defer v.s.mu.Unlock()
	if v.s.users.isDeleted(team, user) {
		return people.Coverage{}, fmt.Errorf("%w: insurance record", healthlab.NotFound)
	}
	for id, k := range v.s.persons.coverages {
		valid := k.until.IsZero() && (at.IsZero() || !at.Before(k.from)) || !at.IsZero() && !at.Before(k.from) && at.Before(k.until)
		if k.teamUser == (teamUser{team, user}) && k.primary == primary && valid {
			return k.load(ctx, v.s.keys, id)
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
	if err := v.s.lock(ctx); err != nil {
		return err
	}
	defer v.s.mu.Unlock()
	own := v.s.persons.payors[p.Team]
	if slices.ContainsFunc(own, func(k keptPayor) bool { return k.code == p.PayorCode }) {
		return fmt.Errorf("%w: the payor's code is taken", healthlab.Conflict)
	}
	own = append(own, keptPayor{p.PayorCode, p.CreatedAt, doc})
	slices.SortFunc(own, func(a, b keptPayor) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.code, b.code)) })
	v.s.persons.payors[p.Team] = own
	return nil
}

func (v persons) Payors(ctx context.Context, team healthlab.TeamID) ([]people.StoredPayor, error) {
	if err := v.s.lock(ctx); err != nil {
		return nil, err
	}
	defer v.s.mu.Unlock()
	var out []people.StoredPayor
	for _, k := range v.s.persons.payors[team] {
		var p people.StoredPayor
		if err := json.Unmarshal(k.doc, &p); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}
