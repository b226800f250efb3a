package webhook_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/webhook"
)

// slowStore takes its time to claim and to record.
type slowStore struct {
	webhook.Deliveries
	claim, record time.Duration
	released      atomic.Int64
}

func (s *slowStore) Claim(ctx context.Context, c webhook.Claim) (webhook.Claimed, error) {
	time.Sleep(s.claim)
	return s.Deliveries.Claim(ctx, c)
}

func (s *slowStore) RecordOutcomes(ctx context.Context, o []webhook.Outcome) (webhook.RecordedOutcomes, error) {
	time.Sleep(s.record)
	return s.Deliveries.RecordOutcomes(ctx, o)
}

func (s *slowStore) Release(ctx context.Context, back []webhook.Released) error {
	s.released.Add(int64(len(back)))
	return s.Deliveries.Release(ctx, back)
}

func (h *fixture) runOn(t testing.TB, store webhook.Deliveries) (stop func()) {
	t.Helper()
	return h.runWith(t, store, h.store.Endpoints())
}

func (h *fixture) runWith(t testing.TB, store webhook.Deliveries, endpoints webhook.Endpoints) (stop func()) {
	t.Helper()
	d, err := webhook.NewDispatcher(h.types, struct {
		webhook.Deliveries
		webhook.Endpoints
	}{store, endpoints}, h.to, h.sealer, &h.opts)
	require.NoError(t, err)
	h.written = d.Wake
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- d.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(t, <-done)
	}
}

func TestDispatcher_keepsSlotsBusyDespiteASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		h.create(t)
		const backlog, slots, trip = 4000, 16, 50 * time.Millisecond
		for i := range backlog {
			h.write(t, "labtest.order.updated", fmt.Sprint(i))
		}
		h.opts.EndpointSlots = slots
		var running, most atomic.Int64
		h.to.answer = func(webhook.Notification, int) webhook.Result {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer running.Add(-1)
			time.Sleep(trip)
			return webhook.Result{Class: webhook.ClassOK, Status: 200, Duration: trip}
		}
		store := &slowStore{Deliveries: h.store.Deliveries(), claim: 5 * time.Millisecond, record: 30 * time.Millisecond}
		stop := h.runOn(t, store)
		time.Sleep(time.Minute)
		stop()
		got := h.to.all()
		require.Len(t, got, backlog, "each once")
		require.EqualValues(t, slots, most.Load(), "never more than the endpoint has slots")
		const opened = backlog / 2
		rate := float64(backlog-opened) / got[backlog-1].when.Sub(got[opened-1].when).Seconds()
		require.Greater(t, rate*trip.Seconds()/slots, 0.95, "of what the slots can carry")
	})
}

// An outcome may wait for two others to be recorded before it is, itself: the store is slow,
// but not so slow that the leases end meanwhile, after which a message is rightly sent again.
func TestDispatcher_stopsSendingWhileOutcomesWaitForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		h.create(t)
		for i := range 500 {
			h.write(t, "labtest.order.updated", fmt.Sprint(i))
		}
		h.opts.OutcomeBatch, h.opts.EndpointSlots = 20, 8
		stop := h.runOn(t, &slowStore{Deliveries: h.store.Deliveries(), record: 10 * time.Second})
		time.Sleep(9 * time.Second)
		require.Len(t, h.to.all(), 20+8, "a batch that is not recorded, and one request for each slot")
		time.Sleep(time.Hour)
		stop()
		require.Len(t, h.to.all(), 500)
	})
}

// Deliveries that were claimed ahead are released when their endpoint begins to fail, and
// when the dispatcher stops.
func TestDispatcher_releasesClaimedDeliveriesOnFailureAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		h.create(t)
		for i := range 400 {
			h.write(t, "labtest.order.updated", fmt.Sprint(i))
		}
		const good = 100
		h.opts.EndpointSlots = 8
		h.to.answer = func(_ webhook.Notification, nth int) webhook.Result {
			time.Sleep(10 * time.Millisecond)
			if nth <= good {
				return webhook.Result{Class: webhook.ClassOK, Status: 200}
			}
			return webhook.Result{Class: webhook.ClassThrottled, Status: 503}
		}
		store := &slowStore{Deliveries: h.store.Deliveries()}
		stop := h.runOn(t, store)
		time.Sleep(900 * time.Millisecond)
		require.LessOrEqual(t, len(h.to.all()), good+8, "those that were running when the first one failed")
		require.Positive(t, store.released.Load())
		stop()

		h.to.answer = func(webhook.Notification, int) webhook.Result {
			time.Sleep(5 * time.Millisecond)
			return webhook.Result{Class: webhook.ClassOK, Status: 200}
		}
		time.Sleep(time.Hour)
		before := len(h.to.all())
		stop = h.runOn(t, store)
		time.Sleep(12 * time.Millisecond)
		stop()
		seen := len(h.to.all())
		require.Greater(t, seen, before)
		stop = h.run(t)
		time.Sleep(time.Hour)
		stop()
		ids := map[string]int{}
		for _, r := range h.to.all() {
			ids[r.ID]++
		}
		require.Len(t, ids, 400, "nothing is lost")
	})
}
