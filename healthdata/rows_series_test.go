package healthdata_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/memory/memstore"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/store"
)

// metered counts what the transactions of a store put.
type metered struct {
	store.Store
	rows, bytes int
}

type meteredTx struct {
	store.Tx
	of *metered
}

func (m *metered) Update(ctx context.Context, run func(context.Context, store.Tx) error) error {
	return m.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return run(ctx, meteredTx{tx, m}) })
}

func (t meteredTx) Put(rows ...store.Row) {
	for _, r := range rows {
		t.of.rows++
		t.of.bytes += len(r.Doc) + len(r.ID)
	}
	t.Tx.Put(rows...)
}

// lane is a store in memory with one live user.
type lane struct {
	s    *metered
	data healthdata.Data
	user healthdata.User
}

func newLane(t testing.TB, opts *healthdata.DataOptions) *lane {
	engine, err := memstore.New(append(healthdata.DataTables(false), healthdata.UserTables()...), nil)
	require.NoError(t, err)
	l := &lane{s: &metered{Store: engine}, user: healthdatatest.LiveUser(healthlab.TeamID{UUID: uuid.New()}, "ann")}
	l.data = healthdata.NewData(l.s, opts)
	require.NoError(t, healthdata.NewUsers(l.s, nil).Insert(t.Context(), l.user, 0))
	return l
}

func (l *lane) merge(ctx context.Context, span series.Span, samples ...series.Sample) (out series.Outcome, err error) {
	b := healthdatatest.Batch(healthdatatest.Steps, samples...)
	b.Span = span
	err = l.data.MergeSamples(ctx, l.user.Team, l.user.ID, []healthdata.SampleBatch{b}, func(o []series.Outcome) ([]healthlab.Event, error) {
		out = o[0]
		return nil, nil
	})
	return out, err
}

// read returns all samples of the series and checks what holds for its chunks.
func (l *lane) read(ctx context.Context) (out []series.Sample, err error) {
	err = l.data.View(ctx, l.user.Team, l.user.ID, func(v healthdata.View) error {
		out = nil
		all, err := v.Series(ctx, healthdata.SeriesQuery{Resources: []string{"steps"}})
		if err != nil || len(all) == 0 {
			return err
		}
		s := all[0]
		var starts []int64
		for i, c := range s.Chunks {
			if i > 0 && c.Start <= s.Chunks[i-1].Stop {
				return errors.New("chunks overlap")
			}
			starts = append(starts, c.Start)
		}
		chunks, err := v.Load(ctx, s.Key, starts)
		if err != nil {
			return err
		}
		for i := range chunks {
			var b series.Block
			if err := chunks[i].Decode(&b); err != nil {
				return err
			}
			again, err := series.NewChunk(&b)
			if err != nil {
				return err
			}
			if again.Header != s.Chunks[i].Header {
				return errors.New("a header is not that of its chunk")
			}
			for _, sm := range b.All() {
				out = append(out, sm)
			}
		}
		return nil
	})
	return out, err
}

// Random writes of one series keep what a map keeps, whatever the lengths of batches and the grid.
func TestSeriesOverRows_randomWritesStoreWhatAMapWould(t *testing.T) {
	ctx := t.Context()
	rapid.Check(t, func(r *rapid.T) {
		l, model, at := newLane(t, nil), map[int64]series.Sample{}, 0
		span := rapid.SampledFrom([]series.Span{series.PerSecond, series.PerTenSeconds, series.PerMinute, series.Sparse}).Draw(r, "span")
		check := func(r *rapid.T) {
			got, err := l.read(ctx)
			require.NoError(r, err)
			require.Len(r, got, len(model))
			for _, s := range got {
				if s != model[s.Time] { // comparing all with require takes seconds
					require.Equal(r, model[s.Time], s)
				}
			}
		}
		r.Repeat(map[string]func(*rapid.T){
			"append": func(r *rapid.T) {
				at += rapid.SampledFrom([]int{0, 1, 1, 1, 60, 1500, 30_000}).Draw(r, "gap")
				n := rapid.SampledFrom([]int{1, 1, 1, 5, 100, 255, 256, 257, 700}).Draw(r, "n")
				l.put(ctx, r, span, model, at, n, 1)
				at += n
			},
			"late": func(r *rapid.T) {
				from := rapid.IntRange(max(0, at-40_000), at+10).Draw(r, "from")
				l.put(ctx, r, span, model, from, rapid.IntRange(1, 50).Draw(r, "n"), rapid.SampledFrom([]int{1, 3, 2000}).Draw(r, "step"))
			},
			"long texts": func(r *rapid.T) {
				in := healthdatatest.Sample(at, 1)
				in.Text = string(slices.Repeat([]byte("x"), 3000))
				at++
				_, err := l.merge(ctx, span, in)
				require.NoError(r, err)
				model[in.Time] = in
			},
			"remove": func(r *rapid.T) {
				var times []int64
				want := 0
				from, n := rapid.IntRange(max(0, at-3000), at).Draw(r, "from"), rapid.SampledFrom([]int{1, 20, 3000}).Draw(r, "n")
				for i := range n {
					time := healthdatatest.Sample(from+i, 0).Time
					if _, ok := model[time]; ok {
						want++
						delete(model, time)
					}
					times = append(times, time)
				}
				got, err := l.data.Remove(ctx, l.user.Team, l.user.ID, healthdata.Removal{
					Samples: []healthdata.SampleRemoval{{Key: healthdatatest.Steps, Times: times, Span: span}},
				})
				require.NoError(r, err)
				require.Equal(r, want, got)
			},
			"another grid": func(r *rapid.T) {
				span = rapid.SampledFrom([]series.Span{series.PerSecond, series.PerMinute, series.Sparse}).Draw(r, "span")
			},
			"read": check,
		})
		check(r)
	})
}

// put merges n samples and compares the outcome with that of the model.
func (l *lane) put(ctx context.Context, r *rapid.T, span series.Span, model map[int64]series.Sample, from, n, step int) {
	value := rapid.SampledFrom([]float64{1, 2.5, -7}).Draw(r, "value")
	var in []series.Sample
	var want [3]int
	for i := range n {
		s := healthdatatest.Sample(from+i*step, value)
		switch was, ok := model[s.Time]; {
		case !ok:
			want[0]++
		case was != s:
			want[1]++
		default:
			want[2]++
		}
		model[s.Time] = s
		in = append(in, s)
	}
	o, err := l.merge(ctx, span, in...)
	require.NoError(r, err)
	require.Equal(r, want, [3]int{o.New, o.Changed, o.Same})
}

// Late writes on grids of other lengths keep the chunks of a series and its open chunk apart.
func TestSeriesOverRows_lateWritesWithAnotherSpanLoseNoSample(t *testing.T) {
	l, ctx := newLane(t, nil), t.Context()
	want := map[int64]bool{}
	for _, w := range []struct {
		span          series.Span
		from, n, step int
	}{
		{series.PerSecond, 0, 700, 1},
		{series.PerSecond, 700, 700, 1},
		{series.PerSecond, 31_400, 255, 1},
		{series.PerSecond, 61_655, 255, 1},
		{series.PerSecond, 91_910, 255, 1},
		{series.PerSecond, 122_165, 1, 1},
		{series.Sparse, 122_166, 700, 1},
		{series.Sparse, 122_867, 257, 1},
		{series.Sparse, 123_184, 1, 1},
		{series.Sparse, 123_245, 5, 1},
		{series.PerSecond, 83_281, 3, 2000},
		{series.PerMinute, 99_052, 3, 2000},
		{series.PerMinute, 120_371, 1, 1},
	} {
		var in []series.Sample
		for i := range w.n {
			in = append(in, healthdatatest.Sample(w.from+i*w.step, 1))
			want[in[i].Time] = true
		}
		_, err := l.merge(ctx, w.span, in...)
		require.NoError(t, err)
		got, err := l.read(ctx)
		require.NoError(t, err)
		require.Len(t, got, len(want))
	}
}

// A sample that is appended puts the head alone, which stays small; once in some hundreds, a chunk. A
// batch that changes nothing puts nothing.
func TestSeriesOverRows_appendWritesOneRow(t *testing.T) {
	l, ctx := newLane(t, nil), t.Context()
	const n = 3000
	l.s.rows, l.s.bytes = 0, 0
	most := 0
	for i := range n {
		was := l.s.bytes
		_, err := l.merge(ctx, series.PerMinute, healthdatatest.Sample(i, float64(60+i%40)))
		require.NoError(t, err)
		most = max(most, l.s.bytes-was)
	}
	t.Logf("%d bytes and %.2f rows an append, %d at most", l.s.bytes/n, float64(l.s.rows)/n, most)
	require.Less(t, l.s.bytes/n, 800)
	require.Less(t, float64(l.s.rows)/n, 1.1)
	l.s.rows = 0
	for _, i := range []int{0, n / 2, n - 1} {
		o, err := l.merge(ctx, series.PerMinute, healthdatatest.Sample(i, float64(60+i%40)))
		require.NoError(t, err)
		require.True(t, o.Idle())
	}
	require.Zero(t, l.s.rows)
	got, err := l.read(ctx)
	require.NoError(t, err)
	require.Len(t, got, n)
}

// A range finds the chunk that begins before it, and no other that it does not overlap.
func TestSeriesOverRows_rangeReadsOnlyOverlappingChunks(t *testing.T) {
	l, ctx := newLane(t, nil), t.Context()
	var all []series.Sample
	for i := range 20_000 {
		all = append(all, healthdatatest.Sample(i, 1))
	}
	_, err := l.merge(ctx, series.PerMinute, all...)
	require.NoError(t, err)
	require.NoError(t, l.data.View(ctx, l.user.Team, l.user.ID, func(v healthdata.View) error {
		list, err := v.Series(ctx, healthdata.SeriesQuery{Resources: []string{"steps"}})
		require.NoError(t, err)
		chunks := list[0].Chunks
		require.Greater(t, len(chunks), 3)
		for i, c := range chunks {
			for _, r := range []series.Range{{From: c.Start, To: c.Start + 1}, {From: c.Start + 1, To: c.Stop}, {From: c.Stop, To: c.Stop + 1}} {
				got, err := v.Series(ctx, healthdata.SeriesQuery{Resources: []string{"steps"}, From: r.From, To: r.To})
				require.NoError(t, err)
				require.Equal(t, chunks[i:i+1], got[0].Chunks)
			}
		}
		return nil
	}))
}

// A view that meets a write at every run is read in the end while writers of the user wait.
func TestView_readSucceedsEventuallyDespiteConcurrentWrites(t *testing.T) {
	l, ctx := newLane(t, nil), t.Context()
	_, err := l.merge(ctx, series.PerMinute, healthdatatest.Sample(0, 1))
	require.NoError(t, err)
	runs, writes := 0, make(chan error, 100)
	var one, two []healthdata.Series
	require.NoError(t, l.data.View(ctx, l.user.Team, l.user.ID, func(v healthdata.View) (err error) {
		runs++
		q := healthdata.SeriesQuery{Resources: []string{"steps"}}
		if one, err = v.Series(ctx, q); err != nil {
			return err
		}
		written := make(chan struct{})
		go func(i int) {
			_, err := l.merge(ctx, series.PerMinute, healthdatatest.Sample(i, 1))
			writes <- err
			close(written)
		}(runs)
		select {
		case <-written:
		case <-time.After(50 * time.Millisecond):
		}
		two, err = v.Series(ctx, q)
		return err
	}))
	require.Equal(t, one, two)
	require.Equal(t, runs, one[0].Chunks[0].N, "the last run saw the writes of all before it")
	require.Greater(t, runs, 2)
	for range runs {
		require.NoError(t, <-writes)
	}
	// An error that the view gave and read dropped does not make a run count.
	runs = 0
	require.NoError(t, l.data.View(ctx, l.user.Team, l.user.ID, func(v healthdata.View) error {
		runs++
		_, _ = v.Records(ctx, healthdata.RecordQuery{Resource: "sleep"})
		if runs == 1 {
			require.NoError(t, l.data.PutRecords(ctx, l.user.Team, l.user.ID, []healthdata.Record{healthdatatest.Record("sleep", time.Unix(0, 0))}, nil))
		}
		_, _ = v.Series(ctx, healthdata.SeriesQuery{Resources: []string{"steps"}})
		return nil
	}))
	require.Equal(t, 2, runs)

	// A read that cannot take back what it passed on fails.
	runs = 0
	require.ErrorIs(t, l.data.View(ctx, l.user.Team, l.user.ID, healthdata.Once(func(v healthdata.View) error {
		runs++
		if _, err := v.Records(ctx, healthdata.RecordQuery{Resource: "sleep"}); err != nil {
			return err
		}
		require.NoError(t, l.data.PutRecords(ctx, l.user.Team, l.user.ID, []healthdata.Record{healthdatatest.Record("sleep", time.Unix(0, 0))}, nil))
		_, err := v.Records(ctx, healthdata.RecordQuery{Resource: "sleep"})
		return err
	})), healthlab.Unavailable)
	require.Equal(t, 1, runs)
}

// A store whose users are kept elsewhere takes those that it does not know.
func TestData_acceptsUnknownUsersIfUsersAreStoredElsewhere(t *testing.T) {
	l, ctx := newLane(t, &healthdata.DataOptions{UsersElsewhere: true}), t.Context()
	healthdatatest.DeleteUser(t, healthdata.NewUsers(l.s, nil), l.user.Team, l.user.ID)
	_, err := l.merge(ctx, series.PerMinute, healthdatatest.Sample(0, 1))
	require.ErrorIs(t, err, healthlab.NotFound, "deleted")
	l.user.ID = healthlab.UserID{UUID: uuid.New()}
	_, err = l.merge(ctx, series.PerMinute, healthdatatest.Sample(0, 1))
	require.NoError(t, err)
	got, err := l.read(ctx)
	require.NoError(t, err)
	require.Len(t, got, 1)
}

// BenchmarkDataOverRows compares data over rows with the store of data in memory, by turns.
func BenchmarkDataOverRows(b *testing.B) {
	healthdatatest.BenchSamplesInTurn(b, func(b *testing.B) healthdatatest.SampleStore {
		engine, err := memstore.New(append(healthdata.DataTables(false), healthdata.UserTables()...), nil)
		require.NoError(b, err)
		return healthdatatest.SampleStoreOf(b, healthdatatest.DataHarness{Data: healthdata.NewData(engine, nil), Users: healthdata.NewUsers(engine, nil)})
	}, func(b *testing.B) healthdatatest.SampleStore {
		s := memory.New(nil)
		return healthdatatest.SampleStoreOf(b, healthdatatest.DataHarness{Data: s.Data(), Users: s.Users()})
	})
}
