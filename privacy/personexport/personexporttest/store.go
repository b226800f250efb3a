package personexporttest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/privacy/personexport"
)

// StoreHarness is a fresh, empty store of exports, and the store of their users.
type StoreHarness struct {
	Exports personexport.Store
	Users   healthdata.Users
	// SetClock sets the store's clock to an instant and stops it there.
	SetClock func(now time.Time)
}

// RunStore tests that a store keeps the contract of [personexport.Store]. newStore returns a fresh, empty store and
// registers its own cleanup on t.
func RunStore(t *testing.T, newStore func(t testing.TB) StoreHarness) {
	for name, run := range conformance.Sorted(storeCases) {
		t.Run(name, func(t *testing.T) {
			h := newStore(t)
			h.SetClock(began)
			run(storeT{t, h})
		})
	}
}

// storeT is one case of the suite with its store.
type storeT struct {
	*testing.T
	StoreHarness
}

var began = time.Date(2026, 3, 1, 8, 0, 0, 123456000, time.UTC)

// most is a limit of jobs of a user that no case reaches.
const most = 100

func (t storeT) newUser() (healthlab.TeamID, healthlab.UserID) {
	t.Helper()
	u := healthdatatest.LiveUser(conformance.NewTeam(), uuid.NewString())
	require.NoError(t, t.Users.Insert(t.Context(), u, 0))
	return u.Team, u.ID
}

// export returns a job of a user in which every field is set.
func export(team healthlab.TeamID, user healthlab.UserID) personexport.Job {
	return personexport.Job{
		ID: personexport.JobID{UUID: uuid.Must(uuid.NewV7())}, Team: team, User: user, Revision: 1, Status: personexport.InProgress,
		Files: []personexport.File{{Name: "samples/steps.ndjson", Size: 12, Packed: 9, CRC: 1<<32 - 1}, {Name: "documents/räv.pdf", Absent: true}},
		Next:  1, Tries: 2, CreatedAt: began, UpdatedAt: began.Add(time.Second), CompletedAt: began.Add(2 * time.Second),
		ExpiresAt: began.Add(time.Hour), DueAt: began.Add(time.Minute),
	}
}

func (t storeT) insert(j personexport.Job) personexport.Job {
	t.Helper()
	require.NoError(t, t.Exports.Insert(t.Context(), j, most))
	return j
}

func (t storeT) requireJob(want personexport.Job) {
	t.Helper()
	got, err := t.Exports.Get(t.Context(), want.Team, want.ID)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func (t storeT) requireNoJob(team healthlab.TeamID, id personexport.JobID) {
	t.Helper()
	_, err := t.Exports.Get(t.Context(), team, id)
	require.ErrorIs(t, err, healthlab.NotFound)
}

func unchanged(*personexport.Job) error { return nil }

// deleteUser marks a user as deleted. The user's data is not erased.
func (t storeT) deleteUser(team healthlab.TeamID, user healthlab.UserID) {
	t.Helper()
	_, err := t.Users.Update(t.Context(), team, user, func(u *healthdata.User) ([]healthlab.Event, error) {
		u.DeletedAt = began
		return nil, nil
	})
	require.NoError(t, err)
}

func (t storeT) eraseUser(team healthlab.TeamID, user healthlab.UserID) {
	t.Helper()
	t.deleteUser(team, user)
	require.NoError(t, t.Users.Erase(t.Context(), team, user))
}

func ids(jobs []personexport.Job) (out []personexport.JobID) {
	for _, j := range jobs {
		out = append(out, j.ID)
	}
	return out
}

var storeCases = map[string]func(t storeT){
	"RoundTrip": func(t storeT) {
		team, user := t.newUser()
		want := t.insert(export(team, user))
		t.requireJob(want)
		bare := personexport.Job{ID: personexport.JobID{UUID: uuid.New()}, Team: team, User: user, Status: personexport.Failed, CreatedAt: began, UpdatedAt: began, DueAt: began}
		t.insert(bare)
		bare.Revision = 1
		t.requireJob(bare)
		planned := bare
		planned.ID, planned.Files = personexport.JobID{UUID: uuid.New()}, []personexport.File{}
		t.insert(planned)
		t.requireJob(planned)
	},
	"Insert/Times": func(t storeT) {
		team, user := t.newUser()
		j := export(team, user)
		want := j.Clone()
		zone := time.FixedZone("x", 3600)
		for _, at := range []*time.Time{&j.CreatedAt, &j.UpdatedAt, &j.CompletedAt, &j.ExpiresAt, &j.DueAt} {
			*at = at.In(zone).Add(123 * time.Nanosecond)
		}
		t.insert(j)
		t.requireJob(want)
	},
	"Insert/FailedDoNotCount": func(t storeT) {
		team, user := t.newUser()
		for i := range 3 {
			j := export(team, user)
			j.Status = personexport.Failed
			require.NoError(t, t.Exports.Insert(t.Context(), j, 1), i)
		}
		require.NoError(t, t.Exports.Insert(t.Context(), export(team, user), 1))
		require.ErrorIs(t, t.Exports.Insert(t.Context(), export(team, user), 1), healthlab.Exhausted)
	},
	"Insert/Refused": func(t storeT) {
		team, user := t.newUser()
		j := t.insert(export(team, user))
		require.ErrorIs(t, t.Exports.Insert(t.Context(), j, most), healthlab.Conflict)
		for name, spoil := range map[string]func(*personexport.Job){
			"team": func(j *personexport.Job) { j.Team = healthlab.TeamID{} },
			"user": func(j *personexport.Job) { j.User = healthlab.UserID{} },
			"id":   func(j *personexport.Job) { j.ID = personexport.JobID{} },
		} {
			bad := export(team, user)
			spoil(&bad)
			require.ErrorIs(t, t.Exports.Insert(t.Context(), bad, most), healthlab.Invalid, name)
		}
	},
	"Insert/Text": func(t storeT) {
		team, user := t.newUser()
		for name, spoil := range map[string]func(*personexport.Job){
			"status": func(j *personexport.Job) { j.Status = "in\x00progress" },
			"file":   func(j *personexport.Job) { j.Files[1].Name = "documents/\xff.pdf" },
		} {
			bad := export(team, user)
			spoil(&bad)
			require.ErrorIs(t, t.Exports.Insert(t.Context(), bad, most), healthlab.Invalid, name)
			t.requireNoJob(team, bad.ID)
			j := t.insert(export(team, user))
			_, err := t.Exports.Update(t.Context(), team, j.ID, func(j *personexport.Job) error { spoil(j); return nil })
			require.ErrorIs(t, err, healthlab.Invalid, name)
			t.requireJob(j)
		}
	},
	"Insert/TwoTeams": func(t storeT) {
		one := t.insert(export(t.newUser()))
		other := export(t.newUser())
		other.ID, other.Next = one.ID, 0
		t.insert(other)
		t.requireJob(one)
		t.requireJob(other)
		require.NoError(t, t.Exports.Delete(t.Context(), other.Team, other.ID))
		t.requireNoJob(other.Team, other.ID)
		t.requireJob(one)
	},
	"Insert/Users": func(t storeT) {
		team, user := t.newUser()
		require.ErrorIs(t, t.Exports.Insert(t.Context(), export(conformance.NewTeam(), user), most), healthlab.NotFound)
		require.ErrorIs(t, t.Exports.Insert(t.Context(), export(team, conformance.NewUser()), most), healthlab.NotFound)
		t.deleteUser(team, user)
		require.ErrorIs(t, t.Exports.Insert(t.Context(), export(team, user), most), healthlab.NotFound)
	},
	"Insert/Most": func(t storeT) {
		team, user := t.newUser()
		t.insert(export(t.newUser()))
		errs := conformance.Together(8, func(int) error { return t.Exports.Insert(t.Context(), export(team, user), 3) })
		require.Equal(t, 3, conformance.Successes(errs))
		for _, err := range errs {
			if err != nil {
				require.ErrorIs(t, err, healthlab.Exhausted)
			}
		}
		jobs, err := t.Exports.OfUser(t.Context(), team, user)
		require.NoError(t, err)
		require.Len(t, jobs, 3)
	},
	"Get/OtherTeam": func(t storeT) {
		j := t.insert(export(t.newUser()))
		t.requireNoJob(conformance.NewTeam(), j.ID)
		_, err := t.Exports.Update(t.Context(), conformance.NewTeam(), j.ID, unchanged)
		require.ErrorIs(t, err, healthlab.NotFound)
		require.NoError(t, t.Exports.Delete(t.Context(), conformance.NewTeam(), j.ID))
		t.requireJob(j)
	},
	"Get/Copies": func(t storeT) {
		j := t.insert(export(t.newUser()))
		got, err := t.Exports.Get(t.Context(), j.Team, j.ID)
		require.NoError(t, err)
		got.Files[0].Name = "other"
		t.requireJob(j)
	},
	"Update": func(t storeT) {
		j := t.insert(export(t.newUser()))
		got, err := t.Exports.Update(t.Context(), j.Team, j.ID, func(j *personexport.Job) error {
			j.Status, j.Next, j.Tries, j.Files[0].CRC = personexport.Completed, 2, 0, 7
			j.ID, j.Team, j.User, j.Revision, j.CreatedAt = personexport.JobID{}, healthlab.TeamID{}, healthlab.UserID{}, 99, time.Time{}
			return nil
		})
		require.NoError(t, err)
		j.Status, j.Next, j.Tries, j.Files[0].CRC, j.Revision = personexport.Completed, 2, 0, 7, 2
		require.Equal(t, j, got)
		t.requireJob(j)
	},
	"Update/StoreTime": func(t storeT) {
		j := t.insert(export(t.newUser()))
		t.SetClock(began.Add(time.Hour))
		got, err := t.Exports.Update(t.Context(), j.Team, j.ID, func(j *personexport.Job) error { j.DueAt = j.StoreTime.Add(time.Minute); return nil })
		require.NoError(t, err)
		j.DueAt, j.Revision = began.Add(time.Hour+time.Minute), 2
		require.Equal(t, j, got)
		t.requireJob(j)
	},
	"Update/Error": func(t storeT) {
		j := t.insert(export(t.newUser()))
		failed := errors.New("failed")
		_, err := t.Exports.Update(t.Context(), j.Team, j.ID, func(j *personexport.Job) error {
			j.Next = 2
			return failed
		})
		require.ErrorIs(t, err, failed)
		t.requireJob(j)
	},
	"Update/Concurrent": func(t storeT) {
		j := t.insert(export(t.newUser()))
		for _, err := range conformance.Together(8, func(int) error {
			_, err := t.Exports.Update(t.Context(), j.Team, j.ID, func(j *personexport.Job) error { j.Next++; return nil })
			return err
		}) {
			require.NoError(t, err)
		}
		j.Next, j.Revision = 9, 9
		t.requireJob(j)
	},
	"OfUser": func(t storeT) {
		team, user := t.newUser()
		late, early := export(team, user), export(team, user)
		late.CreatedAt = began.Add(time.Hour)
		t.insert(late)
		t.insert(early)
		t.insert(export(t.newUser()))
		t.deleteUser(team, user)
		jobs, err := t.Exports.OfUser(t.Context(), team, user)
		require.NoError(t, err)
		require.Equal(t, []personexport.Job{early, late}, jobs)
	},
	"Claim/Order": func(t storeT) {
		var want []personexport.JobID
		for i := range 3 {
			j := export(t.newUser())
			j.DueAt = began.Add(time.Duration(-i) * time.Minute)
			want = append(want, t.insert(j).ID)
		}
		slices.Reverse(want)
		jobs, err := t.Exports.Claim(t.Context(), 2, time.Hour)
		require.NoError(t, err)
		require.Equal(t, want[:2], ids(jobs))
		require.Equal(t, int64(2), jobs[0].Revision)
		require.Equal(t, began.Add(time.Hour), jobs[0].DueAt)
		t.requireJob(jobs[0])
	},
	"Claim/Lease": func(t storeT) {
		j := export(t.newUser())
		j.DueAt = began
		t.insert(j)
		claim := func(at time.Time) []personexport.JobID {
			t.SetClock(at)
			jobs, err := t.Exports.Claim(t.Context(), 10, time.Minute)
			require.NoError(t, err)
			return ids(jobs)
		}
		require.Empty(t, claim(began.Add(-time.Microsecond)))
		require.Equal(t, []personexport.JobID{j.ID}, claim(began))
		require.Empty(t, claim(began.Add(time.Minute-time.Microsecond)))
		require.Equal(t, []personexport.JobID{j.ID}, claim(began.Add(time.Minute)))
	},
	"Claim/Concurrent": func(t storeT) {
		for range 6 {
			t.insert(export(t.newUser()))
		}
		t.SetClock(began.Add(time.Hour))
		found := make([][]personexport.JobID, 4)
		for _, err := range conformance.Together(4, func(i int) error {
			jobs, err := t.Exports.Claim(t.Context(), 3, time.Hour)
			found[i] = ids(jobs)
			return err
		}) {
			require.NoError(t, err)
		}
		seen := map[personexport.JobID]bool{}
		for _, id := range slices.Concat(found...) {
			require.False(t, seen[id], "claimed twice")
			seen[id] = true
		}
	},
	"Claim/None": func(t storeT) {
		t.insert(export(t.newUser()))
		t.SetClock(began.Add(time.Hour))
		jobs, err := t.Exports.Claim(t.Context(), 0, time.Hour)
		require.NoError(t, err)
		require.Empty(t, jobs)
	},
	"Delete": func(t storeT) {
		j := t.insert(export(t.newUser()))
		require.NoError(t, t.Exports.Delete(t.Context(), j.Team, j.ID))
		t.requireNoJob(j.Team, j.ID)
		require.NoError(t, t.Exports.Delete(t.Context(), j.Team, j.ID))
	},
	"Erase": func(t storeT) {
		team, user := t.newUser()
		running, done, bare := export(team, user), export(team, user), export(team, user)
		done.Status, bare.Files = personexport.Completed, nil
		for _, j := range []personexport.Job{running, done, bare} {
			t.insert(j)
		}
		other := t.insert(export(t.newUser()))
		t.eraseUser(team, user)
		for _, j := range []personexport.Job{running, done, bare} {
			t.requireNoJob(team, j.ID)
		}
		jobs, err := t.Exports.OfUser(t.Context(), team, user)
		require.NoError(t, err)
		require.Empty(t, jobs)
		t.requireJob(other)

		// The erased job that was in progress is claimed only after its lease; the completed one at once.
		left := func(j personexport.Job) personexport.Job {
			return personexport.Job{ID: j.ID, Team: team, Revision: 3, Status: personexport.Failed, Files: j.Files, CreatedAt: began, UpdatedAt: began, DueAt: began.Add(time.Hour)}
		}
		jobs, err = t.Exports.Claim(t.Context(), 10, time.Hour)
		require.NoError(t, err)
		require.Equal(t, []personexport.Job{left(done)}, jobs)
		_, err = t.Exports.Update(t.Context(), team, done.ID, unchanged)
		require.NoError(t, err)
		require.NoError(t, t.Exports.Delete(t.Context(), team, done.ID))
		require.NoError(t, t.Exports.Delete(t.Context(), other.Team, other.ID))
		t.SetClock(running.DueAt)
		jobs, err = t.Exports.Claim(t.Context(), 10, began.Add(time.Hour).Sub(running.DueAt))
		require.NoError(t, err)
		require.Equal(t, []personexport.Job{left(running)}, jobs)
	},
	"Ended": func(t storeT) {
		j := t.insert(export(t.newUser()))
		ctx := conformance.Ended(t)
		for name, err := range map[string]error{
			"insert": t.Exports.Insert(ctx, export(j.Team, j.User), most),
			"get":    conformance.ErrOf(t.Exports.Get(ctx, j.Team, j.ID)),
			"update": conformance.ErrOf(t.Exports.Update(ctx, j.Team, j.ID, func(j *personexport.Job) error { j.Next = 2; return nil })),
			"list":   conformance.ErrOf(t.Exports.OfUser(ctx, j.Team, j.User)),
			"claim":  conformance.ErrOf(t.Exports.Claim(ctx, 10, time.Hour)),
			"delete": t.Exports.Delete(ctx, j.Team, j.ID),
		} {
			require.ErrorIs(t, err, ctx.Err(), name)
		}
		t.requireJob(j)
	},
}
