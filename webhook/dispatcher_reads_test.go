package webhook_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

// countedReads takes a moment for each read of an endpoint, and fails the first few.
type countedReads struct {
	webhook.Endpoints
	reads, failing atomic.Int64
}

func (c *countedReads) Get(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID) (webhook.Endpoint, error) {
	c.reads.Add(1)
	time.Sleep(10 * time.Millisecond)
	if c.failing.Add(-1) >= 0 {
		return webhook.Endpoint{}, healthlab.Unavailable
	}
	return c.Endpoints.Get(ctx, team, id)
}

// Deliveries that start together read their endpoint once, also if the read fails.
func TestDispatcher_readsAnEndpointOnceForAllItsDeliveries(t *testing.T) {
	for _, failing := range []int64{0, 2} {
		synctest.Test(t, func(t *testing.T) {
			h := newFixture(t)
			h.create(t)
			for i := range 50 {
				h.write(t, "labtest.order.updated", fmt.Sprint(i))
			}
			endpoints := &countedReads{Endpoints: h.store.Endpoints()}
			endpoints.failing.Store(failing)
			stop := h.runWith(t, h.store.Deliveries(), endpoints)
			time.Sleep(4 * time.Second)
			stop()
			require.Len(t, h.to.all(), 50)
			require.EqualValues(t, failing+1, endpoints.reads.Load())
		})
	}
}

// blindStore does not find what there is to do, and takes its time for that.
type blindStore struct {
	webhook.Deliveries
	look time.Duration
}

func (s blindStore) Due(context.Context) ([]webhook.EndpointID, error) {
	time.Sleep(s.look)
	return nil, nil
}

// A dispatcher delivers what it has routed itself without finding it by a poll, also if a
// poll runs at that time. Polls run at 0, 1, 2 s and so on, or from 0 to 0.9 s and from 1.9
// to 2.8 s.
func TestDispatcher_deliversRoutedEventsOnceDuringAPoll(t *testing.T) {
	for _, c := range []struct{ look, at time.Duration }{
		{0, 1500 * time.Millisecond},
		{900 * time.Millisecond, 1500 * time.Millisecond},
		{900 * time.Millisecond, 2500 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newFixture(t)
			h.create(t)
			stop := h.runOn(t, blindStore{h.store.Deliveries(), c.look})
			time.Sleep(c.at)
			h.write(t, "labtest.order.updated", "k")
			time.Sleep(2 * time.Second)
			stop()
			require.Len(t, h.to.all(), 1, "%v", c)
		})
	}
}
