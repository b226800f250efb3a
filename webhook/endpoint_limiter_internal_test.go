package webhook

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestEndpointLimiter_growsByOnePerRoundTripUpToItsLimit(t *testing.T) {
	g := newGate(10)
	require.Equal(t, 8, g.free(start))
	for range 8 {
		g.start(start)
	}
	require.Zero(t, g.free(start))
	for range 8 {
		g.succeed(time.Second, start)
	}
	require.Equal(t, 9, g.free(start))
	for range 100 {
		g.start(start)
		g.succeed(time.Second, start)
	}
	require.Equal(t, 10, g.free(start), "never above its limit")
}

func TestEndpointLimiter_halvesOnTimeoutAndThrottling(t *testing.T) {
	g := newGate(64)
	g.start(start)
	g.fail(1, ClassTimeout, start)
	require.Equal(t, 4, g.free(start))
	g.start(start)
	g.fail(2, ClassRefused, start)
	require.Equal(t, 4, g.free(start), "a refusal says nothing about load")
	g.start(start)
	g.fail(3, ClassThrottled, start)
	require.Zero(t, g.free(start.Add(time.Second-1)), "sends are a second apart")
	require.Equal(t, 1, g.free(start.Add(time.Second)))
	g.start(start.Add(time.Second))
	require.Zero(t, g.free(start.Add(time.Hour)), "one at a time")
	g.succeed(time.Second, start.Add(2*time.Second))
	require.Equal(t, 2, g.free(start.Add(2*time.Second)))
}

func TestEndpointLimiter_claimsMoreThanItsSlotsForAFastEndpoint(t *testing.T) {
	g := newGate(64)
	g.slots = 64
	answer := func(took time.Duration) { g.start(start); g.succeed(took, start) }
	require.Equal(t, 64, g.free(start), "nothing is known yet")
	answer(50 * time.Millisecond)
	require.Equal(t, 64+38, g.free(start), "as many as come free in 30 ms")
	answer(time.Millisecond)
	require.Equal(t, 64+64, g.free(start), "as many again as there are slots, at most")
	g.held, g.busy = 30, 64
	require.Equal(t, 34, g.free(start))
	g.held, g.busy = 0, 0
	answer(14 * time.Second)
	require.Equal(t, 64, g.free(start), "a slow one has time for a claim")
	answer(time.Millisecond)
	g.start(start)
	g.fail(1, ClassRefused, start)
	require.Equal(t, 64, g.free(start), "not while it fails")
	answer(time.Millisecond)
	g.limit(100, start)
	require.Equal(t, 64, g.free(start), "not where sends are counted")
}

func TestClaim_waitsUntilHalfOfTheSlotsAreFree(t *testing.T) {
	o := &Options{Slots: 100}
	ts := newTargets(nil, nil, o.orDefaults())
	ts.claimed = start
	rest := func(busy int, since time.Duration) time.Duration {
		ts.busy = busy
		return ts.claimDelay(start.Add(since))
	}
	require.Zero(t, rest(0, 0), "nothing runs, so nothing comes soon")
	require.Equal(t, claimPoll, rest(100, 0))
	require.Equal(t, time.Millisecond, rest(100, 19*time.Millisecond), "20 ms while all slots are taken")
	require.Equal(t, time.Millisecond, rest(50, 9*time.Millisecond), "half of that while half of them are")
	require.Equal(t, 5*time.Millisecond, ts.underLoad(recordApart), "and so for outcomes")
	id := EndpointID{}
	ts.due[id] = struct{}{}
	ts.of(id).gate.slots = 49
	require.Equal(t, claimPoll, rest(50, 0))
	ts.of(id).gate.slots = 50
	require.Zero(t, rest(50, 0), "there is room for half as much as there are slots")
}

func TestEndpointLimiter_staysWithinTheRateLimit(t *testing.T) {
	g := newGate(64)
	g.limit(3, start)
	sent := 0
	for ms := range 10_000 {
		at := start.Add(time.Duration(ms) * time.Millisecond)
		for range g.free(at) {
			g.start(at)
			g.succeed(time.Second, at)
			sent++
		}
	}
	require.InDelta(t, 3*10+3, sent, 1, "a burst of one second, then 3 a second")

	at := start.Add(time.Hour)
	require.Equal(t, 3, g.free(at))
	g.held = 2
	require.Equal(t, 1, g.free(at), "what is held will be sent")
}

func TestEndpointLimiter_pausesAfterFailuresOfDifferentDeliveries(t *testing.T) {
	g := newGate(64)
	for range 30 {
		g.start(start)
		require.False(t, g.fail(1, ClassRefused, start), "one delivery is not an endpoint")
	}
	for id := DeliveryID(2); id < 10; id++ {
		g.start(start)
		require.False(t, g.fail(id, ClassRefused, start))
	}
	g.start(start)
	require.True(t, g.fail(10, ClassRefused, start))
	for id := DeliveryID(20); id < 29; id++ {
		g.start(start)
		require.False(t, g.fail(id, ClassRefused, start))
	}
	g.start(start)
	g.succeed(time.Second, start)
	g.start(start)
	require.False(t, g.fail(30, ClassRefused, start), "a success starts the count over")
	g.resume()
	require.Equal(t, 1, g.free(start))
}

func TestLimits_decideTheDeliveryStateAfterAnAttempt(t *testing.T) {
	l := limits{schedule: DefaultSchedule(0, nil), expiry: 72 * time.Hour, crashLimit: 5}
	blocking := l
	blocking.maxBlock = time.Hour
	for _, c := range []struct {
		name     string
		limits   limits
		d        Delivery
		r        Result
		accepted time.Time
		state    State
		reason   Reason
		delay    time.Duration
		quiet    time.Duration
	}{
		{"success", l, Delivery{}, Result{Class: ClassOK}, time.Time{}, Succeeded, "", 0, 0},
		{"first failure", l, Delivery{}, Result{Class: ClassRefused}, time.Time{}, Retrying, "", 5 * time.Second, 0},
		{"seventh failure", l, Delivery{Attempts: 6}, Result{Class: ClassRefused}, time.Time{}, Retrying, "", 10 * time.Hour, 0},
		{"eighth failure", l, Delivery{Attempts: 7}, Result{Class: ClassRefused}, time.Time{}, Failed, ReasonExhausted, 0, 0},
		{"no answer", l, Delivery{}, Result{Class: ClassTimeout}, time.Time{}, Retrying, "", 5 * time.Second, 5 * time.Second},
		{"asked to wait", l, Delivery{}, Result{Class: ClassThrottled, RetryAfter: time.Minute}, time.Time{}, Retrying, "", time.Minute, 0},
		{"asked to wait less", l, Delivery{Attempts: 1}, Result{Class: ClassThrottled, RetryAfter: time.Minute}, time.Time{}, Retrying, "", 5 * time.Minute, 0},
		{
			"blocks others, time left", blocking, Delivery{Attempts: 3, Blocking: true, FirstFailedAt: start.Add(-50 * time.Minute)},
			Result{Class: ClassRefused}, start, Retrying, "", 10 * time.Minute, 0,
		},
		{
			"blocks others too long", blocking, Delivery{Attempts: 3, Blocking: true, FirstFailedAt: start.Add(-time.Hour)},
			Result{Class: ClassRefused}, start, Failed, ReasonBlocked, 0, 0,
		},
		{
			"blocks others, but the endpoint is down", blocking, Delivery{Attempts: 3, Blocking: true, FirstFailedAt: start.Add(-time.Hour)},
			Result{Class: ClassRefused}, start.Add(-2 * time.Hour), Retrying, "", 2 * time.Hour, 0,
		},
		{
			"blocks nobody", blocking, Delivery{Attempts: 3, FirstFailedAt: start.Add(-time.Hour)},
			Result{Class: ClassRefused}, start, Retrying, "", 2 * time.Hour, 0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := c.limits.outcomeOf(c.d, c.r, start, c.accepted)
			require.Equal(t, []any{c.state, c.reason, c.delay, c.quiet}, []any{o.State, o.Reason, o.Delay, o.Quiet})
			require.True(t, o.Sent)
		})
	}
}

func TestLimits_decideBeforeAnAttemptWhetherToGiveUp(t *testing.T) {
	l := limits{expiry: 72 * time.Hour, crashLimit: 5}
	for _, c := range []struct {
		name   string
		d      Delivery
		decide bool
		reason Reason
	}{
		{"plain", Delivery{Starts: 1, QueuedAt: start}, false, ""},
		{"crashed five times", Delivery{Starts: 6, QueuedAt: start}, true, ReasonPoison},
		{"crashed four times", Delivery{Starts: 5, QueuedAt: start}, false, ""},
		{"superseded", Delivery{Starts: 6, QueuedAt: start, Superseded: true}, true, ReasonSuperseded},
		{"72 h old", Delivery{Starts: 1, QueuedAt: start.Add(-72 * time.Hour)}, true, ReasonExpired},
		{"almost", Delivery{Starts: 1, QueuedAt: start.Add(-72*time.Hour + 1)}, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, decide := l.endBeforeSend(c.d, start)
			require.Equal(t, c.decide, decide)
			require.Equal(t, c.reason, o.Reason)
			require.False(t, o.Sent)
		})
	}
}

func TestHealth_observesResultsInTheOrderOfTheirStart(t *testing.T) {
	paused := Health{FirstFailedAt: start, LastFailedAt: start, PausedUntil: start.Add(5 * time.Second), PauseStep: 1}
	h, _ := paused.observe(fact{began: start.Add(time.Second), ended: start.Add(2 * time.Second), class: ClassRefused, pause: true})
	require.Equal(t, 1, h.PauseStep, "what was in flight when the pause began does not lengthen it")
	h, _ = paused.observe(fact{began: start.Add(5 * time.Second), ended: start.Add(6 * time.Second), class: ClassRefused})
	require.Equal(t, 2, h.PauseStep)
	require.Equal(t, start.Add(21*time.Second), h.PausedUntil)
	h, _ = paused.observe(fact{began: start, ended: start, class: ClassOK})
	require.Equal(t, Health{}, h)
	_, why := Health{}.observe(fact{ended: start, class: ClassGone})
	require.Equal(t, DisabledGone, why)
	_, why = Health{ArmedAt: start.Add(-120 * time.Hour), FirstFailedAt: start, LastFailedAt: start}.observe(fact{ended: start, class: ClassRefused})
	require.Equal(t, DisabledFailing, why)

	failing := Health{FirstFailedAt: start, LastFailedAt: start}
	a, _ := failing.observe(fact{ended: start.Add(59 * time.Second), class: ClassRefused})
	require.False(t, a.worthWriting(failing))
	a, _ = failing.observe(fact{ended: start.Add(time.Minute), class: ClassRefused})
	require.True(t, a.worthWriting(failing))
	require.True(t, failing.worthWriting(Health{}), "an edge is")
	require.True(t, Health{}.worthWriting(failing))
}
