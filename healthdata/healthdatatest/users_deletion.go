package healthdatatest

import (
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

func runUserLives(run func(string, func(usersT))) {
	run("Erasures/Due", erasuresDue)
	run("Erasures/Lease", erasuresLease)
	run("Erasures/Race", erasuresRace)
	run("Delete/NoEvents", deletedHasNoEvents)
	run("Erase/Everything", eraseEverything)
	run("Erase/NothingElse", eraseNothingElse)
	run("Erase/Live", eraseLive)
	run("Erase/NotFound", eraseNotFound)
}

func (t usersT) claim(before time.Time, n int, lease time.Duration) []healthdata.UserRef {
	t.Helper()
	refs, err := t.Users.ClaimErasures(t.Context(), before, n, lease)
	require.NoError(t, err)
	return refs
}

func refOf(u healthdata.User) healthdata.UserRef { return healthdata.UserRef{Team: u.Team, User: u.ID} }

func erasuresDue(t usersT) {
	t.add(conformance.NewTeam(), "live")
	second := t.remove(t.add(conformance.NewTeam(), "ann"), noon.Time)
	first := t.remove(t.add(conformance.NewTeam(), "bob"), noon.Add(-time.Microsecond))
	restored := t.remove(t.add(conformance.NewTeam(), "carl"), noon.Time)
	t.update(restored, func(u *healthdata.User) { u.DeletedAt = time.Time{} })

	require.Empty(t, t.claim(noon.Add(-2*time.Microsecond), 10, time.Hour))
	require.Empty(t, t.claim(noon.Time, 0, time.Hour))
	require.Equal(t, []healthdata.UserRef{refOf(first)}, t.claim(noon.Add(-time.Microsecond), 10, 0))
	require.Equal(t, []healthdata.UserRef{refOf(first)}, t.claim(noon.Time, 1, 0), "the longest deleted first")
	require.Equal(t, []healthdata.UserRef{refOf(first), refOf(second)}, t.claim(noon.Time, 10, 0))
}

func erasuresLease(t usersT) {
	a := t.remove(t.add(conformance.NewTeam(), "ann"), noon.Time)
	b := t.remove(t.add(conformance.NewTeam(), "bob"), noon.Add(time.Second))
	later := noon.Add(time.Hour)
	require.Equal(t, []healthdata.UserRef{refOf(a)}, t.claim(later, 1, 0))
	require.Equal(t, []healthdata.UserRef{refOf(a)}, t.claim(later, 1, time.Hour), "a lease that has ended keeps nobody away")
	require.Equal(t, []healthdata.UserRef{refOf(b)}, t.claim(later, 5, time.Hour))
	require.Empty(t, t.claim(later, 5, time.Hour))
	require.NoError(t, t.Users.Erase(t.Context(), a.Team, a.ID), "whoever claimed it may erase it")
}

func erasuresRace(t usersT) {
	team := conformance.NewTeam()
	var want []healthdata.UserRef
	for i := range 8 {
		u := t.remove(t.add(team, string(rune('a'+i))), noon.Time)
		want = append(want, refOf(u))
	}
	got := make([][]healthdata.UserRef, 16)
	for _, err := range conformance.Together(16, func(i int) (err error) {
		got[i], err = t.Users.ClaimErasures(t.Context(), noon.Time, 2, time.Hour)
		return err
	}) {
		require.NoError(t, err)
	}
	all := append(slices.Concat(got...), t.claim(noon.Time, 10, time.Hour)...)
	require.ElementsMatch(t, want, all, "each is claimed once")
}

func eraseEverything(t usersT) {
	u := t.insert(person(conformance.NewTeam(), "ann"))
	e := Event(u, "k", 1)
	t.writeEvent(u, e)
	t.written(e)
	t.remove(u, noon.Time)
	require.NoError(t, t.Users.Erase(t.Context(), u.Team, u.ID))

	_, err := t.Users.Get(t.Context(), u.Team, u.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
	t.unwritten(e)
	require.Zero(t, t.list(healthdata.UserQuery{Team: u.Team, Deleted: true}).Total)
	require.Empty(t, t.claim(noon.Add(time.Hour), 10, 0))
	require.ErrorIs(t, t.Users.Erase(t.Context(), u.Team, u.ID), healthlab.NotFound)
	t.add(u.Team, "ann")
}

// writeEvent writes the event e about u.
func (t usersT) writeEvent(u healthdata.User, e healthlab.Event) {
	t.Helper()
	_, err := t.Users.Update(t.Context(), u.Team, u.ID, func(*healthdata.User) ([]healthlab.Event, error) {
		return []healthlab.Event{e}, nil
	})
	require.NoError(t, err)
}

// deletedHasNoEvents checks that deleting a user removes the user's events, and that no event is written until the
// deletion is undone.
func deletedHasNoEvents(t usersT) {
	ann, bob := t.insert(person(conformance.NewTeam(), "ann")), t.insert(person(conformance.NewTeam(), "bob"))
	first, other := Event(ann, "k", 1), Event(bob, "k", 1)
	t.writeEvent(ann, first)
	t.writeEvent(bob, other)
	t.written(first)

	deleted := t.remove(ann, noon.Time)
	t.unwritten(first)
	late := Event(ann, "k", 2)
	t.writeEvent(deleted, late)
	t.unwritten(late)
	t.written(other)

	restored := t.update(deleted, func(u *healthdata.User) { u.DeletedAt = time.Time{} })
	t.unwritten(first)
	next := Event(ann, "k", 3)
	t.writeEvent(restored, next)
	t.written(next)

	last := Event(bob, "k", 4)
	_, err := t.Users.Update(t.Context(), bob.Team, bob.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
		u.DeletedAt = noon.Time
		return []healthlab.Event{last}, nil
	})
	require.NoError(t, err)
	t.unwritten(last)
}

// storeData stores a record and a sample of u and returns the record.
func (t usersT) storeData(u healthdata.User) healthdata.Record {
	t.Helper()
	r := healthdata.Record{
		Resource: "body", ID: uuid.New(), Provider: "acme_scale", SourceType: healthdata.SourceScale,
		Index: noon.Time, Offset: 3600, Doc: []byte(`{"weight":1}`), CreatedAt: noon.Time, UpdatedAt: noon.Time,
	}
	require.NoError(t, t.Data.PutRecords(t.Context(), u.Team, u.ID, []healthdata.Record{r}, nil))
	var samples series.Block
	samples.Append(series.Sample{Time: noon.UnixMicro(), Value: 60})
	require.NoError(t, t.Data.MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{{
		Key:     healthdata.SeriesKey{Resource: "heartrate", Provider: "acme_band", SourceType: healthdata.SourceWatch},
		Samples: &samples, Span: series.PerMinute,
	}}, nil))
	return r
}

// countData counts the stored records of body and series of heartrate of a user, as storeData writes them.
func (t usersT) countData(u healthdata.User) (records, series int) {
	t.Helper()
	require.NoError(t, t.Data.View(t.Context(), u.Team, u.ID, func(v healthdata.View) error {
		found, err := v.Records(t.Context(), healthdata.RecordQuery{Resource: "body"})
		require.NoError(t, err)
		lines, err := v.Series(t.Context(), healthdata.SeriesQuery{Resources: []string{"heartrate"}})
		require.NoError(t, err)
		records, series = len(found), len(lines)
		return nil
	}))
	return records, series
}

func eraseData(t usersT) {
	u, other := t.add(conformance.NewTeam(), "ann"), t.add(conformance.NewTeam(), "ann")
	r := t.storeData(u)
	t.storeData(other)
	records, lines := t.countData(u)
	require.Equal(t, []int{1, 1}, []int{records, lines})
	t.remove(u, noon.Time)
	require.NoError(t, t.Users.Erase(t.Context(), u.Team, u.ID))

	// A user with an erased user's id shows data that the erasure left.
	t.insert(u)
	records, lines = t.countData(u)
	require.Equal(t, []int{0, 0}, []int{records, lines})
	_, _, err := t.Data.Find(t.Context(), u.Team, r.Resource, r.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
	records, lines = t.countData(other)
	require.Equal(t, []int{1, 1}, []int{records, lines})
}

func eraseNothingElse(t usersT) {
	u := t.insert(person(conformance.NewTeam(), "ann"))
	t.remove(u, noon.Time)
	heir, stranger := t.insert(person(u.Team, "ann")), t.insert(person(conformance.NewTeam(), "ann"))
	other := t.remove(t.insert(person(u.Team, "bob")), noon.Time)
	e, f := Event(heir, "k", 1), Event(heir, "k", 2)
	for _, e := range []healthlab.Event{e, f} {
		_, err := t.Users.Update(t.Context(), heir.Team, heir.ID, func(*healthdata.User) ([]healthlab.Event, error) {
			return []healthlab.Event{e}, nil
		})
		require.NoError(t, err)
	}
	heir.Revision = 3
	require.NoError(t, t.Users.Erase(t.Context(), u.Team, u.ID))
	for _, v := range []healthdata.User{heir, stranger, other} {
		require.Equal(t, v, t.get(v))
	}
	require.EqualValues(t, 1, t.written(e).Seq)
	require.EqualValues(t, 2, t.written(f).Seq)
	requireTaken(t, heir, t.Users.Insert(t.Context(), LiveUser(u.Team, "ann"), 0))
}

func eraseLive(t usersT) {
	u := t.add(conformance.NewTeam(), "ann")
	require.ErrorIs(t, t.Users.Erase(t.Context(), u.Team, u.ID), healthlab.Precondition)
	require.Equal(t, u, t.get(u))
}

func eraseNotFound(t usersT) {
	u := t.remove(t.add(conformance.NewTeam(), "ann"), noon.Time)
	require.ErrorIs(t, t.Users.Erase(t.Context(), conformance.NewTeam(), u.ID), healthlab.NotFound)
	require.ErrorIs(t, t.Users.Erase(t.Context(), u.Team, conformance.NewUser()), healthlab.NotFound)
	require.Equal(t, u, t.get(u))
}
