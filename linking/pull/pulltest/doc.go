// Package pulltest has the conformance suites of [pull.Store]: [RunStore] checks its contract,
// [RunStoreModel] compares it with a plain model under random calls, [RunCrashes] runs pulls
// while processes die.
//
//	func TestPulls(t *testing.T) {
//		pulltest.RunStore(t, func(testing.TB) pulltest.StoreHarness {
//			s := memory.New(nil)
//			return pulltest.StoreHarness{
//				Pulls: s.Pulls(), Users: s.Users(), Messages: s.WebhookLog(), Data: s.Data(), Credentials: s.Credentials(),
//			}
//		})
//	}
//
// It imports package testing: import it in tests only.
package pulltest
