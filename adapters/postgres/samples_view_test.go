package postgres_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// shown is a sample as SQL shows it.
type shown struct {
	At     int64
	End    int64
	Value  uint64 // bits
	Value2 uint64
	Attrs  series.Attrs
}

func shownOf(s series.Sample) shown {
	return shown{s.Time, s.End, math.Float64bits(s.Value), math.Float64bits(s.Value2), s.Attrs}
}

func readShown(t require.TestingT, rows pgx.Rows, err error) []shown {
	require.NoError(t, err)
	var out []shown
	var at int64
	var end *int64
	var value, value2 float64
	var attributes []byte
	_, err = pgx.ForEachRow(rows, []any{&at, &end, &value, &value2, &attributes}, func() error {
		s := shown{At: at, Value: math.Float64bits(value), Value2: math.Float64bits(value2)}
		if end != nil {
			s.End = *end
		}
		var a struct {
			Offset          int32
			Device, Workout uuid.UUID
			Type, Unit, App, Sport, Location, Intensity,
			DeliveryMode, DeliveryForm, BolusPurpose, Text, Tags string
			Mode    string `json:"delivery_mode"`
			Form    string `json:"delivery_form"`
			Purpose string `json:"bolus_purpose"`
		}
		if err := json.Unmarshal(attributes, &a); err != nil {
			return err
		}
		s.Attrs = series.Attrs{
			Offset: a.Offset, Type: a.Type, Unit: a.Unit, App: a.App, Device: a.Device, Workout: a.Workout, Sport: a.Sport,
			Location: a.Location, Intensity: a.Intensity, DeliveryMode: a.Mode, DeliveryForm: a.Form, BolusPurpose: a.Purpose,
			Text: a.Text, Tags: a.Tags,
		}
		out = append(out, s)
		return nil
	})
	require.NoError(t, err)
	return out
}

// anySample draws a sample of any shape, after the time given.
func anySample(r *rapid.T, after int64) series.Sample {
	step := rapid.SampledFrom([]int64{1, 999, 1_000, 1_000_000, 60_000_000, 60_000_000, 60_000_000, 86_400_000_000}).Draw(r, "step")
	s := series.Sample{Time: after + step}
	s.Value = rapid.SampledFrom([]float64{
		0, math.Copysign(0, -1), 1, -1, 61, 61.5, 0.1, -273.1525, 1e15, 12345678.25, 1e300, -math.MaxFloat64, math.SmallestNonzeroFloat64, math.Pi, 255, 256, 65536,
	}).Draw(r, "value")
	s.Value2 = rapid.SampledFrom([]float64{0, 0, 80, -7.25, math.E}).Draw(r, "second")
	if rapid.Bool().Draw(r, "interval") {
		s.End = s.Time + rapid.SampledFrom([]int64{-5, 0, 1, 60_000_000, 1 << 40}).Draw(r, "length")
	}
	s.Attrs = rapid.SampledFrom([]series.Attrs{
		{}, {}, {Offset: -12600}, {Offset: 50400, App: "com.example"},
		{
			Offset: 3600, Type: "typé", Unit: "u", App: "a", Device: uuid.UUID{1, 2}, Workout: uuid.UUID{3, 4}, Sport: "running",
			Location: "wrist", Intensity: "low", DeliveryMode: "bolus", DeliveryForm: "extended", BolusPurpose: "meal", Text: "räv 🦊", Tags: "x,y",
		},
	}).Draw(r, "attributes")
	return s
}

// What SQL decodes is what Go decodes, bit for bit.
func TestSamplesInSQL(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	rapid.Check(t, func(r *rapid.T) {
		var b series.Block
		var want []shown
		at := rapid.SampledFrom([]int64{series.MinTime + 10, -1, 0, 1_790_000_000_123_456, 1_790_000_040_000_000}).Draw(r, "start")
		for range rapid.IntRange(1, 60).Draw(r, "n") {
			s := anySample(r, at)
			if s.End == series.NoEnd {
				s.End = 0
			}
			at = s.Time
			b.Append(s)
			want = append(want, shownOf(s))
		}
		c, err := series.NewChunk(&b)
		require.NoError(r, err)
		rows, err := pool.Query(t.Context(), `select at, end_at, value, value2, attributes from healthlab.decode_samples($1)`, c.Data)
		require.Equal(r, want, readShown(r, rows, err))

		piece, err := series.NewPiece(&b)
		require.NoError(r, err)
		old := append(binary.LittleEndian.AppendUint16(nil, uint16(len(c.Data))), c.Data...) // of older versions
		for _, tail := range [][]byte{piece, old} {
			rows, err := pool.Query(t.Context(), `
				select d.at, d.end_at, d.value, d.value2, d.attributes from healthlab.split_tail($1) p, healthlab.decode_samples(p) d`, tail)
			require.Equal(r, want, readShown(r, rows, err))
		}
	})
}

// The view shows what a reader sees: segments over chunks, the latest over the rest.
func TestSamplesView(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := postgres.New(pool, nil)
	u := newPerson(t, s)
	key := healthdata.SeriesKey{Resource: "heartrate", Provider: "acme_band", SourceType: "watch"}
	mergeInto(t, s, u, key, 0, 2000, 60)                                                                                        // chunks
	mergeInto(t, s, u, key, 2000, 10, 61)                                                                                       // a tail
	mergeInto(t, s, u, key, 1990, 15, 62)                                                                                       // over both
	require.NoError(t, s.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{varied(key, 2010, 500)}, nil)) // a segment
	mergedSegment(t, s, u, 2510)
	for i := range 40 { // a full tail, and another
		mergeInto(t, s, u, key, 2511+i, 1, float64(i))
	}
	for what, sql := range map[string]string{
		"a segment of a merge": `select '' from healthlab.segment where header <> ''`,
		"a full tail":          `select '' from healthlab.segment where header = ''`,
		"a tail":               `select '' from healthlab.series where tail <> '' and not tail_closed`,
	} {
		require.NotEmpty(t, texts(t, pool, sql), what)
	}
	want := readSeries(t, s, u, key)
	require.Len(t, want, 2551)

	look := func(pool *pgxpool.Pool) []shown {
		rows, err := pool.Query(t.Context(), `
			select (extract(epoch from at) * 1000000)::bigint, (extract(epoch from end_at) * 1000000)::bigint, value, value2, attributes
			from healthlab.samples where user_id = $1 and resource = 'heartrate' order by at`, u.ID.UUID)
		return readShown(t, rows, err)
	}
	var shows []shown
	for _, sm := range want {
		shows = append(shows, shownOf(sm))
	}
	require.Equal(t, shows, look(pool))
}
