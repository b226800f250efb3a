// Package storetest holds the conformance suites of the seams: what every adapter
// must do, as tests that anybody can run on their own.
//
// For each seam there is RunX, which tests the contract; RunXModel, which compares the
// adapter with a plain model under random calls; and BenchX, which measures what hosts
// notice. All take a function that returns a fresh, empty store. There are no flags:
// a store keeps every promise or it is not conformant.
//
//	func TestUsers(t *testing.T) {
//		storetest.RunUsers(t, func(t testing.TB) storetest.UsersHarness {
//			store := memory.New(nil)
//			return storetest.UsersHarness{
//				Users: store.Users(), Messages: store.WebhookLog(), Data: store.Data(),
//			}
//		})
//	}
//
// It imports package testing: use it in tests only.
package storetest
