package fileimport_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

var garminNames = []string{
	"DI_CONNECT/DI-Connect-Aggregator/UDSFile_2026-03-01_2026-06-09.json", "DI_CONNECT/DI-Connect-Wellness/2026-03-01_2026-06-09_1_sleepData.json",
	"DI_CONNECT/DI-Connect-Fitness/robin_0_summarizedActivities.json",
}

// garminArchive is the export of an account, with files that are not read.
func garminArchive(t testing.TB) []byte {
	uploads := archive(t, "robin_1.fit", string(triathlon(t)), "robin_2.txt", "a note")
	files := []string{
		"DI_CONNECT/DI-Connect-User/user_profile.json", `{"userName":"robin"}`, "DI_CONNECT/DI-Connect-Wellness/1_healthStatusData.json", `[{"calendarDate":"2026-03-28","metrics":[]}]`,
		"DI_CONNECT/DI-Connect-Uploaded-Files/UploadedFiles_0-_Part1.zip", string(uploads), "customer_data/other.zip", string(uploads),
	}
	for _, name := range garminNames {
		files = append(files, name, testdata(t, "garmin", filepath.Base(name)))
	}
	return archive(t, files...)
}

func TestGarminExport_givesDaysNightsActivitiesAndRecordings(t *testing.T) {
	s, rep, err := importBytes(t, garminArchive(t), nil)
	require.NoError(t, err)
	require.Equal(t, 4, rep.Summaries["workouts"], "an activity and the three sessions of the recording")
	require.Equal(t, 3, rep.Streams)
	require.Equal(t, []int{1, 1}, []int{rep.Summaries["activity"], rep.Summaries["sleep"]})
	require.Equal(t, []int{1, 1, 1}, []int{rep.Skipped["day without values"], rep.Skipped["night that was not measured"], rep.Skipped["activity of several sports, whose parts are there"]})
	require.Empty(t, rep.Notes)
	for _, one := range rep.Files {
		switch filepath.Base(one.Name) {
		case "other.zip":
			require.ErrorContains(t, one.Err, "an archive inside an archive is not read; unpack it first")
		case "user_profile.json", "1_healthStatusData.json":
			require.ErrorIs(t, one.Err, fileimport.ErrFormat)
		case "UploadedFiles_0-_Part1.zip":
			require.NoError(t, one.Err)
			require.Len(t, one.Files, 2)
		default:
			require.NoError(t, one.Err)
			require.Equal(t, fileimport.GarminExport, one.Format)
		}
	}

	day := summariesOf[*healthdata.Activity](t, s, "activity")[0]
	require.Equal(t, []any{"2026-03-28", int64(9312), 7120.0, 2210.0, 410.0, 12.0, 24.0, 3600, healthdata.SourceMultiple}, []any{
		day.CalendarDate.String(), *day.Steps, *day.Distance, *day.CaloriesTotal, *day.CaloriesActive, *day.Medium, *day.High, *day.TimezoneOffset, day.Source.Type,
	})
	require.Equal(t, []float64{47, 161, 52}, []float64{*day.HeartRate.MinBPM, *day.HeartRate.MaxBPM, *day.HeartRate.RestingBPM})
	require.Nil(t, day.FloorsClimbed, "metres are no floors")

	night := summariesOf[*healthdata.Sleep](t, s, "sleep")[0]
	require.Equal(t, []any{utc("2026-03-27 22:10:00"), utc("2026-03-28 05:10:00"), "2026-03-28"}, []any{night.BedtimeStart, night.BedtimeStop, night.CalendarDate.String()})
	require.Equal(t, []int64{24300, 4500, 14400, 5400, 900, 81}, []int64{*night.Total, *night.Deep, *night.Light, *night.REM, *night.Awake, *night.Score})
	require.Equal(t, 14.0, *night.RespiratoryRate)
	require.Nil(t, night.TimezoneOffset, "the file does not say where the person was")

	workouts := summariesOf[*healthdata.Workout](t, s, "workouts")
	run := workouts[slices.IndexFunc(workouts, func(w *healthdata.Workout) bool { return w.ExternalID == "7001" })]
	require.Equal(t, []any{utc("2026-03-28 17:00:00"), utc("2026-03-28 17:30:00"), "running", "Evening run", 3600}, []any{run.TimeStart, run.TimeEnd, run.Sport.Slug, *run.Title, *run.TimezoneOffset})
	require.Equal(t, []any{4989.0, 12.0, int64(1740), int64(148), int64(171), int64(4700)}, []any{*run.Distance, *run.TotalElevationGain, *run.MovingTime, *run.AverageHR, *run.MaxHR, *run.Steps})
	require.InDelta(t, 2.85, *run.AverageSpeed, 1e-9)
	require.Nil(t, run.Calories, "its unit is not sure")
	require.Equal(t, workouts[0].Source, workouts[len(workouts)-1].Source, "activities and recordings are of one source, so that one session counts once")
}

func TestGarminExport_optionsZoneSetsTheOffset(t *testing.T) {
	s, _, err := importBytes(t, []byte(testdata(t, "garmin", filepath.Base(garminNames[1]))), &fileimport.Options{Zone: berlin(t)})
	require.NoError(t, err)
	require.Equal(t, 3600, *summariesOf[*healthdata.Sleep](t, s, "sleep")[0].TimezoneOffset)
}

func TestGarminExport_importTwiceThroughAServiceChangesNothing(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "garmin.zip"), garminArchive(t), 0o600))
	takesTwice(t, dir, nil)
}

// The archives in an archive are bounded together with it.
func TestGarminExport_nestedArchivesShareOneLimit(t *testing.T) {
	zeros := archive(t, "a.fit", strings.Repeat("0", 600_000))
	data := archive(t, "DI-Connect-Uploaded-Files/UploadedFiles_1.zip", string(zeros), "DI-Connect-Uploaded-Files/UploadedFiles_2.zip", string(zeros))
	_, rep, err := importBytes(t, data, &fileimport.Options{MaxArchiveBytes: 1_000_000})
	require.ErrorIs(t, err, healthlab.Invalid)
	require.ErrorContains(t, rep.Files[1].Err, "(Options.MaxArchiveBytes)")
	deep := archive(t, "DI-Connect-Uploaded-Files/UploadedFiles_1.zip", string(archive(t, "DI-Connect-Uploaded-Files/UploadedFiles_1.zip", string(zeros))))
	_, rep, err = importBytes(t, deep, nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	require.ErrorContains(t, rep.Files[0].Files[0].Err, "an archive inside an archive is not read; unpack it first")
}

// A random good file with one random bad item gives what the good file gives.
func TestGarminExport_skipsOnlyTheInvalidItem(t *testing.T) {
	day := func(i int) string { return race.AddDate(0, 0, -i-1).Format("2006-01-02") }
	lists := []struct {
		good func(i int) string
		bad  []string
		wrap string
	}{
		{
			func(i int) string { return fmt.Sprintf(`{"calendarDate":"%s","totalSteps":%d}`, day(i), 1000+i) },
			[]string{`null`, `7`, `[]`, `{}`, `{"calendarDate":"x","totalSteps":7}`, `{"calendarDate":"1970-01-01","totalSteps":7}`, `{"calendarDate":"2099-01-01","totalSteps":7}`, `{"calendarDate":{"date":"x"},"totalSteps":7}`, `{"calendarDate":"2020-01-01","totalSteps":"many"}`, `{"calendarDate":"2020-01-01","totalSteps":NaN}`, `{"calendarDate":"2020-01-01","totalSteps":1,5}`, `{"calendarDate":"2020-01-01","totalSteps":null}`},
			`[%s]`,
		},
		{
			func(i int) string {
				return fmt.Sprintf(`{"calendarDate":"%s","sleepStartTimestampGMT":"%sT01:00:00.0","sleepEndTimestampGMT":"%sT07:00:00.0","deepSleepSeconds":%d}`, day(i), day(i), day(i), 1000+i)
			},
			[]string{`7`, `{}`, `{"calendarDate":"2020-01-01","sleepStartTimestampGMT":"x","sleepEndTimestampGMT":"2020-01-01T07:00:00.0","deepSleepSeconds":7}`, `{"calendarDate":"2020-01-01","sleepStartTimestampGMT":"2020-01-01T08:00:00.0","sleepEndTimestampGMT":"2020-01-01T07:00:00.0","deepSleepSeconds":7}`, `{"calendarDate":"2020-01-01","sleepStartTimestampGMT":"2020-01-01T01:00:00.0","sleepEndTimestampGMT":"2020-01-01T07:00:00.0"}`, `{"calendarDate":"2020-01-01","sleepStartTimestampGMT":1577840400000}`},
			`[%s]`,
		},
		{
			func(i int) string {
				return fmt.Sprintf(`{"activityId":%d,"activityType":"running","beginTimestamp":%d,"duration":60000,"distance":%d}`, i+1, race.Add(seconds(100*i)).UnixMilli(), 1000*i+100)
			},
			[]string{`null`, `7`, `{}`, `{"activityId":1e999}`, `{"activityId":900,"beginTimestamp":-5,"duration":1000}`, `{"activityId":900,"beginTimestamp":9e18,"duration":1000}`, `{"activityId":900,"beginTimestamp":1577840400000}`, `{"activityId":900,"beginTimestamp":1577840400000,"duration":9e18}`, `{"activityId":900,"beginTimestamp":"x","duration":1000}`},
			`[{"summarizedActivitiesExport":[%s]}]`,
		},
	}
	for c := range prove.Sequential(300, 300, 10_000) {
		random := rand.New(rand.NewPCG(uint64(c), 5))
		f := lists[c%len(lists)]
		items := make([]string, 3+random.IntN(20))
		for i := range items {
			items[i] = f.good(i)
		}
		want, _, err := importBytes(t, fmt.Appendf(nil, f.wrap, strings.Join(items, ",")), nil)
		require.NoError(t, err)
		require.Equal(t, 1, len(want.summaries))
		bad := f.bad[random.IntN(len(f.bad))]
		at := random.IntN(len(items) + 1)
		if bad == "[]" {
			at = len(items)
		}
		got, rep, err := importBytes(t, fmt.Appendf(nil, f.wrap, strings.Join(slices.Insert(items, at, bad), ",")), nil)
		require.NoError(t, err, "case %d: %q", c, bad)
		require.True(t, reflect.DeepEqual(want.summaries, got.summaries), "case %d: %q", c, bad)
		require.NotEmpty(t, rep.Skipped, "case %d: it is told: %q", c, bad)
	}
}
