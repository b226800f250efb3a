package wire

import (
	"reflect"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Own returns the only user for whom the caller may act; zero if there is no such limit.
func (in *In) Own() healthlab.UserID { return in.settings.Own }

// Replace returns an id that does not exist, in place of the id of an object that belongs to another user. Equal ids
// give equal results for the same user.
func (s *Settings) Replace(id string) string {
	nobody := uuid.NewSHA1(s.Own.UUID, []byte(id)).String()
	s.replaced = append(s.replaced, nobody, id)
	return nobody
}

// AsAsked returns an error text in which ids that [Settings.Replace] has returned are replaced by the ids that the
// caller sent.
func (s *Settings) AsAsked(words string) string {
	return strings.NewReplacer(s.replaced...).Replace(words)
}

var userType = reflect.TypeFor[healthlab.UserID]()

func (in *In) confine(v any) {
	if !in.settings.Own.IsZero() {
		in.settings.confine(reflect.ValueOf(v).Elem())
	}
}

func (s *Settings) confine(v reflect.Value) {
	switch {
	case v.Type() == userType:
		if id, _ := reflect.TypeAssert[healthlab.UserID](v); v.CanSet() && id != s.Own {
			v.Set(reflect.ValueOf(s.replaceUser(id)))
		}
	case v.Kind() == reflect.Pointer && v.Type().Elem() == userType && v.IsNil():
		if v.CanSet() {
			v.Set(reflect.ValueOf(new(s.Own)))
		}
	case v.Kind() == reflect.Pointer && !v.IsNil():
		s.confine(v.Elem())
	case v.Kind() == reflect.Slice && namesUsers(v.Type().Elem(), 0):
		for i := range v.Len() {
			s.confine(v.Index(i))
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); (f.IsExported() || f.Anonymous) && namesUsers(f.Type, 0) {
				s.confine(v.Field(i))
			}
		}
	}
}

func (s *Settings) replaceUser(id healthlab.UserID) healthlab.UserID {
	return healthlab.UserID{UUID: uuid.MustParse(s.Replace(id.String()))}
}

// namesUsers reports whether a value of a type can contain the id of a user in structs, slices and pointers. It does
// not search maps. depth is the nesting of the type, which is limited because types may contain themselves.
func namesUsers(t reflect.Type, depth int) bool {
	if t == userType {
		return true
	}
	if depth > 8 { // such a type contains itself
		return false
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return namesUsers(t.Elem(), depth+1)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); (f.IsExported() || f.Anonymous) && namesUsers(f.Type, depth+1) {
				return true
			}
		}
	}
	return false
}
