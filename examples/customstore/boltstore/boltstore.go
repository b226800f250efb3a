// Package boltstore stores rows in a bbolt file. It is a complete [store.Store] that a host has written: it can store
// all data of healthlab.
//
//	s, err := boltstore.Open("rows.db", tables, nil)
//	defer s.Close()
//
// bbolt is an ordered map in a file with one writer at a time, so package store does most of the work:
// [store.Buffer] is the transaction, [store.ReadKV] and [store.WriteKV] are queries and writes. This
// package adds the order of updates (boltstore.go), and the encoding of rows (kv.go).
package boltstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// Store is a [store.Store] in a bbolt file. The writes of an Update are on the disk when Update returns. Updates run
// one after another. A Read sees the latest commit and does not wait for updates. Safe for concurrent use.
type Store struct {
	db   *bbolt.DB
	defs map[string]store.Definition
	now  func() time.Time
	turn chan struct{} // holds one token while an update runs
}

var _ store.Store = (*Store)(nil)

// Options adjusts a Store. The zero value, and nil, mean the defaults.
type Options struct {
	// Now is the store's clock. Default time.Now.
	Now func() time.Time
	// Wait is how long Open waits for a file that another process has open. Default 1 s.
	Wait time.Duration
}

// The bbolt buckets of a file. rows and marks have the rows and the marks of [store.KV], meta has the format.
var rowBucket, markBucket, metaBucket = []byte("rows"), []byte("marks"), []byte("meta")

// format is the version of the row encoding, which each file contains. Open refuses a file with another version.
const format = "1"

var formatKey = []byte("format")

// Open opens the file at path for the tables, and creates it if it is missing. It returns healthlab.Unavailable if the
// file cannot be opened, or if another process has it open for longer than Options.Wait, and healthlab.Precondition if
// the file has another format version.
func Open(path string, tables []store.Definition, opts *Options) (*Store, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait <= 0 {
		o.Wait = time.Second
	}
	defs, err := store.Definitions(tables)
	if err != nil {
		return nil, err
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: o.Wait})
	if errors.Is(err, bolterrors.ErrTimeout) {
		err = fmt.Errorf("another process has the file open (waited %s): %w", o.Wait, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", filepath.Base(path), unavailable(err))
	}
	if err := db.Update(prepare); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", filepath.Base(path), err), db.Close())
	}
	return &Store{db, defs, o.Now, make(chan struct{}, 1)}, nil
}

// prepare creates the buckets of a new file, and checks the format version of an existing one.
func prepare(tx *bbolt.Tx) error {
	for _, name := range [][]byte{rowBucket, markBucket, metaBucket} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	meta := tx.Bucket(metaBucket)
	switch found := meta.Get(formatKey); {
	case found == nil:
		return meta.Put(formatKey, []byte(format))
	case string(found) != format:
		return fmt.Errorf("%w: the file has format %q, and this program knows %q", healthlab.Precondition, found, format)
	}
	return nil
}

// Close waits for running updates and reads, and closes the file.
func (s *Store) Close() error { return s.db.Close() }

// Update implements [store.Store]. It calls run once, without retries.
func (s *Store) Update(ctx context.Context, run func(context.Context, store.Tx) error) error {
	if joined, err := store.Join(ctx, s, run); joined {
		return err
	}
	if err := ctx.Err(); err != nil { // select picks any case that is ready
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case s.turn <- struct{}{}:
	}
	b, err := s.commit(ctx, run)
	if err != nil {
		return err
	}
	b.Committed()
	return nil
}

// commit calls run, commits the writes and returns them, and releases s.turn, also if run panics.
func (s *Store) commit(ctx context.Context, run func(context.Context, store.Tx) error) (*store.Buffer, error) {
	defer func() { <-s.turn }()
	tx, err := s.db.Begin(true)
	if err != nil {
		return nil, unavailable(err)
	}
	defer func() { _ = tx.Rollback() }() // without effect after Commit
	kv := mapsOf(tx)
	b := store.NewBuffer(s.now(), func(q []store.Query) ([][]store.Row, error) { return store.ReadKV(kv, q) })
	if err := b.Run(ctx, s, run); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	writes := b.Writes()
	if len(writes) == 0 {
		return b, nil
	}
	if err := store.WriteKV(kv, s.defs, writes); err != nil {
		return nil, err
	}
	return b, unavailable(tx.Commit())
}

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, q ...store.Query) ([][]store.Row, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if rows, joined, err := store.JoinRead(ctx, s, q); joined {
		return rows, err
	}
	tx, err := s.db.Begin(false) // a snapshot of the last commit
	if err != nil {
		return nil, unavailable(err)
	}
	defer func() { _ = tx.Rollback() }() // a transaction for reading has nothing to lose
	return store.ReadKV(mapsOf(tx), q)
}

func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", healthlab.Unavailable, err)
}
