// Package personkeytest has the conformance suites of package personkey: [RunStore] checks
// [personkey.Store], and [RunAtRest] checks the data of stores that encrypt with [personkey.Keys].
//
//	func TestPersonKeys(t *testing.T) {
//		personkeytest.RunStore(t, func(testing.TB) personkey.Store { return memory.NewPersonKeys() })
//	}
//
// It imports package testing: import it in tests only.
package personkeytest
