package memory_test

import (
	"sync"
	"testing"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
)

// clock is a time that moves when it is told to.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func webhookStore(*testing.T) storetest.WebhookStore {
	c := &clock{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	s := memory.New(&memory.Options{Now: c.now})
	return storetest.WebhookStore{
		Outbox: s.Outbox(), Deliveries: s.Deliveries(), Endpoints: s.Endpoints(), Log: s.WebhookLog(), Advance: c.advance,
	}
}

func TestDeliveries(t *testing.T) { storetest.RunDeliveries(t, webhookStore) }
func TestEndpoints(t *testing.T)  { storetest.RunEndpoints(t, webhookStore) }
