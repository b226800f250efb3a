package memory_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
)

func TestOrganisations(t *testing.T) {
	s := memory.New(nil)
	storetest.RunOrganisations(t, storetest.OrganisationsHarness{Organisations: s.Organisations(), Users: s.Users(), Choices: s.Teams(), Clients: s.TeamClients()})
}
