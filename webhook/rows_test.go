package webhook_test

import (
	"bytes"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/personkey"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/webhooktest"
)

// storeClock is the time of day, moved forward as far as it is told to.
type storeClock struct{ ahead atomic.Int64 }

func (c *storeClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *storeClock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// rowStore returns an encrypted store in memory for the tables of webhooks and users.
func rowStore(t testing.TB, now func() time.Time) store.Store {
	t.Helper()
	tables := append(webhook.Tables(), store.Definition{Name: store.UserTable})
	engine, err := memory.NewEngine(tables, &memory.EngineOptions{Now: now})
	require.NoError(t, err)
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	return personkey.Encrypt(engine, personkey.New(memory.NewPersonKeys(), sealer, nil), tables)
}

func TestStoreOutbox(t *testing.T) {
	webhooktest.RunOutbox(t, func(t *testing.T) webhooktest.OutboxHarness {
		s := webhook.NewStore(rowStore(t, nil), nil)
		return webhooktest.OutboxHarness{Outbox: s, Message: s.Message}
	})
}

// storeHarness is a Store over rows.
func storeHarness(t *testing.T) webhooktest.Harness {
	c := &storeClock{}
	s := webhook.NewStore(rowStore(t, c.now), nil)
	return webhooktest.Harness{Outbox: s, Deliveries: s, Endpoints: s, Log: s, Bodies: s, Advance: c.advance}
}

func TestStoreDeliveries(t *testing.T) { webhooktest.RunDeliveries(t, storeHarness) }

func TestStoreEndpoints(t *testing.T) { webhooktest.RunEndpoints(t, storeHarness) }

func TestStoreBodies(t *testing.T) { webhooktest.RunBodies(t, storeHarness) }

func TestStoreOrderUnderFailures(t *testing.T) { webhooktest.RunOrderUnderFailures(t, storeHarness) }

func TestStoreModel(t *testing.T) { webhooktest.RunDeliveriesModel(t, storeHarness) }

func TestStoreDispatcher(t *testing.T) { webhooktest.RunDispatcher(t, storeHarness) }
