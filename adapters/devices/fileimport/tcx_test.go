package fileimport_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/healthdata"
)

const smallTCX = `<?xml version="1.0" encoding="UTF-8"?>
<TrainingCenterDatabase xmlns="http://www.garmin.com/xmlschemas/TrainingCenterDatabase/v2" xmlns:ns3="http://www.garmin.com/xmlschemas/ActivityExtension/v2">
 <Activities>
  <Activity Sport="Running">
   <Id>2026-04-18T06:30:00.000Z</Id>
   <Lap StartTime="2026-04-18T06:30:00.000Z">
    <TotalTimeSeconds>10</TotalTimeSeconds><DistanceMeters>30</DistanceMeters><Calories>3</Calories>
    <AverageHeartRateBpm><Value>1</Value></AverageHeartRateBpm>
    <Track>
     <Trackpoint><Time>2026-04-18T06:30:00Z</Time><Position><LatitudeDegrees>47.1</LatitudeDegrees><LongitudeDegrees>8.5</LongitudeDegrees></Position>
      <AltitudeMeters>400</AltitudeMeters><DistanceMeters>0</DistanceMeters><HeartRateBpm><Value>120</Value></HeartRateBpm>
      <Extensions><ns3:TPX><ns3:Speed>3</ns3:Speed><ns3:RunCadence>80</ns3:RunCadence><ns3:Watts>210</ns3:Watts></ns3:TPX></Extensions></Trackpoint>
     <Trackpoint><Time>2026-04-18T06:30:05Z</Time></Trackpoint>
     <Trackpoint><Time>2026-04-18T06:30:10Z</Time><DistanceMeters>30</DistanceMeters><HeartRateBpm><Value>0</Value></HeartRateBpm></Trackpoint>
    </Track>
   </Lap>
   <Lap StartTime="2026-04-18T06:30:10.000Z">
    <TotalTimeSeconds>20.5</TotalTimeSeconds><DistanceMeters>60</DistanceMeters><Calories>4</Calories>
    <Track><Trackpoint><Time>2026-04-18T06:30:20Z</Time><DistanceMeters>60</DistanceMeters><HeartRateBpm><Value>140</Value></HeartRateBpm></Trackpoint></Track>
   </Lap>
  </Activity>
  <Activity Sport="Biking"><Lap StartTime="2026-04-18T08:30:00+02:00"><TotalTimeSeconds>60</TotalTimeSeconds></Lap></Activity>
 </Activities>
 <Courses><Course><Track><Trackpoint><Time>2026-04-18T06:30:00Z</Time></Trackpoint></Track></Course></Courses>
</TrainingCenterDatabase>`

func TestTCX_givesWorkoutsAndStreams(t *testing.T) {
	s, rep, err := importBytes(t, []byte(smallTCX), nil)
	require.NoError(t, err)
	require.Equal(t, fileimport.TCX, rep.Format)
	got := summariesOf[*healthdata.Workout](t, s, "workouts")
	require.Len(t, got, 2)
	run, ride := got[0], got[1]
	require.Equal(t, "running", run.Sport.Slug)
	require.True(t, run.TimeStart.Equal(race))
	require.True(t, run.TimeEnd.Equal(race.Add(30500*time.Millisecond)))
	require.EqualValues(t, 90, *run.Distance)
	require.EqualValues(t, 7, *run.Calories)
	require.EqualValues(t, 130, *run.AverageHR)
	require.Len(t, s.streams, 1)
	require.EqualValues(t, []int64{0, 10, 20}, relative(s.streams[0].Time))
	require.EqualValues(t, 160, *s.streams[0].Cadence[0], "steps on foot")
	require.EqualValues(t, 210, *s.streams[0].Power[0])
	require.InDelta(t, 47.1, *s.streams[0].Lat[0], 1e-9)
	require.Len(t, s.samples["heartrate"], 2)
	require.Equal(t, "cycling", ride.Sport.Slug)
	require.Equal(t, 7200, *ride.TimezoneOffset)
	require.True(t, ride.TimeEnd.Equal(race.Add(time.Minute)))
}

func TestTCX_withoutActivitiesOrBeyondLimitsIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"nothing": {"Activity", "Thing", "the file has no activity with a start time or with a point that has a time"},
	} {
		t.Run(name, func(t *testing.T) {
			doc := strings.ReplaceAll(strings.ReplaceAll(smallTCX, "</Courses>\n", "</Courses>"), c.old, c.new)
			s, _, err := importBytes(t, []byte(doc), nil)
			require.ErrorIs(t, err, healthlab.Invalid)
			require.ErrorContains(t, err, c.want)
			require.Zero(t, s.calls)
		})
	}
	_, _, err := importBytes(t, []byte(smallTCX), &fileimport.Options{MaxPoints: 3})
	require.ErrorContains(t, err, "the file must have at most 3 points (Options.MaxPoints)")
}

// Of a recording, what cannot be costs itself.
func TestTCX_skipsOnlyTheInvalidElement(t *testing.T) {
	want, _, err := importBytes(t, []byte(smallTCX), nil)
	require.NoError(t, err)
	for name, c := range map[string]struct{ old, new, told string }{
		"time":     {"2026-04-18T06:30:05Z", "noon", "left out: time that is no ISO 8601 date and time"},
		"no time":  {"<Time>2026-04-18T06:30:20Z</Time>", "", "1  skipped: point without a time"},
		"number":   {"<ns3:Watts>210", "<ns3:Watts>many", "left out: value that is no number: Watts"},
		"latitude": {"47.1", "97.1", "position out of range"},
		"half":     {"<LongitudeDegrees>8.5</LongitudeDegrees>", "", "position out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, smallTCX, c.old)
			s, rep, err := importBytes(t, []byte(strings.ReplaceAll(smallTCX, c.old, c.new)), nil)
			require.NoError(t, err)
			require.Contains(t, rep.String(), c.told)
			require.Len(t, s.summaries["workouts"], len(want.summaries["workouts"]))
			require.NotEmpty(t, s.samples["heartrate"])
		})
	}
}

// Some programs write blanks before the declaration.
func TestTCX_readsBlanksBeforeTheDeclaration(t *testing.T) {
	want, _, err := importBytes(t, []byte(smallTCX), nil)
	require.NoError(t, err)
	got, _, err := importBytes(t, []byte("          "+smallTCX), nil)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func FuzzTCX(f *testing.F) {
	f.Add(smallTCX)
	f.Add(smallTCX[:len(smallTCX)/2])
	f.Add(`<!DOCTYPE TrainingCenterDatabase [<!ENTITY a "&a;&a;">]><TrainingCenterDatabase><Activity Sport="&a;"/></TrainingCenterDatabase>`)
	f.Fuzz(func(t *testing.T, doc string) {
		s, _, err := importBytes(t, []byte(doc), &fileimport.Options{MaxPoints: 2000})
		if err != nil {
			require.Zero(t, s.calls)
			return
		}
		for _, stream := range s.streams {
			require.LessOrEqual(t, len(stream.Time), 2000)
		}
		for _, list := range s.samples {
			for _, v := range list {
				require.True(t, v.Value == nil || !math.IsNaN(v.Value.Number) && !math.IsInf(v.Value.Number, 0))
			}
		}
	})
}
