package webhook

import (
	"context"
	"errors"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
)

func (d *Dispatcher) send(ctx context.Context, j job) {
	for more := true; more; j, more = <-d.jobs {
		d.runJob(ctx, j)
	}
}

// runJob waits until a job may start and sends its delivery, or releases the delivery if the job must not start.
func (d *Dispatcher) runJob(ctx context.Context, j job) {
	if j.turn == nil || <-j.turn {
		d.deliver(ctx, j)
	} else {
		d.releaseUnsent(ctx, j.delivery, 0)
	}
}

// deliver sends one claimed delivery, unless it must not be sent, and passes the outcome to [Dispatcher.record].
func (d *Dispatcher) deliver(ctx context.Context, j job) {
	del, clock := j.delivery, j.clock
	if del.Starts > 1 {
		d.opts.Hooks.DuplicateStart()
	}
	if o, ok := d.limits.endBeforeSend(del, clock.time()); ok {
		d.record(o, fact{}, clock)
		return
	}
	to, err := d.endpointOf(ctx, j)
	switch {
	case errors.Is(err, healthlab.NotFound):
		d.record(Outcome{Delivery: del, State: Cancelled, Reason: ReasonDeleted}, fact{}, clock)
		return
	case errors.Is(err, errSealed):
		d.opts.Hooks.SealError()
		d.opts.Log.Error("cannot decrypt the secrets of an endpoint; its messages wait", "delivery", del)
		d.release(ctx, del, sealWait)
		return
	case err != nil:
		d.release(ctx, del, time.Second)
		return
	case to.refuses(del) != "":
		d.record(Outcome{Delivery: del, State: Cancelled, Reason: to.refuses(del)}, fact{}, clock)
		return
	}
	secrets := to.active(clock.time())
	if len(secrets) == 0 {
		d.opts.Hooks.SealError()
		d.release(ctx, del, sealWait) // a message is never sent unsigned
		return
	}
	if ctx.Err() != nil || clock.age() > d.opts.Lease-d.opts.Timeout-d.opts.StartMargin {
		d.opts.Hooks.Released()
		d.release(ctx, del, 0)
		return
	}
	began := clock.time()
	result := d.notify(ctx, Notification{
		URL: to.URL, Team: del.Team, Type: del.Type, Trace: del.Trace,
		Headers: to.headers, ID: MessageID(del.Event), At: began, Secrets: secrets, Body: del.Body,
	}, del)
	if result.Class == ClassProxy {
		d.proxyFailed(clock.time())
		d.release(ctx, del, proxyWait)
		return
	}
	if ctx.Err() != nil && result.Status == 0 {
		d.targets.releaseSlot(del) // cancelled by our own stop: the delivery is retried after its lease
		return
	}
	ended := clock.time()
	if result.Class == ClassGone {
		d.targets.setShut(del.Endpoint, true)
	}
	d.opts.Hooks.Attempt(result.Class, del.Attempts+1, result.Duration, ended.Sub(del.At), result.Reused)
	o := d.limits.outcomeOf(del, result, ended, d.targets.accepted(del.Endpoint))
	d.record(o, fact{began: began, ended: ended, class: result.Class, retryAfter: result.RetryAfter}, clock)
}

// endpointOf returns the endpoint of a claimed delivery. To refuse the delivery is final, so an endpoint that does was
// read after the claim.
func (d *Dispatcher) endpointOf(ctx context.Context, j job) (*opened, error) {
	to, err := d.targets.read(ctx, j.delivery, time.Time{})
	if err == nil && to.refuses(j.delivery) != "" {
		return d.targets.read(ctx, j.delivery, j.claimed)
	}
	return to, err
}

func (d *Dispatcher) proxyFailed(at time.Time) {
	if last := d.proxyTold.Load(); at.Unix()-last >= int64(proxyWait.Seconds()) && d.proxyTold.CompareAndSwap(last, at.Unix()) {
		d.opts.Log.Error("the egress proxy refused or broke the connection; messages wait")
	}
}

// notify calls the Notifier within the timeout. A panic of the Notifier becomes a result of [ClassCrashed].
func (d *Dispatcher) notify(ctx context.Context, n Notification, del Delivery) (r Result) {
	if !d.punctual {
		limited, cancel := context.WithTimeout(ctx, d.opts.Timeout)
		defer cancel()
		ctx = limited
	}
	defer func() {
		if recover() != nil {
			d.opts.Log.Error("panic while sending", "delivery", del)
			r = Result{Class: ClassCrashed}
		}
	}()
	return d.notifier.Notify(ctx, n)
}

// record passes an outcome to the goroutine that stores outcomes, and releases the slot. If a batch of outcomes is not
// stored yet, record waits, so that a slow store is not overloaded.
func (d *Dispatcher) record(o Outcome, f fact, clock storeClock) {
	if !o.Sent {
		d.opts.Hooks.Ended(o.Reason)
	}
	if o.State == Failed && !operational(o.Delivery.Type) {
		o.Events = append(o.Events, d.exhausted(o, clock.time()))
	}
	o.Delivery.Body = nil
	d.unrecorded <- struct{}{}
	f.pause = d.targets.endDelivery(o, f)
	d.outcomes <- &pendingOutcome{outcome: o, fact: f, leased: clock.local.Add(d.opts.Lease)}
	poke(d.wakeClaim)
}

// exhausted returns the event about a message that failed permanently.
func (d *Dispatcher) exhausted(o Outcome, at time.Time) healthlab.Event {
	del := o.Delivery
	count := del.Attempts
	if o.Sent {
		count++
	}
	last := LastAttempt{At: healthlab.At(at)}
	if o.Status != 0 {
		last.StatusCode = &o.Status
	}
	if why := string(o.Class); why != "" {
		last.Error = &why
	} else if why := string(o.Reason); why != "" {
		last.Error = &why
	}
	return newEndpointEvent(d.opts.NewID(), typeExhausted, del.Team, del.Endpoint, at, AttemptExhausted{
		MessageID: MessageID(del.Event), EventType: del.Type, EndpointID: del.Endpoint.String(),
		AttemptCount: count, LastAttempt: last,
	})
}

func (d *Dispatcher) release(ctx context.Context, del Delivery, delay time.Duration) {
	d.releaseUnsent(ctx, del, delay)
	d.targets.releaseSlot(del)
	poke(d.wakeClaim)
}

// releaseUnsent releases an unsent delivery, which is due again after delay. If the store is not available, the lease
// of the delivery ends by itself.
func (d *Dispatcher) releaseUnsent(ctx context.Context, del Delivery, delay time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.opts.StartMargin)
	defer cancel()
	defer d.clearSuspect(del)
	if err := d.deliveries.Release(ctx, []Released{{Lease: del.Lease, Delay: delay}}); err != nil {
		d.opts.Log.Warn("delivery not given back", "delivery", del, "kind", healthlab.KindOf(err).Error(), "cause", work.Cause(err))
	}
}
