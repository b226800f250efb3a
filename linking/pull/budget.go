package pull

import (
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Limit is the number of requests that a provider accepts in any period of a given length.
type Limit struct {
	Requests int
	Per      time.Duration
	// Burst is the number of requests that may be sent at once; the others are spread over the period. Default 1: all
	// are spread.
	Burst int
	// Slack is added to Per, because requests take different times to arrive. Default 2.5 % of Per.
	Slack time.Duration
}

// Limits are the limits of a provider.
type Limits struct {
	// App are the limits for all users of an OAuth application together, User those for each user.
	App, User []Limit
}

// limitsOf returns the limits in a provider's record.
func limitsOf(r healthdata.RateLimits) (out Limits) {
	one := func(list []healthdata.RateLimit) (out []Limit) {
		for _, l := range list {
			out = append(out, Limit{Requests: l.Requests, Per: time.Duration(l.Seconds) * time.Second, Burst: l.Burst})
		}
		return out
	}
	return Limits{App: one(r.App), User: one(r.User)}
}

// interval returns the least time between two requests outside of a burst.
func (l *Limit) interval() time.Duration {
	burst, slack := max(l.Burst, 1), l.Slack
	if slack <= 0 {
		slack = l.Per / 40
	}
	n := max(l.Requests-burst+1, 1)
	return (l.Per + slack + time.Duration(n) - 1) / time.Duration(n)
}

// BudgetKey identifies a [Budget]: that of an OAuth application, a team or a user.
type BudgetKey struct {
	// Team and User are zero if the budget is not of one team or of one user.
	Team healthlab.TeamID
	User healthlab.UserID
	// Provider is the slug, and Name distinguishes the budgets at the provider.
	Provider, Name string
}

// Budget is what has been used of a [Limit]. The zero value is an unused limit.
type Budget struct {
	// Next is the earliest time of the next request if requests are spread evenly.
	Next time.Time
	// Blocked is the time until which the provider has forbidden requests; zero without a block.
	Blocked time.Time
	// Pace is the shortest time between two requests until PaceEnd. It follows from the number of remaining requests in
	// the provider's answers.
	Pace    time.Duration
	PaceEnd time.Time
	// Refusals is the number of requests in a row that the provider refused as too many.
	Refusals int
	// Recent are the times of the counted uses in the latest period; only for countUse.
	Recent []time.Time
}

// slot returns the earliest instant, not before at, at which a request is allowed. A nil l is no limit.
func (b *Budget) slot(at time.Time, l *Limit) time.Time {
	free := b.Next
	if l != nil && l.Burst > 1 {
		free = free.Add(-time.Duration(l.Burst-1) * l.interval())
	}
	return later(later(at, b.Blocked), free)
}

// useSlot records a request at the instant slot. A nil l is no limit.
func (b *Budget) useSlot(slot time.Time, l *Limit) {
	var step time.Duration
	if l != nil {
		step = l.interval()
	}
	if slot.Before(b.PaceEnd) {
		step = max(step, b.Pace)
	}
	b.Next = later(b.Next, slot).Add(step)
}

// applyRemaining applies a provider's answer that allows this number of further requests until reset.
func (b *Budget) applyRemaining(remaining int, reset, now time.Time) {
	if !reset.After(now) || reset.Sub(now) > maxBlock {
		return
	}
	if remaining <= 0 {
		b.Blocked = later(b.Blocked, reset)
		b.Pace, b.PaceEnd = 0, time.Time{}
		return
	}
	b.Pace, b.PaceEnd = reset.Sub(now)/time.Duration(remaining), reset
}

// blockAfterRefusal blocks the budget because the provider refused a request as one too many, and returns the end of
// the block. wait is the wait that the provider requires; 0 if it states none.
func (b *Budget) blockAfterRefusal(wait time.Duration, now time.Time) time.Time {
	if wait <= 0 {
		wait = min(firstBlock<<min(b.Refusals, 10), maxGuess)
	}
	b.Refusals++
	b.Blocked = later(b.Blocked, now.Add(min(wait, maxBlock)))
	return b.Blocked
}

const (
	firstBlock = 30 * time.Second
	// maxGuess is the longest wait if the provider states none, and maxBlock the longest wait that a provider
	// can demand.
	maxGuess = 15 * time.Minute
	maxBlock = 25 * time.Hour
)

// countUse counts one use, unless there were already limit uses in the last period of length per. Then it counts
// nothing and returns the time until the next use is allowed.
func (b *Budget) countUse(now time.Time, limit int, per time.Duration) (wait time.Duration) {
	kept := b.Recent[:0:0]
	for _, t := range b.Recent {
		if t.Add(per).After(now) {
			kept = append(kept, t)
		}
	}
	b.Recent = kept
	if len(kept) >= limit {
		return kept[len(kept)-limit].Add(per).Sub(now)
	}
	b.Recent = append(b.Recent, now)
	return 0
}
