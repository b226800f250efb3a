package lake_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/operations/lake"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

// wearers is the health data of people who wear a watch that measures the heart rate every
// five seconds, one sample in ten a second late, but for an hour a day. There are four
// different people.
type wearers struct {
	users  []healthdata.User
	chunks [4][]series.Chunk
	total  int
}

func newWearers(t testing.TB, users, days int) *wearers {
	r := rand.New(rand.NewPCG(1, 2))
	w := &wearers{users: make([]healthdata.User, users)}
	for i := range w.users {
		w.users[i].ID = healthlab.UserID{UUID: uuid.New()}
		w.users[i].ID.UUID[15] = byte(i)
	}
	for i := range w.chunks {
		w.chunks[i] = wear(t, r, days)
		for _, c := range w.chunks[i] {
			w.total += c.N * users / len(w.chunks)
		}
	}
	return w
}

// wear returns the chunks of one person.
func wear(t testing.TB, r *rand.Rand, days int) (out []series.Chunk) {
	const part, step = 6 * 3600, 5
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	bpm := 70
	for quarter := range 4 * days {
		b := series.Block{}
		for s := 0; s < part && (quarter%4 != 3 || s < part-3600); s += step {
			bpm = min(max(bpm+r.IntN(5)-2, 48), 170)
			late := 0
			if r.IntN(10) == 0 {
				late = 1
			}
			at := start.Add(time.Duration(quarter*part+s+late) * time.Second)
			b.Time, b.Value = append(b.Time, at.UnixMicro()), append(b.Value, float64(bpm))
		}
		b.Runs = []series.Run{{N: b.Len(), Attrs: series.Attrs{Offset: 3600}}}
		c, err := series.NewChunk(&b)
		require.NoError(t, err)
		out = append(out, c)
	}
	return out
}

func (w *wearers) Users(_ context.Context, _ healthlab.TeamID, offset, limit int) (healthdata.UserPage, error) {
	return healthdata.UserPage{Users: w.users[min(offset, len(w.users)):min(offset+limit, len(w.users))], Total: len(w.users)}, nil
}

func (w *wearers) View(_ context.Context, _ healthlab.TeamID, user healthlab.UserID, read func(healthdata.View) error) error {
	return read(wearerView{w.chunks[user.UUID[15]%4]})
}

type wearerView struct{ chunks []series.Chunk }

func (wearerView) Records(context.Context, healthdata.RecordQuery) ([]healthdata.Record, error) {
	return nil, nil
}

func (v wearerView) Series(_ context.Context, q healthdata.SeriesQuery) ([]healthdata.Series, error) {
	s := healthdata.Series{Key: healthdata.SeriesKey{Resource: "heartrate", Provider: "watch", SourceType: healthdata.SourceWatch}}
	for _, c := range v.chunks {
		if q.From == 0 && q.To == 0 || c.Overlaps(q.From, q.To) {
			c.Data = nil
			s.Chunks = append(s.Chunks, c)
		}
	}
	return []healthdata.Series{s}, nil
}

func (v wearerView) Load(_ context.Context, _ healthdata.SeriesKey, starts []int64) ([]series.Chunk, error) {
	var out []series.Chunk
	for _, c := range v.chunks {
		for _, at := range starts {
			if c.Start == at {
				out = append(out, c)
			}
		}
	}
	return out, nil
}

// discard counts what is written.
type discard struct{ *crashingPlace }

func (d discard) Write(ctx context.Context, name string, content io.Reader) error {
	if _, err := io.Copy(io.Discard, content); err != nil {
		return err
	}
	return d.crashingPlace.Write(ctx, name, bytes.NewReader(nil))
}

// A sample takes at most 4 bytes.
func TestExport_sampleTakesAtMostFourBytes(t *testing.T) {
	w := newWearers(t, prove.Count(4, 200), 31)
	e, err := lake.New(discard{newPlace()}, w, func(context.Context) ([]healthlab.TeamID, error) { return nil, nil },
		bytes.Repeat([]byte{9}, 32), &lake.Options{Log: slog.New(slog.DiscardHandler), Workers: runtime.GOMAXPROCS(0)})
	require.NoError(t, err)
	began := time.Now()
	m, err := e.Export(t.Context(), healthlab.TeamID{UUID: uuid.New()})
	require.NoError(t, err)
	var size, rows int64
	for _, f := range m.Files {
		size, rows = size+f.Bytes, rows+f.Rows
	}
	require.EqualValues(t, w.total, rows)
	perSample := float64(size) / float64(rows)
	t.Logf("%d samples, %.2f bytes each, %.2f million a second", rows, perSample, float64(rows)/time.Since(began).Seconds()/1e6)
	require.LessOrEqual(t, perSample, 4.0)
}
