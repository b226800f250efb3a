package bulk

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

func (r rowStore) Submit(ctx context.Context, op Op, items []Item) error {
	op, err := normalOp(op)
	switch {
	case err != nil:
		return err
	case op.ID == uuid.Nil || op.Team.IsZero():
		return fmt.Errorf("%w: bulk operation: the id and the team must be set", healthlab.Invalid)
	}
	err = r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		users := make([]store.Query, 0, len(items))
		for _, it := range items {
			q := store.User(op.Team, it.User)
			q.Bare = true
			users = append(users, q)
		}
		if _, err := tx.Read(users...); err != nil { // an erasure happens before or after the whole insertion
			return err
		}
		for i, it := range items {
			if err := itemTable.Insert(tx, &keptItem{op.Team, op.ID, Item{N: i, User: it.User, Grant: it.Grant}}); err != nil {
				return err
			}
		}
		kept, err := storedOp(tx, op)
		if err != nil {
			return err
		}
		if err := opTable.Insert(tx, &kept); err != nil {
			return err
		}
		id := opIDOf(&op)
		return opIDTable.Insert(tx, &id)
	})
	var taken *store.TakenError
	if errors.As(err, &taken) {
		return fmt.Errorf("%w: a bulk operation with this id exists", healthlab.Conflict)
	}
	return err
}

func (r rowStore) Op(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (Op, error) {
	e, err := opTable.LookOne(ctx, r.s, opKey(team, id))
	switch {
	case err != nil:
		return Op{}, err
	case e == nil:
		return Op{}, errNoOp
	}
	return e.Value.op(), nil
}

func (r rowStore) UpdateOp(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change func(*Op) error) (Op, error) {
	var out Op
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		e, err := opTable.Get(tx, opKey(team, id), store.Held)
		switch {
		case err != nil:
			return err
		case e == nil:
			return errNoOp
		}
		was, next := e.Value.op(), e.Value.op()
		if err := change(&next); err != nil {
			return err
		}
		next.ID, next.Team, next.Type, next.Provider, next.Total, next.StartedAt = was.ID, was.Team, was.Type, was.Provider, was.Total, was.StartedAt
		if next, err = normalOp(next); err != nil {
			return err
		}
		if e.Value, err = storedOp(tx, next); err != nil {
			return err
		}
		out = e.Value.op()
		if err := opTable.Put(tx, e); err != nil {
			return err
		}
		if opIDOf(&next) != opIDOf(&was) {
			o, err := opIDTable.Get(tx, opIDKey(id), store.Held)
			if err != nil {
				return err
			}
			o.Value = opIDOf(&next)
			if err := opIDTable.Put(tx, o); err != nil {
				return err
			}
		}
		if next.Status == InProgress {
			return nil
		}
		return removeGrants(tx, team, id)
	})
	if err != nil {
		return Op{}, err
	}
	return out, nil
}

// removeGrants removes the Grants of the items of an operation.
func removeGrants(tx store.Tx, team healthlab.TeamID, id uuid.UUID) error {
	items, err := itemTable.Find(tx, itemsOf(team, id, store.ByFirst).Hold())
	if err != nil {
		return err
	}
	for _, e := range items {
		e.Value.Item.Grant = healthlab.Sealed{}
		if err := itemTable.Put(tx, e); err != nil {
			return err
		}
	}
	return nil
}

func (r rowStore) Ops(ctx context.Context, team healthlab.TeamID, before ListPosition, n int) ([]Op, error) {
	q := store.Query{Key: store.Key{Team: team}, By: store.ByFirst, Desc: true, Limit: max(n, 1)}
	if !before.StartedAt.IsZero() {
		q.To = startIndex(before.StartedAt, before.ID)
	}
	found, err := opTable.Look(ctx, r.s, q)
	var out []Op
	for _, e := range found[:min(max(n, 0), len(found))] {
		out = append(out, e.Value.op())
	}
	return out, err
}

func (r rowStore) Claim(ctx context.Context, n int, now time.Time, lease time.Duration) ([]Op, error) {
	var out []Op
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		out = nil
		first, err := firstOps(tx, now)
		if err != nil {
			return err
		}
		for _, op := range first[:min(max(n, 0), len(first))] {
			e, err := opTable.Get(tx, opKey(op.Team, op.ID), store.Skip)
			if err != nil {
				return err
			}
			if e == nil || !claimable(&e.Value.Op, now, tx.Now()) {
				continue // another transaction has locked or changed the operation
			}
			e.Value.Op.Lease = instant(tx.Now().Add(lease))
			e.Value.Op.Fence++
			if err := opTable.Put(tx, e); err != nil {
				return err
			}
			out = append(out, e.Value.op())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func claimable(op *Op, now, at time.Time) bool {
	return op.Status == InProgress && !op.Due.After(now) && !op.Lease.After(at)
}

// firstOps returns, without a lock, the claimable operations that are the first ones of their team and provider. The
// operation that has been due longest comes first, of equal ones the lowest id.
func firstOps(tx store.Tx, now time.Time) ([]Op, error) {
	got, err := tx.Read(store.Query{Key: store.Key{Table: opTable.Name}, By: store.ByDue, Until: now, Lock: store.Plain, Bare: true})
	if err != nil {
		return nil, err
	}
	type line struct {
		team     healthlab.TeamID
		provider string
	}
	seen := map[line]bool{}
	var queries []store.Query
	for _, row := range got[0] {
		provider := row.Index[1][:len(row.Index[1])-beganLen]
		if l := (line{row.Team, provider}); !seen[l] {
			seen[l] = true
			queries = append(queries, store.Query{
				Key: store.Key{Table: opTable.Name, Team: row.Team}, By: store.BySecond, From: provider, To: store.End(provider), Limit: 1, Lock: store.Plain,
			})
		}
	}
	if got, err = tx.Read(queries...); err != nil {
		return nil, err
	}
	found, err := opTable.Decoded(slices.Concat(got...))
	if err != nil {
		return nil, err
	}
	var out []Op
	for _, e := range found {
		if claimable(&e.Value.Op, now, tx.Now()) {
			out = append(out, e.Value.Op)
		}
	}
	slices.SortFunc(out, func(a, b Op) int { return cmp.Or(a.Due.Compare(b.Due), bytes.Compare(a.ID[:], b.ID[:])) })
	return out, nil
}

func (r rowStore) Prune(ctx context.Context, n int, before time.Time) (int, error) {
	done := 0
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		done = 0
		if n <= 0 {
			return nil
		}
		ended, err := opIDTable.Find(tx, store.Query{By: store.ByDue, Until: before.Add(-1), Limit: n, Lock: store.Plain})
		if err != nil {
			return err
		}
		queries := make([]store.Query, len(ended))
		for i, e := range ended {
			queries[i] = opTable.One(opKey(e.Value.Team, e.Value.ID), store.Skip)
		}
		got, err := tx.Read(queries...)
		if err != nil {
			return err
		}
		var old []store.Row
		for _, rows := range got {
			kept, err := opTable.Decoded(rows)
			if err != nil {
				return err
			}
			if len(kept) > 0 && kept[0].Value.Op.Status != InProgress && kept[0].Value.Op.EndedAt.Before(before) {
				old = append(old, rows...)
			}
		}
		done = len(old)
		return deleteOps(tx, old)
	})
	if err != nil {
		return 0, err
	}
	return done, nil
}
