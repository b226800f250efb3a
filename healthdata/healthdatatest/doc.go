// Package healthdatatest has the conformance suites of the stores of package healthdata, and
// functions that add users and samples for the suites of other packages.
//
//   - [RunUsers] and [RunUsersModel] check [healthdata.Users]; [BenchUsers] measures it.
//   - [RunData] and [RunDataModel] check [healthdata.Data]; [BenchSamplesInTurn] measures
//     two ways of keeping samples.
//   - [RunUsersAlone] and [RunDataAlone] check a store of one of them, where another store keeps the
//     other.
//
// A suite whose name ends in Model compares the store with a plain model under random calls.
// There are no capability flags: a store keeps every promise of its interface.
//
//	func TestUsers(t *testing.T) {
//		healthdatatest.RunUsers(t, func(testing.TB) healthdatatest.UsersHarness {
//			s := memory.New(nil)
//			return healthdatatest.UsersHarness{Users: s.Users(), Messages: s.WebhookLog(), Data: s.Data()}
//		})
//	}
//
// It imports package testing: import it in tests only.
package healthdatatest

// Files in the order of reading: each uses those before it.
//
//	users_fixture.go users_deletion.go users_list.go users.go alone.go data_fixture.go data_remove.go
//	data_view.go bench_samples.go data.go data_model.go users_setup.go users_model.go
