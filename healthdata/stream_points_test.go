package healthdata_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// Of a good recording with one impossible point or value, everything else is stored, and the
// answer names what is not.
func TestStream_leavesOutOnlyTheImpossiblePoint(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	s := newStation(t, healthdata.Options{})
	id, _ := s.run()
	start := ago(time.Hour).Unix()
	for n := range 200 {
		points := 5 + r.IntN(40)
		in := healthdata.WorkoutStream{}
		for i := range points {
			in.Time = append(in.Time, start+int64(i))
			in.Heartrate = append(in.Heartrate, ptr(int64(90+n%50+i)))
			in.Lat, in.Lng = append(in.Lat, ptr(47+float64(i)/1e4)), append(in.Lng, ptr(8.5))
			in.Altitude = append(in.Altitude, ptr(400+float64(i)))
		}
		i := r.IntN(points)
		lost, field, code := false, "", "out_of_bounds"
		switch r.IntN(8) {
		case 0:
			lost, field, code = true, "time", "too_early"
			in.Time[i] = []int64{0, math.MinInt64, time.Date(1989, 12, 31, 0, 0, 0, 0, time.UTC).Unix()}[r.IntN(3)]
		case 1:
			lost, field, code = true, "time", "future"
			in.Time[i] = []int64{math.MaxInt64, ago(-25 * time.Hour).Unix()}[r.IntN(2)]
		case 2:
			lost, field = true, "time"
			in.Time[i] = start - 8*86_400
		case 3:
			field = "lat"
			in.Lat[i], in.Lng[i] = ptr(0.0), ptr(0.0)
		case 4:
			field = "lat"
			in.Lat[i] = []*float64{nil, ptr(91.0), ptr(-1e9)}[r.IntN(3)]
		case 5:
			field = "lat"
			in.Lng[i] = []*float64{nil, ptr(181.0)}[r.IntN(2)]
		case 6:
			field = "altitude"
			in.Altitude[i] = ptr([]float64{-19_999, 65_535, 12_001, -501}[r.IntN(4)])
		}
		got, err := s.IngestWorkoutStream(t.Context(), s.team, s.user, id, band, &in)
		require.NoError(t, err)
		stored, err := s.WorkoutStream(t.Context(), s.team, id)
		require.NoError(t, err)
		if field == "" {
			require.Empty(t, got.Refused)
		} else {
			require.Len(t, got.Refused, 1)
			require.Equal(t, i, got.Refused[0].Index)
			require.Equal(t, field, got.Refused[0].Problems[0].Field)
			require.Equal(t, code, got.Refused[0].Problems[0].Type)
		}
		k := 0
		for p := range points {
			if lost && p == i {
				continue
			}
			require.Equal(t, start+int64(p), stored.Time[k])
			require.Equal(t, int64(90+n%50+p), *stored.Heartrate[k])
			require.Equal(t, field == "lat" && p == i, stored.Lat[k] == nil && stored.Lng[k] == nil)
			require.Equal(t, field == "altitude" && p == i, stored.Altitude[k] == nil)
			k++
		}
		require.Len(t, stored.Time, k)
	}
}

// Points out of bounds are named up to 100, and all are counted. An atomic upload is refused for one of
// them, and an order of possible times that does not ascend refuses the recording.
func TestStream_namesUpTo100ImpossiblePointsAndCountsAll(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	id, _ := s.run()
	start := ago(time.Hour).Unix()
	recording := func() *healthdata.WorkoutStream {
		in := &healthdata.WorkoutStream{}
		for i := range int64(1000) {
			in.Time = append(in.Time, start+i)
			in.Altitude = append(in.Altitude, ptr(20_000.0))
		}
		in.Time[50], in.Time[950] = 0, math.MaxInt64
		return in
	}
	got, err := s.IngestWorkoutStream(t.Context(), s.team, s.user, id, band, recording())
	require.NoError(t, err)
	require.Equal(t, 1002, got.RefusedCount)
	require.Len(t, got.Refused, healthdata.MostRefusals)
	require.Equal(t, []int{0, 98}, []int{got.Refused[0].Index, got.Refused[99].Index}, "point 50 has two problems")

	_, err = s.IngestWorkoutStream(t.Context(), s.team, s.user, id, atomic(band), recording())
	require.Len(t, problems(t, err), healthdata.MostRefusals)
	_, err = s.IngestWorkoutStream(t.Context(), s.team, s.user, id, band, &healthdata.WorkoutStream{Time: []int64{start, start + 2, start + 1}})
	require.Equal(t, []string{"time: order"}, problems(t, err))
	_, err = s.IngestWorkoutStream(t.Context(), s.team, s.user, id, atomic(band), &healthdata.WorkoutStream{Time: []int64{start, start + 1}})
	require.NoError(t, err)
}

func TestImpossiblePositions_findsOutOfRangeAndZeroCoordinates(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		lat, lng     []float64
		range0, zero []int
	}{
		{[]float64{0, 47, 0, 0, 47}, []float64{0, 8, 0, 0, 8}, nil, []int{0, 2, 3}},
		{[]float64{0.01, 0, -0.01}, []float64{0, 0, 0}, nil, nil},        // across 0, 0
		{[]float64{0.01, nan, 0}, []float64{0, nan, 0}, nil, nil},        // a gap between
		{[]float64{0.01, 0, 47}, []float64{0, 0, 8}, nil, nil},           // near on one side
		{[]float64{0, 0}, []float64{0, 0}, nil, []int{0, 1}},             // nothing else
		{[]float64{0, 0}, []float64{32, 33}, nil, nil},                   // along the equator
		{[]float64{47, nan, 47}, []float64{8, 8, nan}, []int{1, 2}, nil}, // without a part
		{[]float64{90, -90, 90.1}, []float64{180, -180, 0}, []int{2}, nil},
		{nil, nil, nil, nil},
	} {
		t.Run(fmt.Sprint(c.lat, c.lng), func(t *testing.T) {
			outOfRange, atZero := healthdata.ImpossiblePositions(c.lat, c.lng)
			require.Equal(t, c.range0, outOfRange)
			require.Equal(t, c.zero, atZero)
		})
	}
}
