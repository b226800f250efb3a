package postgres

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
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
	// spreadWriters is how many times more groups are written where each is of one user.
	spreadWriters = 8
	// patience is how long a request waits for others to go with.
	patience = 10 * time.Millisecond
)

// MergeSamples writes small batches of concurrent callers together, and returns after
// the commit of what it wrote.
func (d data) MergeSamples(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, batches []healthdata.SampleBatch,
	events func([]series.Outcome) ([]healthlab.Event, error),
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := healthdata.CheckBatches(batches); err != nil {
		return err
	}
	r := newRequest(ctx, team, user, batches, events)
	if d.s.db.Pool == nil || r.samples() > grouped {
		return d.s.mergeOne(ctx, r)
	}
	if _, err := d.s.isSpread(ctx); err != nil {
		return err
	}
	return d.s.writes.do(ctx, d.s, r)
}

// mergeOne writes one request by itself.
func (s *Store) mergeOne(ctx context.Context, r *request) error {
	if len(r.parts) == 1 {
		if done, err := s.appendOne(ctx, r); done || err != nil {
			return err
		}
	}
	return s.mergeAll(ctx, []*request{r})
}

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

// abandon takes the caller out of a request. Its samples are not read after that.
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
	return g.running == 0 || g.running < s.writers() && n >= g.inFlight
}

// start begins groups of those that wait, while there is room; if that was too long for
// one of them, while there is a place. The caller holds mu.
func (g *gathering) start(ctx context.Context, s *Store, tooLong bool) {
	for n := len(g.waiting); n > 0 && (g.room(n, s) || tooLong && g.running < s.writers()); n = len(g.waiting) {
		// A share: while the server writes one group, this process makes the next.
		most := (len(g.waiting) + g.inFlight + s.opts.Writers - 1) / s.opts.Writers
		group := g.take(min(most, maxGroup), s.together)
		g.running++
		g.inFlight += len(group)
		go func() {
			defer g.ended(ctx, s, len(group))
			defer runtime.Gosched() // who was answered may have more to write
			s.mergeGroup(healthlab.WithTrace(context.WithoutCancel(ctx), ""), group)
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

// together reports whether two requests may go into one transaction: with row-level security
// it is about one team, and about one user where users are spread over machines.
func (s *Store) together(a, b *request) bool {
	return (!s.opts.RowSecurity || a.team == b.team) && (!s.spread.Load() || a.user == b.user)
}

// writers is how many groups are written side by side. Those of one user are small.
func (s *Store) writers() int {
	if s.spread.Load() {
		return spreadWriters * s.opts.Writers
	}
	return s.opts.Writers
}

// take removes a group from those that wait.
func (g *gathering) take(most int, together func(a, b *request) bool) []*request {
	var group, rest []*request
	for _, r := range g.waiting {
		if len(group) < most && (len(group) == 0 || together(r, group[0])) {
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
