package oauthrest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// kind is the type to which a field is converted.
type kind uint8

const (
	instant kind = iota
	day
	number
	whole
	word
	flag
	offset
)

// Formats of instants, and of ranges.
const (
	formatISO      = "iso"
	formatUnix     = "unix"
	formatUnixMS   = "unix_ms"
	formatFloating = "floating"
	formatDate     = "date"
)

// zoneUser is the value of Field.Zone that means the time zone of the user.
const zoneUser = "user"

// reader reads the fields of one item, and collects their problems.
type reader struct {
	it   *item
	zone *time.Location // time zone of the user
	p    healthlab.Problems
}

func (r *reader) raw(f *Field) (any, bool) {
	if f.Const != "" {
		return f.Const, true
	}
	return r.it.find(f.At)
}

// text returns a JSON text, number or boolean as a text, and false for other values.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// number reads a number, or a text that contains one. It returns false if the value is absent or not a number; the
// latter is reported under name.
func (r *reader) number(f *Field, name string) (float64, bool) {
	v, ok := r.raw(f)
	if !ok {
		return 0, false
	}
	s, ok := text(v)
	n, isNumber := healthlab.ParseNumber(s)
	if !ok || !isNumber {
		r.p.Add("number", "must be a number, or a text that contains one", name)
		return 0, false
	}
	if f.Times != nil {
		n *= *f.Times
	}
	return n + f.Plus, true
}

// word reads a text and translates it by f.Map. It returns false if the value is absent, or unreadable, which is
// reported under name.
func (r *reader) word(f *Field, name string) (string, bool) {
	v, ok := r.raw(f)
	if !ok {
		return "", false
	}
	s, ok := text(v)
	if !ok {
		r.p.Add("text", "must be a text, a number or a boolean", name)
		return "", false
	}
	if f.Map == nil {
		return s, true
	}
	if to, ok := f.Map[s]; ok {
		return to, true
	}
	if f.Else != nil {
		return *f.Else, true
	}
	r.p.Add("not_mapped", f.mapRule(), name)
	return "", false
}

// mostListed is the largest number of keys of a map that an error lists.
const mostListed = 20

// mapRule returns the text of the error for a text that is not in f.Map.
func (f *Field) mapRule() string {
	rule := "must be one of the keys of map, or the configuration must set else"
	if len(f.Map) <= mostListed {
		rule += "; the keys are: " + strings.Join(slices.Sorted(maps.Keys(f.Map)), ", ")
	}
	return rule
}

// instant reads a time and its UTC offset in seconds; off is nil if the offset is unknown. ok is false if the value is
// absent, or unreadable, which is reported under name.
func (r *reader) instant(f *Field, name string) (t healthlab.Time, off *int, ok bool) {
	v, ok := r.raw(f)
	if !ok {
		return t, nil, false
	}
	s, ok := text(v)
	if ok && f.DateAt != "" {
		date, _ := r.it.find(f.DateAt)
		var d string
		if d, ok = text(date); ok {
			s = d + "T" + s
		}
	}
	if ok {
		t, off, ok = r.parseTime(f, s)
	}
	if !ok {
		r.p.Add("instant", f.timeRule(), name)
	}
	return t, off, ok
}

// timeRule returns the text of the error for a value from which no time can be read.
func (f *Field) timeRule() string {
	rule := "must be a time in the format " + orText(f.Format, formatISO)
	if f.DateAt != "" {
		rule += ", with a date at date_at"
	}
	if f.ZoneAt != "" {
		rule += ", with a time zone or UTC offset at zone_at"
	}
	return rule
}

func (r *reader) parseTime(f *Field, s string) (t healthlab.Time, off *int, ok bool) {
	switch f.Format {
	case formatUnix, formatUnixMS:
		n, err := strconv.ParseFloat(s, 64)
		if f.Format == formatUnix {
			n *= 1000
		}
		if err != nil || math.Abs(n) > maxMillis || math.IsNaN(n) {
			return t, nil, false
		}
		ms := math.Floor(n)
		t = healthlab.At(time.UnixMilli(int64(ms)).Add(time.Duration((n - ms) * float64(time.Millisecond)).Round(time.Microsecond)))
		off, ok = r.zoneOffset(f, t)
		return t, off, ok
	}
	if len(s) == len(time.DateOnly) {
		s += "T00:00:00"
	}
	t, written, err := healthlab.ParseTimeZone(s)
	switch {
	case err != nil:
		return t, nil, false
	case f.Format == formatFloating:
		if written != nil {
			t = healthlab.At(t.Add(time.Duration(*written) * time.Second)) // the local digits, written as UTC
		}
		return t, nil, true
	case written != nil && !strings.HasSuffix(strings.ToUpper(s), "Z"):
		return t, written, true
	case written != nil:
		off, ok = r.zoneOffset(f, t)
		return t, off, ok
	}
	return r.local(f, t)
}

// maxMillis is the last millisecond of the year 9999 in Unix time.
const maxMillis = 253402300799999

// local converts a local time to an instant in the zone of f. digits is the local time written as UTC. local also
// returns the UTC offset in seconds, or nil if the configuration names no zone, and false if the zone is unreadable.
func (r *reader) local(f *Field, digits healthlab.Time) (healthlab.Time, *int, bool) {
	loc := r.zone
	var fixed *int
	if f.ZoneAt != "" {
		v, _ := r.it.find(f.ZoneAt)
		var ok bool
		if loc, fixed, ok = zoneOf(v); !ok {
			return digits, nil, false
		}
	} else if f.Zone != zoneUser {
		l, err := time.LoadLocation(f.Zone)
		if err != nil {
			return digits, nil, false
		}
		loc = l
	}
	if fixed != nil {
		return healthlab.At(digits.Add(-time.Duration(*fixed) * time.Second)), fixed, true
	}
	t := healthdata.Reinterpret(digits, loc)
	if f.Zone == "" && f.ZoneAt == "" {
		return t, nil, true // UTC does not say where the person was
	}
	_, seconds := t.In(loc).Zone()
	return t, &seconds, true
}

// zoneOffset returns the UTC offset, in seconds, of t in the zone or offset that the item contains at f.ZoneAt; nil if
// the item contains none. It returns false if the value is unreadable.
func (r *reader) zoneOffset(f *Field, t healthlab.Time) (*int, bool) {
	if f.ZoneAt == "" {
		return nil, true
	}
	v, ok := r.it.find(f.ZoneAt)
	if !ok {
		return nil, true
	}
	loc, fixed, ok := zoneOf(v)
	if ok && fixed == nil {
		_, seconds := t.In(loc).Zone()
		fixed = &seconds
	}
	return fixed, ok
}

// zoneOf reads an IANA zone name, which it returns as loc, or a UTC offset, which it returns as fixed in seconds.
func zoneOf(v any) (loc *time.Location, fixed *int, ok bool) {
	if seconds, ok := offsetOf(v); ok {
		return nil, &seconds, true
	}
	s, isText := v.(string)
	if !isText || s == "" || s == "Local" {
		return nil, nil, false
	}
	loc, err := time.LoadLocation(s)
	return loc, nil, err == nil
}

// maxOffset is the largest accepted offset from UTC, in seconds.
const maxOffset = 18 * 60 * 60

// offsetOf reads a UTC offset in seconds: a number of seconds, or a text that ends in an offset such as +02:00.
func offsetOf(v any) (int, bool) {
	switch v := v.(type) {
	case json.Number:
		n, err := v.Float64()
		return int(n), err == nil && math.Abs(n) <= maxOffset && n == math.Trunc(n)
	case string:
		s := v
		if i := strings.LastIndexAny(s, "+-"); i >= 0 && (i == 0 || strings.Contains(s, ":")) {
			s = s[i:]
		} else if !strings.HasSuffix(s, "Z") {
			return 0, false
		} else {
			return 0, true
		}
		seconds, err := healthlab.ParseOffset(s)
		return seconds, err == nil
	}
	return 0, false
}

// offset reads a UTC offset in seconds. It returns false if the value is absent, or unreadable, which is reported under
// name.
func (r *reader) offset(f *Field, name string) (int, bool) {
	v, ok := r.raw(f)
	if !ok {
		return 0, false
	}
	if n, isNumber := v.(json.Number); isNumber && (f.Times != nil || f.Plus != 0) {
		if x, ok := r.number(f, name); ok {
			n = json.Number(strconv.FormatFloat(x, 'f', -1, 64))
		}
		v = n
	}
	seconds, ok := offsetOf(v)
	if !ok {
		r.p.Add("offset", fmt.Sprintf("must be a UTC offset such as +02:00, or a whole number of seconds from %d to %d", -maxOffset, maxOffset), name)
	}
	return seconds, ok
}

// day reads a calendar day as YYYY-MM-DD. From an ISO time it takes the date as written, from a Unix time the date in
// the user's zone. It returns false if the value is absent, or unreadable, which is reported under name.
func (r *reader) day(f *Field, name string) (string, bool) {
	v, ok := r.raw(f)
	if !ok {
		return "", false
	}
	s, ok := text(v)
	if f.Format == formatUnix || f.Format == formatUnixMS {
		var t healthlab.Time
		if t, _, ok = r.parseTime(f, s); ok {
			return healthlab.DateOf(t.In(r.zone)).String(), true
		}
	}
	if ok && len(s) >= len(time.DateOnly) {
		if d, err := healthlab.ParseDate(s[:len(time.DateOnly)]); err == nil {
			return d.String(), true
		}
	}
	rule := "must begin with a day as YYYY-MM-DD"
	if f.Format == formatUnix || f.Format == formatUnixMS {
		rule += ", or be a time in the format " + f.Format
	}
	r.p.Add("day", rule, name)
	return "", false
}

// flag reads a boolean: true, false, 1 or 0. ok is false if the value is absent, or unreadable, which is reported under
// name.
func (r *reader) flag(f *Field, name string) (value, ok bool) {
	s, ok := r.word(f, name)
	if !ok {
		return false, false
	}
	switch s {
	case "true", "1":
		return true, true
	case "false", "0":
		return false, true
	}
	r.p.Add("flag", "must be true, false, 1 or 0", name)
	return false, false
}
