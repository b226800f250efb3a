package pull

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/store"
)

// putTask writes a new task or a locked one, and its row in the queue.
func putTask(tx store.Tx, e *store.Entry[Task]) error {
	t := &e.Value
	q, err := queueTable.Get(tx, queueKey(t.Key), store.Held)
	if err != nil {
		return err
	}
	if err := taskTable.Put(tx, e); err != nil {
		return err
	}
	if t.Due.IsZero() {
		if q != nil {
			queueTable.Delete(tx, q)
		}
		return nil
	}
	if q == nil {
		q = &store.Entry[queuedTask]{}
	}
	now := tx.Now()
	q.Value = queuedTask{t.Key, t.App(), t.Turn, t.Due, t.Lease, !t.Due.After(now) && !t.Lease.After(now)}
	return queueTable.Put(tx, q)
}

func deleteTask(tx store.Tx, e *store.Entry[Task]) {
	taskTable.Delete(tx, e)
	tx.Delete(queueTable.Key(queueKey(e.Value.Key)))
}

// lockQueue locks the queue rows of tasks at once, so that putTask needs no round trip of its own for each.
func lockQueue(tx store.Tx, keys []Key) error {
	queries := make([]store.Query, len(keys))
	for i, k := range keys {
		queries[i] = queueTable.One(queueKey(k), store.Held)
	}
	_, err := tx.Read(queries...)
	return err
}

// Plan implements [Store].
func (r rowStore) Plan(ctx context.Context, ref Ref, change func(healthdata.Connection, healthdata.User, []Task) (ConnectionPlan, error)) error {
	if err := healthlab.CheckText(ref.Provider); err != nil {
		return err
	}
	return r.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		u, err := r.users.Get(tx, ref.Team, ref.User, store.Held)
		if err != nil {
			return err
		}
		c := u.Connection(ref.Provider)
		if !u.Live() || c == nil {
			return errNoConnection
		}
		old, err := taskTable.Find(tx, tasksOf(ref.Team, refID(ref), store.Held))
		if err != nil {
			return err
		}
		planned, err := change(*c, u, values(old))
		if err != nil {
			return err
		}
		next, err := plannedTasks(ref, planned.Tasks)
		if err != nil {
			return err
		}
		if err := replaceTasks(tx, old, next); err != nil {
			return err
		}
		if err := store.AppendEvents(ctx, r.events, tx, planned.Events); err != nil {
			return err
		}
		return r.users.SetDue(tx, ref.Team, ref.User, ref.Provider, planned.Due)
	})
}

// plannedTasks returns the tasks of a plan by key, in their stored form.
func plannedTasks(ref Ref, tasks []Task) (map[Key]Task, error) {
	out := map[Key]Task{}
	for _, t := range tasks {
		t, err := normalTask(t)
		if err != nil {
			return nil, err
		}
		if _, twice := out[t.Key]; twice || t.Ref != ref {
			return nil, fmt.Errorf("%w: plan: each task must belong to the connection of the plan and have a unique key", healthlab.Invalid)
		}
		out[t.Key] = t
	}
	return out, nil
}

// replaceTasks replaces the tasks of a connection by next.
func replaceTasks(tx store.Tx, old []*store.Entry[Task], next map[Key]Task) error {
	var keys []Key
	entries := map[Key]*store.Entry[Task]{}
	for _, e := range old {
		keys = append(keys, e.Value.Key)
		entries[e.Value.Key] = e
	}
	for k := range next {
		if entries[k] == nil {
			keys = append(keys, k)
			entries[k] = &store.Entry[Task]{}
		}
	}
	if err := lockQueue(tx, keys); err != nil {
		return err
	}
	for k, e := range entries {
		t, kept := next[k]
		if !kept {
			deleteTask(tx, e)
			continue
		}
		e.Value = t
		if err := putTask(tx, e); err != nil {
			return err
		}
	}
	return nil
}

// Update implements [Store].
func (r rowStore) Update(ctx context.Context, key Key, change func(*Task) ([]healthlab.Event, error)) (Task, error) {
	if err := healthlab.CheckText(key.Provider, key.Resource, string(key.Kind)); err != nil {
		return Task{}, err
	}
	var out Task
	err := r.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		// The user is locked first, as in Plan.
		u, err := store.LockUser(tx, key.Team, key.User)
		if err != nil {
			return err
		}
		e, err := taskTable.Get(tx, taskKey(key), store.Held)
		if err != nil {
			return err
		}
		if e == nil || !u.Live {
			return errNoTask
		}
		events, err := change(&e.Value)
		if err != nil {
			return err
		}
		e.Value.Key = key
		if e.Value, err = normalTask(e.Value); err != nil {
			return err
		}
		out = e.Value
		if err := putTask(tx, e); err != nil {
			return err
		}
		return store.AppendEvents(ctx, r.events, tx, events)
	})
	if err != nil {
		return Task{}, err
	}
	return out, nil
}

// CountQueries returns the queries of [Store.Count], for a transaction that reads all rows at once.
func CountQueries(key Key) []store.Query {
	return []store.Query{
		store.User(key.Team, key.User), taskTable.One(taskKey(key), store.Held), queueTable.One(queueKey(key), store.Held),
	}
}

// Count implements [Store].
func (r rowStore) Count(ctx context.Context, key Key, change func(*Task)) error {
	if err := healthlab.CheckText(key.Provider, key.Resource, string(key.Kind)); err != nil {
		return err
	}
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		if _, err := tx.Read(CountQueries(key)...); err != nil {
			return err
		}
		u, err := r.users.Get(tx, key.Team, key.User, store.Shared)
		if err != nil {
			return err
		}
		if !u.Live() {
			return errNoUser
		}
		e, err := taskTable.Get(tx, taskKey(key), store.Held)
		if err != nil {
			return err
		}
		if e == nil {
			c := u.Connection(key.Provider)
			if c == nil {
				return errNoConnection
			}
			e = &store.Entry[Task]{Value: Task{Key: key, Linked: c.LinkedAt}}
		}
		change(&e.Value)
		e.Value.Key = key
		if e.Value, err = normalTask(e.Value); err != nil {
			return err
		}
		return putTask(tx, e)
	})
}

// Tasks implements [Store].
func (r rowStore) Tasks(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]Task, error) {
	got, err := r.s.Read(ctx, store.User(team, user), tasksOf(team, store.UUID(user.UUID), store.Plain))
	if err != nil || !store.StateOf(got[0]).Live {
		return nil, err
	}
	found, err := taskTable.Decoded(got[1])
	return values(found), err
}
