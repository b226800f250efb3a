package webhooktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/webhook"
)

// RunDispatcher runs webhook.Dispatcher on a store with failures: crashing processes, wrong clocks, changing
// endpoints. newStore is as for RunDeliveries, but the store's clock must move by itself.
func RunDispatcher(t *testing.T, newStore func(t *testing.T) Harness) {
	for _, c := range dispatcherCases {
		t.Run(c.name, func(t *testing.T) { c.run(t, newStore(t)) })
	}
}

// dispatcherStore makes a webhook.DispatcherStore from a harness.
type dispatcherStore struct {
	webhook.Deliveries
	webhook.Endpoints
}

// serviceStore makes a webhook.ServiceStore from a harness.
type serviceStore struct {
	dispatcherStore
	webhook.Log
}

// dispatchBench is a store with a service, dispatchers and a receiver that records messages.
type dispatchBench struct {
	*bench
	types   *webhook.Catalogue
	seal    healthlab.Sealer
	service *webhook.Service
	answer  func(from int, n webhook.Notification) webhook.Result // to the dispatcher from; nil accepts all

	mu  sync.Mutex
	got []delivery
	new chan struct{}
}

// delivery is a received message, and the dispatcher that sent it.
type delivery struct {
	webhook.Notification
	from int
}

func newDispatchBench(t *testing.T, s Harness) *dispatchBench {
	d := &dispatchBench{new: make(chan struct{}, 1)}
	var err error
	d.types, err = webhook.NewCatalogue([]healthlab.EventType{
		{Name: typeLatest, Mode: healthlab.Latest}, {Name: typeOrdered, Mode: healthlab.Ordered},
		{Name: typeIndependent, Mode: healthlab.Independent},
	}, webhook.EventTypes())
	require.NoError(t, err)
	d.seal, err = healthlab.NewAESSealer("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	d.service, err = webhook.NewService(d.types, serviceStore{dispatcherStore{s.Deliveries, s.Endpoints}, s.Log}, d.notifier(0), d.seal, nil)
	require.NoError(t, err)
	d.bench = &bench{t: t, s: s, team: healthlab.TeamID{UUID: id()}, user: healthlab.UserID{UUID: id()}}
	e, err := d.service.Create(t.Context(), d.team, webhook.NewEndpoint{URL: "https://receiver.example.com/first"})
	require.NoError(t, err)
	d.to = e.ID
	return d
}

type notifier func(ctx context.Context, n webhook.Notification) webhook.Result

func (f notifier) Notify(ctx context.Context, n webhook.Notification) webhook.Result {
	return f(ctx, n)
}

// notifier returns the Notifier of the dispatcher with the number from. It passes messages to the receiver.
func (d *dispatchBench) notifier(from int) webhook.Notifier {
	return notifier(func(_ context.Context, n webhook.Notification) webhook.Result {
		d.mu.Lock()
		d.got = append(d.got, delivery{n, from})
		d.mu.Unlock()
		select {
		case d.new <- struct{}{}:
		default:
		}
		if d.answer == nil {
			return webhook.Result{Class: webhook.ClassOK, Status: 200}
		}
		return d.answer(from, n)
	})
}

func (d *dispatchBench) all() []delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.got)
}

func (d *dispatchBench) await(n int) []delivery {
	d.t.Helper()
	d.until(func() bool { return len(d.all()) >= n })
	return d.all()
}

// until waits until holds returns true, and fails the test after a minute. It calls holds after each message,
// and at least every 10 ms.
func (d *dispatchBench) until(holds func() bool) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Minute)
	defer cancel()
	for !holds() {
		select {
		case <-d.new:
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			require.True(d.t, holds(), "it did not happen within a minute")
		}
	}
}

func (d *dispatchBench) waitForOutcome(event uuid.UUID, want string) {
	d.t.Helper()
	d.until(func() bool { return d.lastAttempt(event) == want })
}

func (d *dispatchBench) succeeded(event uuid.UUID) bool {
	// A later log entry may be about an attempt after its lease.
	d.t.Helper()
	page, err := d.s.Log.Attempts(d.t.Context(), webhook.AttemptQuery{Team: d.team, Event: event})
	require.NoError(d.t, err)
	return slices.ContainsFunc(page.Attempts, func(a webhook.Attempt) bool { return a.State == webhook.Succeeded })
}

const dispatchLease = time.Minute

// run runs a dispatcher with the number from; stop ends it. change, which may be nil, changes its options and its
// store.
func (d *dispatchBench) run(from int, change func(*webhook.Options, *Harness)) (stop func()) {
	d.t.Helper()
	s := d.s
	o := &webhook.Options{
		Schedule:    webhook.Delays(slices.Repeat([]time.Duration{20 * time.Millisecond}, 100)...),
		Lease:       dispatchLease,
		Timeout:     10 * time.Second,
		StartMargin: 5 * time.Second,
		OutcomeWait: time.Millisecond,
		Busy:        5 * time.Millisecond,
		Idle:        10 * time.Millisecond,
		CacheFor:    time.Millisecond,
		Drain:       time.Second,
	}
	if change != nil {
		change(o, &s)
	}
	r, err := webhook.NewDispatcher(d.types, dispatcherStore{s.Deliveries, s.Endpoints}, d.notifier(from), d.seal, o)
	require.NoError(d.t, err)
	ctx, cancel := context.WithCancel(d.t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		require.NoError(d.t, <-done)
	})
}

// forgetful is a store that simulates a crash: it reports outcomes as recorded without recording them.
type forgetful struct{ webhook.Deliveries }

func (forgetful) RecordOutcomes(context.Context, []webhook.Outcome) (webhook.RecordedOutcomes, error) {
	return webhook.RecordedOutcomes{}, nil
}

// single is a store whose Claim returns deliveries only until it has returned some.
type single struct {
	webhook.Deliveries
	has atomic.Bool
}

func (s *single) Claim(ctx context.Context, c webhook.Claim) (webhook.Claimed, error) {
	if s.has.Load() {
		c.Quotas = nil
	}
	got, err := s.Deliveries.Claim(ctx, c)
	if len(got.Deliveries) > 0 {
		s.has.Store(true)
	}
	return got, err
}

// stuck is a store whose Get sends on in, and then blocks until out receives or is closed.
type stuck struct {
	webhook.Endpoints
	in, out chan struct{}
}

func (s stuck) Get(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID) (webhook.Endpoint, error) {
	s.in <- struct{}{}
	<-s.out
	return s.Endpoints.Get(ctx, team, id)
}

var dispatcherCases = []webhookCase{
	{"DiesBeforeItRecords", func(t *testing.T, s Harness) {
		d := newDispatchBench(t, s)
		event := d.write(typeOrdered, "k")
		stop := d.run(1, func(_ *webhook.Options, s *Harness) { s.Deliveries = forgetful{s.Deliveries} })
		d.await(1)
		stop()
		s.Advance(dispatchLease)
		stop = d.run(2, nil)
		got := d.await(2)
		d.waitForOutcome(event, "1 succeeded ")
		stop()
		require.Len(t, d.all(), 2, "one repeat")
		require.Equal(t, got[0].ID, got[1].ID)
		require.Equal(t, string(got[0].Body), string(got[1].Body))
		page, err := s.Log.Attempts(t.Context(), webhook.AttemptQuery{Team: d.team, Event: event})
		require.NoError(t, err)
		require.Len(t, page.Attempts, 1)
	}},
	{"TwoShareTheWork", func(t *testing.T, s Harness) {
		d := newDispatchBench(t, s)
		// At first there are more events than one dispatcher can claim, and fewer than both can.
		n, atFirst := prove.Count(1000, 10_000), 6
		for i := range atFirst {
			d.write(typeLatest, fmt.Sprint(i))
		}
		var both atomic.Int32 // both have sent something
		gate := make(chan struct{})
		first := []func(){sync.OnceFunc(func() { both.Add(1) }), sync.OnceFunc(func() { both.Add(1) })}
		open := sync.OnceFunc(func() { close(gate) })
		d.answer = func(from int, _ webhook.Notification) webhook.Result {
			if first[from](); both.Load() == 2 {
				open()
			}
			<-gate
			return webhook.Result{Class: webhook.ClassOK, Status: 200}
		}
		few := func(o *webhook.Options, _ *Harness) { o.Slots = 4 }
		one, two := d.run(0, few), d.run(1, few)
		<-gate
		for i := range n - atFirst {
			d.write(typeLatest, fmt.Sprint(atFirst+i))
		}
		d.await(n)
		one()
		two()
		seen, share := map[string]int{}, map[int]int{}
		for _, g := range d.all() {
			seen[g.ID]++
			share[g.from]++
		}
		require.Len(t, seen, n)
		require.Len(t, d.all(), n, "nothing twice")
		require.Len(t, share, 2)
	}},
	{"TooLateToStart", func(t *testing.T, s Harness) {
		d := newDispatchBench(t, s)
		d.write(typeLatest, "k")
		var late atomic.Int64
		held := stuck{s.Endpoints, make(chan struct{}, 100), make(chan struct{})}
		released := make(chan struct{}, 100)
		asleep := d.run(1, func(o *webhook.Options, s *Harness) {
			s.Endpoints, s.Deliveries = held, &single{Deliveries: s.Deliveries}
			o.Now = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
			o.Hooks.Released = func() { released <- struct{}{} }
		})
		<-held.in // it has claimed a delivery and is blocked
		fresh := d.write(typeLatest, "k")
		s.Advance(90 * time.Second)
		late.Store(int64(90 * time.Second))
		awake := d.run(2, nil)
		d.waitForOutcome(fresh, "1 succeeded ")
		close(held.out)
		<-released
		asleep()
		awake()
		for _, g := range d.all() {
			require.Equal(t, 2, g.from, "what was claimed too long ago is not sent")
		}
		got := d.all()
		require.Equal(t, webhook.MessageID(fresh), got[len(got)-1].ID, "the old version never comes after the new one")
	}},
	{"ItsClockIsWrong", func(t *testing.T, s Harness) {
		for _, wrong := range []time.Duration{time.Hour, -time.Hour} {
			d := newDispatchBench(t, s)
			d.answer = func(int, webhook.Notification) webhook.Result {
				if len(d.all()) < 3 {
					return webhook.Result{Class: webhook.ClassRefused, Status: 500}
				}
				return webhook.Result{Class: webhook.ClassOK, Status: 200}
			}
			event := d.write(typeLatest, "k")
			before := d.now()
			stop := d.run(1, func(o *webhook.Options, _ *Harness) {
				o.Now = func() time.Time { return time.Now().Add(wrong) }
			})
			d.waitForOutcome(event, "3 succeeded ")
			stop()
			for _, g := range d.all() {
				require.WithinRange(t, g.At, before.Add(-time.Second), d.now().Add(time.Second), "signed by the store's clock")
			}
		}
	}},
	{"TheServersClockJumps", func(t *testing.T, s Harness) {
		d := newDispatchBench(t, s)
		var all []uuid.UUID
		for i := range 200 {
			all = append(all, d.write(typeOrdered, fmt.Sprint(i%40)))
		}
		var n atomic.Int64
		d.answer = func(int, webhook.Notification) webhook.Result {
			if n.Add(1)%5 == 0 {
				return webhook.Result{Class: webhook.ClassRefused, Status: 500}
			}
			return webhook.Result{Class: webhook.ClassOK, Status: 200}
		}
		stop := d.run(1, nil)
		d.await(50)
		s.Advance(90 * time.Second)
		missing := func() int {
			left := map[string]bool{}
			for _, e := range all {
				left[webhook.MessageID(e)] = true
			}
			for _, g := range d.all() {
				delete(left, g.ID)
			}
			return len(left)
		}
		d.until(func() bool { return missing() == 0 })
		d.until(func() bool {
			all = slices.DeleteFunc(all, d.succeeded)
			return len(all) == 0
		})
		stop()
	}},
	{"EndpointChangesBetweenAttempts", func(t *testing.T, s Harness) {
		d := newDispatchBench(t, s)
		changed := make(chan struct{})
		d.answer = func(_ int, n webhook.Notification) webhook.Result {
			if len(d.all()) > 1 {
				return webhook.Result{Class: webhook.ClassOK, Status: 200}
			}
			<-changed
			return webhook.Result{Class: webhook.ClassRefused, Status: 500}
		}
		event := d.write(typeOrdered, "k")
		stop := d.run(1, nil)
		d.await(1)
		url := "https://receiver.example.com/second"
		_, err := d.service.Patch(t.Context(), d.team, d.to, webhook.Patch{URL: &url})
		require.NoError(t, err)
		require.NoError(t, d.service.SetHeaders(t.Context(), d.team, d.to, map[string]string{"X-Ward": "7"}))
		require.NoError(t, d.service.Rotate(t.Context(), d.team, d.to, ""))
		close(changed)
		d.waitForOutcome(event, "2 succeeded ")
		stop()
		got := d.all()
		require.Len(t, got, 2)
		require.Equal(t, got[0].ID, got[1].ID)
		require.Equal(t, string(got[0].Body), string(got[1].Body))
		require.Equal(t, url, got[1].URL)
		require.Equal(t, "7", got[1].Headers.Get("X-Ward"))
		require.Len(t, got[0].Secrets, 1)
		require.Len(t, got[1].Secrets, 2)
		require.Equal(t, got[0].Secrets[0], got[1].Secrets[1])
	}},
	{"SeesAChangedEndpointAtOnce", func(t *testing.T, s Harness) {
		const url = "https://receiver.example.com/second"
		enable := func(d *dispatchBench) error {
			d.until(func() bool { return d.get().Disabled })
			_, err := d.service.Patch(t.Context(), d.team, d.to, webhook.Patch{Disabled: new(bool)})
			return err
		}
		for _, c := range []struct {
			name   string
			first  webhook.Class // of the first message
			change func(d *dispatchBench) error
			check  func(before, after webhook.Notification)
		}{
			{"url", webhook.ClassOK, func(d *dispatchBench) error {
				to := url
				_, err := d.service.Patch(t.Context(), d.team, d.to, webhook.Patch{URL: &to})
				return err
			}, func(_, after webhook.Notification) { require.Equal(t, url, after.URL) }},
			{"headers", webhook.ClassOK, func(d *dispatchBench) error {
				return d.service.SetHeaders(t.Context(), d.team, d.to, map[string]string{"X-Ward": "7"})
			}, func(_, after webhook.Notification) { require.Equal(t, "7", after.Headers.Get("X-Ward")) }},
			{"rotated secret", webhook.ClassOK, func(d *dispatchBench) error {
				return d.service.Rotate(t.Context(), d.team, d.to, "")
			}, func(before, after webhook.Notification) {
				require.Len(t, after.Secrets, 2)
				require.Equal(t, before.Secrets[0], after.Secrets[1])
			}},
			{"revoked secret", webhook.ClassOK, func(d *dispatchBench) error {
				return errors.Join(d.service.Rotate(t.Context(), d.team, d.to, ""), d.service.Revoke(t.Context(), d.team, d.to))
			}, func(before, after webhook.Notification) {
				require.Len(t, after.Secrets, 1)
				require.NotEqual(t, before.Secrets[0], after.Secrets[0])
			}},
			{"enabled after 410", webhook.ClassGone, enable, func(before, after webhook.Notification) {
				require.NotEqual(t, before.ID, after.ID)
			}},
			{"recovered after 410", webhook.ClassGone, func(d *dispatchBench) error {
				if err := enable(d); err != nil {
					return err
				}
				n, err := d.service.Recover(t.Context(), d.team, d.to, longAgo, time.Time{})
				require.Equal(t, 1, n)
				d.await(2) // messages of two keys have no order
				return err
			}, func(before, after webhook.Notification) { require.Equal(t, before.ID, after.ID) }},
		} {
			d := newDispatchBench(t, s)
			d.answer = func(int, webhook.Notification) webhook.Result {
				if len(d.all()) == 1 {
					return webhook.Result{Class: c.first}
				}
				return webhook.Result{Class: webhook.ClassOK, Status: 200}
			}
			stop := d.run(1, func(o *webhook.Options, _ *Harness) { o.CacheFor = time.Hour })
			first := d.write(typeLatest, "first")
			before := d.await(1)[0].Notification
			d.until(func() bool { return d.lastAttempt(first) != "nothing" })
			require.NoError(t, c.change(d), c.name)
			d.waitForOutcome(d.write(typeLatest, "next"), "1 succeeded ")
			stop()
			c.check(before, d.all()[1].Notification)
		}
	}},
	{"DisablesAcrossRestarts", func(t *testing.T, s Harness) {
		d := newDispatchBench(t, s)
		d.answer = func(int, webhook.Notification) webhook.Result {
			return webhook.Result{Class: webhook.ClassRefused, Status: 500}
		}
		event := d.write(typeOrdered, "k")
		for n, wait := range []time.Duration{0, 12 * time.Hour, 120*time.Hour - time.Minute, 2 * time.Minute} {
			s.Advance(wait)
			require.False(t, d.get().Disabled)
			stop := d.run(n, func(o *webhook.Options, _ *Harness) {
				o.Schedule = webhook.Delays(slices.Repeat([]time.Duration{time.Minute}, 10)...)
				o.Expiry = 1000 * time.Hour
			})
			if n < 3 {
				d.await(n + 1)
			}
			// The last failure is noticed by the sweep or by one more attempt.
			d.until(func() bool {
				e := d.get()
				return e.Disabled || n < 3 && !e.Health.LastFailedAt.Before(d.now().Add(-30*time.Second))
			})
			stop()
			require.Equal(t, n >= 1, !d.get().Health.ArmedAt.IsZero())
		}
		require.Equal(t, webhook.DisabledFailing, d.get().DisabledReason)
		page, err := s.Log.Attempts(t.Context(), webhook.AttemptQuery{Team: d.team, Event: event})
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(page.Attempts, func(a webhook.Attempt) bool {
			return a.State == webhook.Cancelled && a.Reason == webhook.ReasonDisabled
		}))
	}},
}
