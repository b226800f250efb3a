package fileimport

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// trackScanner is shared by the readers of GPX and TCX files. It holds the element stack and the current point.
type trackScanner struct {
	out   *output
	sc    *scanner
	most  int // largest number of points in the file
	count int
	pt    int // nesting depth of the current point; 0 outside
	gap   bool
	p     point
	text  []byte
}

const (
	// mostText is the longest text of an element that is read, in bytes.
	mostText   = 4096
	mostTracks = 10_000
)

func newTrackScanner(out *output, data []byte, format Format) trackScanner {
	return trackScanner{out: out, sc: newScanner(bytes.NewReader(utf8Of(data)), format), most: out.opts.MaxPoints}
}

// scan calls start at the beginning and end at the end of each element. When it calls end, the element is no longer on
// the stack. text is the trimmed text of the element; it is empty unless wanted returned true.
func (t *trackScanner) scan(wanted func() bool, start func() error, end func(text string) error) error {
	t.sc.told = t.skipHere
	t.sc.parents = map[string]string{"trk": " gpx ", "trkseg": " trk ", "trkpt": " trkseg ", "Activity": "", "Lap": " Activity ", "Track": " Lap ", "Trackpoint": " Track "}
	t.sc.text = func(b []byte) {
		if wanted() && len(t.text)+len(b) <= mostText {
			t.text = append(t.text, b...)
		}
	}
	for {
		token, err := t.sc.next()
		if err != nil || token == endOfStream {
			return err
		}
		if token == startToken {
			err = start()
		} else {
			err = end(strings.TrimSpace(string(t.text)))
		}
		t.text = t.text[:0]
		if err != nil {
			return err
		}
	}
}

// startPoint begins a point. depth is the nesting depth of its element.
func (t *trackScanner) startPoint(depth int) error {
	if t.count++; t.count > t.most {
		return t.sc.errorHere(t.out.opts.named(fmt.Sprintf("the file must have at most %d points", t.most), "MaxPoints"))
	}
	t.pt, t.p = depth, newPoint()
	t.p.micros = untimed
	return nil
}

// time reads a time and returns it in Unix microseconds. It stores the UTC offset, in seconds, in *offset if the offset is
// known: a written offset of zero means UTC and says nothing of the place. It returns untimed for an unreadable time.
func (t *trackScanner) time(text string, offset **int) int64 {
	at, local, why := t.out.trackTime(text)
	if why != "" {
		t.skipHere(why)
		return untimed
	}
	if _, seconds := at.Zone(); (local || seconds != 0) && t.out.inTime(at.UnixMicro()) {
		*offset = &seconds
	}
	return at.UnixMicro()
}

// trackTime reads a time. A time without an offset is in Options.Zone, and local is true; without Options.Zone, it is in
// UTC. why is the reason if the time cannot be read.
func (o *output) trackTime(text string) (at time.Time, local bool, why string) {
	at, zoned, ok := readTime(text)
	if !ok {
		return at, false, "time that is no ISO 8601 date and time"
	}
	if zoned || !o.opts.zoned {
		return at, false, ""
	}
	times := clockTimes(at, o.opts.Zone)
	if len(times) != 1 {
		return at, false, "time of the hour in which the clock changed"
	}
	return times[0], true, ""
}

func (t *trackScanner) pointTime(text string, offset **int) {
	t.p.micros = t.time(text, offset)
}

func (t *trackScanner) skipHere(what string) {
	t.out.skipAt("line "+strconv.Itoa(t.sc.line()), what)
}

// number reads the number in text. For an unreadable number it adds a note with name, and returns NaN.
func (t *trackScanner) number(name, text string) float64 {
	v, ok := healthlab.ParseNumber(text)
	if !ok {
		t.skipHere("value that is no number: " + name)
		return nan
	}
	return v
}

func (t *trackScanner) degrees(name, text string) float64 {
	// A comma is a decimal comma, because an angle has no thousands separator.
	return t.number(name, strings.Replace(strings.TrimSpace(text), ",", ".", 1))
}

func (t *trackScanner) measure(into *float64, v float64) {
	if into == &t.p.heart && v <= 0 { // the strap detects no heartbeat
		v = nan
	}
	*into = v
}
