package fileimport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// smallExport has one of everything. Its document type is broken in the way in which
// some versions of the phone break it: a declaration that is not closed.
const smallExport = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE HealthData [
<!-- Version's 12 -->
<!ELEMENT HealthData (Record*)>
<!ATTLIST VisionPrescription
  type CDATA #REQUIRED
<!ELEMENT RightEye EMPTY>
]>
<HealthData locale="en_GB">
 <ExportDate value="2026-04-19 09:00:00 +0200"/>
 <Me HKCharacteristicTypeIdentifierDateOfBirth="1990-02-03" HKCharacteristicTypeIdentifierBiologicalSex="HKBiologicalSexFemale"/>
 <Record type="HKQuantityTypeIdentifierHeight" sourceName="Health" unit="ft" startDate="2020-01-01 08:00:00 +0100" endDate="2020-01-01 08:00:00 +0100" value="5.5"/>
 <Record type="HKQuantityTypeIdentifierBodyMass" sourceName="Scale &amp; Co" unit="lb" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 08:00:00 +0200" value="150"/>
 <Record type="HKQuantityTypeIdentifierBodyFatPercentage" sourceName="Scale &amp; Co" unit="%" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 08:00:00 +0200" value="0.215"/>
 <Record type="HKQuantityTypeIdentifierHeartRate" sourceName="Kim’s Watch" device="&lt;&lt;HKDevice: 0x1&gt;, name:Watch, manufacturer:Apple Inc., model:Watch, hardware:Watch6,1&gt;" unit="count/min" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 08:00:05 +0200" value="61.5">
  <MetadataEntry key="HKTimeZone" value="America/New_York"/>
 </Record>
 <Record type="HKQuantityTypeIdentifierHeartRate" sourceName="Kim’s Watch" device="&lt;&lt;HKDevice: 0x2&gt;, name:Phone, manufacturer:Apple Inc., model:Phone, hardware:Phone12,1&gt;" unit="count/min" startDate="2026-04-18 08:01:00 +0200" endDate="2026-04-18 08:01:00 +0200" value="62"/>
 <Record type="HKQuantityTypeIdentifierBloodGlucose" sourceName="Meter" unit="mg/dL" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 08:00:00 +0200" value="90.091">
  <MetadataEntry key="HKWasUserEntered" value="1"/>
 </Record>
 <Record type="HKQuantityTypeIdentifierBloodGlucose" sourceName="Meter" unit="mmol&lt;180.1558800000541&gt;/L" startDate="2026-04-18 09:00:00 +0200" endDate="2026-04-18 09:00:00 +0200" value="5.1"/>
 <Record type="HKQuantityTypeIdentifierOxygenSaturation" sourceName="com.example.pulse" unit="%" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 08:00:00 +0200" value="0.97"/>
 <Record type="HKQuantityTypeIdentifierBodyTemperature" sourceName="T" unit="degF" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 08:00:00 +0200" value="98.6">
  <MetadataEntry key="HKBodyTemperatureSensorLocation" value="3"/>
 </Record>
 <Record type="HKQuantityTypeIdentifierBasalEnergyBurned" sourceName="Pedometer" unit="kJ" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 09:00:00 +0200" value="418.4"/>
 <Record type="HKQuantityTypeIdentifierDistanceWalkingRunning" sourceName="Pedometer" unit="mi" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 09:00:00 +0200" value="2"/>
 <Record type="HKQuantityTypeIdentifierDistanceWheelchair" sourceName="Pedometer" unit="km" startDate="2026-04-18 10:00:00 +0200" endDate="2026-04-18 11:00:00 +0200" value="1"/>
 <Record type="HKCategoryTypeIdentifierAppleStandHour" sourceName="W" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 09:00:00 +0200" value="HKCategoryValueAppleStandHourStood"/>
 <Record type="HKCategoryTypeIdentifierMindfulSession" sourceName="W" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 08:02:30 +0200"/>
 <Record type="HKCategoryTypeIdentifierHighHeartRateEvent" sourceName="W" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 08:05:00 +0200" value="HKCategoryValueNotApplicable"/>
 <Record type="HKQuantityTypeIdentifierHeartRateVariabilitySDNN" sourceName="W" unit="ms" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 08:01:00 +0200" value="44">
  <HeartRateVariabilityMetadataList><InstantaneousBeatsPerMinute bpm="60" time="8:00:00"/></HeartRateVariabilityMetadataList>
 </Record>
 <Record type="HKQuantityTypeIdentifierStepCount" sourceName="W" unit="paces" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 08:01:00 +0200" value="44"/>
 <Record type="HKQuantityTypeIdentifierStepCount" sourceName="W" unit="count" startDate="2026-04-18 08:01:00 +0200" endDate="2026-04-18 08:00:00 +0200" value="44"/>
 <Record type="HKCategoryTypeIdentifierSleepAnalysis" sourceName="Kim’s Watch" startDate="2026-04-17 23:30:00 +0200" endDate="2026-04-18 06:30:00 +0200" value="HKCategoryValueSleepAnalysisInBed"/>
 <Record type="HKCategoryTypeIdentifierSleepAnalysis" sourceName="Kim’s Watch" startDate="2026-04-18 01:00:00 +0200" endDate="2026-04-18 03:00:00 +0200" value="HKCategoryValueSleepAnalysisAsleepDeep"/>
 <Record type="HKCategoryTypeIdentifierSleepAnalysis" sourceName="Kim’s Watch" startDate="2026-04-17 23:45:00 +0200" endDate="2026-04-18 01:00:00 +0200" value="HKCategoryValueSleepAnalysisAsleepCore"/>
 <Record type="HKCategoryTypeIdentifierSleepAnalysis" sourceName="Kim’s Watch" startDate="2026-04-18 03:00:00 +0200" endDate="2026-04-18 03:10:00 +0200" value="HKCategoryValueSleepAnalysisAwake"/>
 <Record type="HKCategoryTypeIdentifierSleepAnalysis" sourceName="Kim’s Watch" startDate="2026-04-18 03:05:00 +0200" endDate="2026-04-18 06:10:00 +0200" value="HKCategoryValueSleepAnalysisAsleepREM"/>
 <Record type="HKCategoryTypeIdentifierSleepAnalysis" sourceName="Kim’s Watch" startDate="2026-04-18 14:00:00 +0200" endDate="2026-04-18 14:20:00 +0200" value="HKCategoryValueSleepAnalysisAsleepUnspecified"/>
 <Record type="HKCategoryTypeIdentifierSleepAnalysis" sourceName="Bedside" startDate="2026-04-17 23:00:00 +0200" endDate="2026-04-18 07:00:00 +0200" value="HKCategoryValueSleepAnalysisInBed"/>
 <Correlation type="HKCorrelationTypeIdentifierBloodPressure" sourceName="Cuff" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 08:00:00 +0200">
  <MetadataEntry key="HKWasUserEntered" value="1"/>
  <Record type="HKQuantityTypeIdentifierBloodPressureSystolic" sourceName="Cuff" unit="mmHg" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 08:00:00 +0200" value="122"/>
  <Record type="HKQuantityTypeIdentifierBloodPressureDiastolic" sourceName="Cuff" unit="mmHg" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 08:00:00 +0200" value="81"/>
 </Correlation>
 <Record type="HKQuantityTypeIdentifierBloodPressureSystolic" sourceName="Cuff" unit="mmHg" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 08:00:00 +0200" value="122"/>
 <Record type="HKQuantityTypeIdentifierBloodPressureDiastolic" sourceName="Cuff" unit="mmHg" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 08:00:00 +0200" value="81"/>
 <Correlation type="HKCorrelationTypeIdentifierFood" sourceName="App" startDate="2026-04-18 12:00:00 +0200" endDate="2026-04-18 12:00:00 +0200">
  <Record type="HKQuantityTypeIdentifierDietaryCaffeine" sourceName="App" unit="mg" startDate="2026-04-18 12:00:00 +0200" endDate="2026-04-18 12:00:00 +0200" value="80"/>
 </Correlation>
 <Record type="HKQuantityTypeIdentifierDietaryCaffeine" sourceName="App" unit="mg" startDate="2026-04-18 12:00:00 +0200" endDate="2026-04-18 12:00:00 +0200" value="80"/>
 <Workout workoutActivityType="HKWorkoutActivityTypeTraditionalStrengthTraining" duration="30.5" durationUnit="min" totalDistance="0" totalDistanceUnit="km" totalEnergyBurned="837" totalEnergyBurnedUnit="kJ" sourceName="com.example.gym" startDate="2026-04-18 17:00:00 +0200" endDate="2026-04-18 17:40:00 +0200"/>
 <Workout workoutActivityType="HKWorkoutActivityTypeRunning" duration="25" durationUnit="min" sourceName="Kim’s Watch" startDate="2026-04-18 08:30:00 +0200" endDate="2026-04-18 09:00:00 +0200">
  <MetadataEntry key="HKTimeZone" value="Europe/Lisbon"/>
  <MetadataEntry key="HKElevationAscended" value="4200 cm"/>
  <MetadataEntry key="HKExternalUUID" value="run-7"/>
  <WorkoutEvent type="HKWorkoutEventTypePause" date="2026-04-18 08:40:00 +0200"/>
  <WorkoutStatistics type="HKQuantityTypeIdentifierHeartRate" average="141.6" minimum="88" maximum="163" unit="count/min"/>
  <WorkoutStatistics type="HKQuantityTypeIdentifierDistanceWalkingRunning" sum="5.01" unit="km"/>
  <WorkoutStatistics type="HKQuantityTypeIdentifierActiveEnergyBurned" sum="310" unit="Cal"/>
  <WorkoutStatistics type="HKQuantityTypeIdentifierStepCount" sum="4321.2" unit="count"/>
  <WorkoutStatistics type="HKQuantityTypeIdentifierRunningPower" average="240" maximum="301" unit="W"/>
  <WorkoutStatistics type="HKQuantityTypeIdentifierRunningSpeed" average="12.6" maximum="15.3" unit="km/hr"/>
  <WorkoutRoute sourceName="Kim’s Watch" startDate="2026-04-18 08:30:00 +0200" endDate="2026-04-18 09:00:00 +0200">
   <FileReference path="/workout-routes/route_1.gpx"/>
  </WorkoutRoute>
 </Workout>
 <ActivitySummary dateComponents="2026-04-18" activeEnergyBurned="2092" activeEnergyBurnedUnit="kJ" appleExerciseTime="41" appleStandHours="12"/>
 <ClinicalRecord type="x" identifier="y"/>
</HealthData>
`

func TestHealthExport_givesSamplesAndCountsSkippedRecords(t *testing.T) {
	s, rep, err := importBytes(t, []byte(smallExport), nil)
	require.NoError(t, err)
	require.Equal(t, map[string]int{
		"HKQuantityTypeIdentifierStepCount (in paces)":              1,
		"HKQuantityTypeIdentifierStepCount (ends before it starts)": 1,
		"HKCorrelationTypeIdentifierFood":                           1,
		"ClinicalRecord":                                            1,
	}, rep.Skipped)
	eight := time.Date(2026, 4, 18, 6, 0, 0, 0, time.UTC)
	for resource, want := range map[string]struct {
		n     int
		value float64
		from  healthdata.SourceType
	}{
		"heartrate":           {2, 61.5, healthdata.SourceWatch},
		"glucose":             {2, 5, healthdata.SourceApp},
		"hrv_sdnn":            {1, 44, healthdata.SourceUnknown},
		"blood_oxygen":        {1, 97, healthdata.SourceUnknown},
		"body_temperature":    {1, 37, healthdata.SourceUnknown},
		"calories_basal":      {1, 100, healthdata.SourceUnknown},
		"distance":            {2, 2 * 1609.344, healthdata.SourceUnknown},
		"weight":              {1, 150 * 0.45359237, healthdata.SourceUnknown},
		"fat":                 {1, 21.5, healthdata.SourceUnknown},
		"stand_hour":          {1, 1, healthdata.SourceUnknown},
		"mindfulness_minutes": {1, 2.5, healthdata.SourceUnknown},
		"heart_rate_alert":    {1, 1, healthdata.SourceUnknown},
		"blood_pressure":      {1, 0, healthdata.SourceUnknown},
		"caffeine":            {1, 0.08, healthdata.SourceUnknown},
	} {
		got := s.samples[resource]
		require.Len(t, got, want.n, resource)
		i := slices.IndexFunc(got, func(v kept) bool { return v.source.Type == want.from })
		require.GreaterOrEqual(t, i, 0, resource)
		v := got[i]
		r := healthdata.ResourceBySlug(resource)
		if unit := map[string]string{"distance": "mi", "weight": "lb", "body_temperature": "degF", "caffeine": "mg", "glucose": "mg/dL", "calories_basal": "kJ"}[resource]; unit != "" {
			require.Equal(t, unit, v.Unit, "as the file has it")
		} else {
			require.Equal(t, r.Unit, v.Unit, resource)
		}
		require.Equal(t, healthdata.SlugAppleHealthKit, v.source.Provider)
		require.NotNil(t, v.source.AppID, "samples have the origin that the store names")
		require.Equal(t, r.Shape != healthdata.Discrete, v.Start != nil, resource)
		if resource != "caffeine" {
			require.True(t, v.Timestamp.Equal(eight), resource)
		}
		if resource != "blood_pressure" {
			stored, ok := r.Convert(v.Value.Number, v.Unit, "")
			require.True(t, ok, resource)
			require.InDelta(t, want.value, stored, 1e-9, resource)
		}
	}
	require.Len(t, s.samples, 14, "and nothing else")
	require.Equal(t, healthdata.SourcePhone, s.samples["heartrate"][0].source.Type)
	require.Equal(t, 2*3600, *s.samples["heartrate"][0].TimezoneOffset)
	require.Equal(t, -4*3600, *s.samples["heartrate"][1].TimezoneOffset, "the record's own zone wins")
	require.Equal(t, "ear", *s.samples["body_temperature"][0].SensorLocation)
	require.Equal(t, "stood", *s.samples["stand_hour"][0].Type)
	require.Equal(t, "high_heart_rate", *s.samples["heart_rate_alert"][0].Type)
	require.EqualValues(t, 122, *s.samples["blood_pressure"][0].Systolic)
	require.EqualValues(t, 81, *s.samples["blood_pressure"][0].Diastolic)
	require.Nil(t, s.samples["distance"][0].source.Sport)
	require.Equal(t, "wheelchair_pushing", *s.samples["distance"][1].source.Sport)
	require.InDelta(t, 5.1, s.samples["glucose"][1].Value.Number, 0)
}

func TestHealthExport_givesNightsWithStages(t *testing.T) {
	s, _, err := importBytes(t, []byte(smallExport), nil)
	require.NoError(t, err)
	nights := map[string]*healthdata.Sleep{}
	for _, n := range summariesOf[*healthdata.Sleep](t, s, "sleep") {
		nights[n.BedtimeStart.String()] = n
	}
	require.Len(t, nights, 3, "a night, a nap, and what another source saw of the night")
	n := nights["2026-04-17T21:30:00+00:00"]
	require.Equal(t, "2026-04-18T04:30:00+00:00", n.BedtimeStop.String())
	require.EqualValues(t, 75*60, *n.Light)
	require.EqualValues(t, 120*60, *n.Deep)
	require.EqualValues(t, 10*60, *n.Awake)
	require.EqualValues(t, 180*60, *n.REM, "what the stage before covers is not counted twice")
	require.EqualValues(t, 375*60, *n.Total)
	nap := nights["2026-04-18T12:00:00+00:00"]
	require.EqualValues(t, 20*60, *nap.Total)
	require.NotEqual(t, n.ExternalID, nap.ExternalID)
	cycles := summariesOf[*healthdata.SleepCycle](t, s, "sleep_cycle")
	require.Len(t, cycles, 2, "time in bed has no stages")
	for _, c := range cycles {
		night := nights[c.SessionStart.String()]
		require.Equal(t, night.ExternalID, c.ExternalID)
		if night == n {
			require.Equal(t, []int64{900, 5400, 12600, 13200}, c.StageStartOffsetSecond)
			require.Equal(t, []healthdata.SleepStage{2, 1, 4, 3}, c.StageType)
		}
	}
}

func TestHealthExport_givesBodyActivityAndWorkouts(t *testing.T) {
	s, _, err := importBytes(t, []byte(smallExport), nil)
	require.NoError(t, err)
	body := summariesOf[*healthdata.Body](t, s, "body")
	require.Len(t, body, 1, "weight and fat of one moment are one measurement")
	require.InDelta(t, 68.0388555, *body[0].Weight, 1e-9)
	require.InDelta(t, 21.5, *body[0].Fat, 1e-9)
	require.Equal(t, 7200, *body[0].TimezoneOffset)

	me := summariesOf[*healthdata.Profile](t, s, "profile")
	require.Len(t, me, 1)
	require.EqualValues(t, 168, *me[0].Height)
	require.Equal(t, "female", *me[0].Sex)

	day := summariesOf[*healthdata.Activity](t, s, "activity")
	require.Len(t, day, 1)
	require.InDelta(t, 500, *day[0].CaloriesActive, 1e-9)
	require.InDelta(t, 41, *day[0].Medium, 0)

	workouts := summariesOf[*healthdata.Workout](t, s, "workouts")
	require.Len(t, workouts, 2)
	gym, run := workouts[0], workouts[1]
	require.Equal(t, "strength_training", gym.Sport.Slug)
	require.Equal(t, "com.example.gym", *gym.Source.AppID)
	require.InDelta(t, 837/4.184, *gym.Calories, 1e-9)
	require.EqualValues(t, 1830, *gym.MovingTime)
	require.Equal(t, healthdata.SourceWatch, run.Source.Type)
	require.NotContains(t, *run.Source.AppID, "Watch", "a name may be that of a person")
	require.Equal(t, 3600, *run.TimezoneOffset)
	require.Equal(t, "run-7", run.ExternalID)
	require.EqualValues(t, 142, *run.AverageHR)
	require.EqualValues(t, 163, *run.MaxHR)
	require.InDelta(t, 5010, *run.Distance, 1e-9)
	require.InDelta(t, 310, *run.Calories, 0)
	require.EqualValues(t, 4321, *run.Steps)
	require.InDelta(t, 42, *run.TotalElevationGain, 1e-9)
	require.InDelta(t, 3.5, *run.AverageSpeed, 1e-9)
	require.EqualValues(t, 301, *run.MaxWatts)
	require.Empty(t, s.streams, "the track is in another file")
}

// Two watches of one phone store are two origins of one source, the same ones in every file. Their names, which may
// be those of a person, are not kept.
func TestHealthExport_distinguishesWatchesWithoutStoringTheirNames(t *testing.T) {
	record := func(name, from string) string {
		return `<Record type="HKQuantityTypeIdentifierStepCount" sourceName="` + name + `" unit="count" startDate="2026-04-18 ` + from +
			`:00:00 +0100" endDate="2026-04-18 ` + from + `:30:00 +0100" value="100"/>`
	}
	appsOf := func(records ...string) map[string]int {
		s, _, err := importBytes(t, []byte(`<HealthData locale="en_GB">`+strings.Join(records, "")+`</HealthData>`), nil)
		require.NoError(t, err)
		apps := map[string]int{}
		for _, v := range s.samples["steps"] {
			require.Equal(t, healthdata.SourceWatch, v.source.Type)
			require.NotContains(t, *v.source.AppID, "Ann")
			apps[*v.source.AppID]++
		}
		return apps
	}
	both := appsOf(record("Ann’s Apple Watch", "08"), record("Apple Watch Ultra", "08"), record("Ann’s Apple Watch", "09"))
	require.Len(t, both, 2)
	for app, n := range appsOf(record("Ann’s Apple Watch", "08"), record("Ann’s Apple Watch", "09")) {
		require.Equal(t, n, both[app])
	}
}

// A folder as the phone writes it: the tracks beside the export belong to its workouts.
func TestHealthExport_joinsTrackFilesInItsFolderWithTheirWorkouts(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "workout-routes"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "workout-routes", "route_1.gpx"), []byte(smallGPX), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "workout-routes", "route_2.gpx"), []byte(smallGPX), 0o600))
	name := filepath.Join(dir, "export.xml")
	require.NoError(t, os.WriteFile(name, []byte(smallExport), 0o600))
	var s recordingSink
	reports, err := fileimport.ImportDir(t.Context(), dir, &s, nil)
	require.NoError(t, err)
	require.Len(t, reports, 1)
	require.Equal(t, 1, reports[0].Streams)
	require.Len(t, s.streams, 1)
	require.Equal(t, "run-7", s.streamsOf[0].ExternalID)
	require.Len(t, s.streams[0].Lat, 5)
	require.NotNil(t, s.streamsOf[0].Map)
	require.InDelta(t, 5010, *s.streamsOf[0].Distance, 1e-9, "the store's total wins over the track's")

	// Wherever the export points, nothing outside its folder is opened.
	outside := strings.Replace(smallExport, "/workout-routes/route_1.gpx", "../../../../etc/passwd", 1)
	require.NoError(t, os.WriteFile(name, []byte(outside), 0o600))
	s = recordingSink{}
	rep, err := fileimport.ImportFile(t.Context(), name, &s, nil)
	require.NoError(t, err)
	require.Empty(t, s.streams)
	require.Len(t, rep.Notes, 1)
}

// The import gives the same result from a seekable reader, from one that must be spooled, and
// from one that returns a byte at a time.
func TestHealthExport_dataDoesNotDependOnTheKindOfReader(t *testing.T) {
	want, _, err := importBytes(t, []byte(smallExport), nil)
	require.NoError(t, err)
	dir := t.TempDir()
	for name, r := range map[string]io.Reader{
		"stream": struct{ io.Reader }{strings.NewReader(smallExport)},
		"bytes":  iotest.OneByteReader(strings.NewReader(smallExport)),
		"eof":    iotest.DataErrReader(strings.NewReader(smallExport)),
	} {
		var s recordingSink
		_, err := fileimport.Import(t.Context(), r, &s, &fileimport.Options{TempDir: dir})
		require.NoError(t, err, name)
		require.Equal(t, want.samples, s.samples, name)
		require.Equal(t, want.summaries, s.summaries, name)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "spooled files are removed")

	middle := strings.NewReader("before" + smallExport)
	_, err = middle.Seek(6, io.SeekStart)
	require.NoError(t, err)
	var s recordingSink
	_, err = fileimport.Import(t.Context(), middle, &s, nil)
	require.NoError(t, err, "a reader is rewound to where it was, not to its start")
	require.Equal(t, want.samples, s.samples)
}

func TestHealthExport_batchSizeDoesNotChangeTheData(t *testing.T) {
	want, _, err := importBytes(t, []byte(smallExport), nil)
	require.NoError(t, err)
	for _, size := range []int{1, 2, 3} {
		s, _, err := importBytes(t, []byte(smallExport), &fileimport.Options{BatchSize: size})
		require.NoError(t, err)
		require.LessOrEqual(t, s.most, size)
		for resource, items := range want.samples {
			require.ElementsMatch(t, items, s.samples[resource])
		}
		for resource, items := range want.summaries {
			require.ElementsMatch(t, items, s.summaries[resource])
		}
	}
}

// Wherever an export is cut, what stands before is imported.
func TestHealthExport_truncatedFileIsImportedUpToTheCut(t *testing.T) {
	text := strings.TrimRight(smallExport, "\n")
	items := 0
	for n := strings.Index(text, "<HealthData") + len("<HealthData>") + 60; n < len(text); n++ {
		_, rep, err := importBytes(t, []byte(text[:n]), nil)
		require.NoError(t, err, "%d bytes", n)
		require.NotEmpty(t, rep.Skipped, "%d bytes", n)
		sum := 0
		for _, count := range rep.Samples {
			sum += count
		}
		require.GreaterOrEqual(t, sum, items)
		items = sum
	}
}

// What of an export cannot be read costs itself, and the report says what and where.
func TestHealthExport_invalidElementIsLeftOutAndReported(t *testing.T) {
	const fine = `<Record type="HKQuantityTypeIdentifierStepCount" sourceName="W" unit="count" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 08:01:00 +0200" value="44"/>`
	for name, c := range map[string]struct {
		text, told string
		steps      int // samples besides the two good ones
	}{
		"date":         {strings.Replace(fine, "2026-04-18 08:00:00 +0200", "18/04/2026", 1), "record whose startDate is not a date-time", 0},
		"no such day":  {strings.Replace(fine, "2026-04-18 08:00", "2026-02-29 08:00", 1), "record whose startDate is not a date-time", 0},
		"no offset":    {strings.Replace(fine, ":00 +0200", ":00", 1), "record whose startDate is not a date-time", 0},
		"wide offset":  {strings.Replace(fine, "+0200", "+1830", 1), "record whose startDate is not a date-time", 0},
		"no end":       {strings.Replace(fine, "endDate", "finish", 1), "record whose endDate is not a date-time", 0},
		"no type":      {strings.Replace(fine, "type=", "kind=", 1), "record without a type", 0},
		"number":       {strings.Replace(fine, `"44"`, `"many"`, 1), "record whose value is not a number", 0},
		"nan":          {strings.Replace(fine, `"44"`, `"NaN"`, 1), "record whose value is not a number", 0},
		"huge":         {strings.Replace(fine, `"44"`, `"1e999"`, 1), "record whose value is not a number", 0},
		"unquoted":     {strings.Replace(fine, `"44"`, `44`, 1), "tag that cannot be read", 0},
		"twice":        {strings.Replace(fine, `value="44"`, `value="44" value="44"`, 1), "tag that cannot be read", 0},
		"spaces":       {strings.Replace(fine, `value=`, `Company App Version="2.6.0" value=`, 1), "tag that cannot be read", 0},
		"open quote":   {strings.Replace(fine, `"44"`, `"44`, 1), "tag that cannot be read", 0},
		"other end":    {strings.Replace(fine, `/>`, `></Workout>`, 1), "end tag that matches no start tag", 1},
		"entity":       {strings.Replace(fine, `"W"`, `"&company;"`, 1), "character or reference", 1},
		"reference":    {strings.Replace(fine, `"W"`, `"a&#x0b;b"`, 1), "character or reference", 1},
		"less":         {strings.Replace(fine, `"W"`, `"<"`, 1), "tag that cannot be read", 0},
		"utf8":         {strings.Replace(fine, `"W"`, "\"\xff\"", 1), "character or reference", 1},
		"control":      {strings.Replace(fine, `"W"`, "\"\x01\"", 1), "character or reference", 1},
		"text":         {fine + "&", "character or reference", 1},
		"workout":      {`<Workout startDate="2026-04-18 08:00:00 +0200"/>`, "workout whose endDate is not", 0},
		"backwards":    {`<Workout startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 07:00:00 +0200"/>`, "workout that ends before it starts", 0},
		"duration":     {`<Workout duration="x" durationUnit="min" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 09:00:00 +0200"/>`, "value that is no number: duration", 0},
		"day":          {`<ActivitySummary dateComponents="soon"/>`, "activity summary without its day", 0},
		"day's energy": {`<ActivitySummary dateComponents="2026-04-18" activeEnergyBurned="x"/>`, "value that is no number: activeEnergyBurned", 0},
		"birth":        {`<Me HKCharacteristicTypeIdentifierDateOfBirth="long ago"/>`, "birth date that is no day", 0},
		"comment":      {`<!-- a -- b -->`, "comment that is not well formed", 0},
		"doctype":      {`<!DOCTYPE x>`, "document type inside the document", 0},
		"declaration":  {`<?xml version="1.0"?>`, "XML declaration inside the document", 0},
		"instruction":  {`<??>`, "processing instruction that cannot be read", 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, rep, err := importBytes(t, []byte("<HealthData>\n"+fine+"\n"+c.text+"\n"+fine+"\n</HealthData>"), nil)
			require.NoError(t, err)
			require.Equal(t, 2+c.steps, rep.Samples["steps"], rep.String())
			require.Contains(t, rep.String(), "line 3: left out: "+c.told)
			for _, secret := range []string{"company", "long ago", "soon", "many", "18/04"} {
				require.NotContains(t, rep.String(), secret)
			}
		})
	}
	_, _, err := importBytes(t, []byte(`<HealthData>`+strings.Repeat("<a>", 1000)), nil)
	require.ErrorContains(t, err, "nested")
	_, _, err = importBytes(t, []byte(`<HealthData a="`+strings.Repeat("a", 2<<20)+`"/>`), nil)
	require.ErrorContains(t, err, "a tag, comment or text must have at most 1048576 bytes")
	_, _, err = importBytes(t, []byte(`<?xml version="1.0" encoding="klingon"?><HealthData/>`), nil)
	require.ErrorContains(t, err, "UTF-8")
}

// A sink that refuses items loses those, whether it stores the others of the call or none.
func TestSink_refusedItemsAreReportedAndTheOthersStored(t *testing.T) {
	record := func(value string) string {
		return `<Record type="HKQuantityTypeIdentifierStepCount" sourceName="W" unit="count" startDate="2026-04-18 08:0` + value + `:00 +0200" endDate="2026-04-18 08:0` + value + `:30 +0200" value="-` + value + `"/>`
	}
	weight := `<Record type="HKQuantityTypeIdentifierBodyMass" sourceName="W" unit="kg" startDate="2026-04-01 00:00:00 +0000" endDate="2026-04-01 00:00:00 +0000" value="7000"/>`
	heart := `<Record type="HKQuantityTypeIdentifierHeartRate" sourceName="W" unit="count/min" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 08:00:00 +0200" value="60"/>`
	s := newIngestion(t)
	rep, err := fileimport.Import(t.Context(), strings.NewReader("<HealthData>"+record("5")+record("6")+weight+heart+"</HealthData>"), s, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"heartrate": 1}, rep.Samples)
	require.Equal(t, map[string]int{"steps": 2, "weight": 1, "body": 1}, rep.Refused)
	require.Contains(t, rep.String(), "note: refused: steps.value: must be 0 to 500000 count")
	// The service names the first 100 refused items of a call; all are counted, also where it refuses the call.
	for n, good := range map[int]string{250: heart, 251: strings.Replace(record("7"), `"-7"`, `"7"`, 1)} {
		rep, err = fileimport.Import(t.Context(), strings.NewReader("<HealthData>"+strings.Repeat(record("5"), n)+good+"</HealthData>"), newIngestion(t), nil)
		require.NoError(t, err)
		require.Equal(t, map[string]int{"steps": n}, rep.Refused)
	}
	// A file of which every item is refused is an error.
	_, err = fileimport.Import(t.Context(), strings.NewReader("<HealthData>"+record("5")+"</HealthData>"), newIngestion(t), nil)
	require.ErrorIs(t, err, healthlab.Invalid)
}

// The distance of several sports is the sum of theirs, that of one sport the one of its own type. Means of several sports
// have no total.
func TestHealthExport_totalsOfAWorkoutOfSeveralTypesAreSumsOrNull(t *testing.T) {
	statistic := func(kind, values string) string {
		return `<WorkoutStatistics type="HKQuantityTypeIdentifier` + kind + `" ` + values + `/>`
	}
	swim, bike, run := statistic("DistanceSwimming", `sum="1500" unit="m"`), statistic("DistanceCycling", `sum="40" unit="km"`), statistic("DistanceWalkingRunning", `sum="10" unit="km"`)
	bad := statistic("DistanceCycling", `sum="40" unit="kg"`)
	const none = -1.0
	for name, c := range map[string]struct {
		sport, statistics string
		distance          float64
		told              bool
	}{
		"several sports":                    {`SwimBikeRun"`, swim + bike + run, 51500, false},
		"several sports in another order":   {`SwimBikeRun"`, run + swim + bike, 51500, false},
		"two of the sports":                 {`SwimBikeRun"`, bike + run, 50000, false},
		"a distance that cannot be read":    {`SwimBikeRun"`, swim + bad + run, none, true},
		"a total of the workout":            {`SwimBikeRun" totalDistance="51.5" totalDistanceUnit="km"`, swim + bad + run, 51500, true},
		"one sport":                         {`Cycling"`, bike, 40000, false},
		"one sport of two types":            {`Cycling"`, bike + run, 40000, false},
		"one sport of two types, reversed":  {`Cycling"`, run + bike, 40000, false},
		"one type that is not of the sport": {`Elliptical"`, run, 10000, false},
		"types that are not of the sport":   {`Elliptical"`, run + bike, none, true},
		"the same distance twice":           {`Hiking"`, run + statistic("DistanceWheelchair", `sum="10" unit="km"`), 10000, false},
	} {
		t.Run(name, func(t *testing.T) {
			file := `<HealthData><Workout workoutActivityType="HKWorkoutActivityType` + c.sport + ` sourceName="W" startDate="2026-04-18 08:30:00 +0200" endDate="2026-04-18 11:00:00 +0200">` + c.statistics + `</Workout></HealthData>`
			s, rep, err := importBytes(t, []byte(file), nil)
			require.NoError(t, err)
			w := summariesOf[*healthdata.Workout](t, s, "workouts")[0]
			if c.distance == none {
				require.Nil(t, w.Distance)
			} else {
				require.InDelta(t, c.distance, *w.Distance, 1e-6)
			}
			require.Equal(t, c.told, len(rep.Notes) > 0, rep.Notes)
		})
	}
	file := `<HealthData><Workout workoutActivityType="HKWorkoutActivityTypeSwimBikeRun" sourceName="W" startDate="2026-04-18 08:30:00 +0200" endDate="2026-04-18 11:00:00 +0200">` +
		statistic("CyclingPower", `average="200" maximum="500" unit="W"`) + statistic("RunningPower", `average="240" maximum="301" unit="W"`) +
		statistic("CyclingSpeed", `average="9" maximum="15" unit="m/s"`) + statistic("RunningSpeed", `average="3" maximum="5" unit="m/s"`) + `</Workout></HealthData>`
	s, rep, err := importBytes(t, []byte(file), nil)
	require.NoError(t, err)
	w := summariesOf[*healthdata.Workout](t, s, "workouts")[0]
	require.Equal(t, []*float64{nil, nil, nil}, []*float64{w.AverageWatts, w.DeviceWatts, w.AverageSpeed})
	require.Equal(t, []float64{500, 15}, []float64{*w.MaxWatts, *w.MaxSpeed})
	require.Len(t, rep.Notes, 2)
}

// Of stretches of sleep that overlap, the finer one holds for its part, in whatever order they stand.
func TestHealthExport_overlappingSleepIntervalsAreCountedOnce(t *testing.T) {
	stretch := func(value, from, to string) string {
		return `<Record type="HKCategoryTypeIdentifierSleepAnalysis" sourceName="W" startDate="2026-04-18 ` + from + `:00 +0200" endDate="2026-04-18 ` + to + `:00 +0200" value="` + value + `"/>`
	}
	const prefix = "HKCategoryValueSleepAnalysis"
	type night struct{ total, light, deep, awake int64 } // minutes; -1 is null
	for name, c := range map[string]struct {
		records []string
		want    night
	}{
		"twice":                {[]string{stretch(prefix+"AsleepCore", "01:00", "05:00"), stretch(prefix+"AsleepCore", "01:00", "05:00")}, night{240, 240, 0, 0}},
		"a stage in the night": {[]string{stretch(prefix+"AsleepUnspecified", "00:59", "05:00"), stretch(prefix+"AsleepCore", "01:00", "04:00"), stretch(prefix+"AsleepDeep", "04:00", "05:00")}, night{241, 180, 60, 0}},
		"awake in the night":   {[]string{stretch(prefix+"AsleepCore", "01:00", "05:00"), stretch(prefix+"Awake", "02:00", "02:30")}, night{210, 210, 0, 30}},
		"one stage of a night": {[]string{stretch(prefix+"AsleepUnspecified", "00:00", "08:00"), stretch(prefix+"AsleepDeep", "01:00", "02:00")}, night{480, -1, -1, -1}},
		"numbers":              {[]string{stretch("0", "00:00", "08:00"), stretch("3", "01:00", "05:00"), stretch("4", "05:00", "06:00"), stretch("2", "06:00", "06:10")}, night{300, 240, 60, 10}},
		"days long":            {[]string{stretch(prefix+"AsleepCore", "01:00", "05:00"), strings.Replace(stretch(prefix+"AsleepDeep", "05:00", "06:00"), `endDate="2026-04-18`, `endDate="2026-04-20`, 1)}, night{240, 240, 0, 0}},
		"an unset clock":       {[]string{stretch(prefix+"AsleepCore", "01:00", "05:00"), strings.ReplaceAll(stretch(prefix+"AsleepDeep", "05:00", "06:00"), "2026-", "1970-")}, night{240, 240, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				s, _, err := importBytes(t, []byte("<HealthData>"+strings.Join(c.records, "\n")+"</HealthData>"), nil)
				require.NoError(t, err)
				nights := summariesOf[*healthdata.Sleep](t, s, "sleep")
				require.Len(t, nights, 1)
				minutes := func(v *int64) int64 {
					if v == nil {
						return -1
					}
					return *v / 60
				}
				n := nights[0]
				require.Equal(t, c.want, night{minutes(n.Total), minutes(n.Light), minutes(n.Deep), minutes(n.Awake)})
				cycle := summariesOf[*healthdata.SleepCycle](t, s, "sleep_cycle")[0]
				for i := range cycle.StageType {
					require.Less(t, cycle.StageStartOffsetSecond[i], cycle.StageEndOffsetSecond[i])
					require.True(t, i == 0 || cycle.StageEndOffsetSecond[i-1] <= cycle.StageStartOffsetSecond[i])
				}
				slices.Reverse(c.records)
			}
		})
	}
}

// An element that is not closed costs itself, and not the records behind it.
func TestHealthExport_skipsOnlyTheUnclosedElement(t *testing.T) {
	record := func(minute int, name string) string {
		return fmt.Sprintf(`<Record type="HKQuantityTypeIdentifierHeartRate" sourceName="%s" unit="count/min" startDate="2026-04-18 08:%02d:00 +0200" endDate="2026-04-18 08:%02d:00 +0200" value="6%d"/>`, name, minute, minute, minute) + "\n"
	}
	good := record(2, "W") + record(3, "W") + record(4, "W")
	for _, bad := range []string{record(1, `a<b" device="<<HKDevice: 0x28>, name:Watch>`), "<HKDevice:>", "<a><b>", `<Record type="x"><c>`, "<a b='"} {
		s, rep, err := importBytes(t, []byte("<HealthData>"+record(0, "W")+bad+good+"</HealthData>"), nil)
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(s.samples["heartrate"]), 3, bad)
		require.Equal(t, 64.0, s.samples["heartrate"][len(s.samples["heartrate"])-1].Value.Number)
		require.NotEmpty(t, rep.Skipped, bad)
	}
}

// Exports of some versions have a document type that is not well formed, and a day of an unset clock.
func TestHealthExport_acceptsAMalformedDoctypeAndAnUnsetClock(t *testing.T) {
	const file = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE HealthData [
<!-- HealthKit Export Version: 12 -->
<!ELEMENT HealthData (ExportDate,Me,(Record)*)>
<!ATTLIST VisionPrescription
  type             CDATA #REQUIRED
<!ELEMENT RightEye EMPTY>
]>
<HealthData locale="en_AU">
<ActivitySummary dateComponents="1969-12-30" activeEnergyBurned="0" activeEnergyBurnedUnit="kcal" appleExerciseTime="0"/>
<Record type="HKQuantityTypeIdentifierHeartRateRecoveryOneMinute" sourceName="W" unit="count/min" startDate="2026-04-18 8:00:00 pm +1000" endDate="2026-04-18 8:01:00 pm +1000" value="27"/>
<Record type="HKQuantityTypeIdentifierStepCount" sourceName="W" unit="count" startDate="1970-01-01 00:00:00 +0000" endDate="1970-01-01 00:01:00 +0000" value="27"/>
<Record type="HKQuantityTypeIdentifierBodyFatPercentage" source="Scale" unit="%" startDate="20150616071820-0700" endDate="20150616071820-0700" value="0.2"/>
</HealthData>`
	s, rep, err := importBytes(t, []byte(file), nil)
	require.NoError(t, err)
	require.Empty(t, s.summaries["activity"])
	require.Equal(t, map[string]int{"heart_rate_recovery_one_minute": 1, "fat": 1}, rep.Samples)
	require.Equal(t, utc("2026-04-18 10:00:00"), s.samples["heart_rate_recovery_one_minute"][0].Timestamp)
	require.Equal(t, 27.0, s.samples["heart_rate_recovery_one_minute"][0].Value.Number)
	require.Equal(t, utc("2015-06-16 14:18:20"), s.samples["fat"][0].Timestamp)
	require.Equal(t, map[string]int{"activity summary of a day before 1990 or in the future": 1, "HKQuantityTypeIdentifierStepCount (before 1990 or in the future)": 1}, rep.Skipped)
}

func TestImport_unknownFormatIsErrFormat(t *testing.T) {
	for _, text := range []string{"", "a,b\n1,2\n", "<html/>", `{"a":1}`, "<?xml", "<!-- x"} {
		s, _, err := importBytes(t, []byte(text), nil)
		require.ErrorIs(t, err, fileimport.ErrFormat)
		require.ErrorIs(t, err, healthlab.Invalid)
		require.Zero(t, s.calls)
	}
}

func TestImportDir_importsEachFileOfAFolder(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	_, err := fileimport.ImportDir(t.Context(), dir, nowhere{}, nil)
	require.ErrorIs(t, err, healthlab.Invalid, "there is nothing")
	write("bad.gpx", "<gpx>")
	_, err = fileimport.ImportDir(t.Context(), dir, nowhere{}, nil)
	require.ErrorContains(t, err, "bad.gpx", "all are bad")
	write("a/walk.xml", smallGPX)
	write("z.txt", "nothing")
	reports, err := fileimport.ImportDir(t.Context(), dir, nowhere{}, nil)
	require.NoError(t, err)
	require.Len(t, reports, 3)
	require.Equal(t, "a/walk.xml", reports[0].Name)
	require.NoError(t, reports[0].Err)
	require.ErrorIs(t, reports[1].Err, healthlab.Invalid)
	require.ErrorIs(t, reports[2].Err, fileimport.ErrFormat)
	require.Contains(t, reports[1].String(), "not imported")

	_, err = fileimport.ImportDir(t.Context(), dir, &recordingSink{fail: errSink}, nil)
	require.ErrorIs(t, err, errSink, "a sink that fails stops the import")
	reports, err = fileimport.ImportDir(t.Context(), dir, &recordingSink{fail: healthlab.Invalid}, nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	require.Len(t, reports, 3, "one that refuses a file does not")
	_, err = fileimport.ImportDir(t.Context(), filepath.Join(dir, "none"), nowhere{}, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = fileimport.ImportFile(t.Context(), filepath.Join(dir, "none"), nowhere{}, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// stopping ends the context in the middle of an import.
type stopping struct {
	nowhere
	cancel context.CancelFunc
}

func (s stopping) Samples(context.Context, string, healthdata.Source, []healthdata.Sample) error {
	s.cancel()
	return nil
}

func TestImport_endsWithItsContext(t *testing.T) {
	for name, data := range map[string][]byte{"fit": triathlon(t), "gpx": []byte(smallGPX), "export": []byte(smallExport)} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var s recordingSink
		_, err := fileimport.Import(ctx, bytes.NewReader(data), &s, nil)
		require.ErrorIs(t, err, context.Canceled, name)
		require.Zero(t, s.calls, name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := fileimport.Import(ctx, strings.NewReader(smallExport), stopping{cancel: cancel}, nil)
	require.True(t, errors.Is(err, context.Canceled))
}

func FuzzExport(f *testing.F) {
	for line := range strings.Lines(smallExport) {
		f.Add([]byte("<HealthData>" + line + "</HealthData>"))
	}
	f.Add([]byte(`<HealthData><Record type="a" startDate="2026-04-18 08:00:00 +0200" endDate="2026-04-18 08:00:00 +0200"/></HealthData>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s recordingSink
		_, err := fileimport.Import(t.Context(), bytes.NewReader(data), &s, nil)
		if err != nil {
			require.ErrorIs(t, err, healthlab.Invalid)
		}
	})
}
