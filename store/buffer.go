package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Write is a row to put, or with Gone a row to delete.
type Write struct {
	Row
	Gone bool
	// Was is the revision that the stored row must have at the commit; 0 for a row that must be new. It is ignored
	// if Gone is set.
	Was int64
}

// Buffer is a [Tx] in memory, which an engine can use as its Tx. It remembers the rows that were read, collects the
// writes for the commit, and checks the rules of locks. An engine makes one for each run of an Update, passes it to
// [Buffer.Run], and commits [Buffer.Writes].
type Buffer struct {
	fetch func([]Query) ([][]Row, error)
	now   time.Time

	seen   map[ident]seenRow
	ranges map[Query][]Row  // the engine's answers of range queries, without the writes of this transaction
	writes map[ident]*Write // writes for the commit; an entry is replaced, never edited
	broken error            // the first violation of a rule of [Tx] by the caller
	after  []func()
}

// ident identifies a row. The User of a key is no part of it.
type ident struct {
	table, id string
	team      uuid.UUID
}

// seenRow is what the transaction has learned about a row by reading. It is small, because a transaction may read
// many missing rows.
type seenRow struct {
	row   *Row // the row, if known == present
	known known
	lock  Lock
}

type known uint8

const (
	nothing known = iota // only the lock is known: the row was read without its document
	absent
	present
)

// NewBuffer returns the Buffer for one run of a transaction. now is the store's clock. fetch sends the queries that
// the Buffer cannot answer to the engine, and returns the answers in the order of the queries.
func NewBuffer(now time.Time, fetch func([]Query) ([][]Row, error)) *Buffer {
	return &Buffer{
		fetch: fetch, now: now.UTC().Truncate(time.Microsecond),
		seen: map[ident]seenRow{}, ranges: map[Query][]Row{}, writes: map[ident]*Write{},
	}
}

// Run calls run with a context in which [Join] finds the transaction. It returns the error of run, or else the
// first violation of a rule of [Tx].
func (b *Buffer) Run(ctx context.Context, engine Store, run func(context.Context, Tx) error) error {
	if err := run(context.WithValue(ctx, running{engine}, b), b); err != nil {
		return err
	}
	return b.broken
}

// running is the context key under which the transaction of an engine is found.
type running struct{ engine Store }

// Join runs run in the transaction of ctx, if ctx has one of this engine; joined reports whether it has. An engine
// calls Join first in Update. If run fails, Join undoes its writes.
func Join(ctx context.Context, engine Store, run func(context.Context, Tx) error) (joined bool, err error) {
	b, ok := ctx.Value(running{engine}).(*Buffer)
	if !ok {
		return false, nil
	}
	if err := ctx.Err(); err != nil {
		return true, err
	}
	writes, after := maps.Clone(b.writes), len(b.after)
	if err := run(ctx, b); err != nil {
		b.writes, b.after = writes, b.after[:after]
		return true, err
	}
	return true, b.broken
}

// JoinRead answers queries in the transaction of ctx, if ctx has one of this engine; joined reports whether it has.
// An engine calls JoinRead first in Read.
func JoinRead(ctx context.Context, engine Store, q []Query) (rows [][]Row, joined bool, err error) {
	b, ok := ctx.Value(running{engine}).(*Buffer)
	if !ok {
		return nil, false, nil
	}
	plain := slices.Clone(q)
	for i := range plain {
		plain[i].Lock = Plain
	}
	rows, err = b.Read(plain...)
	return rows, true, err
}

// Now returns the store's clock at the start of the transaction.
func (b *Buffer) Now() time.Time { return b.now }

// AfterCommit keeps f until the engine calls [Buffer.Committed], after the commit.
func (b *Buffer) AfterCommit(f func()) { b.after = append(b.after, f) }

// Committed calls the functions that were passed to AfterCommit. An engine calls it after the commit.
func (b *Buffer) Committed() {
	for _, f := range b.after {
		f()
	}
}

// Writes returns the rows to commit, in the order of table, team and ID.
func (b *Buffer) Writes() []Write {
	out := make([]Write, 0, len(b.writes))
	for _, w := range b.writes {
		out = append(out, *w)
	}
	slices.SortFunc(out, func(x, y Write) int { return CompareKeys(x.Key, y.Key) })
	return out
}

// CompareKeys orders keys by table, team and ID. Engines lock and write in this order.
func CompareKeys(a, b Key) int {
	return cmp.Or(strings.Compare(a.Table, b.Table), bytes.Compare(a.Team.UUID[:], b.Team.UUID[:]), strings.Compare(a.ID, b.ID))
}

// Read answers queries: from memory if possible, the others by one call of fetch.
func (b *Buffer) Read(qs ...Query) ([][]Row, error) {
	var ask []Query
	asked := map[Query]bool{}
	for _, q := range qs {
		if b.canAnswer(q) {
			continue
		}
		if q = b.widened(q); !asked[q] {
			asked[q], ask = true, append(ask, q)
		}
	}
	if len(ask) > 0 {
		got, err := b.fetch(ask)
		if err != nil {
			return nil, err
		}
		for i := range ask {
			b.learn(ask[i], got[i])
		}
	}
	out := make([][]Row, len(qs))
	for i, q := range qs {
		out[i], _ = b.answer(q)
	}
	return out, nil
}

// widened returns the query to send to the engine. The limit of a range grows by the number of rows that the
// transaction wrote in the table, because each of them may take the place of a row in the engine's answer.
func (b *Buffer) widened(q Query) Query {
	q.Until = q.Until.UTC().Truncate(time.Microsecond)
	if q.By == ByKey {
		q.Bare = false // with its document, the row also answers later queries
		return q
	}
	if q.Limit == 0 {
		return q
	}
	for _, w := range b.writes {
		if q.Table == "" || w.Table == q.Table {
			q.Limit++
		}
	}
	return q
}

// learn remembers the engine's answer of a query for later reads of the transaction.
func (b *Buffer) learn(q Query, rows []Row) {
	if q.By != ByKey {
		b.ranges[q] = rows
	} else if len(rows) == 0 && q.Lock != Skip { // with Skip, an empty answer may be a row that is locked
		b.recordRead(q.Key, seenRow{known: absent, lock: q.Lock})
	}
	for i := range rows {
		if q.Bare {
			b.recordRead(rows[i].Key, seenRow{lock: q.Lock})
		} else {
			b.recordRead(rows[i].Key, seenRow{known: present, row: &rows[i], lock: q.Lock})
		}
	}
}

// recordRead remembers what was read of a row. Of several locks the strongest counts.
func (b *Buffer) recordRead(k Key, s seenRow) {
	was, ok := b.seen[identOf(k)]
	if ok && strength(was.lock) > strength(s.lock) {
		s.lock = was.lock
	}
	if ok && s.known == nothing {
		s.known, s.row = was.known, was.row
	}
	b.seen[identOf(k)] = s
}

func identOf(k Key) ident { return ident{k.Table, k.ID, k.Team.UUID} }

// strength returns the rank of a lock. Skip is as strong as Held.
func strength(l Lock) int {
	switch l {
	case Plain:
		return 0
	case Shared:
		return 1
	default:
		return 2
	}
}

// canAnswer reports whether a query can be answered from memory, without the engine.
func (b *Buffer) canAnswer(q Query) bool {
	if q.By != ByKey {
		_, ok := b.ranges[b.widened(q)]
		return ok
	}
	k := identOf(q.Key)
	s := b.seen[k]
	return b.writes[k] != nil || s.known != nothing && strength(s.lock) >= strength(q.Lock)
}

// answer answers a query from memory. False if the engine must be asked.
func (b *Buffer) answer(q Query) ([]Row, bool) {
	if q.By == ByKey {
		return b.answerKey(q)
	}
	found, ok := b.ranges[b.widened(q)]
	if !ok {
		return nil, false
	}
	rows := make([]Row, 0, len(found))
	for _, r := range found {
		if _, changed := b.writes[identOf(r.Key)]; !changed {
			rows = append(rows, r)
		}
	}
	for _, w := range b.writes {
		if !w.Gone && matches(&q, &w.Row) {
			rows = append(rows, w.Row)
		}
	}
	slices.SortFunc(rows, func(x, y Row) int { return compareFor(&q, &x, &y) })
	if q.Limit > 0 && len(rows) > q.Limit {
		rows = rows[:q.Limit]
	}
	return CopyRows(rows, q.Bare), true
}

func (b *Buffer) answerKey(q Query) ([]Row, bool) {
	k := identOf(q.Key)
	w, s := b.writes[k], b.seen[k]
	switch {
	case !b.canAnswer(q):
		return nil, false
	case w != nil && w.Gone, w == nil && s.known == absent:
		return nil, true
	case w != nil:
		return CopyRows([]Row{w.Row}, q.Bare), true
	}
	return CopyRows([]Row{*s.row}, q.Bare), true
}

// CopyRows returns deep copies of rows; without documents if bare.
func CopyRows(rows []Row, bare bool) []Row {
	out := slices.Clone(rows)
	for i := range out {
		if bare {
			out[i].Doc = nil
		} else {
			out[i].Doc = bytes.Clone(out[i].Doc)
		}
	}
	return out
}

// matches reports whether a row is in the range of a query.
func matches(q *Query, r *Row) bool {
	if q.Table != "" && r.Table != q.Table {
		return false
	}
	in := func(v string) bool { return q.From <= v && (q.To == "" || v < q.To) }
	switch q.By {
	case ByID:
		return r.Team == q.Team && in(r.ID)
	case ByFirst:
		return r.Team == q.Team && r.Index[0] != "" && in(r.Index[0])
	case BySecond:
		return r.Team == q.Team && r.Index[1] != "" && in(r.Index[1])
	case ByUser:
		return r.User == q.User && in(r.ID)
	case ByDue:
		return !r.Due.IsZero() && !r.Due.After(q.Until)
	default:
		return r.Team == q.Team && r.ID == q.ID
	}
}

// compareFor compares two rows in the order of a query's answer.
func compareFor(q *Query, x, y *Row) int {
	c := 0
	switch q.By {
	case ByFirst:
		c = strings.Compare(x.Index[0], y.Index[0])
	case BySecond:
		c = strings.Compare(x.Index[1], y.Index[1])
	case ByDue:
		c = x.Due.Compare(y.Due)
	case ByKey, ByID, ByUser:
	}
	if c == 0 {
		c = CompareKeys(x.Key, y.Key)
	}
	if q.Desc {
		return -c
	}
	return c
}

// Put stores rows to write at the commit.
func (b *Buffer) Put(rows ...Row) {
	for _, r := range rows {
		if err := b.put(r); err != nil && b.broken == nil {
			b.broken = err
		}
	}
}

func (b *Buffer) put(r Row) error {
	r.Doc = bytes.Clone(r.Doc)
	if !r.Due.IsZero() {
		r.Due = r.Due.UTC().Truncate(time.Microsecond)
	}
	k := identOf(r.Key)
	s, read := b.seen[k]
	w := &Write{Row: r, Was: r.Revision}
	w.Revision++
	before, written := b.writes[k]
	switch {
	case r.Table == "" || r.ID == "" || len(r.ID) > MaxID || len(r.Index[0]) > MaxID || len(r.Index[1]) > MaxID:
		return rule(r.Table, fmt.Sprintf("a row must have a table, an id of 1 to %d bytes, and index values of at most %d bytes", MaxID, MaxID))
	case written && before.Gone && r.Revision == 0: // deleted and put again: the commit changes the stored row once
		if s.known == nothing {
			return rule(r.Table, "a row that is deleted and put in one transaction must be read first")
		}
		if s.known == present {
			w.Was = s.row.Revision
		}
		w.Revision = w.Was + 1
	case written && !before.Gone && r.Revision == before.Revision: // put twice in this transaction
		w.Was = before.Was
	case written && !before.Gone && r.Revision == 0:
		return &TakenError{Table: r.Table, Index: -1}
	case written:
		return ErrStale
	case read && r.Revision != 0 && strength(s.lock) < strength(Held):
		return rule(r.Table, "a row that is put must be read with the lock Held")
	case r.Revision == 0 && !b.mayAdd(r.Key):
		return rule(r.Table, "before a new row of a user is put, the row of the user must be read with the lock Shared or Held")
	}
	b.writes[k] = w
	return nil
}

// mayAdd reports whether the transaction may add a row with the key k: the transaction must have locked or put the
// row of k's user. If k has no team, the row of this user in any team is enough.
func (b *Buffer) mayAdd(k Key) bool {
	if k.User.IsZero() || k.Table == UserTable {
		return true
	}
	user := identOf(UserKey(k.Team, k.User))
	if !k.Team.IsZero() {
		w := b.writes[user]
		s, seen := b.seen[user]
		return seen && strength(s.lock) >= strength(Shared) || w != nil && !w.Gone
	}
	of := func(u ident) bool { return u.table == user.table && u.id == user.id }
	for u, s := range b.seen {
		if of(u) && strength(s.lock) >= strength(Shared) {
			return true
		}
	}
	for u, w := range b.writes {
		if of(u) && !w.Gone {
			return true
		}
	}
	return false
}

// Delete stores keys of rows to delete at the commit.
func (b *Buffer) Delete(keys ...Key) {
	for _, key := range keys {
		k := identOf(key)
		s, read := b.seen[k]
		before, written := b.writes[k]
		switch {
		case written && before.Was == 0 && !before.Gone && s.known != present: // the row was added by this transaction
			delete(b.writes, k)
			continue
		case !written && read && s.known == present && strength(s.lock) < strength(Held) && b.broken == nil:
			b.broken = rule(key.Table, "a row that is deleted after it was read must be read with the lock Held")
		}
		b.writes[k] = &Write{Row: Row{Key: key}, Gone: true}
	}
}
