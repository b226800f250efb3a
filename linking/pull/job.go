package pull

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// job is a claimed task that this process works on.
type job struct {
	Task
	service     *Service
	user        healthdata.User
	connection  *healthdata.Connection // of the user
	historyOver bool                   // the history of the task's resource has ended
	slot        time.Time              // reserved time of the request
}

// admit prepares the job if l has a free worker for it, and reports whether the job can run. If not, it releases the
// task. If the workers of the team, or those for tasks other than refreshes, are used up, the task is due again after
// Options.Idle. Later claims skip an application whose workers are used up.
func (j *job) admit(ctx context.Context, l *workerLimiter) (bool, error) {
	if l == nil {
		return j.prepare(ctx)
	}
	if full := l.acquire(&j.Task); full != hasRoom {
		again := j.service.now().Add(j.service.opts.Idle)
		return false, j.update(ctx, withoutEvents(func(t *Task) {
			if t.Lease = (time.Time{}); full == teamFull {
				t.Due = again
			}
		}))
	}
	ok, err := j.prepare(ctx)
	if !ok {
		l.release(&j.Task)
	}
	return ok, err
}

// prepare checks whether the job can run and reserves its slot. If it cannot run, prepare stops or postpones the task
// and returns false.
func (j *job) prepare(ctx context.Context) (bool, error) {
	s := j.service
	var err error
	j.user, err = s.users.User(ctx, j.Team, j.User)
	if err != nil && !errors.Is(err, healthlab.NotFound) {
		return false, err
	}
	c := j.user.Connection(j.Provider)
	if err != nil || j.user.Closed(s.now()) || c == nil || c.Status != healthdata.Connected || !c.LinkedAt.Equal(j.Linked) || s.puller(c) == nil {
		return false, j.update(ctx, withoutEvents((*Task).stop))
	}
	j.connection, j.historyOver = c, true
	if j.Kind == News && !j.running() {
		if j.historyOver, err = j.historyEnded(ctx); err != nil {
			return false, err
		}
		if at := s.now(); !j.historyOver && j.Turn >= 0 && !j.hasNewNotice() { // without a refresh, history is fetched first
			return false, j.update(ctx, withoutEvents(func(t *Task) { t.Due, t.Lease = at.Add(s.opts.Every), time.Time{} }))
		}
	}
	slot, postpone, err := s.limits.reserve(ctx, &j.Task, c)
	if err != nil {
		return false, err
	}
	if postpone != nil {
		return false, j.update(ctx, withoutEvents(postpone))
	}
	j.slot = slot
	return true, nil
}

// pull makes the job's request at its slot and stores the answer.
func (j *job) pull(ctx context.Context) error {
	s, c := j.service, j.connection
	var access linking.GrantSecret
	if !c.Demo {
		var err error
		if access, err = s.credentials.Secret(ctx, j.Team, j.User, j.Provider); err != nil {
			return j.recordFailure(ctx, err)
		}
	}
	if err := pause(ctx, j.slot.Sub(s.now())); err != nil {
		return err
	}
	if late := s.now(); late.Sub(j.slot) > s.opts.Ahead { // renewing the secret took too long for the slot
		return j.update(ctx, withoutEvents(func(t *Task) { t.Lease = time.Time{} }))
	}
	now := s.now()
	j.begin(now, j.historyOver, &s.opts)
	followers, err := j.followers(ctx)
	if err != nil {
		return err
	}
	from, to := j.piece()
	with := []string{}
	for i := range followers {
		with = append(with, followers[i].Resource)
	}
	page, err := j.callPuller(ctx, linking.PullRequest{
		Secret: access.Secret, User: j.User, ExternalUserID: c.ExternalUserID, Resource: j.Resource, With: with,
		From: from, To: to, Zone: j.user.Location(), Cursor: j.Cursor, Trace: j.trace(),
	})
	if err != nil {
		return j.recordRefusal(ctx, access, err)
	}
	return j.storePage(ctx, followers, page)
}

// historyEnded reports whether the history of the job's resource has ended: it has succeeded or failed, or there is
// none.
func (j *job) historyEnded(ctx context.Context) (bool, error) {
	tasks, err := j.service.store.Tasks(ctx, j.Team, j.User)
	if err != nil {
		return false, err
	}
	key := j.Key
	key.Kind = History
	i := slices.IndexFunc(tasks, func(h Task) bool { return h.Key == key })
	return i < 0 || tasks[i].Status == Success || tasks[i].Status == Failure, nil
}

// callPuller calls the Puller of the connection's provider. An answer with the request's own cursor is an error.
func (j *job) callPuller(ctx context.Context, r linking.PullRequest) (linking.PullPage, error) {
	ctx, stop := context.WithTimeout(ctx, j.service.opts.Timeout)
	defer stop()
	page, err := j.service.puller(j.connection).Pull(ctx, r)
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
