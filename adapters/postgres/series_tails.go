package postgres

import (
	"context"
	"encoding/binary"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab/healthdata"
)

const (
	// maxPiece is how many bytes a batch may have to go into the tail of its series;
	// a longer one is a segment by itself. A tail of fullTail bytes or more becomes a
	// segment.
	maxPiece = 256
	fullTail = 1000
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
		fold_due = case when o.open then coalesce(s.fold_due, now() + $12::interval) else s.fold_due end
	from o where s.user_id = o.user_id and s.series = o.series
	returning s.user_id, s.series, s.seq, s.team_id, o.tail_at, o.last_at, o.tail, o.open, o.n
), i as (
	insert into healthlab.segment (user_id, series, seq, team_id, start_at, stop_at, header, data)
	select s.user_id, s.series, s.seq, s.team_id, s.tail_at, s.last_at, '', s.tail from s where s.open
)
select n from s`
)

// appendPiece adds the piece of one request to its tail, if nothing is to be asked for it, and
// reports whether it did.
func (s *Store) appendPiece(ctx context.Context, r *request, data []byte) (done bool, err error) {
	length, _ := s.tails.guess(r)
	for room := length+len(data) < fullTail; ; room = false {
		var tag pgconn.CommandTag
		err := s.do(ctx, r.team, writing, func(u *unit) (err error) {
			sql, args := s.tailStatement(r, data, room)
			tag, err = u.exec(ctx, sql, args...)
			return err
		})
		done := err == nil && tag.RowsAffected() > 0
		if done {
			s.tails.note(r, len(data), room)
		}
		if done || err != nil || !room {
			return done, err
		}
	}
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

// small returns the places of the pieces that may go into tails, and guesses where there is
// room for them and for whom somebody is to be asked.
func (a *appending) small(t *tails) (todo []int) {
	a.room, a.ask = make([]bool, len(a.reqs)), make([]bool, len(a.reqs))
	for i, r := range a.reqs {
		length, ask := t.guess(r)
		n := len(a.data[i])
		if a.ask[i] = ask || n > maxPiece; !a.ask[i] {
			todo, a.room[i] = append(todo, i), length+n < fullTail
		}
	}
	return todo
}

// again notes what became of some pieces, and returns those for which there was no room, so
// that it is made.
func (a *appending) again(t *tails, todo []int) (left []int) {
	for _, i := range todo {
		if a.written[i] {
			t.note(a.reqs[i], len(a.data[i]), a.room[i])
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
			noteWritten(b.Queue(appendNewTails, a.columns(full, maxSegments, maxSegmentBytes, u.store.opts.FoldAfter)...), full, &done)
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

// tails remembers of the series that this process wrote to last how long their tails are, or
// that somebody is to be asked. It is a guess, since others write too, and says only what to
// try first. Two series may share a place. Nil remembers nothing.
type tails struct {
	// Each place is 48 bits of the hash of a series, and the length of its tail, or asked.
	places [1 << 12]atomic.Uint64
}

const (
	lengthBits = 16
	asked      = 1<<lengthBits - 1
)

func (t *tails) place(u userKey, k *healthdata.SeriesKey) (place *atomic.Uint64, hash uint64) {
	h := binary.LittleEndian.Uint64(u.user.UUID[8:])
	for _, text := range [...]string{k.Resource, k.Provider, string(k.SourceType), k.Part} {
		for i := range len(text) {
			h = (h ^ uint64(text[i])) * 0x100000001b3 // FNV-1a
		}
	}
	return &t.places[h>>32%uint64(len(t.places))], h >> lengthBits << lengthBits
}

// guess returns how long the tail of a request of one part is, and whether somebody is to be
// asked.
func (t *tails) guess(r *request) (length int, ask bool) {
	if t == nil {
		return 0, false
	}
	place, hash := t.place(r.userKey, &r.parts[0].Key)
	switch was := place.Load(); {
	case was>>lengthBits != hash>>lengthBits:
		return 0, false
	case was&asked == asked:
		return 0, true
	default:
		return int(was & asked), false
	}
}

// note says that n bytes were added to a tail, or began it.
func (t *tails) note(r *request, n int, added bool) {
	if t == nil {
		return
	}
	place, hash := t.place(r.userKey, &r.parts[0].Key)
	if !added {
		place.Store(hash | uint64(n))
	} else if was := place.Load(); was>>lengthBits == hash>>lengthBits && was&asked != asked {
		place.CompareAndSwap(was, was+uint64(n)) // within fullTail, whoever wins
	}
}

// ask says that somebody is to be asked, or no more.
func (t *tails) ask(u userKey, k *healthdata.SeriesKey, yes bool) {
	if t == nil {
		return
	}
	place, hash := t.place(u, k)
	if was := place.Load(); yes {
		place.Store(hash | asked)
	} else if was>>lengthBits == hash>>lengthBits {
		place.CompareAndSwap(was, 0)
	}
}
