package organisation

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// teamRecord is a stored team. The rows of deleted teams are not removed, so that their ids are not used again.
type teamRecord struct {
	Team
	Deleted bool
}

var teamTable = store.Table[teamRecord]{Name: "team", Unique: [2]bool{false, true}, Row: func(t *teamRecord) store.Row {
	r := store.Row{Key: teamKey(t.ID)}
	if !t.Deleted {
		r.Index[0] = store.UUID(t.Org) + store.UUID(t.ID.UUID)
		if t.IntegrationID != "" {
			r.Index[1] = integration(t.Org, t.IntegrationID)
		}
	}
	return r
}}

func teamKey(id healthlab.TeamID) store.Key { return store.Key{ID: store.UUID(id.UUID)} }

func integration(org uuid.UUID, id string) string {
	sum := sha256.Sum256([]byte(id))
	return store.UUID(org) + string(sum[:])
}

var keyTable = store.Table[Key]{Name: "api_key", Unique: [2]bool{true}, Row: func(k *Key) store.Row {
	return store.Row{
		Key:   store.Key{ID: store.UUID(k.ID)},
		Index: [2]string{string(k.Sum[:]), store.UUID(k.Team.UUID) + store.Time(k.CreatedAt) + store.UUID(k.ID)},
	}
}}

// Tables declares the tables of [NewStore].
func Tables() []store.Definition {
	return []store.Definition{teamTable.Definition(), keyTable.Definition()}
}

// StoreOptions configures the Store of [NewStore]. The zero value, and nil, mean the defaults.
type StoreOptions struct {
	// OnDelete is called in the transaction that deletes a team, to delete the rows of other packages about the
	// team. Default: none.
	OnDelete []func(ctx context.Context, tx store.Tx, team healthlab.TeamID) error
}

// NewStore returns a Store that keeps teams and keys in s, whose tables must include [Tables].
func NewStore(s store.Store, opts *StoreOptions) Store {
	r := rowStore{s: s}
	if opts != nil {
		r.opts = *opts
	}
	return r
}

type rowStore struct {
	s    store.Store
	opts StoreOptions
}

func errNoTeam() error { return fmt.Errorf("%w: no such team", healthlab.NotFound) }

func errNoKey() error { return fmt.Errorf("%w: no such API key", healthlab.NotFound) }

// checkIntegration returns an [*IntegrationTakenError] if another team of the organisation has the integration id of t.
func checkIntegration(tx store.Tx, t *Team) error {
	if t.IntegrationID == "" {
		return nil
	}
	others, err := teamTable.Find(tx, store.Query{By: store.BySecond, Lock: store.Plain}.Equal(integration(t.Org, t.IntegrationID)))
	for _, e := range others {
		if e.Value.ID != t.ID {
			return &IntegrationTakenError{Team: e.Value.ID}
		}
	}
	return err
}

func (r rowStore) InsertTeam(ctx context.Context, t Team) error {
	if t.ID.IsZero() || t.Org == uuid.Nil || t.Name == "" {
		return fmt.Errorf("%w: a team must have an id, an organisation and a name", healthlab.Invalid)
	}
	if err := healthlab.CheckText(t.Name, t.IntegrationID); err != nil {
		return err
	}
	t.CreatedAt, t.UpdatedAt = healthlab.At(t.CreatedAt).Time, healthlab.At(t.UpdatedAt).Time
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		e, err := teamTable.Get(tx, teamKey(t.ID), store.Held)
		if err != nil {
			return err
		}
		if e != nil {
			return fmt.Errorf("%w: a live or deleted team has this id already", healthlab.Conflict)
		}
		if err := checkIntegration(tx, &t); err != nil {
			return err
		}
		return teamTable.Insert(tx, &teamRecord{Team: t})
	})
}

func (r rowStore) Team(ctx context.Context, id healthlab.TeamID) (Team, error) {
	e, err := teamTable.LookOne(ctx, r.s, teamKey(id))
	if err == nil && (e == nil || e.Value.Deleted) {
		err = errNoTeam()
	}
	if err != nil {
		return Team{}, err
	}
	return e.Value.Team, nil
}

func (r rowStore) Teams(ctx context.Context, q Query) ([]Team, error) {
	if err := healthlab.CheckText(q.IntegrationID); err != nil || q.N <= 0 {
		return nil, err
	}
	org := store.UUID(q.Org)
	rows := store.Query{By: store.ByFirst, From: org + store.UUID(q.After.UUID) + "\x00", To: store.End(org), Limit: q.N}
	if q.IntegrationID != "" {
		rows = store.Query{By: store.BySecond, Limit: q.N}.Equal(integration(q.Org, q.IntegrationID))
	}
	found, err := teamTable.Look(ctx, r.s, rows)
	var out []Team
	for _, e := range found {
		if store.UUID(e.Value.ID.UUID) > store.UUID(q.After.UUID) {
			out = append(out, e.Value.Team)
		}
	}
	return out, err
}

// lockTeam locks and returns a team of an organisation.
func lockTeam(tx store.Tx, org uuid.UUID, id healthlab.TeamID) (*store.Entry[teamRecord], error) {
	e, err := teamTable.Get(tx, teamKey(id), store.Held)
	if err == nil && (e == nil || e.Value.Deleted || e.Value.Org != org) {
		err = errNoTeam()
	}
	return e, err
}

func (r rowStore) UpdateTeam(ctx context.Context, org uuid.UUID, id healthlab.TeamID, change func(*Team) error) (Team, error) {
	var out Team
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		e, err := lockTeam(tx, org, id)
		if err != nil {
			return err
		}
		old, next := e.Value.Team, e.Value.Team
		if err := change(&next); err != nil {
			return err
		}
		next.ID, next.Org, next.CreatedAt, next.UpdatedAt = old.ID, old.Org, old.CreatedAt, healthlab.At(next.UpdatedAt).Time
		if err := healthlab.CheckText(next.Name, next.IntegrationID); err != nil {
			return err
		}
		if err := checkIntegration(tx, &next); err != nil {
			return err
		}
		e.Value.Team, out = next, next
		return teamTable.Put(tx, e)
	})
	return out, err
}

func (r rowStore) DeleteTeam(ctx context.Context, org uuid.UUID, id healthlab.TeamID) error {
	return r.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		e, err := lockTeam(tx, org, id)
		if err != nil {
			return err
		}
		users := store.LiveUsers(id)
		users.Bare, users.Lock = true, store.Plain
		keys := ofTeam(id)
		keys.Lock, keys.Bare = store.Held, true
		got, err := tx.Read(users, keys)
		if err != nil {
			return err
		}
		if n := len(got[0]); n > 0 {
			return &NotEmptyError{Users: n}
		}
		for _, row := range got[1] {
			tx.Delete(row.Key)
		}
		for _, hook := range r.opts.OnDelete {
			if err := hook(ctx, tx, id); err != nil {
				return err
			}
		}
		e.Value.Deleted = true
		return teamTable.Put(tx, e)
	})
}

func ofTeam(team healthlab.TeamID) store.Query {
	id := store.UUID(team.UUID)
	return store.Query{Key: keyTable.Key(store.Key{}), By: store.BySecond, From: id, To: store.End(id)}
}

func checkKey(k *Key) error {
	if k.ID == uuid.Nil || k.Team.IsZero() || k.Sum == [sha256.Size]byte{} {
		return fmt.Errorf("%w: a key must have an id, a team and a sum", healthlab.Invalid)
	}
	return healthlab.CheckText(k.Label, k.Hint, k.Scopes.String())
}

// insertKey adds a key to an existing team that has fewer than most keys. It locks the team's row, so that concurrent
// calls do not exceed the limit.
func insertKey(tx store.Tx, k Key, most int) error {
	team, err := teamTable.Get(tx, teamKey(k.Team), store.Held)
	switch {
	case err != nil:
		return err
	case team == nil || team.Value.Deleted:
		return errNoTeam()
	}
	same := store.Query{Key: keyTable.Key(store.Key{}), By: store.ByFirst, Lock: store.Plain, Bare: true}.Equal(string(k.Sum[:]))
	all := ofTeam(k.Team)
	all.Lock, all.Bare = store.Plain, true
	got, err := tx.Read(keyTable.One(store.Key{ID: store.UUID(k.ID)}, store.Held), same, all)
	switch {
	case err != nil:
		return err
	case len(got[0])+len(got[1]) > 0:
		return fmt.Errorf("%w: a stored API key has this id or secret already", healthlab.Conflict)
	case len(got[2]) >= most:
		return &TooManyKeysError{Most: most}
	}
	k.CreatedAt, k.ExpiresAt, k.LastUsedAt = healthlab.At(k.CreatedAt).Time, healthlab.At(k.ExpiresAt).Time, healthlab.At(k.LastUsedAt).Time
	return keyTable.Insert(tx, &k)
}

func (r rowStore) InsertKey(ctx context.Context, k Key, most int) error {
	if err := checkKey(&k); err != nil {
		return err
	}
	return asConflict(r.s.Update(ctx, func(_ context.Context, tx store.Tx) error { return insertKey(tx, k, most) }))
}

func asConflict(err error) error {
	if taken := (*store.TakenError)(nil); errors.As(err, &taken) {
		return fmt.Errorf("%w: a stored API key has this id or secret already", healthlab.Conflict)
	}
	return err
}

func (r rowStore) RotateKey(ctx context.Context, id uuid.UUID, until time.Time, next Key, most int) error {
	if err := checkKey(&next); err != nil {
		return err
	}
	until = healthlab.At(until).Time
	return asConflict(r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		e, err := lockKey(tx, next.Team, id)
		if err != nil {
			return err
		}
		if err := insertKey(tx, next, most); err != nil {
			return err
		}
		if e.Value.ExpiresAt.IsZero() || until.Before(e.Value.ExpiresAt) {
			e.Value.ExpiresAt = until
		}
		return keyTable.Put(tx, e)
	}))
}

// lockKey locks and returns a key of a team.
func lockKey(tx store.Tx, team healthlab.TeamID, id uuid.UUID) (*store.Entry[Key], error) {
	e, err := keyTable.Get(tx, store.Key{ID: store.UUID(id)}, store.Held)
	if err == nil && (e == nil || e.Value.Team != team) {
		err = errNoKey()
	}
	return e, err
}

func (r rowStore) TouchKey(ctx context.Context, team healthlab.TeamID, id uuid.UUID, at time.Time) error {
	at = healthlab.At(at).Time
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		e, err := lockKey(tx, team, id)
		if errors.Is(err, healthlab.NotFound) || err == nil && !at.After(e.Value.LastUsedAt) {
			return nil
		}
		if err != nil {
			return err
		}
		e.Value.LastUsedAt = at
		return keyTable.Put(tx, e)
	})
}

func (r rowStore) Keys(ctx context.Context, team healthlab.TeamID) ([]Key, error) {
	found, err := keyTable.Look(ctx, r.s, ofTeam(team))
	var out []Key
	for _, e := range found {
		out = append(out, e.Value)
	}
	return slices.Clip(out), err
}

func (r rowStore) Key(ctx context.Context, id uuid.UUID) (Key, error) {
	found, err := keyTable.LookOne(ctx, r.s, store.Key{ID: store.UUID(id)})
	if err == nil && found == nil {
		err = errNoKey()
	}
	if err != nil {
		return Key{}, err
	}
	return found.Value, nil
}

func (r rowStore) FindKeys(ctx context.Context, sums [][sha256.Size]byte) (map[[sha256.Size]byte]Key, error) {
	q := make([]store.Query, len(sums))
	for i, sum := range sums {
		q[i] = store.Query{Key: keyTable.Key(store.Key{}), By: store.ByFirst}.Equal(string(sum[:]))
	}
	got, err := r.s.Read(ctx, q...)
	if err != nil {
		return nil, err
	}
	out := make(map[[sha256.Size]byte]Key, len(sums))
	for i, rows := range got {
		found, err := keyTable.DecodedOne(rows)
		if err != nil {
			return nil, err
		}
		if found != nil {
			out[sums[i]] = found.Value
		}
	}
	return out, nil
}

func (r rowStore) DeleteKey(ctx context.Context, team healthlab.TeamID, id uuid.UUID) error {
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		e, err := lockKey(tx, team, id)
		if err != nil {
			return err
		}
		keyTable.Delete(tx, e)
		return nil
	})
}
