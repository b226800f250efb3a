package aggregate_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/queryoracle"
)

const benchSamples = 10_000_000

// heart is 10 million heart rates, one a second, in memory, and the same values plain.
var heart = sync.OnceValues(func() (*queryoracle.Person, []float64) {
	p := queryoracle.NewPerson()
	r := rand.New(rand.NewPCG(1, 2))
	start := at("2026-01-01T00:00:00Z")
	plain := make([]float64, benchSamples)
	st := &queryoracle.Stored{}
	v := 60.0
	for i := 0; i < benchSamples; {
		var b series.Block
		cell := series.PerSecond.Cell(start + int64(i)*1_000_000)
		for ; i < benchSamples && start+int64(i)*1_000_000 < cell.To; i++ {
			v = min(max(v+float64(r.IntN(3)-1), 45), 180)
			plain[i] = v
			b.Append(series.Sample{Time: start + int64(i)*1_000_000, Value: v, Attrs: series.Attrs{Offset: 3600}})
		}
		c, err := series.NewChunk(&b)
		if err != nil {
			panic(err)
		}
		st.Chunks = append(st.Chunks, c)
	}
	p.Series[key("heartrate", "acme_watch", healthdata.SourceWatch, "")] = st
	return p, plain
})

func benchRequest(p aggregate.Period, where string, fns ...aggregate.Func) *aggregate.Request {
	q := aggregate.Query{Where: where, GroupBy: []aggregate.Expr{aggregate.By(p)}}
	for _, f := range fns {
		q.Select = append(q.Select, f.Of(aggregate.Samples("heartrate")))
	}
	return aggregate.Ask(aggregate.Timeframe{Anchor: date("2026-06-01"), Past: aggregate.Years(1)}, q)
}

// The reference is a plain sum of the same values. The bars: twice of it for days and
// hours, five times for minutes.
func BenchmarkQuery(b *testing.B) {
	p, plain := heart()
	b.Run("plain-sum", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sum := 0.0
			for _, v := range plain {
				sum += v
			}
			sink = sum
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchSamples, "ns/sample")
	})
	four := []aggregate.Func{aggregate.Mean, aggregate.Min, aggregate.Max, aggregate.Count}
	cases := []struct {
		name  string
		by    aggregate.Period
		where string
		fns   []aggregate.Func
	}{
		{"day", aggregate.Days(1), "", four},
		{"hour", aggregate.Hours(1), "", four},
		{"minute", aggregate.Minutes(1), "", four},
		{"hour-filtered", aggregate.Hours(1), "value >= 80", four},
		{"day-median", aggregate.Days(1), "", []aggregate.Func{aggregate.Median}},
		{"day-stddev", aggregate.Days(1), "", []aggregate.Func{aggregate.StdDev}},
		{"day-general", aggregate.Days(1), "type IS NULL", four},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			s := service(b, p, &aggregate.Options{Parallel: 1, Limits: aggregate.Limits{Rows: 1_000_000, Time: time.Hour}})
			req := benchRequest(c.by, c.where, c.fns...)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Query(b.Context(), team, user, req); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchSamples, "ns/sample")
		})
	}
}

var sink float64

// Writing a result: 100,000 rows.
func BenchmarkWrite(b *testing.B) {
	p, _ := heart()
	s := service(b, p, &aggregate.Options{Limits: aggregate.Limits{Rows: 1_000_000, Time: time.Hour}})
	req := benchRequest(aggregate.Minutes(1), "", aggregate.Mean, aggregate.Min, aggregate.Count)
	r, err := s.Query(b.Context(), team, user, req)
	require.NoError(b, err)
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			require.NoError(b, r.WriteJSON(nothing{}))
		}
	})
}

type nothing struct{}

func (nothing) Write(b []byte) (int, error) { return len(b), nil }

// BenchmarkMerge asks for values by day of three overlapping sources, of two origins of one source, and of
// one source with as many samples, as the reference. The bars: a mean of three sources takes at most 2.5
// times as long, of two origins 1.3 times. Measurements alternate, so that other work hits both alike.
func BenchmarkMerge(b *testing.B) {
	const days, first = 90, "2026-01-01T00:00:00Z"
	value := func(i int) float64 { return float64(60 + i%40) }
	watch := key("heartrate", "acme", healthdata.SourceWatch, "")
	// Of uneven ticks, the times must be decoded; rank is that of what came second.
	measure := func(p *queryoracle.Person, k healthdata.SeriesKey, n int, every time.Duration, uneven bool, rank uint32) {
		list := tick(first, n, every, 0, value)
		for i := range list {
			if list[i].Rank = rank; uneven {
				list[i].Time += int64(i*7%5) * 1_000_000
			}
		}
		p.Measure(b, k, series.PerMinute, false, list...)
	}
	for _, uneven := range []bool{false, true} {
		three, two := queryoracle.NewPerson(), queryoracle.NewPerson()
		for _, st := range []healthdata.SourceType{healthdata.SourceWatch, healthdata.SourceRing, healthdata.SourcePhone} {
			measure(three, key("heartrate", "acme", st, ""), days*1440, time.Minute, uneven, 0)
		}
		for i, app := range []string{"one.app", "two.app"} {
			k := watch
			k.Origin.App = app
			measure(two, k, days*1440, time.Minute, uneven, uint32(i))
		}
		for n, several := range map[int]*queryoracle.Person{3: three, 2: two} {
			one := queryoracle.NewPerson()
			measure(one, watch, n*days*1440, time.Minute/time.Duration(n), uneven, 0)
			for _, fn := range []aggregate.Func{aggregate.Mean, aggregate.Median} {
				req := aggregate.Ask(aggregate.Last(days, date("2026-03-31")), aggregate.Query{
					Select: []aggregate.Expr{fn.Of(aggregate.Samples("heartrate"))}, GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))},
				})
				names := map[int]string{3: "three-sources", 2: "two-origins"}
				b.Run(fmt.Sprintf("%s/%s/uneven=%t", fn, names[n], uneven), func(b *testing.B) {
					var spent [2]time.Duration
					services := [2]*aggregate.Service{service(b, several, &aggregate.Options{Parallel: 1}), service(b, one, &aggregate.Options{Parallel: 1})}
					for b.Loop() {
						for i, s := range services {
							start := time.Now()
							_, err := s.Query(b.Context(), team, user, req)
							spent[i] += time.Since(start)
							require.NoError(b, err)
						}
					}
					b.ReportMetric(float64(spent[0].Microseconds())/float64(b.N), "several-us/op")
					b.ReportMetric(float64(spent[1].Microseconds())/float64(b.N), "one-us/op")
					b.ReportMetric(float64(spent[0])/float64(spent[1]), "ratio")
				})
			}
		}
	}
}
