package healthlab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Time is an instant as we publish it: in UTC, to the microsecond, written with the
// offset +00:00 and with a fraction of a second only where there is one
// (2026-03-01T07:00:00+00:00). It reads any RFC 3339 text with an offset of up to 18
// hours, Z, or no offset at all, which means UTC.
//
// The zero value is year 1, which some sources use for "unknown".
type Time struct{ time.Time }

// At returns t as a Time: in UTC, cut to the microsecond, so that every store keeps
// the same value.
func At(t time.Time) Time { return Time{t.UTC().Truncate(time.Microsecond)} }

// maxOffset is the widest offset from UTC that we accept, in seconds. The widest in
// use is 14 hours; ISO 8601 sets no bound, other systems stop near 18.
const maxOffset = 18 * 60 * 60

// Errors of ParseTime. They are values, so that a bad batch costs no formatting.
var (
	errTimeShape  = fmt.Errorf("%w: a date-time is YYYY-MM-DDTHH:MM:SS and an offset", Invalid)
	errNoSuchTime = fmt.Errorf("%w: no such date and time", Invalid)
	errTimeOffset = fmt.Errorf("%w: an offset is at most 18 hours", Invalid)
	errTimeYear   = fmt.Errorf("%w: years are 0001 to 9999", Invalid)
)

// ParseTime reads an ISO 8601 date and time: YYYY-MM-DDTHH:MM:SS, an optional
// fraction of up to nine digits, and an optional offset (Z or ±HH:MM). What is finer
// than a microsecond is cut off. Anything else is [Invalid]; the error does not
// repeat the text.
func ParseTime(s string) (Time, error) {
	t, _, err := ParseTimeOffset(s)
	return t, err
}

// ParseTimeOffset is [ParseTime] for a caller who also wants the offset that was
// written, in seconds east of UTC.
func ParseTimeOffset(s string) (Time, int, error) {
	if len(s) < 19 || s[4] != '-' || s[7] != '-' || (s[10] != 'T' && s[10] != 't' && s[10] != ' ') ||
		s[13] != ':' || s[16] != ':' {
		return Time{}, 0, errTimeShape
	}
	year, ok0 := digits(s[0:4])
	month, ok1 := digits(s[5:7])
	day, ok2 := digits(s[8:10])
	hour, ok3 := digits(s[11:13])
	minute, ok4 := digits(s[14:16])
	second, ok5 := digits(s[17:19])
	if !ok0 || !ok1 || !ok2 || !ok3 || !ok4 || !ok5 {
		return Time{}, 0, errTimeShape
	}
	if year < 1 {
		return Time{}, 0, errTimeYear
	}
	rest := s[19:]
	nanos := 0
	if len(rest) > 0 && rest[0] == '.' {
		n := 1
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		if n == 1 || n > 10 {
			return Time{}, 0, errTimeShape
		}
		nanos, _ = digits(rest[1:n])
		for range 10 - n {
			nanos *= 10
		}
		rest = rest[n:]
	}
	offset, err := parseOffset(rest)
	if err != nil {
		return Time{}, 0, err
	}
	if month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 59 {
		return Time{}, 0, errNoSuchTime
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, nanos, time.UTC)
	if t.Day() != day {
		return Time{}, 0, errNoSuchTime
	}
	out := At(t.Add(-time.Duration(offset) * time.Second))
	if err := out.checkYear(); err != nil {
		return Time{}, 0, err
	}
	return out, offset, nil
}

// digits reads a text of one to nine decimal digits.
func digits(s string) (n int, ok bool) {
	for i := range len(s) {
		d := s[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int(d)
	}
	return n, true
}

// parseOffset reads Z, ±HH:MM or nothing, as seconds east of UTC.
func parseOffset(s string) (int, error) {
	switch {
	case s == "", s == "Z", s == "z":
		return 0, nil
	case len(s) != 6, s[3] != ':', s[0] != '+' && s[0] != '-':
		return 0, errTimeShape
	}
	h, ok1 := digits(s[1:3])
	m, ok2 := digits(s[4:6])
	if !ok1 || !ok2 || m > 59 {
		return 0, errTimeShape
	}
	offset := h*3600 + m*60
	if offset > maxOffset {
		return 0, errTimeOffset
	}
	if s[0] == '-' {
		offset = -offset
	}
	return offset, nil
}

// String returns the published form.
func (t Time) String() string { return string(t.Append(nil)) }

// Append appends the published form to b.
func (t Time) Append(b []byte) []byte {
	u := t.UTC()
	b = u.AppendFormat(b, "2006-01-02T15:04:05")
	if us := u.Nanosecond() / 1000; us != 0 {
		frac := [7]byte{'.'}
		for i := 6; i > 0; i-- {
			frac[i] = byte('0' + us%10)
			us /= 10
		}
		n := len(frac)
		for frac[n-1] == '0' {
			n--
		}
		b = append(b, frac[:n]...)
	}
	return append(b, "+00:00"...)
}

// MarshalText returns the published form. A year outside 0001 to 9999 is [Invalid]:
// it could not be read back.
func (t Time) MarshalText() ([]byte, error) {
	if err := t.checkYear(); err != nil {
		return nil, err
	}
	return t.Append(nil), nil
}

func (t Time) checkYear() error {
	if y := t.UTC().Year(); y < 1 || y > 9999 {
		return errTimeYear
	}
	return nil
}

// MarshalJSON returns the published form in quotes, with the errors of MarshalText.
func (t Time) MarshalJSON() ([]byte, error) {
	if err := t.checkYear(); err != nil {
		return nil, err
	}
	b := append(make([]byte, 0, 40), '"')
	return append(t.Append(b), '"'), nil
}

// UnmarshalText reads what [ParseTime] reads.
func (t *Time) UnmarshalText(b []byte) error {
	v, err := ParseTime(string(b))
	if err != nil {
		return err
	}
	*t = v
	return nil
}

// UnmarshalJSON reads a JSON string as [ParseTime] does. Null leaves t as it is.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return fmt.Errorf("%w: a date-time is a string", Invalid)
	}
	text := b[1 : len(b)-1]
	if bytes.IndexByte(text, '\\') >= 0 { // some encoders write + as \u002B
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return errTimeShape
		}
		text = []byte(s)
	}
	return t.UnmarshalText(text)
}
