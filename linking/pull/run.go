package pull

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/linking"
)

// Run fetches data until ctx ends, then waits for running requests and returns nil. At least one process must
// run it; any number may.
func (s *Service) Run(ctx context.Context) error {
	var both sync.WaitGroup
	both.Go(func() { _ = s.connections().Run(ctx) })
	err := s.pulls().Run(ctx)
	both.Wait()
	return err
}

// connections returns the loop that processes due connections.
func (s *Service) connections() *work.Loop[Ref] {
	return &work.Loop[Ref]{
		Name: "connections", Idle: s.opts.Idle, Log: s.opts.Log, Do: s.maintainConnection, Workers: 4,
		Claim: func(ctx context.Context, n int) ([]Ref, error) {
			now := s.now()
			return s.store.ClaimConnections(ctx, n, now, now.Add(maintainLease))
		},
	}
}

// pulls returns the loop that runs due tasks.
func (s *Service) pulls() *work.Loop[job] {
	return &work.Loop[job]{
		Name: "pulls", Idle: s.opts.Idle, Wake: s.wake, Log: s.opts.Log, Workers: s.opts.Workers,
		Claim: func(ctx context.Context, n int) ([]job, error) { return s.claim(ctx, n, &s.limiter) },
		Do: func(ctx context.Context, j job) error {
			defer func() {
				if s.limiter.release(&j.claimed) {
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
	claimed     Task // the task as it was claimed; Service.pull changes the embedded Task
	user        healthdata.User
	historyOver bool
	slot        time.Time
}

// claim claims due tasks in the order of Task.Turn, and reserves a slot of the provider's request limit for each. Tasks
// without a slot, or for which l has no free worker, are released. A nil l does not limit workers.
func (s *Service) claim(ctx context.Context, n int, l *workerLimiter) ([]job, error) {
	var jobs []job
	var faults []error
	for range maxClaims { // later tasks may be able to run if the first ones cannot
		now := s.now()
		without := s.blocked.list(now)
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
			return jobs, nil // the lease returns failed tasks to the queue
		}
		if len(tasks) < n {
			break
		}
	}
	return nil, errors.Join(faults...)
}

// admit prepares a claimed task, if there is room for it. Claims skip an application without room until it has
// room. A task of a team without room waits a moment.
func (s *Service) admit(ctx context.Context, t Task, l *workerLimiter) (job, bool, error) {
	if l == nil {
		return s.prepare(ctx, t)
	}
	if full := l.take(&t); full != hasRoom {
		again := s.now().Add(s.opts.Idle)
		return job{}, false, s.updateClaimed(ctx, t, withoutEvents(func(t *Task) {
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

// maxClaims is how often one claim retries.
const maxClaims = 200

// Step runs due work and returns the number of connections and tasks that it processed. Hosts with their own
// scheduler and tests call it. A failing provider is not an error.
func (s *Service) Step(ctx context.Context) (int, error) {
	tended, first := s.connections().Once(ctx, 100)
	once := work.Loop[job]{Name: "pulls", Do: s.pull, Claim: func(ctx context.Context, n int) ([]job, error) { return s.claim(ctx, n, nil) }}
	pulled, second := once.Once(ctx, s.opts.Workers)
	return tended + pulled, errors.Join(first, second)
}

// prepare decides whether a claimed task can run, and reserves its slot.
func (s *Service) prepare(ctx context.Context, t Task) (j job, ok bool, err error) {
	u, err := s.users.User(ctx, t.Team, t.User)
	if err != nil && !errors.Is(err, healthlab.NotFound) {
		return j, false, err
	}
	c := u.Connection(t.Provider)
	if err != nil || u.Closed(s.now()) || c == nil || c.Status != healthdata.Connected || !c.LinkedAt.Equal(t.Linked) || s.puller(c) == nil {
		return j, false, s.updateClaimed(ctx, t, withoutEvents((*Task).stop))
	}
	j = job{Task: t, claimed: t, user: u, historyOver: true}
	if t.Kind == News && !t.running() {
		if j.historyOver, err = s.historyOver(ctx, &t); err != nil {
			return j, false, err
		}
		if at := s.now(); !j.historyOver && t.Turn >= 0 && !t.hasUnseenNews() { // without a refresh, history is fetched first
			return j, false, s.updateClaimed(ctx, t, withoutEvents(func(t *Task) { t.Due, t.Lease = at.Add(s.opts.Every), time.Time{} }))
		}
	}
	j.slot, ok, err = s.reserve(ctx, &t, c)
	return j, ok, err
}

// pull makes one request of a claimed task.
func (s *Service) pull(ctx context.Context, j job) error {
	t, u := j.Task, j.user
	c := u.Connection(t.Provider)
	var access linking.GrantSecret
	if !c.Demo {
		var err error
		if access, err = s.credentials.Secret(ctx, t.Team, t.User, t.Provider); err != nil {
			return s.recordFailure(ctx, t, err)
		}
	}
	if err := pause(ctx, j.slot.Sub(s.now())); err != nil {
		return err
	}
	if late := s.now(); late.Sub(j.slot) > s.opts.Ahead { // renewing the secret took too long for the slot
		return s.updateClaimed(ctx, t, withoutEvents(func(t *Task) { t.Lease = time.Time{} }))
	}
	now := s.now()
	t.begin(now, j.historyOver, &s.opts)
	followers, err := s.followers(ctx, &t)
	if err != nil {
		return err
	}
	from, to := t.piece()
	with := []string{}
	for i := range followers {
		with = append(with, followers[i].Resource)
	}
	page, err := s.ask(ctx, s.puller(c), linking.PullRequest{
		Secret: access.Secret, User: t.User, ExternalUserID: c.ExternalUserID, Resource: t.Resource, With: with,
		From: from, To: to, Zone: u.Location(), Cursor: t.Cursor, Trace: t.trace(),
	})
	if err != nil {
		return s.recordRefusal(ctx, t, c, access, err)
	}
	return s.storePage(ctx, t, followers, c, page)
}

// historyOver reports whether the history of a task's resource has ended.
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
		err = fmt.Errorf("%w: the provider returned the same cursor twice", healthlab.Unavailable)
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
