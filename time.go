package healthlab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Time is an instant in the format of the HTTP API: in UTC, to the microsecond, with the offset +00:00 and a
// fraction of a second only if it is not zero (2026-03-01T07:00:00+00:00). It is parsed as by [ParseTime]; a
// text without an offset is in UTC.
//
// The zero value is year 1, which some sources use for "unknown".
type Time struct{ time.Time }

// At returns t as a Time: in UTC, truncated to the microsecond, so that every store has the same value.
func At(t time.Time) Time { return Time{t.UTC().Truncate(time.Microsecond)} }

// maxOffset is the largest accepted offset from UTC, in seconds. The largest in use is 14 hours; ISO 8601 sets
// no limit, other systems stop near 18.
const maxOffset = 18 * 60 * 60

// Errors of ParseTime, made once, because an upload may contain many invalid times.
var (
	errTimeShape  = fmt.Errorf("%w: a date-time must have the form YYYY-MM-DDTHH:MM:SS and an offset such as Z or +02:00", Invalid)
	errNoSuchTime = fmt.Errorf("%w: a date-time must exist in the calendar", Invalid)
	errTimeOffset = fmt.Errorf("%w: the offset of a date-time must be at most 18 hours", Invalid)
	errTimeYear   = fmt.Errorf("%w: the year of a date-time must be 0001 to 9999", Invalid)
)

// ParseTime parses an ISO 8601 date and time: YYYY-MM-DDTHH:MM, the seconds with or without a fraction, and an
// optional offset (Z, ±HH:MM, ±HHMM, ±HH or ±HH:MM:SS; UTC or GMT, alone or before an offset such as UTC+2). The minus
// may be a hyphen or the minus sign U+2212. A space may replace the T and precede the offset, a comma may replace the
// point of the fraction, and an hour may have one digit. White space around it, and the name of a zone in brackets
// after an offset, are ignored. Digits beyond the microsecond are truncated. Other texts are [Invalid]; the error does
// not repeat the text.
func ParseTime(s string) (Time, error) {
	t, _, _, err := parseTime(s)
	return t, err
}

// ParseTimeOffset is [ParseTime] that also returns the written offset, in seconds east of UTC; 0 without one.
func ParseTimeOffset(s string) (Time, int, error) {
	t, offset, _, err := parseTime(s)
	return t, offset, err
}

// ParseTimeZone is [ParseTime] that also returns the written offset: nil without one, and 0 for Z.
func ParseTimeZone(s string) (Time, *int, error) {
	t, offset, written, err := parseTime(s)
	if err != nil || !written {
		return t, nil, err
	}
	return t, &offset, nil
}

// ParseOffset parses an offset as [ParseTime] does, in seconds east of UTC. The empty text is [Invalid].
func ParseOffset(s string) (int, error) {
	offset, written, err := parseOffset(s)
	if err == nil && !written {
		err = errTimeShape
	}
	return offset, err
}

func parseTime(s string) (t Time, offset int, written bool, err error) {
	s = extendedFormat(withoutZoneName(s))
	if len(s) > 14 && s[12] == ':' { // an hour of one digit
		s = s[:11] + "0" + s[11:]
	}
	if len(s) < 16 || s[4] != '-' || s[7] != '-' || (s[10] != 'T' && s[10] != 't' && s[10] != ' ') || s[13] != ':' {
		return Time{}, 0, false, errTimeShape
	}
	year, ok0 := digits(s[0:4])
	month, ok1 := digits(s[5:7])
	day, ok2 := digits(s[8:10])
	hour, ok3 := digits(s[11:13])
	minute, ok4 := digits(s[14:16])
	if !ok0 || !ok1 || !ok2 || !ok3 || !ok4 {
		return Time{}, 0, false, errTimeShape
	}
	second, nanos, rest, ok := parseSeconds(s[16:])
	if !ok {
		return Time{}, 0, false, errTimeShape
	}
	if year < 1 {
		return Time{}, 0, false, errTimeYear
	}
	if len(rest) > 1 && rest[0] == ' ' {
		rest = rest[1:]
	}
	offset, written, err = parseOffset(rest)
	if err != nil {
		return Time{}, 0, false, err
	}
	endOfDay := hour == 24 && minute == 0 && second == 0 && nanos == 0
	if month < 1 || month > 12 || day < 1 || hour > 23 && !endOfDay || minute > 59 || second > 60 {
		return Time{}, 0, false, errNoSuchTime
	}
	leap := second == 60
	if leap {
		second, nanos = 59, 999_999_999
	}
	midnight := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if midnight.Day() != day {
		return Time{}, 0, false, errNoSuchTime
	}
	t = At(time.Date(year, time.Month(month), day, hour, minute, second-offset, nanos, time.UTC))
	if leap && (t.Hour() != 23 || t.Minute() != 59) {
		return Time{}, 0, false, errNoSuchTime
	}
	if err := t.checkYear(); err != nil {
		return Time{}, 0, false, err
	}
	return t, offset, written, nil
}

// withoutZoneName removes white space around a time, and the name of a zone in brackets after an offset (RFC 9557). A
// time without an offset keeps the name, so that the parser refuses it: its offset would have to come from the name.
func withoutZoneName(s string) string {
	if s == "" || s[0] >= '0' && s[0] <= '9' && s[len(s)-1] > ' ' && s[len(s)-1] < utf8.RuneSelf && s[len(s)-1] != ']' {
		return s
	}
	s = strings.TrimSpace(s)
	at, name, ok := strings.Cut(s, "[")
	if !ok || !strings.HasSuffix(name, "]") || !strings.HasSuffix(at, "Z") && !strings.HasSuffix(at, "z") && strings.LastIndexAny(at, "+-") < len("2006-01-02") {
		return s
	}
	return at
}

// extendedFormat inserts the hyphens and colons into a date and time in the basic format, if the date, the time
// or both lack them. Other texts stay unchanged.
func extendedFormat(s string) string {
	if len(s) > 9 && allDigits(s[:8]) {
		s = s[:4] + "-" + s[4:6] + "-" + s[6:]
	}
	const clock = 11
	if len(s) < clock+4 || s[4] != '-' || !allDigits(s[clock:clock+4]) {
		return s
	}
	rest := s[clock+4:]
	if len(rest) >= 2 && allDigits(rest[:2]) {
		rest = ":" + rest
	}
	return s[:clock+2] + ":" + s[clock+2:clock+4] + rest
}

func allDigits(s string) bool {
	_, ok := digits(s)
	return ok
}

// parseSeconds parses the optional seconds of a time, and returns the text after them.
func parseSeconds(s string) (second, nanos int, rest string, ok bool) {
	if len(s) < 3 || s[0] != ':' {
		return 0, 0, s, s == "" || s[0] != ':'
	}
	if second, ok = digits(s[1:3]); !ok {
		return 0, 0, "", false
	}
	rest = s[3:]
	if rest == "" || rest[0] != '.' && rest[0] != ',' {
		return second, 0, rest, true
	}
	n := 1
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	if n == 1 {
		return 0, 0, "", false
	}
	known := min(n, 10) // at most nine digits, after the decimal mark
	nanos, _ = digits(rest[1:known])
	for range 10 - known {
		nanos *= 10
	}
	return second, nanos, rest[n:], true
}

// digits parses one to nine decimal digits.
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

// minusSign is the sign of a western offset in ISO 8601. Formatters of some languages write it, most programs a hyphen.
const minusSign = "\u2212"

// parseOffset parses Z, ±HH:MM, ±HHMM, ±HH, ±HH:MM:SS, UTC or GMT with or without a signed offset, or nothing, as
// seconds east of UTC, and returns whether there was one.
func parseOffset(s string) (offset int, written bool, err error) {
	s = strings.Replace(s, minusSign, "-", 1)
	if len(s) >= 3 && (s[:3] == "UTC" || s[:3] == "GMT") {
		if s = s[3:]; s == "" {
			return 0, true, nil
		}
		if s == "Z" || s == "z" {
			return 0, false, errTimeShape
		}
		if len(s) == 2 || len(s) > 2 && s[2] == ':' { // an hour of one digit
			s = s[:1] + "0" + s[1:]
		}
	}
	switch {
	case s == "":
		return 0, false, nil
	case s == "Z", s == "z":
		return 0, true, nil
	}
	second := 0
	if len(s) == len("+HH:MM:SS") && s[6] == ':' {
		var ok bool
		if second, ok = digits(s[7:]); !ok || second > 59 {
			return 0, false, errTimeShape
		}
		s = s[:6]
	}
	if s[0] != '+' && s[0] != '-' || len(s) != 3 && len(s) != 5 && len(s) != 6 || len(s) == 6 && s[3] != ':' {
		return 0, false, errTimeShape
	}
	h, ok := digits(s[1:3])
	m := 0
	if ok && len(s) > 3 {
		m, ok = digits(s[len(s)-2:])
	}
	if !ok || m > 59 {
		return 0, false, errTimeShape
	}
	if offset = h*3600 + m*60 + second; offset > maxOffset {
		return 0, false, errTimeOffset
	}
	if s[0] == '-' {
		offset = -offset
	}
	return offset, true, nil
}

// String returns t in the format of the HTTP API.
func (t Time) String() string { return string(t.Append(nil)) }

// Append appends t in the format of the HTTP API to b.
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

// MarshalText returns t in the format of the HTTP API. A year outside 0001 to 9999 is [Invalid], because the text
// could not be parsed again.
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

// MarshalJSON returns t in the format of the HTTP API as a JSON string, with the errors of MarshalText.
func (t Time) MarshalJSON() ([]byte, error) {
	if err := t.checkYear(); err != nil {
		return nil, err
	}
	b := append(make([]byte, 0, 40), '"')
	return append(t.Append(b), '"'), nil
}

// UnmarshalText parses a text as [ParseTime] does.
func (t *Time) UnmarshalText(b []byte) error {
	v, err := ParseTime(string(b))
	if err != nil {
		return err
	}
	*t = v
	return nil
}

// UnmarshalJSON parses a JSON string as [ParseTime] does. Null leaves t unchanged.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return fmt.Errorf("%w: a date-time must be a string", Invalid)
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
