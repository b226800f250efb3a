package oauthrest

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// target is the type of a summary's field: a value of the kind, or a list of such values.
type target struct {
	kind kind
	list bool
}

// targets returns the fields of a summary that a configuration can fill, by name. Nested names are joined with dots.
func targets(r *healthdata.Resource) map[string]target {
	out := map[string]target{}
	var walk func(t reflect.Type, prefix string)
	walk = func(t reflect.Type, prefix string) {
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous && name == "" {
				if f.Type != reflect.TypeFor[healthdata.Head]() {
					walk(f.Type, prefix)
				}
				continue
			}
			if name == "" || name == "-" || strings.Contains(f.Tag.Get("wire"), "out") {
				continue
			}
			typ := f.Type
			if typ.Kind() == reflect.Pointer {
				typ = typ.Elem()
			}
			if typ.Kind() == reflect.Struct && typ != reflect.TypeFor[healthlab.Time]() && typ != reflect.TypeFor[healthlab.Date]() {
				walk(typ, prefix+name+".")
				continue
			}
			var to target
			if to.list = typ.Kind() == reflect.Slice; to.list {
				typ = typ.Elem()
			}
			var ok bool
			if to.kind, ok = kindOf(typ); !ok {
				continue
			}
			if name == "timezone_offset" {
				to.kind = offset
			}
			out[prefix+name] = to
		}
	}
	walk(reflect.TypeOf(r.New()).Elem(), "")
	return out
}

func kindOf(t reflect.Type) (kind, bool) {
	switch t {
	case reflect.TypeFor[healthlab.Time]():
		return instant, true
	case reflect.TypeFor[healthlab.Date]():
		return day, true
	case reflect.TypeFor[uuid.UUID]():
		return 0, false
	}
	switch t.Kind() {
	case reflect.Float64:
		return number, true
	case reflect.Int, reflect.Int64:
		return whole, true
	case reflect.String:
		return word, true
	case reflect.Bool:
		return flag, true
	default:
		return 0, false
	}
}

// read reads f as a JSON value of the kind k. It returns false if the value is absent, or unreadable, which is reported
// under name.
func (r *reader) read(f *Field, k kind, name string) (any, bool) {
	switch k {
	case instant:
		t, _, ok := r.instant(f, name)
		return t, ok
	case day:
		return wrap(r.day(f, name))
	case number:
		return wrap(r.number(f, name))
	case whole:
		n, ok := r.number(f, name)
		if math.Abs(n) > 1<<53 {
			r.p.Add("number", "must be a number from -2^53 to 2^53", name)
			return nil, false
		}
		return int64(math.Round(n)), ok
	case word:
		return wrap(r.word(f, name))
	case flag:
		return wrap(r.flag(f, name))
	default:
		return wrap(r.offset(f, name))
	}
}

func wrap[T any](v T, ok bool) (any, bool) { return v, ok }

// list reads f, whose pointer selects a list, as a list of values of the kind k. It returns false if the list is
// absent, or an element is unreadable, which is reported under name.
func (r *reader) list(f *Field, k kind, name string) (any, bool) {
	v, ok := r.it.find(f.At)
	all, isList := v.([]any)
	if !ok || !isList {
		return nil, false
	}
	out := make([]any, 0, len(all))
	each := *f
	each.At = "."
	for _, v := range all {
		one := reader{it: &item{inside: []any{v}}, zone: r.zone}
		x, ok := one.read(&each, k, name)
		r.p = append(r.p, one.p...)
		if !ok {
			if len(one.p) == 0 {
				r.p.Add("missing", "must have no null elements", name)
			}
			return nil, false
		}
		out = append(out, x)
	}
	return out, true
}

// sample maps the item of r to a sample. ok is false if the item has no measurement, which is not an error.
func (m *mapper) sample(r *reader) (s healthdata.Sample, ok bool) {
	c := m.entry.Sample
	t, written, _ := r.instant(&c.Timestamp, "timestamp")
	s.Timestamp, s.TimezoneOffset = t, written
	if c.TimezoneOffset != nil {
		if n, ok := r.offset(c.TimezoneOffset, "timezone_offset"); ok {
			s.TimezoneOffset = &n
		}
	}
	number := func(f *Field, name string) *float64 {
		if f == nil {
			return nil
		}
		n, ok := r.number(f, name)
		if !ok {
			return nil
		}
		return &n
	}
	said := func(f *Field, name string) *string {
		if f == nil {
			return nil
		}
		w, ok := r.word(f, name)
		if !ok {
			return nil
		}
		return &w
	}
	switch m.resource.Value {
	case healthdata.ValuePressure:
		s.Systolic, s.Diastolic = number(c.Systolic, "systolic"), number(c.Diastolic, "diastolic")
		ok = s.Systolic != nil || s.Diastolic != nil
	case healthdata.ValueText:
		if w := said(c.Value, "value"); w != nil && strings.TrimSpace(*w) != "" {
			s.Value, ok = healthdata.Text(*w), true
		}
	default:
		if n := number(c.Value, "value"); n != nil {
			s.Value, ok = healthdata.Number(*n), true
		}
	}
	s.Unit, _ = r.word(&c.Unit, "unit")
	s.Type = said(c.Type, "type")
	s.SensorLocation, s.Intensity = said(c.SensorLocation, "sensor_location"), said(c.Intensity, "intensity")
	s.DeliveryMode, s.DeliveryForm = said(c.DeliveryMode, "delivery_mode"), said(c.DeliveryForm, "delivery_form")
	s.BolusPurpose = said(c.BolusPurpose, "bolus_purpose")
	if c.Tags != nil {
		all, _ := r.list(c.Tags, word, "tags")
		s.Tags = texts(all)
	}
	m.bounds(r, c, &s, number)
	return s, ok
}

// bounds sets the start and the end of s from c.End or c.Seconds. It leaves them nil if neither can be read.
func (m *mapper) bounds(r *reader, c *Sample, s *healthdata.Sample, number func(*Field, string) *float64) {
	var end healthlab.Time
	switch {
	case c.End != nil:
		t, _, ok := r.instant(c.End, "end")
		if !ok {
			return
		}
		end = t
	case c.Seconds != nil:
		n := number(c.Seconds, "seconds")
		if n == nil {
			return
		}
		if math.Abs(*n) > maxSeconds {
			r.p.Add("number", fmt.Sprintf("must be a number from %d to %d (366 days)", -maxSeconds, maxSeconds), "seconds")
			return
		}
		end = healthlab.At(s.Timestamp.Add(time.Duration(*n * float64(time.Second))))
	default:
		return
	}
	start := s.Timestamp
	s.Start, s.End = &start, &end
}

// texts returns the elements of a list that are texts.
func texts(list any) (out []string) {
	all, _ := list.([]any)
	for _, v := range all {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// maxSeconds is the longest accepted interval in seconds: 366 days.
const maxSeconds = 366 * 24 * 60 * 60

// maxItemID is the longest accepted id of an item, in bytes.
const maxItemID = 256

// summary maps the item of r to a summary. Problems are reported in r.
func (m *mapper) summary(r *reader) healthdata.Summary {
	doc := map[string]any{}
	for _, name := range m.names {
		f, to := m.entry.Summary.Fields[name], m.targets[name]
		var v any
		var ok bool
		if to.list {
			v, ok = r.list(&f, to.kind, name)
		} else {
			v, ok = r.read(&f, to.kind, name)
		}
		if !ok {
			continue
		}
		at := doc
		parts := strings.Split(name, ".")
		for _, part := range parts[:len(parts)-1] {
			inner, ok := at[part].(map[string]any)
			if !ok {
				inner = map[string]any{}
				at[part] = inner
			}
			at = inner
		}
		at[parts[len(parts)-1]] = v
	}
	s := m.resource.New()
	b, err := json.Marshal(doc)
	if err == nil {
		err = json.Unmarshal(b, s)
	}
	if err != nil {
		r.p.Add("shape", "must have values that fit the fields of the resource "+m.resource.Slug)
	}
	if w, ok := s.(*healthdata.Workout); ok {
		w.Sport = healthdata.SportOf(w.Sport.Slug)
	}
	if m.entry.Summary.ID != "" {
		v, _ := r.it.find(m.entry.Summary.ID)
		id, ok := text(v)
		if !ok || id == "" || len(id) > maxItemID {
			r.p.Add("missing", fmt.Sprintf("must be a text or number of 1 to %d bytes at summary.id", maxItemID), "external_id")
		}
		healthdata.HeadOf(s).ExternalID = id
	}
	return s
}

// mapper converts the answers of one entry of Config.Resources to items of package linking.
type mapper struct {
	entry    *Resource
	resource *healthdata.Resource
	targets  map[string]target
	names    []string // names of the summary's fields, sorted
}

func newMapper(c *Resource) *mapper {
	m := &mapper{entry: c, resource: healthdata.ResourceBySlug(c.Resource)}
	if c.Summary != nil {
		m.targets = targets(m.resource)
		for name := range c.Summary.Fields {
			m.names = append(m.names, name)
		}
		slices.Sort(m.names)
	}
	return m
}
