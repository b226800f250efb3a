package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Data holds the decoded items by resource slug.
type Data map[string][]linking.PullItem

// Batch collects the results of Read for the items of a collection. Its methods apply to the current item.
type Batch struct {
	data       Data
	groups     map[string][]group
	collection *Collection
	joined     map[string]map[string]json.RawMessage
	// person is the fallback zone of the person. It applies to times without a zone.
	person *time.Location
	// id is the key of the item of Collection.For for which the collection was requested.
	id string
	// item is the current item, answer the body of the response that contains it, and texts caches the results of Answer.
	item, answer json.RawMessage
	texts        map[string]string
	owner        *string
	about        []string
	zone         string
	dev          *healthdata.DeviceInfo
}

// group identifies items that are returned in one PullItem: they have the same owner, time zone, device and source
// type.
type group struct {
	owner, zone, device string
	source              healthdata.SourceType
}

func newBatch(k *Collection) *Batch {
	return &Batch{data: Data{}, groups: map[string][]group{}, collection: k, person: time.UTC}
}

// Owner sets the provider's id of the person to whom the current item belongs. An empty id is ignored.
func (b *Batch) Owner(id string) {
	if id != "" {
		b.owner = &id
	}
}

// About sets the resources for which problems of the current item are reported. Default: Collection.Resources and, on a
// stored page, also Collection.Stored.
func (b *Batch) About(resources ...string) { b.about = resources }

// Zone sets the IANA zone in which times without an offset of the current item are local.
func (b *Batch) Zone(name string) { b.zone = name }

// Device sets the device that recorded the item. Nil means unknown.
func (b *Batch) Device(d *healthdata.DeviceInfo) { b.dev = d }

// Joined returns the item with a key in a collection that Collection.Join, With or For names; nil if there is none.
func (b *Batch) Joined(collection, key string) json.RawMessage { return b.joined[collection][key] }

// Stored reports whether a stored page is read instead of a response. Joined then finds no items.
func (b *Batch) Stored() bool { return b.joined == nil }

// ID returns the key of the item of [Collection.For] for which this collection was requested; empty without For.
func (b *Batch) ID() string { return b.id }

// LocalDay returns the day of an instant in the person's fallback zone; for a stored page in UTC.
func (b *Batch) LocalDay(t healthlab.Time) healthlab.Date { return healthlab.DateOf(t.In(b.person)) }

// Noon returns noon of a day in the person's fallback zone, as the time of values of a whole day; for a stored page
// in UTC.
func (b *Batch) Noon(day healthlab.Date) healthlab.Time {
	return healthlab.At(day.At(b.person).Add(12 * time.Hour))
}

// Answer returns a string, number or boolean of the response that contains the current item, as a text. path joins
// member names with dots. Answer returns "" if the member is absent.
func (b *Batch) Answer(path string) string {
	text, known := b.texts[path]
	if !known {
		text = scalarText(memberAt(b.answer, path))
		b.texts[path] = text
	}
	return text
}

func (b *Batch) into(resource string, source healthdata.SourceType) *linking.PullItem {
	g := group{source: source, zone: b.zone}
	if b.owner != nil {
		g.owner = "=" + *b.owner
	}
	if b.dev != nil {
		doc, _ := json.Marshal(b.dev) // strings always encode
		g.device = string(doc)
	}
	i := slices.Index(b.groups[resource], g)
	if i < 0 {
		i = len(b.groups[resource])
		b.groups[resource] = append(b.groups[resource], g)
		b.data[resource] = append(b.data[resource], linking.PullItem{
			Owner: b.owner, Source: healthdata.Source{Type: source}, Device: b.dev, TimeZone: b.zone,
		})
	}
	return &b.data[resource][i]
}

// Sample adds a sample. It ignores a sample without a value. It also ignores 0 for a resource that cannot be 0,
// because a device that is not worn reports 0.
func (b *Batch) Sample(resource string, source healthdata.SourceType, s healthdata.Sample) {
	if s.Value == nil && s.Systolic == nil {
		return
	}
	r := healthdata.ResourceBySlug(resource)
	if r != nil && s.Value != nil && !s.Value.IsText && s.Value.Number == 0 {
		if bounds, ok := r.Bounds(); ok && bounds.Low > 0 {
			return
		}
	}
	if r != nil && r.Shape == healthdata.Interval && s.Start == nil {
		start, end := s.Timestamp, s.Timestamp
		s.Start, s.End = &start, &end
	}
	p := b.into(resource, source)
	p.Samples = append(p.Samples, s)
}

// Summary adds a summary, and sets its Raw to the current item.
func (b *Batch) Summary(resource string, source healthdata.SourceType, s healthdata.Summary) {
	healthdata.HeadOf(s).Raw = b.item
	p := b.into(resource, source)
	p.Summaries = append(p.Summaries, s)
}

// Stream adds the recording s of a workout. w is the workout that was added to the resource workouts; nil on a stored
// page that does not contain it. A nil recording is ignored.
func (b *Batch) Stream(source healthdata.SourceType, w *healthdata.Workout, s *healthdata.WorkoutStream) {
	if s == nil {
		return
	}
	p := linking.PullItem{Owner: b.owner, Source: healthdata.Source{Type: source}, Device: b.dev, TimeZone: b.zone, Stream: s}
	if w != nil {
		p.Summaries = []healthdata.Summary{w}
	}
	b.data["workout_stream"] = append(b.data["workout_stream"], p)
}

// Cycle adds the stages of a night as a SleepCycle. id is the provider's id of the sleep, start and end are its bounds.
// A night without stages is ignored.
func (b *Batch) Cycle(source healthdata.SourceType, id string, start, end healthlab.Time, s *Stages) {
	if len(s.Type) == 0 {
		return
	}
	c := &healthdata.SleepCycle{
		Head: healthdata.Head{ExternalID: id}, SessionStart: start, SessionEnd: end,
		StageStartOffsetSecond: s.Start, StageEndOffsetSecond: s.End, StageType: s.Type, TimeZone: Text(b.zone),
	}
	b.Summary("sleep_cycle", source, c)
}

// Listed adds a device from the provider's list of devices.
func (b *Batch) Listed(source healthdata.SourceType, d healthdata.DeviceInfo) {
	d.Raw = b.item
	b.data["device"] = append(b.data["device"], linking.PullItem{Owner: b.owner, Source: healthdata.Source{Type: source}, Device: &d})
}

// Delete records that the provider has deleted a record.
func (b *Batch) Delete(resource string, source healthdata.SourceType, d linking.DeletedRecord) {
	p := b.into(resource, source)
	p.Deleted = append(p.Deleted, d)
}

// Problem reports that the current item cannot be read. code identifies the problem, rule says what is expected, and
// field is the path of the member.
func (b *Batch) Problem(code, rule string, field ...any) {
	var p healthlab.Problems
	p.Add(code, rule, field...)
	for _, r := range b.about {
		to := b.into(r, healthdata.SourceUnknown)
		to.Unparsed = append(to.Unparsed, linking.UnparsedItem{Item: b.item, Problems: p})
	}
}

// Each returns a function for [Collection.Read] that decodes an item as T and calls read. An item of another form is
// reported with the path of the wrong member.
func Each[T any](read func(item *T, out *Batch)) func(json.RawMessage, *Batch) {
	return func(item json.RawMessage, out *Batch) {
		var v T
		if err := json.Unmarshal(item, &v); err != nil {
			out.Problem("shape", "the item must have the form that the provider documents", fieldOf(err, item)...)
			return
		}
		read(&v, out)
	}
}

// fieldOf returns the path of the member of doc that a decoding error concerns; nil if it is unknown.
func fieldOf(err error, doc json.RawMessage) (field []any) {
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) && wrong.Field != "" {
		for _, part := range strings.Split(wrong.Field, ".") {
			if v := memberAt(doc, part); v != nil { // an embedded struct is not a member of the document
				field, doc = append(field, part), v
			}
		}
	}
	return field
}

// List is a list inside an item whose elements are decoded one by one, so that only an invalid element is left out.
type List[T any] []json.RawMessage

// In returns the valid elements, and reports the others to out. field is the path of the list in the item.
func (l List[T]) In(out *Batch, field ...any) []T {
	all := make([]T, 0, len(l))
	for i, element := range l {
		var v T
		err := json.Unmarshal(element, &v)
		if err != nil || string(element) == "null" {
			path := append(slices.Clip(field), i)
			out.Problem("shape", "the element must have the form that the provider documents", append(path, fieldOf(err, element)...)...)
			continue
		}
		all = append(all, v)
	}
	return all
}

// KeyOf returns a function for [Collection.Key] that returns a member of the item as a text.
func KeyOf(member string) func(json.RawMessage) string {
	return func(item json.RawMessage) string { return scalarText(memberAt(item, member)) }
}

// Members returns the JSON names of the fields of T. It is for [Collection.Keep], so that joined items keep the
// members that T reads.
func Members[T any]() (names []string) {
	of := reflect.TypeFor[T]()
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// read calls Read for each of the items of a response body.
func (b *Batch) read(body json.RawMessage, items []json.RawMessage) {
	b.answer, b.texts = body, map[string]string{}
	for _, item := range items {
		b.item, b.owner, b.zone, b.dev, b.about = item, nil, "", nil, b.collection.Resources
		if b.Stored() {
			b.about = slices.Concat(b.collection.Resources, b.collection.Stored)
		}
		b.collection.Read(item, b)
	}
}

// latest removes items that a later item of the same response replaces, if k.Revised is set. An undecodable item
// replaces no other.
func (k *Collection) latest(items []json.RawMessage) []json.RawMessage {
	if !k.Revised {
		return items
	}
	seen, out := map[string]bool{}, []json.RawMessage{}
	for _, item := range slices.Backward(items) {
		if key := k.Key(item); key == "" || !seen[key] {
			seen[key], out = k.reads(item), append(out, item)
		}
	}
	slices.Reverse(out)
	return out
}

// reads reports whether Read decodes an item without problems.
func (k *Collection) reads(item json.RawMessage) bool {
	b := newBatch(k)
	b.read(item, []json.RawMessage{item})
	for _, of := range b.data {
		if slices.ContainsFunc(of, func(p linking.PullItem) bool { return len(p.Unparsed) > 0 }) {
			return false
		}
	}
	return true
}

// errShape is the error of an answer without the documented form.
var errShape = fmt.Errorf("%w: the answer of the provider does not have the documented form", healthlab.Unavailable)

// items returns the items in a response body; nil if the member k.Items is absent or null.
func (k *Collection) items(body json.RawMessage) ([]json.RawMessage, error) {
	if k.File != nil || k.Media {
		return []json.RawMessage{body}, nil
	}
	if !json.Valid(body) {
		return nil, errShape
	}
	list := memberAt(body, k.Items)
	switch {
	case k.Whole && len(list) > 0:
		return []json.RawMessage{list}, nil
	case len(list) == 0 && k.Items != "":
		if len(body) == 0 || body[0] != '{' {
			return nil, errShape
		}
		return nil, nil // absent or null: no items
	case len(list) > 0 && list[0] == '{':
		return []json.RawMessage{list}, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(list, &items); err != nil {
		return nil, errShape
	}
	return items, nil
}

// memberAt returns the member of a document at a path of names joined with dots. It returns nil if the member is absent
// or null, and the document for an empty path.
func memberAt(doc json.RawMessage, path string) json.RawMessage {
	doc = json.RawMessage(strings.TrimSpace(string(doc)))
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, ".")
		var object map[string]json.RawMessage
		if json.Unmarshal(doc, &object) != nil {
			return nil
		}
		doc = object[name]
	}
	if string(doc) == "null" {
		return nil
	}
	return doc
}

// scalarText returns a text, number or bool as a text; empty for other values.
func scalarText(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	if len(v) > 0 && v[0] != '{' && v[0] != '[' && string(v) != "null" {
		return string(v)
	}
	return ""
}
