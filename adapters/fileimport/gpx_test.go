package fileimport_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fileimport"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// smallGPX goes 0.001 degrees north every 30 s, waits a minute, and goes on a second
// segment.
const smallGPX = `<?xml version="1.0" encoding="UTF-8"?>
<gpx version="1.1" creator="test" xmlns="http://www.topografix.com/GPX/1/1" xmlns:x="http://example.org/ext">
 <wpt lat="47" lon="8"><name>Start</name></wpt>
 <trk><name>Empty</name><trkseg/></trk>
 <trk>
  <name>Morning &amp; dew</name><type>Run</type>
  <trkseg>
   <trkpt lat="47.000" lon="8.5"><ele>400</ele><time>2026-04-25T06:30:00Z</time>
    <extensions><x:TrackPointExtension><x:hr>120</x:hr><x:cad>82</x:cad><x:atemp>9.5</x:atemp></x:TrackPointExtension></extensions></trkpt>
   <trkpt lat="47.001" lon="8.5"><ele>401</ele><time>2026-04-25T06:30:30Z</time>
    <extensions><x:TrackPointExtension><x:hr>130</x:hr><x:cad>84</x:cad></x:TrackPointExtension><power>250</power></extensions></trkpt>
   <trkpt lat="47.001" lon="8.5"><ele>400</ele><time>2026-04-25T06:31:30Z</time></trkpt>
  </trkseg>
  <trkseg>
   <trkpt lat="47.010" lon="8.5"><ele>420</ele><time>2026-04-25T06:40:00</time></trkpt>
   <trkpt lat="47.011" lon="8.5"><ele>420</ele><time>2026-04-25T06:40:30.500Z</time></trkpt>
  </trkseg>
 </trk>
</gpx>
`

func TestGPX(t *testing.T) {
	s, rep, err := importBytes(t, []byte(smallGPX), nil)
	require.NoError(t, err)
	require.Equal(t, fileimport.GPX, rep.Format)
	require.Len(t, s.streams, 1)
	w := summariesOf[*healthdata.Workout](t, s, "workouts")[0]
	require.Equal(t, "Morning & dew", *w.Title)
	require.Equal(t, "running", w.Sport.Slug)
	require.Nil(t, w.TimezoneOffset, "UTC says nothing of where it was")
	require.Equal(t, "2026-04-25T06:40:30.5+00:00", w.TimeEnd.String())
	degree := 6371008.8 * math.Pi / 180
	require.InDelta(t, 0.002*degree, *w.Distance, 0.01, "the way between the segments was not recorded")
	require.EqualValues(t, 61, *w.MovingTime, "30 s and 30.5 s; nobody moved in the minute between")
	require.InDelta(t, 420, *w.ElevHigh, 0)
	require.EqualValues(t, 125, *w.AverageHR)
	stream := s.streams[0]
	require.EqualValues(t, 164, *stream.Cadence[0])
	require.EqualValues(t, 9.5, *stream.Temperature[0])
	require.Nil(t, stream.Temperature[1])
	require.EqualValues(t, 250, *stream.Power[1])
	require.Nil(t, stream.VelocitySmooth[0])
	require.InDelta(t, 0.001*degree/30, *stream.VelocitySmooth[1], 1e-6)
	require.Nil(t, stream.VelocitySmooth[3], "there is no speed over a pause")
	require.Len(t, s.samples["heartrate"], 2)
}

func TestGPXOldWithPrefixAndOffset(t *testing.T) {
	s, _, err := importBytes(t, []byte("\xef\xbb\xbf<g:gpx version='1.0' xmlns:g='http://www.topografix.com/GPX/1/0'><g:trk><g:trkseg>"+
		"<g:trkpt lat='-0.5' lon='-180'><g:time>2010-08-05T16:00:00-03:30</g:time><g:speed>2.5</g:speed></g:trkpt>"+
		"</g:trkseg></g:trk></g:gpx>"), nil)
	require.NoError(t, err)
	w := summariesOf[*healthdata.Workout](t, s, "workouts")[0]
	require.Equal(t, -(3*3600 + 1800), *w.TimezoneOffset)
	require.Equal(t, "2010-08-05T19:30:00+00:00", w.TimeStart.String())
	require.EqualValues(t, 2.5, *w.MaxSpeed)
}

// Climbs within the noise of the elevation do not count; a real hill does.
func TestGPXClimb(t *testing.T) {
	track := func(altitude func(i int) float64) float64 {
		var b strings.Builder
		b.WriteString("<gpx><trk><trkseg>")
		for i := range 600 {
			b.WriteString(trackPoint(i, altitude(i)))
		}
		b.WriteString("</trkseg></trk></gpx>")
		s, _, err := importBytes(t, []byte(b.String()), nil)
		require.NoError(t, err)
		return *summariesOf[*healthdata.Workout](t, s, "workouts")[0].TotalElevationGain
	}
	require.Zero(t, track(func(i int) float64 { return 100 + float64(i%2)*3 }))
	require.InDelta(t, 200, track(func(i int) float64 { return 100 + 100*math.Abs(math.Sin(float64(i)/600*2*math.Pi)) + float64(i%2) }), 6)
}

func trackPoint(i int, altitude float64) string {
	return "<trkpt lat='47' lon='8'><ele>" + decimal(altitude) + "</ele><time>" +
		healthlab.At(race).Add(seconds(i)).Format("2006-01-02T15:04:05Z") + "</time></trkpt>"
}

func TestGPXFaults(t *testing.T) {
	point := "<trkpt lat='1' lon='2'><time>2026-01-01T00:00:00Z</time></trkpt>"
	around := func(s string) string { return "<gpx>\n<trk>\n<trkseg>\n" + s + "\n</trkseg></trk></gpx>" }
	for name, v := range map[string]struct {
		text string
		line int
	}{
		"no time":          {around(point + "\n<trkpt lat='1' lon='2'></trkpt>"), 5},
		"bad time":         {around("<trkpt lat='1' lon='2'><time>yesterday</time></trkpt>"), 4},
		"no position":      {around("<trkpt lat='1'><time>2026-01-01T00:00:00Z</time></trkpt>"), 4},
		"bad latitude":     {around("<trkpt lat='91' lon='2'/>"), 4},
		"bad longitude":    {around("<trkpt lat='1' lon='x'/>"), 4},
		"bad altitude":     {around("<trkpt lat='1' lon='2'><ele>high</ele></trkpt>"), 4},
		"nan":              {around("<trkpt lat='1' lon='2'><ele>NaN</ele></trkpt>"), 4},
		"no track":         {"<gpx>\n</gpx>", 2},
		"empty track":      {"<gpx><trk><trkseg/></trk></gpx>", 1},
		"cut":              {around(point)[:60], 4},
		"mismatch":         {"<gpx>\n<trk></gpx></trk>", 2},
		"another document": {"<gpx/><gpx/>", 1},
	} {
		s, _, err := importBytes(t, []byte(v.text), nil)
		var fault *fileimport.FileError
		require.ErrorAs(t, err, &fault, name)
		require.Equal(t, v.line, fault.Line, "%s: %v", name, err)
		require.Zero(t, s.calls, name)
	}
	_, _, err := importBytes(t, []byte(around(point+point+point)), &fileimport.Options{MaxPoints: 2})
	require.ErrorIs(t, err, healthlab.Invalid)
}

func FuzzGPX(f *testing.F) {
	f.Add([]byte(smallGPX))
	f.Add([]byte("<gpx><trk><trkseg><trkpt lat='1' lon='2'><time>2026-01-01T00:00:00Z</time></trkpt></trkseg></trk></gpx>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s recordingSink
		_, err := fileimport.Import(t.Context(), bytes.NewReader(data), &s, nil)
		if err != nil {
			require.Zero(t, s.calls)
		}
		for _, stream := range s.streams {
			require.NotEmpty(t, stream.Time)
		}
	})
}
