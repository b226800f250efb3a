// Package aggregatetest has the conformance suites of the stores of packages aggregate and
// aggregate/continuous: [RunContinuous] checks [continuous.Store] and [continuous.Work], and
// [RunPriorityStore] checks [aggregate.PriorityStore].
//
//	func TestContinuous(t *testing.T) {
//		aggregatetest.RunContinuous(t, func(testing.TB) aggregatetest.ContinuousHarness {
//			s := memory.New(nil)
//			return aggregatetest.ContinuousHarness{
//				Store: s.Continuous(), Work: s.ContinuousWork(), Data: s.Data(), Users: s.Users(), Messages: s.WebhookLog(),
//			}
//		})
//	}
//
// It imports package testing: import it in tests only.
package aggregatetest
