package healthdatatest

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

func (t dataT) removal(u healthdata.User, r healthdata.Removal) int {
	t.Helper()
	n, err := t.Data.Remove(t.Context(), u.Team, u.ID, r)
	require.NoError(t, err)
	return n
}

// stepsAt returns the Removal of the samples of the series Steps at some minutes, as in [Sample].
func stepsAt(minutes ...int) healthdata.Removal {
	times := make([]int64, len(minutes))
	for i, at := range minutes {
		times[i] = Sample(at, 0).Time
	}
	return healthdata.Removal{Samples: []healthdata.SampleRemoval{{Key: Steps, Times: times, Span: series.PerMinute}}}
}

func removeSamples(t dataT) {
	u := t.user()
	require.Zero(t, t.removal(u, stepsAt(1)), "there is no such series")
	for i := range 20 { // small batches, which a store may keep apart for a while
		t.merge(u, Steps, Sample(i, float64(i)))
	}
	require.Equal(t, 3, t.removal(u, stepsAt(3, 7, 19, 25)))
	require.Zero(t, t.removal(u, stepsAt(3, 7, 19, 25)), "again")
	require.Len(t, t.samples(u, Steps), 17)
	require.Equal(t, series.Outcome{New: 1, States: []series.State{series.New}}, t.merge(u, Steps, Sample(7, 70)), "it is new once more")
	require.Equal(t, 70.0, t.samples(u, Steps)[6].Value)

	dense := make([]series.Sample, 5000)
	for i := range dense {
		dense[i] = Sample(100+i, 1)
	}
	t.merge(u, Steps, dense...)
	minutes := make([]int, 0, len(dense))
	for i := range dense {
		minutes = append(minutes, 100+i)
	}
	require.Equal(t, 5000, t.removal(u, stepsAt(minutes...)))
	require.Len(t, t.samples(u, Steps), 18)
}

func removeRecords(t dataT) {
	u := t.user()
	one, two := Record("sleep", noon.Time), Record("sleep", noon.Add(time.Hour))
	t.put(u, one, two)
	require.Equal(t, 1, t.removal(u, healthdata.Removal{Resource: "sleep", IDs: []uuid.UUID{one.ID, uuid.New()}}))
	require.Equal(t, []healthdata.Record{two}, t.records(u, healthdata.RecordQuery{Resource: "sleep", Raw: true}))
	_, _, err := t.Data.Find(t.Context(), u.Team, "sleep", one.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
	require.Equal(t, healthdata.PutNew, t.put(u, one)[0].Outcome, "it is new once more")
}

func removeParts(t dataT) {
	u := t.user()
	whole, part, other := Record("sleep", noon.Time), Record("sleep_cycle", noon.Time), Record("sleep_cycle", noon.Time)
	t.put(u, whole)
	t.put(u, part, other)
	both := healthdata.Removal{Resource: "sleep", IDs: []uuid.UUID{whole.ID}, Parts: "sleep_cycle", PartIDs: []uuid.UUID{part.ID, uuid.New()}}
	require.Equal(t, 1, t.removal(u, both), "parts are not counted")
	require.Empty(t, t.records(u, healthdata.RecordQuery{Resource: "sleep"}))
	require.Equal(t, []healthdata.Record{other}, t.records(u, healthdata.RecordQuery{Resource: "sleep_cycle", Raw: true}))
	_, _, err := t.Data.Find(t.Context(), u.Team, "sleep_cycle", part.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
	t.put(u, part)
	require.Zero(t, t.removal(u, both), "the part alone")
	require.Len(t, t.records(u, healthdata.RecordQuery{Resource: "sleep_cycle"}), 1)
}

func removeOthersStay(t dataT) {
	u, other := t.user(), t.user()
	phone := Steps
	phone.SourceType = "phone"
	for _, who := range []healthdata.User{u, other} {
		t.merge(who, Steps, Sample(1, 1), Sample(2, 2), Sample(3, 3))
		t.merge(who, phone, Sample(1, 1), Sample(3, 3))
	}
	r := Record("sleep", noon.Time)
	nap := r
	nap.Resource = "workouts"
	t.put(u, r)
	t.put(u, nap)
	require.Equal(t, 2, t.removal(u, stepsAt(1, 3)))
	require.Equal(t, 1, t.removal(u, healthdata.Removal{Resource: "sleep", IDs: []uuid.UUID{r.ID}}))
	require.Equal(t, []series.Sample{Sample(2, 2)}, t.samples(u, Steps))
	require.Len(t, t.samples(u, phone), 2)
	require.Len(t, t.samples(other, Steps), 3)
	require.Len(t, t.records(u, healthdata.RecordQuery{Resource: "workouts"}), 1)
}

func removeDays(t dataT) {
	u, other := t.user(), t.user()
	days := func(u healthdata.User, since time.Time) []healthdata.RemovedDay {
		t.Helper()
		out, err := t.Data.RemovedDays(t.Context(), u.Team, u.ID, since)
		require.NoError(t, err)
		return out
	}
	users := func(team healthlab.TeamID, since time.Time) []healthlab.UserID {
		t.Helper()
		out, err := t.Data.RemovedUsers(t.Context(), team, since)
		require.NoError(t, err)
		return out
	}
	began, end := time.Time{}, time.Date(2200, time.January, 1, 0, 0, 0, 0, time.UTC)
	day := healthlab.DateOf(noon.Time)
	late := Sample(11*60, 1) // an hour before midnight, by a clock two hours ahead
	late.Offset = 7200
	long := Sample(12*60-30, 1)
	long.End = long.Time + int64(time.Hour/time.Microsecond)
	t.merge(u, Steps, Sample(1, 1), Sample(2, 2), late, long)
	t.removal(u, stepsAt(99))
	require.Empty(t, days(u, began), "there was no such sample")
	require.NotContains(t, users(u.Team, began), u.ID)

	steps := func(day healthlab.Date, hours ...int) (out healthdata.RemovedDay) {
		out = healthdata.RemovedDay{Resource: "steps", SourceType: Steps.SourceType, Day: day}
		for _, h := range hours {
			out.Hours |= 1 << h
		}
		return out
	}
	hour := noon.Truncate(time.Hour).Hour()
	t.removal(u, stepsAt(1))
	require.Equal(t, []healthdata.RemovedDay{steps(day, hour)}, days(u, began), "though there are others of the day")
	t.removal(u, stepsAt(11*60, 12*60-30))
	want := []healthdata.RemovedDay{steps(day, hour, 23), steps(day.AddDays(1), 0, (hour+13)%24)}
	require.Equal(t, want, days(u, began))

	r := Record("sleep", noon.Add(40*24*time.Hour))
	t.put(u, r)
	require.Equal(t, want, days(u, began))
	r.Index = r.Index.Add(24 * time.Hour)
	t.put(u, r)
	want = append([]healthdata.RemovedDay{{Resource: "sleep", SourceType: r.SourceType, Day: day.AddDays(40)}}, want...)
	require.Equal(t, want, days(u, began), "a changed record has left a day")
	t.removal(u, healthdata.Removal{Resource: "sleep", IDs: []uuid.UUID{r.ID, uuid.New()}})
	want = slices.Insert(want, 1, healthdata.RemovedDay{Resource: "sleep", SourceType: r.SourceType, Day: day.AddDays(41)})
	require.Equal(t, want, days(u, began))
	require.Contains(t, users(u.Team, began), u.ID)

	require.Empty(t, days(u, end))
	require.Empty(t, users(u.Team, end))
	require.Empty(t, days(other, began))
	require.NotContains(t, users(u.Team, began), other.ID)
	foreign := healthlab.TeamID{UUID: uuid.New()}
	require.Empty(t, users(foreign, began))
	u.Team = foreign
	require.Empty(t, days(u, began))
}

func removeOfOneApp(t dataT) {
	u := t.user()
	device := uuid.New()
	by := func(app string, at int) series.Sample {
		s := Sample(at, float64(at))
		s.App, s.Device = app, device
		return s
	}
	of := func(app string, device uuid.UUID, minutes ...int) healthdata.Removal {
		r := stepsAt(minutes...)
		r.Samples[0].App, r.Samples[0].Device = app, device
		return r
	}
	for i := range 8 { // small batches, which a store may keep apart for a while
		t.merge(u, Steps, by("com.acme.a", i))
	}
	t.merge(u, Steps, by("com.acme.b", 2), by("com.acme.b", 4))
	require.Equal(t, 2, t.removal(u, of("com.acme.a", uuid.Nil, 1, 2, 3)))
	require.Zero(t, t.removal(u, of("com.acme.a", uuid.Nil, 1, 2, 3)), "again")
	require.Equal(t, 1, t.removal(u, of("com.acme.b", device, 4, 5)), "and what it replaced does not come back")
	require.Zero(t, t.removal(u, of("", uuid.New(), 0, 2, 5)), "another device's")
	require.Equal(t, []series.Sample{by("com.acme.a", 0), by("com.acme.b", 2), by("com.acme.a", 5), by("com.acme.a", 6), by("com.acme.a", 7)}, t.samples(u, Steps))
	require.Equal(t, 3, t.removal(u, stepsAt(0, 2, 5)), "whoever's")
}

// removeEvents checks that a removal passes the removed items to Events, and writes the events in the same
// commit.
func removeEvents(t dataT) {
	u := t.user()
	one, part := Record("sleep", noon.Time), Record("sleep_cycle", noon.Time)
	t.put(u, one, Record("sleep", noon.Add(time.Hour)))
	t.put(u, part)
	t.merge(u, Steps, Sample(1, 1), Sample(2, 2))
	r := stepsAt(1, 2, 3)
	r.Resource, r.IDs = "sleep", []uuid.UUID{one.ID, uuid.New(), one.ID}
	r.Parts, r.PartIDs = "sleep_cycle", []uuid.UUID{uuid.New(), part.ID}

	r.Events = func(healthdata.Removed) ([]healthlab.Event, error) { return nil, conformance.ErrRefused }
	_, err := t.Data.Remove(t.Context(), u.Team, u.ID, r)
	require.ErrorIs(t, err, conformance.ErrRefused)
	require.Len(t, t.samples(u, Steps), 2)
	require.Len(t, t.records(u, healthdata.RecordQuery{Resource: "sleep"}), 2)

	e := Event(u, "steps", 1)
	var got healthdata.Removed
	r.Events = func(gone healthdata.Removed) ([]healthlab.Event, error) {
		got = gone
		return []healthlab.Event{e}, nil
	}
	require.Equal(t, 3, t.removal(u, r))
	gone := []series.Gone{{Time: Sample(1, 1).Time}, {Time: Sample(2, 2).Time}}
	require.Equal(t, healthdata.Removed{IDs: []uuid.UUID{one.ID}, PartIDs: []uuid.UUID{part.ID}, Samples: [][]series.Gone{gone}, Gone: gone}, got)
	_, err = t.Messages.Message(t.Context(), u.Team, e.ID)
	require.NoError(t, err)

	r.Events = func(gone healthdata.Removed) ([]healthlab.Event, error) {
		got = gone
		return nil, nil
	}
	require.Zero(t, t.removal(u, r), "again")
	require.Equal(t, healthdata.Removed{Samples: [][]series.Gone{nil}}, got)
}

func removeNoSuchUser(t dataT) {
	u, other := t.user(), t.user()
	t.merge(u, Steps, Sample(1, 1))
	r := Record("sleep", noon.Time)
	t.put(u, r)
	for _, what := range []healthdata.Removal{stepsAt(1), {Resource: "sleep", IDs: []uuid.UUID{r.ID}}} {
		_, err := t.Data.Remove(t.Context(), other.Team, u.ID, what)
		require.ErrorIs(t, err, healthlab.NotFound)
		require.Zero(t, t.removal(other, what))
	}
	require.Len(t, t.samples(u, Steps), 1)
	t.remove(u)
	_, err := t.Data.Remove(t.Context(), u.Team, u.ID, stepsAt(1))
	require.ErrorIs(t, err, healthlab.NotFound)
}

func removeRefused(t dataT) {
	u := t.user()
	t.merge(u, Steps, Sample(1, 1), Sample(2, 1))
	twice := stepsAt(1)
	twice.Samples = append(twice.Samples, stepsAt(2).Samples...)
	for _, bad := range []healthdata.Removal{stepsAt(2, 1), stepsAt(1, 1), twice} {
		_, err := t.Data.Remove(t.Context(), u.Team, u.ID, bad)
		require.ErrorIs(t, err, healthlab.Invalid)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := t.Data.Remove(ctx, u.Team, u.ID, stepsAt(1))
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, t.samples(u, Steps), 2)
}
