package er7

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Precision is the precision of a time.
type Precision uint8

// Precisions, from the coarsest.
const (
	Year Precision = iota + 1
	Month
	Day
	Hour
	Minute
	Second
	Fraction
)

// Stamp is a time as HL7 writes it: from a year alone to a fraction of a second, with
// or without an offset.
type Stamp struct {
	// Time is the first instant of the period.
	Time time.Time
	// Precision is the precision of the sent time.
	Precision Precision
	// Offset reports whether the sender gave the offset from UTC.
	Offset bool
}

// Stamp reads a DT, DTM or TS. A time without an offset is in zone; nil means UTC. The second component of a TS limits
// the precision. It returns Invalid for a malformed time.
func (p Part) Stamp(zone *time.Location) (Stamp, error) {
	s, err := ParseStamp(p.Text(), zone)
	if err != nil {
		return Stamp{}, err
	}
	degree := p.Component(2)
	if p.level >= component {
		degree = p.Subcomponent(2)
	}
	if most, ok := degrees[degree.Text()]; ok {
		s = s.truncate(most)
	}
	return s, nil
}

// degrees maps the codes of HL7 table 0529 to precisions.
var degrees = map[string]Precision{"Y": Year, "L": Month, "D": Day, "H": Hour, "M": Minute, "S": Second}

// earliest holds the smallest value of year, month, day, hour, minute and second.
var earliest = [...]int{0, 1, 1, 0, 0, 0}

// truncate returns the time limited to a precision.
func (s Stamp) truncate(most Precision) Stamp {
	if s.Precision <= most {
		return s
	}
	said := [...]int{s.Time.Year(), int(s.Time.Month()), s.Time.Day(), s.Time.Hour(), s.Time.Minute(), s.Time.Second()}
	part := earliest
	copy(part[:most], said[:])
	s.Time = time.Date(part[0], time.Month(part[1]), part[2], part[3], part[4], part[5], 0, s.Time.Location())
	s.Precision = most
	return s
}

// String returns the time in ISO 8601 at its precision: 2026, 2026-03, 2026-03-02T09:30-07:00.
func (s Stamp) String() string {
	layouts := [...]string{Year: "2006", Month: "2006-01", Day: "2006-01-02", Hour: "2006-01-02T15", Minute: "2006-01-02T15:04",
		Second: "2006-01-02T15:04:05", Fraction: "2006-01-02T15:04:05.999999999"}
	if s.Precision < Year || s.Precision > Fraction {
		return ""
	}
	layout := layouts[s.Precision]
	if s.Offset {
		layout += "-07:00"
	}
	return s.Time.Format(layout)
}

// Clock returns a TM in ISO 8601 at its precision: 09:30, 09:30:15-07:00. It returns false for a malformed time or an
// hour alone.
func (p Part) Clock() (string, bool) {
	s, err := ParseStamp("20000101"+strings.TrimSpace(p.Text()), nil)
	if err != nil || s.Precision < Minute {
		return "", false
	}
	_, clock, _ := strings.Cut(s.String(), "T")
	return clock, true
}

var errStamp = fmt.Errorf("%w: a time must have the form YYYY[MM[DD[HH[MM[SS[.S]]]]]][+/-ZZZZ] and exist", healthlab.Invalid)

// ParseStamp reads a time: see [Part.Stamp]. Spaces around it are ignored.
func ParseStamp(text string, zone *time.Location) (Stamp, error) {
	zone, text = cmp.Or(zone, time.UTC), strings.TrimSpace(text)
	body, s := text, Stamp{}
	for i := range len(text) {
		if text[i] != '+' && text[i] != '-' {
			continue
		}
		body = text[:i]
		h, ok1 := number(text[i+1:], 0, 2)
		m, ok2 := number(text[i+1:], 2, 4)
		if len(text) != i+5 || !ok1 || !ok2 || h > 14 || m > 59 {
			return Stamp{}, errStamp
		}
		offset := (h*60 + m) * 60
		if text[i] == '-' {
			offset = -offset
		}
		s.Offset, zone = true, time.FixedZone("", offset)
		break
	}
	part := earliest
	at := 0
	for i, width := range [...]int{4, 2, 2, 2, 2, 2} {
		if at == len(body) && i > 0 {
			break
		}
		n, ok := number(body, at, at+width)
		if !ok {
			return Stamp{}, errStamp
		}
		part[i], at, s.Precision = n, at+width, Precision(i+1)
	}
	nanos := 0
	if at < len(body) {
		digits := body[at:]
		if s.Precision != Second || digits[0] != '.' || len(digits) < 2 || len(digits) > 10 {
			return Stamp{}, errStamp
		}
		n, ok := number(digits, 1, len(digits))
		if !ok {
			return Stamp{}, errStamp
		}
		for range 10 - len(digits) {
			n *= 10
		}
		nanos, s.Precision = n, Fraction
	}
	year, month, day := part[0], part[1], part[2]
	if year < 1 || month < 1 || month > 12 || day < 1 || day > days(year, month) || part[3] > 23 || part[4] > 59 || part[5] > 59 {
		return Stamp{}, errStamp
	}
	s.Time = time.Date(year, time.Month(month), day, part[3], part[4], part[5], nanos, zone)
	return s, nil
}

func days(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// number reads the digits between two positions.
func number(text string, from, to int) (int, bool) {
	if to > len(text) || from >= to {
		return 0, false
	}
	n := 0
	for i := from; i < to; i++ {
		if !digit(text[i]) {
			return 0, false
		}
		n = n*10 + int(text[i]-'0')
	}
	return n, true
}

// FormatStamp writes a time to the second, with the offset of its zone.
func FormatStamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("20060102150405-0700")
}

// FormatDay writes a day.
func FormatDay(d healthlab.Date) string {
	if d.IsZero() {
		return ""
	}
	return fmt.Sprintf("%04d%02d%02d", d.Year, d.Month, d.Day)
}
