package postgres

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
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

// room says whether n requests may go: beside others as a group that is no smaller, for a
// transaction costs the server as much as many requests do.
func (g *gathering) room(n int, s *Store) bool {
	return g.running == 0 || g.running < s.opts.Writers && n >= g.inFlight
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
		tail_closed = case when x.long then s.tail_closed else ` + fills + ` end,
		seq = s.seq + (x.long or ` + fills + `)::integer, segments = s.segments + (x.long or ` + fills + `)::integer,
		segment_bytes = s.segment_bytes + case when x.long then length(x.data) when ` + fills + ` then ` + newLength + ` else 0 end,
		fold_due = case when not (x.long or ` + fills + `) then s.fold_due
			when s.segments + 1 = $12 / 2 or s.segment_bytes < $13 / 2
				and s.segment_bytes + case when x.long then length(x.data) else ` + newLength + ` end >= $13 / 2 then now()
			else coalesce(s.fold_due, now() + $11::interval) end
	from `

	appendWhere = ` as x (team_id, user_id, resource, provider, source_type, part, start_at, stop_at, data, long, n)
	where s.user_id = x.user_id and s.resource = x.resource and s.provider = x.provider
		and s.source_type = x.source_type and s.part = x.part and s.team_id = x.team_id
		and s.last_at < x.start_at and s.segments < $12 and s.segment_bytes < $13
		and (s.direct or ` + isAwaited + ` and ` + isLive + `)
	returning x.n, x.resource, x.start_at, x.stop_at, s.user_id, s.series, s.seq, s.team_id, s.direct, x.long or s.tail_closed as ended,
		case when x.long then x.start_at else s.tail_at end as segment_at, case when x.long then x.data when s.tail_closed then s.tail end as segment
), i as (
	insert into healthlab.segment (user_id, series, seq, team_id, start_at, stop_at, header, data)
	select s.user_id, s.series, s.seq, s.team_id, s.segment_at, s.stop_at, '', s.segment from s where s.ended
), ` + touchAppended

	appendEnd = touchEnd + `
select n, direct, ended from s`

	// newLength is how long a tail becomes, fills whether that is enough.
	newLength = `(case when s.tail_closed then 0 else length(s.tail) end + length(x.data))`
	fills     = `(` + newLength + ` >= $10)`
)

// appending is a group of requests that are written without reading anything.
type appending struct {
	reqs    []*request
	data    [][]byte // pieces
	events  [][]healthlab.Event
	some    bool   // there are events
	room    []bool // where the tail is said to have room
	ask     []bool // where somebody is said to be asked, or the piece is long
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
		if i > 0 && same(single[i-1]) || i+1 < len(single) && same(single[i+1]) {
			rest = append(rest, r)
		} else if data, events, err := r.piece(); err != nil {
			rest = append(rest, r) // a merge decides, and says what is wrong
		} else {
			a.take(r, data, events)
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
	if !a.some {
		add := a.runMany
		if len(a.reqs) < fewRequests {
			add = a.runFew
		}
		for todo := a.small(s.tails); len(todo) > 0; todo = a.again(s.tails, &s.crowd, todo) {
			if err := write(func(ctx context.Context, u *unit) ([]int, error) { return add(ctx, u, todo) }); err != nil {
				return err
			}
		}
		if !slices.Contains(a.ask, true) {
			return nil
		}
	}
	return write(a.run)
}

func (a *appending) take(r *request, data []byte, events []healthlab.Event) {
	a.reqs, a.events = append(a.reqs, r), append(a.events, events)
	a.data, a.some = append(a.data, data), a.some || len(events) > 0
}

func (a *appending) team() healthlab.TeamID {
	for _, r := range a.reqs {
		if r.team != a.reqs[0].team {
			return allTeams
		}
	}
	return a.reqs[0].team
}

// queue adds the statement for those where somebody is to be asked, and for all where there
// are events.
func (a *appending) queue(b *pgx.Batch, s *Store, done *[]int) {
	var at []int    // of reqs
	var long []bool // too long for a tail
	for i := range a.reqs {
		if a.some || a.ask[i] {
			at, long = append(at, i), append(long, len(a.data[i]) > maxPiece)
		}
	}
	*done = nil
	limits := []any{fullTail, s.opts.FoldAfter, maxSegments, maxSegmentBytes}
	if len(at) > 1 {
		a.noteAsked(b.Queue(appendTails, a.columns(at, append(limits, long)...)...), s, at, done)
		return
	}
	r := a.reqs[at[0]]
	args := append(r.args(&r.parts[0]), a.data[at[0]])
	a.noteAsked(b.Queue(appendSingle, append(args, append(limits, long[0])...)...), s, at, done)
}

// noteAsked adds to done which of some pieces a statement wrote that asked, and forgets that
// it had to where it had not, or that it did where it was in vain.
func (a *appending) noteAsked(q *pgx.QueuedQuery, s *Store, at []int, done *[]int) {
	q.Query(func(rows pgx.Rows) error {
		had := make([]bool, len(at))
		var n int
		var direct, ended bool
		_, err := pgx.ForEachRow(rows, []any{&n, &direct, &ended}, func() error {
			*done, had[n-1] = append(*done, at[n-1]), !direct
			if ended {
				s.crowd.began(1)
			}
			return nil
		})
		for k, i := range at {
			if err == nil && !had[k] {
				s.tails.ask(a.reqs[i].userKey, &a.reqs[i].parts[0].Key, false)
			}
		}
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
