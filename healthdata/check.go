package healthdata

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
)

// finite reports whether v is a number that can be kept.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// checkSession notes a session without bounds, or one that ends before it starts.
func checkSession(p *healthlab.Problems, start, end healthlab.Time, startName, endName string) {
	if start.IsZero() {
		p.Add("missing", "a session needs its start", startName)
	}
	if end.IsZero() {
		p.Add("missing", "a session needs its end", endName)
	}
	if end.Before(start.Time) {
		p.Add("order", "a session does not end before it starts", endName)
	}
}

// checkZone notes a zone that the tz database does not know.
func checkZone(p *healthlab.Problems, zone *string) {
	if zone == nil {
		return
	}
	if _, err := loadZone(*zone); err != nil {
		p.Add("unknown_zone", "a zone is an identifier of the IANA tz database", "time_zone")
	}
}

// loadZone returns a zone of the tz database. The machine's own zone has no name
// there, and neither has the empty string.
func loadZone(id string) (*time.Location, error) {
	if id == "" || id == "Local" {
		return nil, healthlab.Invalid
	}
	return time.LoadLocation(id)
}

// zoneOffset returns the offset of a zone at an instant, in seconds east of UTC; nil
// without a zone.
func zoneOffset(zone *string, at healthlab.Time) *int {
	if zone == nil {
		return nil
	}
	loc, err := loadZone(*zone)
	if err != nil {
		return nil
	}
	_, offset := at.In(loc).Zone()
	return &offset
}

// checkText notes text that cannot be kept: not UTF-8, with NUL, or longer than limit
// bytes.
func checkText(p *healthlab.Problems, s string, limit int, path ...any) {
	switch {
	case !utf8.ValidString(s):
		p.Add("encoding", "text is UTF-8", path...)
	case strings.IndexByte(s, 0) >= 0:
		p.Add("nul", "text has no NUL", path...)
	case len(s) > limit:
		p.Add("too_long", "longer than is kept", path...)
	}
}

func checkOptional(p *healthlab.Problems, s *string, path ...any) {
	if s != nil {
		checkText(p, *s, maxName, path...)
	}
}

// checkTexts notes every text of a summary that cannot be kept. Polylines may be long.
func checkTexts(p *healthlab.Problems, v any) {
	eachField(reflect.ValueOf(v), nil, func(v reflect.Value, path []any) {
		if v.Kind() != reflect.String {
			return
		}
		limit := maxNote
		if name, _ := path[len(path)-1].(string); strings.HasSuffix(name, "polyline") {
			limit = maxPolyline
		}
		checkText(p, v.String(), limit, slices.Clone(path)...)
	})
}

// checkYear notes an instant that could not be written.
func checkYear(p *healthlab.Problems, t healthlab.Time, path ...any) bool {
	if y := t.UTC().Year(); y < 1 || y > 9999 {
		p.Add("year", "years are 0001 to 9999", path...)
		return false
	}
	return true
}

// checkOffset notes an offset that no zone has, and reports whether all is well.
func checkOffset(p *healthlab.Problems, seconds int) bool {
	if seconds > maxOffset || seconds < -maxOffset {
		p.Add("range", "an offset is at most 18 hours", "timezone_offset")
		return false
	}
	return true
}

// checkNumbers notes every number of a summary that is not finite.
func checkNumbers(p *healthlab.Problems, v any) {
	eachField(reflect.ValueOf(v), nil, func(v reflect.Value, path []any) {
		if v.Kind() == reflect.Float64 && !finite(v.Float()) {
			p.Add("not_finite", "a number is finite", slices.Clone(path)...)
		}
	})
}

// eachField visits the published values inside v, with the path of each.
func eachField(v reflect.Value, path []any, visit func(reflect.Value, []any)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachField(v.Elem(), path, visit)
		}
	case reflect.Struct:
		t := v.Type()
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Anonymous && name == "":
				eachField(v.Field(i), path, visit)
			case f.IsExported() && name != "" && name != "-":
				eachField(v.Field(i), append(path, name), visit)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			eachField(v.Index(i), append(path, i), visit)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			visit(k, append(path, "*"))
			eachField(v.MapIndex(k), append(path, "*"), visit)
		}
	default:
		visit(v, path)
	}
}

// sameType reports whether two summaries are of one resource.
func sameType(a, b Summary) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }

// sortDays sorts an array of days, and makes an empty one of nil.
func sortDays[T any](days *[]T, date func(T) healthlab.Date) {
	if *days == nil {
		*days = []T{}
	}
	slices.SortStableFunc(*days, func(a, b T) int { return cmp.Compare(date(a).Compare(date(b)), 0) })
}
