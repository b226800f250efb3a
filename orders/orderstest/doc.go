// Package orderstest has the conformance suites of the interfaces of packages orders, exchange and visits.
//
//   - [RunStore] and [RunStoreModel] check [orders.Store], [RunVisits] checks
//     [orders.VisitStore], [RunKeys] checks [idempotency.Keys], [RunReviews] checks
//     [exchange.ReviewStore] with [simulation.MatchTestStore].
//   - [RunErasure] checks the orders of a deleted or erased user.
//   - [RunTwoProcesses] and [RunConcurrentCreates] check a store that two processes use concurrently.
//   - [RunLabBackend] checks [exchange.LabBackend], [RunBookingBackend] checks
//     [visits.Backend], [RunMessenger] checks [orders.Messenger].
//
// An adapter runs them so:
//
//	func TestOrders(t *testing.T) {
//		orderstest.RunStore(t, func(testing.TB) orderstest.StoreHarness {
//			s := memory.New(nil)
//			return orderstest.StoreHarness{Orders: s.Orders(), Messages: s.WebhookLog()}
//		})
//	}
//
// It imports package testing: import it in tests only.
package orderstest

// Files in the order of reading: each uses those before it.
//
//	fixture.go claim.go booking_backend.go keys.go lab_backend.go lab_payload.go list.go messenger.go
//	processes.go store.go model.go deletion.go visits.go erasure.go reviews.go erased_keys.go
