// Package accesslogtest has the conformance suite of [accesslog.Store].
//
//	func TestAccessLog(t *testing.T) {
//		accesslogtest.RunStore(t, memory.New(nil).AccessLog())
//	}
//
// It imports package testing: import it in tests only.
package accesslogtest
