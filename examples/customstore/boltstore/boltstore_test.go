package boltstore_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/examples/customstore/boltstore"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/store/storetest"
)

func TestStore_passesTheSuite(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Harness {
		s, err := boltstore.Open(filepath.Join(t.TempDir(), "rows.db"), storetest.Tables(), nil)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return storetest.Harness{Store: s}
	})
}

func put(s store.Store, rows ...store.Row) error {
	return s.Update(context.Background(), func(_ context.Context, tx store.Tx) error { tx.Put(rows...); return nil })
}

// What was committed is there when the file is opened again, and what was not is not.
func TestOpen_afterReopeningFindsOnlyCommittedRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.db")
	row := store.Row{
		Key: store.Key{Table: "unique_first", ID: "\x00a\xff"}, Due: time.UnixMicro(-5).UTC(), Index: [2]string{"b\x00", "c"}, Doc: []byte("doc"),
	}
	open := func() *boltstore.Store {
		s, err := boltstore.Open(path, storetest.Tables(), nil)
		require.NoError(t, err)
		return s
	}
	s := open()
	require.NoError(t, put(s, row))
	require.ErrorIs(t, put(s, row, store.Row{Key: store.Key{Table: "plain", ID: "undone"}}), healthlab.Conflict)
	require.NoError(t, s.Close())

	s = open()
	row.Revision = 1
	for _, q := range []store.Query{
		{Key: row.Key}, {Key: row.Key, By: store.ByID}, {Key: row.Key, By: store.ByFirst, From: "b"}, {Key: row.Key, By: store.BySecond, Desc: true},
		{Key: row.Key, By: store.ByDue, Until: time.UnixMicro(0)},
	} {
		got, err := s.Read(t.Context(), q)
		require.NoError(t, err)
		require.Equal(t, []store.Row{row}, got[0])
	}
	got, err := s.Read(t.Context(), store.Query{Key: store.Key{Table: "plain"}, By: store.ByID})
	require.NoError(t, err)
	require.Empty(t, got[0])
	require.NoError(t, s.Close())
	_, err = s.Read(t.Context())
	require.ErrorIs(t, err, healthlab.Unavailable)
	require.ErrorIs(t, put(s), healthlab.Unavailable)
}

// Open refuses files that are open elsewhere, that another version of the program made, and that are
// not there to be made.
func TestOpen_refusesLockedForeignAndMissingFiles(t *testing.T) {
	refuse := func(path string, kind error, text string) {
		t.Helper()
		_, err := boltstore.Open(path, storetest.Tables(), &boltstore.Options{Wait: time.Millisecond})
		require.ErrorIs(t, err, kind)
		require.ErrorContains(t, err, text)
	}
	path := filepath.Join(t.TempDir(), "rows.db")
	s, err := boltstore.Open(path, storetest.Tables(), nil)
	require.NoError(t, err)
	refuse(path, healthlab.Unavailable, "another process has the file open (waited 1ms)")
	require.NoError(t, s.Close())

	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte("9")) }))
	require.NoError(t, db.Close())
	refuse(path, healthlab.Precondition, `the file has format "9", and this program knows "1"`)
	refuse(filepath.Join(t.TempDir(), "missing", "rows.db"), healthlab.Unavailable, "open rows.db")

	_, err = boltstore.Open(path, append(storetest.Tables(), storetest.Tables()...), nil)
	require.ErrorContains(t, err, "declared once")
}

// An update that waits for another one ends with its context, and a run that panics ends its transaction.
func TestUpdate_stopsWaitingWhenItsContextEnds(t *testing.T) {
	s, err := boltstore.Open(filepath.Join(t.TempDir(), "rows.db"), storetest.Tables(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	k := store.Key{Table: "plain", ID: "a"}
	require.Panics(t, func() {
		_ = s.Update(t.Context(), func(_ context.Context, tx store.Tx) error {
			tx.Put(store.Row{Key: k})
			panic("planted")
		})
	})
	require.NoError(t, s.Update(t.Context(), func(_ context.Context, tx store.Tx) error {
		ctx, end := context.WithTimeout(context.Background(), time.Millisecond)
		defer end()
		require.ErrorIs(t, s.Update(ctx, func(context.Context, store.Tx) error { return nil }), context.DeadlineExceeded)
		rows, err := s.Read(context.Background(), store.Query{Key: k})
		require.Empty(t, rows[0])
		return err
	}))
	require.NoError(t, put(s, store.Row{Key: k}))
}
