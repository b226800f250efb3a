package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/outbox"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

const (
	// maxPiece is the longest batch in bytes that goes into the tail of its series; a longer
	// one becomes a segment. A tail of fullTail bytes or more becomes a segment.
	maxPiece = 256
	fullTail = 1500
)

const (
	// growTails appends batches that come after all samples of their series to its tail, where
	// nothing else has to be read or written. The row of the series is the lock; PostgreSQL
	// evaluates the conditions after waiting for it. The batches are ordered as every writer
	// locks. A batch that does not meet the conditions is left to the next statement.
	growTails = grow + somePieces + appendWhere + growEnd

	// appendPieces appends the same batches, and those that become a segment or end the tail.
	// A batch that does not meet its conditions is left to a merge: the series is missing, has
	// later samples or many segments.
	appendPieces = appendTo + somePieces + appendWhere + appendEnd

	// growTail and appendPiece are the same for one batch.
	growTail    = grow + onePiece + appendWhere + growEnd
	appendPiece = appendTo + onePiece + appendWhere + appendEnd

	grow = `
update healthlab.series s
set last_at = x.stop_at, tail_at = case when s.tail_closed then x.start_at else coalesce(s.tail_at, x.start_at) end,
	tail = case when s.tail_closed then x.data else x.data || s.tail end, tail_closed = false
from `

	growEnd = ` and s.direct and not x.long and not ` + fills + `
returning x.n`

	appendTo = `
update healthlab.series s
set last_at = x.stop_at,
	tail_at = case when x.long then s.tail_at when s.tail_closed then x.start_at else coalesce(s.tail_at, x.start_at) end,
	tail = case when x.long then s.tail when s.tail_closed then x.data else x.data || s.tail end,
	tail_closed = case when x.long then s.tail_closed else ` + fills + ` end,
	seq = s.seq + (x.long or ` + fills + `)::integer, segments = s.segments + (x.long or ` + fills + `)::integer,
	segment_bytes = s.segment_bytes + case when x.long then length(x.data) when ` + fills + ` then ` + newLength + ` else 0 end,
	fold_due = case when not (x.long or ` + fills + `) then s.fold_due
		when s.segments + 1 = $12 / 2 or s.segment_bytes < $13 / 2
			and s.segment_bytes + case when x.long then length(x.data) else ` + newLength + ` end >= $13 / 2 then t.at
		else coalesce(s.fold_due, t.later) end
from ` + foldTimes + `$15::interval]) as t (at, later), `

	appendEnd = `
returning x.n, s.direct, s.series, s.seq, case when x.long then x.start_at else s.tail_at end,
	case when x.long then x.data when s.tail_closed then s.tail end`

	somePieces = `unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bytea[],
	$10::boolean[]) with ordinality`
	onePiece = `(values ($1::uuid, $2::uuid, $3::text, $4::text, $5::text, $6::text, $7::bigint, $8::bigint, $9::bytea, $10::boolean, 1))`

	appendWhere = ` as x (team_id, user_id, resource, provider, source_type, part, start_at, stop_at, data, long, n)
where s.user_id = x.user_id and s.resource = x.resource and s.provider = x.provider
	and s.source_type = x.source_type and s.part = x.part and s.team_id = x.team_id
	and s.last_at < x.start_at and s.segments < $12 and s.segment_bytes < $13 and ($14::uuid is null or s.user_id = $14)`

	// newLength is the length of the tail with the batch, and fills whether that is a segment.
	newLength = `(case when s.tail_closed then 0 else length(s.tail) end + length(x.data))`
	fills     = `(` + newLength + ` >= $11)`
)

// appending is a group of batches that are appended without reading anything.
type appending struct {
	reqs   []*request
	pieces [][]byte
	events [][]healthlab.Event
	places []int // in the group that this is the rest of
}

// appendOne writes a request of one batch if all its samples come after those that are
// stored. It reports whether it did; if not, nothing was written.
func (s *Store) appendOne(ctx context.Context, r *request) (done bool, err error) {
	if r.parts[0].n >= wholeChunk {
		return s.appendChunks(ctx, r)
	}
	a := &appending{}
	if a.add(ctx, s, r) != nil {
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
	if err := s.loadKeys(ctx, single); err != nil {
		return group // a merge returns the error
	}
	a := &appending{}
	for i, r := range single {
		same := func(o *request) bool { return o.userKey == r.userKey && o.parts[0].Key == r.parts[0].Key }
		if i > 0 && same(single[i-1]) || i+1 < len(single) && same(single[i+1]) || a.add(ctx, s, r) != nil {
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
func (a *appending) add(ctx context.Context, s *Store, r *request) error {
	var piece []byte
	var events []healthlab.Event
	box := s.seriesOf(r.userKey, &r.parts[0].Key)
	err := r.hold(func() (err error) {
		if piece, err = box.NewPiece(ctx, r.parts[0].Samples); err != nil || r.events == nil {
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

// append writes a group and returns the places of the written requests: what only grows a tail
// in one trip, the others with their segments, tasks and events in a transaction of two.
func (s *Store) append(ctx context.Context, a *appending) (written []int, err error) {
	if !a.telling() && a.growing() {
		err = s.db.Do(ctx, a.team(), db.Writing, func(u *db.Tx) error {
			written = nil
			return u.Alone(ctx, func(b *pgx.Batch) { a.queueGrow(b, u, &written) })
		})
		if err != nil || len(written) == len(a.reqs) {
			return written, err
		}
	}
	rest := a.without(written)
	var more []int
	var ended int
	err = s.db.Do(ctx, a.team(), db.Writing, func(u *db.Tx) (err error) {
		more, ended, err = s.run(ctx, u, rest)
		return err
	})
	if err != nil && len(written) == 0 {
		return nil, err
	}
	if err == nil { // else a merge finds out what is the matter with the rest
		s.folds.began(ended)
		for _, i := range more {
			written = append(written, rest.places[i])
		}
	}
	return written, nil
}

// growing reports whether a batch is short enough for a tail.
func (a *appending) growing() bool {
	return slices.ContainsFunc(a.pieces, func(p []byte) bool { return len(p) <= maxPiece })
}

// telling reports whether there are events.
func (a *appending) telling() bool {
	return slices.ContainsFunc(a.events, func(e []healthlab.Event) bool { return len(e) > 0 })
}

// without returns the group without the requests at some places.
func (a *appending) without(gone []int) *appending {
	rest := &appending{}
	for i, r := range a.reqs {
		if !slices.Contains(gone, i) {
			rest.reqs, rest.pieces, rest.events = append(rest.reqs, r), append(rest.pieces, a.pieces[i]), append(rest.events, a.events[i])
			rest.places = append(rest.places, i)
		}
	}
	return rest
}

// run appends, and writes what comes with it: segments, the tasks of queries that read the
// series, events. It returns the places of the requests that it appended, and how many segments
// it began.
func (s *Store) run(ctx context.Context, u *db.Tx, a *appending) (written []int, ended int, err error) {
	var segments chunkRows
	var seqs []int64
	asking := map[int]int32{} // the numbers of series that are not direct, by place
	awaited := map[int]bool{}
	b := u.Batch()
	a.queue(b, u, appendPiece, appendPieces, []any{s.opts.FoldAfter}).Query(func(rows pgx.Rows) error {
		var i int
		var direct bool
		var number int32
		var seq int64
		var at *int64
		var segment []byte
		_, err := pgx.ForEachRow(rows, []any{&i, &direct, &number, &seq, &at, &segment}, func() error {
			i--
			r := a.reqs[i]
			written = append(written, i)
			if !direct {
				asking[i] = number
			}
			if segment != nil {
				segments.addTail(r.userKey, number, *at, r.parts[0].stop, segment)
				seqs = append(seqs, seq)
			}
			return nil
		})
		return err
	})
	names := outbox.Names{}
	var teams, users []uuid.UUID
	var resources []string
	for _, r := range a.reqs {
		teams, users, resources = append(teams, r.team.UUID), append(users, r.user.UUID), append(resources, r.parts[0].Key.Resource)
	}
	names.LookLive(b, teams, users) // after the lock: who takes a user away waits for it
	queueAwaited(b, teams, resources, func(i int) { awaited[i] = true })
	if err := u.Send(ctx, b); err != nil {
		return nil, 0, err
	}
	var events []healthlab.Event
	for _, i := range written {
		if _, live := names[a.reqs[i].ref()]; !live {
			return nil, 0, nil // what was appended is undone; a merge refuses it
		}
		events = append(events, a.events[i]...)
	}
	b = u.Batch()
	segments.queueSegments(b, seqs)
	a.queueAsking(b, asking, awaited)
	if err := s.messages.Emit(ctx, u, b, events, names); err != nil {
		return nil, 0, err
	}
	return written, len(seqs), u.Commit(ctx, b)
}

// queueAsking adds to a batch what schedules the queries that read the series which are not
// direct, and makes those direct that no query reads.
func (a *appending) queueAsking(b *pgx.Batch, numbers map[int]int32, awaited map[int]bool) {
	var news touched
	for i, r := range a.reqs {
		number, ok := numbers[i]
		switch {
		case !ok:
		case awaited[i]:
			news.add(r.userKey, r.parts[0].Key.Resource, r.parts[0].start, r.parts[0].stop)
		default:
			b.Queue(setDirect, r.user.UUID, number)
		}
	}
	news.queue(b)
}

// queueGrow adds to a batch what appends to tails; written gets the places of the requests that
// it appended.
func (a *appending) queueGrow(b *pgx.Batch, u *db.Tx, written *[]int) {
	a.queue(b, u, growTail, growTails, nil).Query(func(rows pgx.Rows) error {
		var i int
		_, err := pgx.ForEachRow(rows, []any{&i}, func() error {
			*written = append(*written, i-1)
			return nil
		})
		return err
	})
}

// queue adds a statement about the group to a batch.
func (a *appending) queue(b *pgx.Batch, u *db.Tx, one, some string, more []any) *pgx.QueuedQuery {
	sql, args := some, a.columns()
	if len(a.reqs) == 1 {
		r := a.reqs[0]
		sql = one
		args = append(r.args(&r.parts[0]), a.pieces[0], len(a.pieces[0]) > maxPiece)
	} else {
		u.PlanHints(b)
	}
	args = append(args, fullTail, maxSegments, maxSegmentBytes, a.only())
	return b.Queue(sql, append(args, more...)...)
}

// only is the user of the group, nil if there are several.
func (a *appending) only() *uuid.UUID {
	for _, r := range a.reqs {
		if r.user != a.reqs[0].user {
			return nil
		}
	}
	return &a.reqs[0].user.UUID
}

func (a *appending) team() healthlab.TeamID {
	for _, r := range a.reqs {
		if r.team != a.reqs[0].team {
			return db.AllTeams
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

const (
	appendBody = `
update healthlab.series s set last_at = $8
where s.user_id = $2 and s.resource = $3 and s.provider = $4 and s.source_type = $5 and s.part = $6 and s.team_id = $1 and s.last_at < $7
returning s.series, s.direct`

	selectLiveName = `select client_user_id from healthlab.users where team_id = $1 and user_id = $2 and deleted_at is null`
)

// appendChunks writes a request of one large batch as [Store.appendOne] does.
func (s *Store) appendChunks(ctx context.Context, r *request) (done bool, err error) {
	p := &r.parts[0]
	change, err := series.Apply(nil, nil, p.Samples, p.Span)
	if err != nil {
		return false, fmt.Errorf("batch 0: %w", err)
	}
	events, err := r.tell([]series.Outcome{allNew(p.n)})
	if err != nil {
		// It may not be so; the outcome that is decides.
		return false, nil //nolint:nilerr // asked again by mergeAll
	}
	if err := s.loadKeys(ctx, []*request{r}); err != nil {
		return false, err
	}
	err = s.db.Do(ctx, r.team, db.Writing, func(u *db.Tx) error {
		done = false
		var number int32
		var direct bool
		var name string
		b := u.Batch()
		b.Queue(appendBody, r.args(p)...).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&number, &direct}, func() error {
				done = true
				return nil
			})
			return err
		})
		b.Queue(selectLiveName, r.team.UUID, r.user.UUID).QueryRow(func(row pgx.Row) error { return row.Scan(&name) })
		if err := u.Send(ctx, b); errors.Is(err, pgx.ErrNoRows) {
			return noLiveUser()
		} else if err != nil || !done {
			return err
		}
		b = u.Batch()
		var rows chunkRows
		box := s.seriesOf(r.userKey, &p.Key)
		for i := range change.Put {
			if err := rows.add(ctx, box, r.userKey, number, &change.Put[i]); err != nil {
				return err
			}
		}
		rows.queue(b)
		if !direct {
			var news touched
			news.add(r.userKey, p.Key.Resource, p.start, p.stop)
			news.queue(b)
		}
		if err := s.messages.Emit(ctx, u, b, events, outbox.Names{r.ref(): name}); err != nil {
			return err
		}
		return u.Commit(ctx, b)
	})
	return done && err == nil, err
}
