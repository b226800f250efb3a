package healthdata_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// runningDay returns the state of a day after some of its hours, as a device with running totals tells it.
func runningDay(hour int) *healthdata.Activity {
	low := float64(90 - hour)
	return &healthdata.Activity{
		Head: healthdata.Head{Partial: true}, CalendarDate: *day("2026-03-01"),
		Steps: ptr(int64(500 * hour)), Distance: ptr(400 * float64(hour)), High: ptr(float64(hour)),
		HeartRate: &healthdata.ActivityHeartRate{MinBPM: &low, MaxBPM: ptr(low + 50), AvgBPM: ptr(low + 20), RestingBPM: ptr(float64(60 - hour))},
	}
}

// The parts of a day give one day, in any order and however often they come.
func TestPartialActivity_keepsTheGreatestTotalsInAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		s := newStation(t, healthdata.Options{})
		hours := r.Perm(6)
		for _, hour := range append(hours, r.Perm(6)...) {
			s.summaries("activity", band, runningDay(hour+1))
		}
		got := only[*healthdata.Activity](s, "activity")
		require.EqualValues(t, 3000, *got.Steps)
		require.Equal(t, []float64{2400, 6}, []float64{*got.Distance, *got.High})
		require.Equal(t, []float64{84, 139, 54}, []float64{*got.HeartRate.MinBPM, *got.HeartRate.MaxBPM, *got.HeartRate.RestingBPM})
		require.Nil(t, got.HeartRate.AvgBPM, "the mean of several parts is not known")
		for hour := range 6 {
			require.Equal(t, 1, s.summaries("activity", band, runningDay(hour+1)).Same, "after %v", hours)
		}
	}
}

func TestPartialActivity_keepsTheMeanOfASinglePart(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	s.summaries("activity", band, runningDay(4))
	s.summaries("activity", band, &healthdata.Activity{Head: healthdata.Head{Partial: true}, CalendarDate: *day("2026-03-01"), Steps: ptr(int64(9000))})
	got := only[*healthdata.Activity](s, "activity")
	require.EqualValues(t, 9000, *got.Steps)
	require.Equal(t, 106.0, *got.HeartRate.AvgBPM)

	s.summaries("activity", band, &healthdata.Activity{CalendarDate: *day("2026-03-01"), Steps: ptr(int64(20))})
	got = only[*healthdata.Activity](s, "activity")
	require.EqualValues(t, 20, *got.Steps, "a whole day replaces the stored one")
	require.Nil(t, got.HeartRate)
}

// Uploads at the same time lose no part.
func TestPartialActivity_concurrentPartsAreAllMerged(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	var parts sync.WaitGroup
	for hour := range 8 {
		parts.Go(func() {
			if _, err := s.IngestSummaries(t.Context(), s.team, s.user, "activity", band, []healthdata.Summary{runningDay(hour + 1)}); err != nil {
				t.Error(err)
			}
		})
	}
	parts.Wait()
	require.EqualValues(t, 4000, *only[*healthdata.Activity](s, "activity").Steps)
}

// What one part of a night leaves empty is that of the other, in both orders.
func TestPartialSleep_nullFieldsKeepTheirStoredValues(t *testing.T) {
	start, stop := ago(9*time.Hour), ago(time.Hour)
	recovered := func() *healthdata.Sleep {
		return &healthdata.Sleep{
			Head: healthdata.Head{Partial: true}, BedtimeStart: start, BedtimeStop: stop, Efficiency: ptr(91.5), Total: ptr(int64(25_000)),
			RecoveryReadinessScore: ptr(int64(80)), HRResting: ptr(int64(51)), AverageHRV: ptr(68.0), SkinTemperature: ptr(33.4),
		}
	}
	staged := func() *healthdata.Sleep {
		return &healthdata.Sleep{
			Head: healthdata.Head{Partial: true}, BedtimeStart: start, BedtimeStop: stop, Light: ptr(int64(14_000)), REM: ptr(int64(6000)), Score: ptr(int64(70)),
		}
	}
	for name, parts := range map[string][]func() *healthdata.Sleep{
		"recovery first": {recovered, staged, recovered, staged}, "stages first": {staged, recovered, staged},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStation(t, healthdata.Options{})
			for i, part := range parts {
				require.Equal(t, i > 1, s.summaries("sleep", band, part()).Same == 1)
			}
			got := only[*healthdata.Sleep](s, "sleep")
			require.Equal(t, []int64{80, 51, 70, 25_000, 14_000, 6000}, []int64{*got.RecoveryReadinessScore, *got.HRResting, *got.Score, *got.Total, *got.Light, *got.REM})
			require.Equal(t, []float64{68, 33.4, 91.5}, []float64{*got.AverageHRV, *got.SkinTemperature, *got.Efficiency})
			require.Nil(t, got.Deep)
			require.Equal(t, healthdata.SleepLong, got.Type)
		})
	}
}
