// Package organisationtest has the conformance suite of [organisation.Store].
//
//	func TestOrganisations(t *testing.T) {
//		s := memory.New(nil)
//		organisationtest.RunStore(t, organisationtest.StoreHarness{
//			Organisations: s.Organisations(), Users: s.Users(), Choices: s.Teams(), Clients: s.TeamClients(),
//		})
//	}
//
// It imports package testing: import it in tests only.
package organisationtest
