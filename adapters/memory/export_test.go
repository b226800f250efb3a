package memory

import (
	"fmt"
	"reflect"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/personkey"
)

// SeenLen returns how many ids and keys are kept, each of which is in the heap once.
func SeenLen(s *Seen) int {
	if len(s.expiries) != len(s.ids)+len(s.keys) {
		return -1
	}
	return len(s.ids) + len(s.keys)
}

// Kept returns the text and the bytes of everything that a store keeps, a line each.
func Kept(s *Store) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := keptWalk{seen: map[uintptr]bool{}}
	w.value(reflect.ValueOf(s).Elem())
	return w.out
}

type keptWalk struct {
	out  []byte
	seen map[uintptr]bool
}

func (w *keptWalk) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && !w.seen[v.Pointer()] && v.Type() != reflect.TypeFor[*personkey.Keys]() {
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
