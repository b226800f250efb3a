package webhook

import (
	"context"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// settle records outcomes, as many at a time as have gathered, until there are no
// more senders.
func (d *Dispatcher) settle(ctx context.Context) {
	for first := range d.outcomes {
		d.settleBatch(ctx, d.gather(first))
	}
}

// gather collects outcomes for a moment.
func (d *Dispatcher) gather(first settling) []settling {
	batch := []settling{first}
	timer := time.NewTimer(d.opts.SettleWait)
	defer timer.Stop()
	for len(batch) < d.opts.SettleBatch {
		select {
		case s, ok := <-d.outcomes:
			if !ok {
				return batch
			}
			batch = append(batch, s)
		case <-timer.C:
			return batch
		}
	}
	return batch
}

// settleBatch records a batch. While the store is out of reach it tries again, until
// the leases have ended and somebody else has the deliveries.
func (d *Dispatcher) settleBatch(ctx context.Context, batch []settling) {
	failed := 0
	for len(batch) > 0 && ctx.Err() == nil {
		began := d.opts.Now()
		settled, err := d.deliveries.Settle(ctx, outcomesOf(batch))
		if err != nil {
			failed = d.trouble(ctx, "settle", err, failed)
			batch = d.stillLeased(batch)
			continue
		}
		failed = 0
		for range settled.Lost {
			d.opts.Hooks.LeaseLost()
		}
		done, later := split(batch, settled.Later)
		d.opts.Hooks.Settled(len(done), d.opts.Now().Sub(began))
		d.finish(ctx, done)
		if batch = d.stillLeased(later); len(batch) > 0 {
			wait(ctx, settleRetry, nil)
		}
	}
	for _, s := range batch {
		d.targets.released(s.outcome.Delivery)
	}
}

func outcomesOf(batch []settling) []Outcome {
	out := make([]Outcome, len(batch))
	for i, s := range batch {
		out[i] = s.outcome
	}
	return out
}

// split parts a batch into what was recorded and what is to be tried later.
func split(batch []settling, later []Lease) (done, rest []settling) {
	for _, s := range batch {
		if slices.Contains(later, s.outcome.Delivery.Lease) {
			rest = append(rest, s)
		} else {
			done = append(done, s)
		}
	}
	return done, rest
}

// stillLeased drops the outcomes whose lease has ended, and frees their slots.
func (d *Dispatcher) stillLeased(batch []settling) []settling {
	now := d.opts.Now()
	return slices.DeleteFunc(batch, func(s settling) bool {
		if now.Before(s.leased) {
			return false
		}
		d.targets.released(s.outcome.Delivery)
		return true
	})
}

// finish frees the slots of what was recorded, and draws the conclusions about the
// endpoints.
func (d *Dispatcher) finish(ctx context.Context, done []settling) {
	facts := map[EndpointID][]fact{}
	events := false
	for _, s := range done {
		s.fact.pause = d.targets.settled(s.outcome, s.fact)
		if id := s.outcome.Delivery.Endpoint; s.outcome.Sent {
			facts[id] = append(facts[id], s.fact)
		}
		events = events || len(s.outcome.Events) > 0
	}
	poke(d.wakeClaim)
	if events {
		d.Wake()
	}
	for id, about := range facts {
		if err := d.targets.observe(ctx, id, about); err != nil {
			d.opts.Log.Warn("health of an endpoint not written", "endpoint", id.String(), "kind", healthlab.KindOf(err).Error())
		}
		if slices.ContainsFunc(about, func(f fact) bool { return f.class == ClassGone }) {
			d.targets.shut(id, false)
			d.Wake()
		}
	}
}
