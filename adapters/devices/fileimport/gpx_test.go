package fileimport_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
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

func TestGPX_givesTheWorkoutAndItsStream(t *testing.T) {
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

func TestGPX_readsVersion10WithPrefixAndOffset(t *testing.T) {
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
func TestGPX_climbIgnoresTheNoiseOfTheElevation(t *testing.T) {
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

func TestGPX_invalidFileIsRefusedWithItsLine(t *testing.T) {
	point := "<trkpt lat='1' lon='2'><time>2026-01-01T00:00:00Z</time></trkpt>"
	around := func(s string) string { return "<gpx>\n<trk>\n<trkseg>\n" + s + "\n</trkseg></trk></gpx>" }
	for name, v := range map[string]struct {
		text string
		line int
	}{
		"no time":     {around("<trkpt lat='1' lon='2'></trkpt>"), 5},
		"bad time":    {around("<trkpt lat='1' lon='2'><time>yesterday</time></trkpt>"), 5},
		"no track":    {"<gpx>\n</gpx>", 2},
		"empty track": {"<gpx><trk><trkseg/></trk></gpx>", 1},
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

// Of a recording, what cannot be costs itself.
func TestGPX_skipsOnlyTheInvalidPoint(t *testing.T) {
	const times = "2026-01-01T00:00:0%dZ"
	point := func(n int, inside string) string {
		return fmt.Sprintf("<trkpt lat='47.%d' lon='8'><ele>400</ele><time>"+times+"</time>%s</trkpt>\n", n, n, inside)
	}
	doc := func(bad string) string {
		return "<gpx><trk><trkseg>\n" + point(1, "") + bad + point(3, "<hr>120</hr>") + "</trkseg></trk></gpx>"
	}
	timed := "<time>2026-01-01T00:00:02Z</time></trkpt>\n"
	for name, c := range map[string]struct {
		text, told string
		points     int
	}{
		"no time":         {"<trkpt lat='47' lon='8'/>", "1  skipped: point without a time", 2},
		"bad time":        {"<trkpt lat='47' lon='8'><time>yesterday</time></trkpt>", "line 3: left out: time that is no ISO 8601", 2},
		"year 0":          {"<trkpt lat='47' lon='8'><time>0000-01-01T00:00:02Z</time></trkpt>", "skipped: point", 2},
		"1970":            {"<trkpt lat='47' lon='8'><time>1970-01-01T00:00:02Z</time></trkpt>", "1  skipped: point before 1990 or in the future", 2},
		"future":          {"<trkpt lat='47' lon='8'><time>2099-01-01T00:00:02Z</time></trkpt>", "1  skipped: point before 1990 or in the future", 2},
		"other month":     {"<trkpt lat='47' lon='8'><time>2025-11-01T00:00:02Z</time></trkpt>", "1  skipped: point more than 7 days from the median", 2},
		"no position":     {"<trkpt>" + timed, "workouts", 3},
		"half a position": {"<trkpt lat='47'>" + timed, "1  skipped: position out of range", 3},
		"latitude":        {"<trkpt lat='91' lon='8'>" + timed, "1  skipped: position out of range", 3},
		"longitude":       {"<trkpt lat='47' lon='x'>" + timed, "line 3: left out: value that is no number: lon", 3},
		"zero":            {"<trkpt lat='0' lon='0'>" + timed, "1  skipped: position at 0, 0", 3},
		"altitude":        {"<trkpt lat='47' lon='8'><ele>-19999</ele>" + timed, "1  skipped: altitude out of range", 3},
		"altitude text":   {"<trkpt lat='47' lon='8'><ele>high</ele>" + timed, "line 3: left out: value that is no number: ele", 3},
		"altitude NaN":    {"<trkpt lat='47' lon='8'><ele>NaN</ele>" + timed, "line 3: left out: value that is no number: ele", 3},
		"heart rate":      {"<trkpt lat='47' lon='8'><hr>9999</hr>" + timed, "1  skipped: heart rate out of range", 3},
	} {
		t.Run(name, func(t *testing.T) {
			s, rep, err := importBytes(t, []byte(doc(c.text)), nil)
			require.NoError(t, err)
			require.Contains(t, rep.String(), c.told)
			w := summariesOf[*healthdata.Workout](t, s, "workouts")
			require.Len(t, w, 1)
			require.Equal(t, 2*time.Second, w[0].TimeEnd.Sub(w[0].TimeStart.Time))
			require.InDelta(t, 400, *w[0].ElevLow, 0)
			require.EqualValues(t, 120, *w[0].MaxHR)
			require.Len(t, s.streams, 1)
			require.Len(t, s.streams[0].Time, c.points)
			require.Less(t, *w[0].Distance, 50_000.0)
			require.Len(t, s.samples["heartrate"], 1)
		})
	}
}

// A ship at 0, 0 keeps its position; a device that writes 0, 0 alone has none.
func TestGPX_zeroPositionIsDroppedUnlessTheTrackHasOthers(t *testing.T) {
	point := func(n int, lat, lng float64) string {
		return fmt.Sprintf("<trkpt lat='%g' lon='%g'><time>2026-01-01T00:00:0%dZ</time></trkpt>", lat, lng, n)
	}
	s, _, err := importBytes(t, []byte("<gpx><trk><trkseg>"+point(1, 0, -0.001)+point(2, 0, 0)+point(3, 0, 0.001)+"</trkseg></trk></gpx>"), nil)
	require.NoError(t, err)
	require.Len(t, s.streams[0].Lat, 3)
	require.NotNil(t, s.streams[0].Lat[1])
	s, rep, err := importBytes(t, []byte("<gpx><trk><trkseg>"+point(1, 0, 0)+point(2, 0, 0)+"</trkseg></trk></gpx>"), nil)
	require.NoError(t, err)
	require.Empty(t, s.streams[0].Lat)
	require.Equal(t, 2, rep.Skipped["position at 0, 0"])
}

// A text of XML is read in the encodings that it may have, and behind white space.
func TestXML_isReadInEachSupportedEncoding(t *testing.T) {
	doc := func(encoding string) string {
		return "<?xml version=\"1.0\" encoding=\"" + encoding + "\"?>\n<gpx><trk><name>M\u00f6ve</name><trkseg>" +
			"<trkpt lat='1' lon='2'><time>2026-01-01T00:00:00Z</time></trkpt></trkseg></trk></gpx>"
	}
	encoded := func(e encoding.Encoding, text string) []byte {
		b, err := e.NewEncoder().Bytes([]byte(text))
		require.NoError(t, err)
		return b
	}
	wide := func(end unicode.Endianness, mark unicode.BOMPolicy) []byte {
		return encoded(unicode.UTF16(end, mark), doc("UTF-16"))
	}
	for name, data := range map[string][]byte{
		"UTF-8":            []byte(doc("UTF-8")),
		"mark":             []byte("\xef\xbb\xbf" + doc("UTF-8")),
		"mark, space":      []byte("\xef\xbb\xbf \r\n" + doc("UTF-8")),
		"space":            []byte("          " + doc("UTF-8")),
		"lines":            []byte("\n\r\n\t" + doc("UTF-8")),
		"ISO-8859-1":       encoded(charmap.ISO8859_1, doc("ISO-8859-1")),
		"ISO-8859-1 space": encoded(charmap.ISO8859_1, "\n"+doc("ISO-8859-1")),
		"windows-1252":     encoded(charmap.Windows1252, doc("windows-1252")),
		"UTF-16LE":         wide(unicode.LittleEndian, unicode.ExpectBOM),
		"UTF-16BE":         wide(unicode.BigEndian, unicode.ExpectBOM),
		"UTF-16LE no mark": wide(unicode.LittleEndian, unicode.IgnoreBOM),
		"UTF-16BE no mark": wide(unicode.BigEndian, unicode.IgnoreBOM),
		"UTF-16 mistaken":  []byte(doc("UTF-16")),
	} {
		t.Run(name, func(t *testing.T) {
			s, _, err := importBytes(t, data, nil)
			require.NoError(t, err)
			w := summariesOf[*healthdata.Workout](t, s, "workouts")
			require.Len(t, w, 1)
			require.Equal(t, "M\u00f6ve", *w[0].Title)
		})
	}
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

// A time without an offset is in the zone of the caller, or in UTC. A time with one, and Z, are what they state.
func TestTracks_timesWithoutAnOffsetAreInTheZoneOfTheCaller(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	london, err := time.LoadLocation("Europe/London")
	require.NoError(t, err)
	forms := map[string]func(at string) string{
		"gpx": func(at string) string {
			return `<gpx><trk><trkseg><trkpt lat="1" lon="2"><time>` + at + `</time></trkpt></trkseg></trk></gpx>`
		},
		"tcx point": func(at string) string {
			return `<TrainingCenterDatabase><Activities><Activity><Lap><Track><Trackpoint><Time>` + at + `</Time><DistanceMeters>1</DistanceMeters></Trackpoint></Track></Lap></Activity></Activities></TrainingCenterDatabase>`
		},
		"tcx lap": func(at string) string {
			return `<TrainingCenterDatabase><Activities><Activity><Lap StartTime="` + at + `"><TotalTimeSeconds>60</TotalTimeSeconds></Lap></Activity></Activities></TrainingCenterDatabase>`
		},
		"tcx id": func(at string) string {
			return `<TrainingCenterDatabase><Activities><Activity><Id>` + at + `</Id><Lap><TotalTimeSeconds>60</TotalTimeSeconds></Lap></Activity></Activities></TrainingCenterDatabase>`
		},
	}
	for _, c := range []struct {
		at     string
		zone   *time.Location
		want   string // empty: left out
		offset int    // -1: unknown
	}{
		{"2026-04-18T08:00:00", nil, "2026-04-18T08:00:00", -1},
		{"2026-04-18T08:00:00", berlin, "2026-04-18T06:00:00", 7200},
		{"2026-01-18T08:00:00", berlin, "2026-01-18T07:00:00", 3600},
		{"2026-01-18T08:00:00", london, "2026-01-18T08:00:00", 0},
		{"2026-04-18T08:00:00Z", berlin, "2026-04-18T08:00:00", -1},
		{"2026-04-18T08:00:00-03:00", berlin, "2026-04-18T11:00:00", -10800},
		{"2026-03-29T02:30:00", berlin, "", 0},
		{"2025-10-26T02:30:00", berlin, "", 0},
	} {
		for name, form := range forms {
			t.Run(fmt.Sprintf("%s %s in %s", name, c.at, c.zone), func(t *testing.T) {
				s, _, err := importBytes(t, []byte(form(c.at)), &fileimport.Options{Zone: c.zone})
				if c.want == "" {
					require.ErrorIs(t, err, healthlab.Invalid)
					return
				}
				require.NoError(t, err)
				w := summariesOf[*healthdata.Workout](t, s, "workouts")[0]
				require.Equal(t, c.want, w.TimeStart.Format("2006-01-02T15:04:05"))
				if c.offset == -1 || name == "tcx id" {
					require.Nil(t, w.TimezoneOffset)
				} else {
					require.Equal(t, c.offset, *w.TimezoneOffset)
				}
			})
		}
	}
}
