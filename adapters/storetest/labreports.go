package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport"
)

var jobsAt = time.Date(2026, 3, 1, 8, 0, 0, 123456000, time.UTC)

// parsingJob returns a job with no field at its zero value.
func parsingJob(team healthlab.TeamID) labreport.Job {
	unit, kind, means := "mg/dL", labreport.Numeric, labreport.Normal
	low, high := json.Number("70"), json.Number("99.50")
	data := &labreport.Data{Metadata: labreport.Metadata{Gender: "female", Evidence: labreport.Evidence{}},
		Results: []labreport.Result{{TestName: "Glucose", Value: "95", Type: &kind, Units: &unit, MinReferenceRange: &low, MaxReferenceRange: &high,
			SampleType: labreport.Blood, MeasurementKind: "direct", Sensitivity: "unknown", Interpretation: &means,
			LoincMatches: []labreport.Match{{LoincCode: "2345-7", LoincName: "Glucose", Aliases: []string{"GLU"}, ConfidenceScore: 0.98}},
			Evidence:     labreport.Evidence{"value": {Page: 1, Box: labreport.Box{X: 0.1, Y: 0.2, Width: 0.05, Height: 0.01}, Confidence: 0.97}}}}}
	return labreport.Job{ID: labreport.JobID{UUID: uuid.Must(uuid.NewV7())}, Team: team, User: healthlab.UserID{UUID: uuid.New()}, Revision: 1,
		Status: labreport.PendingReview, FailureReason: labreport.LowQuality, NeedsHumanReview: true,
		Files: []labreport.StoredFile{{Key: "lab-reports/a/0", Type: "application/pdf", Size: 12}}, Draft: data,
		Review: &labreport.Review{By: "reviewer 1", At: jobsAt, Approved: true, Data: data, Reason: labreport.InvalidInput},
		Tries:  2, DueAt: jobsAt, StartedAt: jobsAt.Add(time.Second), CreatedAt: jobsAt, UpdatedAt: jobsAt.Add(time.Minute)}
}

// RunParsingJobs runs the contract of [labreport.Store]. newStore returns a fresh,
// empty store.
func RunParsingJobs(t *testing.T, newStore func(t *testing.T) labreport.Store) {
	team := func() healthlab.TeamID { return healthlab.TeamID{UUID: uuid.New()} }
	noChange := func(*labreport.Job) ([]healthlab.Event, error) { return nil, nil }

	t.Run("Insert/RoundTrip", func(t *testing.T) {
		s, j := newStore(t), parsingJob(team())
		require.NoError(t, s.Insert(t.Context(), j, 0, nil))
		got, err := s.Get(t.Context(), j.Team, j.ID)
		require.NoError(t, err)
		require.Equal(t, j, got)
	})
	t.Run("Insert/Duplicate", func(t *testing.T) {
		s, j := newStore(t), parsingJob(team())
		require.NoError(t, s.Insert(t.Context(), j, 0, nil))
		require.ErrorIs(t, s.Insert(t.Context(), j, 0, nil), healthlab.Conflict)
	})
	t.Run("Insert/NUL", func(t *testing.T) {
		s, j := newStore(t), parsingJob(team())
		j.Review.By = "a\x00b"
		require.ErrorIs(t, s.Insert(t.Context(), j, 0, nil), healthlab.Invalid)
	})
	t.Run("Insert/QuotaCountsJobsThatHaveNotFailed", func(t *testing.T) {
		s, mine := newStore(t), team()
		other := parsingJob(team())
		require.NoError(t, s.Insert(t.Context(), other, 2, nil))
		failed := parsingJob(mine)
		failed.Status = labreport.Failed
		require.NoError(t, s.Insert(t.Context(), failed, 2, nil))
		require.NoError(t, s.Insert(t.Context(), parsingJob(mine), 2, nil))
		require.NoError(t, s.Insert(t.Context(), parsingJob(mine), 2, nil))
		last := parsingJob(mine)
		require.ErrorIs(t, s.Insert(t.Context(), last, 2, nil), healthlab.Exhausted)
		_, err := s.Get(t.Context(), mine, last.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
	})
	t.Run("Insert/QuotaHoldsUnderRace", func(t *testing.T) {
		s, mine := newStore(t), team()
		var wg sync.WaitGroup
		for range 12 {
			wg.Go(func() { _ = s.Insert(context.Background(), parsingJob(mine), 5, nil) })
		}
		wg.Wait()
		jobs, err := s.List(t.Context(), labreport.Query{Team: mine, Size: 50})
		require.NoError(t, err)
		require.Len(t, jobs, 5)
	})
	t.Run("Teams/SeeNothingOfEachOther", func(t *testing.T) {
		s, j := newStore(t), parsingJob(team())
		require.NoError(t, s.Insert(t.Context(), j, 0, nil))
		_, err := s.Get(t.Context(), team(), j.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = s.Update(t.Context(), team(), j.ID, noChange)
		require.ErrorIs(t, err, healthlab.NotFound)
		jobs, err := s.List(t.Context(), labreport.Query{Team: team(), Size: 9})
		require.NoError(t, err)
		require.Empty(t, jobs)
	})
	t.Run("Aliasing", func(t *testing.T) {
		s, j := newStore(t), parsingJob(team())
		require.NoError(t, s.Insert(t.Context(), j, 0, nil))
		j.Draft.Results[0].Value = "edited"
		got, err := s.Get(t.Context(), j.Team, j.ID)
		require.NoError(t, err)
		require.Equal(t, "95", got.Draft.Results[0].Value)
		got.Draft.Results[0].Value = "edited"
		got, err = s.Get(t.Context(), j.Team, j.ID)
		require.NoError(t, err)
		require.Equal(t, "95", got.Draft.Results[0].Value)
	})
	t.Run("Update/ErrorWritesNothing", func(t *testing.T) {
		s, j := newStore(t), parsingJob(team())
		require.NoError(t, s.Insert(t.Context(), j, 0, nil))
		fault := errors.New("no")
		_, err := s.Update(t.Context(), j.Team, j.ID, func(j *labreport.Job) ([]healthlab.Event, error) {
			j.Tries = 99
			return nil, fault
		})
		require.ErrorIs(t, err, fault)
		got, err := s.Get(t.Context(), j.Team, j.ID)
		require.NoError(t, err)
		require.Equal(t, j, got)
	})
	t.Run("Update/NoLostUpdates", func(t *testing.T) {
		s, j := newStore(t), parsingJob(team())
		j.Tries = 0
		require.NoError(t, s.Insert(t.Context(), j, 0, nil))
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				_, err := s.Update(context.Background(), j.Team, j.ID, func(j *labreport.Job) ([]healthlab.Event, error) {
					j.Tries++
					return nil, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		got, err := s.Get(t.Context(), j.Team, j.ID)
		require.NoError(t, err)
		require.Equal(t, 16, got.Tries)
		require.Equal(t, int64(17), got.Revision)
	})
	t.Run("List/OldestFirst", func(t *testing.T) {
		s, mine := newStore(t), team()
		var want []labreport.JobID
		for i := range 5 {
			j := parsingJob(mine)
			j.CreatedAt = jobsAt.Add(time.Duration(i/2) * time.Second)
			if i == 3 {
				j.Status = labreport.Completed
			} else {
				want = append(want, j.ID)
			}
			require.NoError(t, s.Insert(t.Context(), j, 0, nil))
		}
		var got []labreport.JobID
		var after labreport.JobID
		for {
			jobs, err := s.List(t.Context(), labreport.Query{Team: mine, Status: []labreport.Status{labreport.PendingReview}, After: after, Size: 2})
			require.NoError(t, err)
			if len(jobs) == 0 {
				break
			}
			for _, j := range jobs {
				got = append(got, j.ID)
			}
			after = got[len(got)-1]
		}
		require.Equal(t, want, got)
	})
	t.Run("Claim/OnceUntilTheLeaseEnds", func(t *testing.T) {
		s, j := newStore(t), parsingJob(team())
		later := parsingJob(team())
		later.DueAt = jobsAt.Add(time.Hour)
		never := parsingJob(team())
		never.DueAt = time.Time{}
		for _, x := range []labreport.Job{j, later, never} {
			require.NoError(t, s.Insert(t.Context(), x, 0, nil))
		}
		got, err := s.Claim(t.Context(), jobsAt, jobsAt.Add(time.Minute), 9)
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Equal(t, j.ID, got[0].ID)
		require.Equal(t, jobsAt.Add(time.Minute), got[0].DueAt)
		got, err = s.Claim(t.Context(), jobsAt.Add(59*time.Second), jobsAt.Add(2*time.Minute), 9)
		require.NoError(t, err)
		require.Empty(t, got)
		got, err = s.Claim(t.Context(), jobsAt.Add(time.Minute), jobsAt.Add(2*time.Minute), 9)
		require.NoError(t, err)
		require.Len(t, got, 1)
	})
	t.Run("Claim/NoJobTwice", func(t *testing.T) {
		s := newStore(t)
		for range 20 {
			require.NoError(t, s.Insert(t.Context(), parsingJob(team()), 0, nil))
		}
		var mu sync.Mutex
		seen := map[labreport.JobID]int{}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				jobs, err := s.Claim(context.Background(), jobsAt, jobsAt.Add(time.Hour), 4)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, j := range jobs {
					seen[j.ID]++
				}
			})
		}
		wg.Wait()
		for _, n := range seen {
			require.Equal(t, 1, n)
		}
	})
	t.Run("Context/CancelledWritesNothing", func(t *testing.T) {
		s, j := newStore(t), parsingJob(team())
		ctx, stop := context.WithCancel(t.Context())
		stop()
		require.ErrorIs(t, s.Insert(ctx, j, 0, nil), context.Canceled)
		_, err := s.Get(t.Context(), j.Team, j.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
	})
}
