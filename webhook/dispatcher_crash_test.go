package webhook_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

// mortal is a store as a process sees it that can die: after that nothing of what it does
// is done.
type mortal struct {
	webhook.Deliveries
	dead atomic.Bool
}

func (m *mortal) Claim(ctx context.Context, c webhook.Claim) (webhook.Claimed, error) {
	if m.dead.Load() {
		return webhook.Claimed{}, healthlab.Unavailable
	}
	return m.Deliveries.Claim(ctx, c)
}

func (m *mortal) RecordOutcomes(ctx context.Context, o []webhook.Outcome) (webhook.RecordedOutcomes, error) {
	if m.dead.Load() {
		return webhook.RecordedOutcomes{}, healthlab.Unavailable
	}
	return m.Deliveries.RecordOutcomes(ctx, o)
}

func (m *mortal) Release(ctx context.Context, back []webhook.Released) error {
	if m.dead.Load() {
		return healthlab.Unavailable
	}
	return m.Deliveries.Release(ctx, back)
}

// A message that crashes its process is given up at the crash limit; the messages that were
// being sent at the same time are still delivered.
func TestDispatcher_givesUpOnlyTheMessageThatCrashesIt(t *testing.T) {
	for _, limit := range []int{2, 3, 5} {
		t.Run(fmt.Sprintf("crash limit %d", limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newFixture(t)
				h.create(t)
				h.opts.CrashLimit, h.opts.Drain = limit, time.Millisecond
				poison := h.write(t, "labtest.order.updated", "poison")
				var good []uuid.UUID
				for i := range 6 {
					good = append(good, h.write(t, "labtest.order.updated", fmt.Sprint(i)))
				}
				crashes := 0
				for range limit + 3 {
					store := &mortal{Deliveries: h.store.Deliveries()}
					die := make(chan struct{}, 8)
					h.to.answer = func(n webhook.Notification, _ int) webhook.Result {
						if n.ID == webhook.MessageID(poison) {
							time.Sleep(20 * time.Millisecond)
							store.dead.Store(true)
							die <- struct{}{}
						}
						time.Sleep(50 * time.Millisecond)
						return webhook.Result{Class: webhook.ClassOK, Status: 200}
					}
					stop := h.runOn(t, store)
					select {
					case <-die:
						crashes++
					case <-time.After(3 * time.Minute):
					}
					stop()
					time.Sleep(2 * time.Minute) // until the leases have ended
				}
				require.Equal(t, limit, crashes)
				page, err := h.service.Attempts(t.Context(), webhook.AttemptQuery{Team: team, Event: poison})
				require.NoError(t, err)
				require.Equal(t, webhook.ReasonPoison, page.Attempts[0].Reason)
				for _, event := range good {
					page, err := h.service.Attempts(t.Context(), webhook.AttemptQuery{Team: team, Event: event})
					require.NoError(t, err)
					require.NotEmpty(t, page.Attempts)
					require.Equal(t, webhook.Succeeded, page.Attempts[0].State, "it only stood beside it")
				}
			})
		})
	}
}
