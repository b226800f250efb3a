package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/healthdata/organisation/organisationtest"
)

func TestOrganisations_passTheirStoreSuite(t *testing.T) {
	s := newStore()
	organisationtest.RunStore(t, organisationtest.StoreHarness{Organisations: s.Organisations(), Users: s.Users(), Choices: s.Teams(), Clients: s.TeamClients()})
}
