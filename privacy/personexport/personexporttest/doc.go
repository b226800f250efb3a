// Package personexporttest has the conformance suite of [personexport.Store].
//
//	func TestPersonExports(t *testing.T) {
//		personexporttest.RunStore(t, func(testing.TB) personexporttest.StoreHarness {
//			s := memory.New(nil)
//			return personexporttest.StoreHarness{Exports: s.PersonExports(), Users: s.Users()}
//		})
//	}
//
// It imports package testing: import it in tests only.
package personexporttest
