package labreporttest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/labreport"
)

// ErasureHarness is a fresh, empty store that keeps users and parsing jobs.
type ErasureHarness struct {
	Users healthdata.Users
	Jobs  labreport.Store
	// SetClock sets the store's clock to now and stops it.
	SetClock func(now time.Time)
}

// RunErasure runs what [healthdata.Users] and [labreport.Store] promise about
// the jobs of a user who is deleted or erased. newStore returns a fresh, empty store and registers its
// own cleanup on t.
func RunErasure(t *testing.T, newStore func(t testing.TB) ErasureHarness) {
	for name, run := range conformance.Sorted(parsingJobErasureCases) {
		t.Run("Erase/"+name, func(t *testing.T) {
			h := newStore(t)
			h.SetClock(jobsAt)
			run(t, h)
		})
	}
}

func (h ErasureHarness) remove(t *testing.T, j labreport.Job) {
	t.Helper()
	healthdatatest.AddErasedUser(t, h.Users, j.Team, j.User)
}

func (h ErasureHarness) claim(t *testing.T) []labreport.Job {
	t.Helper()
	jobs, err := h.Jobs.Claim(t.Context(), 9, 0)
	require.NoError(t, err)
	return jobs
}

var parsingJobErasureCases = map[string]func(*testing.T, ErasureHarness){
	"Jobs": func(t *testing.T, h ErasureHarness) {
		j := parsingJob(jobTeam())
		require.NoError(t, h.Jobs.Insert(t.Context(), j, 0, nil))
		bare := parsingJob(j.Team)
		bare.User, bare.Files = j.User, nil
		require.NoError(t, h.Jobs.Insert(t.Context(), bare, 0, nil))
		h.remove(t, j)
		for _, gone := range []labreport.Job{j, bare} {
			_, err := h.Jobs.Get(t.Context(), gone.Team, gone.ID)
			require.ErrorIs(t, err, healthlab.NotFound)
		}
		for _, q := range []labreport.Query{{Team: j.Team, Size: 9}, {Team: j.Team, User: j.User, Size: 9}, {Team: j.Team, Corrected: true, Size: 9}} {
			jobs, err := h.Jobs.List(t.Context(), q)
			require.NoError(t, err)
			require.Empty(t, jobs)
		}
		require.NoError(t, h.Jobs.Insert(t.Context(), parsingJob(j.Team), 1, nil), "no quota counts them")
		_, err := h.Jobs.Update(t.Context(), bare.Team, bare.ID, jobUnchanged)
		require.ErrorIs(t, err, healthlab.NotFound, "it had no files")
	},
	"FilesAreStillToBeDeleted": func(t *testing.T, h ErasureHarness) {
		j := parsingJob(jobTeam())
		j.DueAt = time.Time{} // the job waits for a person's review
		require.NoError(t, h.Jobs.Insert(t.Context(), j, 0, nil))
		h.remove(t, j)
		got := h.claim(t)
		require.Len(t, got, 1)
		want := labreport.Job{
			ID: j.ID, Team: j.Team, Status: labreport.Failed, Files: j.Files, CreatedAt: j.CreatedAt, DueAt: jobsAt, Revision: got[0].Revision,
		}
		require.Equal(t, []labreport.Job{want}, got, "nothing of the person")
		_, err := h.Jobs.Update(t.Context(), j.Team, j.ID, func(j *labreport.Job) ([]healthlab.Event, error) {
			j.Tries++
			return nil, nil
		})
		require.NoError(t, err)
		require.Len(t, h.claim(t), 1, "until the files are gone")
		_, err = h.Jobs.Update(t.Context(), j.Team, j.ID, func(j *labreport.Job) ([]healthlab.Event, error) {
			j.Files, j.DueAt = nil, time.Time{}
			return nil, nil
		})
		require.NoError(t, err)
		require.Empty(t, h.claim(t))
		_, err = h.Jobs.Update(t.Context(), j.Team, j.ID, jobUnchanged)
		require.ErrorIs(t, err, healthlab.NotFound)
		require.NoError(t, h.Jobs.Insert(t.Context(), j, 0, nil), "the id is free")
	},
	"Deleted": func(t *testing.T, h ErasureHarness) {
		j := parsingJob(jobTeam())
		other := parsingJob(j.Team)
		for _, x := range []labreport.Job{j, other} {
			require.NoError(t, h.Jobs.Insert(t.Context(), x, 0, nil))
		}
		healthdatatest.AddUser(t, h.Users, j.Team, j.User)
		healthdatatest.DeleteUser(t, h.Users, j.Team, j.User)
		_, err := h.Jobs.Get(t.Context(), j.Team, j.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
		jobs, err := h.Jobs.List(t.Context(), labreport.Query{Team: j.Team, Size: 9})
		require.NoError(t, err)
		require.Equal(t, []labreport.Job{other}, jobs)
		changed, err := h.Jobs.Update(t.Context(), j.Team, j.ID, jobUnchanged)
		require.NoError(t, err, "work on it goes on")
		healthdatatest.RestoreUser(t, h.Users, j.Team, j.User)
		got, err := h.Jobs.Get(t.Context(), j.Team, j.ID)
		require.NoError(t, err)
		require.Equal(t, changed, got)
	},
	"NothingElse": func(t *testing.T, h ErasureHarness) {
		j := parsingJob(jobTeam())
		other := parsingJob(j.Team)
		elsewhere := parsingJob(jobTeam())
		elsewhere.User = j.User
		for _, x := range []labreport.Job{j, other, elsewhere} {
			require.NoError(t, h.Jobs.Insert(t.Context(), x, 0, nil))
		}
		h.remove(t, j)
		for _, want := range []labreport.Job{other, elsewhere} {
			got, err := h.Jobs.Get(t.Context(), want.Team, want.ID)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	},
}
