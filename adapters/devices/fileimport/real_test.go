package fileimport_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// table reads a CSV file; names of columns are trimmed.
func table(t *testing.T, name string) []map[string]string {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	r := csv.NewReader(f)
	r.TrimLeadingSpace = true
	rows, err := r.ReadAll()
	require.NoError(t, err)
	var out []map[string]string
	for _, row := range rows[1:] {
		m := map[string]string{}
		for i, cell := range row {
			m[strings.TrimSpace(rows[0][i])] = cell
		}
		out = append(out, m)
	}
	return out
}

func importReal(t *testing.T, opts *fileimport.Options, parts ...string) (*recordingSink, fileimport.Report) {
	t.Helper()
	var s recordingSink
	rep, err := fileimport.ImportFile(t.Context(), realData(t, parts...), &s, opts)
	require.NoError(t, err)
	return &s, rep
}

// same compares a column with the cell of an oracle, in which nothing is empty or null.
func same(t *testing.T, column []*float64, i int, cell string, factor, within float64) {
	t.Helper()
	if cell == "" || cell == "null" {
		if len(column) > 0 {
			require.Nil(t, column[i])
		}
		return
	}
	want, err := strconv.ParseFloat(cell, 64)
	require.NoError(t, err)
	require.NotEmpty(t, column)
	require.NotNil(t, column[i])
	require.InDelta(t, want*factor, *column[i], within)
}

func TestRealFIT_streamEqualsTheReferenceRecords(t *testing.T) {
	const semicircle = 180.0 / (1 << 31)
	for name, steps := range map[string]float64{"run_c": 2, "ride_c": 1} {
		t.Run(name, func(t *testing.T) {
			s, rep := importReal(t, nil, "fit", name+".fit")
			require.Equal(t, 1, rep.Streams)
			rows := table(t, realData(t, "fit", name+".records.csv"))
			stream := s.streams[0]
			require.Len(t, stream.Time, len(rows))
			beats := 0
			for i, row := range rows {
				when, err := time.Parse("Mon Jan 2 15:04:05 MST 2006", strings.Replace(row["timestamp"], "PDT", "GMT", 1))
				require.NoError(t, err)
				require.Equal(t, when.Unix()+7*3600, stream.Time[i], "Pacific daylight time is 7 h behind")
				if row["heart_rate"] != "" {
					require.Equal(t, row["heart_rate"], strconv.FormatInt(*stream.Heartrate[i], 10))
					require.Equal(t, row["heart_rate"], strconv.FormatFloat(s.samples["heartrate"][beats].Value.Number, 'f', -1, 64))
					require.Equal(t, stream.Time[i], s.samples["heartrate"][beats].Timestamp.Unix())
					beats++
				}
				// Between the counts of the oracle the device knows halves.
				same(t, stream.Cadence, i, row["cadence"], steps, 0.999*steps)
				same(t, stream.VelocitySmooth, i, row["speed"], 1, 1e-12)
				same(t, stream.Distance, i, row["distance"], 1, 1e-9)
				same(t, stream.Lat, i, row["position_lat"], semicircle, 1e-12)
				same(t, stream.Lng, i, row["position_long"], semicircle, 1e-12)
				same(t, stream.Altitude, i, row["altitude"], 1, 1e-12)
				same(t, stream.Temperature, i, row["temperature"], 1, 0)
			}
			require.Len(t, s.samples["heartrate"], beats)
			w := summariesOf[*healthdata.Workout](t, s, "workouts")[0]
			require.Equal(t, -7*3600, *w.TimezoneOffset)
		})
	}
}

func TestRealFIT_compressedRecordsEqualTheReference(t *testing.T) {
	zone := time.FixedZone("", 2*3600)
	s, rep := importReal(t, &fileimport.Options{Zone: zone}, "fit", "compressed_speed.fit")
	require.Equal(t, 1, rep.Streams)
	rows := table(t, realData(t, "fit", "compressed_speed.records.csv"))
	stream := s.streams[0]
	require.Len(t, stream.Time, len(rows))
	first, err := strconv.ParseInt(rows[0]["Timestamp"], 10, 64)
	require.NoError(t, err)
	for i, row := range rows {
		at, err := strconv.ParseInt(row["Timestamp"], 10, 64)
		require.NoError(t, err)
		require.Equal(t, at-first, stream.Time[i]-stream.Time[0])
		require.Equal(t, row["Heart Rate [bpm]"], strconv.FormatInt(*stream.Heartrate[i], 10))
		same(t, stream.VelocitySmooth, i, row["Speed [m/s]"], 1, 1e-12)
		same(t, stream.Distance, i, row["Distance [m]"], 1, 1e-12)
		same(t, stream.Cadence, i, row["Cadence [rpm]"], 2, 0)
	}
	// This watch counts seconds from when it was switched on, and says once what its
	// clock showed then: 2012-02-13 12:21:03.
	w := summariesOf[*healthdata.Workout](t, s, "workouts")[0]
	require.Equal(t, "2012-02-13", healthlab.DateOf(w.TimeStart.In(zone)).String())
	require.Equal(t, 2*3600, *w.TimezoneOffset)
	require.Equal(t, "running", w.Sport.Slug)
	require.InDelta(t, 10248.67, *w.Distance, 1e-9)
	require.EqualValues(t, 3773, *w.MovingTime)
}

func TestRealFIT_runGivesItsTotalsAndStream(t *testing.T) {
	s, rep := importReal(t, nil, "fit", "run_b.fit")
	require.Equal(t, map[string]int{"workouts": 1}, rep.Summaries)
	w := summariesOf[*healthdata.Workout](t, s, "workouts")[0]
	require.Equal(t, "running", w.Sport.Slug)
	require.Equal(t, healthdata.SlugManual, w.Source.Provider)
	require.Equal(t, 2*3600, *w.TimezoneOffset)
	require.InDelta(t, 9008.22, *w.Distance, 1e-9)
	require.EqualValues(t, 516, *w.Calories)
	require.EqualValues(t, 64, *w.TotalElevationGain)
	require.NotNil(t, w.Map)
	require.Len(t, s.streams[0].Time, 2809)
	require.NotEmpty(t, s.samples["heartrate"])
	require.Equal(t, "bpm", s.samples["heartrate"][0].Unit)
}

func TestRealFIT_indoorRideHasNoPositionOrPower(t *testing.T) {
	s, _ := importReal(t, nil, "fit", "ride_indoor_a.fit")
	w := summariesOf[*healthdata.Workout](t, s, "workouts")[0]
	require.Equal(t, "cycling", w.Sport.Slug)
	require.EqualValues(t, 166, *w.AverageHR)
	require.EqualValues(t, 191, *w.MaxHR)
	require.Len(t, s.streams[0].Time, 3098)
	require.Nil(t, s.streams[0].Lat[0], "there is no fix at first")
	require.Empty(t, s.streams[0].Power, "there is no meter")
}

func TestRealFIT_monitoringGivesTheDaysSteps(t *testing.T) {
	s, rep := importReal(t, nil, "fit", "monitoring.fit")
	require.Empty(t, rep.Summaries["workouts"])
	days := summariesOf[*healthdata.Activity](t, s, "activity")
	require.Len(t, days, 1)
	require.Equal(t, "2014-12-27", days[0].CalendarDate.String())
	require.Equal(t, -6*3600, *days[0].TimezoneOffset)
	require.EqualValues(t, 3142+31, *days[0].Steps, "what the device says of walking and running at the end of the day")
	require.EqualValues(t, 68+1, *days[0].CaloriesActive)
	total, end := 0.0, healthlab.Time{}
	for _, v := range s.samples["steps"] {
		require.False(t, v.Start.Before(end.Time), "intervals do not overlap")
		require.True(t, v.End.After(v.Start.Time))
		require.Equal(t, healthdata.SourceWatch, v.source.Type)
		total += v.Value.Number
		end = *v.End
	}
	require.EqualValues(t, 3173, total)
}

func TestRealFIT_weighingsGiveBodyAndWeight(t *testing.T) {
	s, rep := importReal(t, nil, "fit", "weight_scale.fit")
	bodies := summariesOf[*healthdata.Body](t, s, "body")
	require.Len(t, bodies, 2)
	require.InDelta(t, 75.8, *bodies[0].Weight, 1e-9)
	require.InDelta(t, 22.3, *bodies[0].Fat, 1e-9)
	require.InDelta(t, 58.2, *bodies[1].Weight, 1e-9)
	require.Equal(t, healthdata.SourceScale, bodies[0].Source.Type)
	require.Len(t, s.samples["weight"], 2)
	require.Len(t, rep.Notes, 1, "the scale knows two people")

	s, rep = importReal(t, &fileimport.Options{ScaleUser: at(1)}, "fit", "weight_scale.fit")
	require.Len(t, s.summaries["body"], 1)
	require.InDelta(t, 58.2, s.samples["weight"][0].Value.Number, 1e-9)
	require.Empty(t, rep.Notes)
}

// What of a damaged file can be read is imported, with a note.
func TestRealFIT_damagedFileIsReadWithANote(t *testing.T) {
	for _, name := range []string{"bad_corrupt_header.fit", "bad_unexpected_eof.fit"} {
		t.Run(name, func(t *testing.T) {
			var s recordingSink
			rep, err := fileimport.ImportFile(t.Context(), realData(t, "fit", name), &s, nil)
			require.NoError(t, err)
			require.NotEmpty(t, rep.Notes)
			t.Log(rep)
		})
	}
}

func TestRealGPX_walkGivesEveryPoint(t *testing.T) {
	s, rep := importReal(t, nil, "gpx", "walk_lake.gpx")
	require.Equal(t, fileimport.GPX, rep.Format)
	text, err := os.ReadFile(realData(t, "gpx", "walk_lake.gpx"))
	require.NoError(t, err)
	points := 0
	for _, v := range s.streams {
		points += len(v.Time)
	}
	require.Equal(t, strings.Count(string(text), "<trkpt "), points)
	w := summariesOf[*healthdata.Workout](t, s, "workouts")[0]
	require.Equal(t, "ACTIVE LOG #2", *w.Title)
	require.Equal(t, "2010-08-05T14:23:59+00:00", w.TimeStart.String())
	for i := range s.streams[0].Time[1:] {
		require.LessOrEqual(t, s.streams[0].Time[i], s.streams[0].Time[i+1])
		require.LessOrEqual(t, *s.streams[0].Distance[i], *s.streams[0].Distance[i+1])
	}
	t.Logf("%.0f m, %d s moving, %.0f m up", *w.Distance, *w.MovingTime, *w.TotalElevationGain)
}

func TestRealHealthExport_equalsTheReferenceTables(t *testing.T) {
	s, rep := importReal(t, nil, "health_export", "export.xml")
	require.Equal(t, fileimport.HealthExport, rep.Format)
	require.Empty(t, rep.Skipped)
	const layout = "2006-01-02 15:04:05 -0700"
	for _, v := range []struct {
		file, resource string
		factor         float64
	}{{"StepCount.csv", "steps", 1}, {"DistanceWalkingRunning.csv", "distance", 1000}} {
		rows := table(t, realData(t, "health_export", v.file))
		require.Len(t, s.samples[v.resource], len(rows))
		for i, row := range rows {
			got := s.samples[v.resource][i]
			start, err := time.Parse(layout, row["startDate"])
			require.NoError(t, err)
			end, err := time.Parse(layout, row["endDate"])
			require.NoError(t, err)
			value, err := strconv.ParseFloat(row["value"], 64)
			require.NoError(t, err)
			require.True(t, got.Start.Equal(start) && got.End.Equal(end) && got.Timestamp.Equal(start))
			stored, ok := healthdata.ResourceBySlug(v.resource).Convert(got.Value.Number, got.Unit, "")
			require.True(t, ok)
			require.InDelta(t, value*v.factor, stored, 1e-9)
			require.Equal(t, 3600, *got.TimezoneOffset)
			require.Equal(t, healthdata.SourceApp, got.source.Type)
			require.Equal(t, healthdata.SlugAppleHealthKit, got.source.Provider)
		}
	}
	days := summariesOf[*healthdata.Activity](t, s, "activity")
	rows := table(t, realData(t, "health_export", "ActivitySummary.csv"))
	require.Len(t, days, len(rows))
	for i, row := range rows {
		require.Equal(t, row["dateComponents"], days[i].CalendarDate.String())
		require.Equal(t, row["activeEnergyBurned"], strconv.FormatFloat(*days[i].CaloriesActive, 'f', -1, 64))
		require.Equal(t, row["appleExerciseTime"], strconv.FormatFloat(*days[i].Medium, 'f', -1, 64))
	}
	workouts := summariesOf[*healthdata.Workout](t, s, "workouts")
	rows = table(t, realData(t, "health_export", "Workout.csv"))
	require.Len(t, workouts, len(rows))
	for i, row := range rows {
		w := workouts[i]
		require.Equal(t, "other", w.Sport.Slug)
		require.Equal(t, healthdata.SourceWatch, w.Source.Type)
		start, err := time.Parse(layout, row["startDate"])
		require.NoError(t, err)
		require.True(t, w.TimeStart.Equal(start))
		require.Equal(t, row["totalEnergyBurned"], strconv.FormatFloat(*w.Calories, 'f', -1, 64))
		require.Zero(t, *w.Distance)
		require.EqualValues(t, 1904, *w.MovingTime, "31.7368 minutes")
	}
	me := summariesOf[*healthdata.Profile](t, s, "profile")
	require.Len(t, me, 1)
	require.Equal(t, "male", *me[0].Sex)
	require.Equal(t, 1965, me[0].BirthDate.Year)
}

func TestRealFolder_importsEveryRecording(t *testing.T) {
	var s recordingSink
	reports, err := fileimport.ImportDir(t.Context(), realData(t, "fit"), &s, nil)
	require.NoError(t, err)
	for _, r := range reports {
		switch {
		case strings.HasPrefix(r.Name, "bad_"):
			require.NoError(t, r.Err)
			require.NotEmpty(t, r.Notes)
		case filepath.Ext(r.Name) == ".fit":
			require.NoError(t, r.Err)
		default:
			require.ErrorIs(t, r.Err, fileimport.ErrFormat)
		}
		t.Log(r)
	}
	require.Len(t, s.summaries["workouts"], 7)
}
