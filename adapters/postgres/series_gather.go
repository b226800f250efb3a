package postgres

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// gathering lets a few writes run side by side and gathers those that come meanwhile:
// whoever finishes takes all that wait into one transaction.
type gathering struct {
	mu      sync.Mutex
	running int
	waiting []*request
}

// maxGroup is how many requests one transaction takes.
const maxGroup = 256

func (g *gathering) do(ctx context.Context, s *Store, r *request) error {
	g.mu.Lock()
	if g.running < s.opts.Writers {
		g.running++
		g.mu.Unlock()
		defer g.next(ctx, s)
		return s.mergeOne(ctx, r)
	}
	r.done = make(chan struct{})
	g.waiting = append(g.waiting, r)
	g.mu.Unlock()
	select {
	case <-r.done:
	case <-ctx.Done():
		g.abandon(r)
		return ctx.Err()
	}
	if r.panicked != nil {
		panic(r.panicked) // in the goroutine of whose closure it was
	}
	return r.err
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

// next hands the place of a write that has ended to those that wait, if any.
func (g *gathering) next(ctx context.Context, s *Store) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.running--
		return
	}
	group := g.take(s.opts.RowSecurity)
	go func() {
		defer g.next(ctx, s)
		s.mergeGroup(context.WithoutCancel(ctx), group)
	}()
}

// take removes a group from those that wait. With row-level security a transaction is
// about one team.
func (g *gathering) take(oneTeam bool) []*request {
	var group, rest []*request
	for _, r := range g.waiting {
		if len(group) < maxGroup && (!oneTeam || len(group) == 0 || r.team == group[0].team) {
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

// The rows are locked in the order in which every writer locks them. A series that is
// not there, or where something is in the way, is left to a merge.
const appendSegments = `
with x as materialized (
	select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[],
			$7::bigint[], $8::bigint[], $9::integer[], $10::bytea[], $11::bytea[]) with ordinality
		as x (team_id, user_id, resource, provider, source_type, part, start_at, stop_at, size, header, data, n)
), l as materialized (
	select x.n, s.user_id, s.series
	from x
	join healthlab.series s on s.user_id = x.user_id and s.resource = x.resource and s.provider = x.provider
		and s.source_type = x.source_type and s.part = x.part and s.team_id = x.team_id
	join healthlab.users u on u.user_id = x.user_id and u.team_id = x.team_id and u.deleted_at is null
	where s.last_at < x.start_at and s.segments < $13 and s.segment_bytes < $14
	order by s.user_id, s.series
	for no key update of s
), s as (
	update healthlab.series s
	set last_at = x.stop_at, seq = s.seq + 1, segments = s.segments + 1, segment_bytes = s.segment_bytes + x.size,
		fold_due = coalesce(s.fold_due, now() + $12::interval)
	from l join x on x.n = l.n
	where s.user_id = l.user_id and s.series = l.series
	returning x.n, s.user_id, s.series, s.seq, s.team_id
), i as (
	insert into healthlab.segment (user_id, series, seq, team_id, start_at, stop_at, header, data)
	select s.user_id, s.series, s.seq, s.team_id, x.start_at, x.stop_at, x.header, x.data from s join x on x.n = s.n
), ` + touchSeveral + `
select n from s`

// appending is a group of requests that are written without reading anything.
type appending struct {
	reqs   []*request
	events [][]healthlab.Event
	some   bool // there are events

	keys          keyColumns
	starts, stops []int64
	sizes         []int32
	headers, data [][]byte
	written       []bool
}

// appendGroup writes those requests of a group that come after all samples of their
// series, answers them, and returns the others.
func (s *Store) appendGroup(ctx context.Context, group []*request) (rest []*request) {
	times := map[lineKey]int{}
	for _, r := range group {
		for i := range r.parts {
			times[lineKey{r.userKey, r.parts[i].Key}]++
		}
	}
	a := &appending{}
	for _, r := range group {
		if len(r.parts) != 1 || r.parts[0].n >= wholeChunk || times[lineKey{r.userKey, r.parts[0].Key}] > 1 || a.add(r) != nil {
			rest = append(rest, r) // a merge decides, and says what is wrong
		}
	}
	if len(a.reqs) == 0 {
		return rest
	}
	err := s.do(ctx, a.team(), writing, func(u *unit) error { return a.run(ctx, u) })
	for i, r := range a.reqs {
		switch {
		case err == nil && a.written[i]:
			r.answer(nil)
		case err != nil && (ctx.Err() != nil || healthlab.KindOf(err) == healthlab.Unavailable):
			r.answer(err)
		default:
			rest = append(rest, r)
		}
	}
	return rest
}

// add takes a request, with the events of samples that are all new.
func (a *appending) add(r *request) error {
	p := &r.parts[0]
	var c series.Chunk
	var events []healthlab.Event
	err := r.hold(func() (err error) {
		if c, err = series.NewChunk(p.Samples); err != nil {
			return err
		}
		events, err = r.tell([]series.Outcome{allNew(p.n)})
		return err
	})
	if err != nil {
		return err
	}
	a.reqs, a.events = append(a.reqs, r), append(a.events, events)
	a.some = a.some || len(events) > 0
	a.keys.addKey(r.userKey, &p.Key)
	a.starts, a.stops = append(a.starts, c.Start), append(a.stops, c.Stop)
	a.sizes = append(a.sizes, int32(c.Size))
	a.headers, a.data = append(a.headers, c.Append(nil)), append(a.data, c.Data)
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

func (a *appending) queue(b *pgx.Batch, s *Store) {
	a.written = make([]bool, len(a.reqs))
	b.Queue(appendSegments, a.keys.args(a.starts, a.stops, a.sizes, a.headers, a.data, s.opts.FoldAfter, maxSegments, maxSegmentBytes)...).
		Query(func(rows pgx.Rows) error {
			var n int
			_, err := pgx.ForEachRow(rows, []any{&n}, func() error {
				a.written[n-1] = true
				return nil
			})
			return err
		})
}

func (a *appending) run(ctx context.Context, u *unit) error {
	if !a.some {
		return u.alone(ctx, func(b *pgx.Batch) { a.queue(b, u.store) })
	}
	b := u.batch()
	a.queue(b, u.store)
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
	for i := range a.reqs {
		if a.written[i] {
			events = append(events, a.events[i]...)
		}
	}
	b = u.batch()
	if err := u.emit(ctx, b, events, names); err != nil {
		return err
	}
	return u.commit(ctx, b)
}
