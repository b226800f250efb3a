package healthdata

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

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

// checkNumbers notes every number of a struct that is not finite.
func checkNumbers(p *healthlab.Problems, v any) {
	var walk func(v reflect.Value, path []any)
	walk = func(v reflect.Value, path []any) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem(), path)
			}
		case reflect.Float64:
			if !finite(v.Float()) {
				p.Add("not_finite", "a number is finite", slices.Clone(path)...)
			}
		case reflect.Struct:
			t := v.Type()
			for i := range t.NumField() {
				name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
				if name != "" && t.Field(i).IsExported() {
					walk(v.Field(i), append(path, name))
				}
			}
		case reflect.Map:
			for _, k := range v.MapKeys() {
				walk(v.MapIndex(k), append(path, k.String()))
			}
		}
	}
	walk(reflect.ValueOf(v), nil)
}

// sortDays sorts an array of days, and makes an empty one of nil.
func sortDays[T any](days *[]T, date func(T) healthlab.Date) {
	if *days == nil {
		*days = []T{}
	}
	slices.SortStableFunc(*days, func(a, b T) int { return cmp.Compare(date(a).Compare(date(b)), 0) })
}
