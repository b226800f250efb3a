// Package personkeytest has the conformance suite of [personkey.Store].
//
//	func TestPersonKeys(t *testing.T) {
//		personkeytest.RunStore(t, func(testing.TB) personkey.Store { return memory.NewPersonKeys() })
//	}
//
// It imports package testing: import it in tests only.
package personkeytest
