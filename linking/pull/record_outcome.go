package pull

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

// errLeaseLost reports that another process has claimed the task.
var errLeaseLost = errors.New("the worker's lease has ended before the work was done")

// update changes the job's task in the store, unless another process has claimed it.
func (j *job) update(ctx context.Context, change func(*Task) ([]healthlab.Event, error)) error {
	_, err := j.service.store.Update(ctx, j.Key, func(t *Task) ([]healthlab.Event, error) {
		if t.Fence != j.Fence {
			return nil, errLeaseLost
		}
		return change(t)
	})
	if errors.Is(err, errLeaseLost) || errors.Is(err, healthlab.NotFound) {
		return nil
	}
	return err
}

// recordRefusal records that a request to the provider failed with cause. It ends the grant, applies the rate limit or
// renews the secret (access), depending on the error, and sets the time of the next try.
func (j *job) recordRefusal(ctx context.Context, access linking.GrantSecret, cause error) error {
	s := j.service
	var over *linking.GrantError
	var limited *linking.RateLimitError
	switch {
	case j.connection.Demo:
	case errors.As(cause, &over):
		if err := s.credentials.Fail(ctx, j.Team, j.User, j.Provider, access, over); err != nil {
			return err
		}
	case errors.As(cause, &limited):
		until, err := s.limits.apply(ctx, &j.Task, nil, limited)
		if err != nil {
			return err
		}
		now := s.now()
		return j.update(ctx, withoutEvents(func(t *Task) { t.fail(RateLimited, max(until.Sub(now), time.Microsecond), now, &s.opts) }))
	case errors.Is(cause, healthlab.Unauthenticated):
		if _, err := s.credentials.Renew(ctx, j.Team, j.User, j.Provider, access); err != nil {
			cause = err
			break
		}
		now := s.now()
		if j.Failures == 0 { // the first refusal is retried at once
			return j.update(ctx, withoutEvents(func(t *Task) { t.Failures, t.Due, t.Lease = 1, now, time.Time{} }))
		}
	}
	return j.recordFailure(ctx, cause)
}

// recordFailure records a failed try of the job's task with its cause, and sets the time of the next try.
func (j *job) recordFailure(ctx context.Context, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err() // the process stops; the task is claimed again after its lease
	}
	class := ProviderDown
	var over *linking.GrantError
	switch {
	case errors.As(cause, &over), errors.Is(cause, healthlab.Invalid), errors.Is(cause, healthlab.Unimplemented):
		class = NonRetriable
	case errors.Is(cause, healthlab.NotFound): // the connection no longer exists
		return j.update(ctx, withoutEvents((*Task).stop))
	case errors.Is(cause, context.DeadlineExceeded):
		class = TransportFailure
	}
	var wait time.Duration
	var hint interface{ RetryAfter() time.Duration }
	if errors.As(cause, &hint) {
		wait = min(hint.RetryAfter(), maxBlock)
	}
	s := j.service
	s.failures.Log(ctx, s.opts.Log, s.now(), j.Provider+" "+string(class), "pull failed", cause, "task", j.Key, "trace", j.trace(), "class", string(class))
	now, tried := s.now(), j.Task
	if tried.fail(class, wait, now, &s.opts) && over == nil && j.Kind == History { // logged before it is stored, because the process may stop between
		if err := j.releaseFollowers(ctx); err != nil {
			return err
		}
	}
	return j.update(ctx, withoutEvents(func(t *Task) {
		t.fail(class, wait, now, &s.opts)
		if over != nil {
			t.stop()
		}
	}))
}

// count returns the number of items in the list that a task of this resource can store, including unparsed ones.
func (t *Task) count(items []linking.PullItem) (n int) {
	for i := range items {
		n += len(items[i].Samples) + len(items[i].Summaries) + len(items[i].Unparsed)
		if t.Resource == deviceSlug && items[i].Device != nil {
			n++
		}
	}
	return n
}

// logRefused logs the number of refused items, with the first reason. all means that every item of the page was
// refused; this is logged as a failed pull.
func (s *Service) logRefused(ctx context.Context, t *Task, bad []RefusedItem, all bool) {
	attrs := []any{"task", t.Key, "trace", t.trace(), "items", len(bad)}
	if why := bad[0].Reasons; len(why) > 0 {
		attrs = append(attrs, "reason", why[0].Field+": "+why[0].Message)
	}
	if !all {
		s.opts.Log.InfoContext(ctx, "items of a provider refused", attrs...)
		return
	}
	s.failures.Log(ctx, s.opts.Log, s.now(), t.Provider+" "+t.Resource+" refused", "pull failed", errAllRefused,
		append(attrs, "class", string(NonRetriable))...)
}

// errAllRefused is the error of a page whose items were all refused.
var errAllRefused = fmt.Errorf("%w: no item of the provider's page could be stored", healthlab.Invalid)

func (t *Task) refused() bool { return t.running() && t.Error == NonRetriable }

// noteRefused records the outcome of a page after [Task.advance]. page reports whether all its items were refused,
// before whether that was so for an earlier page of the run, and ended whether the run has ended. A run with such a
// page fails, without a retry, because the same items would be refused again. A history fails only if none of its items
// was stored.
func (t *Task) noteRefused(page, before, ended bool) {
	t.LastOK = !page
	if !page && !before || t.Kind == History && !t.Oldest.IsZero() {
		return
	}
	t.Error = NonRetriable
	if ended {
		t.Status = Failure
	}
}
