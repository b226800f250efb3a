package series_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata/series"
)

func perSample(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/sample")
}

func shapes() []struct {
	name  string
	block *series.Block
} {
	return []struct {
		name  string
		block *series.Block
	}{
		{"heart rate 1/min", heartRate(newYear, minute, 4*1440)},
		{"steps", stepCounts(4000)},
		{"glucose", glucose(4000)},
		{"voltage", voltage()},
		{"raw", rawNumbers(4000)},
	}
}

// rawNumbers have neither short decimals nor even times.
func rawNumbers(n int) *series.Block {
	r := rand.New(rand.NewPCG(9, 9))
	b := &series.Block{}
	t := newYear
	for range n {
		t += 1 + r.Int64N(minute)
		b.Append(series.Sample{Time: t, Value: r.Float64()})
	}
	return b
}

func BenchmarkEncode(b *testing.B) {
	for _, s := range shapes() {
		b.Run(s.name, func(b *testing.B) {
			var dst []byte
			var err error
			b.ReportAllocs()
			for b.Loop() {
				dst, err = series.Encode(dst[:0], s.block)
			}
			require.NoError(b, err)
			perSample(b, s.block.Len())
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, s := range shapes() {
		b.Run(s.name, func(b *testing.B) {
			c := chunkOf(b, s.block)
			var dst series.Block
			var err error
			b.ReportAllocs()
			for b.Loop() {
				err = series.Decode(&dst, c.Data)
			}
			require.NoError(b, err)
			perSample(b, c.N)
		})
	}
}

func BenchmarkMerge(b *testing.B) {
	old := heartRate(newYear, minute, 4000)
	tail := heartRate(old.Time[old.Len()-1]+minute, minute, 100)
	odd := heartRate(newYear+second, 10*minute, 400)
	for _, c := range []struct {
		name string
		in   *series.Block
	}{{"append 100", tail}, {"the same again", old}, {"scattered 400", odd}} {
		b.Run(c.name, func(b *testing.B) {
			var dst series.Block
			b.ReportAllocs()
			for b.Loop() {
				series.Merge(&dst, old, c.in)
			}
			perSample(b, old.Len()+c.in.Len())
		})
	}
	b.Run("apply 100 to a chunk of 4000", func(b *testing.B) {
		body := []series.Chunk{chunkOf(b, old)}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := series.Apply(body, nil, tail, series.PerMinute); err != nil {
				b.Fatal(err)
			}
		}
		perSample(b, old.Len()+tail.Len())
	})
}

func newReducer(t require.TestingT, r series.Reduction) *series.Reducer {
	red, err := series.NewReducer(r)
	require.NoError(t, err)
	return red
}

func plainSum(v []float64) (sum float64) {
	for _, x := range v {
		sum += x
	}
	return sum
}

// BenchmarkAggregate adds up ten million samples. Its measure is the plain sum of the
// same values in a slice; ratios to it are what counts.
func BenchmarkAggregate(b *testing.B) {
	const n = 10_000_000
	var blocks []*series.Block
	var chunks []series.Chunk
	var plain []float64
	at := newYear
	for len(plain) < n {
		block := heartRate(at, second, 5400)
		at = block.Time[block.Len()-1] + second
		plain = append(plain, block.Value...)
		blocks = append(blocks, block)
		chunks = append(chunks, chunkOf(b, block))
	}
	b.Run("plain sum", func(b *testing.B) {
		for b.Loop() {
			plainSum(plain)
		}
		perSample(b, len(plain))
	})
	edges := func(step int64) []int64 {
		e := []int64{newYear - newYear%step}
		for e[len(e)-1] < at {
			e = append(e, e[len(e)-1]+step)
		}
		return e
	}
	for _, bucket := range []struct {
		name string
		step int64
	}{{"day", day}, {"hour", hour}, {"minute", minute}} {
		r := series.Reduction{Edges: edges(bucket.step)}
		b.Run(fmt.Sprintf("%s/columns", bucket.name), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				red := newReducer(b, r)
				for _, block := range blocks {
					red.Block(block)
				}
			}
			perSample(b, len(plain))
		})
		b.Run(fmt.Sprintf("%s/chunks", bucket.name), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				red := newReducer(b, r)
				for i := range chunks {
					if err := red.Chunk(&chunks[i]); err != nil {
						b.Fatal(err)
					}
				}
			}
			perSample(b, len(plain))
		})
	}
	b.Run("hour/chunks filtered", func(b *testing.B) {
		for b.Loop() {
			filter := newReducer(b, series.Reduction{Edges: edges(hour), Filter: true, AtLeast: 60, AtMost: 70})
			for i := range chunks {
				if err := filter.Chunk(&chunks[i]); err != nil {
					b.Fatal(err)
				}
			}
		}
		perSample(b, len(plain))
	})
	b.Run("minute/chunks of one a minute", func(b *testing.B) {
		var sparse []series.Chunk
		first, total := newYear, 0
		for total < 1_000_000 {
			block := heartRate(first, minute, 5760)
			first = block.Time[block.Len()-1] + minute
			sparse = append(sparse, chunkOf(b, block))
			total += block.Len()
		}
		e := []int64{newYear}
		for e[len(e)-1] < first {
			e = append(e, e[len(e)-1]+minute)
		}
		for b.Loop() {
			red := newReducer(b, series.Reduction{Edges: e})
			for i := range sparse {
				if err := red.Chunk(&sparse[i]); err != nil {
					b.Fatal(err)
				}
			}
		}
		perSample(b, total)
	})
}
