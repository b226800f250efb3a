package healthdata_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// An item without a zone of its own keeps its offset when it is sent again after the
// fallback zone has changed.
func TestOffsets_resentItemKeepsItsOffsetAfterAZoneChange(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	zone := func(id string) {
		t.Helper()
		s.now = s.now.Add(time.Minute)
		_, err := s.PatchUser(t.Context(), s.team, s.user, healthdata.UserPatch{FallbackTimeZone: healthdata.SetTo(id)})
		require.NoError(t, err)
	}
	sample := func(value float64, at time.Duration) healthdata.Sample {
		return healthdata.Sample{Timestamp: ago(at), Unit: "bpm", Value: healthdata.Number(value)}
	}
	sleep := func() *healthdata.Sleep {
		return &healthdata.Sleep{BedtimeStart: ago(9 * time.Hour), BedtimeStop: ago(time.Hour)}
	}
	zone("Asia/Tokyo")
	s.samples("heartrate", band, sample(60, 2*time.Hour), sample(61, time.Hour))
	s.summaries("sleep", band, sleep())
	night := s.list("sleep")[0].(*healthdata.Sleep)
	require.Equal(t, 9*3600, *night.TimezoneOffset)

	zone("America/New_York")
	got := s.samples("heartrate", band, sample(60, 2*time.Hour), sample(70, time.Hour), sample(62, 30*time.Minute))
	require.Equal(t, healthdata.Counts{New: 1, Changed: 1, Same: 1}, got)
	var offsets []int
	for _, v := range s.read("heartrate") {
		offsets = append(offsets, *v.TimezoneOffset)
	}
	require.Equal(t, []int{9 * 3600, 9 * 3600, -5 * 3600}, offsets)
	require.Equal(t, healthdata.Counts{Same: 1}, s.summaries("sleep", band, sleep()))
	require.Equal(t, night.CalendarDate, s.list("sleep")[0].(*healthdata.Sleep).CalendarDate)

	// An offset of its own is a correction.
	own := sample(60, 2*time.Hour)
	own.TimezoneOffset = ptr(3600)
	require.Equal(t, healthdata.Counts{Changed: 1}, s.samples("heartrate", band, own))
	zoned := band
	zoned.TimeZone = "Europe/Vienna"
	require.Equal(t, healthdata.Counts{Changed: 1}, s.samples("heartrate", zoned, sample(70, time.Hour)))
	require.Equal(t, healthdata.Counts{Changed: 1}, s.summaries("sleep", zoned, sleep()))
}
