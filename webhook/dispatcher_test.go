package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/webhook"
)

var types = []healthlab.EventType{
	{Name: "daily.data.sleep.created", Mode: healthlab.Latest, Data: struct {
		ID string `json:"id"`
	}{"example"}},
	{Name: "labtest.order.updated", Mode: healthlab.Ordered, Data: struct{}{}},
	{Name: "labtest.result.critical", Mode: healthlab.Independent, Data: struct{}{}},
}

// fixture is everything that delivering needs, on a memory store.
type fixture struct {
	store   *memory.Store
	types   *webhook.Catalogue
	sealer  *healthlab.AESSealer
	service *webhook.Service
	to      *receiver
	opts    webhook.Options
	written func()
	audited []webhook.AuditedAccess
	logs    bytes.Buffer
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	h := &fixture{to: &receiver{}, written: func() {}}
	h.store = memory.New(nil)
	h.store.OnWritten(func() { h.written() })
	var err error
	h.types, err = webhook.NewCatalogue(types, webhook.EventTypes())
	require.NoError(t, err)
	h.sealer, err = healthlab.NewAESSealer("first", map[string][]byte{"first": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	h.service, err = webhook.NewService(h.types, h.store.Webhooks(), h.to, h.sealer,
		&webhook.ServiceOptions{
			PerMinute: 1000,
			Audit:     func(_ context.Context, a webhook.AuditedAccess) { h.audited = append(h.audited, a) },
		})
	require.NoError(t, err)
	h.opts.Log = slog.New(slog.NewTextHandler(&h.logs, nil))
	return h
}

func (h *fixture) create(t testing.TB) webhook.Endpoint {
	t.Helper()
	e, err := h.service.Create(t.Context(), team, webhook.NewEndpoint{URL: "https://receiver.example.com/in?q=planted-query"})
	require.NoError(t, err)
	return e
}

func (h *fixture) write(t testing.TB, eventType, key string) uuid.UUID {
	t.Helper()
	e := healthlab.Event{
		ID: uuid.Must(uuid.NewV7()), Type: eventType, Team: team, User: user, Key: key, At: time.Now(),
		Data: json.RawMessage(`{"planted":"marker-in-a-body"}`),
	}
	require.NoError(t, h.store.Outbox().Append(t.Context(), []healthlab.Event{e}))
	return e.ID
}

// run runs a dispatcher until the test or the returned function ends it.
func (h *fixture) run(t testing.TB) (stop func()) {
	t.Helper()
	d, err := webhook.NewDispatcher(h.types, h.store.Webhooks(), h.to, h.sealer, &h.opts)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- d.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
}

// runFor runs a dispatcher for a time. It looks for work each second in the last 20 s, and every 20 s before.
func (h *fixture) runFor(t testing.TB, d time.Duration) {
	t.Helper()
	const fine = 20 * time.Second
	idle := h.opts.Idle
	defer func() { h.opts.Idle = idle }()
	for _, part := range []struct{ idle, lasts time.Duration }{{fine, d - fine}, {time.Second, min(d, fine)}} {
		if part.lasts > 0 {
			h.opts.Idle = part.idle
			stop := h.run(t)
			time.Sleep(part.lasts)
			stop()
		}
	}
}

// receiver is a Notifier that notes what it gets. Safe for concurrent use.
type receiver struct {
	mu     sync.Mutex
	got    []received
	answer func(n webhook.Notification, nth int) webhook.Result // default: accepted
}

type received struct {
	webhook.Notification
	when time.Time
}

func (r *receiver) Notify(_ context.Context, n webhook.Notification) webhook.Result {
	r.mu.Lock()
	r.got = append(r.got, received{n, time.Now()})
	nth, answer := len(r.got), r.answer
	r.mu.Unlock()
	if answer == nil {
		return webhook.Result{Class: webhook.ClassOK, Status: 200}
	}
	return answer(n, nth)
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received(nil), r.got...)
}

func always(c webhook.Class, status int) func(webhook.Notification, int) webhook.Result {
	return func(webhook.Notification, int) webhook.Result { return webhook.Result{Class: c, Status: status} }
}

func TestDispatcher_retriesAtTheTimesOfTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		h.create(t)
		h.to.answer = always(webhook.ClassRefused, 500)
		began := time.Now()
		h.write(t, "daily.data.sleep.created", "k")
		schedule := []time.Duration{0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour}
		for _, next := range schedule {
			last := began
			if got := h.to.all(); len(got) > 0 {
				last = got[len(got)-1].when
			}
			h.runFor(t, time.Until(last.Add(next+4*time.Second)))
		}
		h.runFor(t, 20*time.Hour)

		var at []time.Duration
		for _, r := range h.to.all() {
			at = append(at, r.when.Sub(began).Truncate(time.Second))
		}
		require.Len(t, at, 8, "attempt 9 never")
		for i, want := range schedule {
			if i > 0 {
				require.InDelta(t, want.Seconds(), (at[i] - at[i-1]).Seconds(), 1, "before attempt %d", i+1)
				require.GreaterOrEqual(t, at[i]-at[i-1], want)
			}
		}
	})
}

func TestDispatcher_retryKeepsBodyAndIDAndRenewsTheTimestamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		e := h.create(t)
		h.to.answer = func(_ webhook.Notification, nth int) webhook.Result {
			if nth < 3 {
				return webhook.Result{Class: webhook.ClassRefused, Status: 500}
			}
			return webhook.Result{Class: webhook.ClassOK, Status: 204}
		}
		event := h.write(t, "daily.data.sleep.created", "k")
		stop := h.run(t)
		time.Sleep(time.Minute)
		require.NoError(t, h.service.Rotate(t.Context(), team, e.ID, ""))
		time.Sleep(time.Hour)
		synctest.Wait()
		stop()
		got := h.to.all()
		require.Len(t, got, 3)
		for _, r := range got {
			require.Equal(t, webhook.MessageID(event), r.ID)
			require.Equal(t, got[0].Body, r.Body)
			require.WithinDuration(t, r.when, r.At, time.Second)
		}
		require.Len(t, got[1].Secrets, 1)
		require.Len(t, got[2].Secrets, 2, "rotated between two attempts: both sign")
		require.Equal(t, got[1].Secrets[0], got[2].Secrets[1], "the newest first")
		require.NotContains(t, h.logs.String(), "marker")
		require.NotContains(t, h.logs.String(), "planted")
	})
}

func TestDispatcher_status410DisablesTheEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		h.opts.Idle = 30 * time.Second // two days of polls
		e, other := h.create(t), h.create(t)
		_, err := h.service.Patch(t.Context(), team, other.ID, webhook.Patch{FilterTypes: &[]string{"endpoint.disabled"}})
		require.NoError(t, err)
		h.to.answer = func(n webhook.Notification, _ int) webhook.Result {
			if bytes.Contains(n.Body, []byte("endpoint.disabled")) {
				return webhook.Result{Class: webhook.ClassOK, Status: 200}
			}
			return webhook.Result{Class: webhook.ClassGone, Status: http.StatusGone}
		}
		for range 3 {
			h.write(t, "labtest.order.updated", "k")
		}
		stop := h.run(t)
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		stop()
		got := h.to.all()
		require.Len(t, got, 2, "one request, and one to the other endpoint that says so")
		var body struct {
			Data webhook.EndpointDisabled `json:"data"`
		}
		require.NoError(t, json.Unmarshal(got[1].Body, &body))
		require.Equal(t, webhook.EndpointDisabled{EndpointID: e.ID.String(), URL: e.URL, Reason: "gone", At: body.Data.At}, body.Data)
		e, err = h.service.Get(t.Context(), team, e.ID)
		require.NoError(t, err)
		require.True(t, e.Disabled)
		page, err := h.service.Attempts(t.Context(), webhook.AttemptQuery{Team: team, Endpoint: e.ID})
		require.NoError(t, err)
		require.Len(t, page.Attempts, 4, "the attempt, and three cancelled")
	})
}

func TestDispatcher_exhaustedMessageSendsAnEventToOtherEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		h.opts.Idle = 30 * time.Second // four days of polls
		e := h.create(t)
		other, err := h.service.Create(t.Context(), team, webhook.NewEndpoint{
			URL: "https://other.example.com", FilterTypes: []string{"message.attempt.exhausted"},
		})
		require.NoError(t, err)
		h.to.answer = always(webhook.ClassRefused, 503) // both fail: telling must not make more to tell
		event := h.write(t, "daily.data.sleep.created", "k")
		stop := h.run(t)
		time.Sleep(96 * time.Hour)
		synctest.Wait()
		stop()
		count := map[string]int{}
		var told webhook.AttemptExhausted
		for _, r := range h.to.all() {
			count[r.URL]++
			if r.URL == other.URL {
				var body struct{ Data webhook.AttemptExhausted }
				require.NoError(t, json.Unmarshal(r.Body, &body))
				told = body.Data
			}
		}
		require.Equal(t, map[string]int{e.URL: 8, other.URL: 8}, count)
		status, class := 503, "refused"
		told.LastAttempt.At = healthlab.Time{}
		require.Equal(t, webhook.AttemptExhausted{
			MessageID: webhook.MessageID(event), EventType: "daily.data.sleep.created", EndpointID: e.ID.String(),
			AttemptCount: 8, LastAttempt: webhook.LastAttempt{StatusCode: &status, Error: &class},
		}, told)
	})
}

func TestDispatcher_pausesAnUnreachableEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		h.create(t)
		h.opts.Busy, h.opts.Idle = 10*time.Second, 10*time.Second // seven hours of polls
		up := time.Now().Add(6 * time.Hour)
		h.to.answer = func(webhook.Notification, int) webhook.Result {
			if time.Now().Before(up) {
				return webhook.Result{Class: webhook.ClassConnect}
			}
			return webhook.Result{Class: webhook.ClassOK, Status: 200}
		}
		stop := h.run(t)
		keys := prove.Count(500, 10_000)
		const versions = 3
		for v := range versions {
			for k := range keys {
				h.numbered(t, "daily.data.sleep.created", fmt.Sprint(k), v+1)
			}
			time.Sleep(time.Hour)
		}
		time.Sleep(time.Until(up))
		during := len(h.to.all())
		require.LessOrEqual(t, during, 100)
		left, err := h.store.Backlog(t.Context())
		require.NoError(t, err)
		require.Zero(t, left.Unrouted)
		require.Equal(t, keys, left.Unfinished, "one for each key")
		require.Positive(t, left.Oldest)
		time.Sleep(time.Hour)
		synctest.Wait()
		stop()
		after := h.to.all()[during:]
		require.Len(t, after, keys, "each key once")
		got := map[string]int{}
		for _, r := range after {
			k, v := version(t, r.Notification)
			got[k] = v
		}
		require.Len(t, got, keys)
		for k, v := range got {
			require.Equal(t, versions, v, "key %s: the newest version", k)
		}
	})
}

func TestDispatcher_disablesAnEndpointAfterFiveDaysOfFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		e := h.create(t)
		h.opts.Busy, h.opts.Idle = time.Second, 10*time.Second
		h.to.answer = always(webhook.ClassRefused, 500)
		stop := h.run(t)
		began := time.Now()
		h.write(t, "daily.data.sleep.created", "k")
		time.Sleep(140 * time.Hour) // the message has long failed: the sweep must see it
		synctest.Wait()
		stop()
		e, err := h.service.Get(t.Context(), team, e.ID)
		require.NoError(t, err)
		require.True(t, e.Disabled)
		require.Equal(t, webhook.DisabledFailing, e.DisabledReason)
		require.Less(t, e.Health.ArmedAt.Sub(began), 24*time.Hour)
	})
}

func TestDispatcher_survivesAPanicWhileSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		h.opts.Idle = 30 * time.Second // two days of polls
		e := h.create(t)
		h.to.answer = func(n webhook.Notification, _ int) webhook.Result {
			if bytes.Contains(n.Body, []byte("labtest.order.updated")) {
				panic("a body that kills its sender")
			}
			return webhook.Result{Class: webhook.ClassOK, Status: 200}
		}
		bad := h.write(t, "labtest.order.updated", "k")
		good := h.write(t, "daily.data.sleep.created", "l")
		poison := h.write(t, "labtest.order.updated", "m")
		_, err := h.store.Deliveries().Route(t.Context(), h.types.Modes(), 2)
		require.NoError(t, err)
		_, err = h.store.Deliveries().Route(t.Context(), h.types.Modes(), 1)
		require.NoError(t, err)
		for range 5 { // processes that claim everything and die
			_, err := h.store.Deliveries().Claim(t.Context(), webhook.Claim{
				Quotas: []webhook.Quota{{Endpoint: e.ID, Max: 10}}, Lease: time.Minute,
			})
			require.NoError(t, err)
			time.Sleep(time.Minute)
		}
		stop := h.run(t)
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		stop()
		for _, event := range []uuid.UUID{bad, good, poison} {
			page, err := h.service.Attempts(t.Context(), webhook.AttemptQuery{Team: team, Event: event})
			require.NoError(t, err)
			require.Equal(t, webhook.ReasonPoison, page.Attempts[0].Reason)
			require.Equal(t, webhook.Failed, page.Attempts[0].State)
		}

		h.write(t, "labtest.order.updated", "n")
		fine := h.write(t, "daily.data.sleep.created", "o")
		stop = h.run(t)
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		stop()
		page, err := h.service.Attempts(t.Context(), webhook.AttemptQuery{Team: team, Event: fine})
		require.NoError(t, err)
		require.Equal(t, webhook.Succeeded, page.Attempts[0].State, "others go on")
		require.Contains(t, h.logs.String(), "panic while sending")
		require.NotContains(t, h.logs.String(), "kills its sender")
	})
}

func TestDispatcher_stopLetsRunningRequestsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		h.create(t)
		h.to.answer = func(webhook.Notification, int) webhook.Result {
			time.Sleep(10 * time.Second)
			return webhook.Result{Class: webhook.ClassOK, Status: 200}
		}
		event := h.write(t, "daily.data.sleep.created", "k")
		stop := h.run(t)
		time.Sleep(2 * time.Second)
		began := time.Now()
		stop()
		require.Less(t, time.Since(began), 20*time.Second)
		page, err := h.service.Attempts(t.Context(), webhook.AttemptQuery{Team: team, Event: event})
		require.NoError(t, err)
		require.Equal(t, webhook.Succeeded, page.Attempts[0].State)
	})
}

func TestDispatcher_stopReleasesUnsentMessagesAndRepeatsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		for range 4 {
			h.create(t)
		}
		h.opts.Slots, h.opts.EndpointSlots = 200, 50
		const events = 500
		for i := range events {
			h.write(t, "labtest.order.updated", fmt.Sprint(i))
		}
		h.to.answer = func(webhook.Notification, int) webhook.Result {
			time.Sleep(100 * time.Millisecond)
			return webhook.Result{Class: webhook.ClassOK, Status: 200}
		}
		stop := h.run(t)
		for len(h.to.all()) < 4*events/2 {
			time.Sleep(time.Millisecond)
		}
		began := time.Now()
		stop()
		require.Less(t, time.Since(began), 200*time.Millisecond, "what runs is let finish, and nothing more is started")
		ran := len(h.to.all())
		require.Less(t, ran, 4*events)
		stop = h.run(t)
		time.Sleep(30 * time.Second) // less than a lease: what was not sent was given back
		stop()
		require.Len(t, h.to.all(), 4*events, "nothing twice")
	})
}

// lostKey is a sealer without its key.
type lostKey struct{ healthlab.Sealer }

func (lostKey) Open(context.Context, healthlab.Sealed, []byte) ([]byte, error) {
	return nil, healthlab.Unavailable
}

func TestDispatcher_sendsNothingWithoutASigningSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		h.create(t)
		h.write(t, "daily.data.sleep.created", "k")
		alarms := 0
		h.opts.Hooks.SealError = func() { alarms++ }
		d, err := webhook.NewDispatcher(h.types, h.store.Webhooks(), h.to, lostKey{h.sealer}, &h.opts)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, d.Run(ctx))
		require.Empty(t, h.to.all())
		require.InDelta(t, 60, alarms, 2, "once a minute")
		stop := h.run(t)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		stop()
		require.Len(t, h.to.all(), 1, "no attempt was used up, nothing is lost")
	})
}

// A failure of our own proxy is no attempt: the message waits, and the receiver's health does
// not change.
func TestDispatcher_proxyFailureCountsAsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		e := h.create(t)
		h.to.answer = func(_ webhook.Notification, nth int) webhook.Result {
			if nth <= 3 {
				return webhook.Result{Class: webhook.ClassProxy}
			}
			return webhook.Result{Class: webhook.ClassOK, Status: 200}
		}
		began := time.Now()
		h.write(t, "daily.data.sleep.created", "k")
		stop := h.run(t)
		time.Sleep(10 * time.Minute)
		stop()
		got := h.to.all()
		require.Len(t, got, 4)
		require.InDelta(t, 3, got[3].when.Sub(began).Minutes(), 0.2, "it is not paused, and follows no schedule")
		now, err := h.service.Get(t.Context(), team, e.ID)
		require.NoError(t, err)
		require.Zero(t, now.Health)
	})
}

func TestNewDispatcher_refusesMissingTypesAndAShortLease(t *testing.T) {
	h := newFixture(t)
	_, err := webhook.NewDispatcher(nil, h.store.Webhooks(), h.to, h.sealer, nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = webhook.NewDispatcher(h.types, h.store.Webhooks(), h.to, h.sealer, &webhook.Options{Lease: 20 * time.Second})
	require.ErrorIs(t, err, healthlab.Invalid)
}

// Step sends what is due in the order of lanes, and what failed when its time comes.
func TestStep_sendsDueMessagesInOrderAndRetriesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		h.create(t)
		h.to.answer = func(_ webhook.Notification, nth int) webhook.Result {
			if nth == 1 {
				return webhook.Result{Class: webhook.ClassThrottled, Status: http.StatusServiceUnavailable}
			}
			return webhook.Result{Class: webhook.ClassOK, Status: http.StatusOK}
		}
		d, err := webhook.NewDispatcher(h.types, h.store.Webhooks(), h.to, h.sealer, &h.opts)
		require.NoError(t, err)
		var sent []string
		for range 100 {
			sent = append(sent, webhook.MessageID(h.write(t, "labtest.order.updated", "an order")))
		}
		step := func() int {
			n, err := d.Step(t.Context())
			require.NoError(t, err)
			return n
		}
		require.Equal(t, 101, step(), "100 events and the first of their lane")
		require.Zero(t, step(), "it failed, and the others wait behind it")
		time.Sleep(time.Minute)
		for step() > 0 {
		}
		var got []string
		for _, r := range h.to.all()[1:] {
			got = append(got, r.ID)
		}
		require.Equal(t, sent, got)
		require.Empty(t, h.logs.String())
	})
}

// Step sends more messages of different lanes than an endpoint has slots, each once.
func TestStep_sendsEachDeliveryOnceWithMoreLanesThanSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		h.create(t)
		d, err := webhook.NewDispatcher(h.types, h.store.Webhooks(), h.to, h.sealer, &h.opts)
		require.NoError(t, err)
		var want []string
		for i := range 1000 {
			want = append(want, webhook.MessageID(h.write(t, "labtest.order.updated", fmt.Sprint("order ", i))))
		}
		for n := 1; n > 0; {
			n, err = d.Step(t.Context())
			require.NoError(t, err)
		}
		var got []string
		for _, r := range h.to.all() {
			got = append(got, r.ID)
		}
		require.ElementsMatch(t, want, got)
	})
}

// A message that was accepted while the context of Step ended is not sent again.
func TestStep_recordsTheOutcomeAfterItsContextEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		h.create(t)
		ctx, cancel := context.WithCancel(t.Context())
		h.to.answer = func(webhook.Notification, int) webhook.Result {
			cancel()
			return webhook.Result{Class: webhook.ClassOK, Status: http.StatusOK}
		}
		d, err := webhook.NewDispatcher(h.types, h.store.Webhooks(), h.to, h.sealer, &h.opts)
		require.NoError(t, err)
		h.write(t, "labtest.order.updated", "an order")
		_, err = d.Step(ctx)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		_, err = d.Step(t.Context())
		require.NoError(t, err)
		require.Len(t, h.to.all(), 1)
	})
}
