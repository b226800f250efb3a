package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
)

const (
	sweepEvery  = time.Hour
	longestWait = 1500 * time.Millisecond // longest wait before another try to reach the store
	sealWait    = time.Minute             // delay of a delivery if its endpoint's secrets cannot be decrypted
	proxyWait   = time.Minute             // delay of a delivery after the egress proxy failed
	suspectWait = time.Second             // delay of a delivery that may crash the process while another such one runs
	recordExtra = 2 * time.Second         // longest time to record outcomes after the requests have ended
	recordRetry = 10 * time.Millisecond
)

// Dispatcher delivers events: it routes written events into lanes (queues), claims due deliveries, sends them, and
// records the outcomes. Any number of dispatchers may work on one store, in one process or many. Call Run once; Wake is
// safe for concurrent use.
type Dispatcher struct {
	modes      map[string]healthlab.Mode
	deliveries Deliveries
	notifier   Notifier
	punctual   bool // the notifier enforces the timeout itself
	opts       Options
	limits     limits
	targets    *targets

	proxyTold  atomic.Int64 // Unix seconds of the last log entry about a failure of the proxy
	suspect    atomic.Int64 // id of the running delivery that may crash this process; 0 if none
	jobs       chan job
	outcomes   chan *pendingOutcome
	unrecorded chan struct{} // holds an element for each outcome that is not recorded yet, to limit them
	wakeRoute  chan struct{}
	wakeClaim  chan struct{}
	news       chan struct{} // wakes sendSignals after events were routed
	swept      time.Time     // when Step last did the hourly work
}

// punctual is implemented by a Notifier that enforces its timeout itself, so that the dispatcher need not make
// a context with a deadline for each request.
type punctual interface {
	returnsWithin(limit time.Duration) bool
}

// job is a claimed delivery that waits for a goroutine to send it.
type job struct {
	delivery Delivery
	clock    storeClock
	claimed  time.Time   // when the claim had ended, by this process's clock
	turn     <-chan bool // receives true to start the job and false to release it; nil to start at once
}

// pendingOutcome is an outcome that is not recorded yet.
type pendingOutcome struct {
	outcome Outcome
	fact    fact
	leased  time.Time // end of the lease, by this process's clock
}

// NewDispatcher returns a Dispatcher that is not running yet. types has the mode of each event type. Everything
// except opts is required. It returns Invalid if an argument is missing, or if the lease is too short for a
// request.
func NewDispatcher(types *Catalogue, store DispatcherStore, n Notifier, seal healthlab.Sealer, opts *Options) (*Dispatcher, error) {
	if types == nil || store == nil || n == nil || seal == nil {
		return nil, fmt.Errorf("%w: webhook.NewDispatcher: the event types, the store, the notifier and the sealer are required%s", healthlab.Invalid, outboxHint(store == nil))
	}
	o := opts.orDefaults()
	if o.Lease <= o.Timeout+o.StartMargin {
		return nil, fmt.Errorf("%w: Options.Lease must be longer than Timeout and StartMargin together", healthlab.Invalid)
	}
	own, ok := n.(punctual)
	return &Dispatcher{
		modes:      types.Modes(),
		deliveries: store,
		notifier:   n,
		punctual:   ok && own.returnsWithin(o.Timeout),
		opts:       o,
		limits:     limits{o.Schedule, o.Expiry, o.MaxBlock, o.CrashLimit},
		targets:    newTargets(store, seal, o),
		jobs:       make(chan job),
		outcomes:   make(chan *pendingOutcome, o.OutcomeBatch),
		unrecorded: make(chan struct{}, o.OutcomeBatch),
		wakeRoute:  make(chan struct{}, 1),
		wakeClaim:  make(chan struct{}, 1),
		news:       make(chan struct{}, 1),
	}, nil
}

func outboxHint(missing bool) string {
	if !missing {
		return ""
	}
	return "; stores.Stores have one of webhooks if stores.Options.Events is stores.Outbox"
}

// Wake makes the dispatcher check for events at once. Call it after a commit in the same process. It never
// blocks.
func (d *Dispatcher) Wake() { poke(d.wakeRoute) }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run delivers until ctx ends. Then it starts nothing more, gives running requests Options.Drain to finish,
// records their outcomes, and returns nil. Requests that are still running then are retried after their lease.
// Run continues after an outage of the store.
func (d *Dispatcher) Run(ctx context.Context) error {
	free := context.WithoutCancel(ctx)
	routing, stopRouting := context.WithCancel(free)
	defer stopRouting()
	sending, stopSending := context.WithCancel(free)
	defer stopSending()
	recording, stopRecording := context.WithCancel(free)
	defer stopRecording()

	var helpers, recorders, senders sync.WaitGroup
	helpers.Go(func() { d.route(routing) })
	helpers.Go(func() { d.sweep(routing) })
	if d.opts.Signal != nil {
		helpers.Go(func() { d.sendSignals(routing) })
		helpers.Go(func() { d.listenForSignals(routing) })
	}
	recorders.Go(func() { d.recordOutcomes(recording) })

	d.claim(ctx, sending, &senders)
	d.targets.dropAll()
	close(d.jobs)

	drain := time.AfterFunc(d.opts.Drain, stopSending)
	defer drain.Stop()
	giveUp := time.AfterFunc(d.opts.Drain+recordExtra, stopRecording)
	defer giveUp.Stop()
	senders.Wait()
	close(d.outcomes)
	recorders.Wait()
	stopRouting()
	helpers.Wait()
	return nil
}

// Step runs due work once: it routes up to 500 events, sends due deliveries with a free slot, records the
// outcomes, and does the hourly work of Run once an hour. It returns the number of events and deliveries that it
// processed. Hosts with their own scheduler and tests call it. Outcomes of sent messages are recorded even if
// ctx ends meanwhile. An endpoint that fails is not an error. Do not call it while Run or another Step runs.
func (d *Dispatcher) Step(ctx context.Context) (int, error) {
	if now := d.opts.Now(); now.Sub(d.swept) >= sweepEvery {
		if err := d.sweepOnce(ctx); err != nil {
			return 0, fmt.Errorf("sweep of endpoints and bodies: %w", err)
		}
		d.swept = now
	}
	routed, err := d.routeOnce(ctx)
	if err != nil {
		return 0, fmt.Errorf("route events: %w", err)
	}
	d.targets.rescan()
	jobs, claimed, err := d.claimJobs(ctx)
	if err != nil {
		return routed, fmt.Errorf("claim deliveries: %w", err)
	}
	for _, j := range jobs {
		d.runJob(ctx, j)
		if len(d.outcomes) == cap(d.outcomes) {
			err = errors.Join(err, d.recordWaiting(ctx))
		}
	}
	return routed + claimed, errors.Join(err, d.recordWaiting(ctx))
}

// route adds deliveries of written events to lanes until ctx ends.
func (d *Dispatcher) route(ctx context.Context) {
	failed := 0
	for ctx.Err() == nil {
		n, err := d.routeOnce(ctx)
		if err != nil {
			failed = d.waitAfterFailure(ctx, "route", err, failed)
			continue
		}
		failed = 0
		if n > 0 {
			poke(d.wakeClaim)
			poke(d.news)
		}
		switch {
		case n >= routeBatch:
		case n > 0:
			wait(ctx, d.opts.Busy, d.wakeRoute)
		default:
			wait(ctx, d.opts.Idle, d.wakeRoute)
		}
	}
}

// routeOnce adds deliveries of at most routeBatch events to lanes, and returns the number of events.
func (d *Dispatcher) routeOnce(ctx context.Context) (int, error) {
	began := d.opts.Now()
	routed, err := d.deliveries.Route(ctx, d.modes, routeBatch)
	if err != nil {
		return 0, err
	}
	if routed.Events > 0 {
		d.opts.Hooks.Routed(routed.Events, d.opts.Now().Sub(began))
		d.targets.markRouted(routed.Endpoints)
	}
	return routed.Events, nil
}

// claim claims due deliveries and starts a sender for each, until ctx ends. sending is the context of the requests,
// which go on after ctx has ended.
func (d *Dispatcher) claim(ctx, sending context.Context, senders *sync.WaitGroup) {
	failed := 0
	for ctx.Err() == nil {
		if rest := d.targets.claimDelay(d.opts.Now()); rest > 0 {
			wait(ctx, rest, nil)
			continue
		}
		n, err := d.claimOnce(ctx, sending, senders)
		switch {
		case err != nil:
			failed = d.waitAfterFailure(ctx, "claim", err, failed)
		case n > 0:
			failed = 0
		case d.targets.idle():
			wait(ctx, d.opts.Idle, d.wakeClaim)
		default:
			wait(ctx, d.opts.Busy, d.wakeClaim)
		}
	}
}

// claimOnce claims due deliveries once and starts a sender for each. It returns the number of claimed deliveries.
func (d *Dispatcher) claimOnce(ctx, sending context.Context, senders *sync.WaitGroup) (int, error) {
	jobs, n, err := d.claimJobs(ctx)
	for _, j := range jobs {
		select {
		case d.jobs <- j: // a worker is free
		default:
			d.startSender(sending, senders, j)
		}
	}
	return n, err
}

// claimJobs claims due deliveries, and returns the jobs and the number of claimed deliveries. A delivery that
// may crash this process waits while another such delivery runs.
func (d *Dispatcher) claimJobs(ctx context.Context) ([]job, int, error) {
	if d.targets.scanDue(d.opts.Now()) {
		ids, err := d.deliveries.Due(ctx)
		if err != nil {
			return nil, 0, err
		}
		d.targets.setDue(ids, d.opts.Now())
	}
	began := d.opts.Now()
	d.targets.dropOld(began.Add(-holdAtMost))
	quotas := d.targets.quotas(began)
	if len(quotas) == 0 {
		return nil, 0, nil
	}
	claimed, err := d.deliveries.Claim(ctx, Claim{Quotas: quotas, Lease: d.opts.Lease})
	if err != nil {
		return nil, 0, err
	}
	ended := d.opts.Now()
	n := len(claimed.Deliveries)
	if n > 0 {
		d.opts.Hooks.Claimed(n, ended.Sub(began))
	}
	claimed.Deliveries = d.releaseSuspects(ctx, claimed.Deliveries, began)
	turns := d.targets.assignSlots(quotas, claimed.Deliveries, began)
	clock := storeClock{now: d.opts.Now, local: began, store: claimed.At}
	jobs := make([]job, len(claimed.Deliveries))
	for i, delivery := range claimed.Deliveries {
		jobs[i] = job{delivery, clock, ended, turns[i]}
	}
	return jobs, n, nil
}

func (d *Dispatcher) startSender(ctx context.Context, senders *sync.WaitGroup, j job) {
	// A separate function, so that only jobs that start a sender are allocated on the heap.
	senders.Go(func() { d.send(ctx, j) })
}

// sweep does the hourly work until ctx ends: it disables endpoints that have failed for too long, even without a recent
// attempt, and deletes bodies whose retention has ended.
func (d *Dispatcher) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		if err := d.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			d.opts.Log.Warn("sweep of endpoints and bodies", "kind", healthlab.KindOf(err).Error(), "cause", work.Cause(err))
		}
		wait(ctx, sweepEvery, nil)
	}
}

func (d *Dispatcher) sweepOnce(ctx context.Context) error {
	look, err := d.deliveries.Claim(ctx, Claim{Lease: d.opts.Lease}) // an empty claim returns the store's time
	if err != nil {
		return err
	}
	return errors.Join(d.targets.disableFailing(ctx, look.At), d.emptyBodies(ctx, look.At))
}

// waitAfterFailure waits after a failure of the store, longer each time. what names the failed step. times is the
// number of earlier failures in a row; it returns times + 1.
func (d *Dispatcher) waitAfterFailure(ctx context.Context, what string, err error, times int) int {
	if ctx.Err() == nil {
		if n := times + 1; n&(n-1) == 0 { // logs failure 1, 2, 4, …, so that an outage does not fill the log
			d.opts.Log.Warn("webhook store out of reach", "step", what, "kind", healthlab.KindOf(err).Error(), "cause", work.Cause(err), "times", n)
		}
		wait(ctx, storeWait(times), nil)
	}
	return times + 1
}

func storeWait(times int) time.Duration {
	return min(100*time.Millisecond<<min(times, 6), longestWait)
}

// wait returns after d, when wake receives a value, or when ctx ends.
func wait(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-wake:
	case <-ctx.Done():
	}
}

// storeClock computes the store's time from one reading of the store's clock and the time that has passed since, so
// that a wrong clock of the process does not matter.
type storeClock struct {
	now   func() time.Time
	local time.Time // local time just before the reading
	store time.Time // the store's time that was read
}

func (c storeClock) time() time.Time { return c.store.Add(c.now().Sub(c.local)) }

func (c storeClock) age() time.Duration {
	// The monotonic clock does not run while a machine is suspended.
	now := c.now()
	return max(now.Sub(c.local), now.Round(0).Sub(c.local.Round(0)))
}

func (d *Dispatcher) suspicious(del Delivery) bool {
	// Deliveries that were started together with the crashing one are suspected too.
	return del.Starts > 1 && del.Starts == d.limits.crashLimit
}

// releaseSuspects lets at most one delivery run that may crash the process. It releases the other such deliveries, and
// returns those that may start. If the process then crashes, the running one is the cause.
func (d *Dispatcher) releaseSuspects(ctx context.Context, claimed []Delivery, at time.Time) []Delivery {
	if !slices.ContainsFunc(claimed, d.suspicious) {
		return claimed
	}
	rest := make([]Delivery, 0, len(claimed))
	var back []Released
	for _, del := range claimed {
		if d.suspicious(del) && !d.suspect.CompareAndSwap(0, int64(del.Delivery)) {
			back = append(back, Released{Lease: del.Lease, Delay: suspectWait})
			continue
		}
		rest = append(rest, del)
	}
	for failed := 0; len(back) > 0 && d.opts.Now().Sub(at) < d.opts.Lease; {
		returning, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.opts.StartMargin)
		err := d.deliveries.Release(returning, back)
		cancel()
		if err == nil {
			return rest
		}
		if ctx.Err() != nil {
			break
		}
		failed = d.waitAfterFailure(ctx, "release", err, failed)
	}
	if len(back) == 0 {
		return rest
	}
	return slices.DeleteFunc(rest, func(del Delivery) bool { // an unreleased delivery returns after its lease
		d.clearSuspect(del)
		return d.suspicious(del)
	})
}

func (d *Dispatcher) clearSuspect(del Delivery) {
	// Now another suspected delivery may start.
	d.suspect.CompareAndSwap(int64(del.Delivery), 0)
}
