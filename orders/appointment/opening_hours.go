package appointment

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// openingHours has the opening times of a center by weekday. An openSpan is in minutes since the start of the local
// day.
type openingHours map[time.Weekday][]openSpan

type openSpan struct{ from, to int }

// parseOpeningHours reads opening hours: an object of days ("mon", "mon-fri", "sat, sun",
// "weekdays", "daily") with spans ("07:00-17:00", "7:00 AM - 5:00 PM", lists of spans, "closed",
// null). A day that is not named is closed. False for hours in any other form, and for null.
func parseOpeningHours(raw json.RawMessage) (openingHours, bool) {
	var days map[string]json.RawMessage
	if json.Unmarshal(raw, &days) != nil || len(days) == 0 {
		return nil, false
	}
	out := openingHours{}
	for name, value := range days {
		named, ok := parseDays(name)
		spans, ok2 := parseSpans(value)
		if !ok || !ok2 {
			return nil, false
		}
		for _, day := range named {
			out[day] = append(out[day], spans...)
		}
	}
	return out, true
}

// parseDays returns the weekdays that a text names: one day, several, a range such as mon-fri, weekdays, weekend or
// daily. False for any other text.
func parseDays(name string) ([]time.Weekday, bool) {
	const week = 7
	name = strings.ToLower(strings.TrimSpace(name))
	days := func(from, n time.Weekday) (out []time.Weekday) {
		for i := range n {
			out = append(out, (from+i)%week)
		}
		return out
	}
	switch name {
	case "daily", "every day", "everyday", "all", "mo-su":
		return days(time.Sunday, week), true
	case "weekdays", "weekday":
		return days(time.Monday, 5), true
	case "weekend", "weekends":
		return days(time.Saturday, 2), true
	}
	var out []time.Weekday
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == ',' || r == ';' || r == '/' || r == '&' }) {
		first, last, isRange := strings.Cut(strings.NewReplacer("–", "-", " to ", "-").Replace(part), "-")
		from, ok := parseDay(first)
		if !ok {
			return nil, false
		}
		if !isRange {
			out = append(out, from)
			continue
		}
		to, ok := parseDay(last)
		if !ok {
			return nil, false
		}
		out = append(out, days(from, (to-from+week)%week+1)...)
	}
	return out, len(out) > 0
}

// parseDay returns the weekday of an English name, or of its first two letters or more. False for any other text.
func parseDay(name string) (time.Weekday, bool) {
	name = strings.Trim(name, " .")
	for day := time.Sunday; day <= time.Saturday; day++ {
		if len(name) >= 2 && strings.HasPrefix(strings.ToLower(day.String()), name) || name == "thurs" && day == time.Thursday {
			return day, true
		}
	}
	return 0, false
}

// parseSpans parses the JSON value of a day's opening times; empty if the day is closed. False for any other form.
func parseSpans(value json.RawMessage) ([]openSpan, bool) {
	var list []string
	var one *string
	if json.Unmarshal(value, &one) == nil {
		if one == nil {
			return nil, true
		}
		list = strings.FieldsFunc(*one, func(r rune) bool { return r == ',' || r == ';' })
	} else if json.Unmarshal(value, &list) != nil {
		return nil, false
	}
	var out []openSpan
	for _, text := range list {
		text = strings.ToLower(strings.TrimSpace(text))
		if text == "" || text == "closed" {
			continue
		}
		m := reSpan.FindStringSubmatch(text)
		if m == nil {
			return nil, false
		}
		from, ok := parseClock(m[1], m[2], m[3])
		to, ok2 := parseClock(m[4], m[5], m[6])
		if !ok || !ok2 || from >= to {
			return nil, false
		}
		out = append(out, openSpan{from, to})
	}
	return out, true
}

var reSpan = regexp.MustCompile(`^(\d{1,2})(?::(\d{2}))?\s*([ap]\.?m\.?)?\s*(?:-|–|to)\s*(\d{1,2})(?::(\d{2}))?\s*([ap]\.?m\.?)?$`)

// parseClock returns a clock time in minutes since midnight. half is am, pm or empty for a 24-hour clock. False if the
// time is invalid.
func parseClock(hour, minute, half string) (int, bool) {
	h, err := strconv.Atoi(hour)
	m := 0
	if err == nil && minute != "" {
		m, err = strconv.Atoi(minute)
	}
	if err != nil || m > 59 || h > 24 || h == 24 && m > 0 || half != "" && (h < 1 || h > 12) {
		return 0, false
	}
	if half != "" {
		h %= 12
		if half[0] == 'p' {
			h += 12
		}
	}
	return h*60 + m, true
}

// contain reports whether a time range lies within the opening hours of one local day.
func (h openingHours) contain(start, end time.Time) bool {
	y, m, d := start.Date()
	from := start.Hour()*60 + start.Minute()
	to := end.Hour()*60 + end.Minute()
	if end.Second() > 0 || end.Nanosecond() > 0 {
		to++
	}
	if ey, em, ed := end.Date(); ey != y || em != m || ed != d {
		if next := time.Date(y, m, d+1, 0, 0, 0, 0, end.Location()); !end.Equal(next) {
			return false
		}
		to = 24 * 60
	}
	return slices.ContainsFunc(h[start.Weekday()], func(s openSpan) bool { return s.from <= from && to <= s.to })
}

// whileOpen returns the slots within the opening hours of a center; all of them if the center has no hours, or
// hours in another form than [PSCMetadata] describes.
func whileOpen(c *Center, loc *time.Location, slots []Slot) []Slot {
	hours, ok := parseOpeningHours(c.Metadata.Hours)
	if !ok {
		return slots
	}
	return slices.DeleteFunc(slices.Clone(slots), func(s Slot) bool { return !hours.contain(s.Start.In(loc), s.End.In(loc)) })
}
