package healthdatatest

import (
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// RunDataModel compares a store with plain maps under random writes and reads. Every sequence uses its own team,
// so one store is enough.
func RunDataModel(t *testing.T, newStore func(t testing.TB) DataHarness) {
	h := newStore(t)
	rapid.Check(t, func(r *rapid.T) {
		m := dataModel{t: dataT{t, h.alone()}, r: r, series: map[healthdata.SeriesKey]map[int64]modelSample{}}
		m.user = m.t.user()
		r.Repeat(map[string]func(*rapid.T){
			"merge":  m.merge,
			"remove": m.remove,
			"read":   m.read,
		})
	})
}

type dataModel struct {
	t      dataT
	r      *rapid.T
	user   healthdata.User
	series map[healthdata.SeriesKey]map[int64]modelSample
	merges int
}

// modelSample is a sample with the number of the merge that wrote it.
type modelSample struct {
	series.Sample
	merge int
}

var modelKeys = []healthdata.SeriesKey{
	{Resource: "steps", Provider: "acme_band", SourceType: "watch"},
	{Resource: "steps", Provider: "acme_band", SourceType: "watch", Origin: healthdata.Origin{App: "com.acme.b"}},
	{Resource: "steps", Provider: "acme_band", SourceType: "watch", Origin: healthdata.Origin{App: "com.acme.b", Device: uuid.UUID{7}}},
	{Resource: "steps", Provider: "acme_band", SourceType: "phone"},
	{Resource: "glucose", Provider: "acme_cgm", SourceType: "automatic"},
}

func (m *dataModel) merge(r *rapid.T) {
	key := rapid.SampledFrom(modelKeys).Draw(r, "key")
	// Minutes over about half a year, in clusters, so that batches overlap.
	base := rapid.SampledFrom([]int{0, 100, 6_000, 90_000, 250_000}).Draw(r, "base")
	minutes := rapid.SliceOfN(rapid.IntRange(0, 200), 1, 60).Draw(r, "minutes")
	var in []series.Sample
	for _, at := range minutes {
		s := Sample(base+at, rapid.SampledFrom([]float64{0, 1, 2.5, 97.125, -1e300, 1e-9}).Draw(r, "value"))
		if rapid.Bool().Draw(r, "interval") {
			s.End = s.Time + 60_000_000
		}
		s.Offset = rapid.SampledFrom([]int32{0, 3600, -34200}).Draw(r, "offset")
		s.App = rapid.SampledFrom([]string{"", "com.example"}).Draw(r, "app")
		in = append(in, s)
	}
	model := m.series[key]
	if model == nil {
		model = map[int64]modelSample{}
		m.series[key] = model
	}
	m.merges++
	latest := map[int64]series.Sample{}
	for _, s := range in {
		latest[s.Time] = s
	}
	var added, changed, same int
	for at, s := range latest {
		was, ok := model[at]
		switch {
		case !ok && m.shared(key, at):
			changed++
		case !ok:
			added++
		case was.Sample != s:
			changed++
		default:
			same++
			continue
		}
		model[at] = modelSample{s, m.merges}
	}
	o := m.t.merge(m.user, key, in...)
	require.Equal(r, []int{added, changed, same}, []int{o.New, o.Changed, o.Same})
}

// shared reports whether the model has a sample at the time at, in microseconds, in a series that differs from key only
// in the origin.
func (m *dataModel) shared(key healthdata.SeriesKey, at int64) bool {
	for k, of := range m.series {
		if _, ok := of[at]; ok && k != key && k.Published() == key.Published() {
			return true
		}
	}
	return false
}

func (m *dataModel) remove(r *rapid.T) {
	key := rapid.SampledFrom(modelKeys).Draw(r, "key")
	base := rapid.SampledFrom([]int{0, 100, 6_000, 90_000, 250_000}).Draw(r, "base")
	minutes := rapid.SliceOfNDistinct(rapid.IntRange(0, 200), 1, 60, rapid.ID[int]).Draw(r, "minutes")
	slices.Sort(minutes)
	times := make([]int64, len(minutes))
	want := 0
	for i, at := range minutes {
		times[i] = Sample(base+at, 0).Time
		if _, there := m.series[key][times[i]]; there {
			delete(m.series[key], times[i])
			want++
		}
	}
	require.Equal(r, want, m.t.removal(m.user, healthdata.Removal{Samples: []healthdata.SampleRemoval{{Key: key, Times: times, Span: series.PerMinute}}}))
}

func (m *dataModel) read(r *rapid.T) {
	key := rapid.SampledFrom(modelKeys).Draw(r, "key")
	var want []series.Sample
	for _, s := range m.series[key] {
		want = append(want, s.Sample)
	}
	byTime := func(a, b series.Sample) int { return int((a.Time - b.Time) / 60_000_000) }
	slices.SortFunc(want, byTime)
	require.Equal(r, want, unranked(m.t.samples(m.user, key)))

	latest := map[int64]modelSample{}
	for k, of := range m.series {
		for at, s := range of {
			if was, ok := latest[at]; k.Published() == key.Published() && (!ok || s.merge > was.merge) {
				latest[at] = s
			}
		}
	}
	want = nil
	for _, s := range latest {
		want = append(want, s.Sample)
	}
	slices.SortFunc(want, byTime)
	var got []series.Sample
	m.t.view(m.user, func(v healthdata.View) {
		got = nil
		all, err := v.Series(m.t.Context(), healthdata.SeriesQuery{Resources: []string{key.Resource}})
		require.NoError(r, err)
		all = slices.DeleteFunc(all, func(s healthdata.Series) bool { return s.Key.Published() != key.Published() })
		for _, origins := range healthdata.ByPublished(all) {
			require.NoError(r, healthdata.ReadPublished(m.t.Context(), v, origins, series.Range{From: series.MinTime, To: series.MaxTime + 1}, func(b *series.Block) bool {
				for _, s := range b.All() {
					got = append(got, s)
				}
				return true
			}))
		}
	})
	require.Equal(r, want, unranked(got), "what was received last")
}

func unranked(list []series.Sample) []series.Sample {
	for i := range list {
		list[i].Rank = 0
	}
	return list
}
