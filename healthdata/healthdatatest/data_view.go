package healthdatatest

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

// writer makes one write concurrently with a view.
type writer struct {
	t     dataT
	write func()
	once  sync.Once
	done  chan struct{}
}

func newWriter(t dataT, write func()) *writer {
	return &writer{t: t, write: write, done: make(chan struct{})}
}

// start begins the write and waits at most 200 ms for its end, because a store may block the writer until the view
// ends. Later calls do nothing.
func (w *writer) start() {
	w.once.Do(func() {
		go func() {
			defer close(w.done)
			w.write()
		}()
		select {
		case <-w.done:
		case <-time.After(200 * time.Millisecond):
		}
	})
}

func (w *writer) ended() {
	w.t.Helper()
	select {
	case <-w.done:
	case <-time.After(time.Minute):
		require.Fail(w.t, "the writer never ended")
	}
}

// viewConsistent writes a sample and a record while a view is read. What the last call of read sees must be of one
// instant.
func viewConsistent(t dataT) {
	u := t.user()
	t.merge(u, Steps, Sample(0, 1))
	t.put(u, Record("sleep", noon.Time))
	w := newWriter(t, func() {
		t.merge(u, Steps, Sample(0, 9), Sample(1, 9))
		t.put(u, Record("sleep", noon.Time))
	})
	var before, after []series.Sample
	var records []healthdata.Record
	require.NoError(t, t.Data.View(t.Context(), u.Team, u.ID, func(v healthdata.View) (err error) {
		if before, err = readSeries(t.Context(), v, Steps, func() {}); err != nil {
			return err
		}
		w.start()
		if after, err = readSeries(t.Context(), v, Steps, func() {}); err != nil {
			return err
		}
		records, err = v.Records(t.Context(), healthdata.RecordQuery{Resource: "sleep"})
		return err
	}))
	require.Equal(t, before, after)
	if len(before) == 1 {
		require.Len(t, records, 1, "the record was written after the sample")
	}
	w.ended()
	require.Len(t, t.samples(u, Steps), 2)
	require.Len(t, t.records(u, healthdata.RecordQuery{Resource: "sleep"}), 2)
}

// viewChunks changes every sample of a series and removes some, between the read of the headers and that of the
// data.
func viewChunks(t dataT) {
	const n = 9000
	samples := func(value float64) []series.Sample {
		out := make([]series.Sample, n)
		for i := range out {
			out[i] = Sample(i, value)
		}
		return out
	}
	for name, c := range conformance.Sorted(map[string]struct {
		write   func(u healthdata.User)
		want    []series.Sample
		between bool // a view may see an earlier commit without samples
	}{
		"changed": {func(u healthdata.User) { t.merge(u, Steps, samples(2)...) }, samples(2), false},
		"removed": {func(u healthdata.User) {
			var times []int64
			for _, s := range samples(1)[:n/2] {
				times = append(times, s.Time)
			}
			t.removal(u, healthdata.Removal{Samples: []healthdata.SampleRemoval{{Key: Steps, Times: times, Span: series.PerMinute}}})
		}, samples(1)[n/2:], false},
		"removed and written again": {func(u healthdata.User) {
			var times []int64
			for _, s := range samples(1) {
				times = append(times, s.Time)
			}
			t.removal(u, healthdata.Removal{Samples: []healthdata.SampleRemoval{{Key: Steps, Times: times, Span: series.PerMinute}}})
			t.merge(u, Steps, samples(2)...)
		}, samples(2), true},
	}) {
		t.Run(name, func(sub *testing.T) {
			t := t.on(sub)
			u := t.user()
			t.merge(u, Steps, samples(1)...)
			w := newWriter(t, func() { c.write(u) })
			var got []series.Sample
			require.NoError(t, t.Data.View(t.Context(), u.Team, u.ID, func(v healthdata.View) (err error) {
				got, err = readSeries(t.Context(), v, Steps, w.start)
				return err
			}))
			w.ended()
			switch {
			case len(got) == n && got[0].Value == 1:
				requireSeries(t, samples(1), got)
			case len(got) > 0 || !c.between:
				requireSeries(t, c.want, got)
			}
			requireSeries(t, c.want, t.samples(u, Steps))
		})
	}
}

func viewError(t dataT) {
	u := t.user()
	err := t.Data.View(t.Context(), u.Team, u.ID, func(healthdata.View) error { return conformance.ErrRefused })
	require.Equal(t, conformance.ErrRefused, err, "unchanged")
}

func seriesRanges(t dataT) {
	u := t.user()
	t.merge(u, Steps, Sample(0, 1), Sample(1, 2))
	t0 := Sample(0, 0).Time
	t.view(u, func(v healthdata.View) {
		for name, c := range conformance.Sorted(map[string]struct {
			from, to int64
			want     int
		}{
			"all":       {0, 0, 1},
			"around":    {t0 - 1, t0 + 1, 1},
			"from":      {t0, t0 + 1, 1},
			"before":    {t0 - 10, t0, 0},
			"last":      {Sample(1, 0).Time, series.MaxTime, 1},
			"after all": {Sample(1, 0).Time + 1, series.MaxTime, 0},
		}) {
			t.Run(name, func(sub *testing.T) {
				t := t.on(sub)
				all, err := v.Series(t.Context(), healthdata.SeriesQuery{Resources: []string{"steps"}, From: c.from, To: c.to})
				require.NoError(t, err)
				require.Len(t, all, c.want)
				for _, s := range all {
					for _, chunk := range s.Chunks {
						require.Nil(t, chunk.Data, "headers only")
					}
				}
			})
		}
		keys, err := v.Series(t.Context(), healthdata.SeriesQuery{Resources: []string{"steps"}, From: t0 - 10, To: t0, KeysOnly: true})
		require.NoError(t, err)
		require.Equal(t, []healthdata.Series{{Key: Steps}}, keys)
		whole, err := v.Series(t.Context(), healthdata.SeriesQuery{Resources: []string{"steps"}, From: t0, To: t0 + 1, Whole: true})
		require.NoError(t, err)
		headers, err := v.Series(t.Context(), healthdata.SeriesQuery{Resources: []string{"steps"}, From: t0, To: t0 + 1})
		require.NoError(t, err)
		require.Equal(t, headers, whole)
	})
}

func loadNotFound(t dataT) {
	u := t.user()
	t.merge(u, Steps, Sample(0, 1))
	t.view(u, func(v healthdata.View) {
		_, err := v.Load(t.Context(), Steps, []int64{1})
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = v.Load(t.Context(), healthdata.SeriesKey{Resource: "glucose"}, []int64{1})
		require.ErrorIs(t, err, healthlab.NotFound)
	})
}
