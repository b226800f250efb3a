// Package pulltest has the conformance suites of [pull.Store]: [RunStore] checks the contract,
// [RunStoreModel] compares the store with a simple model under random calls, and [RunCrashes] runs a
// [pull.Service] on the store in processes that crash.
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
