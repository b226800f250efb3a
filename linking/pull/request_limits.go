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

// requestLimits applies the rate limits of providers. All processes share the budgets in the store.
type requestLimits struct {
	store      Store
	byProvider map[string]Limits
	ahead      time.Duration // Options.Ahead
	now        func() time.Time
	blocked    blockedApps
}

// budgets returns the budgets of a request of the task, and for each budget its limit. A budget with a nil limit is
// limited only by the provider's answers.
func (r *requestLimits) budgets(t *Task, c *healthdata.Connection) ([]BudgetKey, []*Limit) {
	if c.Demo {
		return nil, nil
	}
	l := r.byProvider[t.Provider]
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

// reserve reserves the next slot that all budgets of the task's request have, if it is within Options.Ahead. Otherwise
// it returns postpone, which changes a task so that it runs later. If the application has no such slot, it is in
// blocked until it has one.
func (r *requestLimits) reserve(ctx context.Context, t *Task, c *healthdata.Connection) (slot time.Time, postpone func(*Task), err error) {
	now := r.now()
	keys, limits := r.budgets(t, c)
	if len(keys) == 0 {
		return now, nil, nil
	}
	if slices.Contains(r.blocked.list(now), t.App()) {
		return now, func(t *Task) { t.Lease = time.Time{} }, nil
	}
	var app, own time.Time
	err = r.store.UpdateBudgets(ctx, keys, func(b []Budget) error {
		app, own = now, now
		for i := range b {
			if keys[i].User.IsZero() {
				app = b[i].slot(app, limits[i])
			} else {
				own = b[i].slot(own, limits[i])
			}
		}
		if slot = later(app, own); slot.Sub(now) > r.ahead {
			return errFull
		}
		for i := range b {
			b[i].useSlot(slot, limits[i])
		}
		return nil
	})
	if !errors.Is(err, errFull) {
		return slot, nil, err
	}
	due := t.Due
	if app.Sub(now) > r.ahead {
		r.blocked.block(t.App(), app.Add(-r.ahead))
	} else {
		due = own.Add(-r.ahead / 2)
	}
	return slot, func(t *Task) { t.Due, t.Lease = due, time.Time{} }, nil
}

// errFull reports that the next slot is later than Options.Ahead.
var errFull = errors.New("no slot of the provider's request limit is free soon")

// apply applies the rate limits in a provider's answer to the budgets of the task. limited is the error if the provider
// refused the request as one too many, otherwise nil; until is then the end of the block.
func (r *requestLimits) apply(ctx context.Context, t *Task, rates []linking.RateLimit, limited *linking.RateLimitError) (until time.Time, err error) {
	now := r.now()
	keys := []BudgetKey{t.appBudget("app"), {Team: t.Team, User: t.User, Provider: t.Provider, Name: "user"}}
	if len(rates) == 0 && limited == nil {
		return time.Time{}, nil
	}
	err = r.store.UpdateBudgets(ctx, keys, func(b []Budget) error {
		until = time.Time{}
		at := func(scope linking.RateScope) *Budget {
			if scope == linking.RateUser {
				return &b[1]
			}
			return &b[0]
		}
		for _, rate := range rates {
			at(rate.Scope).applyRemaining(rate.Remaining, rate.Reset.UTC(), now)
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
