// Package healthlabtest has the conformance suite of [healthlab.Sealer].
//
//	func TestSealer(t *testing.T) {
//		healthlabtest.RunSealer(t, healthlabtest.SealerHarness{
//			New: func(t testing.TB) healthlab.Sealer { return newMine(t) },
//		})
//	}
//
// It imports package testing: import it in tests only.
package healthlabtest
