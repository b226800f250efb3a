package rest

import (
	"encoding/json"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Ptr returns a pointer to v.
func Ptr[T any](v T) *T { return &v }

// Text returns a pointer to s; nil for an empty text.
func Text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Instant is an RFC 3339 time with its offset. Offset is nil for Z, +00:00 and a time without an offset, because many
// providers write these whatever the zone of the person is.
type Instant struct {
	healthlab.Time
	// Offset is the UTC offset in seconds east.
	Offset *int
}

// UnmarshalJSON reads a text in RFC 3339. Null and the empty text are the zero value.
func (t *Instant) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil || s == "" {
		return err
	}
	at, offset, err := healthlab.ParseTimeOffset(s)
	if err != nil {
		return &json.UnmarshalTypeError{Value: "string"}
	}
	t.Time = at
	if offset != 0 {
		t.Offset = &offset
	}
	return nil
}

// SessionOffsets returns the offsets of the start and the end of a session.
func SessionOffsets(start, end Instant) healthdata.SessionOffsets {
	return healthdata.SessionOffsets{StartTimezoneOffset: start.Offset, EndTimezoneOffset: end.Offset}
}

// ParseOffset returns an offset such as +01:00 in seconds east of UTC; nil if s is malformed.
func ParseOffset(s string) *int {
	seconds, err := healthlab.ParseOffset(s)
	if err != nil {
		return nil
	}
	return &seconds
}

// OffsetOf converts a UTC offset of v units to seconds east of UTC. It returns nil for nil, NaN and infinity.
func OffsetOf(v *float64, unit time.Duration) *int {
	if s := Round(Times(v, unit.Seconds())); s != nil {
		return Ptr(int(*s))
	}
	return nil
}

// LocalDay returns the day of an instant at a UTC offset in seconds east; a nil offset means UTC.
func LocalDay(t healthlab.Time, offset *int) healthlab.Date {
	if offset != nil {
		t.Time = t.Add(time.Duration(*offset) * time.Second)
	}
	return healthlab.DateOf(t.UTC())
}

// Round returns a number rounded to an integer; nil for nil, NaN, infinity and numbers beyond ±2^53.
func Round(v *float64) *int64 {
	if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) || math.Abs(*v) > 1<<53 {
		return nil
	}
	return Ptr(int64(math.Round(*v)))
}

// Height returns a height in whole centimetres; nil for nil and for a height outside of 1 to 300 cm.
func Height(cm *float64) *int64 {
	if h := Round(cm); h != nil && *h > 0 && *h <= 300 {
		return h
	}
	return nil
}

// Seconds converts milliseconds to whole seconds, rounded half away from zero; nil for nil, NaN and infinity.
func Seconds(milliseconds *float64) *int64 {
	if milliseconds == nil {
		return nil
	}
	return Round(Ptr(*milliseconds / 1000))
}

// Whole returns a duration in whole seconds, rounded half away from zero.
func Whole(d time.Duration) int64 { return int64(d.Round(time.Second) / time.Second) }

// Times returns a number multiplied by a factor; nil for nil.
func Times(v *float64, factor float64) *float64 {
	if v == nil {
		return nil
	}
	return Ptr(*v * factor)
}

// Number returns a number as a value of a sample; nil for nil.
func Number(v *float64) *healthdata.Value {
	if v == nil {
		return nil
	}
	return healthdata.Number(*v)
}

// ID is an id that providers write as a text or as a number.
type ID string

// UnmarshalJSON reads a text or a number. Null is the empty id.
func (id *ID) UnmarshalJSON(b []byte) error {
	var s string
	var n json.Number
	switch {
	case json.Unmarshal(b, &s) == nil:
		*id = ID(s)
	case json.Unmarshal(b, &n) == nil:
		*id = ID(n)
	default:
		return &json.UnmarshalTypeError{Value: "value", Type: reflect.TypeFor[string]()}
	}
	return nil
}

// String returns the id as it was sent.
func (id ID) String() string { return string(id) }

// Float is a number that providers write as a number or as a text.
type Float float64

// UnmarshalJSON reads a number or a text with a number. Any other text is NaN.
func (f *Float) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] == '{' || b[0] == '[' || b[0] == 't' || b[0] == 'f' {
		return &json.UnmarshalTypeError{Value: "value", Type: reflect.TypeFor[float64]()}
	}
	v, ok := healthlab.ParseNumber(strings.Trim(string(b), `"`))
	if !ok {
		v = math.NaN()
	}
	*f = Float(v)
	return nil
}

// Value returns the number; nil for nil, NaN and infinity.
func (f *Float) Value() *float64 { return f.Over(1) }

// Over returns the number divided by divisor; nil for nil, NaN and infinity. Division rounds once, where a product
// with the inverse would round twice.
func (f *Float) Over(divisor float64) *float64 {
	if f == nil || math.IsNaN(float64(*f)) || math.IsInf(float64(*f), 0) {
		return nil
	}
	return Ptr(float64(*f) / divisor)
}

// Positive returns the number if it is above 0, else nil, for providers that send 0 for a missing value.
func (f *Float) Positive() *float64 { return Positive(f.Value()) }

// Positive returns a number above 0; nil for other numbers.
func Positive(v *float64) *float64 {
	if v == nil || *v <= 0 {
		return nil
	}
	return v
}

// Series calls add for each non-null value of an array that starts at an instant with one value per interval.
func Series(start healthlab.Time, interval time.Duration, values []*float64, add func(at healthlab.Time, v float64)) {
	for i, v := range values {
		if v != nil {
			add(healthlab.At(start.Add(time.Duration(i)*interval)), *v)
		}
	}
}

// Stages holds the sleep stages of a night as parallel arrays. Start and End are seconds from the start of the night.
type Stages struct {
	Start, End []int64
	Type       []healthdata.SleepStage
}

// Add appends a sleep stage from start to end, in seconds from the start of the night. It extends the previous stage if
// that is the same and ends at start.
func (s *Stages) Add(start, end int64, stage healthdata.SleepStage) {
	if n := len(s.Type) - 1; n >= 0 && s.Type[n] == stage && s.End[n] == start {
		s.End[n] = end
		return
	}
	s.Start, s.End, s.Type = append(s.Start, start), append(s.End, end), append(s.Type, stage)
}

// StagesOf reads a text with one character per epoch of a night. table maps characters to sleep stages. A character
// that is not in table is a gap.
func StagesOf(text string, epoch time.Duration, table map[byte]healthdata.SleepStage) (s Stages) {
	seconds := int64(epoch / time.Second)
	for i := range len(text) {
		if stage, ok := table[text[i]]; ok {
			s.Add(int64(i)*seconds, int64(i+1)*seconds, stage)
		}
	}
	return s
}

var isoDuration = regexp.MustCompile(`^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$`)

// Duration reads an ISO 8601 duration of days, hours, minutes and seconds; nil if s is malformed or longer than 366
// days.
func Duration(s string) *time.Duration {
	m := isoDuration.FindStringSubmatch(strings.ToUpper(s))
	if m == nil || len(s) < 3 {
		return nil
	}
	total := 0.0
	for i, unit := range []float64{86400, 3600, 60, 1} {
		v, _ := strconv.ParseFloat("0"+m[i+1], 64)
		total += v * unit
	}
	if total > 366*86400 {
		return nil
	}
	return Ptr(time.Duration(total * float64(time.Second)))
}

// Slug converts a provider's word for a sport to the form of the slugs of the catalogue: lower case with
// underscores.
func Slug(word string) string {
	var b strings.Builder
	gap := false
	for i, r := range word {
		switch {
		case r >= 'A' && r <= 'Z':
			if gap = gap || i > 0 && word[i-1] >= 'a' && word[i-1] <= 'z'; gap && b.Len() > 0 {
				b.WriteByte('_')
			}
			b.WriteRune(r + 'a' - 'A')
			gap = false
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			if gap && b.Len() > 0 {
				b.WriteByte('_')
			}
			b.WriteRune(r)
			gap = false
		default:
			gap = true
		}
	}
	return b.String()
}
