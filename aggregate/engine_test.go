package aggregate_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
	"github.com/healthlab-dev/healthlab/internal/queryoracle"
)

// tick makes n samples from an instant on, one every so often.
func tick(from string, n int, every time.Duration, offset int32, value func(int) float64) []series.Sample {
	out := make([]series.Sample, n)
	for i := range out {
		out[i] = series.Sample{Time: at(from) + int64(i)*every.Microseconds(), Value: value(i), Attrs: series.Attrs{Offset: offset}}
	}
	return out
}

func rising(i int) float64 { return float64(i) }

// Autumn: the clock goes back an hour, and two real hours share one bucket. Spring: an
// hour is left out, and has no bucket.
func TestBuckets_repeatedHourIsOneAndSkippedHourNone(t *testing.T) {
	p := queryoracle.NewPerson()
	k := key("heartrate", "acme_watch", healthdata.SourceWatch, "")
	p.Measure(t, k, series.PerMinute, false, tick("2026-10-25T00:00:00Z", 2, 30*time.Minute, 7200, func(int) float64 { return 50 })...)
	p.Measure(t, k, series.PerMinute, false, tick("2026-10-25T01:00:00Z", 2, 30*time.Minute, 3600, func(int) float64 { return 70 })...)
	s := service(t, p, nil)
	hourly := `{"select":[{"func":"count","arg":{"timeseries":"heartrate","field":"value"}},{"func":"mean","arg":{"timeseries":"heartrate","field":"value"}},` +
		`{"func":"newest","arg":{"timeseries":"heartrate","field":"value"}}],"group_by":[{"date_trunc":{"unit":"hour"},"arg":{"index":"timeseries"}}]}`
	require.JSONEq(t, `{"index":["2026-10-25T02:00:00"],"count":[4],"mean":[60],"newest":[70]}`, table(t, s, over("2", "2026-10-25", hourly)))

	p = queryoracle.NewPerson()
	p.Measure(t, k, series.PerMinute, false, tick("2026-03-29T00:30:00Z", 1, time.Minute, 3600, rising)...)
	p.Measure(t, k, series.PerMinute, false, tick("2026-03-29T01:00:00Z", 1, time.Minute, 7200, rising)...)
	require.JSONEq(t, `{"index":["2026-03-29T01:00:00","2026-03-29T03:00:00"],"count":[1,1],"mean":[0,0],"newest":[0,0]}`,
		table(t, service(t, p, nil), over("2", "2026-03-29", hourly)))
}

// The person's midnight is what counts, at both ends of the window, and on a journey.
func TestWindow_startsAndEndsAtThePersonsMidnight(t *testing.T) {
	p := queryoracle.NewPerson()
	k := key("heartrate", "acme_watch", healthdata.SourceWatch, "")
	p.Measure(t, k, series.PerSecond, false, // each in a chunk of its own
		series.Sample{Time: at("2026-02-28T14:59:59Z"), Value: 1, Attrs: series.Attrs{Offset: 32400}},  // 23:59:59 the day before
		series.Sample{Time: at("2026-02-28T15:00:00Z"), Value: 2, Attrs: series.Attrs{Offset: 32400}},  // midnight in the east
		series.Sample{Time: at("2026-03-02T07:59:59Z"), Value: 4, Attrs: series.Attrs{Offset: -28800}}, // 23:59:59 in the west
		series.Sample{Time: at("2026-03-02T08:00:00Z"), Value: 8, Attrs: series.Attrs{Offset: -28800}}, // midnight behind it
	)
	s := service(t, p, nil)
	q := `{"select":[{"func":"sum","arg":{"timeseries":"heartrate","field":"value"}}`
	require.JSONEq(t, `{"index":[0],"sum":[6]}`, table(t, s, over("1", "2026-03-01", q+`]}`)))
	require.JSONEq(t, `{"index":[0],"sum":[6],"median":[3]}`, table(t, s, over("1", "2026-03-01", q+`,{"func":"median","arg":{"timeseries":"heartrate","field":"value"}}]}`)))
}

// Of samples with equal clock times the better source wins, then the type that comes first;
// within one series, whose clock was set back, the later instant wins. Both paths agree.
func TestQuery_tieOfSamplesIsDecidedBySourceThenType(t *testing.T) {
	lipid := func(provider string, st healthdata.SourceType, part string) healthdata.SeriesKey {
		return key("cholesterol", provider, st, "cholesterol/"+part)
	}
	rows := []struct {
		name           string
		put            func(p *queryoracle.Person)
		oldest, newest float64
	}{
		{"types", func(p *queryoracle.Person) {
			for i, part := range []string{"hdl", "ldl"} {
				p.Measure(t, lipid("northlab", healthdata.SourceLab, part), series.Sparse, false,
					series.Sample{Time: at("2026-03-01T08:00:00Z"), Value: float64(1 + i), Attrs: series.Attrs{Type: "cholesterol/" + part}})
			}
		}, 1, 1},
		{"sources", func(p *queryoracle.Person) {
			for i, st := range []healthdata.SourceType{healthdata.SourceManualScan, healthdata.SourceLab} {
				p.Measure(t, lipid("northlab", st, "hdl"), series.Sparse, false, series.Sample{Time: at("2026-03-01T08:00:00Z"), Value: float64(1 + i)})
			}
		}, 2, 2},
		{"a clock set back", func(p *queryoracle.Person) {
			p.Measure(t, lipid("northlab", healthdata.SourceLab, "hdl"), series.Sparse, false,
				series.Sample{Time: at("2026-03-01T08:00:00Z"), Value: 1, Attrs: series.Attrs{Offset: 3600}},
				series.Sample{Time: at("2026-03-01T09:00:00Z"), Value: 2})
		}, 1, 2},
	}
	for _, r := range rows {
		p := queryoracle.NewPerson()
		r.put(p)
		for _, more := range []aggregate.Func{aggregate.Mean, aggregate.Median} {
			v := aggregate.Samples("cholesterol")
			out, err := service(t, p, nil).Query(t.Context(), team, user, aggregate.Ask(aggregate.Last(2, date("2026-03-02")), aggregate.Query{
				Select: []aggregate.Expr{aggregate.Oldest.Of(v), aggregate.Newest.Of(v), more.Of(v)},
			}))
			require.NoError(t, err)
			require.InDelta(t, r.oldest, columnOf(t, &out.Frames[0], "oldest").Float(0), 0, "%s %s", r.name, more)
			require.InDelta(t, r.newest, columnOf(t, &out.Frames[0], "newest").Float(0), 0, "%s %s", r.name, more)
		}
	}
}

// The aggregates of the parts of a range, combined, are those of the whole range, wherever it
// is cut.
func TestQuery_partsOfARangeAddUpToTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := queryoracle.Draw(t, true)
		s := service(t, w.Person, nil)
		ask := func(anchor healthlab.Date, n int64) *aggregate.Frame {
			v := aggregate.Samples("steps")
			req := aggregate.Ask(aggregate.Last(n, anchor), aggregate.Query{Select: []aggregate.Expr{
				aggregate.Count.Of(v), aggregate.Sum.Of(v), aggregate.Min.Of(v), aggregate.Max.Of(v),
			}})
			out, err := s.Query(t.Context(), team, user, req)
			require.NoError(t, err)
			return &out.Frames[0]
		}
		end := date("2026-05-10")
		cut := rapid.Int64Range(1, 59).Draw(t, "cut")
		whole, late, early := ask(end, 60), ask(end, cut), ask(end.AddDays(-int(cut)), 60-cut)
		require.Equal(t, columnOf(t, whole, "count").Int(0), columnOf(t, late, "count").Int(0)+columnOf(t, early, "count").Int(0))
		sum, least, most := 0.0, []float64{}, []float64{}
		for _, f := range []*aggregate.Frame{late, early} {
			if columnOf(t, f, "count").Int(0) > 0 {
				sum += columnOf(t, f, "sum").Float(0)
				least, most = append(least, columnOf(t, f, "min").Float(0)), append(most, columnOf(t, f, "max").Float(0))
			}
		}
		if len(least) > 0 {
			require.InDelta(t, columnOf(t, whole, "sum").Float(0), sum, 1e-9*sum)
			require.InDelta(t, columnOf(t, whole, "min").Float(0), slices.Min(least), 0)
			require.InDelta(t, columnOf(t, whole, "max").Float(0), slices.Max(most), 0)
		}
	})
}

// The answer has the same bytes however the samples are stored.
func TestQuery_answerDoesNotDependOnHowSamplesAreStored(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	samples := tick("2026-03-01T00:00:00Z", 5000, 97*time.Second, 3600, func(int) float64 { return r.Float64() * 100 })
	body := over("10", "2026-03-08", `{"select":[{"group_key":"*"},{"func":"sum","arg":{"timeseries":"heartrate","field":"value"}},`+
		`{"func":"mean","arg":{"timeseries":"heartrate","field":"value"}},{"func":"newest","arg":{"timeseries":"heartrate","field":"value"}}],`+
		`"group_by":[{"date_trunc":{"unit":"day"},"arg":{"index":"timeseries"}}]}`+
		`,{"select":[{"func":"stddev","arg":{"timeseries":"heartrate","field":"value"}},{"func":"median","arg":{"timeseries":"heartrate","field":"value"}},`+
		`{"func":"sum","arg":{"timeseries":"heartrate","field":"value"}}]}`)
	var first string
	for i := range 12 {
		p := queryoracle.NewPerson()
		shuffled := slices.Clone(samples)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		span := []series.Span{series.PerSecond, series.PerTenSeconds, series.PerMinute, series.Sparse}[i%4]
		cut := r.IntN(len(shuffled))
		for n, part := range [][]series.Sample{shuffled[:cut], shuffled[cut:]} {
			p.Measure(t, key("heartrate", "acme_watch", healthdata.SourceWatch, ""), span, n == 1 && i%3 == 0, part...)
		}
		got := ask(t, service(t, p, nil), body)
		if first == "" {
			first = got
		}
		require.Equal(t, first, got, "storage %d", i)
	}
}

// busy is a person with enough samples to make several goroutines worth it: one every
// second, encoded chunk by chunk.
func busy(t *testing.T) *queryoracle.Person {
	p := queryoracle.NewPerson()
	r := rand.New(rand.NewPCG(5, 6))
	const n, size = 1_100_000, 5400
	st, start := &queryoracle.Stored{}, at("2026-03-01T00:00:00Z")
	var b series.Block
	for i := 0; i < n; i += size {
		b.Reset()
		for k := i; k < min(i+size, n); k++ {
			b.Time = append(b.Time, start+int64(k)*1e6)
			b.Value = append(b.Value, float64(60+r.IntN(40))/3)
		}
		b.Runs = append(b.Runs, series.Run{N: b.Len(), Attrs: series.Attrs{Offset: 3600}})
		c, err := series.NewChunk(&b)
		require.NoError(t, err)
		st.Chunks = append(st.Chunks, c)
	}
	p.Series[key("heartrate", "acme_watch", healthdata.SourceWatch, "")] = st
	return p
}

// The answer has the same bytes with one goroutine and with many.
func TestQuery_answerDoesNotDependOnParallelism(t *testing.T) {
	p := busy(t)
	k := key("heartrate", "acme_watch", healthdata.SourceWatch, "")
	p.Measure(t, k, series.PerSecond, true, tick("2026-03-04T07:00:00Z", 500, time.Second, 3600, rising)...)
	for _, unit := range []string{"minute", "hour", "day", "month"} {
		body := over("20", "2026-03-20", `{"select":[{"func":"sum","arg":{"timeseries":"heartrate","field":"value"}},{"func":"oldest","arg":{"timeseries":"heartrate","field":"value"}},`+
			`{"func":"newest","arg":{"timeseries":"heartrate","field":"value"}},{"func":"count","arg":{"timeseries":"heartrate","field":"value"}}],`+
			`"group_by":[{"date_trunc":{"unit":"`+unit+`"},"arg":{"index":"timeseries"}}]}`)
		for _, body := range []string{body, strings.ReplaceAll(body, `"func":"sum"`, `"func":"stddev"`)} {
			one := ask(t, service(t, p, &aggregate.Options{Parallel: 1}), body)
			require.Equal(t, one, ask(t, service(t, p, &aggregate.Options{Parallel: 7}), body), unit)
		}
	}
}

// slowPerson ends the caller's context while chunks are loaded.
type slowPerson struct {
	*queryoracle.Person
	after  int
	cancel context.CancelFunc
}

func (p *slowPerson) View(ctx context.Context, t healthlab.TeamID, id healthlab.UserID, read func(healthdata.View) error) error {
	return p.Person.View(ctx, t, id, func(v healthdata.View) error { return read(slowView{v, p}) })
}

type slowView struct {
	healthdata.View
	p *slowPerson
}

func (v slowView) Load(ctx context.Context, k healthdata.SeriesKey, starts []int64) ([]series.Chunk, error) {
	if v.p.after--; v.p.after == 0 {
		v.p.cancel()
	}
	return v.View.Load(ctx, k, starts)
}

// Nothing more is read once the caller has gone, on either path and with any number of
// goroutines.
func TestQuery_cancelledContextStopsReading(t *testing.T) {
	data := busy(t)
	for _, f := range []aggregate.Func{aggregate.Sum, aggregate.Median} {
		for _, workers := range []int{1, 4} {
			ctx, cancel := context.WithCancel(t.Context())
			p := &slowPerson{Person: data, after: 3, cancel: cancel}
			s, err := aggregate.New(p, &aggregate.Options{Parallel: workers})
			require.NoError(t, err)
			data.Loads = 0
			req := aggregate.Ask(aggregate.Last(30, date("2026-03-30")), aggregate.Query{
				Select: []aggregate.Expr{f.Of(aggregate.Samples("heartrate"))}, GroupBy: []aggregate.Expr{aggregate.By(aggregate.Minutes(7))},
			})
			_, err = s.Query(ctx, team, user, req)
			require.ErrorIs(t, err, context.Canceled)
			require.Less(t, data.Loads, 3+2*workers)
			cancel()
		}
	}
}

// Days are answered from headers: only the chunks at their edges are read, and none of a
// source that loses everywhere.
func TestQuery_daysAreReadFromChunkHeaders(t *testing.T) {
	p := queryoracle.NewPerson()
	p.Measure(t, key("heartrate", "acme_watch", healthdata.SourceWatch, ""), series.PerSecond, false, tick("2026-03-01T00:00:00Z", 10*8640, 10*time.Second, 0, rising)...)
	p.Measure(t, key("heartrate", "acme_phone", healthdata.SourcePhone, ""), series.PerSecond, false, tick("2026-03-01T00:00:00Z", 12*8640, 10*time.Second, 0, rising)...)
	s := service(t, p, nil)
	req := aggregate.Ask(aggregate.Last(20, date("2026-03-20")), aggregate.Query{
		Select: []aggregate.Expr{aggregate.Mean.Of(aggregate.Samples("heartrate"))}, GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))},
	})
	req.Config.OverlapPolicy = aggregate.WinnerOnly
	out, err := s.Explain(t.Context(), team, user, req)
	require.NoError(t, err)
	require.Equal(t, 12, out.Frames[0].Len())
	e := out.Explain[0]
	require.Equal(t, 0, e.Decoded, e.String())
	require.Equal(t, 12*16, e.Chunks)
	require.Equal(t, 0, p.Loads)
	require.Equal(t, `table timeseries (heartrate)
window 2026-03-01T00:00:00 to 2026-03-21T00:00:00
path buckets: 192 chunks, 192 by header, 0 read
source 1: acme_watch watch
source 2: acme_phone phone (behind by source_type)
won 2026-03-01T00:00:00 to 2026-03-10T00:00:00 (10): acme_watch watch
won 2026-03-11T00:00:00 to 2026-03-12T00:00:00 (2): acme_phone phone`, e.String())
}

// Samples of a source that loses are not read, also where the winner's samples must be.
func TestQuery_samplesOfLowerPrioritySourcesAreNotRead(t *testing.T) {
	p := queryoracle.NewPerson()
	p.Measure(t, key("heartrate", "acme_watch", healthdata.SourceWatch, ""), series.PerMinute, false, tick("2026-03-01T00:00:00Z", 40*1440, time.Minute, 0, rising)...)
	s := service(t, p, nil)
	q := over("60", "2026-04-10", `{"select":[{"func":"median","arg":{"timeseries":"heartrate","field":"value"}}],"group_by":[{"date_trunc":{"unit":"week"},"arg":{"index":"timeseries"}}]}`)
	q = configured(q, `"overlap_policy":"winner"`)
	alone := table(t, s, q)
	loads := p.Loads
	p.Measure(t, key("heartrate", "acme_phone", healthdata.SourcePhone, ""), series.PerMinute, false, tick("2026-03-02T00:00:00Z", 30*1440, time.Minute, 0, rising)...)
	require.Equal(t, alone, table(t, s, q))
	require.Equal(t, 2*loads, p.Loads)
}

func TestQuery_moreValuesThanTheLimitAreRefused(t *testing.T) {
	p := queryoracle.NewPerson()
	p.Measure(t, key("heartrate", "acme_watch", healthdata.SourceWatch, ""), series.PerMinute, false, tick("2026-03-01T00:00:00Z", 20_000, time.Minute, 0, func(i int) float64 { return 1 / float64(i+1) })...)
	q := over("60", "2026-04-10", `{"select":[{"func":"median","arg":{"timeseries":"heartrate","field":"value"}}]}`)
	s := service(t, p, &aggregate.Options{Limits: aggregate.Limits{Values: 10_000}})
	req, err := s.Decode([]byte(q), false)
	require.NoError(t, err)
	_, err = s.Query(t.Context(), team, user, &req)
	require.Equal(t, []string{"too_many_values at queries.0"}, faults(t, err))
	// The middle two are 1/10001 and 1/10000.
	out, err := service(t, p, nil).Query(t.Context(), team, user, &req)
	require.NoError(t, err)
	require.InDelta(t, (1.0/10001+1.0/10000)/2, columnOf(t, &out.Frames[0], "median").Float(0), 1e-18)
}

func TestQuery_moreRowsThanTheLimitAreRefused(t *testing.T) {
	p := queryoracle.NewPerson()
	p.Measure(t, key("heartrate", "acme_watch", healthdata.SourceWatch, ""), series.PerMinute, false, tick("2026-03-01T00:00:00Z", 11, time.Minute, 0, rising)...)
	for i := range 11 {
		night(t, p, "acme_ring", healthdata.SourceRing, "2026-03-01T"+string([]byte{'0' + byte((i+2)/10), '0' + byte((i+2)%10)})+":00:00", time.Hour, nil)
	}
	s := service(t, p, &aggregate.Options{Limits: aggregate.Limits{Rows: 10}})
	v := aggregate.Samples("heartrate")
	for _, q := range []aggregate.Query{
		{Select: []aggregate.Expr{aggregate.Sum.Of(v)}, GroupBy: []aggregate.Expr{aggregate.By(aggregate.Minutes(1))}},
		{Select: []aggregate.Expr{aggregate.Median.Of(v)}, GroupBy: []aggregate.Expr{aggregate.By(aggregate.Minutes(1))}},
		{Select: []aggregate.Expr{v}},
		{Select: []aggregate.Expr{aggregate.Col("sleep", "type")}},
		{
			Select: []aggregate.Expr{aggregate.Keys(), aggregate.Count.Of(aggregate.Col("sleep", "type"))}, GroupBy: []aggregate.Expr{aggregate.By(aggregate.Hours(1))},
			Align: &aggregate.Align{Mode: aggregate.CarryForward, Limit: ptr(aggregate.Days(1))},
		},
	} {
		_, err := s.Query(t.Context(), team, user, aggregate.Ask(aggregate.Last(3, date("2026-03-02")), q))
		require.Equal(t, []string{"too_many_rows at queries.0"}, faults(t, err))
	}
}

// A sample holds until the next one, but not over a long gap.
func TestTimeFunctions_valueLastsUntilTheNextSampleOrALongGap(t *testing.T) {
	p := queryoracle.NewPerson()
	k := key("glucose", "acme_cgm", healthdata.SourceAutomatic, "")
	sample := func(at_ string, v float64) series.Sample { return series.Sample{Time: at(at_), Value: v} }
	p.Measure(t, k, series.PerFiveMinutes, false,
		sample("2026-03-01T08:00:00Z", 5), sample("2026-03-01T08:05:00Z", 12), sample("2026-03-01T08:06:00Z", 5),
		sample("2026-03-01T09:00:00Z", 3), sample("2026-03-01T09:05:00Z", 4))
	s := service(t, p, nil)
	v := aggregate.Samples("glucose")
	ask := func() *aggregate.Frame {
		out, err := s.Query(t.Context(), team, user, aggregate.Ask(aggregate.Last(1, date("2026-03-01")), aggregate.Query{Select: []aggregate.Expr{
			aggregate.InRange(v, 3.9, 10), aggregate.TimeWeightedMean.Of(v), aggregate.Percentile(25).Of(v),
		}}))
		require.NoError(t, err)
		return &out.Frames[0]
	}
	f := ask()
	// Held, in minutes: 5, 1, 5 (five times the minute before it), 5, 5. In range: all
	// but the second and the fourth.
	require.InDelta(t, 100*15.0/21, f.Columns[1].Float(0), 1e-12)
	require.InDelta(t, (5*5+12+5*5+3*5+4*5)/21.0, f.Columns[2].Float(0), 1e-12)
	require.InDelta(t, 4, f.Columns[3].Float(0), 0)
	// The same in a log of segments, where blocks are cut elsewhere.
	all := p.Series[k].Chunks
	p.Series[k] = &queryoracle.Stored{}
	p.Measure(t, k, series.PerSecond, false, decodeAll(t, all)[:2]...)
	p.Measure(t, k, series.PerSecond, true, decodeAll(t, all)[2:]...)
	g := ask()
	for i := range f.Columns {
		require.Equal(t, f.Columns[i].Value(0), g.Columns[i].Value(0))
	}
}

func decodeAll(t *testing.T, chunks []series.Chunk) (out []series.Sample) {
	var b series.Block
	for i := range chunks {
		require.NoError(t, chunks[i].Decode(&b))
		for _, s := range b.All() {
			out = append(out, s)
		}
	}
	return out
}

// Several resources in one query are rows side by side, each with its own source.
func TestQuery_severalResourcesAreRowsSideBySide(t *testing.T) {
	p := steps(t)
	p.Measure(t, key("glucose", "acme_cgm", healthdata.SourceAutomatic, ""), series.PerMinute, false, tick("2026-03-01T08:00:00Z", 4, 30*time.Minute, 0, rising)...)
	s := service(t, p, nil)
	got := table(t, s, over("2", "2026-03-01", `{"select":[{"func":"sum","arg":{"timeseries":"steps","field":"value"}},{"func":"mean","arg":{"timeseries":"glucose","field":"value"}},`+
		`{"func":"count","arg":{"index":"timeseries"}}],"group_by":[{"date_trunc":{"unit":"day"},"arg":{"index":"timeseries"}}]}`))
	require.JSONEq(t, `{"index":["2026-03-01T00:00:00"],"sum":[1400],"mean":[1.5],"count":[8]}`, got)
	got = table(t, s, over("2", "2026-03-01", `{"select":[{"timeseries":"steps","field":"value"},{"timeseries":"glucose","field":"value"}],"where":"source_type = 'watch' OR glucose.value >= 2"}`))
	require.JSONEq(t, `{"index":["2026-03-01T08:30:00","2026-03-01T09:00:00","2026-03-01T09:30:00"],"steps.value":[700,null,null],"glucose.value":[null,2,3]}`, got)
}

func TestQuery_noteTagsAreCounted(t *testing.T) {
	p := queryoracle.NewPerson()
	k := key("note", "acme_app", healthdata.SourceApp, "")
	p.Measure(t, k, series.Sparse, false,
		series.Sample{Time: at("2026-03-01T08:00:00Z"), End: at("2026-03-01T08:00:01Z"), Attrs: series.Attrs{Text: "porridge", Tags: "food"}},
		series.Sample{Time: at("2026-03-01T09:00:00Z"), End: at("2026-03-01T09:00:01Z"), Attrs: series.Attrs{Text: "a walk", Tags: "exercise,food"}},
		series.Sample{Time: at("2026-03-01T10:00:00Z"), End: at("2026-03-01T10:00:01Z"), Attrs: series.Attrs{Text: "nothing"}})
	s := service(t, p, nil)
	tags := `{"select":{"func":"count","arg":{"element":true}},"from":{"unnest":{"timeseries":"note","field":"tags"}},"where":"element = 'food'"}`
	got := table(t, s, over("2", "2026-03-01", `{"select":[{"timeseries":"note","field":"content"},`+tags+`]}`))
	require.JSONEq(t, `{"index":["2026-03-01T08:00:00","2026-03-01T09:00:00","2026-03-01T10:00:00"],
		"note.content":["porridge","a walk","nothing"],"count.note.tags.element":[1,1,0]}`, got)
	got = table(t, s, over("2", "2026-03-01", `{"select":[{"func":"sum","arg":`+tags+`},{"func":"max","arg":{"timeseries":"note","field":"content"}}]}`))
	require.JSONEq(t, `{"index":[0],"sum":[2],"max":["porridge"]}`, got)
}

// The hot path allocates for its result and its tasks, not for samples or buckets.
func TestQuery_allocatesForResultsNotForSamples(t *testing.T) {
	p := queryoracle.NewPerson()
	p.Measure(t, key("heartrate", "acme_watch", healthdata.SourceWatch, ""), series.PerSecond, false, tick("2026-03-01T00:00:00Z", 20*8640, 10*time.Second, 3600, func(i int) float64 { return float64(60 + i%80) })...)
	s := service(t, p, &aggregate.Options{Parallel: 1})
	for _, c := range []struct {
		name   string
		by     aggregate.Period
		fn     aggregate.Func
		budget float64
	}{
		{"day", aggregate.Days(1), aggregate.Mean, 200},
		{"hour", aggregate.Hours(1), aggregate.Mean, 210},
		{"minute", aggregate.Minutes(1), aggregate.Mean, 300},
		{"median", aggregate.Days(1), aggregate.Median, 700},
	} {
		req := aggregate.Ask(aggregate.Last(21, date("2026-03-21")), aggregate.Query{Select: []aggregate.Expr{c.fn.Of(aggregate.Samples("heartrate"))}, GroupBy: []aggregate.Expr{aggregate.By(c.by)}})
		got := testing.AllocsPerRun(3, func() {
			if _, err := s.Query(context.Background(), team, user, req); err != nil {
				t.Fatal(err)
			}
		})
		require.LessOrEqual(t, got, c.budget, c.name)
	}
}

func TestQuery_refusesUnknownUsersAndTeamsWithoutTheFeature(t *testing.T) {
	s := service(t, queryoracle.NewPerson(), nil)
	req := aggregate.Ask(aggregate.Last(1, date("2026-03-01")), aggregate.Query{Select: []aggregate.Expr{aggregate.Count.Of(aggregate.Index{Table: "sleep"})}})
	_, err := s.Query(t.Context(), team, healthlab.UserID(team), req)
	require.ErrorIs(t, err, healthlab.NotFound)
	s = service(t, queryoracle.NewPerson(), &aggregate.Options{Enabled: func(context.Context, healthlab.TeamID) (bool, error) { return false, nil }})
	_, err = s.Query(t.Context(), team, user, req)
	require.ErrorIs(t, err, healthlab.Forbidden)
	_, err = aggregate.New(nil, nil)
	require.ErrorIs(t, err, healthlab.Invalid)
}

// The answer names the winning sources on every path: by headers, by samples, and of
// summaries.
func TestExplain_namesTheWinningSources(t *testing.T) {
	p := queryoracle.NewPerson()
	p.Measure(t, key("heartrate", "acme_watch", healthdata.SourceWatch, ""), series.PerMinute, false, tick("2026-03-01T00:00:00Z", 2*1440, time.Minute, 0, rising)...)
	p.Measure(t, key("heartrate", "acme_phone", healthdata.SourcePhone, ""), series.PerMinute, false, tick("2026-03-01T00:00:00Z", 5*1440, time.Minute, 0, rising)...)
	p.Measure(t, key("glucose", "acme_phone", healthdata.SourcePhone, ""), series.PerMinute, false, tick("2026-03-02T00:00:00Z", 10, time.Minute, 0, rising)...)
	for d := range 3 {
		day := time.Date(2026, 3, 1+d, 0, 0, 0, 0, time.UTC)
		p.Put(t, "activity", "acme_phone", healthdata.SourcePhone, day, 0, &healthdata.Activity{CalendarDate: healthlab.DateOf(day), Steps: ptr(int64(1))})
		if d == 1 {
			p.Put(t, "activity", "acme_watch", healthdata.SourceWatch, day, 0, &healthdata.Activity{CalendarDate: healthlab.DateOf(day), Steps: ptr(int64(2))})
		}
	}
	s := service(t, p, nil)
	watch, phone := aggregate.Source{Provider: "acme_watch", Type: "watch"}, aggregate.Source{Provider: "acme_phone", Type: "phone"}
	explain := func(by []aggregate.Expr, sel ...aggregate.Expr) aggregate.Explanation {
		req := aggregate.Ask(aggregate.Last(5, date("2026-03-05")), aggregate.Query{Select: sel, GroupBy: by})
		req.Config.OverlapPolicy = aggregate.WinnerOnly
		out, err := s.Explain(t.Context(), team, user, req)
		require.NoError(t, err)
		return out.Explain[0]
	}
	days := []aggregate.Expr{aggregate.By(aggregate.Days(1))}
	heart := aggregate.Samples("heartrate")
	want := []aggregate.Winner{
		{From: "2026-03-01T00:00:00", To: "2026-03-02T00:00:00", Buckets: 2, Source: watch},
		{From: "2026-03-03T00:00:00", To: "2026-03-05T00:00:00", Buckets: 3, Source: phone},
	}
	e := explain(days, aggregate.Mean.Of(heart))
	require.Equal(t, "buckets", e.Path)
	require.Equal(t, want, e.Winners)
	e = explain(days, aggregate.Median.Of(heart))
	require.Equal(t, "samples", e.Path)
	require.Equal(t, want, e.Winners)
	e = explain([]aggregate.Expr{aggregate.ByPart(aggregate.HourOfDay), days[0]}, aggregate.Mean.Of(heart))
	require.Equal(t, want, e.Winners)

	e = explain(days, aggregate.Sum.Of(aggregate.Col("activity", "steps")))
	require.Equal(t, "rows", e.Path)
	require.Equal(t, []aggregate.Winner{
		{From: "2026-03-01T00:00:00", To: "2026-03-01T00:00:00", Buckets: 1, Source: phone},
		{From: "2026-03-02T00:00:00", To: "2026-03-02T00:00:00", Buckets: 1, Source: watch},
		{From: "2026-03-03T00:00:00", To: "2026-03-03T00:00:00", Buckets: 1, Source: phone},
	}, e.Winners)

	e = explain(days, aggregate.Count.Of(heart), aggregate.Sum.Of(aggregate.Samples("glucose")))
	want[0].Resource, want[1].Resource = "heartrate", "heartrate"
	want = append([]aggregate.Winner{{From: "2026-03-02T00:00:00", To: "2026-03-02T00:00:00", Buckets: 1, Source: phone, Resource: "glucose"}}, want...)
	require.Equal(t, want, e.Winners)

	e = explain(nil, aggregate.Mean.Of(heart))
	require.Empty(t, e.Winners, "without groups all sources count")
}

func columnOf(t require.TestingT, f *aggregate.Frame, name string) *aggregate.Column {
	c, err := f.Column(name)
	require.NoError(t, err)
	return c
}

// A column that the result does not have is an error that names those it has.
func TestFrame_unknownColumnErrorNamesTheColumns(t *testing.T) {
	mean, err := aggregate.NewColumn("mean", tables.TypeFloat64, []any{1.5})
	require.NoError(t, err)
	f := aggregate.Frame{Columns: []aggregate.Column{mean}}
	require.InDelta(t, 1.5, columnOf(t, &f, "mean").Float(0), 0)
	c, err := f.Column("average")
	require.Nil(t, c)
	require.ErrorIs(t, err, healthlab.Invalid)
	require.ErrorContains(t, err, `no column "average"; its columns are mean`)
}

// A bucket of days, weeks, months and years is a healthlab.Date, a bucket of hours a time; also in a frame that was
// stored, and in a part of one.
func TestColumn_bucketsOfDaysAreDates(t *testing.T) {
	s := service(t, robin(), nil)
	for _, value := range []aggregate.Expr{aggregate.Samples("steps"), aggregate.Index{Table: "sleep"}} {
		for unit, want := range map[aggregate.Unit]any{
			aggregate.Hour: time.Time{}, aggregate.Day: healthlab.Date{}, aggregate.Week: healthlab.Date{}, aggregate.Month: healthlab.Date{}, aggregate.Year: healthlab.Date{},
		} {
			out, err := s.Query(t.Context(), team, user, aggregate.Ask(aggregate.Last(28, date("2026-03-15")), aggregate.Query{
				Select:  []aggregate.Expr{aggregate.Keys(), aggregate.Count.Of(value)},
				GroupBy: []aggregate.Expr{aggregate.By(aggregate.Period{Unit: unit})},
			}))
			require.NoError(t, err)
			f := &out.Frames[0]
			require.NotZero(t, f.Len())
			stored, err := f.MarshalBinary()
			require.NoError(t, err)
			var read aggregate.Frame
			require.NoError(t, read.UnmarshalBinary(stored))
			part := f.Pick([]int{0})
			for _, f := range []*aggregate.Frame{f, &read, &part} {
				for _, c := range f.Columns[:2] { // the index and the key
					require.IsType(t, want, c.Value(0), "%s of %s", c.Name, unit)
					if at, ok := c.Value(0).(healthlab.Date); ok {
						require.Equal(t, c.Date(0), at)
					}
				}
			}
		}
	}
}
