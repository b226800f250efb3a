package postgres

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

const (
	// maxPiece is the longest batch in bytes that goes into the tail of its series; a longer
	// one becomes a segment. A tail of fullTail bytes or more becomes a segment.
	maxPiece = 256
	fullTail = 1500
)

const (
	// appendPieces appends batches that come after all samples of their series. The row of the
	// series is the lock; PostgreSQL evaluates the conditions after waiting for it. The batches
	// are ordered as every writer locks. A batch that does not meet the conditions is left to a
	// merge: the series is missing, has later samples or many segments, or the user is not live.
	appendPieces = appendTo + `unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bytea[],
		$10::boolean[]) with ordinality` + appendWhere + `any ($1)` + appendEnd

	// appendPiece is appendPieces for one batch.
	appendPiece = appendTo + `(values ($1::uuid, $2::uuid, $3::text, $4::text, $5::text, $6::text, $7::bigint, $8::bigint, $9::bytea,
		$10::boolean, 1))` + appendWhere + `$1` + appendEnd

	appendTo = `
with s as (
	update healthlab.series s
	set last_at = x.stop_at,
		tail_at = case when x.long then s.tail_at when s.tail_closed then x.start_at else coalesce(s.tail_at, x.start_at) end,
		tail = case when x.long then s.tail when s.tail_closed then x.data else x.data || s.tail end,
		tail_closed = case when x.long then s.tail_closed else ` + fills + ` end,
		seq = s.seq + (x.long or ` + fills + `)::integer, segments = s.segments + (x.long or ` + fills + `)::integer,
		segment_bytes = s.segment_bytes + case when x.long then length(x.data) when ` + fills + ` then ` + newLength + ` else 0 end,
		fold_due = case when not (x.long or ` + fills + `) then s.fold_due
			when s.segments + 1 = $13 / 2 or s.segment_bytes < $14 / 2
				and s.segment_bytes + case when x.long then length(x.data) else ` + newLength + ` end >= $14 / 2 then now()
			else coalesce(s.fold_due, now() + $12::interval) end
	from `

	appendWhere = ` as x (team_id, user_id, resource, provider, source_type, part, start_at, stop_at, data, long, n)
	where s.user_id = x.user_id and s.resource = x.resource and s.provider = x.provider
		and s.source_type = x.source_type and s.part = x.part and s.team_id = x.team_id
		and s.last_at < x.start_at and s.segments < $13 and s.segment_bytes < $14
		and (s.direct or ` + isAwaited + ` and ` + isLive + `)
	returning x.n, x.resource, x.start_at, x.stop_at, s.user_id, s.series, s.seq, s.team_id, x.long or s.tail_closed as ended,
		case when x.long then x.start_at else s.tail_at end as segment_at, case when x.long then x.data when s.tail_closed then s.tail end as segment
), i as (
	insert into healthlab.segment (user_id, series, seq, team_id, start_at, stop_at, header, data)
	select s.user_id, s.series, s.seq, s.team_id, s.segment_at, s.stop_at, '', s.segment from s where s.ended
), ` + touchAppended

	appendEnd = touchEnd + `
select n, ended from s`

	// newLength is the length of the tail with the batch, and fills whether that is a segment.
	newLength = `(case when s.tail_closed then 0 else length(s.tail) end + length(x.data))`
	fills     = `(` + newLength + ` >= $11)`
)

// appending is a group of batches that are appended without reading anything.
type appending struct {
	reqs   []*request
	pieces [][]byte
	events [][]healthlab.Event
}

// appendOne writes a request of one batch if all its samples come after those that are
// stored. It reports whether it did; if not, nothing was written.
func (s *Store) appendOne(ctx context.Context, r *request) (done bool, err error) {
	if r.parts[0].n >= wholeChunk {
		return s.appendChunks(ctx, r)
	}
	a := &appending{}
	if a.add(r) != nil {
		return false, nil //nolint:nilerr // a merge decides, and returns the error
	}
	written, err := s.append(ctx, a)
	return len(written) > 0, err
}

// appendGroup writes those requests of a group that come after all samples of their
// series, answers them, and returns the others.
func (s *Store) appendGroup(ctx context.Context, group []*request) (rest []*request) {
	var single []*request
	for _, r := range group {
		if len(r.parts) == 1 && r.parts[0].n < wholeChunk {
			single = append(single, r)
		} else {
			rest = append(rest, r)
		}
	}
	slices.SortStableFunc(single, func(a, b *request) int { return compareLines(a.userKey, &a.parts[0].Key, b.userKey, &b.parts[0].Key) })
	a := &appending{}
	for i, r := range single {
		same := func(o *request) bool { return o.userKey == r.userKey && o.parts[0].Key == r.parts[0].Key }
		if i > 0 && same(single[i-1]) || i+1 < len(single) && same(single[i+1]) || a.add(r) != nil {
			rest = append(rest, r)
		}
	}
	if len(a.reqs) == 0 {
		return rest
	}
	written, err := s.append(ctx, a)
	for i, r := range a.reqs {
		switch {
		case slices.Contains(written, i):
			r.answer(nil)
		case err != nil && (ctx.Err() != nil || healthlab.KindOf(err) == healthlab.Unavailable):
			r.answer(err)
		default:
			rest = append(rest, r)
		}
	}
	return rest
}

// add adds a request of one batch, with the events of samples that are all new.
func (a *appending) add(r *request) error {
	var piece []byte
	var events []healthlab.Event
	err := r.hold(func() (err error) {
		if piece, err = series.NewPiece(r.parts[0].Samples); err != nil || r.events == nil {
			return err
		}
		events, err = r.tell([]series.Outcome{allNew(r.parts[0].n)})
		return err
	})
	if err == nil {
		a.reqs, a.pieces, a.events = append(a.reqs, r), append(a.pieces, piece), append(a.events, events)
	}
	return err
}

// append writes a group in one transaction and returns the places of the written requests.
func (s *Store) append(ctx context.Context, a *appending) (written []int, err error) {
	var ended int
	err = s.do(ctx, a.team(), writing, func(u *unit) error {
		written, ended = nil, 0
		if slices.ContainsFunc(a.events, func(e []healthlab.Event) bool { return len(e) > 0 }) {
			return a.runWithEvents(ctx, u, &written, &ended)
		}
		return u.alone(ctx, func(b *pgx.Batch) { a.queue(b, u, &written, &ended) })
	})
	if err != nil {
		return nil, err
	}
	s.crowd.began(ended)
	return written, nil
}

// runWithEvents appends, and writes the events of what was appended.
func (a *appending) runWithEvents(ctx context.Context, u *unit, written *[]int, ended *int) error {
	b := u.batch()
	a.queue(b, u, written, ended)
	names := names{}
	var teams, users []uuid.UUID
	for _, r := range a.reqs {
		teams, users = append(teams, r.team.UUID), append(users, r.user.UUID)
	}
	names.lookLive(b, teams, users)
	if err := u.send(ctx, b); err != nil {
		return err
	}
	var events []healthlab.Event
	for _, i := range *written {
		events = append(events, a.events[i]...)
	}
	b = u.batch()
	if err := u.emit(ctx, b, events, names); err != nil {
		return err
	}
	return u.commit(ctx, b)
}

// queue adds the statement to a batch; written gets the places of the requests that it
// appended, and ended the number of segments that it began.
func (a *appending) queue(b *pgx.Batch, u *unit, written *[]int, ended *int) {
	limits := []any{fullTail, u.store.opts.FoldAfter, maxSegments, maxSegmentBytes}
	var q *pgx.QueuedQuery
	if len(a.reqs) == 1 {
		r := a.reqs[0]
		args := append(r.args(&r.parts[0]), a.pieces[0], len(a.pieces[0]) > maxPiece)
		q = b.Queue(appendPiece, append(args, limits...)...)
	} else {
		u.steady(b)
		q = b.Queue(appendPieces, append(a.columns(), limits...)...)
	}
	q.Query(func(rows pgx.Rows) error {
		var i int
		var segment bool
		_, err := pgx.ForEachRow(rows, []any{&i, &segment}, func() error {
			*written = append(*written, i-1)
			if segment {
				*ended++
			}
			return nil
		})
		return err
	})
}

func (a *appending) team() healthlab.TeamID {
	for _, r := range a.reqs {
		if r.team != a.reqs[0].team {
			return allTeams
		}
	}
	return a.reqs[0].team
}

// columns are the pieces and their keys as arguments.
func (a *appending) columns() []any {
	var keys keyColumns
	n := len(a.reqs)
	keys.grow(n)
	starts, stops, long := make([]int64, n), make([]int64, n), make([]bool, n)
	for i, r := range a.reqs {
		p := &r.parts[0]
		keys.addKey(r.userKey, &p.Key)
		starts[i], stops[i], long[i] = p.start, p.stop, len(a.pieces[i]) > maxPiece
	}
	return keys.args(starts, stops, a.pieces, long)
}
