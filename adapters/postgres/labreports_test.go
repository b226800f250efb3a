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
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/labreporttest"
)

func runParsingJobs(t *testing.T, newStore func(t testing.TB) (*postgres.Store, func(time.Time))) {
	labreporttest.RunStore(t, func(t testing.TB) labreporttest.StoreHarness {
		s, setClock := newStore(t)
		return labreporttest.StoreHarness{Jobs: s.ParsingJobs(), Messages: s.WebhookLog(), SetClock: setClock}
	})
	labreporttest.RunErasure(t, func(t testing.TB) labreporttest.ErasureHarness {
		s, setClock := newStore(t)
		return labreporttest.ErasureHarness{Users: s.Users(), Jobs: s.ParsingJobs(), SetClock: setClock}
	})
}

func TestParsingJobs(t *testing.T) {
	t.Parallel()
	runParsingJobs(t, clockedStore)
}

// The suites pass for a role that row-level security holds for.
func TestParsingJobsWithRowSecurity(t *testing.T) {
	skipRowSecurity(t)
	t.Parallel()
	runParsingJobs(t, restrictedClock)
}

func jobOf(u healthdata.User) labreport.Job {
	return labreport.Job{
		ID: labreport.JobID{UUID: uuid.New()}, Team: u.Team, User: u.ID, Status: labreport.Started,
		DueAt: noon.Time, CreatedAt: noon.Time, UpdatedAt: noon.Time,
	}
}

// everyJobWrite calls every method of the interface that writes, once.
func everyJobWrite(t testing.TB, s *postgres.Store, u healthdata.User) {
	t.Helper()
	j := jobOf(u)
	require.NoError(t, s.ParsingJobs().Insert(t.Context(), j, 10, []healthlab.Event{event(u, "k")}))
	_, err := s.ParsingJobs().Update(t.Context(), u.Team, j.ID, func(*labreport.Job) ([]healthlab.Event, error) { return nil, nil })
	require.NoError(t, err)
	due, err := s.ParsingJobs().Claim(t.Context(), 10, time.Minute)
	require.NoError(t, err)
	require.NotEmpty(t, due)
}

// A job that another transaction changes is not claimed, and the claim does not wait.
func TestClaimsAndChangesOfOneJob(t *testing.T) {
	t.Parallel()
	s := postgres.New(pgtest.Pool(t), sealed())
	u := newPerson(t, s)
	j, other := jobOf(u), jobOf(u)
	require.NoError(t, s.ParsingJobs().Insert(t.Context(), j, 0, nil))
	require.NoError(t, s.ParsingJobs().Insert(t.Context(), other, 0, nil))
	_, err := s.ParsingJobs().Update(t.Context(), u.Team, j.ID, func(*labreport.Job) ([]healthlab.Event, error) {
		due, err := s.ParsingJobs().Claim(t.Context(), 10, time.Minute)
		require.NoError(t, err)
		require.Len(t, due, 1)
		require.Equal(t, other.ID, due[0].ID)
		return nil, nil
	})
	require.NoError(t, err)
}

func TestParsingJobsOfErasedKeys(t *testing.T) {
	t.Parallel()
	labreporttest.RunErasedKeys(t, func(t testing.TB) labreporttest.ErasedKeysHarness {
		pool, opts := pgtest.Pool(t), sealed()
		return labreporttest.ErasedKeysHarness{Jobs: postgres.New(pool, opts).ParsingJobs(), Keys: opts.Keys, SetClock: setClock(t, pool)}
	})
}
