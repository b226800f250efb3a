package labreporttest

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
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

var jobsAt = time.Date(2026, 3, 1, 8, 0, 0, 123456000, time.UTC)

// parsingJob returns a job in which every field is set.
func parsingJob(team healthlab.TeamID) labreport.Job {
	unit, kind, means := "mg/dL", labreport.Numeric, labreport.Normal
	low, high := json.Number("70"), json.Number("99.50")
	data := &labreport.Data{Metadata: labreport.Metadata{Gender: "female", Evidence: labreport.Evidence{}},
		Results: []labreport.Result{{TestName: "Glucose", Value: "95", Type: &kind, Units: &unit, MinReferenceRange: &low, MaxReferenceRange: &high,
			SampleType: loinc.Blood, MeasurementKind: "direct", Sensitivity: "unknown", Interpretation: &means,
			LoincMatches: []labreport.Match{{LoincCode: "2345-7", LoincName: "Glucose", Aliases: []string{"GLU"}, ConfidenceScore: 0.98}},
			Evidence:     labreport.Evidence{"value": {Page: 1, Box: labreport.Box{X: 0.1, Y: 0.2, Width: 0.05, Height: 0.01}, Confidence: 0.97}}}}}
	at, text := 0, "95"
	corrections := []labreport.Correction{{Action: labreport.ChangeField, Result: &at, Field: "value", Value: &text},
		{Action: labreport.AddResult, Row: &labreport.AddedRow{TestName: "Sodium", Value: "140", Units: "mmol/L", LoincCode: "2951-2"}}}
	return labreport.Job{ID: labreport.JobID{UUID: uuid.Must(uuid.NewV7())}, Team: team, User: healthlab.UserID{UUID: uuid.New()}, Revision: 1,
		Status: labreport.PendingReview, FailureReason: labreport.LowQuality, NeedsHumanReview: true,
		Files: []labreport.StoredFile{{Key: "lab-reports/a/0", Type: "application/pdf", Size: 12}}, Pages: 3, UnreadPages: []int{2}, Draft: data,
		Review: &labreport.Review{By: "reviewer 1", At: jobsAt, Approved: true, Corrections: corrections, Data: data, Reason: labreport.InvalidInput},
		Tries:  2, DueAt: jobsAt, StartedAt: jobsAt.Add(time.Second), CreatedAt: jobsAt, UpdatedAt: jobsAt.Add(time.Minute)}
}

// StoreHarness is a fresh, empty store for the suite of parsing jobs. Jobs and Messages use the same store.
type StoreHarness struct {
	// Jobs is the interface that is tested.
	Jobs labreport.Store
	// Messages shows the events that were written.
	Messages healthdatatest.Messages
	// SetClock sets the store's clock to now and stops it.
	SetClock func(now time.Time)
}

// RunStore runs the contract of [labreport.Store]. newStore returns a fresh, empty
// store and registers its own cleanup on t.
func RunStore(t *testing.T, newStore func(t testing.TB) StoreHarness) {
	for name, run := range conformance.Sorted(parsingJobCases) {
		t.Run(name, func(t *testing.T) {
			h := newStore(t)
			h.SetClock(jobsAt)
			run(t, h)
		})
	}
}

func jobTeam() healthlab.TeamID { return healthlab.TeamID{UUID: uuid.New()} }

func jobUnchanged(*labreport.Job) ([]healthlab.Event, error) { return nil, nil }

func (h StoreHarness) put(t *testing.T, j labreport.Job) labreport.Job {
	t.Helper()
	require.NoError(t, h.Jobs.Insert(t.Context(), j, 0, nil))
	return j
}

func (h StoreHarness) requireJob(t *testing.T, want labreport.Job) {
	t.Helper()
	got, err := h.Jobs.Get(t.Context(), want.Team, want.ID)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func (h StoreHarness) requireNoJob(t *testing.T, j labreport.Job) {
	t.Helper()
	_, err := h.Jobs.Get(t.Context(), j.Team, j.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
}

func jobEvent(j *labreport.Job) healthlab.Event {
	return healthlab.Event{
		ID: uuid.New(), Type: labreport.EventJobUpdated, Team: j.Team, User: j.User, Key: j.ID.String(), At: jobsAt, Data: []byte(`{"n":1}`),
	}
}

func jobIDs(jobs []labreport.Job) []labreport.JobID {
	var out []labreport.JobID
	for _, j := range jobs {
		out = append(out, j.ID)
	}
	return out
}

var parsingJobCases = map[string]func(*testing.T, StoreHarness){
	"Insert/RoundTrip": func(t *testing.T, h StoreHarness) {
		want := parsingJob(jobTeam())
		given := want
		given.Revision = 9
		zone := time.FixedZone("x", 3600)
		given.CreatedAt, given.DueAt = want.CreatedAt.In(zone), want.DueAt.In(zone).Add(400*time.Nanosecond)
		given.StartedAt, given.UpdatedAt = want.StartedAt.In(zone), want.UpdatedAt.Add(400*time.Nanosecond)
		h.put(t, given)
		h.requireJob(t, want)
	},
	"Insert/Empty": func(t *testing.T, h StoreHarness) {
		j := parsingJob(jobTeam())
		want := labreport.Job{ID: j.ID, Team: j.Team, User: j.User, Status: labreport.UploadPending, CreatedAt: jobsAt, UpdatedAt: jobsAt, Revision: 1}
		h.put(t, want)
		h.requireJob(t, want)
	},
	"Insert/Duplicate": func(t *testing.T, h StoreHarness) {
		j := h.put(t, parsingJob(jobTeam()))
		again := j
		again.Tries = 9
		require.ErrorIs(t, h.Jobs.Insert(t.Context(), again, 0, nil), healthlab.Conflict)
		h.requireJob(t, j)
	},
	"Insert/Refused": func(t *testing.T, h StoreHarness) {
		for _, spoil := range []func(*labreport.Job){
			func(j *labreport.Job) { j.Review.By = "a\x00b" },
			func(j *labreport.Job) { j.Files[0].Key = "a\x00b" },
			func(j *labreport.Job) { j.ID = labreport.JobID{} },
			func(j *labreport.Job) { j.Team = healthlab.TeamID{} },
			func(j *labreport.Job) { j.User = healthlab.UserID{} },
		} {
			j := parsingJob(jobTeam())
			spoil(&j)
			require.ErrorIs(t, h.Jobs.Insert(t.Context(), j, 0, nil), healthlab.Invalid)
			h.requireNoJob(t, j)
		}
		fine := parsingJob(jobTeam())
		fine.Review.By = `a\u0000b\ufffd` + "\ufffd" // neither NUL nor invalid UTF-8
		h.put(t, fine)
		h.requireJob(t, fine)
	},
	"Insert/WithItsEvents": func(t *testing.T, h StoreHarness) {
		j := parsingJob(jobTeam())
		e := jobEvent(&j)
		require.NoError(t, h.Jobs.Insert(t.Context(), j, 0, []healthlab.Event{e}))
		m, err := h.Messages.Message(t.Context(), j.Team, e.ID)
		require.NoError(t, err)
		require.EqualValues(t, 1, m.Seq)
		bad := parsingJob(j.Team)
		good := jobEvent(&bad)
		require.ErrorIs(t, h.Jobs.Insert(t.Context(), bad, 0, []healthlab.Event{good, e}), healthlab.Conflict, "the event's id is taken")
		h.requireNoJob(t, bad)
		_, err = h.Messages.Message(t.Context(), j.Team, good.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
	},
	"Insert/QuotaCountsJobsThatHaveNotFailed": func(t *testing.T, h StoreHarness) {
		s, mine := h.Jobs, jobTeam()
		require.NoError(t, s.Insert(t.Context(), parsingJob(jobTeam()), 2, nil))
		failed := parsingJob(mine)
		failed.Status = labreport.Failed
		require.NoError(t, s.Insert(t.Context(), failed, 2, nil))
		one := parsingJob(mine)
		require.NoError(t, s.Insert(t.Context(), one, 2, nil))
		require.NoError(t, s.Insert(t.Context(), parsingJob(mine), 2, nil))
		last := parsingJob(mine)
		require.ErrorIs(t, s.Insert(t.Context(), last, 2, []healthlab.Event{jobEvent(&last)}), healthlab.Exhausted)
		h.requireNoJob(t, last)
		_, err := s.Update(t.Context(), mine, one.ID, func(j *labreport.Job) ([]healthlab.Event, error) {
			j.Status = labreport.Failed
			return nil, nil
		})
		require.NoError(t, err)
		require.NoError(t, s.Insert(t.Context(), last, 2, nil))
	},
	"Insert/QuotaHoldsUnderRace": func(t *testing.T, h StoreHarness) {
		mine := jobTeam()
		for _, err := range conformance.Together(12, func(int) error { return h.Jobs.Insert(t.Context(), parsingJob(mine), 3, nil) }) {
			if err != nil {
				require.ErrorIs(t, err, healthlab.Exhausted)
			}
		}
		jobs, err := h.Jobs.List(t.Context(), labreport.Query{Team: mine, Size: 100})
		require.NoError(t, err)
		require.Len(t, jobs, 3)
	},
	"Teams/SeeNothingOfEachOther": func(t *testing.T, h StoreHarness) {
		j := h.put(t, parsingJob(jobTeam()))
		_, err := h.Jobs.Get(t.Context(), jobTeam(), j.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = h.Jobs.Update(t.Context(), jobTeam(), j.ID, jobUnchanged)
		require.ErrorIs(t, err, healthlab.NotFound)
		jobs, err := h.Jobs.List(t.Context(), labreport.Query{Team: jobTeam(), Size: 9})
		require.NoError(t, err)
		require.Empty(t, jobs)
		h.requireJob(t, j)
	},
	"Aliasing": func(t *testing.T, h StoreHarness) {
		j := h.put(t, parsingJob(jobTeam()))
		want := parsingJob(j.Team)
		want.ID, want.User = j.ID, j.User
		spoil := func(j labreport.Job) {
			j.Draft.Results[0].Value, j.Review.By, j.Files[0].Key = "edited", "edited", "edited"
		}
		spoil(j)
		got, err := h.Jobs.Get(t.Context(), j.Team, j.ID)
		require.NoError(t, err)
		require.Equal(t, want, got)
		spoil(got)
		h.requireJob(t, want)
		var inside *labreport.Data
		got, err = h.Jobs.Update(t.Context(), j.Team, j.ID, func(j *labreport.Job) ([]healthlab.Event, error) {
			inside = j.Draft
			return nil, nil
		})
		require.NoError(t, err)
		want.Revision = 2
		inside.Results[0].Value = "edited"
		require.Equal(t, want, got)
		spoil(got)
		h.requireJob(t, want)
	},
	"Update/WithItsEvents": func(t *testing.T, h StoreHarness) {
		j := h.put(t, parsingJob(jobTeam()))
		e := jobEvent(&j)
		tries := func(events ...healthlab.Event) error {
			_, err := h.Jobs.Update(t.Context(), j.Team, j.ID, func(j *labreport.Job) ([]healthlab.Event, error) {
				j.Tries++
				return events, nil
			})
			return err
		}
		require.NoError(t, tries(e))
		_, err := h.Messages.Message(t.Context(), j.Team, e.ID)
		require.NoError(t, err)
		j.Tries, j.Revision = j.Tries+1, 2
		h.requireJob(t, j)
		good := jobEvent(&j)
		require.ErrorIs(t, tries(good, e), healthlab.Conflict)
		h.requireJob(t, j)
		_, err = h.Messages.Message(t.Context(), j.Team, good.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
	},
	"Update/KeepsItsOwn": func(t *testing.T, h StoreHarness) {
		j := h.put(t, parsingJob(jobTeam()))
		got, err := h.Jobs.Update(t.Context(), j.Team, j.ID, func(j *labreport.Job) ([]healthlab.Event, error) {
			*j = labreport.Job{Status: labreport.Failed, UpdatedAt: jobsAt, Revision: 9, Files: []labreport.StoredFile{{Key: "k"}}}
			return nil, nil
		})
		require.NoError(t, err)
		want := labreport.Job{
			ID: j.ID, Team: j.Team, User: j.User, CreatedAt: j.CreatedAt, Revision: 2,
			Status: labreport.Failed, UpdatedAt: jobsAt, Files: []labreport.StoredFile{{Key: "k"}},
		}
		require.Equal(t, want, got)
		h.requireJob(t, want)
	},
	"Update/ErrorWritesNothing": func(t *testing.T, h StoreHarness) {
		j := h.put(t, parsingJob(jobTeam()))
		fault := errors.New("no")
		_, err := h.Jobs.Update(t.Context(), j.Team, j.ID, func(j *labreport.Job) ([]healthlab.Event, error) {
			j.Tries = 99
			return nil, fault
		})
		require.ErrorIs(t, err, fault)
		_, err = h.Jobs.Update(t.Context(), j.Team, j.ID, func(j *labreport.Job) ([]healthlab.Event, error) {
			j.Review.By = "a\x00b"
			return nil, nil
		})
		require.ErrorIs(t, err, healthlab.Invalid)
		h.requireJob(t, j)
	},
	"Update/NoLostUpdates": func(t *testing.T, h StoreHarness) {
		j := h.put(t, parsingJob(jobTeam()))
		require.NoError(t, errors.Join(conformance.Together(16, func(int) error {
			_, err := h.Jobs.Update(t.Context(), j.Team, j.ID, func(j *labreport.Job) ([]healthlab.Event, error) {
				j.Tries++
				return nil, nil
			})
			return err
		})...))
		j.Tries, j.Revision = j.Tries+16, 17
		h.requireJob(t, j)
	},
	"List/NewestFirst": func(t *testing.T, h StoreHarness) {
		mine := jobTeam()
		var want []labreport.JobID
		for i := range 5 {
			j := parsingJob(mine)
			j.CreatedAt = jobsAt.Add(time.Duration(i/2) * time.Second)
			if i == 3 {
				j.Status = labreport.Completed
			} else {
				want = append([]labreport.JobID{j.ID}, want...)
			}
			h.put(t, j)
		}
		var got []labreport.JobID
		q := labreport.Query{Team: mine, Status: []labreport.Status{labreport.Started, labreport.PendingReview}, Size: 2}
		for {
			jobs, err := h.Jobs.List(t.Context(), q)
			require.NoError(t, err)
			if len(jobs) == 0 {
				break
			}
			require.LessOrEqual(t, len(jobs), 2)
			got = append(got, jobIDs(jobs)...)
			last := jobs[len(jobs)-1]
			q.After = labreport.ListPosition{CreatedAt: last.CreatedAt, ID: last.ID}
		}
		require.Equal(t, want, got)
		jobs, err := h.Jobs.List(t.Context(), labreport.Query{Team: mine})
		require.NoError(t, err)
		require.Equal(t, want[:1], jobIDs(jobs), "at least one")
		gone := labreport.ListPosition{CreatedAt: jobsAt.Add(time.Millisecond), ID: labreport.JobID{UUID: uuid.Must(uuid.NewV7())}}
		jobs, err = h.Jobs.List(t.Context(), labreport.Query{Team: mine, After: gone, Size: 9})
		require.NoError(t, err)
		require.Equal(t, want[2:], jobIDs(jobs), "the job of a place need not exist")
	},
	"List/Corrected": func(t *testing.T, h StoreHarness) {
		j := h.put(t, parsingJob(jobTeam()))
		right := parsingJob(j.Team)
		right.Review.Corrections = nil
		h.put(t, right)
		later := parsingJob(j.Team)
		later.Review, later.CreatedAt = nil, jobsAt.Add(-time.Second)
		h.put(t, later)
		corrected := func() []labreport.JobID {
			jobs, err := h.Jobs.List(t.Context(), labreport.Query{Team: j.Team, Corrected: true, Size: 9})
			require.NoError(t, err)
			return jobIDs(jobs)
		}
		require.Equal(t, []labreport.JobID{j.ID}, corrected())
		_, err := h.Jobs.Update(t.Context(), j.Team, later.ID, func(x *labreport.Job) ([]healthlab.Event, error) {
			x.Review = &labreport.Review{By: "reviewer 2", At: jobsAt, Approved: true, Corrections: j.Review.Corrections}
			return nil, nil
		})
		require.NoError(t, err)
		require.Equal(t, []labreport.JobID{j.ID, later.ID}, corrected())
	},
	"List/OfOneUser": func(t *testing.T, h StoreHarness) {
		j := h.put(t, parsingJob(jobTeam()))
		h.put(t, parsingJob(j.Team)) // of another team
		jobs, err := h.Jobs.List(t.Context(), labreport.Query{Team: j.Team, User: j.User, Size: 9})
		require.NoError(t, err)
		require.Equal(t, []labreport.Job{j}, jobs)
		jobs, err = h.Jobs.List(t.Context(), labreport.Query{Team: j.Team, User: healthlab.UserID{UUID: uuid.New()}, Size: 9})
		require.NoError(t, err)
		require.Empty(t, jobs)
	},
	"Claim/OnceUntilTheLeaseEnds": func(t *testing.T, h StoreHarness) {
		j, later, never := parsingJob(jobTeam()), parsingJob(jobTeam()), parsingJob(jobTeam())
		later.DueAt, never.DueAt = jobsAt.Add(time.Hour), time.Time{}
		for _, x := range []labreport.Job{j, later, never} {
			h.put(t, x)
		}
		claim := func(at time.Time) []labreport.Job {
			h.SetClock(at)
			got, err := h.Jobs.Claim(t.Context(), 9, time.Minute)
			require.NoError(t, err)
			return got
		}
		require.Empty(t, claim(jobsAt.Add(-time.Microsecond)))
		got := claim(jobsAt)
		j.DueAt, j.Revision = jobsAt.Add(time.Minute), 2
		require.Equal(t, []labreport.Job{j}, got)
		h.requireJob(t, j)
		require.Empty(t, claim(jobsAt.Add(time.Minute-time.Microsecond)))
		require.Len(t, claim(jobsAt.Add(time.Minute)), 1)
	},
	"Claim/LongestDueFirst": func(t *testing.T, h StoreHarness) {
		var want []labreport.JobID
		for i := range 5 {
			j := parsingJob(jobTeam())
			j.DueAt = jobsAt.Add(time.Duration(i-4) * time.Second)
			want = append(want, j.ID)
			h.put(t, j)
		}
		for _, n := range []int{0, 2, 3} {
			got, err := h.Jobs.Claim(t.Context(), n, time.Minute)
			require.NoError(t, err)
			require.Equal(t, want[:n:n], append([]labreport.JobID{}, jobIDs(got)...))
			want = want[n:]
		}
	},
	"Claim/NoJobTwice": func(t *testing.T, h StoreHarness) {
		for range 20 {
			h.put(t, parsingJob(jobTeam()))
		}
		var mu sync.Mutex
		seen := map[labreport.JobID]int{}
		require.NoError(t, errors.Join(conformance.Together(8, func(int) error {
			jobs, err := h.Jobs.Claim(t.Context(), 4, time.Hour)
			mu.Lock()
			defer mu.Unlock()
			for _, j := range jobs {
				seen[j.ID]++
			}
			return err
		})...))
		for _, n := range seen {
			require.Equal(t, 1, n)
		}
		rest, err := h.Jobs.Claim(t.Context(), 20, time.Hour)
		require.NoError(t, err)
		require.Len(t, rest, 20-len(seen), "and none is passed over for good")
	},
	"Context/Ended": func(t *testing.T, h StoreHarness) {
		j, other := h.put(t, parsingJob(jobTeam())), parsingJob(jobTeam())
		ctx, stop := context.WithCancel(t.Context())
		stop()
		require.ErrorIs(t, h.Jobs.Insert(ctx, other, 0, nil), context.Canceled)
		h.requireNoJob(t, other)
		_, err := h.Jobs.Update(ctx, j.Team, j.ID, func(j *labreport.Job) ([]healthlab.Event, error) {
			j.Tries++
			return nil, nil
		})
		require.ErrorIs(t, err, context.Canceled)
		_, err = h.Jobs.Claim(ctx, 9, time.Minute)
		require.ErrorIs(t, err, context.Canceled)
		_, err = h.Jobs.Get(ctx, j.Team, j.ID)
		require.ErrorIs(t, err, context.Canceled)
		_, err = h.Jobs.List(ctx, labreport.Query{Team: j.Team, Size: 9})
		require.ErrorIs(t, err, context.Canceled)
		h.requireJob(t, j)
	},
}
