package store

import (
	"context"
	"sync"
)

// Ahead returns a context for a use case that only reads. queries lists the queries that the use case will make.
// The first Read of a [ReadAhead] store with this context answers all listed queries in one round trip, from one
// snapshot. Later reads of a listed query take their answer from memory; an unlisted query costs a round trip of
// its own. Locks are ignored. The first store that reads calls queries, and calls it again if its Read failed.
//
// The answers in memory stay those of the first Read until the context is used for an Update. Use the context for
// one use case, and [Fresh] for reads that must see later changes.
func Ahead(ctx context.Context, queries func() []Query) context.Context {
	return context.WithValue(ctx, aheadKey{}, &ahead{queries: queries})
}

// Fresh returns a context whose reads do not use the answers of [Ahead].
func Fresh(ctx context.Context) context.Context {
	if ctx.Value(aheadKey{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, aheadKey{}, (*ahead)(nil))
}

type aheadKey struct{}

// ahead has the queries that a use case announced with [Ahead], and their answers from one snapshot of one store.
type ahead struct {
	mu      sync.Mutex
	queries func() []Query  // nil after the first round trip
	known   map[Query][]Row // nil before the first round trip
	of      *readAhead      // the store that gave the answers
}

// ReadAhead returns s with reads that fetch the queries announced with [Ahead] in one round trip. It fetches only
// queries about these tables in advance.
func ReadAhead(s Store, tables []Definition) Store {
	r := &readAhead{Store: s, tables: map[string]bool{}}
	for _, d := range tables {
		r.tables[d.Name] = true
	}
	return r
}

type readAhead struct {
	Store
	tables map[string]bool
}

// Update implements [Store].
func (r *readAhead) Update(ctx context.Context, run func(context.Context, Tx) error) error {
	if a, _ := ctx.Value(aheadKey{}).(*ahead); a != nil {
		a.mu.Lock()
		a.queries, a.known, a.of = nil, nil, nil
		a.mu.Unlock()
	}
	return r.Store.Update(ctx, run)
}

// Read implements [Store].
func (r *readAhead) Read(ctx context.Context, q ...Query) ([][]Row, error) {
	a, _ := ctx.Value(aheadKey{}).(*ahead)
	if a == nil {
		return r.Store.Read(ctx, q...)
	}
	if out, ok, err := a.read(ctx, r, q); ok || err != nil {
		return out, err
	}
	return r.Store.Read(ctx, q...)
}

// read answers queries from the answers in memory. The first call fetches the announced queries together with q. ok
// is false if q must be read from the store.
func (a *ahead) read(ctx context.Context, r *readAhead, q []Query) (out [][]Row, ok bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if out, ok := a.answer(r, q); ok || a.queries == nil {
		return out, ok, ctx.Err()
	}
	wanted, ask, at := a.queries(), q[:len(q):len(q)], map[Query]int{}
	for i := range q {
		at[aheadQuery(q[i])] = i
	}
	for _, one := range wanted {
		if _, asked := at[aheadQuery(one)]; !asked && r.tables[one.Table] {
			at[aheadQuery(one)] = len(ask)
			ask = append(ask, one)
		}
	}
	got, err := r.Store.Read(ctx, ask...)
	if err != nil {
		return nil, false, err
	}
	a.queries, a.of, a.known = nil, r, make(map[Query][]Row, len(wanted))
	for _, one := range wanted {
		if i, asked := at[aheadQuery(one)]; asked {
			a.known[aheadQuery(one)] = CopyRows(got[i], false)
		}
	}
	return got[:len(q)], true, nil
}

// answer answers queries from memory. False if the answer of one of them is not in memory.
func (a *ahead) answer(r *readAhead, q []Query) ([][]Row, bool) {
	if a.of != r {
		return nil, false
	}
	out := make([][]Row, len(q))
	for i := range q {
		rows, ok := a.known[aheadQuery(q[i])]
		if !ok {
			return nil, false
		}
		out[i] = CopyRows(rows, q[i].Bare)
	}
	return out, true
}

// aheadQuery returns the query in the form that is the key of known: without a lock.
func aheadQuery(q Query) Query {
	q.Lock = Plain
	if q.By == ByKey {
		q.User = Key{}.User // the answer for a key does not depend on its User
	}
	return q
}
