package fileimport_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

func testdata(t testing.TB, parts ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, parts...)...))
	require.NoError(t, err)
	return string(b)
}

// whoopArchive is the export of an account, with its journal.
func whoopArchive(t testing.TB) []byte {
	var files []string
	for _, name := range []string{"physiological_cycles.csv", "sleeps.csv", "workouts.csv", "journal_entries.csv"} {
		files = append(files, "my_whoop_data_2026_03_10/"+name, testdata(t, "whoop", name))
	}
	return archive(t, files...)
}

func utc(text string) healthlab.Time {
	at, err := time.Parse(time.DateTime, text)
	if err != nil {
		panic(err)
	}
	return healthlab.At(at)
}

func TestWHOOPExport_givesActivitySleepAndWorkouts(t *testing.T) {
	s, rep, err := importBytes(t, whoopArchive(t), nil)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"activity": 4, "sleep": 9, "workouts": 2}, rep.Summaries)
	require.Equal(t, map[string]int{"hrv": 4, "blood_oxygen": 3, "body_temperature": 3}, rep.Samples)
	require.Equal(t, map[string]int{"cycle of a day with a longer cycle": 1}, rep.Skipped)
	for _, one := range rep.Files {
		if strings.HasSuffix(one.Name, "journal_entries.csv") {
			require.ErrorIs(t, one.Err, fileimport.ErrFormat)
			continue
		}
		require.NoError(t, one.Err)
		require.Equal(t, fileimport.WHOOPExport, one.Format)
		require.Empty(t, one.Notes)
	}
	watch := healthdata.Source{Provider: healthdata.SlugManual, Type: healthdata.SourceWatch}

	nights := map[string]*healthdata.Sleep{}
	for _, v := range summariesOf[*healthdata.Sleep](t, s, "sleep") {
		if at := v.BedtimeStart.Format(time.RFC3339); nights[at] == nil { // the file of cycles is the first
			nights[at] = v
		}
	}
	require.Equal(t, &healthdata.Sleep{
		Head: healthdata.Head{Source: watch, Partial: true}, BedtimeStart: utc("2026-03-09 04:10:03"), BedtimeStop: utc("2026-03-09 10:41:55"), TimezoneOffset: at(-4 * 3600),
		Total: at(int64(361 * 60)), Light: at(int64(190 * 60)), Deep: at(int64(74 * 60)), REM: at(int64(97 * 60)), Awake: at(int64(30 * 60)), Score: at(int64(71)), RecoveryReadinessScore: at(int64(44)),
		HRResting: at(int64(57)), Efficiency: at(92.0), SkinTemperature: at(33.95), AverageHRV: at(39.0), RespiratoryRate: at(15.2),
	}, nights["2026-03-09T04:10:03Z"])
	require.Equal(t, &healthdata.Sleep{
		Head: healthdata.Head{Source: watch, Partial: true}, BedtimeStart: utc("2026-03-09 18:05:30"), BedtimeStop: utc("2026-03-09 18:47:30"), TimezoneOffset: at(-4 * 3600),
		Type: healthdata.SleepNap, Total: at(int64(38 * 60)), Light: at(int64(30 * 60)), Deep: at(int64(0)), REM: at(int64(8 * 60)), Awake: at(int64(4 * 60)), Efficiency: at(90.0), RespiratoryRate: at(15.8),
	}, nights["2026-03-09T18:05:30Z"])
	// The clock was put forward in this night: its row has one offset.
	require.Equal(t, utc("2026-03-08 12:50:00"), nights["2026-03-08T04:35:20Z"].BedtimeStop)
	require.Nil(t, nights["2026-03-07T04:02:11Z"].SkinTemperature, "an empty cell")

	days := summariesOf[*healthdata.Activity](t, s, "activity")
	require.Equal(t, &healthdata.Activity{
		Head: healthdata.Head{Source: watch}, CalendarDate: healthlab.Date{Year: 2026, Month: 3, Day: 7}, TimezoneOffset: at(-5 * 3600),
		CaloriesTotal: at(2530.0), HeartRate: &healthdata.ActivityHeartRate{MaxBPM: at(165.0), AvgBPM: at(72.0)},
	}, days[0])
	require.Equal(t, 2411.0, *days[1].CaloriesTotal, "not the 48 of a fragment")
	require.Equal(t, 1240.0, *days[3].CaloriesTotal, "a cycle that has not ended")

	require.Equal(t, kept{healthdata.Sample{
		Timestamp: utc("2026-03-10 11:05:12"), TimezoneOffset: at(-4 * 3600), Unit: "rmssd", Value: healthdata.Number(68),
	}, watch}, s.samples["hrv"][0])
	skin := s.samples["body_temperature"][0]
	require.Equal(t, 33.42, skin.Value.Number)
	require.Equal(t, "wrist", *skin.SensorLocation)
	require.Equal(t, skin.Timestamp, *skin.End)

	workouts := summariesOf[*healthdata.Workout](t, s, "workouts")
	require.Equal(t, &healthdata.Workout{
		Head: healthdata.Head{Source: watch}, TimeStart: utc("2026-03-09 21:30:12"), TimeEnd: utc("2026-03-09 22:18:40"), TimezoneOffset: at(-4 * 3600),
		Sport: healthdata.SportOf("running"), Calories: at(512.0), MaxHR: at(int64(172)), AverageHR: at(int64(149)),
	}, workouts[0])
	require.Equal(t, "functional_fitness", workouts[1].Sport.Slug)
}

func stravaArchive(t testing.TB) []byte {
	return archive(t, "export_1/activities.csv", testdata(t, "strava", "activities.csv"),
		"export_1/activities/7001.fit.gz", string(packed(t, triathlon(t))), "export_1/activities/7002.gpx", smallGPX,
		"export_1/activities/7004.tcx.gz", string(packed(t, []byte("          "+smallTCX))), "export_1/activities/7008.fit.gz", "hello",
		"export_1/profile.csv", "Athlete ID,Sex\n1,F\n", "export_1/media/a.jpg", "\xff\xd8\xff")
}

func TestStravaExport_givesWorkoutsWithTheirRecordings(t *testing.T) {
	s, rep, err := importBytes(t, stravaArchive(t), &fileimport.Options{Provider: "strava"})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"workouts": 8}, rep.Summaries)
	require.Empty(t, rep.Samples)
	require.Equal(t, 3, rep.Streams)
	require.Len(t, rep.Files, 3, "recordings are read through the list")
	require.Equal(t, fileimport.StravaExport, rep.Files[0].Format)
	require.Equal(t, []string{
		"line 7, Filename: left out, expected a file of the export",
		"line 8, Filename: left out, expected a recording of the time of the activity",
		"line 9, Filename: left out, expected a file in the folder activities",
		"line 10, Max Heart Rate: left out, expected a number from 20 to 300",
		"line 10, Filename: left out, expected a FIT, GPX or TCX file that can be read",
		"line 12, Activity Date: left out, expected a time such as Mar 9, 2026, 5:30:12 PM",
		"line 13, Elapsed Time: left out, expected seconds",
	}, rep.Files[0].Notes)
	require.Equal(t, 1, rep.Skipped["activity with the id of another"])

	workouts := summariesOf[*healthdata.Workout](t, s, "workouts")
	require.Equal(t, &healthdata.Workout{
		Head:      healthdata.Head{ExternalID: "9001", Source: healthdata.Source{Provider: "strava", Type: healthdata.SourceWatch}},
		TimeStart: healthlab.At(race.Add(20 * time.Second)), TimeEnd: healthlab.At(race.Add(30 * time.Second)), TimezoneOffset: at(7200),
		Title: at("Race, last leg"), Sport: healthdata.SportOf("running"), MovingTime: at(int64(10)), Distance: at(32.5), MaxSpeed: at(3.4), AverageSpeed: at(3.25),
		TotalElevationGain: at(0.0), ElevLow: at(399.8), ElevHigh: at(401.2), MaxHR: at(int64(149)), AverageHR: at(int64(145)), Calories: at(3.0), Map: workouts[0].Map,
	}, workouts[0])
	require.NotNil(t, workouts[0].Map)
	require.Same(t, workouts[0], s.streamsOf[0])
	require.EqualValues(t, []int64{20, 21, 22, 23, 24, 25, 26, 27, 28, 29}, relative(s.streams[0].Time), "the leg that the activity is")
	require.Equal(t, 250.0, *workouts[1].WeightedAverageWatts)
	require.Len(t, s.streams[1].Heartrate, len(s.streams[1].Time))
	for i, want := range []struct {
		sport string
		from  healthdata.SourceType
	}{
		{"running", healthdata.SourceWatch},
		{"trail_running", healthdata.SourceWatch},
		{"yoga", healthdata.SourceApp},
		{"indoor_cycling", healthdata.SourceWatch},
		{"hiking", healthdata.SourceWatch},
		{"running", healthdata.SourceWatch},
		{"e_biking", healthdata.SourceWatch},
		{"strength_training", healthdata.SourceWatch},
	} {
		require.Equal(t, want.sport, workouts[i].Sport.Slug)
		require.Equal(t, want.from, workouts[i].Source.Type, i)
	}
	require.Equal(t, utc("2026-04-24 18:00:00"), workouts[2].TimeStart)
}

// A list without its recordings gives the workouts, and a folder is read as an archive is.
func TestStravaExport_folderIsReadLikeAnArchive(t *testing.T) {
	s, rep, err := importBytes(t, []byte(testdata(t, "strava", "activities.csv")), nil)
	require.NoError(t, err)
	require.Equal(t, 7, rep.Skipped["recording beside the file"])
	require.Zero(t, rep.Streams)
	require.Len(t, s.summaries["workouts"], 8)

	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "activities"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "activities.csv"), []byte(testdata(t, "strava", "activities.csv")), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "activities", "7002.gpx"), []byte(smallGPX), 0o600))
	var all recordingSink
	reports, err := fileimport.ImportDir(t.Context(), dir, &all, nil)
	require.NoError(t, err)
	require.Len(t, reports, 1)
	require.Len(t, all.streams, 1)

	// In another language nothing of the account is stored under other identities.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "activities.csv"), []byte("Aktivitäts-ID,Aktivitätsdatum\n1,2\n"), 0o600))
	var none recordingSink
	_, err = fileimport.ImportDir(t.Context(), dir, &none, nil)
	require.ErrorContains(t, err, "and Elapsed Time, Distance twice")
	require.Zero(t, none.calls)
}

// A hostile or damaged recording gives a note, and the workouts of the list are imported. A
// damaged archive is an error.
func TestStravaExport_importsWorkoutsDespiteADamagedRecording(t *testing.T) {
	list := testdata(t, "strava", "activities.csv")
	for name, recording := range map[string][]byte{
		"bomb":    packed(t, make([]byte, 8<<20)),
		"archive": archive(t, "a.gpx", smallGPX),
		"list":    []byte(list),
		"cut":     packed(t, triathlon(t))[:40],
		"twice":   packed(t, packed(t, triathlon(t))),
	} {
		t.Run(name, func(t *testing.T) {
			data := archive(t, "activities.csv", list, "activities/7001.fit.gz", string(recording))
			s, rep, err := importBytes(t, data, &fileimport.Options{MaxRecordingBytes: 1 << 20})
			require.NoError(t, err)
			require.Len(t, s.summaries["workouts"], 8)
			require.Zero(t, rep.Streams)
			require.Contains(t, rep.Files[0].Notes[0], "line 3, Filename: left out, expected a FIT, GPX or TCX file that can be read")
		})
	}
	_, _, err := importBytes(t, stravaArchive(t)[:2000], nil)
	require.ErrorIs(t, err, healthlab.Invalid)
}

const clarityFile = "Clarity_Export_Exempel_Robin_2026-03-30.csv"

func berlin(t testing.TB) *time.Location {
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	return zone
}

func TestClarityExport_givesGlucoseInsulinAndCarbohydrates(t *testing.T) {
	s, rep, err := importBytes(t, []byte(testdata(t, "clarity", clarityFile)), &fileimport.Options{Zone: berlin(t)})
	require.NoError(t, err)
	require.Equal(t, fileimport.ClarityExport, rep.Format)
	require.Equal(t, map[string]int{"glucose": 8, "carbohydrates": 1, "insulin_injection": 2, "workout_duration": 1}, rep.Samples)
	require.Equal(t, 6, rep.Skipped["event of another type"])
	require.Equal(t, 1, rep.Skipped["row of the hour in which the clock changed"])
	require.Equal(t, []string{
		"line 21, Event Subtype: left out, expected Fast-Acting or Long-Acting",
		"line 23, Timestamp (YYYY-MM-DDThh:mm:ss): left out, expected a time such as 2026-03-01 22:50:05",
	}, rep.Notes)
	require.NotContains(t, rep.String(), "Robin")

	type reading struct {
		at     string
		offset int
		mmol   float64
		source healthdata.SourceType
	}
	var got []reading
	for _, v := range s.samples["glucose"] {
		require.Equal(t, "mg/dL", v.Unit, "as the file has it")
		mmol, ok := healthdata.ResourceBySlug("glucose").Convert(v.Value.Number, v.Unit, "")
		require.True(t, ok)
		got = append(got, reading{v.Timestamp.Format(time.DateTime), *v.TimezoneOffset, math.Round(mmol*100) / 100, v.source.Type})
	}
	require.Equal(t, []reading{
		{"2026-03-28 21:04:17", 3600, 5.99, healthdata.SourceAutomatic},
		{"2026-03-28 21:09:17", 3600, 6.22, healthdata.SourceAutomatic},
		{"2026-03-28 21:14:17", 3600, 2.22, healthdata.SourceAutomatic}, // Low
		{"2026-03-28 21:19:17", 3600, 22.2, healthdata.SourceAutomatic}, // High
		{"2026-03-29 00:59:17", 3600, 6.72, healthdata.SourceAutomatic},
		{"2026-03-29 01:04:17", 7200, 6.83, healthdata.SourceAutomatic},
		{"2026-03-29 07:05:01", 7200, 6.99, healthdata.SourceAutomatic},
		{"2026-03-29 05:40:00", 7200, 7.27, healthdata.SourceFingerprick},
	}, got)
	insulin := s.samples["insulin_injection"]
	require.Equal(t, []any{"long_acting", "basal", 14.0}, []any{*insulin[0].Type, *insulin[0].DeliveryMode, insulin[0].Value.Number})
	require.Equal(t, []any{"rapid_acting", "bolus", 4.5}, []any{*insulin[1].Type, *insulin[1].DeliveryMode, insulin[1].Value.Number})
	require.Equal(t, 45.0, s.samples["carbohydrates"][0].Value.Number)
	exercise := s.samples["workout_duration"][0]
	require.Equal(t, []any{45.0, "high", utc("2026-03-29 16:45:00")}, []any{exercise.Value.Number, *exercise.Intensity, *exercise.End})
}

// In mmol/L the values are those of the cells, and the hour that comes twice is left out.
func TestClarityExport_readsMmolAndSkipsTheHourOfAClockChange(t *testing.T) {
	const header = "Timestamp (YYYY-MM-DDThh:mm:ss),Event Type,Event Subtype,Source Device ID,Glucose Value (mmol/L),Insulin Value (u),Carb Value (grams),Duration (hh:mm:ss)\n"
	data := header + "2026-10-25T01:59:59,EGV,,,6.2,,,\n2026-10-25T02:00:00,EGV,,,6.3,,,\n2026-10-25T02:59:59,EGV,,,6.4,,,\n2026-10-25T03:00:00,EGV,,,6.5,,,\n2026-10-25T03:05:00,EGV,,,112,,,\n"
	s, rep, err := importBytes(t, []byte(data), &fileimport.Options{Zone: berlin(t)})
	require.NoError(t, err)
	require.Equal(t, 2, rep.Skipped["row of the hour in which the clock changed"])
	require.Equal(t, []string{"line 6, Glucose Value (mmol/L): left out, expected a number from 0.5 to 56"}, rep.Notes)
	got := s.samples["glucose"]
	require.Len(t, got, 2)
	require.Equal(t, []any{utc("2026-10-24 23:59:59"), 6.2, utc("2026-10-25 02:00:00"), 6.5}, []any{got[0].Timestamp, got[0].Value.Number, got[1].Timestamp, got[1].Value.Number})
}

// Without a zone and without one unit, nothing is read.
func TestClarityExport_requiresAZoneAndOneUnit(t *testing.T) {
	file := testdata(t, "clarity", clarityFile)
	zone := &fileimport.Options{Zone: berlin(t)}
	for name, c := range map[string]struct {
		data string
		opts *fileimport.Options
		want string
	}{
		"zone":      {file, nil, "the times of the file are local: the time zone of the person, such as Europe/Berlin, must be set (Options.Zone)"},
		"no unit":   {strings.Replace(file, "(mg/dL)", "(g/L)", 1), zone, "the header must have one of the columns"},
		"two units": {strings.Replace(file, "Transmitter ID", "Glucose Value (mmol/L)", 1), zone, "the header must have one of the columns"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, err := importBytes(t, []byte(c.data), c.opts)
			require.ErrorIs(t, err, healthlab.Invalid)
			require.ErrorContains(t, err, c.want)
			require.Zero(t, s.calls)
		})
	}
	other := filepath.Join(t.TempDir(), clarityFile)
	require.NoError(t, os.WriteFile(other, []byte("Index;Aikaleima (VVVV-KK-PPThh:mm:ss);Tapahtuman tyyppi\n"), 0o600))
	_, err := fileimport.ImportFile(t.Context(), other, nowhere{}, zone)
	require.ErrorContains(t, err, "has the columns Timestamp (YYYY-MM-DDThh:mm:ss), Event Type")
}

// withingsArchive is the export of an account, with files that are not read.
func withingsArchive(t testing.TB) []byte {
	files := []string{"README.txt", "bp.csv: Blood Pressure Data"}
	for _, name := range []string{"weight", "bp", "raw_hr_hr", "raw_tracker_steps", "raw_tracker_distance", "raw_tracker_elevation", "activities"} {
		files = append(files, name+".csv", testdata(t, "withings", name+".csv"))
	}
	return archive(t, files...)
}

func TestWithingsExport_givesBodyAndTimeseries(t *testing.T) {
	s, rep, err := importBytes(t, withingsArchive(t), &fileimport.Options{Zone: berlin(t)})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"body": 2}, rep.Summaries)
	require.Equal(t, map[string]int{"weight": 2, "fat": 1, "blood_pressure": 2, "heartrate": 6, "steps": 2, "distance": 1}, rep.Samples)
	notes := map[string][]string{}
	for _, one := range rep.Files {
		notes[one.Name] = one.Notes
		switch one.Name {
		case "README.txt", "raw_tracker_elevation.csv":
			require.ErrorIs(t, one.Err, fileimport.ErrFormat)
		case "activities.csv":
			require.ErrorContains(t, one.Err, "a file of this name of an account export has the columns Activity ID")
		default:
			require.NoError(t, one.Err)
			require.Equal(t, fileimport.WithingsExport, one.Format)
		}
	}
	require.Equal(t, []string{"line 5, Weight (kg): left out, expected a number from 1 to 500"}, notes["weight.csv"])
	require.Equal(t, []string{
		"line 4, value: left out, expected a list of numbers from 20 to 300, such as [60,60]",
		"line 5, value: left out, expected as many numbers as the duration has",
		"line 6, start: left out, expected a time such as 2026-03-01T22:50:05+01:00",
		"line 7, duration: left out, expected a list of numbers from 0 to 86400, such as [60,60]",
		"line 7, value: left out, expected a list of numbers from 20 to 300, such as [60,60]",
		"line 8, value: left out, expected a list of numbers from 20 to 300, such as [60,60]",
	}, notes["raw_hr_hr.csv"])
	require.Equal(t, map[string]int{
		"weighing without a weight": 2, "blood pressure with one value only": 1, "weighing at the time of another": 1, "row of the hour in which the clock changed": 1,
		"Weight (kg) (not read)": 1, "value (not read)": 4, "start (not read)": 1, "duration (not read)": 1,
	}, rep.Skipped)

	bodies := summariesOf[*healthdata.Body](t, s, "body")
	scale := healthdata.Source{Provider: healthdata.SlugManual, Type: healthdata.SourceScale}
	require.Equal(t, &healthdata.Body{
		Head: healthdata.Head{Source: scale}, MeasuredAt: utc("2026-04-10 05:12:33"), TimezoneOffset: at(7200),
		Weight: at(80.0), Fat: at(20.0), WaterPercentage: at(55.0), MuscleMassPercentage: at(75.0), BoneMassPercentage: at(4.0),
	}, bodies[0])
	require.Nil(t, bodies[1].Fat)
	require.Equal(t, scale, s.samples["weight"][0].source)
	require.Equal(t, 20.0, s.samples["fat"][0].Value.Number)
	pressures := s.samples["blood_pressure"]
	require.Equal(t, []any{121.0, 78.0, utc("2026-04-09 06:30:00"), healthdata.SourceCuff},
		[]any{*pressures[0].Systolic, *pressures[0].Diastolic, pressures[0].Timestamp, pressures[0].source.Type})

	var rates []string
	for _, v := range s.samples["heartrate"] {
		rates = append(rates, fmt.Sprint(v.Timestamp.Format(time.DateTime), " ", v.Value.Number, " ", v.source.Type))
	}
	require.Equal(t, []string{
		"2026-04-09 06:30:00 61 cuff", "2026-04-12 06:00:00 64 cuff",
		"2026-04-08 22:00:40 58 watch", "2026-04-08 22:10:24 60 watch", "2026-04-08 22:11:24 61 watch", "2026-04-08 22:12:24 59 watch",
	}, rates)
	steps := s.samples["steps"]
	require.Equal(t, []any{90.0, utc("2026-04-09 07:00:00"), utc("2026-04-09 07:01:00"), 200.0, utc("2026-04-09 07:01:00"), utc("2026-04-09 07:03:00")},
		[]any{steps[0].Value.Number, *steps[0].Start, *steps[0].End, steps[1].Value.Number, *steps[1].Start, *steps[1].End})
	require.Equal(t, []any{64.5, 7200}, []any{s.samples["distance"][0].Value.Number, *s.samples["distance"][0].TimezoneOffset})

	// Weighings have local times; a series has its offsets.
	_, rep, err = importBytes(t, withingsArchive(t), nil)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"heartrate": 4, "steps": 2, "distance": 1}, rep.Samples)
	_, _, err = importBytes(t, []byte(testdata(t, "withings", "raw_hr_hr.csv")), nil)
	require.ErrorIs(t, err, fileimport.ErrFormat, "without its name a series could be any")
}

const fitbitRates = `[{
  "dateTime" : "04/09/26 00:00:05",
  "value" : {
    "bpm" : 58,
    "confidence" : 3
  }
},{"dateTime":"04/09/26 00:00:20","value":{"bpm":59,"confidence":2}},
{"dateTime":"04/09/26 00:00:35","value":{"bpm":600,"confidence":0}},
{"dateTime":"2026-04-09T00:00:50","value":{"bpm":60,"confidence":1}},
{"dateTime":"04/09/26 00:01:05","value":{"confidence":1}},
{"dateTime":7,"value":{"bpm":60}},
{"dateTime":"04/09/26 00:01:20","value":"60"},
{"dateTime":"04/09/26 00:01:35","value":{"bpm":61}}]`

const fitbitSteps = `[{"dateTime":"04/09/26 07:00:00","value":"0"},{"dateTime":"04/09/26 07:01:00","value":"104"},{"dateTime":"04/09/26 07:02:00","value":"many"}]`

func TestFitbitExport_givesHeartRateAndSteps(t *testing.T) {
	folder := "Takeout/Fitbit/Global Export Data/"
	data := archive(t, folder+"heart_rate-2026-04-09.json", fitbitRates, folder+"steps-2026-04-09.json", fitbitSteps,
		folder+"altitude-2026-04-09.json", `[{"dateTime":"04/09/26 07:00:00","value":"10"}]`, folder+"heart_rate-2026-04-10.json", fitbitRates[:300])
	s, rep, err := importBytes(t, data, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"heartrate": 6, "steps": 2}, rep.Samples, "two of a file that is cut")
	for _, one := range rep.Files {
		switch path.Base(one.Name) {
		case "heart_rate-2026-04-09.json":
			require.Equal(t, []string{
				"value 3, value: left out, expected a number from 20 to 300",
				"value 5, value: left out, expected a number from 20 to 300",
				"value 6, dateTime: left out, expected a time such as 04/09/26 07:12:33, from 1990 to a day ahead",
				"value 7, value: left out, expected a number from 20 to 300",
			}, one.Notes)
		case "heart_rate-2026-04-10.json":
			require.NoError(t, one.Err, "what stands before the cut is read")
			require.Equal(t, 1, one.Skipped["rest of a file that is not valid JSON"])
		case "altitude-2026-04-09.json":
			require.ErrorIs(t, one.Err, fileimport.ErrFormat)
		default:
			require.Equal(t, []string{"value 3, value: left out, expected a number from 0 to 1000"}, one.Notes)
		}
	}
	watch := healthdata.Source{Provider: healthdata.SlugManual, Type: healthdata.SourceWatch}
	require.Equal(t, kept{healthdata.Sample{Timestamp: utc("2026-04-09 00:00:05"), Unit: "bpm", Value: healthdata.Number(58)}, watch}, s.samples["heartrate"][0])
	steps := s.samples["steps"][1]
	require.Equal(t, []any{104.0, utc("2026-04-09 07:01:00"), utc("2026-04-09 07:02:00")}, []any{steps.Value.Number, *steps.Start, *steps.End})
}

// An error of the reader is not the file's.
func TestCSV_readerErrorIsReturnedAndNotReportedAsInvalid(t *testing.T) {
	broken := errors.New("the disk is gone")
	_, err := fileimport.Import(t.Context(), io.MultiReader(&readings{most: 5000}, iotest.ErrReader(broken)), nowhere{}, &fileimport.Options{Zone: time.UTC})
	require.ErrorIs(t, err, broken)
	require.NotErrorIs(t, err, healthlab.Invalid)
}

// A value without an end is refused before it fills the memory.
func TestFitbitExport_endlessValueIsRefusedEarly(t *testing.T) {
	name := filepath.Join(t.TempDir(), "steps-2026-04-09.json")
	require.NoError(t, os.WriteFile(name, []byte(`[{"dateTime":"`+strings.Repeat("0", 8<<20)), 0o600))
	before := allocated()
	_, err := fileimport.ImportFile(t.Context(), name, nowhere{}, nil)
	var fault *fileimport.FileError
	require.ErrorAs(t, err, &fault)
	require.Less(t, allocated()-before, uint64(16<<20))
}

// A file of sleeps that stands alone has the nights.
func TestWHOOPExport_sleepsFileAloneGivesTheNights(t *testing.T) {
	s, rep, err := importBytes(t, []byte(testdata(t, "whoop", "sleeps.csv")), &fileimport.Options{Provider: "whoop"})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"sleep": 5}, rep.Summaries)
	require.Equal(t, "whoop", s.summaries["sleep"][0].(*healthdata.Sleep).Source.Provider)
}

// A cell that cannot be read is noted without its text, and the rest of its row is kept. A
// row without a readable time is left out, and the other rows are kept.
func TestCSV_unreadableCellIsReportedAndItsRowImported(t *testing.T) {
	const header = "Cycle timezone,Workout start time,Workout end time,Activity name,Energy burned (cal),Max HR (bpm),Average HR (bpm)\r\n"
	const good = "UTC+02:00,2026-05-01 10:00:00,2026-05-01 11:00:00,Rowing,400,150,120\r\n"
	for name, c := range map[string]struct {
		row      string
		workouts int
		note     string
	}{
		"decimal comma":    {`UTC+02:00,2026-05-02 10:00:00,2026-05-02 11:00:00,Rowing,"412,5",150,120`, 2, ""},
		"unclear comma":    {`UTC+02:00,2026-05-02 10:00:00,2026-05-02 11:00:00,Rowing,"1,412",150,120`, 2, "line 3, Energy burned (cal): left out, expected a number from 0 to 50000"},
		"out of range":     {"UTC+02:00,2026-05-02 10:00:00,2026-05-02 11:00:00,Rowing,400,1500,120", 2, "line 3, Max HR (bpm): left out, expected a number from 20 to 300"},
		"not a number":     {"UTC+02:00,2026-05-02 10:00:00,2026-05-02 11:00:00,Rowing,secret,150,120", 2, "line 3, Energy burned (cal): left out, expected"},
		"NaN":              {"UTC+02:00,2026-05-02 10:00:00,2026-05-02 11:00:00,Rowing,NaN,150,120", 2, "line 3, Energy burned (cal): left out, expected"},
		"hexadecimal":      {"UTC+02:00,2026-05-02 10:00:00,2026-05-02 11:00:00,Rowing,0x10,150,120", 2, "line 3, Energy burned (cal): left out, expected"},
		"empty":            {"UTC+02:00,2026-05-02 10:00:00,2026-05-02 11:00:00,Rowing,,,", 2, ""},
		"quoted newline":   {"UTC+02:00,2026-05-02 10:00:00,2026-05-02 11:00:00,\"Row\r\ning, indoors\",400,9,120", 2, "line 4, Max HR (bpm): left out"},
		"no zone":          {",2026-05-02 10:00:00,2026-05-02 11:00:00,Rowing,400,150,120", 1, "line 3, Cycle timezone: left out, expected an offset such as UTC-04:00"},
		"named zone":       {"Mars/Base,2026-05-02 10:00:00,2026-05-02 11:00:00,Rowing,400,150,120", 1, "line 3, Cycle timezone: left out"},
		"wide zone":        {"UTC+19:00,2026-05-02 10:00:00,2026-05-02 11:00:00,Rowing,400,150,120", 1, "line 3, Cycle timezone: left out"},
		"other time":       {"UTC+02:00,02.05.2026 10:00,2026-05-02 11:00:00,Rowing,400,150,120", 1, "line 3, Workout start time: left out, expected a time such as 2026-03-01 22:50:05"},
		"far time":         {"UTC+02:00,0026-05-02 10:00:00,2026-05-02 11:00:00,Rowing,400,150,120", 1, "line 3, Workout start time: left out"},
		"no times":         {"UTC+02:00,,,Rowing,400,150,120", 1, "line 3, Workout start time: left out, expected a time"},
		"no end":           {"UTC+02:00,2026-05-02 10:00:00,,Rowing,400,150,120", 1, "line 3, Workout end time: left out, expected a time"},
		"end before start": {"UTC+02:00,2026-05-02 10:00:00,2026-05-02 09:00:00,Rowing,400,150,120", 1, "line 3, Workout end time: left out, expected a time that is not before the Workout start time"},
		"few cells":        {"UTC+02:00,2026-05-02 10:00:00,2026-05-02 11:00:00,Rowing", 1, "line 3, row: left out, expected as many cells as the header has"},
		"many cells":       {"UTC+02:00,2026-05-02 10:00:00,2026-05-02 11:00:00,Rowing, indoors,400,150,120", 1, "line 3, row: left out"},
		"quotes":           {`UTC+02:00,2026-05-02 10:00:00,2026-05-02 11:00:00,Row"ing,400,150,120`, 1, "line 3, row: left out, expected quotes around a cell"},
		"open quote":       {`UTC+02:00,2026-05-02 10:00:00,2026-05-02 11:00:00,"Rowing,400,150,120`, 1, "line 3, row: left out, expected quotes around a cell"},
		"closed late":      {"UTC+02:00,2026-05-02 10:00:00,2026-05-02 11:00:00,\"Rowing,400,150,120\r\nUTC+02:00,2026-05-02 12:00:00,2026-05-02 13:00:00,\"Rowing\",400,150,120", 2, "line 3, row: left out"},
		"closed on a row":  {"UTC+02:00,2026-05-02 10:00:00,2026-05-02 11:00:00,\"Rowing\r\nUTC+02:00,2026-05-02 12:00:00,2026-05-02 13:00:00,Row,400,150,120\r\n\",400,150,120", 2, "line 3, row: left out"},
		"empty cells":      {"UTC+02:00,2026-05-02 10:00:00,2026-05-02 11:00:00,Rowing,400,150,120,, ,", 2, ""},
		"twice":            {strings.TrimSpace(good), 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			last := strings.ReplaceAll(good, "05-01", "05-03")
			s, rep, err := importBytes(t, []byte("\xef\xbb\xbf"+header+good+c.row+"\r\n"+last), nil)
			require.NoError(t, err)
			require.Len(t, s.summaries["workouts"], c.workouts+1)
			text := rep.String()
			require.NotContains(t, text, "secret")
			if c.note == "" {
				require.Empty(t, rep.Notes)
				return
			}
			require.True(t, strings.HasPrefix(rep.Notes[0], c.note), rep.Notes[0])
		})
	}
}

// Of a file with many mistakes, the report has some notes and all counts.
func TestCSV_reportLimitsNotesButCountsEverySkippedRow(t *testing.T) {
	var b strings.Builder
	b.WriteString("Cycle timezone,Workout start time,Workout end time,Activity name\n")
	for range 5000 {
		b.WriteString("UTC,nonsense,2026-05-02 11:00:00,Rowing\n")
	}
	_, rep, err := importBytes(t, []byte(b.String()), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"the file has no column Energy burned (cal)", "the file has no column Max HR (bpm)", "the file has no column Average HR (bpm)"}, rep.Notes[:3])
	require.Len(t, rep.Notes[3:], 101)
	require.Equal(t, map[string]int{"Workout start time (not read)": 5000}, rep.Skipped)
}

// A file whose columns are in another language is refused with the columns that are expected.
func TestCSV_otherHeaderIsRefusedWithTheExpectedColumns(t *testing.T) {
	for name, header := range map[string]string{
		"language": "Zona horaria del ciclo,Hora de inicio del entrenamiento,Hora de finalización del entrenamiento,Nombre de la actividad\n",
		"no zone":  "Workout start time,Workout end time,Activity name\n",
		"UTF-16":   "\xff\xfeC\x00y\x00",
		"empty":    "",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "workouts.csv")
			require.NoError(t, os.WriteFile(file, []byte(header), 0o600))
			var s recordingSink
			_, err := fileimport.ImportFile(t.Context(), file, &s, nil)
			var fault *fileimport.FileError
			require.ErrorAs(t, err, &fault)
			require.Equal(t, 1, fault.Line)
			require.ErrorContains(t, err, "a file of this name of an account export has the columns Cycle timezone, Workout start time, Workout end time, Activity name, in English")
			require.Zero(t, s.calls)
		})
	}
}

// Files that would take memory without end are refused.
func TestCSV_endlessRowsAndFieldsAreRefused(t *testing.T) {
	const header = "Cycle timezone,Workout start time,Workout end time,Activity name\n"
	for name, c := range map[string]struct{ data, want string }{
		"quotes that are not closed": {header + `UTC,"` + strings.Repeat("a\n", 2<<20), "the file must have at most 1000000 rows"},
		"long row":                   {header + strings.Repeat("a", 2<<20), "a row must have at most 1048576 bytes"},
		"rows":                       {header + strings.Repeat("a\n", 1_000_001), "the file must have at most 1000000 rows"},
	} {
		t.Run(name, func(t *testing.T) {
			before := allocated()
			_, _, err := importBytes(t, []byte(c.data), nil)
			require.ErrorIs(t, err, healthlab.Invalid)
			require.ErrorContains(t, err, c.want)
			require.Less(t, allocated()-before, uint64(512<<20))
		})
	}
}

// A table that was made at random comes out as it was made, whatever the pieces.
func TestCSV_randomTableIsReadAsWritten(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 7))
		names := []string{"Cycle timezone", "Workout start time", "Workout end time", "Activity name", "Energy burned (cal)", "Max HR (bpm)", "Average HR (bpm)", "Notes"}
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		var want []*healthdata.Workout
		var b strings.Builder
		ending := []string{"\n", "\r\n"}[rng.IntN(2)]
		b.WriteString([]string{"", "\xef\xbb\xbf"}[rng.IntN(2)] + strings.Join(names, ",") + ending)
		start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
		for range rng.IntN(40) {
			start = start.Add(time.Duration(1+rng.IntN(200_000)) * time.Second)
			end := start.Add(time.Duration(rng.IntN(20_000)) * time.Second)
			offset := (rng.IntN(105) - 48) * 900
			zone := time.FixedZone("", offset)
			w := &healthdata.Workout{TimeStart: healthlab.At(start), TimeEnd: healthlab.At(end), TimezoneOffset: at(offset), Sport: healthdata.SportOf("hot_yoga")}
			w.Source = healthdata.Source{Provider: healthdata.SlugManual, Type: healthdata.SourceWatch}
			cells := map[string]string{
				"Cycle timezone": "UTC" + start.In(zone).Format("-07:00"), "Activity name": "\"Hot, yoga\"",
				"Workout start time": start.In(zone).Format(time.DateTime), "Workout end time": end.In(zone).Format(time.DateTime),
				"Notes": "\"a \"\"b\"\"" + ending + "c\"",
			}
			if rng.IntN(4) > 0 {
				w.Calories = at(float64(rng.IntN(100_000)) / 100)
				cells["Energy burned (cal)"] = decimal(*w.Calories)
			}
			if rng.IntN(4) > 0 {
				w.MaxHR = at(int64(20 + rng.IntN(281)))
				cells["Max HR (bpm)"] = fmt.Sprint(*w.MaxHR)
			}
			for i, name := range names {
				if i > 0 {
					b.WriteByte(',')
				}
				b.WriteString(cells[name])
			}
			b.WriteString(ending)
			want = append(want, w)
		}
		s, rep, err := importBytes(t, []byte(b.String()), &fileimport.Options{BatchSize: 1 + rng.IntN(9)})
		require.NoError(t, err)
		require.Empty(t, rep.Notes, "seed %d", seed)
		require.Equal(t, want, summariesOf[*healthdata.Workout](t, s, "workouts"), "seed %d", seed)
	}
}

// A year of a person is imported through a service, and importing it again changes nothing.
func TestAccountExports_importTwiceThroughAServiceChangesNothing(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "whoop.zip"), whoopArchive(t), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "strava.zip"), stravaArchive(t), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, clarityFile), []byte(testdata(t, "clarity", clarityFile)), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, libreFile), []byte(testdata(t, "libreview", libreFile)), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "withings.zip"), withingsArchive(t), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "heart_rate-2026-04-09.json"), []byte(fitbitRates), 0o600))
	takesTwice(t, dir, &fileimport.Options{Zone: berlin(t)})
}

func FuzzAccountExport(f *testing.F) {
	for _, name := range []string{"physiological_cycles.csv", "sleeps.csv", "workouts.csv"} {
		f.Add([]byte(testdata(f, "whoop", name)))
	}
	f.Add([]byte(testdata(f, "strava", "activities.csv")))
	f.Add([]byte(testdata(f, "clarity", clarityFile)))
	f.Add([]byte(testdata(f, "clarity", clarityGerman)))
	f.Add([]byte(testdata(f, "libreview", libreFile)))
	f.Add([]byte(testdata(f, "withings", "weight.csv")))
	f.Add([]byte(testdata(f, "withings", "raw_hr_hr.csv")))
	f.Add([]byte(fitbitRates))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"raw_hr_hr.csv", "heart_rate-2026-04-09.json"} {
			file := filepath.Join(dir, name)
			require.NoError(t, os.WriteFile(file, data, 0o600))
			var s recordingSink
			_, err := fileimport.ImportFile(t.Context(), file, &s, &fileimport.Options{Zone: berlin(t), MaxPoints: 2000, MaxArchiveBytes: 1 << 20})
			if err != nil {
				require.ErrorIs(t, err, healthlab.Invalid)
			}
		}
	})
}

// readings is a file with a glucose reading every five minutes.
type readings struct {
	next, most int
	rest       []byte
}

func (r *readings) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		switch {
		case r.next > r.most:
			return 0, io.EOF
		case r.next == 0:
			r.rest = []byte("Timestamp (YYYY-MM-DDThh:mm:ss),Event Type,Event Subtype,Source Device ID,Glucose Value (mmol/L),Insulin Value (u),Carb Value (grams),Duration (hh:mm:ss)\n")
		default:
			at := time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.next) * 5 * time.Minute)
			r.rest = fmt.Appendf(nil, "%s,EGV,,iOS G7,%d.%d,,,\n", at.Format("2006-01-02T15:04:05"), 4+r.next%9, r.next%10)
		}
		r.next++
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// A large file is imported whole, in memory that does not grow with it.
func TestCSV_largeFileTakesBoundedMemory(t *testing.T) {
	rows := prove.Count(20_000, 1_000_000)
	debug.FreeOSMemory()
	before := inUse()
	w := &watching{samples: map[string]int{}}
	_, err := fileimport.Import(t.Context(), &readings{most: rows}, w, &fileimport.Options{Zone: time.UTC})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"glucose": rows}, w.samples)
	t.Logf("%d rows; at most %d MB in use, %d MB before", rows, w.most>>20, before>>20)
	require.Less(t, w.most, before+64<<20)
}
