// Package storetest holds the conformance suites: what every adapter of a seam has to
// keep, ours or a stranger's.
//
// Each suite is one function that takes a factory. The factory returns a fresh, empty
// store and registers its own cleanup on t; every subtest asks for one. There are no
// switches: an adapter keeps all of it, or is not conformant.
//
//	func TestDeliveries(t *testing.T) {
//		storetest.RunDeliveries(t, func(t *testing.T) storetest.WebhookStore { … })
//	}
//
// The suites are tested themselves: for each promise a deliberately broken store must
// fail in the subtest of that promise.
package storetest
