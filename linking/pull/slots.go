package pull

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// keys returns the budgets of a request and their limits. A nil limit only counts the provider's answers.
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

// reserve reserves the next slot that all budgets have, if it is soon. Otherwise it releases the task, and other
// tasks of the application wait too.
func (s *Service) reserve(ctx context.Context, t *Task, c *healthdata.Connection) (slot time.Time, ok bool, err error) {
	now := s.now()
	keys, limits := s.keys(t, c)
	if len(keys) == 0 {
		return now, true, nil
	}
	if slices.Contains(s.blocked.list(now), t.App()) {
		return now, false, s.updateClaimed(ctx, *t, withoutEvents(func(t *Task) { t.Lease = time.Time{} }))
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
			b[i].useSlot(slot, limits[i])
		}
		return nil
	})
	if !errors.Is(err, errFull) {
		return slot, err == nil, err
	}
	due := t.Due
	if app.Sub(now) > s.opts.Ahead {
		s.blocked.block(t.App(), app.Add(-s.opts.Ahead))
	} else {
		due = own.Add(-s.opts.Ahead / 2)
	}
	return slot, false, s.updateClaimed(ctx, *t, withoutEvents(func(t *Task) { t.Due, t.Lease = due, time.Time{} }))
}

// errFull reports that there is no slot soon.
var errFull = errors.New("no slot of the provider's request limit is free soon")

// updateLimits applies the rate limits of a provider's answer.
func (s *Service) updateLimits(ctx context.Context, t *Task, rates []linking.RateLimit, limited *linking.RateLimitError) (until time.Time, err error) {
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
			at(r.Scope).applyRemaining(r.Remaining, r.Reset.UTC(), now)
		}
		if limited == nil {
			b[0].Refusals, b[1].Refusals = 0, 0
		} else {
			until = at(limited.Scope).blockAfterRefusal(limited.Wait, now)
		}
		return nil
	})
	return until, err
}
