// Package check checks values that sources and teams send: numbers, texts, time zones, offsets and sessions.
// Most functions add the problems that they find to a list.
package check

import (
	"fmt"
	"math"
	"net/mail"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
)

// Limits of texts in health data, in bytes.
const (
	MaxName     = 256
	MaxNote     = 16 << 10
	maxPolyline = 1 << 20
)

// MaxOffset is the widest offset from UTC that is accepted, in seconds.
const MaxOffset = 18 * 60 * 60

// Finite reports whether v is finite.
func Finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Session reports a session without start or end, of no length, or longer than longest. If longest is zero,
// every length that is not negative is accepted.
func Session(p *healthlab.Problems, start, end healthlab.Time, longest time.Duration, startName, endName string) {
	if start.IsZero() {
		p.Add("missing", "must be set: the start of the session", startName)
	}
	if end.IsZero() {
		p.Add("missing", "must be set: the end of the session", endName)
	}
	length := end.Sub(start.Time)
	switch {
	case start.IsZero() || end.IsZero():
	case longest > 0 && (length <= 0 || length > longest):
		p.Add(CodeBounds, fmt.Sprintf("must be after %s, by at most %g hours", startName, longest.Hours()), endName)
	case length < 0:
		p.Add(CodeBounds, "must not be before "+startName, endName)
	}
}

// Zone reports a zone that is not in the tz database.
func Zone(p *healthlab.Problems, zone *string) {
	if zone == nil {
		return
	}
	if _, err := LoadZone(*zone); err != nil {
		p.Add("unknown_zone", "must be a zone of the IANA time zone database, such as Europe/Vienna or UTC", "time_zone")
	}
}

// LoadZone returns a zone of the tz database. It refuses Local and the empty string.
func LoadZone(id string) (*time.Location, error) {
	if id == "" || id == "Local" {
		return nil, healthlab.Invalid
	}
	return time.LoadLocation(id)
}

// Text reports text that cannot be stored: not UTF-8, with NUL, or longer than limit bytes.
func Text(p *healthlab.Problems, s string, limit int, path ...any) {
	switch {
	case !utf8.ValidString(s):
		p.Add("encoding", "must be UTF-8", path...)
	case strings.IndexByte(s, 0) >= 0:
		p.Add("nul", "must not contain NUL", path...)
	case len(s) > limit:
		p.Add("too_long", fmt.Sprintf("must have at most %d bytes", limit), path...)
	}
}

// Optional checks a name as [Text] does, with the limit [MaxName]. Nil is valid.
func Optional(p *healthlab.Problems, s *string, path ...any) {
	if s != nil {
		Text(p, *s, MaxName, path...)
	}
}

// Texts reports every text in the JSON fields of the summary v that [Text] refuses. The limit is [MaxNote], and 1 MiB
// for polylines.
func Texts(p *healthlab.Problems, v any) {
	EachField(reflect.ValueOf(v), nil, func(v reflect.Value, path []any) {
		if v.Kind() != reflect.String {
			return
		}
		limit := MaxNote
		if name, _ := path[len(path)-1].(string); strings.HasSuffix(name, "polyline") {
			limit = maxPolyline
		}
		Text(p, v.String(), limit, slices.Clone(path)...)
	})
}

// Year reports an instant outside of the years 1 to 9999. It returns whether the instant is valid.
func Year(p *healthlab.Problems, t healthlab.Time, path ...any) bool {
	if y := t.UTC().Year(); y < 1 || y > 9999 {
		p.Add("year", "must be in the years 0001 to 9999", path...)
		return false
	}
	return true
}

// Offset reports an offset that no time zone has. It returns whether the offset is valid. Nil is valid.
func Offset(p *healthlab.Problems, seconds *int, name string) bool {
	if seconds != nil && (*seconds > MaxOffset || *seconds < -MaxOffset) {
		p.Add("range", fmt.Sprintf("must be from %d to %d seconds (18 hours)", -MaxOffset, MaxOffset), name)
		return false
	}
	return true
}

// NotFinite adds a problem about a number that is not finite, after its conversion to unit if unit is not empty.
func NotFinite(p *healthlab.Problems, unit string, path ...any) {
	text := "must be finite"
	if unit != "" {
		text += " in " + unit
	}
	p.Add("not_finite", text, path...)
}

// Numbers reports every number in the JSON fields of the summary v that is not finite.
func Numbers(p *healthlab.Problems, v any) {
	EachField(reflect.ValueOf(v), nil, func(v reflect.Value, path []any) {
		if v.Kind() == reflect.Float64 && !Finite(v.Float()) {
			NotFinite(p, "", slices.Clone(path)...)
		}
	})
}

// EachField calls visit with each value in the JSON fields inside v and with the path of the value: JSON names and
// indices, and "*" for a map key and its value. The path is valid until visit returns.
func EachField(v reflect.Value, path []any, visit func(reflect.Value, []any)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			EachField(v.Elem(), path, visit)
		}
	case reflect.Struct:
		t := v.Type()
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Anonymous && name == "":
				EachField(v.Field(i), path, visit)
			case f.IsExported() && name != "" && name != "-":
				EachField(v.Field(i), append(path, name), visit)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			EachField(v.Index(i), append(path, i), visit)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			visit(k, append(path, "*"))
			EachField(v.MapIndex(k), append(path, "*"), visit)
		}
	default:
		visit(v, path)
	}
}

// Line reports whether s is valid as one line: UTF-8, not empty or only white space, without control characters. most
// is the greatest number of characters.
func Line(s string, most int) bool {
	return strings.TrimSpace(s) != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= most && !strings.ContainsFunc(s, unicode.IsControl)
}

// LineText is the text of a problem about a value that [Line] refuses. most is the argument of Line.
func LineText(most int) string {
	return fmt.Sprintf("must have 1 to %d characters, no control characters, and not only white space", most)
}

// Address reports whether a text is exactly one e-mail address.
func Address(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s && len(s) <= 254
}

// The codes of problems with impossible values: a number out of its bounds, and a time that is too early or in the
// future.
const (
	CodeBounds   = "out_of_bounds"
	CodeNegative = "negative"
	CodeEarly    = "too_early"
	CodeFuture   = "future"
)

// FirstYear is the first accepted year.
const FirstYear = 1900

// earliest is the first accepted instant.
var earliest = time.Date(FirstYear, 1, 1, 0, 0, 0, 0, time.UTC)

// Earliest reports an instant before 1900.
func Earliest(p *healthlab.Problems, t healthlab.Time, path ...any) {
	if t.Before(earliest) {
		p.Add(CodeEarly, "must be 1900-01-01 or later", path...)
	}
}
