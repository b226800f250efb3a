// Package memstore is a [store.Store] in memory for given tables. A program that uses it links only the domain
// packages that declare these tables.
//
//	engine, err := memstore.New(healthdata.UserTables(), nil)
package memstore

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tidwall/btree"

	"github.com/healthlab-dev/healthlab/store"
)

// Engine is a [store.Store] in memory. Updates run one after another. A read sees the last commit and never waits
// for an update.
type Engine struct {
	defs map[string]store.Definition
	now  func() time.Time
	turn chan struct{} // the lock of updates: it holds one token while an update runs
	last atomic.Pointer[ordered]
}

// ordered is one state of an Engine, in two ordered maps: rows by key, and marks, the index entries that point to the
// keys of rows. A state that readers can see is immutable.
type ordered struct {
	rows  *btree.Map[string, store.Row]
	marks *btree.Map[string, string]
}

// Options adjusts an Engine. The zero value, and nil, mean the defaults.
type Options struct {
	// Now is the store's clock. Default time.Now.
	Now func() time.Time
}

// New returns an empty store for the tables. It fails if two tables have the same name.
func New(tables []store.Definition, opts *Options) (*Engine, error) {
	defs, err := store.Definitions(tables)
	if err != nil {
		return nil, err
	}
	e := &Engine{defs: defs, now: time.Now, turn: make(chan struct{}, 1)}
	if opts != nil && opts.Now != nil {
		e.now = opts.Now
	}
	e.last.Store(&ordered{&btree.Map[string, store.Row]{}, &btree.Map[string, string]{}})
	return e, nil
}

// Update implements [store.Store]. It calls run once.
func (e *Engine) Update(ctx context.Context, run func(context.Context, store.Tx) error) error {
	if joined, err := store.Join(ctx, e, run); joined {
		return err
	}
	if err := ctx.Err(); err != nil { // otherwise select may take the lock although ctx has ended
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case e.turn <- struct{}{}:
	}
	b := store.NewBuffer(e.now(), func(q []store.Query) ([][]store.Row, error) {
		return store.ReadKV(e.last.Load(), q)
	})
	if err := e.commit(ctx, b, run); err != nil {
		return err
	}
	b.Committed()
	return nil
}

// commit runs an update whose lock the caller holds, publishes its writes, and releases the lock.
func (e *Engine) commit(ctx context.Context, b *store.Buffer, run func(context.Context, store.Tx) error) error {
	defer func() { <-e.turn }()
	if err := b.Run(ctx, e, run); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	writes := b.Writes()
	if len(writes) == 0 {
		return nil
	}
	was := e.last.Load()
	next := &ordered{was.rows.Copy(), was.marks.Copy()}
	if err := store.WriteKV(next, e.defs, writes); err != nil {
		return err
	}
	e.last.Store(next)
	return nil
}

// Read implements [store.Store].
func (e *Engine) Read(ctx context.Context, q ...store.Query) ([][]store.Row, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if rows, joined, err := store.JoinRead(ctx, e, q); joined {
		return rows, err
	}
	out, err := store.ReadKV(e.last.Load(), q)
	for i := range out {
		out[i] = store.CopyRows(out[i], false)
	}
	return out, err
}

// Kept returns all rows as they are stored, encrypted documents included, ordered by table, team and ID. The caller
// must not change them.
func (e *Engine) Kept() []store.Row { return e.last.Load().rows.Values() }

// Get returns the row of a key, and false if there is none.
func (o *ordered) Get(key string) (store.Row, bool, error) {
	r, ok := o.rows.Get(key)
	return r, ok, nil
}

// Set stores a row under a key.
func (o *ordered) Set(key string, r store.Row) error { o.rows.Set(key, r); return nil }

// Remove removes the row of a key.
func (o *ordered) Remove(key string) error { o.rows.Delete(key); return nil }

// Mark stores an index entry that points to the key of a row.
func (o *ordered) Mark(mark, key string) error { o.marks.Set(mark, key); return nil }

// Unmark removes an index entry.
func (o *ordered) Unmark(mark string) error { o.marks.Delete(mark); return nil }

// Walk calls each with the rows whose keys are at or after from and before to, until each returns false. An empty to
// means no end; desc reverses the order.
func (o *ordered) Walk(from, to string, desc bool, each func(store.Row) bool) error {
	walk(o.rows, from, to, desc, func(_ string, r store.Row) bool { return each(r) })
	return nil
}

// WalkMarks calls each with the index entries whose marks are at or after from and before to, until each returns false.
// An empty to means no end; desc reverses the order.
func (o *ordered) WalkMarks(from, to string, desc bool, each func(mark, key string) bool) error {
	walk(o.marks, from, to, desc, each)
	return nil
}

func walk[T any](m *btree.Map[string, T], from, to string, desc bool, each func(string, T) bool) {
	if !desc {
		m.Ascend(from, func(k string, v T) bool { return (to == "" || k < to) && each(k, v) })
		return
	}
	down := func(k string, v T) bool { return to != "" && k >= to || k >= from && each(k, v) }
	if to == "" {
		m.Reverse(down)
		return
	}
	m.Descend(to, down)
}
