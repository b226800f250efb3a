// Package bulktest has the conformance suite of [bulk.Store].
//
//	func TestBulk(t *testing.T) {
//		s := memory.New(nil)
//		bulktest.RunStore(t, bulktest.StoreHarness{Bulk: s.Bulk(), Linking: linkingtest.StoreHarness{
//			Linking: s.Linking(), Users: s.Users(), Messages: s.WebhookLog(), Credentials: s.Credentials(),
//		}})
//	}
//
// It imports package testing: import it in tests only.
package bulktest
