package healthdata

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

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

// appendJSON writes a value of our own that always marshals.
func appendJSON(b []byte, v any) []byte {
	j, err := json.Marshal(v)
	if err != nil {
		panic("healthdata: a published struct does not marshal")
	}
	return append(b, j...)
}

// appendOptional writes a JSON string, or null for the empty text.
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

// appendSample writes a sample as it is published.
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
	for _, f := range r.Fields {
		b = append(b, ',', '"')
		b = append(b, f...)
		b = append(b, '"', ':')
		if f == "tags" {
			b = appendTags(b, s.Tags)
			continue
		}
		b = appendOptional(b, ownField(&s.Attrs, f))
	}
	return append(b, '}')
}

// AppendSample appends a sample of the resource as it is published, with the keys that
// the resource always has. The sample must be one that was read from here.
func (r *Resource) AppendSample(b []byte, s *Sample) []byte {
	row := series.Sample{Time: s.Timestamp.UnixMicro(), End: series.NoEnd}
	row.Type, row.Location, row.Intensity = deref(s.Type), deref(s.SensorLocation), deref(s.Intensity)
	row.DeliveryMode, row.DeliveryForm, row.BolusPurpose = deref(s.DeliveryMode), deref(s.DeliveryForm), deref(s.BolusPurpose)
	row.Tags = strings.Join(s.Tags, tagSeparator)
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

// ownField returns the field of a column that a resource's own key names.
func ownField(a *series.Attrs, name string) string {
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

// sample returns a sample as it is published.
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
