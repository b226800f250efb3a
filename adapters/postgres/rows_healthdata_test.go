package postgres_test

import (
	"context"
	"testing"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/aggregatetest"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/healthdata/organisation/organisationtest"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings/teamsettingstest"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/labreporttest"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
	"github.com/healthlab-dev/healthlab/privacy/accesslog/accesslogtest"
	"github.com/healthlab-dev/healthlab/privacy/personexport"
	"github.com/healthlab-dev/healthlab/privacy/personexport/personexporttest"
	"github.com/healthlab-dev/healthlab/store"
)

func rowData(t testing.TB) healthdatatest.DataHarness {
	return dataOf(newRowStore(t, healthdata.DataTables(true)))
}

func dataOf(s rowStore) healthdatatest.DataHarness {
	return healthdatatest.DataHarness{
		Data: healthdata.NewData(s, &healthdata.DataOptions{Events: s.log}), Users: s.users(), Messages: s.log,
	}
}

func rowUsers(t testing.TB) healthdatatest.UsersHarness {
	h := rowData(t)
	return healthdatatest.UsersHarness{Users: h.Users, Messages: h.Messages, Data: h.Data}
}

func TestData_passesItsStoreSuite(t *testing.T) {
	t.Parallel()
	healthdatatest.RunData(t, rowData)
}

// The suite passes for a role that row-level security holds for.
func TestData_passesItsStoreSuiteWithRowSecurity(t *testing.T) {
	t.Parallel()
	healthdatatest.RunData(t, func(t testing.TB) healthdatatest.DataHarness {
		return dataOf(restrictedRowStore(t, healthdata.DataTables(true)))
	})
}

func TestData_passesItsModelTest(t *testing.T) {
	t.Parallel()
	healthdatatest.RunDataModel(t, rowData)
}

func TestUsers_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	healthdatatest.RunUsers(t, rowUsers)
}

func TestUsers_passTheirModelTest(t *testing.T) {
	t.Parallel()
	healthdatatest.RunUsersModel(t, rowUsers)
}

func TestOrganisations_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	s := newRowStore(t, organisation.Tables(), teamsettings.Tables(), linking.Tables())
	organisationtest.RunStore(t, organisationtest.StoreHarness{
		Organisations: organisation.NewStore(s, &organisation.StoreOptions{OnDelete: []func(context.Context, store.Tx, healthlab.TeamID) error{
			teamsettings.DeleteTeam, linking.DeleteTeam,
		}}),
		Users: s.users(), Choices: teamsettings.NewStore(s), Clients: linking.NewTeamClients(s),
	})
}

func TestTeamSettings_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	teamsettingstest.RunStore(t, teamsettings.NewStore(newRowStore(t, teamsettings.Tables())))
}

func TestPersonExports_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	personexporttest.RunStore(t, func(t testing.TB) personexporttest.StoreHarness {
		s := stoppedRowStore(t, personexport.Tables())
		return personexporttest.StoreHarness{Exports: personexport.NewStore(s), SetClock: s.setClock, Users: s.users(personexport.EraseJobs)}
	})
}

func TestParsingJobs_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	labreporttest.RunStore(t, func(t testing.TB) labreporttest.StoreHarness {
		s := stoppedRowStore(t, labreport.Tables())
		return labreporttest.StoreHarness{
			Jobs: labreport.NewStore(s, &labreport.StoreOptions{Events: s.log, UsersElsewhere: true}), Messages: s.log, SetClock: s.setClock,
		}
	})
}

func TestParsingJobs_passTheErasureSuite(t *testing.T) {
	t.Parallel()
	labreporttest.RunErasure(t, func(t testing.TB) labreporttest.ErasureHarness {
		s := stoppedRowStore(t, labreport.Tables())
		return labreporttest.ErasureHarness{
			Users: s.users(labreport.EraseJobs), Jobs: labreport.NewStore(s, &labreport.StoreOptions{UsersElsewhere: true}), SetClock: s.setClock,
		}
	})
}

// rowQueries returns continuous queries and their priorities.
func rowQueries(t testing.TB) (aggregatetest.ContinuousHarness, aggregate.PriorityStore) {
	s := newRowStore(t, continuous.Tables(), aggregate.Tables(), healthdata.DataTables(true))
	c := continuous.NewStore(s, &continuous.StoreOptions{Events: s.log})
	return aggregatetest.ContinuousHarness{
		Store: c, Work: c, Data: healthdata.NewData(s, &healthdata.DataOptions{Events: s.log, Changes: c}), Users: s.users(), Messages: s.messages(),
	}, aggregate.NewPriorityStore(s, &aggregate.PriorityStoreOptions{Changed: c.Restart})
}

func TestContinuousQueries_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	aggregatetest.RunContinuous(t, func(t testing.TB) aggregatetest.ContinuousHarness {
		h, _ := rowQueries(t)
		return h
	})
}

func TestPriorities_passTheirStoreSuite(t *testing.T) {
	t.Parallel()
	h, priorities := rowQueries(t)
	aggregatetest.RunPriorityStore(t, priorities, h)
}

func TestAccessLog_passesItsStoreSuite(t *testing.T) {
	t.Parallel()
	accesslogtest.RunStore(t, accesslog.NewStore(newRowStore(t, accesslog.Tables()), nil))
}
