// Package peopletest has the conformance suite of [people.Store].
//
//	func TestPeople(t *testing.T) {
//		peopletest.RunStore(t, func(testing.TB) peopletest.StoreHarness {
//			s := memory.New(nil)
//			return peopletest.StoreHarness{Persons: s.Persons(), Users: s.Users()}
//		})
//	}
//
// It imports package testing: import it in tests only.
package peopletest
