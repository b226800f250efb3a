package pull

import (
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
)

// writePrint writes what tells an item from others, whatever it is: also numbers that are
// not finite and dates that nobody set, which JSON does not have.
func writePrint(w io.Writer, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			fmt.Fprint(w, "-;")
			return
		}
		writePrint(w, v.Elem())
	case reflect.Struct:
		if v.CanInterface() {
			if t, ok := v.Interface().(time.Time); ok {
				fmt.Fprintf(w, "%d.%d;", t.Unix(), t.Nanosecond())
				return
			}
		}
		for i := range v.NumField() {
			writePrint(w, v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		fmt.Fprintf(w, "%d[", v.Len())
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			_, _ = w.Write(v.Bytes()) // a hash takes everything
			return
		}
		for i := range v.Len() {
			writePrint(w, v.Index(i))
		}
	case reflect.Map:
		fmt.Fprintf(w, "%d{", v.Len())
		byKey := map[string]reflect.Value{}
		for _, k := range v.MapKeys() {
			var key strings.Builder
			writePrint(&key, k)
			byKey[key.String()] = v.MapIndex(k)
		}
		for _, key := range slices.Sorted(maps.Keys(byKey)) {
			fmt.Fprint(w, key)
			writePrint(w, byKey[key])
		}
	case reflect.String:
		fmt.Fprintf(w, "%d:%s;", v.Len(), v.String())
	case reflect.Float32, reflect.Float64:
		fmt.Fprintf(w, "%x;", math.Float64bits(v.Float()))
	default:
		fmt.Fprintf(w, "%v;", v)
	}
}
