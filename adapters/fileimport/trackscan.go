package fileimport

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

// trackScanner is what the readers of GPX and TCX files share: the elements of the file, and the
// point that is being read.
type trackScanner struct {
	sc    *scanner
	most  int // points of all workouts
	count int
	pt    int // depth of the current point, 0 outside
	gap   bool
	p     point
	timed bool
	text  []byte
}

const (
	// mostText is the longest text of an element that is looked at.
	mostText   = 4096
	mostTracks = 10_000
)

func newTrackScanner(data []byte, format Format, mostPoints int) trackScanner {
	return trackScanner{sc: newScanner(bytes.NewReader(data), format), most: mostPoints}
}

// scan calls start where an element begins, and end with its text, without spaces around it, where
// it ends. The element is off the stack by then. Text is empty unless wanted reports true.
func (t *trackScanner) scan(wanted func() bool, start func() error, end func(text string) error) error {
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

// startPoint begins a point at a depth.
func (t *trackScanner) startPoint(depth int) error {
	if t.count++; t.count > t.most {
		return t.sc.here("more points than a recording may have")
	}
	t.pt, t.p, t.timed = depth, newPoint(), false
	return nil
}

// time reads a time in Unix micros, and the offset that it is written with unless that is UTC.
func (t *trackScanner) time(text string, offset **int) (int64, error) {
	at, seconds, err := healthlab.ParseTimeOffset(text)
	if err != nil {
		return 0, t.sc.here("a time is an ISO 8601 date and time")
	}
	if seconds != 0 {
		*offset = &seconds
	}
	return at.UnixMicro(), nil
}

// pointTime reads the time of the point.
func (t *trackScanner) pointTime(text string, offset **int) (err error) {
	t.p.micros, err = t.time(text, offset)
	t.timed = true
	return err
}

// number reads a number that may stand in a recording.
func (t *trackScanner) number(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.Abs(v) > 1e9 {
		return 0, t.sc.here("a measurement is not a number")
	}
	return v, nil
}

// measure sets a value of the point.
func (t *trackScanner) measure(into *float64, v float64) {
	if into == &t.p.heart && v <= 0 { // a strap that feels nothing
		v = nan
	}
	*into = v
}
