package organisation_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/healthdata/organisation/organisationtest"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/store"
)

func TestStore_overRowsPassesTheSuite(t *testing.T) {
	tables := slices.Concat(organisation.Tables(), teamsettings.Tables(), healthdata.UserTables(), linking.Tables())
	s, err := memstore.New(tables, nil)
	require.NoError(t, err)
	organisationtest.RunStore(t, organisationtest.StoreHarness{
		Organisations: organisation.NewStore(s, &organisation.StoreOptions{OnDelete: []func(context.Context, store.Tx, healthlab.TeamID) error{
			teamsettings.DeleteTeam, linking.DeleteTeam,
		}}),
		Users: healthdata.NewUsers(s, nil), Choices: teamsettings.NewStore(s), Clients: linking.NewTeamClients(s),
	})
}
