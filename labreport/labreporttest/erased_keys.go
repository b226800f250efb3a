package labreporttest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

// ErasedKeysHarness is a fresh, empty store that encrypts parsing jobs.
type ErasedKeysHarness struct {
	Jobs labreport.Store
	// Keys are the encryption keys of the users in the store.
	Keys *personkey.Keys
	// SetClock sets the store's clock to now and stops it.
	SetClock func(now time.Time)
}

// RunErasedKeys checks what [labreport.Store] promises about a user whose encryption key was deleted while the jobs are
// there, as in a restored backup. newStore returns a fresh, empty store and registers its own cleanup on t.
func RunErasedKeys(t *testing.T, newStore func(t testing.TB) ErasedKeysHarness) {
	h := newStore(t)
	h.SetClock(jobsAt)
	team, erased, other := jobTeam(), conformance.User("ana"), conformance.User("ben")
	var left []labreport.JobID
	for i := range 7 {
		j := parsingJob(team)
		if j.User = erased; i%3 == 0 {
			j.User = other
			left = append(left, j.ID)
		}
		require.NoError(t, h.Jobs.Insert(t.Context(), j, 0, nil))
	}
	require.NoError(t, h.Keys.Delete(t.Context(), personkey.Ref{Team: team, User: erased}))
	for _, size := range []int{1, 2, 3, 50} {
		var ids []labreport.JobID
		q := labreport.Query{Team: team, Size: size}
		for {
			jobs, err := h.Jobs.List(t.Context(), q)
			require.NoError(t, err)
			ids = append(ids, jobIDs(jobs)...)
			if len(jobs) < size {
				break
			}
			last := jobs[size-1]
			q.After = labreport.ListPosition{CreatedAt: last.CreatedAt, ID: last.ID}
		}
		require.ElementsMatch(t, left, ids, "%d", size)
	}
	jobs, err := h.Jobs.Claim(t.Context(), 10, time.Hour)
	require.NoError(t, err)
	require.ElementsMatch(t, left, jobIDs(jobs))
}
