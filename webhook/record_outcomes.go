package webhook

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
)

// recordOutcomes records outcomes, as many at a time as have gathered, until there are no
// more senders.
func (d *Dispatcher) recordOutcomes(ctx context.Context) {
	var batch []*pendingOutcome // what was held comes first
	for open := true; open || len(batch) > 0; {
		if batch, open = d.gather(batch); len(batch) > 0 {
			batch = d.recordBatch(ctx, batch)
		}
		if !open && len(batch) > 0 {
			wait(ctx, recordRetry, nil)
		}
	}
}

// recordWaiting records the outcomes that wait, also if ctx has ended. It tries for recordExtra;
// deliveries whose outcomes are not recorded by then come back when their leases end.
func (d *Dispatcher) recordWaiting(ctx context.Context) error {
	recording, stop := context.WithTimeout(context.WithoutCancel(ctx), recordExtra)
	defer stop()
	batch := make([]*pendingOutcome, 0, len(d.outcomes))
	for len(d.outcomes) > 0 {
		batch = append(batch, <-d.outcomes)
	}
	for len(batch) > 0 {
		if batch = d.recordBatch(recording, batch); len(batch) > 0 {
			wait(recording, recordRetry, nil)
		}
	}
	if recording.Err() != nil {
		return fmt.Errorf("%w: outcomes of deliveries are not recorded", healthlab.Unavailable)
	}
	return nil
}

// gather adds outcomes to a batch for a moment, and reports whether more will come.
func (d *Dispatcher) gather(batch []*pendingOutcome) (all []*pendingOutcome, open bool) {
	var first <-chan time.Time
	if len(batch) > 0 {
		again := time.NewTimer(recordRetry)
		defer again.Stop()
		first = again.C
	}
	select {
	case s, ok := <-d.outcomes:
		if !ok {
			return batch, false
		}
		batch = append(batch, s)
	case <-first:
		return batch, true
	}
	if batch, open = d.more(batch, d.opts.OutcomeBatch, d.opts.OutcomeWait); open {
		// Half a batch goes without more company: while it is recorded, others find room.
		batch, open = d.more(batch, d.opts.OutcomeBatch/2, d.targets.underLoad(recordApart)-d.opts.OutcomeWait)
	}
	return batch, open
}

// more adds outcomes to a batch, up to so many and for so long, and reports whether more
// will come.
func (d *Dispatcher) more(batch []*pendingOutcome, most int, wait time.Duration) (all []*pendingOutcome, open bool) {
	if wait <= 0 {
		return batch, true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for len(batch) < most {
		select {
		case s, ok := <-d.outcomes:
			if !ok {
				return batch, false
			}
			batch = append(batch, s)
		case <-timer.C:
			return batch, true
		}
	}
	return batch, true
}

// recordBatch records a batch, and returns what is to be tried again because another
// transaction holds it. While the store is out of reach it tries again, until the leases have ended
// and another process has the deliveries.
func (d *Dispatcher) recordBatch(ctx context.Context, batch []*pendingOutcome) (later []*pendingOutcome) {
	failed := 0
	for len(batch) > 0 && ctx.Err() == nil {
		began := d.opts.Now()
		recorded, err := d.deliveries.RecordOutcomes(ctx, outcomesOf(batch))
		if err != nil {
			failed = d.waitAfterFailure(ctx, "record", err, failed)
			batch = d.stillLeased(batch)
			continue
		}
		for range recorded.Lost {
			d.opts.Hooks.LeaseLost()
		}
		done, later := split(batch, recorded.Locked)
		d.opts.Hooks.OutcomesRecorded(len(done), d.opts.Now().Sub(began))
		d.finish(ctx, done)
		return d.stillLeased(later)
	}
	d.abandon(batch)
	return nil
}

func (d *Dispatcher) abandon(batch []*pendingOutcome) {
	for _, s := range batch {
		d.targets.shut(s.outcome.Delivery.Endpoint, false)
	}
	d.freeSlots(batch)
}

// freeSlots makes room for other outcomes.
func (d *Dispatcher) freeSlots(done []*pendingOutcome) {
	d.targets.recorded(done)
	for _, s := range done {
		<-d.unrecorded
		d.cleared(s.outcome.Delivery)
	}
	poke(d.wakeClaim)
}

func outcomesOf(batch []*pendingOutcome) []Outcome {
	out := make([]Outcome, len(batch))
	for i, s := range batch {
		out[i] = s.outcome
	}
	return out
}

// split parts a batch into what was recorded and what is to be tried later.
func split(batch []*pendingOutcome, later []Lease) (done, rest []*pendingOutcome) {
	if len(later) == 0 {
		return batch, nil
	}
	for _, s := range batch {
		if slices.Contains(later, s.outcome.Delivery.Lease) {
			rest = append(rest, s)
		} else {
			done = append(done, s)
		}
	}
	return done, rest
}

// stillLeased drops the outcomes whose lease has ended.
func (d *Dispatcher) stillLeased(batch []*pendingOutcome) []*pendingOutcome {
	now := d.opts.Now()
	var held, ended []*pendingOutcome
	for _, s := range batch {
		if now.Before(s.leased) {
			held = append(held, s)
		} else {
			ended = append(ended, s)
		}
	}
	d.abandon(ended)
	return held
}

// finish draws the conclusions about the endpoints from what was recorded.
func (d *Dispatcher) finish(ctx context.Context, done []*pendingOutcome) {
	facts := map[EndpointID][]fact{}
	events := false
	for _, s := range done {
		if id := s.outcome.Delivery.Endpoint; s.outcome.Sent {
			facts[id] = append(facts[id], s.fact)
		}
		events = events || len(s.outcome.Events) > 0
	}
	for id, about := range facts {
		if err := d.targets.observe(ctx, id, about); err != nil {
			d.opts.Log.Warn("health of an endpoint not written", "endpoint", id.String(), "kind", healthlab.KindOf(err).Error(), "cause", work.Cause(err))
		}
		if slices.ContainsFunc(about, func(f fact) bool { return f.pause || f.class == ClassGone }) {
			d.targets.shut(id, false)
			events = true
		}
	}
	d.freeSlots(done)
	if events {
		d.Wake()
	}
}
