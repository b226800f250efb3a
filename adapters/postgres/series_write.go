package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/seriesbox"
)

const (
	dropSegments = `
delete from healthlab.segment g using unnest($1::uuid[], $2::integer[], $3::bigint[]) as x (user_id, series, seq)
where g.user_id = x.user_id and g.series = x.series and g.seq = x.seq and ($4::uuid is null or g.user_id = $4)`

	dropChunks = `
delete from healthlab.chunk c using unnest($1::uuid[], $2::integer[], $3::bigint[]) as x (user_id, series, start_at)
where c.user_id = x.user_id and c.series = x.series and c.start_at = x.start_at and ($4::uuid is null or c.user_id = $4)`

	putChunk = `
insert into healthlab.chunk (user_id, team_id, series, start_at, stop_at, header, data) values ($1, $2, $3, $4, $5, $6, $7)
on conflict (user_id, series, start_at) do update
set stop_at = excluded.stop_at, header = excluded.header, data = excluded.data`

	// The join names the machine on which the user's series are.
	putSegments = `
insert into healthlab.segment (user_id, team_id, series, seq, start_at, stop_at, header, data)
select s.user_id, s.team_id, s.series, x.seq, x.start_at, x.stop_at, x.header, x.data
from unnest($1::uuid[], $2::integer[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[])
	as x (user_id, series, seq, start_at, stop_at, header, data)
join healthlab.series s on s.user_id = x.user_id and s.series = x.series
where $8::uuid is null or s.user_id = $8`

	// foldTimes are this instant and a later one, to be chosen from: Citus refuses now() in a case.
	foldTimes = `unnest(array[now()], array[now() + `

	updateSeries = `
update healthlab.series s
set span = x.span, last_at = x.last_at, seq = x.seq, segments = x.segments, segment_bytes = x.segment_bytes,
	rewrites = s.rewrites + x.rewritten::integer,
	fold_due = case when x.segments = 0 then null when x.crowds then t.at else coalesce(s.fold_due, t.later) end,
	direct = coalesce(x.direct, s.direct),
	tail_at = case when x.keep then s.tail_at end, tail_closed = false, tail = case when x.keep then s.tail else '' end
from ` + foldTimes + `$8::interval]) as t (at, later),
	unnest($1::uuid[], $2::integer[], $3::smallint[], $4::bigint[], $5::bigint[], $6::integer[], $7::integer[], $9::boolean[],
	$10::boolean[], $11::boolean[], $12::boolean[]) as x (user_id, series, span, last_at, seq, segments, segment_bytes, keep, rewritten, crowds, direct)
where s.user_id = x.user_id and s.series = x.series and ($13::uuid is null or s.user_id = $13)`
)

// chunkRows are columns of chunk, and of segment.
type chunkRows struct {
	users, teams  []uuid.UUID
	series        []int32
	starts, stops []int64
	headers, data [][]byte
}

// add adds a chunk or a segment with a header, encrypted as the store says.
func (c *chunkRows) add(ctx context.Context, box seriesbox.Series, k userKey, number int32, chunk *series.Chunk) error {
	header, data, err := box.Seal(ctx, chunk)
	if err != nil {
		return err
	}
	c.users, c.teams, c.series = append(c.users, k.user.UUID), append(c.teams, k.team.UUID), append(c.series, number)
	c.starts, c.stops = append(c.starts, chunk.Start), append(c.stops, chunk.Stop)
	c.headers, c.data = append(c.headers, header), append(c.data, data)
	return nil
}

// addTail adds a segment that was a tail, which has no header.
func (c *chunkRows) addTail(k userKey, number int32, start, stop int64, data []byte) {
	c.users, c.teams, c.series = append(c.users, k.user.UUID), append(c.teams, k.team.UUID), append(c.series, number)
	c.starts, c.stops = append(c.starts, start), append(c.stops, stop)
	c.headers, c.data = append(c.headers, []byte{}), append(c.data, data)
}

// queueSegments adds to a batch what writes the rows into segment.
func (c *chunkRows) queueSegments(b *pgx.Batch, seqs []int64) {
	if len(seqs) > 0 {
		b.Queue(putSegments, c.users, c.series, seqs, c.starts, c.stops, c.headers, c.data, only(c.users))
	}
}

// queue adds to a batch what writes the rows into chunk.
func (c *chunkRows) queue(b *pgx.Batch) {
	for i := range c.starts {
		b.Queue(putChunk, c.users[i], c.teams[i], c.series[i], c.starts[i], c.stops[i], c.headers[i], c.data[i])
	}
}

// keyRows are keys of segments or chunks.
type keyRows struct {
	users  []uuid.UUID
	series []int32
	at     []int64
}

func (k *keyRows) add(l *line, at int64) {
	k.users, k.series, k.at = append(k.users, l.user.UUID), append(k.series, l.number), append(k.at, at)
}

// seriesWrites are what a transaction writes to series.
type seriesWrites struct {
	gone, drop    keyRows // segments, chunks
	put, appended chunkRows
	seqs          []int64 // of appended
	rows          keyRows // of series; at is last_at
	spans         []int16
	numbers       []int64
	segments      []int32
	bytes         []int32
	keep          []bool // the tail
	rewritten     []bool // chunks or segments that were there
	crowds        []bool // there are enough segments to fold
	direct        []*bool
}

// write adds to a batch what the accepted parts change, and returns how many segments that
// begins.
func (m *merging) write(ctx context.Context, b *pgx.Batch) (begun int, err error) {
	var w seriesWrites
	for _, l := range m.lines {
		if err := l.write(ctx, &w); err != nil {
			return 0, err
		}
	}
	w.queue(b, m.s)
	return len(w.seqs), nil
}

// write adds the changes of one series.
func (l *line) write(ctx context.Context, w *seriesWrites) error {
	switch {
	case l.added != nil && l.added.Len() >= wholeChunk:
		c, err := series.Apply(nil, nil, l.added, l.span)
		if err != nil {
			return err
		}
		l.taken = nil
		return w.change(ctx, l, &c)
	case l.added != nil:
		c, err := series.NewChunk(l.added)
		if err != nil {
			return err
		}
		was := l.crowded()
		l.seq++
		if err := w.appended.add(ctx, l.box, l.userKey, l.number, &c); err != nil {
			return err
		}
		l.segments++
		l.bytes += len(w.appended.data[len(w.seqs)])
		w.seqs = append(w.seqs, l.seq)
		w.row(l, false, l.crowded() && !was)
	case l.change != nil:
		return w.change(ctx, l, l.change)
	case len(l.fresh) > 0:
		c, err := series.Fold(l.body, append(l.log(), l.fresh...), l.span)
		if err != nil {
			return err
		}
		return w.change(ctx, l, &c)
	}
	return nil
}

// change adds a change of the body, into which the segments taken went.
func (w *seriesWrites) change(ctx context.Context, l *line, c *series.Change) error {
	for _, i := range l.taken {
		if l.seqs[i] == ofTail {
			l.tail = nil
			continue
		}
		w.gone.add(l, l.seqs[i])
		l.segments--
		l.bytes -= l.sizes[i]
	}
	for _, start := range c.Drop {
		w.drop.add(l, start)
	}
	for i := range c.Put {
		if err := w.put.add(ctx, l.box, l.userKey, l.number, &c.Put[i]); err != nil {
			return err
		}
	}
	if len(l.taken) > 0 || !c.Empty() {
		w.row(l, true, l.crowded()) // others may have appended meanwhile
	}
	return nil
}

func (w *seriesWrites) row(l *line, rewritten, crowds bool) {
	w.rows.add(l, l.lastAt)
	w.spans, w.numbers = append(w.spans, int16(l.span)), append(w.numbers, l.seq)
	w.segments, w.bytes = append(w.segments, int32(l.segments)), append(w.bytes, int32(l.bytes))
	w.keep = append(w.keep, l.tail != nil)
	w.rewritten, w.crowds, w.direct = append(w.rewritten, rewritten), append(w.crowds, crowds), append(w.direct, l.direct)
}

func (w *seriesWrites) queue(b *pgx.Batch, s *Store) {
	if g := &w.gone; len(g.at) > 0 {
		b.Queue(dropSegments, g.users, g.series, g.at, only(g.users))
	}
	if d := &w.drop; len(d.at) > 0 {
		b.Queue(dropChunks, d.users, d.series, d.at, only(d.users))
	}
	w.put.queue(b)
	w.appended.queueSegments(b, w.seqs)
	if r := &w.rows; len(r.at) > 0 {
		b.Queue(updateSeries, r.users, r.series, w.spans, r.at, w.numbers, w.segments, w.bytes, s.opts.FoldAfter, w.keep, w.rewritten, w.crowds,
			w.direct, only(r.users))
	}
}

// only returns the user of all rows, nil if there are several. Statements take it to be
// planned for the machine of that user.
func only(users []uuid.UUID) *uuid.UUID {
	for _, u := range users {
		if u != users[0] {
			return nil
		}
	}
	return &users[0]
}
