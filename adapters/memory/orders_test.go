package memory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/appointment/appointmenttest"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/catalogue/cataloguetest"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
	"github.com/healthlab-dev/healthlab/orders/people/peopletest"
)

func newOrdersHarness(testing.TB) orderstest.StoreHarness {
	s, setClock := clockedHost()
	return orderstest.StoreHarness{Orders: s.Orders(), Messages: s.WebhookLog(), SetClock: setClock}
}

func TestOrders_passTheirStoreSuite(t *testing.T) { orderstest.RunStore(t, newOrdersHarness) }

func TestOrders_passTheirModelTest(t *testing.T) { orderstest.RunStoreModel(t, newOrdersHarness) }

func TestIdempotencyKeys_passTheirStoreSuite(t *testing.T) {
	orderstest.RunKeys(t, func(testing.TB) orderstest.KeysHarness {
		s, setClock := clockedStore()
		return orderstest.KeysHarness{Keys: s.OrderKeys(), SetClock: setClock}
	})
}

func TestLabTests_passTheirStoreSuite(t *testing.T) {
	cataloguetest.RunLabTestStore(t, func(testing.TB) catalogue.LabTestStore { return newStore().LabTests() })
}

func TestPersons_passTheirStoreSuite(t *testing.T) {
	peopletest.RunStore(t, func(testing.TB) peopletest.StoreHarness {
		s, _ := clockedHost()
		return peopletest.StoreHarness{Persons: s.Persons(), Users: s.Users()}
	})
}

func TestReviews_passTheirStoreSuite(t *testing.T) {
	orderstest.RunReviews(t, func(testing.TB) orderstest.ReviewsHarness {
		s, setClock := clockedStore()
		return orderstest.ReviewsHarness{Reviews: s.Reviews(), MatchTestRuns: s.MatchTestRuns(), Orders: s.Orders(), Users: s.Users(), Messages: s.WebhookLog(), SetClock: setClock}
	})
}

func TestOrders_passTheErasureSuite(t *testing.T) {
	orderstest.RunErasure(t, func(testing.TB) orderstest.ErasureHarness {
		s, setClock := clockedStore()
		return orderstest.ErasureHarness{Users: s.Users(), Orders: s.Orders(), Keys: s.OrderKeys(), SetClock: setClock}
	})
}

func TestVisits_passTheirStoreSuite(t *testing.T) {
	orderstest.RunVisits(t, func(testing.TB) orderstest.VisitsHarness {
		s, setClock := clockedHost()
		return orderstest.VisitsHarness{Orders: s.Orders(), Visits: visits(t, s), SetClock: setClock}
	})
}

func visits(t testing.TB, s *memory.Store) orders.VisitStore {
	t.Helper()
	v, ok := s.Orders().(orders.VisitStore)
	require.True(t, ok)
	return v
}

func TestSlotCache_passesItsStoreSuite(t *testing.T) {
	appointmenttest.RunSlotCache(t, func(testing.TB) appointment.SlotCache { return newStore().SlotCache() })
}

func TestCenters_passTheirSuite(t *testing.T) {
	appointmenttest.RunCenters(t, func(t testing.TB, list []appointment.Center) appointment.Centers {
		a, err := appointment.NewCenterIndex(list)
		require.NoError(t, err)
		return a
	})
}

func twice(testing.TB) []orderstest.Process {
	s, _ := clockedHost()
	p := orderstest.Process{Orders: s.Orders(), Reviews: s.Reviews(), Keys: s.OrderKeys(), Messages: s.WebhookLog()}
	return []orderstest.Process{p, p}
}

func TestOrders_passTheTwoProcessesSuite(t *testing.T) { orderstest.RunTwoProcesses(t, twice) }

func TestOrders_passTheConcurrentCreatesSuite(t *testing.T) {
	orderstest.RunConcurrentCreates(t, twice)
}

func TestOrders_passTheErasedKeysSuite(t *testing.T) {
	orderstest.RunErasedKeys(t, func(testing.TB) orderstest.ErasedKeysHarness {
		s, _ := clockedHost()
		return orderstest.ErasedKeysHarness{Orders: s.Orders(), Reviews: s.Reviews(), Keys: s.PersonKeys()}
	})
}
