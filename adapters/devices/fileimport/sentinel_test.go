package fileimport_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/muktihari/fit/profile/typedef"
	"github.com/muktihari/fit/profile/untyped/fieldnum"
	"github.com/muktihari/fit/profile/untyped/mesgnum"
	"github.com/muktihari/fit/proto"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// Programs that convert recordings write the numbers with which a device says that it measured nothing. They are left
// out, and the other values of the point are kept.
func TestRecording_leavesOutPlaceholderNumbers(t *testing.T) {
	const good = "<ele>400</ele><hr>100</hr><power>200</power><cad>80</cad><atemp>20</atemp>"
	point := func(second int, values string) string {
		return fmt.Sprintf("<trkpt lat='47.%04d' lon='8.5'><time>%s</time>%s</trkpt>", second, stampOf(second), values)
	}
	for nothing, told := range map[string]string{
		"<hr>255</hr>": "heart rate out of range", "<hr>0</hr>": "", "<hr>Infinity</hr>": "value that is no number: hr", "<cad>255</cad>": "cadence out of range",
		"<power>65535</power>": "power out of range", "<power>-1</power>": "power out of range", "<atemp>127</atemp>": "temperature out of range", "<atemp>-128</atemp>": "temperature out of range",
		"<ele>12607</ele>": "altitude out of range", "<ele>NaN</ele>": "value that is no number: ele",
	} {
		tag := nothing[1:strings.IndexByte(nothing, '>')]
		from := strings.Index(good, "<"+tag+">")
		end := from + strings.Index(good[from:], "</") + len("</"+tag+">")
		s, rep, err := importBytes(t, []byte("<gpx><trk><trkseg>"+point(0, good)+point(1, good[:from]+nothing+good[end:])+point(2, good)+"</trkseg></trk></gpx>"), nil)
		require.NoError(t, err)
		if told != "" {
			require.Equal(t, map[string]int{told: 1}, rep.Skipped, nothing)
		}
		require.Len(t, s.streams[0].Time, 3)
		columns := [][]*float64{s.streams[0].Altitude, s.streams[0].Power, s.streams[0].Cadence, s.streams[0].Temperature}
		missing := 0
		for _, c := range columns {
			require.Len(t, c, 3)
			if c[1] == nil {
				missing++
			}
		}
		if s.streams[0].Heartrate[1] == nil {
			missing++
		}
		require.Equal(t, 1, missing, nothing)
		require.Equal(t, int64(100), *summariesOf[*healthdata.Workout](t, s, "workouts")[0].MaxHR)
	}
}

// A position has a decimal comma, whatever the number of its digits.
func TestRecording_readsPositionsWithDecimalCommas(t *testing.T) {
	var points strings.Builder
	for i := range 3 {
		fmt.Fprintf(&points, "<trkpt lat='47,%03d' lon='8,500'><time>%s</time></trkpt>", i, stampOf(i))
	}
	s, rep, err := importBytes(t, []byte("<gpx><trk><trkseg>"+points.String()+"</trkseg></trk></gpx>"), nil)
	require.NoError(t, err)
	require.Empty(t, rep.Skipped)
	require.Equal(t, 47.002, *s.streams[0].Lat[2])
	require.Equal(t, 8.5, *s.streams[0].Lng[2])
}

// A TCX activity whose laps have no start begins at its id, and calories of 0xFFFF are none.
func TestTCX_lapsWithoutAStartBeginAtTheId(t *testing.T) {
	s, rep, err := importBytes(t, []byte("<TrainingCenterDatabase><Activities><Activity Sport='Running'><Id>"+stampOf(0)+"</Id><Lap><TotalTimeSeconds>600</TotalTimeSeconds><DistanceMeters>1500</DistanceMeters><Calories>65535</Calories></Lap></Activity></Activities></TrainingCenterDatabase>"), nil)
	require.NoError(t, err)
	w := summariesOf[*healthdata.Workout](t, s, "workouts")[0]
	require.Equal(t, []any{race, race.Add(10 * time.Minute), 1500.0}, []any{w.TimeStart.Time, w.TimeEnd.Time, *w.Distance})
	require.Nil(t, w.Calories)
	require.Equal(t, map[string]int{"total out of range: calories": 1}, rep.Skipped)
}

func raceRecords(n int) []proto.Message {
	out := []proto.Message{fileID(typedef.FileActivity)}
	for i := range n {
		out = append(out, record(i, uint8(100+i), float64(3*i)))
	}
	return out
}

// A session message that occurs twice is one workout, and one without a start begins where its length says.
func TestFIT_mergesRepeatedSessionsAndDerivesAMissingStart(t *testing.T) {
	full := session(0, 10, typedef.SportRunning, typedef.SubSportGeneric)
	for name, sessions := range map[string][]proto.Message{
		"twice":        {full, full},
		"grown":        {session(0, 4, typedef.SportRunning, typedef.SubSportGeneric), full},
		"shorter last": {full, session(0, 4, typedef.SportRunning, typedef.SubSportGeneric)},
		"no start": {message(mesgnum.Session, byte(fieldnum.SessionTimestamp), fitTime(race.Add(10*time.Second)),
			byte(fieldnum.SessionTotalElapsedTime), uint32(10_000), byte(fieldnum.SessionSport), typedef.SportRunning, byte(fieldnum.SessionTotalCalories), uint16(9))},
	} {
		s, rep, err := importBytes(t, encodeFIT(t, append(raceRecords(10), sessions...)), nil)
		require.NoError(t, err)
		workouts := summariesOf[*healthdata.Workout](t, s, "workouts")
		require.Len(t, workouts, 1, name)
		w := workouts[0]
		require.Equal(t, []any{race, race.Add(10 * time.Second), "running", 9.0}, []any{w.TimeStart.Time, w.TimeEnd.Time, w.Sport.Slug, *w.Calories}, name)
		require.Len(t, s.streams[0].Time, 10, name)
		require.Equal(t, len(sessions)-1, rep.Skipped["session that occurs twice"], name)
	}
	s, rep, err := importBytes(t, encodeFIT(t, append(raceRecords(10), message(mesgnum.Session, byte(fieldnum.SessionSport), typedef.SportRunning))), nil)
	require.NoError(t, err)
	require.Len(t, s.summaries["workouts"], 1, "the records are a workout")
	require.Equal(t, map[string]int{"session without a start": 1}, rep.Skipped)
}

// What a device writes where it measured nothing gives no value, no sample, and no part of a mean.
func TestFIT_zeroInADailyFileIsReadAsMissing(t *testing.T) {
	monitoring := func(second int, pairs ...any) proto.Message {
		return message(mesgnum.Monitoring, append([]any{byte(fieldnum.MonitoringTimestamp), fitTime(race.Add(seconds(second)))}, pairs...)...)
	}
	heart := func(second int, bpm uint8) proto.Message {
		return monitoring(second, byte(fieldnum.MonitoringHeartRate), bpm)
	}
	resting := message(mesgnum.MonitoringHrData, byte(fieldnum.MonitoringHrDataCurrentDayRestingHeartRate), uint8(0))
	s, rep, err := importBytes(t, encodeFIT(t, []proto.Message{fileID(typedef.FileMonitoringB), heart(60, 0), heart(120, 1), heart(180, 61), heart(240, 63), resting}), nil)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"heartrate": 2}, rep.Samples)
	day := summariesOf[*healthdata.Activity](t, s, "activity")[0]
	require.Nil(t, day.Steps, "nothing counted steps")
	require.Nil(t, day.Distance)
	require.Equal(t, []float64{61, 62, 63}, []float64{*day.HeartRate.MinBPM, *day.HeartRate.AvgBPM, *day.HeartRate.MaxBPM})
	require.Nil(t, day.HeartRate.RestingBPM)

	weighing := func(second int, weight, fat uint16) proto.Message {
		return message(mesgnum.WeightScale, byte(fieldnum.WeightScaleTimestamp), fitTime(race.Add(seconds(second))), byte(fieldnum.WeightScaleWeight), weight,
			byte(fieldnum.WeightScalePercentFat), fat, byte(fieldnum.WeightScaleBoneMass), uint16(0), byte(fieldnum.WeightScaleBmi), uint16(0))
	}
	s, rep, err = importBytes(t, encodeFIT(t, []proto.Message{fileID(typedef.FileWeight), weighing(0, 8000, 0), weighing(60, 0, 0), weighing(120, 0, 2500)}), nil)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"weight": 1, "fat": 1}, rep.Samples)
	require.Equal(t, map[string]int{"weight_scale message without a value": 1}, rep.Skipped)
	bodies := summariesOf[*healthdata.Body](t, s, "body")
	require.Len(t, bodies, 2)
	require.Equal(t, 80.0, *bodies[0].Weight)
	require.Nil(t, bodies[0].Fat)
	require.Nil(t, bodies[0].BoneMassPercentage)
	require.Nil(t, bodies[1].Weight)
}
