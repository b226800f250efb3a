package appointment

import (
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Zone loads a time zone by its IANA name. The names Local and "" are invalid.
func Zone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, healthlab.Invalid
	}
	return time.LoadLocation(name)
}

// LocalDay returns the day of an instant in the time zone with an IANA name; in UTC if zone is nil or unknown.
func LocalDay(at time.Time, zone *string) healthlab.Date {
	if zone != nil {
		if loc, err := Zone(*zone); err == nil {
			return healthlab.DateOf(at.In(loc))
		}
	}
	return rules.UTCDay(at)
}

// WallTime returns the instant at which clocks in loc show a time on a day; the first of two if clocks are set
// back. Invalid if clocks skip that time, because they are set forward.
func WallTime(day healthlab.Date, hour, minute int, loc *time.Location) (time.Time, error) {
	shows := func(t time.Time) bool {
		l := t.In(loc)
		return healthlab.DateOf(l) == day && l.Hour() == hour && l.Minute() == minute
	}
	t := time.Date(day.Year, day.Month, day.Day, hour, minute, 0, 0, loc)
	if !shows(t) {
		return time.Time{}, fmt.Errorf("%w: time: must exist on that day in the time zone of the place, where clocks are set forward", healthlab.Invalid)
	}
	// If clocks are set back, they show some times twice: the earlier instant is returned.
	for _, back := range []time.Duration{time.Hour, 30 * time.Minute, 2 * time.Hour} {
		if shows(t.Add(-back)) {
			return t.Add(-back).UTC(), nil
		}
	}
	return t.UTC(), nil
}
