package pull

import (
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Limit is how many requests a provider takes in a while: in any stretch of time of that
// length.
type Limit struct {
	Requests int
	Per      time.Duration
	// Burst is how many of them may come at once; the others are spread over the rest.
	// Default 1: all are spread.
	Burst int
	// Slack is how much longer than Per we take the stretch to be, for requests do not
	// travel equally fast. Default 2.5 % of it.
	Slack time.Duration
}

// Limits are those of a provider.
type Limits struct {
	// App holds for all users together, User for each one.
	App, User []Limit
}

// limitsOf are the limits of a provider's record.
func limitsOf(r healthdata.RateLimits) (out Limits) {
	one := func(list []healthdata.RateLimit) (out []Limit) {
		for _, l := range list {
			out = append(out, Limit{Requests: l.Requests, Per: time.Duration(l.Seconds) * time.Second, Burst: l.Burst})
		}
		return out
	}
	return Limits{App: one(r.App), User: one(r.User)}
}

// interval is the least time between two requests, but for a burst.
func (l *Limit) interval() time.Duration {
	burst, slack := max(l.Burst, 1), l.Slack
	if slack <= 0 {
		slack = l.Per / 40
	}
	n := max(l.Requests-burst+1, 1)
	return (l.Per + slack + time.Duration(n) - 1) / time.Duration(n)
}

// BudgetKey names what requests are counted for.
type BudgetKey struct {
	// Team and User are zero where a limit holds for all.
	Team healthlab.TeamID
	User healthlab.UserID
	// Provider is the slug, and Name tells its limits apart.
	Provider, Name string
}

// Budget is what is left of a limit. The zero value is all of it.
type Budget struct {
	// Next is when the next request would be due if they were spread evenly.
	Next time.Time
	// Blocked is until when no request may be made: the provider said so.
	Blocked time.Time
	// Pace is the least time between requests that a provider's answers ask for, until
	// PaceEnd.
	Pace    time.Duration
	PaceEnd time.Time
	// Refusals counts the requests in a row of which the provider said that there were
	// too many.
	Refusals int
	// Recent are the latest uses of what is counted one by one.
	Recent []time.Time
}

// slot is the earliest instant from at on for which the budget has a request.
func (b *Budget) slot(at time.Time, l *Limit) time.Time {
	free := b.Next
	if l != nil && l.Burst > 1 {
		free = free.Add(-time.Duration(l.Burst-1) * l.interval())
	}
	return later(later(at, b.Blocked), free)
}

// useSlot uses up a slot.
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

// applyRemaining takes in what a provider said of what remains.
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

// blockAfterRefusal takes in that a provider had too many requests, and returns until when its
// budget is blocked.
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
	// maxGuess is how long we wait of our own accord, and maxBlock how long if told to.
	maxGuess = 15 * time.Minute
	maxBlock = 25 * time.Hour
)

// countUse uses one of limit uses in any stretch of per, or says when there is one.
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
