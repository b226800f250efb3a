package conformance

import (
	"fmt"
	"reflect"

	"github.com/healthlab-dev/healthlab"
)

// Kept returns all texts and bytes that can be reached from a value (a store in memory), one per line. Tests search
// them for personal values. No other goroutine may use the value meanwhile.
func Kept(v any) []byte {
	w := keptWalk{seen: map[uintptr]bool{}}
	w.value(reflect.ValueOf(v))
	return w.out
}

type keptWalk struct {
	out  []byte
	seen map[uintptr]bool
}

func (w *keptWalk) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && !w.seen[v.Pointer()] {
			w.seen[v.Pointer()] = true
			w.value(v.Elem())
		}
	case reflect.Interface:
		if !v.IsNil() {
			w.value(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			w.value(v.Field(i))
		}
		if v.Type() == reflect.TypeFor[healthlab.Date]() {
			w.out = fmt.Appendf(w.out, "%04d-%02d-%02d\n", v.Field(0).Int(), v.Field(1).Int(), v.Field(2).Int())
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			w.value(k)
			w.value(v.MapIndex(k))
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			for i := range v.Len() {
				w.out = append(w.out, byte(v.Index(i).Uint()))
			}
			w.out = append(w.out, '\n')
			return
		}
		for i := range v.Len() {
			w.value(v.Index(i))
		}
	case reflect.String:
		w.out = append(append(w.out, v.String()...), '\n')
	default: // numbers, booleans and functions have no text
	}
}
