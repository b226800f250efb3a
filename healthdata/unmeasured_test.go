package healthdata_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// Lengths of stages that a source does not have are null, however it writes that.
func TestSleep_stagesThatASourceLacksAreNull(t *testing.T) {
	zero := func() *int64 { return ptr(int64(0)) }
	for name, c := range map[string]struct {
		in                             healthdata.Sleep
		total, awake, light, rem, deep *int64
	}{
		"nothing":                 {healthdata.Sleep{}, nil, nil, nil, nil, nil},
		"zeros":                   {healthdata.Sleep{Total: zero(), Awake: zero(), Light: zero(), REM: zero(), Deep: zero()}, nil, nil, nil, nil, nil},
		"a total alone":           {healthdata.Sleep{Total: ptr(int64(3600))}, ptr(int64(3600)), nil, nil, nil, nil},
		"a total and zeros":       {healthdata.Sleep{Total: ptr(int64(3600)), Awake: zero(), Light: zero(), REM: zero(), Deep: zero()}, ptr(int64(3600)), nil, nil, nil, nil},
		"a total and time awake":  {healthdata.Sleep{Total: ptr(int64(3600)), Awake: ptr(int64(60)), Light: zero()}, ptr(int64(3600)), ptr(int64(60)), nil, nil, nil},
		"awake all the time":      {healthdata.Sleep{Total: zero(), Awake: ptr(int64(7200)), Deep: zero()}, zero(), ptr(int64(7200)), nil, nil, zero()},
		"a source without REM":    {healthdata.Sleep{Light: ptr(int64(50)), Deep: ptr(int64(10))}, ptr(int64(60)), nil, ptr(int64(50)), nil, ptr(int64(10))},
		"a night without deep":    {healthdata.Sleep{Light: ptr(int64(50)), REM: ptr(int64(10)), Deep: zero(), Awake: zero()}, ptr(int64(60)), zero(), ptr(int64(50)), ptr(int64(10)), zero()},
		"a total besides a stage": {healthdata.Sleep{Total: ptr(int64(90)), Light: ptr(int64(50))}, ptr(int64(90)), nil, ptr(int64(50)), nil, nil},
		"a zero besides a stage":  {healthdata.Sleep{Total: zero(), Light: ptr(int64(50))}, ptr(int64(50)), nil, ptr(int64(50)), nil, nil},
		"a total and all stages":  {healthdata.Sleep{Total: ptr(int64(90)), Light: ptr(int64(50)), REM: ptr(int64(10)), Deep: zero()}, ptr(int64(60)), nil, ptr(int64(50)), ptr(int64(10)), zero()},
		"a stage is not readable": {healthdata.Sleep{Head: healthdata.Head{Partial: true}, Light: ptr(int64(50)), REM: ptr(int64(10))}, nil, nil, ptr(int64(50)), ptr(int64(10)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStation(t, healthdata.Options{})
			c.in.BedtimeStart, c.in.BedtimeStop = ago(9*time.Hour), ago(time.Hour)
			s.summaries("sleep", band, &c.in)
			got := only[*healthdata.Sleep](s, "sleep")
			require.Equal(t, []*int64{c.total, c.awake, c.light, c.rem, c.deep}, []*int64{got.Total, got.Awake, got.Light, got.REM, got.Deep})
		})
	}
}

// AddStage gives the sums of the stretches, whatever they are.
func TestAddStage_sumsTheSecondsOfEachStage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	kinds := []healthdata.SleepStage{
		healthdata.SleepStageMissing, healthdata.SleepStageDeep, healthdata.SleepStageLight, healthdata.SleepStageREM, healthdata.SleepStageAwake, healthdata.SleepStageByHand,
	}
	for range 1000 {
		var s healthdata.Sleep
		sums := map[healthdata.SleepStage]int64{}
		seen := map[healthdata.SleepStage]bool{}
		for range r.IntN(5) {
			kind, n := kinds[r.IntN(len(kinds))], r.Int64N(1000)
			s.AddStage(kind, n)
			sums[kind] += n
			seen[kind] = true
		}
		staged := seen[healthdata.SleepStageDeep] || seen[healthdata.SleepStageLight] || seen[healthdata.SleepStageREM]
		asleep := int64(0)
		for kind, n := range sums {
			if kind != healthdata.SleepStageAwake {
				asleep += n
			}
		}
		for _, c := range []struct {
			got   *int64
			want  int64
			known bool
		}{
			{s.Deep, sums[healthdata.SleepStageDeep], staged},
			{s.Light, sums[healthdata.SleepStageLight], staged},
			{s.REM, sums[healthdata.SleepStageREM], staged},
			{s.Awake, sums[healthdata.SleepStageAwake], staged || seen[healthdata.SleepStageAwake]},
			{s.Total, asleep, staged || seen[healthdata.SleepStageMissing] || seen[healthdata.SleepStageByHand]},
		} {
			require.Equal(t, c.known, c.got != nil)
			if c.known {
				require.Equal(t, c.want, *c.got)
			}
		}
	}
}

// A zero that no person has is null; a zero that can be stays.
func TestSummaries_impossibleZeroBecomesNull(t *testing.T) {
	whole, real := func() *int64 { return new(int64) }, func() *float64 { return new(float64) }
	s := newStation(t, healthdata.Options{})
	s.summaries("sleep", band, &healthdata.Sleep{
		BedtimeStart: ago(9 * time.Hour), BedtimeStop: ago(time.Hour), HRLowest: whole(), HRAverage: whole(), HRResting: whole(), Score: whole(),
		AverageHRV: real(), RespiratoryRate: real(), SkinTemperature: real(), Latency: whole(), TemperatureDelta: real(), RecoveryReadinessScore: whole(), HRDip: real(),
	})
	night := only[*healthdata.Sleep](s, "sleep")
	require.Equal(t, []*int64{nil, nil, nil, nil}, []*int64{night.HRLowest, night.HRAverage, night.HRResting, night.Score})
	require.Equal(t, []*float64{nil, nil, nil}, []*float64{night.AverageHRV, night.RespiratoryRate, night.SkinTemperature})
	require.Equal(t, []*int64{whole(), whole()}, []*int64{night.Latency, night.RecoveryReadinessScore})
	require.Equal(t, []*float64{real(), real()}, []*float64{night.TemperatureDelta, night.HRDip})

	s.summaries("workouts", band, &healthdata.Workout{
		TimeStart: ago(2 * time.Hour), TimeEnd: ago(time.Hour), AverageHR: whole(), MaxHR: whole(), HRZones: make([]int64, 6), Distance: real(), Steps: whole(),
	})
	ride := only[*healthdata.Workout](s, "workouts")
	require.Nil(t, ride.AverageHR)
	require.Nil(t, ride.MaxHR)
	require.Empty(t, ride.HRZones, "a strap that was not worn")
	require.Equal(t, real(), ride.Distance)
	require.Equal(t, whole(), ride.Steps)

	s.summaries("activity", band, &healthdata.Activity{
		CalendarDate: *day("2026-03-01"), Steps: whole(), HeartRate: &healthdata.ActivityHeartRate{AvgBPM: real(), MinBPM: real(), MaxBPM: real(), RestingBPM: real(), AvgWalkingBPM: real()},
	})
	of := only[*healthdata.Activity](s, "activity")
	require.Nil(t, of.HeartRate)
	require.Equal(t, whole(), of.Steps, "a day in bed")

	s.summaries("body", band, &healthdata.Body{MeasuredAt: ago(time.Hour), Weight: ptr(71.5), Fat: real(), WaterPercentage: real(), BodyMassIndex: real()})
	body := only[*healthdata.Body](s, "body")
	require.Equal(t, 71.5, *body.Weight)
	require.Equal(t, []*float64{nil, nil, nil}, []*float64{body.Fat, body.WaterPercentage, body.BodyMassIndex})
}

// The zeros of a recording are null where nothing was measured: heart rates one by one, other
// columns where nothing but zeros stand.
func TestStream_unmeasuredZerosBecomeNull(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	id, _ := s.run()
	zeros := func() []*float64 { return []*float64{ptr(0.0), nil, ptr(0.0)} }
	_, err := s.IngestWorkoutStream(t.Context(), s.team, s.user, id, band, &healthdata.WorkoutStream{
		Time: []int64{1_700_000_000, 1_700_000_001, 1_700_000_002}, Heartrate: []*int64{ptr(int64(0)), nil, ptr(int64(120))},
		Cadence: zeros(), Altitude: zeros(), Lat: zeros(), Lng: zeros(), Power: []*float64{ptr(0.0), ptr(0.0), ptr(210.0)}, Temperature: zeros(),
	})
	require.NoError(t, err)
	got, err := s.WorkoutStream(t.Context(), s.team, id)
	require.NoError(t, err)
	require.Equal(t, []*int64{nil, nil, ptr(int64(120))}, got.Heartrate)
	require.Empty(t, got.Cadence)
	require.Empty(t, got.Altitude)
	require.Empty(t, got.Lat)
	require.Empty(t, got.Lng)
	require.Equal(t, []*float64{ptr(0.0), ptr(0.0), ptr(210.0)}, got.Power, "a pause of a ride with a meter")
	require.Equal(t, zeros(), got.Temperature, "it can freeze")

	_, err = s.IngestWorkoutStream(t.Context(), s.team, s.user, id, band, &healthdata.WorkoutStream{
		Time: []int64{1_700_000_000, 1_700_000_001}, Heartrate: []*int64{ptr(int64(0)), ptr(int64(0))}, Lat: []*float64{ptr(0.0), ptr(0.0)}, Lng: []*float64{ptr(32.5), ptr(32.6)},
	})
	require.NoError(t, err)
	got, err = s.WorkoutStream(t.Context(), s.team, id)
	require.NoError(t, err)
	require.Empty(t, got.Heartrate, "a strap that was not worn")
	require.Len(t, got.Lat, 2, "along the equator")
}
