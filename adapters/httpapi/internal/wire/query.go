package wire

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// value returns the only value of a query parameter; false if the parameter is absent or has a problem.
func (in *In) value(name string) (string, bool) {
	in.markRead("query", name)
	all := in.query[name]
	switch {
	case len(all) == 0:
		return "", false
	case len(all) > 1:
		in.add("repeated", "must not be repeated", "query", name, nil)
		return "", false
	}
	return all[0], in.checkChars(all[0], "query", name)
}

// Null reports whether a query parameter has the value null.
func (in *In) Null(name string) bool {
	in.markRead("query", name)
	all := in.query[name]
	return len(all) == 1 && all[0] == "null"
}

// Has reports whether a query parameter is present.
func (in *In) Has(name string) bool { return len(in.query[name]) > 0 }

// requiredValue is like value, but an absent parameter is a problem.
func (in *In) requiredValue(name string) (string, bool) {
	v, ok := in.value(name)
	if !ok && len(in.query[name]) == 0 {
		in.add("missing", "is required", "query", name, nil)
	}
	return v, ok
}

// checkChars reports whether v is valid UTF-8 without NUL, and records a problem otherwise. place is query, path or
// header.
func (in *In) checkChars(v, place, name string) bool {
	switch {
	case !utf8.ValidString(v):
		in.add("not_unicode", "must be valid UTF-8", place, name, nil)
	case strings.ContainsRune(v, 0):
		in.add("nul", "must not hold the character U+0000", place, name, nil)
	default:
		return true
	}
	return false
}

// Strings reads a repeated parameter. With allowed, each value must be one of them. It returns nil if absent.
func (in *In) Strings(name string, allowed ...string) []string {
	in.markRead("query", name)
	var out []string
	for i, v := range in.query[name] {
		if len(allowed) > 0 && !slices.Contains(allowed, v) {
			in.problems = append(in.problems, healthlab.Problem{
				Path: []any{"query", name, i}, Code: "not_allowed", Msg: oneOf(allowed), Context: map[string]any{"allowed": allowed},
			})
			continue
		}
		if in.checkChars(v, "query", name) {
			out = append(out, v)
		}
	}
	return out
}

// oneOf returns the error text that lists the allowed values.
func oneOf[T any](allowed []T) string {
	names := make([]string, len(allowed))
	for i, v := range allowed {
		names[i] = fmt.Sprint(v)
	}
	if len(names) == 1 {
		return "must be " + names[0]
	}
	return "must be one of " + strings.Join(names, ", ")
}

// OneOf reads one of the allowed values; def when absent.
func (in *In) OneOf(name, def string, allowed ...string) string {
	v, ok := in.value(name)
	if !ok {
		return def
	}
	if !slices.Contains(allowed, v) {
		in.add("not_allowed", oneOf(allowed), "query", name, map[string]any{"allowed": allowed})
		return def
	}
	return v
}

// Text reads a required text of at most most characters (Unicode code points).
func (in *In) Text(name string, most int) string {
	v, _ := in.requiredValue(name)
	in.checkLength(v, most, "query", name)
	return v
}

// MaxPathText is the longest text in a path. It is longer than any valid name, so that an unknown name is answered
// with 404 and not as invalid.
const MaxPathText = 4096

// OptText is [In.Text] for an optional parameter. It returns nil if absent.
func (in *In) OptText(name string, most int) *string {
	v, ok := in.value(name)
	if !ok || !in.checkLength(v, most, "query", name) {
		return nil
	}
	return &v
}

// ShortText is [In.OptText] with at most 256 characters. It returns "" if absent.
func (in *In) ShortText(name string) string {
	if s := in.OptText(name, 256); s != nil {
		return *s
	}
	return ""
}

func (in *In) checkLength(v string, most int, place, name string) bool {
	if utf8.RuneCountInString(v) <= most {
		return true
	}
	in.add("too_long", fmt.Sprintf("must have at most %d characters", most), place, name, map[string]any{"limit": most})
	return false
}

// Int reads a whole number from low to high; def when absent.
func (in *In) Int(name string, def, low, high int) int {
	v, ok := in.value(name)
	if !ok {
		return def
	}
	n, ok := in.integer(v, "query", name)
	if !ok || !inRange(in, name, n, low, high) {
		return def
	}
	return n
}

func (in *In) integer(v, place, name string) (int, bool) {
	n, err := strconv.Atoi(v) // beyond the range of int, n is the nearest int
	if err != nil && !errors.Is(err, strconv.ErrRange) || v[0] == '+' {
		in.add("wrong_type", "must be a whole number", place, name, nil)
		return 0, false
	}
	return n, true
}

// OptInt is [In.Int] for an optional parameter. It returns nil if absent.
func (in *In) OptInt(name string, low, high int) *int {
	if len(in.query[name]) == 0 {
		in.markRead("query", name)
		return nil
	}
	return new(in.Int(name, low, low, high))
}

// IntOneOf reads one of the allowed numbers; def when absent.
func (in *In) IntOneOf(name string, def int, allowed ...int) int {
	n := in.Int(name, def, math.MinInt, math.MaxInt)
	if n != def && !slices.Contains(allowed, n) {
		in.add("not_allowed", oneOf(allowed), "query", name, map[string]any{"allowed": allowed})
		return def
	}
	return n
}

// Float reads a finite number from low to high; def when absent.
func (in *In) Float(name string, def, low, high float64) float64 {
	v, ok := in.value(name)
	if !ok {
		return def
	}
	n, ok := parseFloat(v)
	if !ok {
		in.add("wrong_type", "must be a number", "query", name, nil)
		return def
	}
	if !inRange(in, name, n, low, high) {
		return def
	}
	return n
}

// parseFloat reads a number in JSON syntax; NaN and hexadecimal are refused.
func parseFloat(v string) (float64, bool) {
	s := scanner{data: []byte(v)}
	if v == "" || !isNumber(v[0]) {
		return 0, false
	}
	if _, ok := s.number(); !ok || s.pos != len(v) {
		return 0, false
	}
	n, err := strconv.ParseFloat(v, 64)
	return n, err == nil
}

func inRange[N cmp.Ordered](in *In, name string, n, low, high N) bool {
	switch {
	case n < low:
		in.add("too_small", fmt.Sprintf("must be %v to %v", low, high), "query", name, map[string]any{"limit": low})
	case n > high:
		in.add("too_large", fmt.Sprintf("must be %v to %v", low, high), "query", name, map[string]any{"limit": high})
	default:
		return true
	}
	return false
}

// Bool reads true or false, as [In.OptBool] does; def when absent.
func (in *In) Bool(name string, def bool) bool {
	if b := in.OptBool(name); b != nil {
		return *b
	}
	return def
}

// OptBool reads true or 1, false or 0, in any case; nil when absent.
func (in *In) OptBool(name string) *bool {
	v, ok := in.value(name)
	if !ok {
		return nil
	}
	b, ok := parseBool(v)
	if !ok {
		in.add("wrong_type", boolRule, "query", name, nil)
		return nil
	}
	return &b
}

// boolRule is the error text of booleans in queries and forms.
const boolRule = "must be true, false, 1 or 0"

// parseBool reads a boolean of a query or form.
func parseBool(v string) (b, ok bool) {
	switch strings.ToLower(v) {
	case "true", "1":
		return true, true
	case "false", "0":
		return false, true
	}
	return false, false
}

// UUID reads a required UUID.
func (in *In) UUID(name string) uuid.UUID {
	v, ok := in.requiredValue(name)
	if !ok {
		return uuid.Nil
	}
	return in.uuid(v, "query", name)
}

// OptUUID reads a UUID; nil when absent.
func (in *In) OptUUID(name string) *uuid.UUID {
	v, ok := in.value(name)
	if !ok {
		return nil
	}
	return new(in.uuid(v, "query", name))
}

// UUIDs reads a repeated parameter; nil if absent.
func (in *In) UUIDs(name string) []uuid.UUID {
	var out []uuid.UUID
	for i, v := range in.Strings(name) {
		id, ok := parseUUID([]byte(v))
		if !ok {
			in.problems.Add("bad_uuid", uuidRule, "query", name, i)
		}
		out = append(out, id)
	}
	return out
}

func (in *In) uuid(v, place, name string) uuid.UUID {
	id, ok := parseUUID([]byte(v))
	if !ok {
		in.add("bad_uuid", uuidRule, place, name, nil)
	}
	return id
}

// Date reads a required day.
func (in *In) Date(name string) healthlab.Date {
	v, ok := in.requiredValue(name)
	if !ok {
		return healthlab.Date{}
	}
	d, err := healthlab.ParseDate(v)
	if err != nil {
		in.add("bad_date", dateRule, "query", name, nil)
	}
	return d
}

// OptDate reads a day; nil when absent.
func (in *In) OptDate(name string) *healthlab.Date {
	if len(in.query[name]) == 0 {
		in.markRead("query", name)
		return nil
	}
	return new(in.Date(name))
}

// Moment is the value of a parameter that may be a day or an instant.
type Moment struct {
	// Day is the day, if IsDay.
	Day healthlab.Date
	// Instant is the instant, if not IsDay.
	Instant healthlab.Time
	// IsDay reports whether a day was sent.
	IsDay bool
}

// Edge selects the second that a day stands for.
type Edge uint8

const (
	// StartOfDay selects 00:00:00.
	StartOfDay Edge = iota
	// EndOfDay selects 23:59:59.
	EndOfDay
)

// In returns the instant as it is, and a day as the first or last second of the day in loc, as e selects.
func (m Moment) In(loc *time.Location, e Edge) healthlab.Time {
	switch {
	case !m.IsDay:
		return m.Instant
	case e == EndOfDay:
		return healthlab.At(time.Date(m.Day.Year, m.Day.Month, m.Day.Day, 23, 59, 59, 0, loc))
	}
	return healthlab.At(m.Day.At(loc))
}

// Moment reads a required day or date and time. A time without an offset is local time in zone, and refused if zone is
// nil.
func (in *In) Moment(name string, zone *time.Location) Moment {
	v, ok := in.requiredValue(name)
	if !ok {
		return Moment{}
	}
	return in.moment(v, name, zone)
}

// OptMoment is [In.Moment] for an optional parameter. It returns nil if absent.
func (in *In) OptMoment(name string, zone *time.Location) *Moment {
	v, ok := in.value(name)
	if !ok {
		return nil
	}
	return new(in.moment(v, name, zone))
}

func (in *In) moment(v, name string, zone *time.Location) Moment {
	if len(v) == len(time.DateOnly) {
		d, err := healthlab.ParseDate(v)
		if err != nil {
			in.add("bad_date", dateRule, "query", name, nil)
		}
		return Moment{Day: d, IsDay: true}
	}
	t, offset, err := healthlab.ParseTimeZone(plus(v))
	switch {
	case err != nil || offset == nil && zone == nil:
		in.add("bad_date_time", timeRule+", or a day alone", "query", name, nil)
	case offset == nil:
		t = healthdata.Reinterpret(t, zone)
	}
	return Moment{Instant: t}
}

func plus(v string) string {
	// An unescaped plus sign before an offset arrives as a space.
	if i := strings.LastIndexByte(v, ' '); i >= len("2026-03-01T9:00") && i < len(v)-1 && v[i+1] >= '0' && v[i+1] <= '9' {
		return v[:i] + "+" + v[i+1:]
	}
	return v
}

// OptZone reads the name of a zone of the IANA time zone database; nil when absent.
func (in *In) OptZone(name string) *time.Location {
	v, ok := in.value(name)
	if !ok {
		return nil
	}
	zone, err := time.LoadLocation(v)
	if err != nil || v == "" || v == "Local" {
		in.add("time_zone", "must be a zone of the IANA time zone database, such as Europe/Vienna or UTC", "query", name, nil)
		return time.UTC
	}
	return zone
}

// Local reads a required date and time and keeps its written offset. Without an offset it is UTC.
func (in *In) Local(name string) time.Time {
	v, ok := in.requiredValue(name)
	if !ok {
		return time.Time{}
	}
	t, offset, err := healthlab.ParseTimeOffset(plus(v))
	if err != nil {
		in.add("bad_date_time", timeRule, "query", name, nil)
		return time.Time{}
	}
	return t.In(time.FixedZone("", offset))
}

// Time reads a required day or date and time. A day becomes its first or last second in UTC, as e says.
func (in *In) Time(name string, e Edge) healthlab.Time { return in.Moment(name, nil).In(time.UTC, e) }

// OptTime is [In.Time] for an optional parameter. It returns nil if absent.
func (in *In) OptTime(name string, e Edge) *healthlab.Time {
	m := in.OptMoment(name, nil)
	if m == nil {
		return nil
	}
	return new(m.In(time.UTC, e))
}

// Range records a problem if a range is empty or ends before it starts. start and end are the names of its parameters.
// from is the first instant of the range, and before the first instant after it; a zero time is no bound.
func (in *In) Range(from, before time.Time, start, end string) {
	if !from.IsZero() && !before.IsZero() && !from.Before(before) {
		in.add("order", "must not be before "+start, "query", end, nil)
	}
}

// PathUUID reads a part of the path that is a UUID.
func (in *In) PathUUID(name string) uuid.UUID {
	in.markRead("path", name)
	return in.uuid(in.r.PathValue(name), "path", name)
}

// PathText reads a part of the path: a text of at most most characters.
func (in *In) PathText(name string, most int) string {
	in.markRead("path", name)
	v := in.r.PathValue(name)
	if in.checkChars(v, "path", name) {
		in.checkLength(v, most, "path", name)
	}
	return v
}

// PathInt reads a part of the path that is a whole number.
func (in *In) PathInt(name string) int {
	in.markRead("path", name)
	n, _ := in.integer(in.r.PathValue(name), "path", name)
	return n
}

// OptHeader reads a header of at most most characters; empty when absent.
func (in *In) OptHeader(name string, most int) string {
	in.markRead("header", name)
	all := in.r.Header.Values(name)
	if len(all) == 0 {
		return ""
	}
	if len(all) > 1 {
		in.add("repeated", "must not be repeated", "header", name, nil)
		return ""
	}
	if in.checkChars(all[0], "header", name) {
		in.checkLength(all[0], most, "header", name)
	}
	return all[0]
}

// Header is [In.OptHeader] for a header that must be there.
func (in *In) Header(name string, most int) string {
	v := in.OptHeader(name, most)
	if len(in.r.Header.Values(name)) == 0 {
		in.add("missing", "is required", "header", name, nil)
	}
	return v
}
