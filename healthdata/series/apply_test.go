package series_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// model is what a series means: a map from time to sample.
type model map[int64]series.Sample

// merge is the meaning of a merge, in the words of a map.
func (m model) merge(in *series.Block) (o series.Outcome) {
	for _, s := range in.All() {
		was, ok := m[s.Time]
		switch {
		case !ok:
			o.New++
			o.States = append(o.States, series.New)
		case slices.Equal(bitsOf([]series.Sample{was}), bitsOf([]series.Sample{s})):
			o.Same++
			o.States = append(o.States, series.Same)
		default:
			o.Changed++
			o.States = append(o.States, series.Changed)
		}
		m[s.Time] = s
	}
	return o
}

func (m model) samples(r series.Range) []series.Sample {
	var out []series.Sample
	for _, s := range m {
		if s.Time >= r.From && s.Time < r.To {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b series.Sample) int {
		if a.Time < b.Time {
			return -1
		}
		return 1
	})
	return out
}

var always = series.Range{From: series.MinTime, To: series.MaxTime + 1}

// chunkStore is the store that the package documentation asks an adapter to be.
type chunkStore struct {
	body []series.Chunk
	log  []series.Segment
}

func (s *chunkStore) load(ranges []series.Range) (out []series.Chunk) {
	for _, c := range s.body {
		if slices.ContainsFunc(ranges, func(r series.Range) bool { return c.Overlaps(r.From, r.To) }) {
			out = append(out, c)
		}
	}
	return out
}

func (s *chunkStore) change(t require.TestingT, want []series.Range, span series.Span,
	how func(old []series.Chunk, pending []series.Segment) (series.Change, error)) series.Change {
	take, ranges := series.Reach(span, want, s.log)
	var pending, rest []series.Segment
	for i, p := range s.log {
		if slices.Contains(take, i) {
			pending = append(pending, p)
		} else {
			rest = append(rest, p)
		}
	}
	c, err := how(s.load(ranges), pending)
	require.NoError(t, err)
	for _, start := range c.Drop {
		k := slices.IndexFunc(s.body, func(b series.Chunk) bool { return b.Start == start })
		require.GreaterOrEqual(t, k, 0, "a drop of a chunk that is not there")
		s.body = slices.Delete(s.body, k, k+1)
	}
	for _, p := range c.Put {
		s.body = slices.DeleteFunc(s.body, func(b series.Chunk) bool { return b.Start == p.Start })
		s.body = append(s.body, p)
	}
	slices.SortFunc(s.body, func(a, b series.Chunk) int { return int(min(1, max(-1, a.Start-b.Start))) })
	for i := 1; i < len(s.body); i++ {
		require.Greater(t, s.body[i].Start, s.body[i-1].Stop, "chunks overlap")
	}
	s.log = rest
	return c
}

func (s *chunkStore) apply(t require.TestingT, in *series.Block, span series.Span) series.Change {
	return s.change(t, span.Cells(in), span, func(old []series.Chunk, pending []series.Segment) (series.Change, error) {
		return series.Apply(old, pending, in, span)
	})
}

func (s *chunkStore) append(t require.TestingT, in *series.Block) {
	if in.Len() > 0 {
		s.log = append(s.log, chunkOf(t, in))
	}
}

func (s *chunkStore) remove(t require.TestingT, times []int64, which func(*series.Attrs) bool, span series.Span) (c series.Change, gone []series.Gone) {
	c = s.change(t, span.Points(times), span, func(old []series.Chunk, pending []series.Segment) (c series.Change, err error) {
		c, gone, err = series.Remove(old, pending, times, which, span)
		return c, err
	})
	return c, gone
}

// A store that only appends, loads and replaces holds the same samples as a map,
// whatever happens in which order, and reports the same outcomes.
func TestSeries_randomChangesStoreWhatAMapWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s chunkStore
		m := model{}
		spans := []series.Span{series.PerSecond, series.PerMinute, 0, series.Sparse}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			span := rapid.SampledFrom(spans).Draw(t, "span")
			in := blockOf(drawSamples(30).Draw(t, "batch")...)
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1:
				m.merge(in)
				s.append(t, in)
			case 2, 3:
				want := m.merge(in)
				requireOutcome(t, want, s.apply(t, in, span).Outcome)
				again := s.apply(t, in, span)
				require.Empty(t, again.Put, "sending the same again writes nothing")
				require.Empty(t, again.Drop, "sending the same again writes nothing")
			case 4:
				s.change(t, nil, span, func(old []series.Chunk, pending []series.Segment) (series.Change, error) {
					return series.Apply(old, pending, nil, span)
				})
				require.Empty(t, s.log)
			case 6:
				times := slices.Clone(in.Time)
				if len(times) > 1 {
					times = times[:len(times)/2] // some are there, some are not
				}
				for k := range m {
					if rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
						times = append(times, k)
					}
				}
				slices.Sort(times)
				times = slices.Compact(times)
				var which func(*series.Attrs) bool // of some attributes, or of all
				if rapid.Bool().Draw(t, "those") {
					which = func(a *series.Attrs) bool { return a.Offset == 0 }
				}
				want := 0
				for _, at := range times {
					if s, there := m[at]; there && (which == nil || which(&s.Attrs)) {
						delete(m, at)
						want++
					}
				}
				_, gone := s.remove(t, times, which, span)
				require.Len(t, gone, want)
			case 5:
				var times []int64
				for _, sample := range m.samples(series.Range{From: drawTime(t), To: drawTime(t)}) {
					times = append(times, sample.Time)
					delete(m, sample.Time)
				}
				_, gone := s.remove(t, times, nil, span)
				require.Len(t, gone, len(times))
			}
		}
		r := always
		if rapid.Bool().Draw(t, "part") {
			r = series.Range{From: drawTime(t), To: drawTime(t)}
		}
		var sc series.Scanner
		var whole series.Block
		next, err := sc.Read(&whole, s.body, s.log, r, 1<<30)
		require.NoError(t, err)
		require.Equal(t, r.To, next)
		requireSame(t, m.samples(r), samplesOf(&whole))

		var paged series.Block
		limit := rapid.IntRange(1, 20).Draw(t, "page")
		for at := r.From; at < r.To; {
			was := paged.Len()
			at, err = sc.Read(&paged, s.body, s.log, series.Range{From: at, To: r.To}, limit)
			require.NoError(t, err)
			require.LessOrEqual(t, paged.Len()-was, limit)
		}
		requireSame(t, m.samples(r), samplesOf(&paged))
		require.NoError(t, paged.Validate())
	})
}

func ptr[T any](v T) *T { return &v }

func requireOutcome(t require.TestingT, want, got series.Outcome) {
	if len(want.States) == 0 {
		want.States, got.States = nil, nil
	}
	require.Equal(t, want, got)
}

// However the batches are cut, the merged series is the same.
func TestMerge_resultDoesNotDependOnBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := drawSamples(60).Draw(t, "samples")
		m := model{}
		m.merge(blockOf(samples...))
		got, next := &series.Block{}, &series.Block{}
		for len(samples) > 0 {
			n := rapid.IntRange(1, len(samples)).Draw(t, "batch")
			series.Merge(next, got, blockOf(samples[:n]...))
			got, next = next, got
			samples = samples[n:]
			require.NoError(t, got.Validate())
		}
		requireSame(t, m.samples(always), samplesOf(got))
	})
}

func TestOutcomeDiff_keepsOnlyNewAndChangedSamples(t *testing.T) {
	beat := func(i int64, v float64) series.Sample { return series.Sample{Time: newYear + i*minute, Value: v} }
	old := blockOf(beat(0, 60), beat(1, 61), beat(2, 62))
	in := blockOf(beat(1, 61), beat(2, 99), beat(3, 63))
	var merged, diff series.Block
	o := series.Merge(&merged, old, in)
	isNew := o.Diff(&diff, in)
	requireSame(t, []series.Sample{beat(2, 99), beat(3, 63)}, samplesOf(&diff))
	require.Equal(t, []bool{false, true}, isNew)
	require.Equal(t, []series.State{series.Same, series.Changed, series.New}, o.States)
}

func TestApply_cutsAFullCellIntoEqualChunks(t *testing.T) {
	var s chunkStore
	s.apply(t, heartRate(newYear, second, 40_000), 0)
	total := 0
	for _, c := range s.body {
		require.LessOrEqual(t, c.N, series.MaxChunk)
		require.GreaterOrEqual(t, c.N, series.MaxChunk/2)
		total += c.N
	}
	require.Equal(t, 40_000, total)
}

// A sample within one chunk changes that chunk only.
func TestApply_lateSampleRewritesOneChunk(t *testing.T) {
	var s chunkStore
	s.apply(t, heartRate(newYear, minute, 20_000), series.PerMinute)
	require.Greater(t, len(s.body), 3)
	late := blockOf(series.Sample{Time: s.body[1].Start + 7*second, Value: 70})
	c := s.apply(t, late, series.PerMinute)
	require.Len(t, c.Put, 1)
	require.Empty(t, c.Drop)
	require.Equal(t, 1, c.Outcome.New)
}

func TestApply_refusesUnsortedOverlappingOrDamagedInput(t *testing.T) {
	good := chunkOf(t, heartRate(newYear, minute, 100))
	unsorted := &series.Block{Time: []int64{2, 1}, Value: []float64{1, 2}, Runs: []series.Run{{N: 2}}}
	_, err := series.Apply(nil, nil, unsorted, 0)
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = series.Apply([]series.Chunk{good, good}, nil, nil, 0)
	require.ErrorIs(t, err, healthlab.Invalid)
	damaged := good
	damaged.Data = good.Data[:len(good.Data)-1]
	_, err = series.Apply(nil, []series.Segment{damaged}, nil, 0)
	require.ErrorIs(t, err, series.ErrCorrupt)
	_, err = series.Apply([]series.Chunk{damaged}, nil, heartRate(newYear, minute, 10), 0)
	require.ErrorIs(t, err, series.ErrCorrupt)
}

func TestRemove_ofAllSamplesLeavesNoChunk(t *testing.T) {
	var s chunkStore
	stored, pending := heartRate(newYear, minute, 20_000), heartRate(newYear+30*day, minute, 10)
	s.apply(t, stored, series.PerMinute)
	s.append(t, pending)
	times := slices.Concat(stored.Time, pending.Time)
	slices.Sort(times)
	times = slices.Compact(times)
	c, gone := s.remove(t, times, nil, series.PerMinute)
	require.Len(t, gone, len(times))
	require.Empty(t, c.Put)
	require.Empty(t, s.body)
	require.Empty(t, s.log)
}

func TestCell_startsAtAMultipleOfItsLength(t *testing.T) {
	r := series.PerMinute.Cell(newYear + hour)
	require.Equal(t, 4*day, r.To-r.From)
	require.Zero(t, r.From%(4*day))
	require.Equal(t, series.Range{From: -day, To: 0}, series.Span(0).Cell(-1))
}
