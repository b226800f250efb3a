package postgres_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
	"github.com/healthlab-dev/healthlab/webhook/receiver/receivertest"
	"github.com/healthlab-dev/healthlab/webhook/webhooktest"
)

// aheadClock is the time of day, moved forward.
type aheadClock struct{ by atomic.Int64 }

func (c *aheadClock) now() time.Time { return time.Now().Add(time.Duration(c.by.Load())) }

func (c *aheadClock) advance(d time.Duration) { c.by.Add(int64(d)) }

func rowWebhooks(t *testing.T) webhooktest.Harness {
	c := &aheadClock{}
	s := webhook.NewStore(rowsAt(t, c.now, webhook.Tables()), nil)
	return webhooktest.Harness{Outbox: s, Deliveries: s, Endpoints: s, Log: s, Bodies: s, Advance: c.advance}
}

func TestOutbox_passesItsStoreSuite(t *testing.T) {
	t.Parallel()
	webhooktest.RunOutbox(t, func(t *testing.T) webhooktest.OutboxHarness {
		h := rowWebhooks(t)
		return webhooktest.OutboxHarness{Outbox: h.Outbox, Message: h.Log.Message}
	})
}

func TestDeliveries_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	webhooktest.RunDeliveries(t, rowWebhooks)
}

func TestEndpoints_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	webhooktest.RunEndpoints(t, rowWebhooks)
}

func TestEventBodies_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	webhooktest.RunBodies(t, rowWebhooks)
}

func TestDeliveries_keepTheOrderOfAKeyUnderFailures(t *testing.T) {
	t.Parallel()
	webhooktest.RunOrderUnderFailures(t, rowWebhooks)
}

func TestDeliveries_passTheirModelTest(t *testing.T) {
	t.Parallel()
	webhooktest.RunDeliveriesModel(t, rowWebhooks)
}

func TestDispatcher_passesItsSuite(t *testing.T) {
	t.Parallel()
	webhooktest.RunDispatcher(t, rowWebhooks)
}

func rowSeen(t *testing.T) receivertest.SeenHarness {
	c := &aheadClock{}
	return receivertest.SeenHarness{Seen: receiver.NewSeen(rowsAt(t, c.now, receiver.Tables())), Advance: c.advance}
}

func TestSeenMessages_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	receivertest.RunSeen(t, rowSeen)
}

func TestSeenMessages_passTheirModelTest(t *testing.T) {
	t.Parallel()
	receivertest.RunSeenModel(t, rowSeen)
}
