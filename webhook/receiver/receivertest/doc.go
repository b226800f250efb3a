// Package receivertest has the conformance suites of [receiver.Seen]: [RunSeen] checks its
// contract, [RunSeenModel] compares it with a plain model under random calls.
//
//	func TestSeen(t *testing.T) {
//		receivertest.RunSeen(t, func(*testing.T) receivertest.SeenHarness {
//			var ahead atomic.Int64
//			now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
//			return receivertest.SeenHarness{
//				Seen: memory.NewSeen(&memory.Options{Now: now}), Advance: func(d time.Duration) { ahead.Add(int64(d)) },
//			}
//		})
//	}
//
// It imports package testing: import it in tests only.
package receivertest
