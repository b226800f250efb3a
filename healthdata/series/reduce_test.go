package series_test

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// slowAcc is an Acc worked out the plain way, with a sum of any length.
type slowAcc struct {
	series.Acc
	exact *big.Float
}

// slowly reduces samples, in ascending order of time, one by one.
func slowly(samples []series.Sample, r series.Reduction) []slowAcc {
	out := make([]slowAcc, len(r.Edges)-1)
	for i := range out {
		out[i].exact = new(big.Float).SetPrec(3000)
	}
	for _, s := range samples {
		at, v := s.Time, s.Value
		if r.Local {
			at += int64(s.Offset) * second
		}
		if r.Second {
			v = s.Value2
		}
		if r.Filter && (v < r.AtLeast || v > r.AtMost) {
			continue
		}
		k, found := slices.BinarySearch(r.Edges, at)
		if !found {
			k--
		}
		if k < 0 || k >= len(out) {
			continue
		}
		a := &out[k]
		if a.N == 0 || v < a.Min {
			a.Min = v
		}
		if a.N == 0 || v > a.Max {
			a.Max = v
		}
		if a.N == 0 || at < a.FirstAt {
			a.First, a.FirstAt = v, at
		}
		if a.N == 0 || at >= a.LastAt {
			a.Last, a.LastAt = v, at
		}
		a.N++
		a.exact.Add(a.exact, big.NewFloat(v))
	}
	return out
}

func requireAccs(t require.TestingT, want []slowAcc, got []series.Acc) {
	require.Len(t, got, len(want))
	for i := range want {
		w, g := want[i].Acc, got[i]
		exact, _ := want[i].exact.Float64()
		// One unit in the last place: a decimal is summed as such, not as the
		// float64 nearest to it. Where large values cancel, it is theirs.
		most := 0.0
		if w.N > 0 {
			most = max(math.Abs(w.Min), math.Abs(w.Max), math.Abs(exact))
		}
		require.InDelta(t, exact, g.Sum.Float64(), most*float64(w.N)*0x1p-53)
		g.Sum = series.Sum{}
		require.Equal(t, w, g)
	}
}

func drawEdges(t *rapid.T) []int64 {
	var edges []int64
	switch rapid.IntRange(0, 2).Draw(t, "edges") {
	case 0:
		for range rapid.IntRange(2, 12).Draw(t, "number of edges") {
			edges = append(edges, drawTime(t))
		}
	default:
		step := rapid.SampledFrom([]int64{minute, 7 * minute, hour, day}).Draw(t, "bucket")
		from := newYear + minute*rapid.Int64Range(-60, 2000).Draw(t, "first edge")
		for i := range rapid.Int64Range(2, 200).Draw(t, "number of edges") {
			edges = append(edges, from+i*step)
		}
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	if len(edges) == 1 {
		edges = append(edges, edges[0]+1)
	}
	return edges
}

// reduce adds a series to a reducer in order of time. A chunk that no pending segment overlaps is added as a chunk, without
// its data where the header is enough.
func reduce(t require.TestingT, red *series.Reducer, body []series.Chunk, log []series.Segment) {
	var sc series.Scanner
	scan := func(from, to int64) {
		for b, err := range sc.Blocks(body, log, series.Range{From: from, To: to}) {
			require.NoError(t, err)
			red.Block(b)
		}
	}
	at := series.MinTime
	for _, c := range body {
		if slices.ContainsFunc(log, func(s series.Segment) bool { return s.Overlaps(c.Start, c.Stop+1) }) {
			continue
		}
		scan(at, c.Start)
		at = c.Stop + 1
		if !red.NeedsData(&c.Header) {
			c.Data = nil
		}
		require.NoError(t, red.Chunk(&c))
	}
	scan(at, always.To)
}

func TestReducer_equalsCountingSampleBySample(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s chunkStore
		m := model{}
		for range rapid.IntRange(1, 5).Draw(t, "batches") {
			in := blockOf(drawSamples(40).Draw(t, "batch")...)
			m.merge(in)
			if rapid.Bool().Draw(t, "append") {
				s.append(t, in)
			} else {
				s.apply(t, in, rapid.SampledFrom([]series.Span{series.PerSecond, 0, series.Sparse}).Draw(t, "span"))
			}
		}
		r := series.Reduction{
			Edges:  drawEdges(t),
			Local:  rapid.Bool().Draw(t, "local"),
			Second: rapid.IntRange(0, 3).Draw(t, "second") == 0,
			Filter: rapid.IntRange(0, 2).Draw(t, "filter") == 0,
		}
		r.AtLeast = drawValue(t, "at least")
		r.AtMost = max(r.AtLeast, drawValue(t, "at most"))

		want := slowly(m.samples(always), r)
		red, err := series.NewReducer(r)
		require.NoError(t, err)
		reduce(t, red, s.body, s.log)
		requireAccs(t, want, red.Buckets())

		red, err = series.NewReducer(r)
		require.NoError(t, err)
		var whole series.Block
		var sc series.Scanner
		_, err = sc.Read(&whole, s.body, s.log, always, 1<<30)
		require.NoError(t, err)
		if whole.Len() > 0 {
			red.Block(&whole)
		}
		requireAccs(t, want, red.Buckets())
	})
}

// A Reducer loads no data where the header of a chunk is enough.
func TestReducer_loadsNoDataIfTheHeaderIsEnough(t *testing.T) {
	var s chunkStore
	s.apply(t, heartRate(newYear, minute, 30_000), series.PerMinute)
	var edges []int64
	for at := newYear - newYear%(4*day) + hour; len(edges) < 9; at += 4 * day {
		edges = append(edges, at) // each edge an hour inside a chunk
	}
	red, err := series.NewReducer(series.Reduction{Edges: edges})
	require.NoError(t, err)
	wide, err := series.NewReducer(series.Reduction{Edges: []int64{newYear, newYear + 100*day}})
	require.NoError(t, err)
	bare, splits := slices.Clone(s.body), false
	for i := range bare {
		// The edges of the cells' first hours lie in chunks; see which.
		h := &bare[i].Header
		split := slices.ContainsFunc(edges, func(e int64) bool { return h.Start < e && e <= h.Stop })
		require.Equal(t, split, red.NeedsData(h))
		splits = splits || split
		require.False(t, wide.NeedsData(&bare[i].Header))
		bare[i].Data = nil
	}
	require.True(t, splits)
	var want series.Acc
	for i := range bare {
		require.NoError(t, wide.Chunk(&bare[i]))
		want.N += bare[i].N
		if err := red.Chunk(&bare[i]); red.NeedsData(&bare[i].Header) {
			require.ErrorIs(t, err, series.ErrCorrupt)
		} else {
			require.NoError(t, err)
		}
	}
	require.Equal(t, want.N, wide.Buckets()[0].N)
}

// A range that is reduced in two pieces and added has the same sums, to the last bit,
// as the range reduced at once, however the series is cut into chunks.
func TestSum_doesNotDependOnHowASeriesIsChunked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := rapid.SampledFrom([]float64{1, 10, 1000, 3}).Draw(t, "scale") // by 3 they are no decimals
		b := &series.Block{}
		n := rapid.IntRange(2, 3000).Draw(t, "samples")
		seed := rapid.Int64Range(1, 1<<40).Draw(t, "seed")
		for i := range n {
			seed = seed*6364136223846793005 + 1442695040888963407
			b.Append(series.Sample{Time: newYear + int64(i)*second, Value: float64(seed>>44) / scale})
		}
		edges := []int64{newYear, newYear + day}
		red, err := series.NewReducer(series.Reduction{Edges: edges})
		require.NoError(t, err)
		require.NoError(t, red.Chunk(ptr(chunkOf(t, b))))
		want := red.Buckets()[0]

		var sum series.Acc
		for i := 0; i < n; {
			j := rapid.IntRange(i+1, n).Draw(t, "cut")
			red, err := series.NewReducer(series.Reduction{Edges: edges})
			require.NoError(t, err)
			part := b.Part(i, j)
			require.NoError(t, red.Chunk(ptr(chunkOf(t, &part))))
			sum.Add(&red.Buckets()[0])
			i = j
		}
		require.Equal(t, want.Sum.Float64(), sum.Sum.Float64())
		sum.Sum, want.Sum = series.Sum{}, series.Sum{}
		require.Equal(t, want, sum)
	})
}

// Numbers of any sign and size add up to what arbitrary precision says, whichever of
// the ways of adding takes them.
func TestSum_equalsArbitraryPrecisionForAnyNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		usual := rapid.Float64Range(-1000, 1000)
		if rapid.Bool().Draw(t, "no negative") {
			usual = rapid.Float64Range(0, 1000)
		}
		b := &series.Block{}
		for i := range rapid.Int64Range(1, 100).Draw(t, "samples") {
			v := usual.Draw(t, "value")
			switch rapid.IntRange(0, 60).Draw(t, "shape") {
			case 0:
				v = rapid.Float64Range(-1e300, 1e300).Draw(t, "large")
			case 1:
				v = 0
			}
			b.Append(series.Sample{Time: newYear + i, Value: v})
		}
		r := series.Reduction{Edges: []int64{newYear, newYear + hour}}
		red, err := series.NewReducer(r)
		require.NoError(t, err)
		red.Block(b)
		want := slowly(samplesOf(b), r)
		requireAccs(t, want, red.Buckets())
		exact, _ := want[0].exact.Float64()
		large := max(math.Abs(want[0].Min), math.Abs(want[0].Max))
		require.InDelta(t, exact, red.Buckets()[0].Sum.Float64(), math.Abs(exact)*0x1p-52+large*0x1p-80)
		c := chunkOf(t, b)
		require.Equal(t, c.Min, want[0].Min)
		require.Equal(t, c.Max, want[0].Max)
		require.InDelta(t, exact, c.Sum.Float64(), math.Abs(exact)*0x1p-52+large*0x1p-80)
	})
}

func TestSum_isExactWhereFloat64Rounds(t *testing.T) {
	b := &series.Block{}
	for i, v := range []float64{1e16, 1.0 / 3, -1e16, 1e-30} {
		b.Append(series.Sample{Time: newYear + int64(i), Value: v})
	}
	require.Equal(t, 1.0/3+1e-30, chunkOf(t, b).Sum.Float64())

	b.Reset()
	for i := range int64(10) {
		b.Append(series.Sample{Time: newYear + i, Value: 0.1})
	}
	require.Equal(t, 1.0, chunkOf(t, b).Sum.Float64(), "decimals add up as decimals")

	b.Reset()
	b.Append(series.Sample{Time: newYear, Value: math.MaxFloat64})
	b.Append(series.Sample{Time: newYear + 1, Value: math.MaxFloat64})
	require.Equal(t, math.Inf(1), chunkOf(t, b).Sum.Float64())
}

func TestNewReducer_refusesEdgesThatDoNotAscend(t *testing.T) {
	for _, edges := range [][]int64{nil, {1}, {1, 1}, {2, 1}, {math.MinInt64, 0}, {0, math.MaxInt64}} {
		_, err := series.NewReducer(series.Reduction{Edges: edges})
		require.ErrorIs(t, err, healthlab.Invalid)
	}
}
