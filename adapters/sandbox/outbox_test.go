package sandbox_test

import (
	"context"
	"sync"
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
)

// messageOrders remembers which orders the messages to an Outbox are about.
type messageOrders struct {
	*sandbox.Outbox
	mu  sync.Mutex
	ids map[orders.OrderID]bool
}

func (m *messageOrders) Send(ctx context.Context, msg orders.PatientMessage) error {
	m.mu.Lock()
	m.ids[msg.Order] = true
	m.mu.Unlock()
	return m.Outbox.Send(ctx, msg)
}

func TestOutbox_passesTheMessengerSuite(t *testing.T) {
	orderstest.RunMessenger(t, func(testing.TB) orderstest.MessengerHarness {
		m := &messageOrders{Outbox: &sandbox.Outbox{}, ids: map[orders.OrderID]bool{}}
		return orderstest.MessengerHarness{
			Messenger: m, Fail: m.Fail,
			Sent: func(_ testing.TB, to string) (n int) {
				m.mu.Lock()
				defer m.mu.Unlock()
				for id := range m.ids {
					for _, msg := range m.Sent(id) {
						if msg.To == to {
							n++
						}
					}
				}
				return n
			},
		}
	})
}
