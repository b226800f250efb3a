// Package cataloguetest has the conformance suite of [catalogue.LabTestStore].
//
//	func TestLabTests(t *testing.T) {
//		cataloguetest.RunLabTestStore(t, func(testing.TB) catalogue.LabTestStore { return memory.New(nil).LabTests() })
//	}
//
// It imports package testing: import it in tests only.
package cataloguetest
