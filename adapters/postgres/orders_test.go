package postgres_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/orders"
)

func newOrders(t testing.TB) storetest.OrdersHarness {
	s := postgres.New(pgtest.Pool(t), nil)
	return storetest.OrdersHarness{Orders: s.Orders(), Messages: s.WebhookLog()}
}

func TestOrders(t *testing.T) { storetest.RunOrders(t, newOrders) }

func TestOrdersModel(t *testing.T) { storetest.RunOrdersModel(t, newOrders) }

func TestOrderKeys(t *testing.T) {
	storetest.RunOrderKeys(t, func(t testing.TB) orders.Keys { return postgres.New(pgtest.Pool(t), nil).OrderKeys() })
}

// The suites pass for a role that row-level security holds for.
func TestOrdersWithRowSecurity(t *testing.T) {
	storetest.RunOrders(t, func(t testing.TB) storetest.OrdersHarness {
		s := newRestricted(t)
		return storetest.OrdersHarness{Orders: s.Orders(), Messages: s.WebhookLog()}
	})
	storetest.RunOrderKeys(t, func(t testing.TB) orders.Keys { return newRestricted(t).OrderKeys() })
}
