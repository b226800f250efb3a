// Package memstore is a [store.Store] in memory for given tables. A program that uses it links only the domain packages
// of these tables.
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

// Engine is a [store.Store] in memory. Updates run one after another; reads see the last
// commit and wait for nothing.
type Engine struct {
	defs map[string]store.Definition
	now  func() time.Time
	turn chan struct{} // the lock of updates: it holds one token while an update runs
	last atomic.Pointer[ordered]
}

// ordered is one state of an Engine: ordered maps of rows and marks. A published state is immutable.
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
	if err := ctx.Err(); err != nil { // select picks any case that is ready
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

// commit runs an update and publishes its writes. It releases the lock of updates.
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

// Kept returns all rows as they are stored, ordered by table, team and ID. The caller must not change them.
func (e *Engine) Kept() []store.Row { return e.last.Load().rows.Values() }

// Get returns a row.
func (o *ordered) Get(key string) (store.Row, bool, error) {
	r, ok := o.rows.Get(key)
	return r, ok, nil
}

// Set stores a row.
func (o *ordered) Set(key string, r store.Row) error { o.rows.Set(key, r); return nil }

// Remove removes a row.
func (o *ordered) Remove(key string) error { o.rows.Delete(key); return nil }

// Mark stores a mark.
func (o *ordered) Mark(mark, key string) error { o.marks.Set(mark, key); return nil }

// Unmark removes a mark.
func (o *ordered) Unmark(mark string) error { o.marks.Delete(mark); return nil }

// Walk iterates over rows.
func (o *ordered) Walk(from, to string, desc bool, each func(store.Row) bool) error {
	walk(o.rows, from, to, desc, func(_ string, r store.Row) bool { return each(r) })
	return nil
}

// WalkMarks iterates over marks.
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
