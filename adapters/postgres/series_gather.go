package postgres

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// gathering lets a few writes run side by side and gathers those that come meanwhile
// into groups, each a transaction.
type gathering struct {
	mu       sync.Mutex
	running  int // writes
	inFlight int // requests that they write
	waiting  []*request
}

const (
	// maxGroup is how many requests one transaction takes.
	maxGroup = 256
	// patience is how long a request waits for others to go with.
	patience = 10 * time.Millisecond
)

func (g *gathering) do(ctx context.Context, s *Store, r *request) error {
	g.mu.Lock()
	if len(g.waiting) == 0 && g.room(1, s) {
		g.running++
		g.inFlight++
		g.mu.Unlock()
		defer g.ended(ctx, s, 1)
		return s.mergeOne(ctx, r)
	}
	r.done = make(chan struct{})
	g.waiting = append(g.waiting, r)
	g.start(ctx, s, false)
	g.mu.Unlock()
	enough := time.NewTimer(patience)
	defer enough.Stop()
	for {
		select {
		case <-r.done:
			if r.panicked != nil {
				panic(r.panicked) // in the goroutine of whose closure it was
			}
			return r.err
		case <-ctx.Done():
			g.abandon(r)
			return ctx.Err()
		case <-enough.C:
			g.mu.Lock()
			g.start(ctx, s, true)
			g.mu.Unlock()
			enough.Reset(patience) // no place may have been free
		}
	}
}

// abandon takes the caller out of a request: nobody looks at its samples any more.
func (g *gathering) abandon(r *request) {
	g.mu.Lock()
	g.waiting = slices.DeleteFunc(g.waiting, func(w *request) bool { return w == r })
	g.mu.Unlock()
	r.mu.Lock()
	r.left = true
	leave := r.leave
	r.mu.Unlock()
	if leave != nil {
		leave()
	}
}

// room says whether n requests may go: beside a large group as one that is worth it, for
// a transaction costs the server as much as many requests do.
func (g *gathering) room(n int, s *Store) bool {
	return g.running == 0 || g.running < s.opts.Writers && 2*n >= g.inFlight
}

// start begins groups of those that wait, while there is room; if that was too long for
// one of them, while there is a place. The caller holds mu.
func (g *gathering) start(ctx context.Context, s *Store, tooLong bool) {
	for n := len(g.waiting); n > 0 && (g.room(n, s) || tooLong && g.running < s.opts.Writers); n = len(g.waiting) {
		// A share: while the server writes one group, this process makes the next.
		most := (len(g.waiting) + g.inFlight + s.opts.Writers - 1) / s.opts.Writers
		group := g.take(min(most, maxGroup), s.opts.RowSecurity)
		g.running++
		g.inFlight += len(group)
		go func() {
			defer g.ended(ctx, s, len(group))
			defer runtime.Gosched() // who was answered may have more to write
			s.mergeGroup(context.WithoutCancel(ctx), group)
		}()
	}
}

// ended gives the place of a write of n requests to those that wait, if any.
func (g *gathering) ended(ctx context.Context, s *Store, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.inFlight -= n
	g.start(ctx, s, false)
}

// take removes a group from those that wait. With row-level security a transaction is
// about one team.
func (g *gathering) take(most int, oneTeam bool) []*request {
	var group, rest []*request
	for _, r := range g.waiting {
		if len(group) < most && (!oneTeam || len(group) == 0 || r.team == group[0].team) {
			group = append(group, r)
		} else {
			rest = append(rest, r)
		}
	}
	g.waiting = rest
	return group
}

// mergeGroup writes the requests of several callers and answers each. It ends early
// when all of them have gone.
func (s *Store) mergeGroup(ctx context.Context, group []*request) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	here := len(group)
	leave := func() {
		mu.Lock()
		defer mu.Unlock()
		if here--; here == 0 {
			cancel()
		}
	}
	for _, r := range group {
		r.mu.Lock()
		if r.leave = leave; r.left {
			leave()
		}
		r.mu.Unlock()
	}
	group = s.appendGroup(ctx, group)
	if len(group) == 0 {
		return
	}
	err := s.mergeAll(ctx, group)
	if err != nil && len(group) > 1 && ctx.Err() == nil && healthlab.KindOf(err) != healthlab.Unavailable {
		// One of them cannot be written; the others can.
		for _, r := range group {
			if r.err == nil {
				r.err = s.mergeAll(ctx, []*request{r})
			}
		}
		err = nil
	}
	for _, r := range group {
		if r.err == nil {
			r.err = err
		}
		close(r.done)
	}
}

// The rows come in the order in which every writer locks them. A series that is not
// there, or where something is in the way, is left to a merge. What is too long for a
// tail becomes a segment at once, and a tail that is full does, as it is.
const (
	appendTails = appendTo + `unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bytea[],
		$14::boolean[]) with ordinality` + appendWhere + `any ($1)` + appendEnd

	// The same for one request.
	appendSingle = appendTo + `(values ($1::uuid, $2::uuid, $3::text, $4::text, $5::text, $6::text, $7::bigint, $8::bigint, $9::bytea,
		$14::boolean, 1))` + appendWhere + `$1` + appendEnd

	appendTo = `
with s as (
	update healthlab.series s
	set last_at = x.stop_at,
		tail_at = case when x.long then s.tail_at when s.tail_closed then x.start_at else coalesce(s.tail_at, x.start_at) end,
		tail = case when x.long then s.tail when s.tail_closed then x.data else x.data || s.tail end,
		tail_closed = case when x.long then s.tail_closed else ` + isFull + ` end,
		seq = s.seq + (x.long or ` + isFull + `)::integer, segments = s.segments + (x.long or ` + isFull + `)::integer,
		segment_bytes = s.segment_bytes + case when x.long then length(x.data) when ` + isFull + ` then ` + newLength + ` else 0 end,
		fold_due = case when x.long or ` + isFull + ` then coalesce(s.fold_due, now() + $11::interval) else s.fold_due end
	from `

	appendWhere = ` as x (team_id, user_id, resource, provider, source_type, part, start_at, stop_at, data, long, n)
	where s.user_id = x.user_id and s.resource = x.resource and s.provider = x.provider
		and s.source_type = x.source_type and s.part = x.part and s.team_id = x.team_id
		and s.last_at < x.start_at and s.segments < $12 and s.segment_bytes < $13
		and (select u.deleted_at is null from healthlab.users u where u.user_id = x.user_id and u.team_id = x.team_id)
	returning x.n, x.resource, x.start_at, x.stop_at, s.user_id, s.series, s.seq, s.team_id, x.long or s.tail_closed as ended,
		case when x.long then x.start_at else s.tail_at end as segment_at, case when x.long then x.data when s.tail_closed then s.tail end as segment
), i as (
	insert into healthlab.segment (user_id, series, seq, team_id, start_at, stop_at, header, data)
	select s.user_id, s.series, s.seq, s.team_id, s.segment_at, s.stop_at, '', s.segment from s where s.ended
), ` + touchSeveral

	appendEnd = touchEnd + `
select n from s`

	// newLength is how long a tail becomes, isFull whether that is enough.
	newLength = `(case when s.tail_closed then 0 else length(s.tail) end + length(x.data))`
	isFull    = `(` + newLength + ` >= $10)`
)

// appending is a group of requests that are written without reading anything.
type appending struct {
	reqs    []*request
	data    [][]byte // pieces
	events  [][]healthlab.Event
	some    bool // there are events
	written []bool
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
			rest = append(rest, r) // a merge decides, and says what is wrong
		}
	}
	if len(a.reqs) == 0 {
		return rest
	}
	err := s.append(ctx, a)
	for i, r := range a.reqs {
		switch {
		case a.written[i]:
			r.answer(nil)
		case err != nil && (ctx.Err() != nil || healthlab.KindOf(err) == healthlab.Unavailable):
			r.answer(err)
		default:
			rest = append(rest, r)
		}
	}
	return rest
}

// fewRequests is how many requests go one statement each, which is simple; more share a
// statement, which takes the server long to begin.
const fewRequests = 12

// append writes a group, first what is simple, and notes what was written.
func (s *Store) append(ctx context.Context, a *appending) error {
	a.written = make([]bool, len(a.reqs))
	write := func(run func(context.Context, *unit) ([]int, error)) error {
		var done []int
		err := s.do(ctx, a.team(), writing, func(u *unit) (err error) {
			done, err = run(ctx, u)
			return err
		})
		if err == nil {
			for _, i := range done {
				a.written[i] = true
			}
		}
		return err
	}
	if !a.some && len(a.reqs) < fewRequests {
		// Where there was no room for the smallest ones, it is made.
		most, tiny := maxPiece, tinyPiece
		for range 2 {
			if at := a.left(most); len(at) > 0 {
				if err := write(func(ctx context.Context, u *unit) ([]int, error) { return a.runFew(ctx, u, at, tiny) }); err != nil {
					return err
				}
			}
			most, tiny = tinyPiece, 0
		}
		if !slices.Contains(a.written, false) {
			return nil
		}
	}
	return write(a.run)
}

// add takes a request, with the events of samples that are all new.
func (a *appending) add(r *request) error {
	p := &r.parts[0]
	var data []byte
	var events []healthlab.Event
	err := r.hold(func() (err error) {
		if data, err = series.NewPiece(p.Samples); err != nil || r.events == nil {
			return err
		}
		events, err = r.tell([]series.Outcome{allNew(p.n)})
		return err
	})
	if err != nil {
		return err
	}
	a.reqs, a.events = append(a.reqs, r), append(a.events, events)
	a.data, a.some = append(a.data, data), a.some || len(events) > 0
	return nil
}

func (a *appending) team() healthlab.TeamID {
	for _, r := range a.reqs {
		if r.team != a.reqs[0].team {
			return allTeams
		}
	}
	return a.reqs[0].team
}

// left returns the places of the pieces of at most so many bytes that are not written.
func (a *appending) left(most int) (at []int) {
	for i, done := range a.written {
		if !done && len(a.data[i]) <= most {
			at = append(at, i)
		}
	}
	return at
}

// runFew adds some pieces to their tails, if no question waits for them: those of at most
// tiny bytes where there is room, the others in any case.
func (a *appending) runFew(ctx context.Context, u *unit, at []int, tiny int) (done []int, err error) {
	statement := func(i int) (sql string, args []any) {
		r := a.reqs[i]
		args = append(r.args(&r.parts[0]), a.data[i], fullTail)
		if len(a.data[i]) <= tiny {
			return appendRoom, args
		}
		return appendTail, append(args, u.store.opts.FoldAfter, maxSegments, maxSegmentBytes)
	}
	if len(at) == 1 {
		sql, args := statement(at[0])
		tag, err := u.exec(ctx, sql, args...)
		if err == nil && tag.RowsAffected() > 0 {
			done = at
		}
		return done, err
	}
	err = u.alone(ctx, func(b *pgx.Batch) {
		for _, i := range at {
			sql, args := statement(i)
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

// queue adds the statement for those that are not written yet.
func (a *appending) queue(b *pgx.Batch, s *Store, done *[]int) {
	var at []int // of reqs
	var keys keyColumns
	var starts, stops []int64
	var data [][]byte
	var long []bool // too long for a tail
	for i, r := range a.reqs {
		if !a.written[i] {
			p := &r.parts[0]
			at = append(at, i)
			keys.addKey(r.userKey, &p.Key)
			starts, stops = append(starts, p.start), append(stops, p.stop)
			data, long = append(data, a.data[i]), append(long, len(a.data[i]) > maxPiece)
		}
	}
	sql, limits := appendTails, []any{fullTail, s.opts.FoldAfter, maxSegments, maxSegmentBytes}
	var args []any
	if len(at) == 1 {
		r := a.reqs[at[0]]
		sql, args = appendSingle, append(r.args(&r.parts[0]), append(append([]any{data[0]}, limits...), long[0])...)
	} else {
		args = keys.args(append([]any{starts, stops, data}, append(limits, long)...)...)
	}
	*done = nil
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		var n int
		_, err := pgx.ForEachRow(rows, []any{&n}, func() error {
			*done = append(*done, at[n-1])
			return nil
		})
		return err
	})
}

// run appends what is not written yet, with the events of what was.
func (a *appending) run(ctx context.Context, u *unit) (done []int, err error) {
	if !a.some {
		err = u.alone(ctx, func(b *pgx.Batch) {
			u.steady(b)
			a.queue(b, u.store, &done)
		})
		return done, err
	}
	b := u.batch()
	u.steady(b)
	a.queue(b, u.store, &done)
	names := names{}
	var teams, users []uuid.UUID
	for _, r := range a.reqs {
		teams, users = append(teams, r.team.UUID), append(users, r.user.UUID)
	}
	names.lookLive(b, teams, users)
	if err := u.send(ctx, b); err != nil {
		return nil, err
	}
	var events []healthlab.Event
	for _, i := range done {
		events = append(events, a.events[i]...)
	}
	b = u.batch()
	if err := u.emit(ctx, b, events, names); err != nil {
		return nil, err
	}
	return done, u.commit(ctx, b)
}
