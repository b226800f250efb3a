// Package appointmenttest has the conformance suites of package appointment: [RunSlotCache]
// checks [appointment.SlotCache], [RunCenters] checks [appointment.Centers].
//
//	func TestSlotCache(t *testing.T) {
//		appointmenttest.RunSlotCache(t, func(testing.TB) appointment.SlotCache { return memory.New(nil).SlotCache() })
//	}
//
// It imports package testing: import it in tests only.
package appointmenttest
