package healthdata

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// Sample is one measurement of a timeseries in its published form. Nullable and required fields depend on the
// resource: see [Resource].
type Sample struct {
	// Timestamp is the instant of the measurement, or the start of an interval, in UTC.
	Timestamp healthlab.Time `json:"timestamp" wire:"opt,offset"`
	// Start and End bound an interval, half open. Both are nil for an instant.
	Start *healthlab.Time `json:"start,omitempty" wire:"offset"`
	End   *healthlab.Time `json:"end,omitempty" wire:"offset"`
	// TimezoneOffset is seconds east of UTC where the sample was measured; never null on output. If an upload has null,
	// the offset is taken from the time.Location of Timestamp, Start or End. The location UTC or time.Local means that
	// the source states no offset.
	TimezoneOffset *int `json:"timezone_offset" wire:"filled,tolerant"`
	// Type is the sample's type, for resources with types.
	Type *string `json:"type"`
	// Unit is the unit of the value. On output it is always the resource's.
	Unit string `json:"unit"`
	// Value is nil only for blood pressure.
	Value *Value `json:"value,omitempty"`
	// Systolic and Diastolic are in mmHg, for blood pressure only.
	Systolic  *float64 `json:"systolic,omitempty"`
	Diastolic *float64 `json:"diastolic,omitempty"`
	// SourceUnit is the unit that the source sent if it differs from Unit. SourceValue, SourceSystolic and
	// SourceDiastolic are the numbers in that unit.
	SourceUnit      *string  `json:"source_unit,omitempty" wire:"out"`
	SourceValue     *float64 `json:"source_value,omitempty" wire:"out"`
	SourceSystolic  *float64 `json:"source_systolic,omitempty" wire:"out"`
	SourceDiastolic *float64 `json:"source_diastolic,omitempty" wire:"out"`
	// SensorLocation is where on the body a temperature was taken.
	SensorLocation *string `json:"sensor_location,omitempty"`
	// Intensity is low, medium or high, for workout_duration.
	Intensity *string `json:"intensity,omitempty"`
	// DeliveryMode (basal, bolus), DeliveryForm (standard, extended) and
	// BolusPurpose (meal, correction, mixed, unknown) are for insulin_injection.
	DeliveryMode *string `json:"delivery_mode,omitempty"`
	DeliveryForm *string `json:"delivery_form,omitempty"`
	BolusPurpose *string `json:"bolus_purpose,omitempty"`
	// Tags are the topics of a note: food, exercise, insulin_injection, unspecified.
	Tags []string `json:"tags,omitempty" wire:"opt"`
}

// Value is the value of a sample: a number, or for notes a text.
type Value struct {
	Number float64
	Text   string
	// IsText reports whether the value is a text.
	IsText bool
}

// Number returns the value v.
func Number(v float64) *Value { return &Value{Number: v} }

// Text returns the value s.
func Text(s string) *Value { return &Value{Text: s, IsText: true} }

// MarshalJSON writes a number in its shortest form, or a string.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.IsText {
		return appendString(nil, v.Text), nil
	}
	if !check.Finite(v.Number) {
		return nil, fmt.Errorf("%w: a number must be finite", healthlab.Invalid)
	}
	return appendNumber(nil, v.Number), nil
}

// UnmarshalJSON reads a number or a string.
func (v *Value) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		s, err := unquote(b)
		if err != nil {
			return err
		}
		*v = Value{Text: s, IsText: true}
		return nil
	}
	// ParseFloat accepts more than JSON allows: NaN, 0x1p4, +1.
	n, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !isNumber(b) {
		var p healthlab.Problems
		p.Add("wrong_type", "must be a number in the range of a 64-bit float, or a string for a resource whose values are texts")
		return p.Err()
	}
	*v = Value{Number: n}
	return nil
}

// isNumber reports whether b is a JSON number.
func isNumber(b []byte) bool {
	digits := func() bool {
		n := 0
		for n < len(b) && b[n]-'0' <= 9 {
			n++
		}
		b = b[n:]
		return n > 0
	}
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	if len(b) > 1 && b[0] == '0' && b[1]-'0' <= 9 || !digits() {
		return false
	}
	if len(b) > 0 && b[0] == '.' {
		if b = b[1:]; !digits() {
			return false
		}
	}
	if len(b) > 0 && b[0]|0x20 == 'e' {
		if b = b[1:]; len(b) > 0 && (b[0] == '+' || b[0] == '-') {
			b = b[1:]
		}
		if !digits() {
			return false
		}
	}
	return len(b) == 0
}

// Batch is the payload of a timeseries event: samples of one resource and one source,
// ascending by timestamp.
type Batch struct {
	UserID healthlab.UserID `json:"user_id"`
	// SourceID is the service's number for the provider, as of [SourceNumber]. Receivers must not interpret it.
	SourceID int      `json:"source_id"`
	Source   Source   `json:"source"`
	Data     []Sample `json:"data"`
}

// Group is the samples of one source in a response of the API, ascending by timestamp.
type Group struct {
	Source Source   `json:"source"`
	Data   []Sample `json:"data"`
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func optionalID(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

// tagSeparator joins tags in a column.
const tagSeparator = ","

// SplitTags returns the tags of a note from the text in which a block stores them.
func SplitTags(tags string) []string {
	if tags == "" {
		return nil
	}
	return strings.Split(tags, tagSeparator)
}

// appendNumber writes a finite number in the shortest form that reads back as the
// same float64; minus zero as 0.
func appendNumber(b []byte, v float64) []byte {
	if v == 0 {
		return append(b, '0')
	}
	if a := math.Abs(v); a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	return strconv.AppendFloat(b, v, 'e', -1, 64)
}

// appendString writes a JSON string.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return appendJSON(b, s)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// appendJSON appends a value that always marshals.
func appendJSON(b []byte, v any) []byte {
	j, err := json.Marshal(v)
	if err != nil {
		panic("healthdata: a published struct does not marshal")
	}
	return append(b, j...)
}

func appendOptional(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendString(b, s)
}

func appendTime(b []byte, micros int64) []byte {
	b = append(b, '"')
	b = healthlab.Time{Time: time.UnixMicro(micros)}.Append(b)
	return append(b, '"')
}

// appendSample appends the JSON of a stored sample.
func (r *Resource) appendSample(b []byte, s *series.Sample) []byte {
	b = append(b, `{"timestamp":`...)
	b = appendTime(b, s.Time)
	if s.End != series.NoEnd {
		b = append(b, `,"start":`...)
		b = appendTime(b, s.Time)
		b = append(b, `,"end":`...)
		b = appendTime(b, s.End)
	}
	b = append(b, `,"timezone_offset":`...)
	b = strconv.AppendInt(b, int64(s.Offset), 10)
	b = append(b, `,"type":`...)
	b = appendOptional(b, s.Type)
	b = append(b, `,"unit":`...)
	b = appendString(b, r.Unit)
	switch r.Value {
	case ValuePressure:
		b = append(b, `,"systolic":`...)
		b = appendNumber(b, s.Value)
		b = append(b, `,"diastolic":`...)
		b = appendNumber(b, s.Value2)
	case ValueText:
		b = append(b, `,"value":`...)
		b = appendString(b, s.Text)
	default:
		b = append(b, `,"value":`...)
		b = appendNumber(b, s.Value)
	}
	b = r.appendSent(b, s)
	for _, f := range r.Fields {
		b = append(b, ',', '"')
		b = append(b, f...)
		b = append(b, '"', ':')
		if f == "tags" {
			b = appendTags(b, s.Tags)
			continue
		}
		b = appendOptional(b, extraAttr(&s.Attrs, f))
	}
	return append(b, '}')
}

// AppendSample appends the published JSON of a sample, with all keys of the resource. The sample must be one
// that this package returned.
func (r *Resource) AppendSample(b []byte, s *Sample) []byte {
	row := series.Sample{Time: s.Timestamp.UnixMicro(), End: series.NoEnd}
	row.Type, row.Location, row.Intensity = deref(s.Type), deref(s.SensorLocation), deref(s.Intensity)
	row.DeliveryMode, row.DeliveryForm, row.BolusPurpose = deref(s.DeliveryMode), deref(s.DeliveryForm), deref(s.BolusPurpose)
	row.Tags, row.Unit = strings.Join(s.Tags, tagSeparator), sourceUnitText(s)
	if s.End != nil {
		row.End = s.End.UnixMicro()
	}
	if s.TimezoneOffset != nil {
		row.Offset = int32(*s.TimezoneOffset)
	}
	switch {
	case s.Systolic != nil && s.Diastolic != nil:
		row.Value, row.Value2 = *s.Systolic, *s.Diastolic
	case s.Value != nil:
		row.Value, row.Text = s.Value.Number, s.Value.Text
	}
	return r.appendSample(b, &row)
}

func appendTags(b []byte, tags string) []byte {
	if tags == "" {
		return append(b, "[]"...)
	}
	return appendJSON(b, strings.Split(tags, tagSeparator))
}

// extraAttr returns the text attribute that is published under a JSON name of [Resource].Fields; empty for another name
// and for tags.
func extraAttr(a *series.Attrs, name string) string {
	switch name {
	case "sensor_location":
		return a.Location
	case "intensity":
		return a.Intensity
	case "delivery_mode":
		return a.DeliveryMode
	case "delivery_form":
		return a.DeliveryForm
	case "bolus_purpose":
		return a.BolusPurpose
	default:
		return ""
	}
}

// sample converts a stored sample to its published form.
func (r *Resource) sample(s *series.Sample) Sample {
	offset := int(s.Offset)
	out := Sample{
		Timestamp:      healthlab.At(time.UnixMicro(s.Time)),
		TimezoneOffset: &offset,
		Type:           optional(s.Type),
		Unit:           r.Unit,
		SensorLocation: optional(s.Location),
		Intensity:      optional(s.Intensity),
		DeliveryMode:   optional(s.DeliveryMode),
		DeliveryForm:   optional(s.DeliveryForm),
		BolusPurpose:   optional(s.BolusPurpose),
	}
	if s.End != series.NoEnd {
		start, end := out.Timestamp, healthlab.At(time.UnixMicro(s.End))
		out.Start, out.End = &start, &end
	}
	if s.Tags != "" {
		out.Tags = strings.Split(s.Tags, tagSeparator)
	}
	switch r.Value {
	case ValuePressure:
		systolic, diastolic := s.Value, s.Value2
		out.Systolic, out.Diastolic = &systolic, &diastolic
	case ValueText:
		out.Value = Text(s.Text)
	default:
		out.Value = Number(s.Value)
	}
	r.setSent(&out, s)
	return out
}

// unquote reads a JSON string.
func unquote(b []byte) (string, error) {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return "", fmt.Errorf("%w: not a JSON string", healthlab.Invalid)
	}
	return s, nil
}

// Diary reports whether people enter the resource themselves, so that several entries may have the same rounded
// time: carbohydrates, insulin_injection and note.
func (r *Resource) Diary() bool {
	return r.Slug == "carbohydrates" || r.Slug == "insulin_injection" || r.Slug == "note"
}

// CombineEntries merges diary entries with one timestamp, and for insulin one type, into one sample. Amounts are
// added, texts are joined by line breaks, tags are merged, and the interval is the longest. Connectors call it
// for a source that rounds times, before they return its samples; all samples must be of one source. An entry
// that cannot be stored is not merged, so that it is refused alone.
func CombineEntries(resource string, samples []Sample) []Sample {
	r := ResourceBySlug(resource)
	if r == nil || !r.Diary() || len(samples) < 2 {
		return samples
	}
	type key struct {
		at   int64
		kind string
	}
	out := make([]Sample, 0, len(samples))
	first := map[key]int{}
	for i := range samples {
		s := samples[i]
		amount, ok := r.entryAmount(&s)
		k := key{s.Timestamp.UnixMicro(), ""}
		if r.Key == KeyType {
			k.kind = deref(s.Type)
		}
		at, again := first[k]
		switch {
		case !ok:
			out = append(out, s)
		case again:
			r.mergeEntry(&out[at], &s, amount)
		default:
			first[k] = len(out)
			out = append(out, s)
		}
	}
	return out
}

// entryAmount returns the amount of a diary entry in the resource's unit, 0 for a text. ok is false if the entry cannot
// be stored.
func (r *Resource) entryAmount(s *Sample) (amount float64, ok bool) {
	if s.Timestamp.IsZero() || s.Value == nil || s.Value.IsText != (r.Value == ValueText) {
		return 0, false
	}
	if s.Value.IsText {
		return 0, s.Unit == r.Unit
	}
	amount, ok = r.Convert(s.Value.Number, s.Unit, deref(s.Type))
	return amount, ok && check.Finite(amount)
}

// mergeEntry adds the diary entry s, with its amount in the resource's unit, to the entry to.
func (r *Resource) mergeEntry(to, s *Sample, amount float64) {
	if r.Value == ValueText {
		to.Value = Text(to.Value.Text + "\n" + s.Value.Text)
		to.Tags = mergedTags(to.Tags, s.Tags)
	} else {
		was, _ := r.entryAmount(to)
		to.Value, to.Unit = Number(was+amount), r.Unit
	}
	if s.End != nil && (to.End == nil || s.End.After(to.End.Time)) {
		to.End = s.End
		if to.Start == nil {
			to.Start = s.Start
		}
	}
	to.DeliveryMode, to.DeliveryForm = agreed(to.DeliveryMode, s.DeliveryMode), agreed(to.DeliveryForm, s.DeliveryForm)
	to.BolusPurpose = mergedPurpose(to.BolusPurpose, s.BolusPurpose)
}

// mergedTags returns the tags of both lists without duplicates.
func mergedTags(a, b []string) []string {
	out := slices.Clone(a)
	for _, tag := range b {
		if !slices.Contains(out, tag) {
			out = append(out, tag)
		}
	}
	return out
}

func agreed(a, b *string) *string {
	if a == nil || b == nil || *a != *b {
		return nil
	}
	return a
}

// mergedPurpose returns the bolus purpose of two merged injections: mixed if one is for a meal and one a correction.
func mergedPurpose(a, b *string) *string {
	if a == nil || b == nil || *a == *b {
		return agreed(a, b)
	}
	both := "mixed"
	for _, p := range []string{*a, *b} {
		if p != "meal" && p != "correction" && p != both {
			both = "unknown"
		}
	}
	return &both
}
