package memory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

func newOrdersHarness(testing.TB) storetest.OrdersHarness {
	store := memory.New(nil)
	return storetest.OrdersHarness{Orders: store.Orders(), Messages: store.WebhookLog()}
}

func TestOrders(t *testing.T) { storetest.RunOrders(t, newOrdersHarness) }

func TestOrdersModel(t *testing.T) { storetest.RunOrdersModel(t, newOrdersHarness) }

func TestOrderKeys(t *testing.T) {
	storetest.RunOrderKeys(t, func(testing.TB) orders.Keys { return memory.New(nil).OrderKeys() })
}

func TestLabTests(t *testing.T) {
	storetest.RunLabTests(t, func(testing.TB) catalogue.LabTestStore { return memory.New(nil).LabTests() })
}

func TestPersons(t *testing.T) {
	storetest.RunPersons(t, func(testing.TB) storetest.PersonsHarness {
		s := memory.New(nil)
		return storetest.PersonsHarness{Persons: s.Persons(), Users: s.Users()}
	})
}

func TestReviews(t *testing.T) {
	storetest.RunReviews(t, func(testing.TB) storetest.ReviewsHarness {
		s := memory.New(nil)
		return storetest.ReviewsHarness{Reviews: s.Reviews(), MatchTestRuns: s.MatchTestRuns(), Orders: s.Orders(), Users: s.Users(), Messages: s.WebhookLog()}
	})
}

func TestOrderErasure(t *testing.T) {
	storetest.RunOrderErasure(t, func(testing.TB) storetest.OrderErasureHarness {
		s := memory.New(nil)
		return storetest.OrderErasureHarness{Users: s.Users(), Orders: s.Orders(), Keys: s.OrderKeys()}
	})
}

func TestOrderVisits(t *testing.T) {
	storetest.RunOrderVisits(t, func(testing.TB) storetest.OrderVisitsHarness {
		s := memory.New(nil)
		return storetest.OrderVisitsHarness{Orders: s.Orders(), Visits: visits(t, s)}
	})
}

// visits is the store of orders as one of their appointments.
func visits(t testing.TB, s *memory.Store) orders.VisitStore {
	t.Helper()
	v, ok := s.Orders().(orders.VisitStore)
	require.True(t, ok)
	return v
}

func TestSlotCache(t *testing.T) {
	storetest.RunSlotCache(t, func(testing.TB) appointment.SlotCache { return memory.New(nil).SlotCache() })
}

func TestCenters(t *testing.T) {
	storetest.RunCenters(t, func(t testing.TB, list []appointment.Center) appointment.Centers {
		a, err := appointment.NewCenterIndex(list)
		require.NoError(t, err)
		return a
	})
}

// twice is one store as two processes would see it.
func twice(testing.TB) []storetest.Process {
	s := memory.New(nil)
	p := storetest.Process{Orders: s.Orders(), Keys: s.OrderKeys(), Messages: s.WebhookLog()}
	return []storetest.Process{p, p}
}

func TestOrderWalks(t *testing.T) { storetest.RunOrderWalks(t, twice) }

func TestConcurrentCreates(t *testing.T) { storetest.RunConcurrentCreates(t, twice) }
