package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
)

type bulkStore struct {
	*database
	users     *userTable
	linking   *linkTable
	bulk      *bulkTable
	userStore userStore
}

func (v bulkStore) Connections(ctx context.Context, q bulk.ConnectionQuery) ([]bulk.Connection, error) {
	if err := healthlab.CheckText(q.Provider); err != nil {
		return nil, err
	}
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	var out []bulk.Connection
	for key, c := range v.linking.credentials {
		row := v.users.find(key.team, key.user)
		if key.team != q.Team || key.provider != q.Provider || row == nil || !row.user.Live() || !isConnected(&row.user, q.Provider) ||
			slices.Compare(key.user.UUID[:], q.After.UUID[:]) <= 0 || q.Users != nil && !slices.Contains(q.Users, key.user) {
			continue
		}
		u := row.user.Clone() // nothing that is encrypted is read
		to := u.Connection(q.Provider)
		c.Client = to.Client
		out = append(out, bulk.Connection{Credential: normalCredential(c, key), ExternalUserID: to.ExternalUserID, Scopes: to.Scopes})
	}
	slices.SortFunc(out, func(a, b bulk.Connection) int { return slices.Compare(a.User.UUID[:], b.User.UUID[:]) })
	return out[:min(max(q.N, 0), len(out))], nil
}

// bulkTable keeps bulk operations of all teams.
type bulkTable struct {
	ops   map[uuid.UUID]*bulk.Op
	items map[uuid.UUID][]bulk.Item
}

func newBulkTable() *bulkTable {
	return &bulkTable{ops: map[uuid.UUID]*bulk.Op{}, items: map[uuid.UUID][]bulk.Item{}}
}

func (v bulkStore) Submit(ctx context.Context, op bulk.Op, items []bulk.Item) error {
	op, err := normalOp(op)
	if err != nil {
		return err
	}
	if op.ID == uuid.Nil || op.Team.IsZero() {
		return fmt.Errorf("%w: a bulk operation needs an id and a team", healthlab.Invalid)
	}
	for i := range items {
		if err := healthlab.CheckText(items[i].Grant.KeyID); err != nil {
			return err
		}
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	if v.bulk.ops[op.ID] != nil {
		return fmt.Errorf("%w: the bulk operation's id is taken", healthlab.Conflict)
	}
	kept := make([]bulk.Item, len(items))
	for i, it := range items {
		kept[i] = bulk.Item{N: i, User: it.User, Grant: cloneSealed(it.Grant)}
	}
	v.bulk.ops[op.ID], v.bulk.items[op.ID] = &op, kept
	return nil
}

func (v bulkStore) find(team healthlab.TeamID, id uuid.UUID) (*bulk.Op, error) {
	if op := v.bulk.ops[id]; op != nil && op.Team == team {
		return op, nil
	}
	return nil, fmt.Errorf("%w: the team has no such bulk operation", healthlab.NotFound)
}

func (v bulkStore) Claim(ctx context.Context, n int, now time.Time, lease time.Duration) ([]bulk.Op, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	type line struct {
		team     healthlab.TeamID
		provider string
	}
	at, first := v.clock(), map[line]*bulk.Op{}
	for _, op := range v.bulk.ops {
		k := line{op.Team, op.Provider}
		if op.Status == bulk.InProgress && (first[k] == nil || compareOps(op, first[k]) < 0) {
			first[k] = op
		}
	}
	var due []*bulk.Op
	for _, op := range first {
		if !op.Due.After(now) && !op.Lease.After(at) {
			due = append(due, op)
		}
	}
	slices.SortFunc(due, func(a, b *bulk.Op) int { return cmp.Or(a.Due.Compare(b.Due), slices.Compare(a.ID[:], b.ID[:])) })
	var out []bulk.Op
	for _, op := range due[:min(max(n, 0), len(due))] {
		op.Lease = at.Add(lease)
		op.Fence++
		out = append(out, cloneOp(*op))
	}
	return out, nil
}

func compareOps(a, b *bulk.Op) int {
	return cmp.Or(a.StartedAt.Compare(b.StartedAt), slices.Compare(a.ID[:], b.ID[:]))
}

func (v bulkStore) Items(ctx context.Context, team healthlab.TeamID, id uuid.UUID, from, n int) ([]bulk.Item, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	var out []bulk.Item
	if op := v.bulk.ops[id]; op == nil || op.Team != team {
		return out, nil
	}
	for _, it := range v.bulk.items[id] {
		if it.N >= from && len(out) < n {
			it.Grant = cloneSealed(it.Grant)
			out = append(out, it)
		}
	}
	return out, nil
}

func (v bulkStore) Op(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (bulk.Op, error) {
	if err := v.lock(ctx); err != nil {
		return bulk.Op{}, err
	}
	defer v.mu.Unlock()
	op, err := v.find(team, id)
	if err != nil {
		return bulk.Op{}, err
	}
	return cloneOp(*op), nil
}

func (v bulkStore) UpdateOp(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change func(*bulk.Op) error) (bulk.Op, error) {
	if err := v.lock(ctx); err != nil {
		return bulk.Op{}, err
	}
	defer v.mu.Unlock()
	old, err := v.find(team, id)
	if err != nil {
		return bulk.Op{}, err
	}
	next := cloneOp(*old)
	if err := change(&next); err != nil {
		return bulk.Op{}, err
	}
	next.ID, next.Team, next.Type, next.Provider, next.StartedAt, next.Total = old.ID, old.Team, old.Type, old.Provider, old.StartedAt, old.Total
	if next, err = normalOp(next); err != nil {
		return bulk.Op{}, err
	}
	*old = next
	if next.Status != bulk.InProgress {
		items := v.bulk.items[id]
		for i := range items {
			items[i].Grant = healthlab.Sealed{}
		}
	}
	return cloneOp(next), nil
}

func (v bulkStore) Prune(ctx context.Context, n int, before time.Time) (int, error) {
	if err := v.lock(ctx); err != nil {
		return 0, err
	}
	defer v.mu.Unlock()
	var old []*bulk.Op
	for _, op := range v.bulk.ops {
		if op.Status != bulk.InProgress && !op.EndedAt.IsZero() && op.EndedAt.Before(before) {
			old = append(old, op)
		}
	}
	slices.SortFunc(old, func(a, b *bulk.Op) int { return cmp.Or(a.EndedAt.Compare(b.EndedAt), slices.Compare(a.ID[:], b.ID[:])) })
	old = old[:min(max(n, 0), len(old))]
	for _, op := range old {
		delete(v.bulk.ops, op.ID)
		delete(v.bulk.items, op.ID)
	}
	return len(old), nil
}

// item returns an item of an operation.
func (v bulkStore) item(team healthlab.TeamID, id uuid.UUID, n int) (*bulk.Item, error) {
	if op := v.bulk.ops[id]; op != nil && op.Team == team {
		items := v.bulk.items[id]
		if i, ok := slices.BinarySearchFunc(items, n, func(it bulk.Item, n int) int { return it.N - n }); ok {
			return &items[i], nil
		}
	}
	return nil, fmt.Errorf("%w: the team has no such item of a bulk operation", healthlab.NotFound)
}

func (v bulkStore) Import(ctx context.Context, c bulk.Import) (bulk.Outcome, error) {
	if err := healthlab.CheckText(importText(&c)...); err != nil {
		return "", err
	}
	if err := v.lock(ctx); err != nil {
		return "", err
	}
	defer v.mu.Unlock()
	it, err := v.item(c.Team, c.Op, c.N)
	if err != nil {
		return "", err
	}
	if it.Grant.Box == nil {
		return it.Outcome, nil
	}
	key := account{c.Team, it.User, c.Credential.Provider}
	if _, err := v.userStore.update(ctx, c.Team, it.User, func(u *healthdata.User) ([]healthlab.Event, error) {
		events, err := c.Change(u)
		if err == nil && c.Sole != nil && v.users.accountTaken(c.Team, it.User, key.provider, *c.Sole) {
			err = &linking.AccountTakenError{}
		}
		return events, err
	}); err != nil {
		return "", err
	}
	v.linking.put(c.Credential, key)
	it.Grant, it.Outcome = healthlab.Sealed{}, bulk.Connected
	return it.Outcome, nil
}

// importText is the text of an import.
func importText(c *bulk.Import) []string {
	text := []string{c.Credential.Provider, c.Credential.Secret.KeyID, c.Credential.Previous.KeyID}
	if c.Sole != nil {
		text = append(text, *c.Sole)
	}
	return text
}

func (v bulkStore) Reject(ctx context.Context, team healthlab.TeamID, id uuid.UUID, n int, why bulk.Outcome) (bulk.Outcome, error) {
	if err := healthlab.CheckText(string(why)); err != nil {
		return "", err
	}
	if err := v.lock(ctx); err != nil {
		return "", err
	}
	defer v.mu.Unlock()
	it, err := v.item(team, id, n)
	if err != nil {
		return "", err
	}
	if it.Grant.Box != nil {
		it.Grant, it.Outcome = healthlab.Sealed{}, why
	}
	return it.Outcome, nil
}

func cloneSealed(s healthlab.Sealed) healthlab.Sealed {
	s.Box = slices.Clone(s.Box)
	return s
}

func (v bulkStore) Ops(ctx context.Context, team healthlab.TeamID, before bulk.ListPosition, n int) ([]bulk.Op, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	end := bulk.Op{ID: before.ID, StartedAt: before.StartedAt}
	var out []bulk.Op
	for _, op := range v.bulk.ops {
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

// normalOp returns an operation in the form in which it is kept.
func normalOp(op bulk.Op) (bulk.Op, error) {
	op = cloneOp(op)
	op.StartedAt, op.EndedAt, op.Due, op.Lease = instant(op.StartedAt), instant(op.EndedAt), instant(op.Due), instant(op.Lease)
	return op, healthlab.CheckText(string(op.Type), op.Provider, string(op.Status))
}

// erase removes what is kept about a user.
func (t *bulkTable) erase(user healthlab.UserID) {
	for id, items := range t.items {
		t.items[id] = slices.DeleteFunc(items, func(it bulk.Item) bool { return it.User == user })
		op := t.ops[id]
		op.Running = slices.DeleteFunc(op.Running, func(u healthlab.UserID) bool { return u == user })
	}
}
