package memory_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/webhook/webhooktest"
)

// clock is the time of day, moved forward as far as it is told to.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

func webhookStore(*testing.T) webhooktest.Harness {
	c := &clock{}
	s := memory.New(&memory.Options{Keys: newKeys(), Now: c.now})
	return webhooktest.Harness{
		Outbox: s.Outbox(), Deliveries: s.Deliveries(), Endpoints: s.Endpoints(), Log: s.WebhookLog(), Bodies: s.EventBodies(), Advance: c.advance,
	}
}

func TestDeliveries_passTheirStoreSuite(t *testing.T) { webhooktest.RunDeliveries(t, webhookStore) }
func TestEndpoints_passTheirStoreSuite(t *testing.T)  { webhooktest.RunEndpoints(t, webhookStore) }

func TestEventBodies_passTheirStoreSuite(t *testing.T) { webhooktest.RunBodies(t, webhookStore) }

func TestDeliveries_keepTheOrderOfAKeyUnderFailures(t *testing.T) {
	webhooktest.RunOrderUnderFailures(t, webhookStore)
}

func TestDeliveries_passTheirModelTest(t *testing.T) { webhooktest.RunDeliveriesModel(t, webhookStore) }

func TestDispatcher_passesItsSuite(t *testing.T) { webhooktest.RunDispatcher(t, webhookStore) }
