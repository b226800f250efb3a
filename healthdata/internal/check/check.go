// Package check tells whether values that sources and teams send have a form that can be kept:
// numbers, texts, zones, offsets and sessions. Most functions note the problems that they find.
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

// Limits of texts that come with data, in bytes.
const (
	MaxName     = 256
	MaxNote     = 16 << 10
	maxPolyline = 1 << 20
)

// MaxOffset is the widest offset from UTC that is accepted, in seconds.
const MaxOffset = 18 * 60 * 60

// Finite reports whether v is a number that can be kept.
func Finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Session notes a session without bounds, and one that lasts no time or longer than longest.
// A longest of zero takes every length that is not negative.
func Session(p *healthlab.Problems, start, end healthlab.Time, longest time.Duration, startName, endName string) {
	if start.IsZero() {
		p.Add("missing", "a session needs its start", startName)
	}
	if end.IsZero() {
		p.Add("missing", "a session needs its end", endName)
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

// Zone notes a zone that the tz database does not know.
func Zone(p *healthlab.Problems, zone *string) {
	if zone == nil {
		return
	}
	if _, err := LoadZone(*zone); err != nil {
		p.Add("unknown_zone", "must be a zone of the IANA time zone database, such as Europe/Vienna or UTC", "time_zone")
	}
}

// LoadZone returns a zone of the tz database. The machine's own zone has no name
// there, and neither has the empty string.
func LoadZone(id string) (*time.Location, error) {
	if id == "" || id == "Local" {
		return nil, healthlab.Invalid
	}
	return time.LoadLocation(id)
}

// Text notes text that cannot be kept: not UTF-8, with NUL, or longer than limit
// bytes.
func Text(p *healthlab.Problems, s string, limit int, path ...any) {
	switch {
	case !utf8.ValidString(s):
		p.Add("encoding", "text is UTF-8", path...)
	case strings.IndexByte(s, 0) >= 0:
		p.Add("nul", "text has no NUL", path...)
	case len(s) > limit:
		p.Add("too_long", "longer than is kept", path...)
	}
}

// Optional is [Text] of a name that may be null.
func Optional(p *healthlab.Problems, s *string, path ...any) {
	if s != nil {
		Text(p, *s, MaxName, path...)
	}
}

// Texts notes every text of a summary that cannot be kept. Polylines may be long.
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

// Year notes an instant that could not be written.
func Year(p *healthlab.Problems, t healthlab.Time, path ...any) bool {
	if y := t.UTC().Year(); y < 1 || y > 9999 {
		p.Add("year", "years are 0001 to 9999", path...)
		return false
	}
	return true
}

// Offset notes an offset that no zone has, and reports whether all is well. Nil is no offset.
func Offset(p *healthlab.Problems, seconds *int, name string) bool {
	if seconds != nil && (*seconds > MaxOffset || *seconds < -MaxOffset) {
		p.Add("range", "must be at most 18 hours", name)
		return false
	}
	return true
}

// NotFinite notes a number that is not finite, in a unit, or as it came if unit is empty.
func NotFinite(p *healthlab.Problems, unit string, path ...any) {
	text := "must be finite"
	if unit != "" {
		text += " in " + unit
	}
	p.Add("not_finite", text, path...)
}

// Numbers notes every number of a summary that is not finite.
func Numbers(p *healthlab.Problems, v any) {
	EachField(reflect.ValueOf(v), nil, func(v reflect.Value, path []any) {
		if v.Kind() == reflect.Float64 && !Finite(v.Float()) {
			NotFinite(p, "", slices.Clone(path)...)
		}
	})
}

// EachField visits the published values inside v, with the path of each.
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

// Line reports whether a text can be shown in a line: not empty, not only space, no
// control characters, and at most so many characters.
func Line(s string, most int) bool {
	return strings.TrimSpace(s) != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= most && !strings.ContainsFunc(s, unicode.IsControl)
}

// Address reports whether a text is an e-mail address, and nothing but that.
func Address(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s && len(s) <= 254
}

// The codes of problems that refuse an item alone. All others refuse the upload.
const (
	CodeBounds   = "out_of_bounds"
	CodeNegative = "negative"
	CodeEarly    = "too_early"
	CodeFuture   = "future"
)

// FirstYear is the first year that is taken.
const FirstYear = 1900

// earliest is the first instant that is taken.
var earliest = time.Date(FirstYear, 1, 1, 0, 0, 0, 0, time.UTC)

// Earliest notes an instant before 1900.
func Earliest(p *healthlab.Problems, t healthlab.Time, path ...any) {
	if t.Before(earliest) {
		p.Add(CodeEarly, "must be 1900-01-01 or later", path...)
	}
}
