// Package labjournaltest has the conformance suite of [labjournal.Store].
//
//	func TestLabJournal(t *testing.T) {
//		labjournaltest.RunStore(t, func(testing.TB) labjournaltest.Harness {
//			s := memory.New(nil)
//			return labjournaltest.Harness{Journal: s.LabJournal(), Users: s.Users()}
//		})
//	}
//
// It imports package testing: import it in tests only.
package labjournaltest
