// Package teamsettingstest has the conformance suite of [teamsettings.Store].
//
//	func TestTeams(t *testing.T) {
//		teamsettingstest.RunStore(t, memory.New(nil).Teams())
//	}
//
// It imports package testing: import it in tests only.
package teamsettingstest
