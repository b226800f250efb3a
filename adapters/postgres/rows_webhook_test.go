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

func TestRows_outbox(t *testing.T) {
	t.Parallel()
	webhooktest.RunOutbox(t, func(t *testing.T) webhooktest.OutboxHarness {
		h := rowWebhooks(t)
		return webhooktest.OutboxHarness{Outbox: h.Outbox, Message: h.Log.Message}
	})
}

func TestRows_deliveries(t *testing.T) {
	t.Parallel()
	webhooktest.RunDeliveries(t, rowWebhooks)
}

func TestRows_endpoints(t *testing.T) {
	t.Parallel()
	webhooktest.RunEndpoints(t, rowWebhooks)
}

func TestRows_bodies(t *testing.T) {
	t.Parallel()
	webhooktest.RunBodies(t, rowWebhooks)
}

func TestRows_orderUnderFailures(t *testing.T) {
	t.Parallel()
	webhooktest.RunOrderUnderFailures(t, rowWebhooks)
}

func TestRows_deliveriesModel(t *testing.T) {
	t.Parallel()
	webhooktest.RunDeliveriesModel(t, rowWebhooks)
}

func TestRows_dispatcher(t *testing.T) {
	t.Parallel()
	webhooktest.RunDispatcher(t, rowWebhooks)
}

func rowSeen(t *testing.T) receivertest.SeenHarness {
	c := &aheadClock{}
	return receivertest.SeenHarness{Seen: receiver.NewSeen(rowsAt(t, c.now, receiver.Tables())), Advance: c.advance}
}

func TestRows_seen(t *testing.T) {
	t.Parallel()
	receivertest.RunSeen(t, rowSeen)
}

func TestRows_seenModel(t *testing.T) {
	t.Parallel()
	receivertest.RunSeenModel(t, rowSeen)
}
