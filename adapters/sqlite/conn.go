package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// conn is a connection with its prepared statements. Only one goroutine may use it at a time.
type conn struct {
	*sqlite3.Conn
	prepared map[string]*sqlite3.Stmt
}

func dial(_ context.Context, path string, wait time.Duration) (*conn, error) {
	c, err := sqlite3.Open(path)
	if err != nil {
		return nil, kindOf(err)
	}
	err = c.Exec(fmt.Sprintf("pragma busy_timeout=%d; pragma journal_mode=wal; pragma synchronous=full; pragma cache_size=-32000",
		wait.Milliseconds()))
	if err != nil {
		return nil, errors.Join(kindOf(err), c.Close())
	}
	return &conn{c, map[string]*sqlite3.Stmt{}}, nil
}

// Close closes the connection and its statements.
func (c *conn) Close() error {
	for _, s := range c.prepared {
		_ = s.Close() // an error of the last step was returned by that step
	}
	return c.Conn.Close()
}

// kindOf wraps an error of SQLite with its error kind. Errors of the disk and of locks are temporary, so their kind is
// healthlab.Unavailable.
func kindOf(err error) error {
	var code sqlite3.ErrorCode
	if !errors.As(err, &code) {
		return err
	}
	switch code {
	case sqlite3.BUSY, sqlite3.LOCKED, sqlite3.FULL, sqlite3.IOERR, sqlite3.CANTOPEN, sqlite3.READONLY, sqlite3.NOMEM, sqlite3.INTERRUPT:
		return fmt.Errorf("%w: %w", healthlab.Unavailable, err)
	default:
		return err
	}
}

// query runs a statement and calls each with every row. Arguments are []byte, string (text), int64
// and nil.
func (c *conn) query(sql string, args []any, each func(*sqlite3.Stmt)) error {
	s := c.prepared[sql]
	if s == nil {
		var err error
		if s, _, err = c.Prepare(sql); err != nil {
			return kindOf(err)
		}
		c.prepared[sql] = s
	}
	for i, a := range args {
		var err error
		switch a := a.(type) {
		case nil:
			err = s.BindNull(i + 1)
		case []byte:
			err = s.BindBlob(i+1, a)
		case string:
			err = s.BindText(i+1, a)
		case int64:
			err = s.BindInt64(i+1, a)
		default:
			err = fmt.Errorf("sqlite: argument %d must be []byte, string, int64 or nil, not %T", i+1, a)
		}
		if err != nil {
			return kindOf(err)
		}
	}
	for s.Step() {
		each(s)
	}
	return kindOf(errors.Join(s.Err(), s.Reset()))
}

func (c *conn) exec(sql string, args ...any) error {
	return c.query(sql, args, func(*sqlite3.Stmt) {})
}

// fetch runs the queries in the open transaction of the connection.
func (c *conn) fetch(qs []store.Query) ([][]store.Row, error) {
	out := make([][]store.Row, len(qs))
	for i := range qs {
		sql, args := statement(&qs[i])
		err := c.query(sql, args, func(s *sqlite3.Stmt) { out[i] = append(out[i], rowOf(s)) })
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// statement returns the SQL and the arguments of a query.
func statement(q *store.Query) (sql string, args []any) {
	var b strings.Builder
	b.WriteString("select tbl, team, id, usr, due, idx0, idx1, rev, ")
	if q.Bare {
		b.WriteString("null")
	} else {
		b.WriteString("doc")
	}
	b.WriteString(" from row where ")
	where := func(cond string, arg any) {
		if len(args) > 0 {
			b.WriteString(" and ")
		}
		b.WriteString(cond)
		args = append(args, arg)
	}
	within := func(column string) {
		where(column+">=?", []byte(q.From))
		if q.To != "" {
			where(column+"<?", []byte(q.To))
		}
	}
	if q.By == store.ByUser {
		where("usr=?", q.User.UUID[:])
	}
	if q.Table != "" {
		where("tbl=?", q.Table)
	}
	if q.By != store.ByUser && q.By != store.ByDue {
		where("team=?", q.Team.UUID[:])
	}
	order := "id"
	switch q.By {
	case store.ByKey:
		where("id=?", []byte(q.ID))
		return b.String(), args
	case store.ByID:
		within("id")
	case store.ByFirst:
		within("idx0")
		order = "idx0, id"
	case store.BySecond:
		within("idx1")
		order = "idx1, id"
	case store.ByUser:
		within("id")
		order = "tbl, team, id"
	case store.ByDue:
		where("due<=?", q.Until.UnixMicro())
		order = "due, team, id"
	}
	if q.Desc {
		order = strings.ReplaceAll(order, ",", " desc,") + " desc"
	}
	b.WriteString(" order by " + order)
	if q.Limit > 0 {
		b.WriteString(" limit ?")
		args = append(args, int64(q.Limit))
	}
	return b.String(), args
}

func rowOf(s *sqlite3.Stmt) store.Row {
	r := store.Row{Index: [2]string{string(s.ColumnRawBlob(5)), string(s.ColumnRawBlob(6))}, Revision: s.ColumnInt64(7)}
	r.Table = s.ColumnText(0)
	copy(r.Team.UUID[:], s.ColumnRawBlob(1))
	r.ID = string(s.ColumnRawBlob(2))
	copy(r.User.UUID[:], s.ColumnRawBlob(3))
	if s.ColumnType(4) != sqlite3.NULL {
		r.Due = time.UnixMicro(s.ColumnInt64(4)).UTC()
	}
	r.Doc = bytes.Clone(s.ColumnRawBlob(8))
	return r
}

// write stores the writes of an update. After an error the caller must roll back, because some rows may be written.
func (c *conn) write(defs map[string]store.Definition, writes []store.Write) error {
	for i := range writes {
		w := &writes[i]
		if _, ok := defs[w.Table]; !ok {
			return fmt.Errorf("sqlite: table %s is not declared", w.Table)
		}
		if err := c.writeRow(w); err != nil {
			return err
		}
	}
	for i := range writes { // checked after all writes, so that a unique value can move from one row to another
		if err := c.checkUnique(defs[writes[i].Table], &writes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) writeRow(w *store.Write) error {
	team, id := w.Team.UUID[:], []byte(w.ID)
	if w.Gone {
		return c.exec("delete from row where tbl=? and team=? and id=?", w.Table, team, id)
	}
	var usr, due any
	if !w.User.IsZero() {
		usr = w.User.UUID[:]
	}
	if !w.Due.IsZero() {
		due = w.Due.UnixMicro()
	}
	values := []any{usr, due, blob(w.Index[0]), blob(w.Index[1]), w.Revision, w.Doc, w.Table, team, id}
	if w.Was == 0 {
		if err := c.exec(`insert into row (usr, due, idx0, idx1, rev, doc, tbl, team, id) values (?,?,?,?,?,?,?,?,?)
			on conflict do nothing`, values...); err != nil {
			return err
		}
		if c.Changes() == 0 {
			return &store.TakenError{Table: w.Table, Index: -1}
		}
		return nil
	}
	if err := c.exec("update row set usr=?, due=?, idx0=?, idx1=?, rev=?, doc=? where tbl=? and team=? and id=? and rev=?",
		append(values, w.Was)...); err != nil {
		return err
	}
	if c.Changes() == 0 {
		return store.ErrStale
	}
	return nil
}

// checkUnique returns a TakenError if another row of the table has one of the unique values of a written row.
func (c *conn) checkUnique(def store.Definition, w *store.Write) error {
	for i, unique := range def.Unique {
		if !unique || w.Gone || w.Index[i] == "" {
			continue
		}
		found := int64(0)
		err := c.query(fmt.Sprintf("select count(*) from row where tbl=? and team=? and idx%d=?", i),
			[]any{w.Table, w.Team.UUID[:], []byte(w.Index[i])}, func(s *sqlite3.Stmt) { found = s.ColumnInt64(0) })
		if err != nil {
			return err
		}
		if found > 1 {
			return &store.TakenError{Table: w.Table, Index: i}
		}
	}
	return nil
}

func blob(v string) any {
	if v == "" {
		return nil
	}
	return []byte(v)
}
