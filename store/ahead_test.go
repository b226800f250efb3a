package store_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/store"
)

// counting counts the queries of each Read that reaches it.
type counting struct {
	store.Store
	reads []int
	fail  error
}

func (c *counting) Read(ctx context.Context, q ...store.Query) ([][]store.Row, error) {
	c.reads = append(c.reads, len(q))
	if c.fail != nil {
		return nil, c.fail
	}
	return c.Store.Read(ctx, q...)
}

// aheadStore is a store of two tables, with one row each, under a ReadAhead that knows of one of them.
type aheadStore struct {
	*testing.T
	inner     *counting
	s         store.Store
	team      healthlab.TeamID
	row, rows store.Query // of the known table
	foreign   store.Query
}

func newAheadStore(t *testing.T) *aheadStore {
	tables := []store.Definition{{Name: "known"}, {Name: "foreign"}}
	e, err := memstore.New(tables, nil)
	require.NoError(t, err)
	team := healthlab.TeamID{UUID: uuid.New()}
	a := &aheadStore{T: t, inner: &counting{Store: e}, team: team}
	a.s = store.ReadAhead(a.inner, tables[:1])
	a.row = store.Query{Key: a.key("known", "a")}
	a.rows = store.Query{Key: a.key("known", ""), By: store.ByID}
	a.foreign = store.Query{Key: a.key("foreign", "a")}
	a.put("known", "a")
	a.put("foreign", "a")
	return a
}

func (a *aheadStore) key(table, id string) store.Key {
	return store.Key{Table: table, Team: a.team, ID: id}
}

func (a *aheadStore) put(table, id string) {
	require.NoError(a, a.inner.Update(a.Context(), func(_ context.Context, tx store.Tx) error {
		tx.Put(store.Row{Key: a.key(table, id), Doc: []byte(id)})
		return nil
	}))
}

func (a *aheadStore) ahead(q ...store.Query) context.Context {
	return store.Ahead(a.Context(), func() []store.Query { return q })
}

// read returns how many rows each query finds, and requires a number of reads that reach the engine.
func (a *aheadStore) read(ctx context.Context, reads int, q ...store.Query) []int {
	a.Helper()
	before := len(a.inner.reads)
	got, err := a.s.Read(ctx, q...)
	require.NoError(a, err)
	require.Len(a, a.inner.reads, before+reads)
	found := make([]int, len(got))
	for i := range got {
		found[i] = len(got[i])
	}
	return found
}

func TestAheadStore_readsAnnouncedKeysInOneRoundTrip(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(a *aheadStore)
	}{
		{"asks all in the first trip", func(a *aheadStore) {
			ctx := a.ahead(a.rows, a.row)
			require.Equal(a, []int{1}, a.read(ctx, 1, a.row))
			require.Equal(a, []int{2}, a.inner.reads, "no query is asked twice")
			a.put("known", "b")
			require.Equal(a, []int{1, 1}, a.read(ctx, 0, a.row, a.rows), "of the first snapshot")
			require.Equal(a, []int{2}, a.read(a.Context(), 1, a.rows), "another context")
		}},
		{"answers the same row under another lock and with its user", func(a *aheadStore) {
			ctx := a.ahead(a.row)
			a.read(ctx, 1, a.row)
			q := a.row.Hold()
			q.User = healthlab.UserID{UUID: uuid.New()}
			require.Equal(a, []int{1}, a.read(ctx, 0, q))
			a.read(ctx, 1, a.row.WithoutDocs())
		}},
		{"one Read has one snapshot", func(a *aheadStore) {
			ctx := a.ahead(a.rows)
			a.read(ctx, 1, a.row)
			a.put("known", "b")
			require.Equal(a, []int{2, 1}, a.read(ctx, 1, a.rows, store.Query{Key: a.key("known", "b")}))
		}},
		{"leaves other tables out", func(a *aheadStore) {
			ctx := a.ahead(a.foreign, a.rows)
			a.read(ctx, 1, a.row)
			require.Equal(a, []int{2}, a.inner.reads)
			a.read(ctx, 1, a.foreign)
		}},
		{"an Update ends it", func(a *aheadStore) {
			ctx := a.ahead(a.rows)
			a.read(ctx, 1, a.rows)
			require.NoError(a, a.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
				tx.Put(store.Row{Key: a.key("known", "b")})
				got, err := a.s.Read(ctx, a.rows)
				require.Len(a, got[0], 2)
				return err
			}))
			require.Equal(a, []int{2}, a.read(ctx, 1, a.rows))
			a.read(ctx, 1, a.rows)
		}},
		{"Fresh asks again", func(a *aheadStore) {
			ctx := a.ahead(a.rows)
			a.read(ctx, 1, a.rows)
			a.put("known", "b")
			require.Equal(a, []int{2}, a.read(store.Fresh(ctx), 1, a.rows))
			require.Equal(a, []int{1}, a.read(ctx, 0, a.rows))
		}},
		{"a read that failed is made again", func(a *aheadStore) {
			ctx := a.ahead(a.rows)
			a.inner.fail = healthlab.Unavailable
			_, err := a.s.Read(ctx, a.row)
			require.ErrorIs(a, err, healthlab.Unavailable)
			a.inner.fail = nil
			a.read(ctx, 1, a.row)
			a.read(ctx, 0, a.rows)
		}},
		{"an answer shares no memory", func(a *aheadStore) {
			ctx := a.ahead(a.row)
			for range 3 {
				got, err := a.s.Read(ctx, a.row)
				require.NoError(a, err)
				require.Equal(a, "a", string(got[0][0].Doc))
				got[0][0].Doc[0] = 'x'
			}
		}},
		{"another store asks for itself", func(a *aheadStore) {
			ctx := a.ahead(a.rows)
			a.read(ctx, 1, a.rows)
			other := newAheadStore(a.T)
			other.read(ctx, 1, a.rows)
			require.Equal(a, []int{1}, a.read(ctx, 0, a.rows))
		}},
		{"an ended context is the error", func(a *aheadStore) {
			ctx, end := context.WithCancel(a.ahead(a.rows))
			a.read(ctx, 1, a.rows)
			end()
			_, err := a.s.Read(ctx, a.rows)
			require.ErrorIs(a, err, context.Canceled)
		}},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(newAheadStore(t)) })
	}
}
