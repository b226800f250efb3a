package healthdatatest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

// RunData checks the contract of healthdata.Data. newStore returns a fresh, empty store and registers its own
// cleanup on t.
func RunData(t *testing.T, newStore func(t testing.TB) DataHarness) {
	RunDataAlone(t, func(t testing.TB) DataAloneHarness { return newStore(t).alone() })
}

func runData(run func(string, func(dataT))) {
	run("Put/EveryField", putEveryField)
	run("Put/Same", putSame)
	run("Put/Changed", putChanged)
	run("Put/Results", putResults)
	run("Put/Refused", putRefused)
	run("Put/Nothing", putNothing)
	run("Put/NoSuchUser", putNoSuchUser)
	run("Put/ErrorOfEvents", putErrorOfEvents)
	run("Put/Aliasing", putAliasing)
	run("Put/NoLostUpdates", putNoLostUpdates)
	run("Records/Order", recordsOrder)
	run("Records/Filters", recordsFilters)
	run("Find/Teams", findTeams)
	run("Merge/EveryField", mergeEveryField)
	run("Merge/LatestWins", mergeLatestWins)
	run("Put/Replaces", putReplaces)
	run("Put/ReplacesRace", putReplacesRace)
	run("Merge/Same", mergeSame)
	run("Merge/Keys", mergeKeys)
	run("Merge/Results", mergeResults)
	run("Merge/Users", mergeUsers)
	run("Merge/Refused", mergeRefused)
	run("Merge/Nothing", mergeNothing)
	run("Merge/NoSuchUser", mergeNoSuchUser)
	run("Merge/ErrorOfEvents", mergeErrorOfEvents)
	run("Merge/Aliasing", mergeAliasing)
	run("Merge/NoLostUpdates", mergeNoLostUpdates)
	run("Merge/Dense", mergeDense)
	run("Remove/Samples", removeSamples)
	run("Remove/Records", removeRecords)
	run("Remove/Parts", removeParts)
	run("Remove/OthersStay", removeOthersStay)
	run("Remove/OfOneApp", removeOfOneApp)
	run("Remove/Days", removeDays)
	run("Remove/Events", removeEvents)
	run("Remove/NoSuchUser", removeNoSuchUser)
	run("Remove/Refused", removeRefused)
	run("Events/Written", dataEventsWritten)
	run("Events/Seq", dataEventsSeq)
	run("Events/AllOrNothing", dataEventsAllOrNothing)
	run("View/Consistent", viewConsistent)
	run("View/Chunks", viewChunks)
	run("View/Error", viewError)
	run("Series/Ranges", seriesRanges)
	run("Load/NotFound", loadNotFound)
	run("Context/Ended", dataContextEnded)
}

func putEveryField(t dataT) {
	u := t.user()
	r := Record("sleep", noon.Time)
	got := t.put(u, r)
	require.Equal(t, []healthdata.PutResult{{Outcome: healthdata.PutNew, CreatedAt: r.CreatedAt}}, got)
	require.Equal(t, []healthdata.Record{r}, t.records(u, healthdata.RecordQuery{Resource: "sleep", Raw: true}))

	owner, found, err := t.Data.Find(t.Context(), u.Team, "sleep", r.ID)
	require.NoError(t, err)
	require.Equal(t, u.ID, owner)
	require.Equal(t, r, found)

	east := Record("sleep", noon.Add(789*time.Nanosecond).In(time.FixedZone("east", 3600)))
	east.Raw = nil
	t.put(u, east)
	want := east
	want.Index, want.CreatedAt, want.UpdatedAt = noon.Time, noon.Time, noon.Add(time.Minute)
	require.Equal(t, []healthdata.Record{want}, t.records(u, healthdata.RecordQuery{Resource: "sleep", ID: east.ID}))
}

func putSame(t dataT) {
	u := t.user()
	r := Record("sleep", noon.Time)
	t.put(u, r)
	again := r
	again.UpdatedAt, again.CreatedAt = noon.Add(time.Hour), noon.Add(time.Hour)
	require.Equal(t, []healthdata.PutResult{{Outcome: healthdata.PutSame, CreatedAt: r.CreatedAt}}, t.put(u, again))
	require.Equal(t, []healthdata.Record{r}, t.records(u, healthdata.RecordQuery{Resource: "sleep", Raw: true}))
}

func putChanged(t dataT) {
	u := t.user()
	r := Record("sleep", noon.Time)
	t.put(u, r)
	for _, change := range []func(*healthdata.Record){
		func(r *healthdata.Record) { r.Doc = []byte(`{"v":2}`) },
		func(r *healthdata.Record) { r.Raw = []byte(`{"raw":2}`) },
		func(r *healthdata.Record) { r.Raw = nil },
		func(r *healthdata.Record) { r.Index = noon.Add(time.Second) },
		func(r *healthdata.Record) { r.Offset = -1800 },
	} {
		next := r
		change(&next)
		next.UpdatedAt, next.CreatedAt = r.UpdatedAt.Add(time.Hour), r.UpdatedAt.Add(time.Hour)
		require.Equal(t, []healthdata.PutResult{{Outcome: healthdata.PutChanged, CreatedAt: r.CreatedAt}}, t.put(u, next))
		next.CreatedAt = r.CreatedAt
		_, got, err := t.Data.Find(t.Context(), u.Team, "sleep", r.ID)
		require.NoError(t, err)
		require.Equal(t, next, got)
		r = next
	}
}

// putResults writes a stored, a changed and a new record in one call, not in the order of their ids.
func putResults(t dataT) {
	u := t.user()
	known, changed := Record("sleep", noon.Time), Record("sleep", noon.Time)
	t.put(u, known, changed)
	changed.Offset = -3600
	outcomes := map[uuid.UUID]healthdata.PutOutcome{known.ID: healthdata.PutSame, changed.ID: healthdata.PutChanged}
	records := []healthdata.Record{known, changed}
	for range 6 {
		r := Record("sleep", noon.Time)
		records, outcomes[r.ID] = append(records, r), healthdata.PutNew
	}
	slices.SortFunc(records, func(a, b healthdata.Record) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	for i, got := range t.put(u, records...) {
		require.Equal(t, outcomes[records[i].ID], got.Outcome, i)
	}
}

func putRefused(t dataT) {
	u := t.user()
	good := Record("sleep", noon.Time)
	twin := Record("sleep", noon.Time)
	twin.ID = good.ID
	other := Record("body", noon.Time)
	nul := Record("sleep", noon.Time)
	nul.Provider = "acme\x00band"
	nulDoc := Record("sleep", noon.Time)
	nulDoc.Doc = []byte("\"\x00\"")
	empty := Record("sleep", noon.Time)
	empty.Doc = nil
	nobody := Record("sleep", noon.Time)
	nobody.ID = uuid.Nil
	for name, bad := range conformance.Sorted(map[string]healthdata.Record{
		"twin": twin, "other resource": other, "nul": nul, "nul in doc": nulDoc, "no doc": empty, "no id": nobody,
	}) {
		t.Run(name, func(sub *testing.T) {
			t := t.on(sub)
			err := t.Data.PutRecords(t.Context(), u.Team, u.ID, []healthdata.Record{good, bad}, nil)
			require.ErrorIs(t, err, healthlab.Invalid)
			require.Empty(t, t.records(u, healthdata.RecordQuery{Resource: "sleep"}))
		})
	}
}

func putNothing(t dataT) {
	u := t.user()
	require.NoError(t, t.Data.PutRecords(t.Context(), u.Team, u.ID, nil, nil))
	require.NoError(t, t.Data.PutRecords(t.Context(), u.Team, u.ID, []healthdata.Record{}, nil))
	require.Empty(t, t.records(u, healthdata.RecordQuery{Resource: "sleep"}))
}

func mergeNothing(t dataT) {
	u := t.user()
	require.NoError(t, t.Data.MergeSamples(t.Context(), u.Team, u.ID, nil, nil))
	require.NoError(t, t.Data.MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{}, nil))
	require.Empty(t, t.samples(u, Steps))
}

func putNoSuchUser(t dataT) {
	u := t.user()
	put := func(team healthlab.TeamID, user healthlab.UserID) error {
		return t.Data.PutRecords(t.Context(), team, user, []healthdata.Record{Record("sleep", noon.Time)}, nil)
	}
	require.ErrorIs(t, put(conformance.NewTeam(), u.ID), healthlab.NotFound, "another team")
	require.ErrorIs(t, put(u.Team, conformance.NewUser()), healthlab.NotFound, "nobody")
	t.remove(u)
	require.ErrorIs(t, put(u.Team, u.ID), healthlab.NotFound, "deleted")
}

func putErrorOfEvents(t dataT) {
	u := t.user()
	err := t.Data.PutRecords(t.Context(), u.Team, u.ID, []healthdata.Record{Record("sleep", noon.Time)},
		func([]healthdata.PutResult) ([]healthlab.Event, error) { return nil, conformance.ErrRefused })
	require.ErrorIs(t, err, conformance.ErrRefused)
	require.Empty(t, t.records(u, healthdata.RecordQuery{Resource: "sleep"}))
}

func putAliasing(t dataT) {
	u := t.user()
	r := Record("sleep", noon.Time)
	kept := bytes.Clone(r.Doc)
	t.put(u, r)
	r.Doc[0], r.Raw[0] = 'X', 'X'
	_, got, err := t.Data.Find(t.Context(), u.Team, "sleep", r.ID)
	require.NoError(t, err)
	require.Equal(t, kept, got.Doc)
	got.Doc[0] = 'Y'
	_, again, err := t.Data.Find(t.Context(), u.Team, "sleep", r.ID)
	require.NoError(t, err)
	require.Equal(t, kept, again.Doc)
}

func putNoLostUpdates(t dataT) {
	u := t.user()
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			r := Record("sleep", noon.Time)
			_ = t.Data.PutRecords(t.Context(), u.Team, u.ID, []healthdata.Record{r}, nil)
		})
	}
	wg.Wait()
	require.Len(t, t.records(u, healthdata.RecordQuery{Resource: "sleep"}), 16)
}

func putReplaces(t dataT) {
	u := t.user()
	first := Record("sleep", noon.Time)
	first.Replaces = []byte{}
	t.put(u, first)
	put := func(doc string, replaces []byte, others ...healthdata.Record) error {
		next := first
		next.Doc, next.Replaces = []byte(doc), replaces
		return t.Data.PutRecords(t.Context(), u.Team, u.ID, append(others, next), nil)
	}
	stored := func() string {
		_, got, err := t.Data.Find(t.Context(), u.Team, "sleep", first.ID)
		require.NoError(t, err)
		require.Nil(t, got.Replaces)
		return string(got.Doc)
	}
	require.ErrorIs(t, put(`{"v":2}`, []byte{}), healthlab.Precondition, "there is one")
	other := Record("sleep", noon.Time)
	require.ErrorIs(t, put(`{"v":2}`, []byte(`{"v":1.5}`), other), healthlab.Precondition, "there is another version")
	require.Equal(t, string(first.Doc), stored())
	require.Len(t, t.records(u, healthdata.RecordQuery{Resource: "sleep"}), 1, "all or none")
	require.NoError(t, put(`{"v":2}`, first.Doc))
	require.Equal(t, `{"v":2}`, stored())
	require.NoError(t, put(`{"v":3}`, nil), "any version")
	missing := Record("sleep", noon.Time)
	missing.Replaces = []byte(`{}`)
	require.ErrorIs(t, t.Data.PutRecords(t.Context(), u.Team, u.ID, []healthdata.Record{missing}, nil), healthlab.Precondition)
}

// putReplacesRace appends to one record concurrently. No append is lost.
func putReplacesRace(t dataT) {
	u := t.user()
	r := Record("sleep", noon.Time)
	r.Doc = []byte(".")
	t.put(u, r)
	const sides = 8
	require.Equal(t, sides, conformance.Successes(conformance.Together(sides, func(i int) error {
		for {
			_, old, err := t.Data.Find(t.Context(), u.Team, "sleep", r.ID)
			if err != nil {
				return err
			}
			next := old
			next.Replaces, next.Doc = old.Doc, append(bytes.Clone(old.Doc), byte('a'+i))
			err = t.Data.PutRecords(t.Context(), u.Team, u.ID, []healthdata.Record{next}, nil)
			if !errors.Is(err, healthlab.Precondition) {
				return err
			}
		}
	})))
	_, got, err := t.Data.Find(t.Context(), u.Team, "sleep", r.ID)
	require.NoError(t, err)
	require.Len(t, got.Doc, 1+sides)
}

func recordsOrder(t dataT) {
	u := t.user()
	var want []healthdata.Record
	for i := range 9 {
		r := Record("sleep", noon.Add(time.Duration(i/3)*time.Hour))
		r.Raw = nil
		want = append(want, r)
	}
	shuffled := slices.Clone(want)
	slices.Reverse(shuffled)
	t.put(u, shuffled...)
	slices.SortFunc(want, func(a, b healthdata.Record) int {
		if c := a.Index.Compare(b.Index); c != 0 {
			return c
		}
		return bytes.Compare(a.ID[:], b.ID[:])
	})
	require.Equal(t, want, t.records(u, healthdata.RecordQuery{Resource: "sleep"}))
}

func recordsFilters(t dataT) {
	u := t.user()
	early, late := Record("sleep", noon.Time), Record("sleep", noon.Add(time.Hour))
	late.Provider, late.Raw = "acme_ring", nil
	body := Record("body", noon.Time)
	t.put(u, early, late)
	t.put(u, body)
	stranger := t.user()
	t.put(stranger, Record("sleep", noon.Time))

	for name, c := range conformance.Sorted(map[string]struct {
		q    healthdata.RecordQuery
		want []uuid.UUID
	}{
		"all":           {healthdata.RecordQuery{}, []uuid.UUID{early.ID, late.ID}},
		"from":          {healthdata.RecordQuery{From: late.Index}, []uuid.UUID{late.ID}},
		"after from":    {healthdata.RecordQuery{From: early.Index.Add(time.Microsecond)}, []uuid.UUID{late.ID}},
		"to":            {healthdata.RecordQuery{To: early.Index}, []uuid.UUID{early.ID}},
		"before to":     {healthdata.RecordQuery{To: late.Index.Add(-time.Microsecond)}, []uuid.UUID{early.ID}},
		"provider":      {healthdata.RecordQuery{Provider: "acme_ring"}, []uuid.UUID{late.ID}},
		"provider case": {healthdata.RecordQuery{Provider: "Acme_ring"}, nil},
		"id":            {healthdata.RecordQuery{ID: early.ID}, []uuid.UUID{early.ID}},
		"raw":           {healthdata.RecordQuery{Raw: true}, []uuid.UUID{early.ID}},
	}) {
		t.Run(name, func(sub *testing.T) {
			t := t.on(sub)
			c.q.Resource = "sleep"
			var got []uuid.UUID
			for _, r := range t.records(u, c.q) {
				got = append(got, r.ID)
				require.Equal(t, c.q.Raw, r.Raw != nil)
			}
			require.Equal(t, c.want, got)
		})
	}
}

func findTeams(t dataT) {
	u := t.user()
	r := Record("sleep", noon.Time)
	t.put(u, r)
	find := func(team healthlab.TeamID, resource string, id uuid.UUID) error {
		_, _, err := t.Data.Find(t.Context(), team, resource, id)
		return err
	}
	require.NoError(t, find(u.Team, "sleep", r.ID))
	require.ErrorIs(t, find(conformance.NewTeam(), "sleep", r.ID), healthlab.NotFound, "another team")
	require.ErrorIs(t, find(u.Team, "body", r.ID), healthlab.NotFound, "another resource")
	require.ErrorIs(t, find(u.Team, "sleep", uuid.New()), healthlab.NotFound, "nothing")
	t.remove(u)
	require.ErrorIs(t, find(u.Team, "sleep", r.ID), healthlab.NotFound, "deleted user")
}

func mergeEveryField(t dataT) {
	u := t.user()
	in := []series.Sample{fullSample(0), fullSample(1)}
	o := t.merge(u, Steps, in...)
	require.Equal(t, 2, o.New)
	require.Equal(t, in, t.samples(u, Steps))
}

func mergeLatestWins(t dataT) {
	u := t.user()
	t.merge(u, Steps, Sample(0, 1), Sample(1, 2), Sample(2, 3))
	o := t.merge(u, Steps, Sample(1, 20), Sample(3, 4))
	require.Equal(t, []int{1, 1, 0}, []int{o.New, o.Changed, o.Same})
	require.Equal(t, []series.Sample{Sample(0, 1), Sample(1, 20), Sample(2, 3), Sample(3, 4)}, t.samples(u, Steps))

	// A sample is replaced as a whole: fields that the later sample does not have are removed.
	t.merge(u, Steps, fullSample(0))
	t.merge(u, Steps, Sample(0, 5))
	require.Equal(t, Sample(0, 5), t.samples(u, Steps)[0])
}

func mergeSame(t dataT) {
	u := t.user()
	t.merge(u, Steps, fullSample(0), Sample(1, 2))
	o := t.merge(u, Steps, fullSample(0), Sample(1, 2))
	require.Equal(t, []int{0, 0, 2}, []int{o.New, o.Changed, o.Same})
}

func mergeKeys(t dataT) {
	u := t.user()
	keys := []healthdata.SeriesKey{
		Steps,
		{Resource: "steps", Provider: "acme_band", SourceType: "phone"},
		{Resource: "steps", Provider: "acme_band", SourceType: "watch", Part: "x"},
		{Resource: "steps", Provider: "acme_band", SourceType: "watch", Part: "X"},
		{Resource: "steps", Provider: "acme_bänd", SourceType: "watch"},
		{Resource: "heartrate", Provider: "acme_band", SourceType: "watch"},
	}
	for i, k := range keys {
		t.merge(u, k, Sample(0, float64(i)))
	}
	for i, k := range keys {
		require.Equal(t, []series.Sample{Sample(0, float64(i))}, t.samples(u, k))
	}
	t.view(u, func(v healthdata.View) {
		all, err := v.Series(t.Context(), healthdata.SeriesQuery{Resources: []string{"steps", "heartrate"}})
		require.NoError(t, err)
		require.Len(t, all, len(keys))
		require.True(t, slices.IsSortedFunc(all, func(a, b healthdata.Series) int { return a.Key.Compare(b.Key) }))
		some, err := v.Series(t.Context(), healthdata.SeriesQuery{Resources: []string{"steps"}, Provider: "acme_band"})
		require.NoError(t, err)
		require.Len(t, some, 4)
		one, err := v.Series(t.Context(), healthdata.SeriesQuery{Resources: []string{"steps"}, Key: &keys[2]})
		require.NoError(t, err)
		require.Len(t, one, 1)
		none, err := v.Series(t.Context(), healthdata.SeriesQuery{Resources: []string{"glucose"}})
		require.NoError(t, err)
		require.Empty(t, none)
	})
}

// mergeResults writes several series in one call, not in the order of their keys.
func mergeResults(t dataT) {
	u := t.user()
	phone := healthdata.SeriesKey{Resource: "steps", Provider: "acme_band", SourceType: "phone"}
	t.merge(u, Steps, Sample(0, 1), Sample(1, 1))
	var got []series.Outcome
	err := t.Data.MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{
		Batch(Steps, Sample(0, 1), Sample(1, 2), Sample(2, 3)), Batch(phone, Sample(0, 1)),
	}, func(o []series.Outcome) ([]healthlab.Event, error) {
		got = slices.Clone(o)
		return nil, nil
	})
	require.NoError(t, err)
	require.Equal(t, []series.Outcome{
		{New: 1, Changed: 1, Same: 1, States: []series.State{series.Same, series.Changed, series.New}},
		{New: 1, States: []series.State{series.New}},
	}, got)
}

// mergeUsers writes the same series for two users of one team and one of another team.
func mergeUsers(t dataT) {
	ann := t.user()
	bob := LiveUser(ann.Team, "bob")
	require.NoError(t, t.Add(t.Context(), bob))
	cat := t.user()
	for i, u := range []healthdata.User{ann, bob, cat} {
		require.Empty(t, t.samples(u, Steps))
		require.Empty(t, t.records(u, healthdata.RecordQuery{Resource: "sleep"}))
		o := t.merge(u, Steps, Sample(0, float64(i)))
		require.Equal(t, 1, o.New, "whatever others have")
		t.put(u, Record("sleep", noon.Time))
	}
	for i, u := range []healthdata.User{ann, bob, cat} {
		require.Equal(t, []series.Sample{Sample(0, float64(i))}, t.samples(u, Steps))
		require.Len(t, t.records(u, healthdata.RecordQuery{Resource: "sleep"}), 1)
	}
}

func mergeRefused(t dataT) {
	u := t.user()
	good := Batch(Steps, Sample(0, 1))
	nul := Sample(1, 1)
	nul.Text = "a\x00b"
	unsorted := &series.Block{Time: []int64{2, 1}, Value: []float64{1, 1}, Runs: []series.Run{{N: 2}}}
	for name, bad := range conformance.Sorted(map[string]healthdata.SampleBatch{
		"same key":    Batch(Steps, Sample(1, 1)),
		"empty":       Batch(healthdata.SeriesKey{Resource: "steps", Provider: "b", SourceType: "c"}),
		"nul in key":  Batch(healthdata.SeriesKey{Resource: "steps", Provider: "b\x00", SourceType: "c"}, Sample(1, 1)),
		"nul in text": Batch(healthdata.SeriesKey{Resource: "note", Provider: "b", SourceType: "c"}, nul),
		"unsorted":    {Key: healthdata.SeriesKey{Resource: "steps", Provider: "b", SourceType: "c"}, Samples: unsorted},
	}) {
		t.Run(name, func(sub *testing.T) {
			t := t.on(sub)
			err := t.Data.MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{good, bad}, nil)
			require.ErrorIs(t, err, healthlab.Invalid)
			require.Empty(t, t.samples(u, Steps))
		})
	}
}

func mergeNoSuchUser(t dataT) {
	u := t.user()
	merge := func(team healthlab.TeamID, user healthlab.UserID) error {
		return t.Data.MergeSamples(t.Context(), team, user, []healthdata.SampleBatch{Batch(Steps, Sample(0, 1))}, nil)
	}
	look := func(team healthlab.TeamID, user healthlab.UserID) error {
		return t.Data.View(t.Context(), team, user, func(healthdata.View) error { return nil })
	}
	require.ErrorIs(t, merge(conformance.NewTeam(), u.ID), healthlab.NotFound, "another team")
	require.ErrorIs(t, merge(u.Team, conformance.NewUser()), healthlab.NotFound, "nobody")
	require.ErrorIs(t, look(conformance.NewTeam(), u.ID), healthlab.NotFound, "another team looks")
	t.remove(u)
	require.ErrorIs(t, merge(u.Team, u.ID), healthlab.NotFound, "deleted")
	require.ErrorIs(t, look(u.Team, u.ID), healthlab.NotFound, "deleted, looked at")
}

func mergeErrorOfEvents(t dataT) {
	u := t.user()
	t.merge(u, Steps, Sample(0, 1))
	err := t.Data.MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{Batch(Steps, Sample(0, 2), Sample(1, 2))},
		func([]series.Outcome) ([]healthlab.Event, error) { return nil, conformance.ErrRefused })
	require.ErrorIs(t, err, conformance.ErrRefused)
	require.Equal(t, []series.Sample{Sample(0, 1)}, t.samples(u, Steps))
}

func mergeAliasing(t dataT) {
	u := t.user()
	b := Batch(Steps, Sample(0, 1), Sample(1, 2))
	require.NoError(t, t.Data.MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{b}, nil))
	b.Samples.Value[0], b.Samples.Time[1] = 99, 99
	require.Equal(t, []series.Sample{Sample(0, 1), Sample(1, 2)}, t.samples(u, Steps))
}

func mergeNoLostUpdates(t dataT) {
	u := t.user()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 8 {
				b := Batch(Steps, Sample(i*8+j, float64(i)))
				if err := t.Data.MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{b}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, t.samples(u, Steps), 16*8)
}

// mergeDense writes more samples than one chunk can have, in batches that cross chunks, and again with every
// third value changed.
func mergeDense(t dataT) {
	u := t.user()
	const n = 20_000
	want := make([]series.Sample, n)
	for i := range want {
		want[i] = Sample(i, float64(i%97))
	}
	for from := 0; from < n; from += 3_333 {
		t.merge(u, Steps, want[from:min(from+3_333, n)]...)
	}
	requireSeries(t, want, t.samples(u, Steps))
	var third []series.Sample
	for i := 0; i < n; i += 3 {
		want[i].Value = -1
		third = append(third, want[i])
	}
	o := t.merge(u, Steps, third...)
	require.Equal(t, len(third), o.Changed)
	requireSeries(t, want, t.samples(u, Steps))
}

// requireSeries compares long series. It shows only the first difference, because showing all of them takes
// minutes.
func requireSeries(t dataT, want, got []series.Sample) {
	t.Helper()
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			require.Equal(t, want[i], got[i], "sample %d", i)
		}
	}
	require.Equal(t, len(want), len(got))
}

func dataEventsWritten(t dataT) {
	u := t.user()
	slept, walked := Event(u, "sleep", 1), Event(u, "steps", 2)
	err := t.Data.PutRecords(t.Context(), u.Team, u.ID, []healthdata.Record{Record("sleep", noon.Time)},
		func([]healthdata.PutResult) ([]healthlab.Event, error) { return []healthlab.Event{slept}, nil })
	require.NoError(t, err)
	t.mergeWithEvent(u, walked, Sample(0, 1))
	for _, e := range []healthlab.Event{slept, walked} {
		m, err := t.Messages.Message(t.Context(), u.Team, e.ID)
		require.NoError(t, err)
		require.Equal(t, e.Type, m.Type)
	}
}

func dataEventsSeq(t dataT) {
	u := t.user()
	var ids []uuid.UUID
	for i := range 3 {
		e := Event(u, "steps", i)
		e.Seq = 77 // a store sets its own Seq
		ids = append(ids, e.ID)
		t.mergeWithEvent(u, e, Sample(i, 1))
	}
	var wg sync.WaitGroup
	for i := range 8 {
		e := Event(u, "steps", 10+i)
		ids = append(ids, e.ID)
		wg.Go(func() { t.mergeWithEvent(u, e, Sample(10+i, 1)) })
	}
	wg.Wait()
	seqs := make([]int64, 0, len(ids))
	for _, id := range ids {
		m, err := t.Messages.Message(t.Context(), u.Team, id)
		require.NoError(t, err)
		seqs = append(seqs, m.Seq)
	}
	require.True(t, slices.IsSorted(seqs[:3]), "in the order of writes")
	slices.Sort(seqs)
	require.Len(t, slices.Compact(seqs), len(ids), "each its own")
}

func dataEventsAllOrNothing(t dataT) {
	u := t.user()
	e := Event(u, "sleep", 1)
	err := t.Data.PutRecords(t.Context(), u.Team, u.ID, []healthdata.Record{Record("sleep", noon.Time)},
		func([]healthdata.PutResult) ([]healthlab.Event, error) { return []healthlab.Event{e, e}, nil })
	require.Error(t, err, "an event stands once")
	require.Empty(t, t.records(u, healthdata.RecordQuery{Resource: "sleep"}))
	_, err = t.Messages.Message(t.Context(), u.Team, e.ID)
	require.ErrorIs(t, err, healthlab.NotFound)

	bad := Event(u, "steps", 1)
	bad.Data = []byte(`{"n":`)
	err = t.Data.MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{Batch(Steps, Sample(0, 1))},
		func([]series.Outcome) ([]healthlab.Event, error) { return []healthlab.Event{bad}, nil })
	require.Error(t, err, "a payload is JSON")
	require.Empty(t, t.samples(u, Steps))
}

func dataContextEnded(t dataT) {
	u := t.user()
	ctx := conformance.Ended(t.T)
	require.ErrorIs(t, t.Data.PutRecords(ctx, u.Team, u.ID, []healthdata.Record{Record("sleep", noon.Time)}, nil), context.Canceled)
	require.ErrorIs(t, t.Data.MergeSamples(ctx, u.Team, u.ID, []healthdata.SampleBatch{Batch(Steps, Sample(0, 1))}, nil), context.Canceled)
	require.ErrorIs(t, t.Data.View(ctx, u.Team, u.ID, func(healthdata.View) error { return nil }), context.Canceled)
	_, _, err := t.Data.Find(ctx, u.Team, "sleep", uuid.New())
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, t.samples(u, Steps))
	require.Empty(t, t.records(u, healthdata.RecordQuery{Resource: "sleep"}))
}

// long is a text that no store may truncate.
var long = strings.Repeat("längé ", 2000)
