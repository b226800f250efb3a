package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/linking/pull/pulltest"
)

func pullsOf(s *postgres.Store, setClock func(time.Time)) pulltest.StoreHarness {
	return pulltest.StoreHarness{Pulls: s.Pulls(), Users: s.Users(), Messages: s.WebhookLog(), Data: s.Data(), Credentials: s.Credentials(), SetClock: setClock}
}

func newPulls(t testing.TB) pulltest.StoreHarness {
	pool := pgtest.Pool(t)
	return pullsOf(postgres.New(pool, nil), setClock(t, pool))
}

func TestPulls(t *testing.T) {
	t.Parallel()
	pulltest.RunStore(t, newPulls)
}

func TestPullsModel(t *testing.T) {
	t.Parallel()
	pulltest.RunStoreModel(t, newPulls)
}

func TestPullCrashes(t *testing.T) {
	t.Parallel()
	pulltest.RunCrashes(t, newPulls)
}

// The suite passes for a role that row-level security holds for.
func TestPullsWithRowSecurity(t *testing.T) {
	skipRowSecurity(t)
	t.Parallel()
	pulltest.RunStore(t, func(t testing.TB) pulltest.StoreHarness { return pullsOf(restrictedClock(t)) })
}

// A connection whose user is being changed is not claimed: the change would write the time back
// at which it was due, and another process claim it beside the first.
func TestClaimWhileAUserChanges(t *testing.T) {
	t.Parallel()
	s := postgres.New(pgtest.Pool(t), nil)
	u := newPerson(t, s)
	due, now := noon.Time, noon.Add(time.Hour)
	claims := func() int {
		got, err := s.Pulls().ClaimConnections(t.Context(), 10, now, now.Add(time.Hour))
		require.NoError(t, err)
		return len(got)
	}
	bind := func(account string, meanwhile func()) {
		_, err := s.Users().Update(t.Context(), u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
			meanwhile()
			u.Connections = []healthdata.Connection{{Provider: linkedProvider, Status: healthdata.Connected, CreatedOn: noon.Time, LinkedAt: noon.Time, Due: due, ExternalUserID: &account}}
			return nil, nil
		})
		require.NoError(t, err)
	}
	bind("1", func() {})
	claimed := -1
	bind("2", func() { claimed = claims() })
	require.Zero(t, claimed)
	require.Equal(t, 1, claims())
	require.Zero(t, claims(), "for the time of the lease")
}

// fetch gives a user's connection a row in every table of pulls.
func fetch(t testing.TB, s *postgres.Store, u healthdata.User) {
	t.Helper()
	ref := pull.Ref{Team: u.Team, User: u.ID, Provider: linkedProvider}
	require.NoError(t, s.Pulls().Plan(t.Context(), ref, func(healthdata.Connection, healthdata.User, []pull.Task) (pull.ConnectionPlan, error) {
		return pull.ConnectionPlan{Tasks: []pull.Task{{Key: pull.Key{Ref: ref, Resource: "sleep", Kind: pull.History}}}}, nil
	}))
	key := pull.BudgetKey{Team: u.Team, User: u.ID, Provider: linkedProvider, Name: "user"}
	require.NoError(t, s.Pulls().UpdateBudgets(t.Context(), []pull.BudgetKey{key}, func([]pull.Budget) error { return nil }))
	require.NoError(t, s.Pulls().Quarantine(t.Context(), ref, []pull.RefusedItem{{ID: uuid.New(), Resource: "sleep", At: healthlab.At(noon.Time)}}))
}
