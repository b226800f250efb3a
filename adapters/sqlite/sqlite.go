// Package sqlite keeps rows in one SQLite file. It needs no server and no cgo.
//
//	s, err := sqlite.Open(ctx, "healthlab.db", tables, nil)
//	defer s.Close()
//
// One process uses a file at a time. A commit is on the disk when Update returns (write-ahead log,
// synchronous FULL); updates that wait for each other share one commit. Reads run beside updates.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// version is the version of the schema, as PRAGMA user_version. An older program refuses a file
// with a higher one.
const version = 1

// schema creates the tables of a new file. One table holds all rows, so that one index finds the rows of a person.
const schema = `
create table row (
	tbl text not null, team blob not null, id blob not null,
	usr blob, due integer, idx0 blob, idx1 blob,
	rev integer not null, doc blob,
	primary key (tbl, team, id)
);
create index row_due on row (tbl, due, team, id) where due is not null;
create index row_usr on row (usr, tbl, team, id) where usr is not null;
create index row_idx0 on row (tbl, team, idx0, id) where idx0 is not null;
create index row_idx1 on row (tbl, team, idx1, id) where idx1 is not null;`

// Options adjusts a Store. The zero value, and nil, mean the defaults.
type Options struct {
	// Now is the store's clock. Default time.Now.
	Now func() time.Time
	// Readers is the number of connections for reads. Default 4.
	Readers int
	// Wait is how long an update or statement waits for a file that another program has locked. For an update it
	// includes the wait for other updates of this Store. Default 5 s.
	Wait time.Duration
}

// Store is a [store.Store] in an SQLite file. Safe for concurrent use.
type Store struct {
	defs    map[string]store.Definition
	now     func() time.Time
	wait    time.Duration // longest wait for a file that another program has locked
	guard   *sqlite3.Conn // connection whose lock keeps other processes from opening the file
	readers chan *conn

	turn    chan struct{} // holds one token while an update uses the fields that follow
	writer  *conn
	open    bool         // a transaction is open
	group   []chan error // a channel for each update of the open transaction; it receives the result of the commit
	waiting atomic.Int32 // number of updates that wait for turn
}

// mostInGroup is the largest number of updates that share a commit.
const mostInGroup = 128

// Open opens or creates a database file. It returns healthlab.Unavailable if the folder cannot be written or another
// process has the file open, and healthlab.Precondition if a newer program made the file.
func Open(ctx context.Context, path string, tables []store.Definition, opts *Options) (*Store, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Readers <= 0 {
		o.Readers = 4
	}
	if o.Wait <= 0 {
		o.Wait = 5 * time.Second
	}
	defs, err := store.Definitions(tables)
	if err != nil {
		return nil, err
	}
	s := &Store{defs: defs, now: o.Now, wait: o.Wait, readers: make(chan *conn, o.Readers), turn: make(chan struct{}, 1)}
	if err := s.start(ctx, path, o); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", filepath.Base(path), err), s.Close())
	}
	return s, nil
}

func (s *Store) start(ctx context.Context, path string, o Options) error {
	var err error
	for _, file := range []string{path, path + ".lock"} {
		if err := createPrivate(file); err != nil {
			return fmt.Errorf("%w: the folder cannot be written: %w", healthlab.Unavailable, err)
		}
	}
	if s.guard, err = lockFile(path + ".lock"); err != nil {
		return err
	}
	if s.writer, err = dial(ctx, path, o.Wait); err != nil {
		return err
	}
	if err := s.writer.migrate(); err != nil {
		return err
	}
	for range o.Readers {
		r, err := dial(ctx, path, o.Wait)
		if err != nil {
			return err
		}
		s.readers <- r
	}
	return nil
}

// createPrivate creates a file that only its owner can read, unless it exists. SQLite uses the same permissions for its
// other files.
func createPrivate(file string) error {
	f, err := os.OpenFile(filepath.Clean(file), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// lockFile locks the file at path, so that no other process can open the store. The lock ends with the process, even if
// it crashes.
func lockFile(path string) (*sqlite3.Conn, error) {
	c, err := sqlite3.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: the folder cannot be written: %w", healthlab.Unavailable, err)
	}
	err = c.Exec("pragma locking_mode=exclusive; begin exclusive")
	if errors.Is(err, sqlite3.BUSY) {
		return nil, errors.Join(fmt.Errorf("%w: another process has the file open", healthlab.Unavailable), c.Close())
	}
	if err != nil {
		return nil, errors.Join(kindOf(err), c.Close())
	}
	return c, nil
}

// migrate creates the schema of a new file, and refuses the schema of a newer program.
func (c *conn) migrate() error {
	found := 0
	if err := c.query("pragma user_version", nil, func(s *sqlite3.Stmt) { found = s.ColumnInt(0) }); err != nil {
		return err
	}
	switch {
	case found > version:
		return fmt.Errorf("%w: the file has schema version %d, and this program knows versions up to %d; use a newer program",
			healthlab.Precondition, found, version)
	case found == version:
		return nil
	}
	return kindOf(c.Exec(fmt.Sprintf("begin immediate; %s; pragma user_version=%d; commit", schema, version)))
}

// Close closes the file. No method may be called afterwards.
func (s *Store) Close() error {
	var errs []error
	for range len(s.readers) {
		errs = append(errs, (<-s.readers).Close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.Close())
	}
	if s.guard != nil {
		errs = append(errs, s.guard.Close())
	}
	return errors.Join(errs...)
}

// Ping returns nil if the database can be read.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.Read(ctx)
	return err
}

// Backup copies all committed data to a new file, concurrently with updates. It returns healthlab.Conflict if the file
// exists.
func (s *Store) Backup(ctx context.Context, path string) error {
	return s.withReader(ctx, func(c *conn) error { return c.backup(path) })
}

// Backup writes a copy of all committed data in the file from to a new file, also while a process uses from. It
// returns healthlab.NotFound if from does not exist, and healthlab.Conflict if to exists.
func Backup(ctx context.Context, from, to string) error {
	if _, err := os.Stat(from); err != nil {
		return fmt.Errorf("back up %s: %w: the file does not exist, or its folder cannot be read", filepath.Base(from), healthlab.NotFound)
	}
	c, err := dial(ctx, from, 5*time.Second)
	if err != nil {
		return err
	}
	return errors.Join(c.backup(to), c.Close())
}

func (c *conn) backup(path string) error {
	if _, err := os.Stat(path); err == nil {
		return fmt.Errorf("back up: %w: the file %s exists; the copy must be a new file", healthlab.Conflict, filepath.Base(path))
	}
	if err := c.exec("vacuum into ?", path); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	return os.Chmod(path, 0o600)
}

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, q ...store.Query) (rows [][]store.Row, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if rows, joined, err := store.JoinRead(ctx, s, q); joined {
		return rows, err
	}
	err = s.withReader(ctx, func(c *conn) error {
		if err := c.exec("begin"); err != nil {
			return err
		}
		rows, err = c.fetch(q)
		return errors.Join(err, c.exec("rollback"))
	})
	return rows, err
}

// withReader calls do with one of the connections for reads. If ctx ends, the read is interrupted.
func (s *Store) withReader(ctx context.Context, do func(*conn) error) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case c := <-s.readers:
		defer func() { s.readers <- c }()
		c.SetInterrupt(ctx)
		err := do(c)
		c.SetInterrupt(context.Background())
		if ctx.Err() != nil && err != nil {
			if !c.GetAutocommit() {
				err = errors.Join(err, c.exec("rollback"))
			}
			return errors.Join(ctx.Err(), err)
		}
		return err
	}
}

// Update implements [store.Store]. It calls run once.
func (s *Store) Update(ctx context.Context, run func(context.Context, store.Tx) error) error {
	if joined, err := store.Join(ctx, s, run); joined {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// An update counted in waiting must take its turn even after ctx has ended: earlier updates may have left the
	// commit to it.
	began := time.Now() //nolint:forbidigo // used only to measure the time that passes
	s.waiting.Add(1)
	s.turn <- struct{}{}
	s.waiting.Add(-1)
	b, committed, err := s.runGrouped(ctx, began, run)
	if lost := <-committed; lost != nil {
		return lost
	}
	if err == nil {
		b.Committed()
	}
	return err
}

// runGrouped runs an update in the open transaction. It commits unless another update waits that can join the
// transaction; committed receives the result of the commit. It releases turn, also if run panics. The wait for a locked
// file is measured from began, so that updates that follow each other do not each wait for its full length.
func (s *Store) runGrouped(ctx context.Context, began time.Time, run func(context.Context, store.Tx) error) (b *store.Buffer, committed chan error, err error) {
	committed = make(chan error, 1)
	defer func() {
		if s.waiting.Load() == 0 || len(s.group) >= mostInGroup {
			s.commit()
		}
		<-s.turn
	}()
	if !s.open {
		err := s.writer.BusyTimeout(max(0, s.wait-time.Since(began))) //nolint:forbidigo // measures time since began
		if err == nil {
			err = s.writer.exec("begin immediate")
		}
		if err != nil {
			committed <- err
			return nil, committed, err
		}
		s.open = true
	}
	if err = ctx.Err(); err == nil {
		b = store.NewBuffer(s.now(), s.writer.fetch)
		err = b.Run(ctx, s, run)
	}
	if err == nil && ctx.Err() == nil {
		err = s.write(b.Writes())
	} else if err == nil {
		err = ctx.Err()
	}
	if s.writer.GetAutocommit() { // SQLite rolled back the transaction with all its updates
		s.end(fmt.Errorf("%w: the transaction was rolled back: %w", healthlab.Unavailable, err))
		committed <- nil
		return b, committed, err
	}
	s.group = append(s.group, committed)
	return b, committed, err
}

// write stores the writes of one update, all or none.
func (s *Store) write(writes []store.Write) error {
	if len(writes) == 0 {
		return nil
	}
	if err := s.writer.exec("savepoint one"); err != nil {
		return err
	}
	if err := s.writer.write(s.defs, writes); err != nil {
		if s.writer.GetAutocommit() {
			return err
		}
		return errors.Join(err, s.writer.exec("rollback to one"), s.writer.exec("release one"))
	}
	return s.writer.exec("release one")
}

// commit commits the open transaction and sends the result to its updates. The caller holds turn.
func (s *Store) commit() {
	if !s.open {
		return
	}
	err := s.writer.exec("commit")
	if err != nil && !s.writer.GetAutocommit() {
		err = errors.Join(err, s.writer.exec("rollback"))
	}
	s.end(err)
}

func (s *Store) end(err error) {
	for _, committed := range s.group {
		committed <- err
	}
	s.group, s.open = nil, false
}
