package postgres

import (
	"context"
	"encoding/binary"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab/healthdata"
)

const (
	// maxPiece is how many bytes a batch may have to go into the tail of its series;
	// a longer one is a segment by itself. A tail of fullTail bytes or more becomes a
	// segment.
	maxPiece = 256
	fullTail = 1500
	// fewRequests is how many requests go one statement each, which is simple; more share a
	// statement, which takes the server long to begin.
	fewRequests = 12
)

const (
	// The row of the series is the lock. The conditions are looked at again after a wait for
	// it, so that two who append never overlap. This is the statement for most of the small
	// batches: there is room in the tail, and nothing else to look at. It has no expression
	// that it could do without: what the server has to look at first costs more than what it
	// does. The last argument is how long the tail may be before.
	appendRoom = `
update healthlab.series s set last_at = $8, tail = $9::bytea || s.tail
where ` + appendable + ` and s.tail_at is not null and not s.tail_closed and length(s.tail) < $10`

	appendable = `s.user_id = $2 and s.resource = $3 and s.provider = $4 and s.source_type = $5 and s.part = $6 and s.team_id = $1
		and s.last_at < $7 and s.direct`

	// The same, where it is known where the series is.
	appendMarked = `
update healthlab.series s set last_at = $6, tail = $7::bytea || s.tail
where s.user_id = $2 and s.series = $3 and s.mark = $4 and s.team_id = $1 and s.last_at < $5 and s.direct
	and s.tail_at is not null and not s.tail_closed and length(s.tail) < $8`

	// The same for many; the rows come in the order in which every writer locks them.
	appendRooms = `
update healthlab.series s set last_at = x.stop_at, tail = x.data || s.tail
from ` + pieces + `
where ` + ofPiece + ` and s.tail_at is not null and not s.tail_closed and length(s.tail) < $10 - length(x.data)
returning x.n`

	// And these for the other small ones: they begin a tail, and what was there becomes a
	// segment as it is. With many, who has the row is not waited for, since rows were locked
	// before.
	appendTail     = beginTail + onePiece + ` where ` + ofPiece + beginTailIf + beginTailEnd
	appendNewTails = beginTail + pieces + ` where ` + ofPiece + beginTailIf + ` skip locked` + beginTailEnd

	pieces = `unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bytea[]) with ordinality
	as x (team_id, user_id, resource, provider, source_type, part, start_at, stop_at, data, n)`
	onePiece = `(values ($1::uuid, $2::uuid, $3::text, $4::text, $5::text, $6::text, $7::bigint, $8::bigint, $9::bytea, 1))
	as x (team_id, user_id, resource, provider, source_type, part, start_at, stop_at, data, n)`

	ofPiece = `s.user_id = x.user_id and s.resource = x.resource and s.provider = x.provider and s.source_type = x.source_type and s.part = x.part
	and s.team_id = x.team_id and s.last_at < x.start_at and s.direct`

	beginTail = `
with o as materialized (
	select s.user_id, s.series, s.tail_at, s.last_at, s.tail, s.tail_at is not null and not s.tail_closed as open, x.start_at, x.stop_at, x.data, x.n
	from healthlab.series s, `
	beginTailIf = ` and s.segments < $10 and s.segment_bytes < $11
	for no key update of s`
	beginTailEnd = `
), s as (
	update healthlab.series s
	set last_at = o.stop_at, tail_at = o.start_at, tail = o.data, tail_closed = false,
		seq = s.seq + o.open::integer, segments = s.segments + o.open::integer,
		segment_bytes = s.segment_bytes + case when o.open then length(o.tail) else 0 end,
		fold_due = case when not o.open then s.fold_due when s.segments + 1 = $10 / 2
			or s.segment_bytes < $11 / 2 and s.segment_bytes + length(o.tail) >= $11 / 2 then now()
			else coalesce(s.fold_due, now() + $12::interval) end
	from o where s.user_id = o.user_id and s.series = o.series
	returning s.user_id, s.series, s.seq, s.team_id, s.mark, o.tail_at, o.last_at, o.tail, o.open, o.n
), i as (
	insert into healthlab.segment (user_id, series, seq, team_id, start_at, stop_at, header, data)
	select s.user_id, s.series, s.seq, s.team_id, s.tail_at, s.last_at, '', s.tail from s where s.open
)
select n, series, mark from s`
)

// appendPiece adds the piece of one request to its tail, if nothing is to be asked for it, and
// reports whether it did.
func (s *Store) appendPiece(ctx context.Context, r *request, data []byte) (done bool, err error) {
	length, _, row := s.tails.guess(r)
	known := row != nil
	for room := length+len(data) < fullTail; ; room, known = false, false {
		err := s.do(ctx, r.team, writing, func(u *unit) (err error) {
			switch {
			case !room:
				done, err = u.beginTail(ctx, r, data, known)
			case u.early():
				done, err = u.appendEarly(ctx, r, data, row)
			default:
				sql, args := s.tailStatement(r, data, true)
				done, err = wrote(u.exec(ctx, sql, args...))
			}
			return err
		})
		if err != nil {
			return false, err
		}
		if done {
			s.tails.note(r, len(data), room)
			if !room {
				s.crowd.began(1)
			}
		}
		if done || !room {
			return done, nil
		}
	}
}

// wrote reports whether a statement wrote a row.
func wrote(tag pgconn.CommandTag, err error) (bool, error) { return tag.RowsAffected() > 0, err }

// beginTail begins a tail, and finds out where the series is if that is not known: also where a
// row that was remembered had no room, which may be another one by now.
func (u *unit) beginTail(ctx context.Context, r *request, data []byte, known bool) (done bool, err error) {
	sql, args := u.store.tailStatement(r, data, false)
	if known {
		return wrote(u.exec(ctx, sql, args...))
	}
	var all []int
	err = u.alone(ctx, func(b *pgx.Batch) {
		noteBegun(b.Queue(sql, args...), u.store.tails, []*request{r}, []int{0}, &all)
	})
	return len(all) > 0, err
}

// tailStatement returns what adds a piece to its tail: where there is said to be room only if
// there is, else in any case.
func (s *Store) tailStatement(r *request, data []byte, room bool) (sql string, args []any) {
	p := &r.parts[0]
	k := &p.Key
	args = append(make([]any, 0, 12), r.team.UUID, r.user.UUID, k.Resource, k.Provider, string(k.SourceType), k.Part, p.start, p.stop, data)
	if room {
		return appendRoom, append(args, fullTail-len(data))
	}
	return appendTail, append(args, maxSegments, maxSegmentBytes, s.opts.FoldAfter)
}

// appendEarly adds a piece where there is room, with arguments as they go to the server: the
// driver's look at each of them would take longer than what is done with them.
func (u *unit) appendEarly(ctx context.Context, r *request, data []byte, row *seriesRow) (done bool, err error) {
	p := &r.parts[0]
	k := &p.Key
	values, buf := make([][]byte, 0, 10), make([]byte, 0, 192)
	add := func(with []byte) { values, buf = append(values, with[len(buf):]), with }
	add(append(buf, r.team.UUID[:]...))
	add(append(buf, r.user.UUID[:]...))
	sql := appendRoom
	if row != nil {
		sql = appendMarked
		add(binary.BigEndian.AppendUint32(buf, uint32(row.number)))
		add(append(buf, row.mark[:]...))
	} else {
		for _, text := range [...]string{k.Resource, k.Provider, string(k.SourceType), k.Part} {
			add(append(buf, text...))
		}
	}
	add(binary.BigEndian.AppendUint64(buf, uint64(p.start)))
	add(binary.BigEndian.AppendUint64(buf, uint64(p.stop)))
	values = append(values, data)
	add(binary.BigEndian.AppendUint32(buf, uint32(fullTail-len(data))))
	return wrote(u.execEarly(ctx, sql, func(*pgconn.StatementDescription) (pgx.ExtendedQueryBuilder, error) {
		return pgx.ExtendedQueryBuilder{ParamValues: values, ParamFormats: []int16{pgx.BinaryFormatCode}}, nil
	}))
}

// small returns the places of the pieces that may go into tails, and guesses where there is
// room for them and for whom somebody is to be asked.
func (a *appending) small(t *tails) (todo []int) {
	a.room, a.ask = make([]bool, len(a.reqs)), make([]bool, len(a.reqs))
	for i, r := range a.reqs {
		length, ask, _ := t.guess(r)
		n := len(a.data[i])
		if a.ask[i] = ask || n > maxPiece; !a.ask[i] {
			todo, a.room[i] = append(todo, i), length+n < fullTail
		}
	}
	return todo
}

// again notes what became of some pieces, and returns those for which there was no room, so
// that it is made.
func (a *appending) again(t *tails, c *crowd, todo []int) (left []int) {
	for _, i := range todo {
		if a.written[i] {
			t.note(a.reqs[i], len(a.data[i]), a.room[i])
			if !a.room[i] {
				c.began(1)
			}
		} else if a.room[i] {
			left = append(left, i)
		}
		a.room[i] = false
	}
	return left
}

// runFew adds some pieces to their tails in one trip.
func (a *appending) runFew(ctx context.Context, u *unit, todo []int) (done []int, err error) {
	if len(todo) == 1 {
		i := todo[0]
		sql, args := u.store.tailStatement(a.reqs[i], a.data[i], a.room[i])
		tag, err := u.exec(ctx, sql, args...)
		if err == nil && tag.RowsAffected() > 0 {
			done = todo
		}
		return done, err
	}
	err = u.alone(ctx, func(b *pgx.Batch) {
		for _, i := range todo {
			sql, args := u.store.tailStatement(a.reqs[i], a.data[i], a.room[i])
			b.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
				if tag.RowsAffected() > 0 {
					done = append(done, i)
				}
				return nil
			})
		}
	})
	return done, err
}

// runMany does the same with two statements.
func (a *appending) runMany(ctx context.Context, u *unit, todo []int) (done []int, err error) {
	var full []int
	room := make([]int, 0, len(todo))
	for _, i := range todo {
		if a.room[i] {
			room = append(room, i)
		} else {
			full = append(full, i)
		}
	}
	err = u.alone(ctx, func(b *pgx.Batch) {
		u.steady(b)
		if len(room) > 0 {
			noteWritten(b.Queue(appendRooms, a.columns(room, fullTail)...), room, &done)
		}
		if len(full) > 0 {
			noteBegun(b.Queue(appendNewTails, a.columns(full, maxSegments, maxSegmentBytes, u.store.opts.FoldAfter)...), u.store.tails, a.reqs, full, &done)
		}
	})
	return done, err
}

// columns are some pieces as arguments, with more behind them.
func (a *appending) columns(at []int, more ...any) []any {
	var keys keyColumns
	keys.grow(len(at))
	starts, stops, data := make([]int64, len(at)), make([]int64, len(at)), make([][]byte, len(at))
	for k, i := range at {
		p := &a.reqs[i].parts[0]
		keys.addKey(a.reqs[i].userKey, &p.Key)
		starts[k], stops[k], data[k] = p.start, p.stop, a.data[i]
	}
	return keys.args(append([]any{starts, stops, data}, more...)...)
}

// noteWritten adds to done which of some pieces a statement wrote, which returns their numbers.
func noteWritten(q *pgx.QueuedQuery, at []int, done *[]int) {
	q.Query(func(rows pgx.Rows) error {
		var n int
		_, err := pgx.ForEachRow(rows, []any{&n}, func() error {
			*done = append(*done, at[n-1])
			return nil
		})
		return err
	})
}

// noteBegun is noteWritten for tails that were begun, and remembers where their series are.
func noteBegun(q *pgx.QueuedQuery, t *tails, reqs []*request, at []int, done *[]int) {
	q.Query(func(rows pgx.Rows) error {
		var n int
		var number int32
		var mark *uuid.UUID
		_, err := pgx.ForEachRow(rows, []any{&n, &number, &mark}, func() error {
			i := at[n-1]
			*done = append(*done, i)
			t.at(reqs[i].userKey, &reqs[i].parts[0].Key, number, mark)
			return nil
		})
		return err
	})
}

// tails remembers of the series that this process wrote to last how long their tails are, or
// that somebody is to be asked; and where their rows are. It is a guess, since others write
// too, and says only what to try first. Two series may share a place, which is the later
// one's. Nil remembers nothing.
type tails struct {
	places [1 << 12]atomic.Pointer[tail]
}

// tail is what is remembered of one series.
type tail struct {
	userKey
	key    healthdata.SeriesKey
	length atomic.Int64 // of the tail, or asked
	row    atomic.Pointer[seriesRow]
}

// seriesRow is where a series is: its number, and the mark of its row.
type seriesRow struct {
	number int32
	mark   uuid.UUID
}

const asked = -1

func (t *tails) place(u userKey, k *healthdata.SeriesKey) *atomic.Pointer[tail] {
	h := binary.LittleEndian.Uint64(u.user.UUID[8:])
	for _, text := range [...]string{k.Resource, k.Provider, string(k.SourceType), k.Part} {
		for i := range len(text) {
			h = (h ^ uint64(text[i])) * 0x100000001b3 // FNV-1a
		}
	}
	return &t.places[h>>32%uint64(len(t.places))]
}

// find returns what is remembered of a series; nil if nothing is.
func (t *tails) find(u userKey, k *healthdata.SeriesKey) *tail {
	if t == nil {
		return nil
	}
	if found := t.place(u, k).Load(); found != nil && found.userKey == u && found.key == *k {
		return found
	}
	return nil
}

// have returns what is remembered of a series, from now on if nothing was. It is never
// called on nil.
func (t *tails) have(u userKey, k *healthdata.SeriesKey) *tail {
	found := t.find(u, k)
	if found == nil {
		found = &tail{userKey: u, key: *k}
		t.place(u, k).Store(found)
	}
	return found
}

// guess returns how long the tail of a request of one part is, whether somebody is to be
// asked, and where the series is, or nil.
func (t *tails) guess(r *request) (length int, ask bool, row *seriesRow) {
	found := t.find(r.userKey, &r.parts[0].Key)
	if found == nil {
		return 0, false, nil
	}
	length = int(found.length.Load())
	return max(length, 0), length == asked, found.row.Load()
}

// note says that n bytes were added to a tail, or began it.
func (t *tails) note(r *request, n int, added bool) {
	k := &r.parts[0].Key
	if t == nil {
		return
	}
	if !added {
		t.have(r.userKey, k).length.Store(int64(n))
	} else if found := t.find(r.userKey, k); found != nil {
		if was := found.length.Load(); was != asked {
			found.length.CompareAndSwap(was, was+int64(n)) // within fullTail, whoever wins
		}
	}
}

// ask says that somebody is to be asked, or no more.
func (t *tails) ask(u userKey, k *healthdata.SeriesKey, yes bool) {
	if t == nil {
		return
	}
	if yes {
		t.have(u, k).length.Store(asked)
	} else if found := t.find(u, k); found != nil {
		found.length.Store(0)
	}
}

// at says where a series is. No mark says nothing.
func (t *tails) at(u userKey, k *healthdata.SeriesKey, number int32, mark *uuid.UUID) {
	if t == nil || mark == nil {
		return
	}
	found := t.have(u, k)
	if was := found.row.Load(); was == nil || was.number != number || was.mark != *mark {
		found.row.Store(&seriesRow{number, *mark})
	}
}
