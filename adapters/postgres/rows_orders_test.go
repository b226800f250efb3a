package postgres_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/appointment/appointmenttest"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/catalogue/cataloguetest"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
	"github.com/healthlab-dev/healthlab/orders/labjournal/labjournaltest"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/people/peopletest"
	"github.com/healthlab-dev/healthlab/orders/simulation"
)

func newOrderRows(t testing.TB) rowStore {
	return stoppedRowStore(t, orders.Tables(), exchange.Tables(), idempotency.Tables(), simulation.Tables(), catalogue.Tables(), appointment.Tables(),
		people.Tables(), labjournal.Tables())
}

func (s rowStore) orderOptions() *orders.StoreOptions { return &orders.StoreOptions{Events: s.log} }

func (s rowStore) elsewhere() *orders.StoreOptions {
	return &orders.StoreOptions{Events: s.log, UsersElsewhere: true}
}

func rowOrders(t testing.TB) orderstest.StoreHarness {
	s := newOrderRows(t)
	return orderstest.StoreHarness{Orders: orders.NewStore(s, s.elsewhere()), Messages: s.messages(), SetClock: s.setClock}
}

func TestOrders_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	orderstest.RunStore(t, rowOrders)
}

func TestOrders_passTheirModelTest(t *testing.T) {
	t.Parallel()
	orderstest.RunStoreModel(t, rowOrders)
}

func TestIdempotencyKeys_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	orderstest.RunKeys(t, func(t testing.TB) orderstest.KeysHarness {
		s := newOrderRows(t)
		return orderstest.KeysHarness{Keys: idempotency.NewStore(s, nil), SetClock: s.setClock}
	})
}

func TestReviews_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	orderstest.RunReviews(t, func(t testing.TB) orderstest.ReviewsHarness {
		s := newOrderRows(t)
		return orderstest.ReviewsHarness{
			Reviews: exchange.NewReviewStore(s, s.orderOptions()), MatchTestRuns: simulation.NewMatchTestStore(s), Orders: orders.NewStore(s, s.orderOptions()),
			Users: s.users(), Messages: s.messages(), SetClock: s.setClock,
		}
	})
}

func TestOrders_passTheErasureSuite(t *testing.T) {
	t.Parallel()
	orderstest.RunErasure(t, func(t testing.TB) orderstest.ErasureHarness {
		s := newOrderRows(t)
		return orderstest.ErasureHarness{
			Users: s.users(), Orders: orders.NewStore(s, s.orderOptions()), Keys: idempotency.NewStore(s, nil), SetClock: s.setClock,
		}
	})
}

func TestVisits_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	orderstest.RunVisits(t, func(t testing.TB) orderstest.VisitsHarness {
		s := newOrderRows(t)
		both := orders.NewStore(s, s.elsewhere())
		return orderstest.VisitsHarness{Orders: both, Visits: both, SetClock: s.setClock}
	})
}

// orderProcesses is one store as two processes see it.
func orderProcesses(t testing.TB) []orderstest.Process {
	s := newOrderRows(t)
	p := orderstest.Process{
		Orders: orders.NewStore(s, s.elsewhere()), Reviews: exchange.NewReviewStore(s, s.elsewhere()),
		Keys: idempotency.NewStore(s, &idempotency.StoreOptions{UsersElsewhere: true}), Messages: s.messages(),
	}
	return []orderstest.Process{p, p}
}

func TestOrders_passTheTwoProcessesSuite(t *testing.T) {
	t.Parallel()
	orderstest.RunTwoProcesses(t, orderProcesses)
}

func TestOrders_passTheConcurrentCreatesSuite(t *testing.T) {
	t.Parallel()
	orderstest.RunConcurrentCreates(t, orderProcesses)
}

func TestLabTests_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	cataloguetest.RunLabTestStore(t, func(t testing.TB) catalogue.LabTestStore { return catalogue.NewLabTestStore(newOrderRows(t)) })
}

func TestSlotCache_passesItsStoreSuite(t *testing.T) {
	t.Parallel()
	appointmenttest.RunSlotCache(t, func(t testing.TB) appointment.SlotCache { return appointment.NewSlotCache(newOrderRows(t)) })
}

func TestPersons_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	peopletest.RunStore(t, func(t testing.TB) peopletest.StoreHarness {
		s := newOrderRows(t)
		return peopletest.StoreHarness{Persons: people.NewStore(s, &people.StoreOptions{UsersElsewhere: true}), Users: s.users()}
	})
}

func TestLabJournal_passesItsStoreSuite(t *testing.T) {
	t.Parallel()
	labjournaltest.RunStore(t, func(t testing.TB) labjournaltest.Harness {
		s := newOrderRows(t)
		return labjournaltest.Harness{Journal: labjournal.NewStore(s, &labjournal.StoreOptions{UsersElsewhere: true}), Users: s.users()}
	})
}
