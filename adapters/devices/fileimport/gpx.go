package fileimport

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// track is a track of a GPX file, which becomes one workout.
type track struct {
	title, sport string
	points       []point
	// offset is the UTC offset of the written times; nil if they are in UTC.
	offset *int
}

// importGPX stores every track that has points.
func importGPX(out *output, data []byte) error {
	tracks, err := parseGPX(out, data)
	if err != nil {
		return err
	}
	if len(tracks) == 0 {
		return &FileError{Format: GPX, Offset: int64(len(data)), Line: 1 + bytes.Count(data, []byte{'\n'}), Msg: "the file has no track with points that have a time: a planned route is not a recording"}
	}
	for i := range tracks {
		t := &tracks[i]
		w := &healthdata.Workout{Sport: healthdata.SportOf(t.sport), TimezoneOffset: t.offset}
		w.Source = out.recordedBy(healthdata.SourceUnknown)
		if t.title != "" {
			w.Title = &t.title
		}
		rec := recording{points: t.points, onFoot: onFoot(t.sport)}
		rec.measure()
		w.TimeStart = atMicros(rec.points[0].micros)
		w.TimeEnd = atMicros(rec.points[len(rec.points)-1].micros)
		rec.fill(w)
		out.removeBadTotals(w)
		if err := out.handOver(w, &rec); err != nil {
			return err
		}
	}
	return nil
}

func (o *output) recordedBy(otherwise healthdata.SourceType) healthdata.Source {
	s := healthdata.Source{Provider: o.opts.Provider, Type: o.opts.SourceType}
	s.Provider = cmp.Or(s.Provider, healthdata.SlugManual)
	s.Type = cmp.Or(s.Type, otherwise)
	return s
}

// gpxReader reads the tracks of a GPX file.
type gpxReader struct {
	trackScanner
	tracks []track
	trk    int // nesting depth of the current trk element; 0 outside
}

// parseGPX reads the tracks that have points. Way points and routes are skipped.
func parseGPX(out *output, data []byte) ([]track, error) {
	g := &gpxReader{trackScanner: newTrackScanner(out, data, GPX)}
	err := g.scan(func() bool { return g.trk > 0 }, g.start, g.end)
	for i := range g.tracks {
		g.tracks[i].points = out.plausiblePoints(g.tracks[i].points)
	}
	return slices.DeleteFunc(g.tracks, func(t track) bool { return len(t.points) == 0 }), err
}

func (g *gpxReader) start() error {
	depth := len(g.sc.opens)
	name := localName(g.sc.name)
	switch {
	case depth == 1 && name != "gpx":
		return g.sc.errorHere("the root element of the XML document must be gpx")
	case g.trk == 0 && name == "trk":
		if len(g.tracks) >= mostTracks {
			return g.sc.errorHere(fmt.Sprintf("the file must have at most %d tracks", mostTracks))
		}
		g.trk = depth
		g.tracks = append(g.tracks, track{})
	case g.trk == 0:
	case name == "trkseg":
		g.gap = true
	case name == "trkpt" && g.pt == 0:
		return g.startTrackPoint(depth)
	}
	return nil
}

// startTrackPoint begins a point, and reads its position from the attributes of the current element. depth is the
// nesting depth of the element.
func (g *gpxReader) startTrackPoint(depth int) error {
	if err := g.startPoint(depth); err != nil {
		return err
	}
	for _, a := range g.sc.attrs {
		switch name := localName(a.name); name {
		case "lat":
			g.p.lat = g.degrees(name, string(g.sc.value(a)))
		case "lon":
			g.p.lng = g.degrees(name, string(g.sc.value(a)))
		}
	}
	return nil
}

// end handles the end of an element.
func (g *gpxReader) end(text string) error {
	depth := len(g.sc.opens) + 1
	name := localName(g.sc.name)
	switch {
	case g.trk == 0:
	case depth == g.trk:
		g.trk = 0
	case g.pt == 0:
		t := &g.tracks[len(g.tracks)-1]
		if depth == g.trk+1 && name == "name" {
			t.title = printable(text)
		}
		if depth == g.trk+1 && name == "type" {
			t.sport = gpxSport(text)
		}
	case depth == g.pt:
		g.endPoint()
	case depth == g.pt+1 && name == "time":
		g.pointTime(text, &g.tracks[len(g.tracks)-1].offset)
	case text != "":
		g.measurement(name, text)
	}
	return nil
}

// measurement reads a value of a point: its altitude, or a value in a device's extension of any namespace.
func (g *gpxReader) measurement(name, text string) {
	var into *float64
	switch name {
	case "ele":
		into = &g.p.alt
	case "hr", "heartrate":
		into = &g.p.heart
	case "cad", "cadence":
		into = &g.p.cadence
	case "speed":
		into = &g.p.speed
	case "power", "watts", "PowerInWatts":
		into = &g.p.power
	case "atemp", "temp", "temperature":
		into = &g.p.temp
	default:
		return
	}
	g.measure(into, g.number(name, text))
}

func (g *gpxReader) endPoint() {
	g.p.gap = g.gap
	g.gap, g.pt = false, 0
	t := &g.tracks[len(g.tracks)-1]
	if len(t.points) == 0 {
		g.p.gap = false
	}
	t.points = append(t.points, g.p)
}

// gpxSports maps the track types that recorders write, in lower case, to slugs of sports.
var gpxSports = map[string]string{
	"run": "running", "trail running": "trail_running", "ride": "cycling", "biking": "cycling",
	"bike": "cycling", "road biking": "road_biking", "mountain biking": "mountain_biking",
	"walk": "walking", "hike": "hiking", "swim": "swimming", "row": "rowing",
}

// gpxSport turns the type of a track into the slug of a sport.
func gpxSport(text string) string {
	text = strings.ToLower(text)
	if slug, ok := gpxSports[text]; ok {
		return slug
	}
	slug := strings.ReplaceAll(text, " ", "_")
	if slug == "" || len(slug) > 40 || strings.Trim(slug, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return "other"
	}
	return slug
}
