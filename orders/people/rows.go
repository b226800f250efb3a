package people

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// infoRow stores the demographics of a user.
type infoRow struct {
	Team healthlab.TeamID
	User healthlab.UserID
	Info UserInfo
}

var infoRows = store.Table[infoRow]{Name: "person_info", Row: func(r *infoRow) store.Row {
	return store.Row{Key: infoKey(r.Team, r.User)}
}}

func infoKey(team healthlab.TeamID, user healthlab.UserID) store.Key {
	return store.Key{Team: team, User: user, ID: store.UUID(user.UUID)}
}

// coverageRows stores the insurance records of users.
var coverageRows = store.Table[Coverage]{Name: "person_coverage", Row: func(c *Coverage) store.Row {
	key := coverageKey(c.Team, c.ID)
	key.User = c.User
	return store.Row{Key: key}
}}

func coverageKey(team healthlab.TeamID, id uuid.UUID) store.Key {
	return store.Key{Team: team, ID: store.UUID(id)}
}

// coverageOwner stores the user of an insurance record by the record's id, so that no two teams use one id.
type coverageOwner struct {
	ID   uuid.UUID
	User healthlab.UserID
}

var coverageOwners = store.Table[coverageOwner]{Name: "person_coverage_owner", Clear: true, Row: func(o *coverageOwner) store.Row {
	return store.Row{Key: store.Key{User: o.User, ID: store.UUID(o.ID)}}
}}

// payorRows stores the payors of teams.
var payorRows = store.Table[StoredPayor]{Name: "person_payor", Row: func(p *StoredPayor) store.Row {
	return store.Row{Key: payorKey(p.Team, p.PayorCode)}
}}

func payorKey(team healthlab.TeamID, code string) store.Key {
	sum := sha256.Sum256([]byte(code))
	return store.Key{Team: team, ID: string(sum[:])}
}

// Tables declares the tables of [NewStore].
func Tables() []store.Definition {
	return []store.Definition{infoRows.Definition(), coverageRows.Definition(), coverageOwners.Definition(), payorRows.Definition()}
}

// StoreOptions are the options of [NewStore]. The zero value, and nil, mean the defaults.
type StoreOptions struct {
	// UsersElsewhere is true if the host stores its users outside of the store. Default false: demographics and
	// insurance records of a user without a row in the store are refused with healthlab.NotFound.
	UsersElsewhere bool
}

// NewStore returns a Store over a store whose tables must include [Tables].
func NewStore(s store.Store, opts *StoreOptions) Store {
	v := rows{s: s}
	if opts != nil {
		v.opts = *opts
	}
	return v
}

type rows struct {
	s    store.Store
	opts StoreOptions
}

func errNoInfo() error { return fmt.Errorf("%w: the user has no demographics", healthlab.NotFound) }

func errNoCoverage() error {
	return fmt.Errorf("%w: the user has no such insurance record", healthlab.NotFound)
}

// PutUserInfo implements [Store].
func (v rows) PutUserInfo(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, info UserInfo) error {
	return v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		u, err := store.LockUser(tx, team, user)
		if err != nil {
			return err
		}
		if !u.Known && !v.opts.UsersElsewhere {
			return fmt.Errorf("%w: the user of the demographics does not exist", healthlab.NotFound)
		}
		e, err := infoRows.Get(tx, infoKey(team, user), store.Held)
		if err != nil {
			return err
		}
		if e == nil {
			e = &store.Entry[infoRow]{}
		}
		e.Value = infoRow{team, user, info}
		return infoRows.Put(tx, e)
	})
}

// UserInfo implements [Store].
func (v rows) UserInfo(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (UserInfo, error) {
	got, err := v.s.Read(ctx, infoRows.One(infoKey(team, user), store.Plain), store.User(team, user))
	if err != nil {
		return UserInfo{}, err
	}
	list, err := infoRows.Decoded(got[0])
	if err != nil {
		return UserInfo{}, err
	}
	if len(list) == 0 || isDeleted(got[1]) {
		return UserInfo{}, errNoInfo()
	}
	return list[0].Value.Info, nil
}

func isDeleted(rows []store.Row) bool {
	u := store.StateOf(rows)
	return u.Known && !u.Live
}

func coveragesOf(team healthlab.TeamID, user healthlab.UserID) store.Query {
	return store.Query{Key: coverageRows.Key(store.Key{Team: team, User: user}), By: store.ByUser}
}

// AddCoverage implements [Store].
func (v rows) AddCoverage(ctx context.Context, c Coverage) error {
	return v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		// Locks the user, so that of two concurrent records the later ends the earlier.
		got, err := tx.Read(store.User(c.Team, c.User).Hold(), coverageOwners.One(store.Key{ID: store.UUID(c.ID)}, store.Held), coveragesOf(c.Team, c.User).Hold())
		if err != nil {
			return err
		}
		switch {
		case !store.StateOf(got[0]).Known && !v.opts.UsersElsewhere:
			return fmt.Errorf("%w: the user of the insurance record does not exist", healthlab.NotFound)
		case len(got[1]) > 0:
			return fmt.Errorf("%w: an insurance record with this id exists", healthlab.Conflict)
		}
		had, err := coverageRows.Decoded(got[2])
		if err != nil {
			return err
		}
		next := c
		next.ValidFrom, next.ValidUntil = healthlab.At(c.ValidFrom).Time, time.Time{}
		for _, old := range had {
			if old.Value.Team != c.Team || old.Value.Record.IsPrimary != c.Record.IsPrimary || !old.Value.ValidUntil.IsZero() {
				continue
			}
			if first := old.Value.ValidFrom.Add(time.Microsecond); next.ValidFrom.Before(first) {
				next.ValidFrom = first
			}
			old.Value.ValidUntil = next.ValidFrom
			if err := coverageRows.Put(tx, old); err != nil {
				return err
			}
		}
		if err := coverageOwners.Insert(tx, &coverageOwner{c.ID, c.User}); err != nil {
			return err
		}
		return coverageRows.Insert(tx, &next)
	})
}

// Coverage implements [Store].
func (v rows) Coverage(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (Coverage, error) {
	e, err := coverageRows.LookOne(ctx, v.s, coverageRows.Key(coverageKey(team, id)))
	if err != nil {
		return Coverage{}, err
	}
	if e == nil {
		return Coverage{}, errNoCoverage()
	}
	user, err := v.s.Read(ctx, store.User(team, e.Value.User))
	if err != nil {
		return Coverage{}, err
	}
	if isDeleted(user[0]) {
		return Coverage{}, errNoCoverage()
	}
	return e.Value, nil
}

// CoverageAt implements [Store].
func (v rows) CoverageAt(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, primary bool, at time.Time) (Coverage, error) {
	got, err := v.s.Read(ctx, coveragesOf(team, user), store.User(team, user))
	if err != nil {
		return Coverage{}, err
	}
	list, err := coverageRows.Decoded(got[0])
	if err != nil {
		return Coverage{}, err
	}
	i := slices.IndexFunc(list, func(e *store.Entry[Coverage]) bool {
		c := &e.Value
		return c.Team == team && c.Record.IsPrimary == primary && c.validAt(at)
	})
	if i < 0 || isDeleted(got[1]) {
		return Coverage{}, errNoCoverage()
	}
	return list[i].Value, nil
}

func (c *Coverage) validAt(at time.Time) bool {
	if at.IsZero() {
		return c.ValidUntil.IsZero()
	}
	return !at.Before(c.ValidFrom) && (c.ValidUntil.IsZero() || at.Before(c.ValidUntil))
}

// AddPayor implements [Store].
func (v rows) AddPayor(ctx context.Context, p StoredPayor) error {
	p.CreatedAt = healthlab.At(p.CreatedAt).Time
	return v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		had, err := payorRows.Get(tx, payorKey(p.Team, p.PayorCode), store.Held)
		if err != nil {
			return err
		}
		if had != nil {
			return fmt.Errorf("%w: a payor with this code exists", healthlab.Conflict)
		}
		return payorRows.Insert(tx, &p)
	})
}

// Payors implements [Store].
func (v rows) Payors(ctx context.Context, team healthlab.TeamID) ([]StoredPayor, error) {
	list, err := payorRows.Look(ctx, v.s, store.Query{Key: store.Key{Team: team}, By: store.ByID})
	if err != nil {
		return nil, err
	}
	var out []StoredPayor
	for _, e := range list {
		out = append(out, e.Value)
	}
	slices.SortFunc(out, func(a, b StoredPayor) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.PayorCode, b.PayorCode))
	})
	return out, nil
}
