package organisation_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/healthdata/organisation/organisationtest"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/store"
)

func TestStoreOverRows(t *testing.T) {
	tables := slices.Concat(organisation.Tables(), teamsettings.Tables(), healthdata.UserTables())
	s, err := memory.NewEngine(tables, nil)
	require.NoError(t, err)
	clients := memory.New(nil).TeamClients() // of another store, so that they go after the team
	organisationtest.RunStore(t, organisationtest.StoreHarness{
		Organisations: organisation.NewStore(s, &organisation.StoreOptions{OnDelete: []func(context.Context, store.Tx, healthlab.TeamID) error{
			teamsettings.DeleteTeam,
			func(ctx context.Context, tx store.Tx, team healthlab.TeamID) error {
				list, err := clients.Clients(ctx, linking.ClientQuery{Team: team})
				for _, c := range list {
					tx.AfterCommit(func() {
						_, err := clients.ForgetClients(ctx, team, c.Provider, time.Time{})
						require.NoError(t, err)
					})
				}
				return err
			},
		}}),
		Users: healthdata.NewUsers(s, nil), Choices: teamsettings.NewStore(s), Clients: clients,
	})
}
