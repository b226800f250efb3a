package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab/store"
)

// togetherBytes is the total length of documents from which a further row goes into another statement. PostgreSQL
// limits an array to 1 GB.
const togetherBytes = 16 << 20

// statements are the SQL statements that write rows of a table: one row with its columns as arguments, or any number
// with an array for each column. The statement update divides by zero if the stored revision of a row is not the last
// argument; the error stops the batch before its commit. The statement free clears the unique values of rows that
// are updated later, so that other rows of the transaction can take them.
type statements struct{ insert, update, free, delete string }

// queueWrites adds writes to a batch: deletions, changes and then new rows, each in the order of keys, so that a
// unique value can move from one row to another. If a unique value moves between two changed rows, the batch fails
// and is sent once more with free set, which first clears the unique values of all changed rows. host means that the
// transaction belongs to the host, which may have written rows of its own.
func (e *Store) queueWrites(b *pgx.Batch, writes []store.Write, free, host bool) {
	e.nameTeam(b, teamOfWrites(writes))
	var gone, changed, added []*store.Write
	spread, other := host, host
	for i := range writes {
		w := &writes[i]
		switch {
		case w.Gone:
			gone = append(gone, w)
		case w.Was != 0:
			changed = append(changed, w)
		default:
			added = append(added, w)
			if w.Table == store.UserTable {
				b.Queue(lockUser[store.Held], e.userLock(w.Key))
			}
		}
		if e.tables[w.Table].spread {
			spread = true
		} else {
			other = true
		}
	}
	if e.spread && spread && other {
		b.Queue(e.commitBoth)
	}
	e.queueEach(gone, func(t *table, s *statements, args []any) {
		if t.def.PerUser {
			b.Queue(s.delete, args[:3]...)
		} else {
			b.Queue(s.delete, args[:2]...)
		}
	})
	if free {
		e.queueEach(changed, func(t *table, s *statements, args []any) {
			if t.def.Unique != [2]bool{} {
				b.Queue(s.free, args[:2]...)
			}
		})
	}
	e.queueEach(changed, func(t *table, s *statements, args []any) {
		put := b.Queue(s.update, args...)
		if t.spread {
			put.Exec(wasChanged)
		}
	})
	e.queueEach(added, func(t *table, s *statements, args []any) {
		put := b.Queue(s.insert, args[:8]...)
		if t.spread {
			put.Fn = t.checkInserted
		}
	})
}

// queueEach calls queue for each statement that writes rows. Consecutive rows of one table share a statement, unless
// Citus distributes the table.
func (e *Store) queueEach(rows []*store.Write, queue func(t *table, s *statements, args []any)) {
	for len(rows) > 0 {
		t, n, size := e.tables[rows[0].Table], 1, len(rows[0].Doc)
		for n < len(rows) && !t.spread && rows[n].Table == rows[0].Table && size < togetherBytes {
			size += len(rows[n].Doc)
			n++
		}
		if n == 1 {
			queue(t, &t.one, columns(rows[0]))
		} else {
			queue(t, &t.many, columnsOfMany(rows[:n]))
		}
		rows = rows[n:]
	}
}

func wasChanged(tag pgconn.CommandTag) error {
	if tag.RowsAffected() != 1 { // another transaction changed the revision
		return store.ErrStale
	}
	return nil
}

// checkInserted reads the result of an insert into a table that Citus distributes. If the key exists, it returns a
// store.TakenError with the table's name, which the error of a worker lacks.
func (t *table) checkInserted(rows pgx.BatchResults) error {
	_, err := rows.Exec()
	if isUniqueViolation(err) {
		return &store.TakenError{Table: t.def.Name, Index: -1}
	}
	return err
}

func columns(w *store.Write) []any {
	return []any{
		[16]byte(w.Team.UUID), []byte(w.ID), userColumn(w), dueColumn(w), indexColumnOf(w.Index[0]), indexColumnOf(w.Index[1]), w.Revision, w.Doc, w.Was,
	}
}

// columnsOfMany returns the arguments of a statement that writes many rows: one array for each column, and at the end
// one of the revisions that the rows had when they were read.
func columnsOfMany(rows []*store.Write) []any {
	n := len(rows)
	teams, ids, users, due := make([][16]byte, n), make([][]byte, n), make([]*[16]byte, n), make([]*time.Time, n)
	first, second, docs := make([][]byte, n), make([][]byte, n), make([][]byte, n)
	revisions, was := make([]int64, n), make([]int64, n)
	for i, w := range rows {
		teams[i], ids[i], users[i], due[i] = w.Team.UUID, []byte(w.ID), userColumn(w), dueColumn(w)
		first[i], second[i], docs[i] = indexColumnOf(w.Index[0]), indexColumnOf(w.Index[1]), w.Doc
		revisions[i], was[i] = w.Revision, w.Was
	}
	return []any{teams, ids, users, due, first, second, revisions, docs, was}
}

func userColumn(w *store.Write) *[16]byte {
	if w.User.IsZero() {
		return nil
	}
	return (*[16]byte)(&w.User.UUID)
}

func dueColumn(w *store.Write) *time.Time {
	if w.Due.IsZero() {
		return nil
	}
	return &w.Due
}

func indexColumnOf(v string) []byte {
	if v == "" {
		return nil
	}
	return []byte(v)
}
