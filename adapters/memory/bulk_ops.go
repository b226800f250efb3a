package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking/bulk"
)

// bulkTable keeps bulk operations of all teams.
type bulkTable struct {
	ops   map[uuid.UUID]*bulk.Op
	items map[uuid.UUID][]bulk.Item
}

func newBulkTable() bulkTable {
	return bulkTable{ops: map[uuid.UUID]*bulk.Op{}, items: map[uuid.UUID][]bulk.Item{}}
}

func (v bulkStore) Submit(ctx context.Context, op bulk.Op, users []healthlab.UserID) error {
	op, err := keepOp(op)
	if err != nil {
		return err
	}
	if op.ID == uuid.Nil || op.Team.IsZero() {
		return fmt.Errorf("%w: a bulk operation needs an id and a team", healthlab.Invalid)
	}
	if err := v.s.lock(ctx); err != nil {
		return err
	}
	defer v.s.mu.Unlock()
	if v.s.bulk.ops[op.ID] != nil {
		return fmt.Errorf("%w: the bulk operation's id is taken", healthlab.Conflict)
	}
	items := make([]bulk.Item, len(users))
	for i, u := range users {
		items[i] = bulk.Item{N: i, User: u}
	}
	v.s.bulk.ops[op.ID], v.s.bulk.items[op.ID] = &op, items
	return nil
}

func (v bulkStore) find(team healthlab.TeamID, id uuid.UUID) (*bulk.Op, error) {
	if op := v.s.bulk.ops[id]; op != nil && op.Team == team {
		return op, nil
	}
	return nil, fmt.Errorf("%w: the team has no such bulk operation", healthlab.NotFound)
}

func (v bulkStore) Claim(ctx context.Context, n int, now, until time.Time) ([]bulk.Op, error) {
	if err := v.s.lock(ctx); err != nil {
		return nil, err
	}
	defer v.s.mu.Unlock()
	type line struct {
		team     healthlab.TeamID
		provider string
	}
	first := map[line]*bulk.Op{}
	for _, op := range v.s.bulk.ops {
		k := line{op.Team, op.Provider}
		if op.Status == bulk.InProgress && (first[k] == nil || compareOps(op, first[k]) < 0) {
			first[k] = op
		}
	}
	var due []*bulk.Op
	for _, op := range first {
		if !op.Due.After(now) && !op.Lease.After(now) {
			due = append(due, op)
		}
	}
	slices.SortFunc(due, func(a, b *bulk.Op) int { return cmp.Or(a.Due.Compare(b.Due), slices.Compare(a.ID[:], b.ID[:])) })
	var out []bulk.Op
	for _, op := range due[:min(max(n, 0), len(due))] {
		op.Lease = instant(until)
		op.Fence++
		out = append(out, cloneOp(*op))
	}
	return out, nil
}

func compareOps(a, b *bulk.Op) int {
	return cmp.Or(a.StartedAt.Compare(b.StartedAt), slices.Compare(a.ID[:], b.ID[:]))
}

func (v bulkStore) Items(ctx context.Context, team healthlab.TeamID, id uuid.UUID, from, n int) ([]bulk.Item, error) {
	if err := v.s.lock(ctx); err != nil {
		return nil, err
	}
	defer v.s.mu.Unlock()
	var out []bulk.Item
	if op := v.s.bulk.ops[id]; op == nil || op.Team != team {
		return out, nil
	}
	for _, it := range v.s.bulk.items[id] {
		if it.N >= from && len(out) < n {
			out = append(out, it)
		}
	}
	return out, nil
}

func (v bulkStore) Op(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (bulk.Op, error) {
	if err := v.s.lock(ctx); err != nil {
		return bulk.Op{}, err
	}
	defer v.s.mu.Unlock()
	op, err := v.find(team, id)
	if err != nil {
		return bulk.Op{}, err
	}
	return cloneOp(*op), nil
}

func (v bulkStore) UpdateOp(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change func(*bulk.Op) error) (bulk.Op, error) {
	if err := v.s.lock(ctx); err != nil {
		return bulk.Op{}, err
	}
	defer v.s.mu.Unlock()
	old, err := v.find(team, id)
	if err != nil {
		return bulk.Op{}, err
	}
	next := cloneOp(*old)
	if err := change(&next); err != nil {
		return bulk.Op{}, err
	}
	next.ID, next.Team, next.Type, next.Provider, next.StartedAt, next.Total = old.ID, old.Team, old.Type, old.Provider, old.StartedAt, old.Total
	if next, err = keepOp(next); err != nil {
		return bulk.Op{}, err
	}
	*old = next
	return cloneOp(next), nil
}

func (v bulkStore) Ops(ctx context.Context, team healthlab.TeamID, before bulk.Place, n int) ([]bulk.Op, error) {
	if err := v.s.lock(ctx); err != nil {
		return nil, err
	}
	defer v.s.mu.Unlock()
	end := bulk.Op{ID: before.ID, StartedAt: before.StartedAt}
	var out []bulk.Op
	for _, op := range v.s.bulk.ops {
		if op.Team == team && (before.StartedAt.IsZero() || compareOps(op, &end) < 0) {
			out = append(out, cloneOp(*op))
		}
	}
	slices.SortFunc(out, func(a, b bulk.Op) int { return compareOps(&b, &a) })
	return out[:min(max(n, 0), len(out))], nil
}

func cloneOp(op bulk.Op) bulk.Op {
	op.Running = slices.Clone(op.Running)
	if len(op.Running) == 0 {
		op.Running = nil
	}
	return op
}

// keepOp returns an operation in the form in which it is kept.
func keepOp(op bulk.Op) (bulk.Op, error) {
	op = cloneOp(op)
	op.StartedAt, op.EndedAt, op.Due, op.Lease = instant(op.StartedAt), instant(op.EndedAt), instant(op.Due), instant(op.Lease)
	return op, checkText(string(op.Type), op.Provider, string(op.Status))
}

// erase removes what is kept about a user.
func (t *bulkTable) erase(user healthlab.UserID) {
	for id, items := range t.items {
		t.items[id] = slices.DeleteFunc(items, func(it bulk.Item) bool { return it.User == user })
		op := t.ops[id]
		op.Running = slices.DeleteFunc(op.Running, func(u healthlab.UserID) bool { return u == user })
	}
}
