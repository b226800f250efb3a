// Package webhooktest has the conformance suites of the interfaces of package webhook.
//
//   - [RunDeliveries] and [RunDeliveriesModel] check [webhook.Outbox], [webhook.Deliveries] and
//     [webhook.Log].
//   - [RunOutbox] checks [webhook.Outbox] alone.
//   - [RunEndpoints] checks [webhook.Endpoints].
//   - [RunNotifier] checks [webhook.Notifier].
//   - [RunDispatcher] and [RunOrderUnderFailures] run dispatchers on the store.
//
// An adapter runs them so:
//
//	func TestDeliveries(t *testing.T) {
//		webhooktest.RunDeliveries(t, func(*testing.T) webhooktest.Harness {
//			var ahead atomic.Int64
//			s := memory.New(&memory.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
//			return webhooktest.Harness{
//				Outbox: s.Outbox(), Deliveries: s.Deliveries(), Endpoints: s.Endpoints(), Log: s.WebhookLog(),
//				Advance: func(d time.Duration) { ahead.Add(int64(d)) },
//			}
//		})
//	}
//
//	func TestNotifier(t *testing.T) {
//		webhooktest.RunNotifier(t, func(t testing.TB) webhooktest.NotifierHarness {
//			receiver := newReceiver(t)
//			return webhooktest.NotifierHarness{
//				Notifier: New(), URL: receiver.URL, Unreachable: nowhere, Received: receiver.Messages,
//			}
//		})
//	}
//
// It imports package testing: import it in tests only.
package webhooktest

// Files in the order of reading: each uses those before it.
//
//	harness.go claims.go model.go notifier.go order_under_failures.go outbox.go replay.go deliveries.go
//	dispatcher.go bodies.go endpoints.go
