// Package storetest is the suite of [store.Store]. An engine that passes it keeps everything that
// the packages of healthlab keep.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t testing.TB) storetest.Harness {
//			s, err := myengine.Open(t.TempDir(), storetest.Tables())
//			require.NoError(t, err)
//			return storetest.Harness{Store: s}
//		})
//	}
//
// [RunSealer] is the suite of [healthlab.Sealer], which stands between the store and its callers.
package storetest

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// Harness is a fresh, empty store of [Tables].
type Harness struct {
	Store store.Store
	// Second is the same database opened a second time, as by another process; nil if only one process can open it.
	Second store.Store
	// Trips returns the number of round trips to the database since the store was opened, commits included; nil for
	// an engine that makes none.
	Trips func() int
}

// Names of the tables of the suite.
const (
	plainTable   = "plain"
	uniqueTable  = "unique_first"
	perUserTable = "per_user"
)

// Tables declares the tables that a store under test must have.
func Tables() []store.Definition {
	return []store.Definition{
		{Name: store.UserTable, Unique: [2]bool{true}}, {Name: plainTable}, {Name: uniqueTable, Unique: [2]bool{true}},
		{Name: perUserTable, PerUser: true},
	}
}

// Run runs the suite. open returns a fresh, empty store and registers its own cleanup on t.
func Run(t *testing.T, open func(t testing.TB) Harness) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			c.test(suite{t, h.Store, h})
		})
	}
}

var cases = []struct {
	name string
	test func(suite)
}{
	{"Histories", suite.histories},
	{"Rollback", suite.rollback},
	{"Join", suite.join},
	{"Revisions", suite.revisions},
	{"Unique", suite.unique},
	{"Many", suite.many},
	{"Range/Bytes", suite.bytes},
	{"Range/Several", suite.severalRanges},
	{"Range/Pages", suite.pages},
	{"Anomaly/LostUpdate", suite.lostUpdate},
	{"Anomaly/SkewOverRows", suite.skewOverRows},
	{"Anomaly/SkewOverRange", suite.skewOverRange},
	{"Anomaly/Erasure", suite.erasure},
	{"Anomaly/AbsentUser", suite.absentUser},
	{"Anomaly/MadeUser", suite.madeUser},
	{"PerUser", suite.perUser},
	{"Order", suite.order},
	{"Claims", suite.claims},
	{"Rules", suite.rules},
	{"Context", suite.context},
	{"Snapshot", suite.snapshot},
	{"AfterCommit", suite.afterCommit},
	{"Numbers", suite.numbers},
	{"Trips", suite.trips},
}

type suite struct {
	*testing.T
	store.Store
	h Harness
}

func (s suite) storePair() [2]store.Store {
	if s.h.Second != nil {
		return [2]store.Store{s.Store, s.h.Second}
	}
	return [2]store.Store{s.Store, s.Store}
}

func newTeam() healthlab.TeamID { return healthlab.TeamID{UUID: uuid.New()} }

func newUser() healthlab.UserID { return healthlab.UserID{UUID: uuid.New()} }

func (s suite) update(run func(tx store.Tx) error) {
	s.Helper()
	require.NoError(s, s.Update(s.T.Context(), func(_ context.Context, tx store.Tx) error { return run(tx) }))
}

func (s suite) put(rows ...store.Row) {
	s.Helper()
	s.update(func(tx store.Tx) error { tx.Put(rows...); return nil })
}

// read answers one query outside of a transaction.
func (s suite) read(q store.Query) []store.Row {
	s.Helper()
	got, err := s.Read(s.T.Context(), q)
	require.NoError(s, err)
	require.Len(s, got, 1)
	return got[0]
}

// get returns the row that a query finds in a transaction; a row with Revision 0 if there is none.
func get(tx store.Tx, q store.Query) (store.Row, error) {
	got, err := tx.Read(q)
	if err != nil || len(got[0]) == 0 {
		return store.Row{Key: q.Key}, err
	}
	return got[0][0], nil
}

// change replaces the document of a row by edit(document) in one transaction; it inserts a missing row.
func change(ctx context.Context, s store.Store, k store.Key, edit func([]byte) []byte) error {
	return s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		r, err := get(tx, store.Query{Key: k}.Hold())
		if err != nil {
			return err
		}
		r.Doc = edit(r.Doc)
		tx.Put(r)
		return nil
	})
}

func key(table string, team healthlab.TeamID, id string) store.Key {
	return store.Key{Table: table, Team: team, ID: id}
}

func ids(rows []store.Row) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = r.ID
	}
	return out
}
