package pull

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/linking"
)

// parking keeps this process from claiming tasks of applications that have no slot for a
// while. Another process finds out for itself.
type parking struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (p *parking) park(app string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until[app] = until
}

// parked returns the applications whose time has not come, sorted.
func (p *parking) parked(now time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.until, func(_ string, until time.Time) bool { return !until.After(now) })
	return slices.Sorted(maps.Keys(p.until))
}

// Wake makes this process look for tasks at once.
func (s *Service) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run fetches until ctx ends, then lets what is running finish and returns nil. Run it in
// at least one process; any number may.
func (s *Service) Run(ctx context.Context) error {
	var both sync.WaitGroup
	both.Go(func() { _ = s.connections().Run(ctx) })
	err := s.pulls().Run(ctx)
	both.Wait()
	return err
}

// connections looks after those that are due.
func (s *Service) connections() *work.Loop[Ref] {
	return &work.Loop[Ref]{
		Name: "connections", Idle: s.opts.Idle, Log: s.opts.Log, Do: s.tend, Workers: 4,
		Claim: func(ctx context.Context, n int) ([]Ref, error) {
			now := s.now()
			return s.store.ClaimConnections(ctx, n, now, now.Add(tendLease))
		},
	}
}

// pulls does the tasks that are due.
func (s *Service) pulls() *work.Loop[job] {
	return &work.Loop[job]{
		Name: "pulls", Idle: s.opts.Idle, Wake: s.wake, Log: s.opts.Log, Workers: s.opts.Workers,
		Claim: func(ctx context.Context, n int) ([]job, error) { return s.claim(ctx, n, &s.lanes) },
		Do: func(ctx context.Context, j job) error {
			defer func() {
				if s.lanes.release(&j.claimed) {
					s.Wake()
				}
			}()
			return s.pull(ctx, j)
		},
	}
}

// job is a claimed task with a slot for its request.
type job struct {
	Task
	claimed     Task // as it was claimed: pull changes the other
	user        healthdata.User
	historyOver bool
	slot        time.Time
}

// claim takes tasks that are due, and reserves their slots in the order of their turns.
// Those that get none, or for which l has no room, are given back. Without l there is room
// for all.
func (s *Service) claim(ctx context.Context, n int, l *lanes) ([]job, error) {
	var jobs []job
	var faults []error
	for range maxClaims { // behind tasks that cannot go on now, there may be some that can
		now := s.now()
		without := s.parked.parked(now)
		if l != nil {
			without = append(without, l.full()...)
		}
		tasks, err := s.store.Claim(ctx, ClaimQuery{N: n, Without: without, Now: now, Lease: s.opts.Lease})
		if err != nil {
			return nil, err
		}
		for _, t := range tasks {
			j, ok, err := s.admit(ctx, t, l)
			if ok {
				jobs = append(jobs, j)
			}
			faults = append(faults, err)
		}
		if len(jobs) > 0 {
			return jobs, nil // the lease brings back what failed
		}
		if len(tasks) < n {
			break
		}
	}
	return nil, errors.Join(faults...)
}

// admit prepares a claimed task, if there is room for it. A task of an application that is
// full waits until the application has room: claims leave it out. One of a full team waits
// for a moment.
func (s *Service) admit(ctx context.Context, t Task, l *lanes) (job, bool, error) {
	if l == nil {
		return s.prepare(ctx, t)
	}
	if full := l.take(&t); full != laneFree {
		again := s.now().Add(s.opts.Idle)
		return job{}, false, s.settle(ctx, t, only(func(t *Task) {
			if t.Lease = (time.Time{}); full == teamFull {
				t.Due = again
			}
		}))
	}
	j, ok, err := s.prepare(ctx, t)
	if !ok {
		l.release(&t)
	}
	return j, ok, err
}

// maxClaims bounds how often one claim looks for work.
const maxClaims = 200

// Step does what is due now, and returns how many connections and tasks it took up: for
// hosts that bring their own scheduler, and for tests. A provider that fails is not an
// error.
func (s *Service) Step(ctx context.Context) (int, error) {
	tended, first := s.connections().Once(ctx, 100)
	once := work.Loop[job]{Name: "pulls", Do: s.pull, Claim: func(ctx context.Context, n int) ([]job, error) { return s.claim(ctx, n, nil) }}
	pulled, second := once.Once(ctx, s.opts.Workers)
	return tended + pulled, errors.Join(first, second)
}

// errLost says that another process has the task.
var errLost = errors.New("the lease is over")

// settle records what became of a task, unless its lease went to another process.
func (s *Service) settle(ctx context.Context, t Task, change func(*Task) ([]healthlab.Event, error)) error {
	_, err := s.store.Update(ctx, t.Key, func(now *Task) ([]healthlab.Event, error) {
		if now.Fence != t.Fence {
			return nil, errLost
		}
		return change(now)
	})
	if errors.Is(err, errLost) || errors.Is(err, healthlab.NotFound) {
		return nil
	}
	return err
}

// only makes a change of one without events.
func only(change func(*Task)) func(*Task) ([]healthlab.Event, error) {
	return func(t *Task) ([]healthlab.Event, error) {
		change(t)
		return nil, nil
	}
}

// prepare finds out whether a claimed task can go on, and reserves its slot.
func (s *Service) prepare(ctx context.Context, t Task) (j job, ok bool, err error) {
	u, err := s.users.User(ctx, t.Team, t.User)
	if err != nil && !errors.Is(err, healthlab.NotFound) {
		return j, false, err
	}
	c := u.Connection(t.Provider)
	if err != nil || c == nil || c.Status != healthdata.Connected || !c.LinkedAt.Equal(t.Linked) || s.puller(c) == nil {
		return j, false, s.settle(ctx, t, only((*Task).stop))
	}
	j = job{Task: t, claimed: t, user: u, historyOver: true}
	if t.Kind == News && !t.running() {
		if j.historyOver, err = s.historyOver(ctx, &t); err != nil {
			return j, false, err
		}
		if at := s.now(); !j.historyOver && t.Turn >= 0 && !t.hurried() { // no refresh asked for it: history comes first
			return j, false, s.settle(ctx, t, only(func(t *Task) { t.Due, t.Lease = at.Add(s.opts.Every), time.Time{} }))
		}
	}
	j.slot, ok, err = s.reserve(ctx, &t, c)
	return j, ok, err
}

// pull makes one request of a claimed task.
func (s *Service) pull(ctx context.Context, j job) error {
	t, u := j.Task, j.user
	c := u.Connection(t.Provider)
	var access linking.Access
	if !c.Demo {
		var err error
		if access, err = s.keeper.Secret(ctx, t.Team, t.User, t.Provider); err != nil {
			return s.failed(ctx, t, err)
		}
	}
	if err := pause(ctx, j.slot.Sub(s.now())); err != nil {
		return err
	}
	if late := s.now(); late.Sub(j.slot) > s.opts.Ahead { // renewing the secret took its time
		return s.settle(ctx, t, only(func(t *Task) { t.Lease = time.Time{} }))
	}
	now := s.now()
	t.begin(now, j.historyOver, &s.opts)
	followers, err := s.followers(ctx, &t)
	if err != nil {
		return err
	}
	from, to := t.piece(&s.opts)
	with := []string{}
	for i := range followers {
		with = append(with, followers[i].Resource)
	}
	page, err := s.ask(ctx, s.puller(c), linking.PullRequest{
		Secret: access.Secret, User: t.User, ExternalUserID: c.ExternalUserID, Resource: t.Resource, With: with,
		From: from, To: to, Zone: u.Location(), Cursor: t.Cursor, Trace: t.Trace(),
	})
	if err != nil {
		return s.refused(ctx, t, c, access, err)
	}
	return s.keep(ctx, t, followers, c, page)
}

// historyOver reports whether the history of a task's resource came to its end.
func (s *Service) historyOver(ctx context.Context, t *Task) (bool, error) {
	tasks, err := s.store.Tasks(ctx, t.Team, t.User)
	if err != nil {
		return false, err
	}
	key := t.Key
	key.Kind = History
	i := slices.IndexFunc(tasks, func(h Task) bool { return h.Key == key })
	return i < 0 || tasks[i].Status == Success || tasks[i].Status == Failure, nil
}

// ask calls a puller.
func (s *Service) ask(ctx context.Context, p linking.Puller, r linking.PullRequest) (linking.PullPage, error) {
	ctx, stop := context.WithTimeout(ctx, s.opts.Timeout)
	defer stop()
	page, err := p.Pull(ctx, r)
	if err == nil && page.Next != "" && page.Next == r.Cursor {
		err = fmt.Errorf("%w: the provider's cursor does not move", healthlab.Unavailable)
	}
	return page, err
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// keys returns the budgets of a request, and the limit of each; nil if it is only for what
// the provider says.
func (s *Service) keys(t *Task, c *healthdata.Connection) ([]BudgetKey, []*Limit) {
	if c.Demo {
		return nil, nil
	}
	l := s.opts.Limits[t.Provider]
	keys := []BudgetKey{t.appBudget("app"), {Team: t.Team, User: t.User, Provider: t.Provider, Name: "user"}}
	limits := []*Limit{nil, nil}
	for i := range l.App {
		keys, limits = append(keys, t.appBudget(fmt.Sprint("app ", i))), append(limits, &l.App[i])
	}
	for i := range l.User {
		keys = append(keys, BudgetKey{Team: t.Team, User: t.User, Provider: t.Provider, Name: fmt.Sprint("user ", i)})
		limits = append(limits, &l.User[i])
	}
	return keys, limits
}

// reserve takes the next slot that all budgets have, if it comes soon. If it does not,
// nothing is taken, the task is given back, and other tasks of the application wait, too.
func (s *Service) reserve(ctx context.Context, t *Task, c *healthdata.Connection) (slot time.Time, ok bool, err error) {
	now := s.now()
	keys, limits := s.keys(t, c)
	if len(keys) == 0 {
		return now, true, nil
	}
	if slices.Contains(s.parked.parked(now), t.App()) {
		return now, false, s.settle(ctx, *t, only(func(t *Task) { t.Lease = time.Time{} }))
	}
	var app, own time.Time
	err = s.store.UpdateBudgets(ctx, keys, func(b []Budget) error {
		app, own = now, now
		for i := range b {
			if keys[i].User.IsZero() {
				app = b[i].slot(app, limits[i])
			} else {
				own = b[i].slot(own, limits[i])
			}
		}
		if slot = later(app, own); slot.Sub(now) > s.opts.Ahead {
			return errFull
		}
		for i := range b {
			b[i].take(slot, limits[i])
		}
		return nil
	})
	if !errors.Is(err, errFull) {
		return slot, err == nil, err
	}
	due := t.Due
	if app.Sub(now) > s.opts.Ahead {
		s.parked.park(t.App(), app.Add(-s.opts.Ahead))
	} else {
		due = own.Add(-s.opts.Ahead / 2)
	}
	return slot, false, s.settle(ctx, *t, only(func(t *Task) { t.Due, t.Lease = due, time.Time{} }))
}

// errFull says that there is no slot soon.
var errFull = errors.New("no slot soon")

// told passes on what a provider said of its limits.
func (s *Service) told(ctx context.Context, t *Task, rates []linking.Rate, limited *linking.RateError) (until time.Time, err error) {
	now := s.now()
	keys := []BudgetKey{t.appBudget("app"), {Team: t.Team, User: t.User, Provider: t.Provider, Name: "user"}}
	if len(rates) == 0 && limited == nil {
		return time.Time{}, nil
	}
	err = s.store.UpdateBudgets(ctx, keys, func(b []Budget) error {
		until = time.Time{}
		at := func(scope linking.RateScope) *Budget {
			if scope == linking.RateUser {
				return &b[1]
			}
			return &b[0]
		}
		for _, r := range rates {
			at(r.Scope).told(r.Remaining, r.Reset.UTC(), now)
		}
		if limited == nil {
			b[0].Refusals, b[1].Refusals = 0, 0
		} else {
			until = at(limited.Scope).refused(limited.Wait, now)
		}
		return nil
	})
	return until, err
}

// refused records that a provider gave no data.
func (s *Service) refused(ctx context.Context, t Task, c *healthdata.Connection, access linking.Access, cause error) error {
	var over *linking.GrantError
	var limited *linking.RateError
	switch {
	case c.Demo:
	case errors.As(cause, &over):
		if err := s.keeper.Fail(ctx, t.Team, t.User, t.Provider, access, over); err != nil {
			return err
		}
	case errors.As(cause, &limited):
		until, err := s.told(ctx, &t, nil, limited)
		if err != nil {
			return err
		}
		now := s.now()
		return s.settle(ctx, t, only(func(t *Task) { t.fail(RateLimited, max(until.Sub(now), time.Microsecond), now, &s.opts) }))
	case errors.Is(cause, healthlab.Unauthenticated):
		if _, err := s.keeper.Renew(ctx, t.Team, t.User, t.Provider, access); err != nil {
			cause = err
			break
		}
		now := s.now()
		if t.Failures == 0 { // the first time, it is done at once
			return s.settle(ctx, t, only(func(t *Task) { t.Failures, t.Due, t.Lease = 1, now, time.Time{} }))
		}
	}
	return s.failed(ctx, t, cause)
}

// failed records that a try failed.
func (s *Service) failed(ctx context.Context, t Task, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err() // we stop; the lease brings the task back
	}
	class := ProviderDown
	var over *linking.GrantError
	switch {
	case errors.As(cause, &over), errors.Is(cause, healthlab.Invalid), errors.Is(cause, healthlab.Unimplemented):
		class = NonRetriable
	case errors.Is(cause, healthlab.NotFound): // the connection went away
		return s.settle(ctx, t, only((*Task).stop))
	case errors.Is(cause, context.DeadlineExceeded):
		class = TransportFailure
	}
	var wait time.Duration
	var hint interface{ RetryAfter() time.Duration }
	if errors.As(cause, &hint) {
		wait = min(hint.RetryAfter(), maxBlock)
	}
	s.opts.Log.InfoContext(ctx, "pull failed", "task", t.Key, "trace", t.Trace(), "class", string(class), "kind", healthlab.KindOf(cause).Error())
	now, tried := s.now(), t
	if tried.fail(class, wait, now, &s.opts) && over == nil && t.Kind == History { // before it is stored: a process may stop between
		if err := s.release(ctx, &t); err != nil {
			return err
		}
	}
	return s.settle(ctx, t, only(func(t *Task) {
		t.fail(class, wait, now, &s.opts)
		if over != nil {
			t.stop()
		}
	}))
}
