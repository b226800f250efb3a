package pull

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"
)

// appendFingerprint appends bytes that identify an item of any type, including non-finite numbers and zero
// dates, which JSON cannot encode.
func appendFingerprint(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return append(b, "-;"...)
		}
		return appendFingerprint(b, v.Elem())
	case reflect.Struct:
		if v.CanInterface() {
			if t, ok := v.Interface().(time.Time); ok {
				return fmt.Appendf(b, "%d.%d;", t.Unix(), t.Nanosecond())
			}
		}
		for i := range v.NumField() {
			b = appendFingerprint(b, v.Field(i))
		}
		return b
	case reflect.Slice, reflect.Array:
		b = fmt.Appendf(b, "%d[", v.Len())
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			return append(b, v.Bytes()...)
		}
		for i := range v.Len() {
			b = appendFingerprint(b, v.Index(i))
		}
		return b
	case reflect.Map:
		b = fmt.Appendf(b, "%d{", v.Len())
		byKey := map[string]reflect.Value{}
		for _, k := range v.MapKeys() {
			byKey[string(appendFingerprint(nil, k))] = v.MapIndex(k)
		}
		for _, key := range slices.Sorted(maps.Keys(byKey)) {
			b = appendFingerprint(append(b, key...), byKey[key])
		}
		return b
	case reflect.String:
		return fmt.Appendf(b, "%d:%s;", v.Len(), v.String())
	case reflect.Float32, reflect.Float64:
		return fmt.Appendf(b, "%x;", math.Float64bits(v.Float()))
	default:
		return fmt.Appendf(b, "%v;", v)
	}
}
