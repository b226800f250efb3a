package polar

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
)

// clock is a date and time of day without a zone, stored as if it were in UTC.
type clock struct{ healthlab.Time }

// UnmarshalJSON reads a date and time with or without seconds, and with or without a zone. Null and the empty text give
// the zero value.
func (c *clock) UnmarshalJSON(b []byte) error {
	var at rest.Instant
	err := json.Unmarshal(b, &at)
	c.Time = at.Time
	return err
}

func (c clock) plus(ms float64) healthlab.Time {
	return healthlab.At(c.Add(time.Duration(ms * float64(time.Millisecond))))
}

// unix is an instant in Unix seconds, with a UTC offset in minutes.
type unix struct {
	Time    int64    `json:"test_time"`
	Minutes *float64 `json:"time_zone_offset"`
}

func (u unix) at() clock { return clock{healthlab.At(time.Unix(u.Time, 0))} }

func (u unix) offset() *int { return rest.OffsetOf(u.Minutes, time.Minute) }

// span holds the start and end of a night.
type span struct {
	Start rest.Instant `json:"sleep_start_time"`
	End   rest.Instant `json:"sleep_end_time"`
}

// clocks maps the local times of day of a night, as HH:MM, to values.
type clocks map[string]*float64

// moment is a value at an instant of a night.
type moment struct {
	at    healthlab.Time
	value float64
}

// sorted returns the values sorted by time. start is the start of the night. A time of day before the start belongs to
// the next day, unless it is at most half an hour before the start.
func (c clocks) sorted(start rest.Instant) (out []moment) {
	local := start.Time.Time
	if start.Offset != nil {
		local = local.Add(time.Duration(*start.Offset) * time.Second)
	}
	local = local.UTC()
	for text, value := range c {
		at, err := time.Parse("15:04", text)
		if err != nil || value == nil {
			continue
		}
		behind := time.Date(local.Year(), local.Month(), local.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC).Sub(local)
		if behind < -30*time.Minute {
			behind += rest.Day
		}
		if behind > rest.Day-30*time.Minute {
			behind -= rest.Day
		}
		out = append(out, moment{healthlab.At(start.Add(behind)), *value})
	}
	slices.SortFunc(out, func(a, b moment) int { return a.at.Compare(b.at.Time) })
	return out
}
