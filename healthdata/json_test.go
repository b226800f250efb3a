package healthdata_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

func TestValue_encodesAndDecodesNumbersAndTextsAsJSON(t *testing.T) {
	for text, want := range map[string]healthdata.Value{
		`0`:          {},
		`-0`:         {Number: math.Copysign(0, -1)},
		`78.0`:       {Number: 78},
		`1e-3`:       {Number: 0.001},
		`"tea"`:      {Text: "tea", IsText: true},
		`"\u00e9\n"`: {Text: "é\n", IsText: true},
		`""`:         {IsText: true},
	} {
		var v healthdata.Value
		require.NoError(t, json.Unmarshal([]byte(text), &v), text)
		require.Equal(t, want, v, text)
	}
	for _, text := range []string{"NaN", "Infinity", "-inf", "0x10", "1_000", "+1", ".5", "1.", "01", "1e999", "-1e400", "true", "[]", "{}", `"`, `"a`, "", " 1"} {
		v := healthdata.Value{Number: 7}
		require.ErrorIs(t, v.UnmarshalJSON([]byte(text)), healthlab.Invalid, text)
		require.Equal(t, healthdata.Value{Number: 7}, v, "left as it was")
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		_, err := json.Marshal(healthdata.Value{Number: v})
		require.ErrorIs(t, err, healthlab.Invalid)
	}
	out, err := json.Marshal(healthdata.Value{Number: math.Copysign(0, -1)})
	require.NoError(t, err)
	require.Equal(t, "0", string(out))
}

// A value that can be read from JSON is written as the same JSON, and reads back as the same
// value.
func FuzzValue(f *testing.F) {
	for _, seed := range []string{"0", "-0", "1.5", "1e-7", "1e308", "NaN", "0x1p4", `"note"`, `"\ud800"`, `"\\"`, "null", "1e999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var v healthdata.Value
		if v.UnmarshalJSON([]byte(text)) != nil {
			return
		}
		require.True(t, json.Valid([]byte(text)), "what is no JSON was read")
		out, err := json.Marshal(v)
		require.NoError(t, err)
		var again healthdata.Value
		require.NoError(t, json.Unmarshal(out, &again))
		require.True(t, again == v, "another value after a round trip")
	})
}

// A sport that can be read is written as an object that reads the same.
func FuzzSport(f *testing.F) {
	for _, seed := range []string{`""`, "null", "{}", `{"id":1,"name":"Run","slug":"run"}`, `{"slug":""}`, "[]", `{"id":1e3}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s healthdata.Sport
		if json.Unmarshal([]byte(text), &s) != nil {
			return
		}
		out, err := json.Marshal(s)
		require.NoError(t, err)
		var again healthdata.Sport
		require.NoError(t, json.Unmarshal(out, &again))
		require.Equal(t, s, again)
		named := healthdata.SportOf(s.Slug)
		require.NotEmpty(t, named.Slug)
		require.NotEmpty(t, named.Name)
	})
}

// A sample that can be read is refused, or stored and read as what was written: the
// same instant, offset, and value.
func FuzzSample(f *testing.F) {
	f.Add("heartrate", `{"timestamp":"2026-03-01T07:00:00Z","unit":"bpm","value":60}`)
	f.Add("steps", `{"timestamp":"2026-03-01T07:00:00+01:00","end":"2026-03-01T08:00:00Z","unit":"count","value":1e3,"timezone_offset":-3600}`)
	f.Add("note", `{"timestamp":"0001-01-01T00:00:00.000001Z","end":"2026-03-01T08:00:00Z","unit":"text","value":"a","tags":["food"]}`)
	f.Add("blood_pressure", `{"timestamp":"2026-03-01T07:00:00Z","unit":"mmHg","systolic":120,"diastolic":80}`)
	f.Add("stand_hour", `{"timestamp":"2026-03-01T07:00:00Z","end":"2026-03-01T08:00:00Z","unit":"count","value":1,"type":"stood"}`)
	f.Fuzz(func(t *testing.T, resource, text string) {
		var in healthdata.Sample
		if json.Unmarshal([]byte(text), &in) != nil {
			return
		}
		s := newStation(t, healthdata.Options{})
		c, err := s.IngestSamples(t.Context(), s.team, s.user, resource, band, []healthdata.Sample{in})
		if err != nil {
			require.NotEqual(t, healthlab.Unknown, healthlab.KindOf(err))
			return
		}
		require.Equal(t, healthdata.Counts{New: 1}, c)
		r := healthdata.ResourceBySlug(resource)
		got := s.read(resource)
		require.Len(t, got, 1)
		require.True(t, json.Valid(r.AppendSample(nil, &got[0])))
		if !in.Timestamp.IsZero() {
			require.Equal(t, in.Timestamp, got[0].Timestamp)
		}
		again, err := s.IngestSamples(t.Context(), s.team, s.user, resource, band, got)
		require.NoError(t, err)
		require.Equal(t, healthdata.Counts{Same: 1}, again, "what was read is what is stored")
	})
}
