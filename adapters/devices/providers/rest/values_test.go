package rest_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

func TestID_readsTextsAndIntegers(t *testing.T) {
	for doc, want := range map[string]string{`"a-1"`: "a-1", `17`: "17", `9007199254740993`: "9007199254740993", `null`: "", `""`: ""} {
		t.Run(doc, func(t *testing.T) {
			var id rest.ID
			require.NoError(t, json.Unmarshal([]byte(doc), &id))
			require.Equal(t, want, id.String())
		})
	}
	for _, doc := range []string{`{}`, `[]`, `true`} {
		t.Run(doc, func(t *testing.T) {
			var id rest.ID
			require.Error(t, json.Unmarshal([]byte(doc), &id))
		})
	}
}

func TestFloat_readsNumbersAndTextsOfNumbers(t *testing.T) {
	for doc, want := range map[string]*float64{
		`1.5`: rest.Ptr(1.5), `"1.5"`: rest.Ptr(1.5), `"NaN"`: nil, `"Infinity"`: nil, `"x"`: nil, `""`: nil, `null`: nil, `0`: rest.Ptr(0.0), `-3`: rest.Ptr(-3.0),
	} {
		t.Run(doc, func(t *testing.T) {
			var f *rest.Float
			require.NoError(t, json.Unmarshal([]byte(doc), &f))
			require.Equal(t, want, f.Value())
			if want != nil && *want <= 0 {
				want = nil
			}
			require.Equal(t, want, f.Positive())
		})
	}
	for _, doc := range []string{`{}`, `[]`, `true`} {
		t.Run(doc, func(t *testing.T) {
			var f rest.Float
			require.Error(t, json.Unmarshal([]byte(doc), &f))
		})
	}
}

// Columns of other seconds stand side by side, with gaps.
func TestTrack_alignsColumnsBySecondWithGaps(t *testing.T) {
	var empty, track rest.Track
	require.Nil(t, empty.Stream())
	track.Put(rest.ColumnLat, 12, rest.Ptr(47.5))
	track.Put(rest.ColumnHeartrate, 10, rest.Ptr(99.6))
	track.Put(rest.ColumnPower, 11, nil)
	s := track.Stream()
	require.Equal(t, []int64{10, 11, 12}, s.Time)
	require.Equal(t, []*int64{rest.Ptr[int64](100), nil, nil}, s.Heartrate)
	require.Equal(t, []*float64{nil, nil, rest.Ptr(47.5)}, s.Lat)
	require.Empty(t, s.Power)
}

// A new kind is one row and its function: its resources, scopes and messages follow.
func TestDefinition_collectionSetsResourcesScopesAndMessages(t *testing.T) {
	d := rest.Definition{Collections: []rest.Collection{
		{Name: "pulse", Resources: []string{"heartrate"}, Messages: []string{"beat"}},
		{Name: "night", Scopes: []string{"sleep"}, Resources: []string{"sleep", "heartrate"}, Messages: []string{"beat", "night"},
			MessagesFor: map[string][]string{"pause": {"sleep"}}},
	}, Listen: func(l *rest.Listening, _ linking.Message) (linking.ListenResult, error) {
		require.Equal(t, []string{"heartrate", "sleep"}, l.Announced("beat"))
		require.Equal(t, []string{"sleep", "heartrate"}, l.Announced("night"))
		require.Equal(t, []string{"sleep"}, l.Announced("pause"))
		require.Nil(t, l.Announced("another"))
		return linking.ListenResult{}, nil
	}}
	require.Equal(t, map[string]healthdata.Scopes{
		"sleep": {Required: []string{"sleep"}, Optional: []string{}}, "heartrate": {Required: []string{"sleep"}, Optional: []string{}},
	}, func() map[string]healthdata.Scopes { r := d.Record(); return r.Scopes }())
	c, err := rest.New(&d, rest.Client{ID: "id", Secret: "secret"}, nil)
	require.NoError(t, err)
	_, err = c.Flows().Listener.Listen(t.Context(), linking.Message{})
	require.NoError(t, err)
}

func TestOffsetOf_convertsToSecondsAndIgnoresNaN(t *testing.T) {
	require.Nil(t, rest.OffsetOf(nil, time.Second))
	require.Nil(t, rest.OffsetOf(rest.Ptr(math.NaN()), time.Second))
	require.Equal(t, 5400, *rest.OffsetOf(rest.Ptr(90.0), time.Minute))
	require.Equal(t, -3600, *rest.OffsetOf(rest.Ptr(-3600.0), time.Second))
}

func TestText_emptyIsNil(t *testing.T) {
	require.Nil(t, rest.Text(""))
	require.Equal(t, "a", *rest.Text("a"))
}

// Parts of a second are rounded half away from zero, not cut.
func TestSeconds_roundsHalfAwayFromZero(t *testing.T) {
	for ms, want := range map[float64]int64{0: 0, 499: 0, 500: 1, 1403_500: 1404, 1_035_499: 1035, 1_035_500: 1036, -500: -1, -499: 0} {
		require.Equal(t, want, *rest.Seconds(&ms), ms)
		require.Equal(t, want, rest.Whole(time.Duration(ms)*time.Millisecond), ms)
	}
	require.Nil(t, rest.Seconds(nil))
	require.Nil(t, rest.Seconds(new(math.NaN())))
}
