package webhook

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
)

// recordOutcomes records outcomes in batches until all senders have ended.
func (d *Dispatcher) recordOutcomes(ctx context.Context) {
	var batch []*pendingOutcome // postponed outcomes come first
	for open := true; open || len(batch) > 0; {
		if batch, open = d.collectOutcomes(batch); len(batch) > 0 {
			batch = d.recordBatch(ctx, batch)
		}
		if !open && len(batch) > 0 {
			wait(ctx, recordRetry, nil)
		}
	}
}

// recordWaiting records the outcomes in d.outcomes, even if ctx has ended. It tries for recordExtra; deliveries without
// a recorded outcome are sent again after their leases.
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
		return fmt.Errorf("%w: the store has not recorded the outcomes of deliveries", healthlab.Unavailable)
	}
	return nil
}

// collectOutcomes waits for an outcome, but at most recordRetry if batch is not empty, and then a short time for
// others. It adds them to batch, and reports whether more may follow.
func (d *Dispatcher) collectOutcomes(batch []*pendingOutcome) (all []*pendingOutcome, open bool) {
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
	if batch, open = d.addOutcomes(batch, d.opts.OutcomeBatch, d.opts.OutcomeWait); open {
		// Half a batch is recorded without waiting: meanwhile others can be collected.
		batch, open = d.addOutcomes(batch, d.opts.OutcomeBatch/2, d.targets.underLoad(recordApart)-d.opts.OutcomeWait)
	}
	return batch, open
}

// addOutcomes adds outcomes to batch until it has most or wait has passed, and reports whether more may follow.
func (d *Dispatcher) addOutcomes(batch []*pendingOutcome, most int, wait time.Duration) (all []*pendingOutcome, open bool) {
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

// recordBatch records a batch, and returns the outcomes that must be recorded later, because another transaction has
// locked their rows. During an outage of the store it retries until the leases have ended.
func (d *Dispatcher) recordBatch(ctx context.Context, batch []*pendingOutcome) (later []*pendingOutcome) {
	failed := 0
	for len(batch) > 0 && ctx.Err() == nil {
		began := d.opts.Now()
		recorded, err := d.deliveries.RecordOutcomes(ctx, outcomesOf(batch))
		if err != nil {
			failed = d.waitAfterFailure(ctx, "record", err, failed)
			batch = d.dropExpired(batch)
			continue
		}
		for range recorded.Lost {
			d.opts.Hooks.LeaseLost()
		}
		done, later := split(batch, recorded.Locked)
		d.opts.Hooks.OutcomesRecorded(len(done), d.opts.Now().Sub(began))
		d.recordHealth(ctx, done)
		return d.dropExpired(later)
	}
	d.abandon(batch)
	return nil
}

func (d *Dispatcher) abandon(batch []*pendingOutcome) {
	for _, s := range batch {
		d.targets.setShut(s.outcome.Delivery.Endpoint, false)
	}
	d.freeSlots(batch)
}

// freeSlots lets other deliveries start in place of those whose outcomes need no more work.
func (d *Dispatcher) freeSlots(done []*pendingOutcome) {
	d.targets.markDue(done)
	for _, s := range done {
		<-d.unrecorded
		d.clearSuspect(s.outcome.Delivery)
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

// split divides a batch into outcomes that were recorded, and outcomes that must be recorded again: those whose lease
// is in later.
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

// dropExpired returns the outcomes whose lease has not ended. It gives up the others.
func (d *Dispatcher) dropExpired(batch []*pendingOutcome) []*pendingOutcome {
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

// recordHealth updates the health of the endpoints of recorded outcomes, and releases the slots.
func (d *Dispatcher) recordHealth(ctx context.Context, done []*pendingOutcome) {
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
			d.targets.setShut(id, false)
			events = true
		}
	}
	d.freeSlots(done)
	if events {
		d.Wake()
	}
}
