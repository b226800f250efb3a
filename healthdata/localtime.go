package healthdata

import (
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// Reinterpret reads the clock digits of an instant in UTC as a local time of a zone. It converts times without a
// zone to instants. A local time that the zone skips moves forward by the size of the gap; a local time that
// occurs twice is the earlier of the two.
func Reinterpret(digits healthlab.Time, loc *time.Location) healthlab.Time {
	wall := digits.UTC()
	// These two offsets are the only possible ones at this time: in every zone of the tz database, transitions
	// are more than two days apart.
	_, before := wall.Add(-24 * time.Hour).In(loc).Zone()
	_, after := wall.Add(24 * time.Hour).In(loc).Zone()
	early := wall.Add(-time.Duration(max(before, after)) * time.Second)
	late := wall.Add(-time.Duration(min(before, after)) * time.Second)
	if _, o := early.In(loc).Zone(); o == max(before, after) {
		return healthlab.At(early)
	}
	if _, o := late.In(loc).Zone(); o == min(before, after) {
		return healthlab.At(late)
	}
	// The local time is skipped: the offset before the gap gives the local time after the gap.
	return healthlab.At(wall.Add(-time.Duration(before) * time.Second))
}

// clock reads the times of one source and one user. It knows what the provider states about time zones ([Affinity]) and
// the user's fallback zone.
type clock struct {
	loc      *time.Location
	floating bool // times have clock digits without a zone
	verbatim bool // treat clock digits as UTC
}

func (s *Service) clockOf(u *User, p *Provider, resource string) clock {
	return clock{
		loc:      u.Location(),
		floating: p.Affinity(resource) == AffinityFloating,
		verbatim: s.opts.Floating == FloatingVerbatim,
	}
}

func (c clock) instant(t healthlab.Time) healthlab.Time {
	if !c.floating || c.verbatim || t.IsZero() {
		return t
	}
	return Reinterpret(t, c.loc)
}

// offset returns the seconds east of UTC at an instant: the item's own offset, otherwise that of the item's
// zone, otherwise that of the fallback zone.
func (c clock) offset(at time.Time, own *int, zone *string) int {
	if c.floating {
		if c.verbatim {
			return 0
		}
		own, zone = nil, nil
	}
	if own != nil {
		return *own
	}
	if o := zoneOffset(zone, healthlab.Time{Time: at}); o != nil {
		return *o
	}
	_, o := at.In(c.loc).Zone()
	return o
}

// writtenOffset returns the UTC offset in seconds of the first time that was written with an offset; nil if there is
// none. A time in time.UTC or time.Local was written without one.
func writtenOffset(times ...*healthlab.Time) *int {
	for _, t := range times {
		if t == nil || t.Location() == time.UTC || t.Location() == time.Local {
			continue
		}
		_, offset := t.Zone()
		return &offset
	}
	return nil
}

// zoneOffset returns the offset of a zone at an instant, in seconds east of UTC; nil
// without a zone.
func zoneOffset(zone *string, at healthlab.Time) *int {
	if zone == nil {
		return nil
	}
	loc, err := check.LoadZone(*zone)
	if err != nil {
		return nil
	}
	_, offset := at.In(loc).Zone()
	return &offset
}

// DayRange is a range of calendar days, both inclusive. The day of an item is the local day at the item's own
// offset. A zero day is no bound.
type DayRange struct {
	From, To healthlab.Date
}

// IsZero reports whether neither end is bounded.
func (d DayRange) IsZero() bool { return d.From.IsZero() && d.To.IsZero() }

// contains reports whether an instant is in the range, at the given offset in seconds east of UTC.
func (d DayRange) contains(at time.Time, offset int) bool {
	if d.IsZero() {
		return true
	}
	day := healthlab.DateOf(at.UTC().Add(time.Duration(offset) * time.Second))
	return (d.From.IsZero() || !day.Before(d.From)) && (d.To.IsZero() || !d.To.Before(day))
}

func (d DayRange) check() error {
	if d.From.IsZero() || d.To.IsZero() {
		return nil
	}
	return checkRange(d.From.At(time.UTC), d.To.At(time.UTC))
}

// narrow returns the bounds from and to, narrowed to the instants that can be on the days of d at any offset. A zero
// instant is no bound.
func (d DayRange) narrow(from, to time.Time) (time.Time, time.Time) {
	if !d.From.IsZero() {
		if first := d.From.At(time.UTC).Add(-check.MaxOffset * time.Second); from.Before(first) {
			from = first
		}
	}
	if !d.To.IsZero() {
		if last := d.To.AddDays(1).At(time.UTC).Add(check.MaxOffset*time.Second - time.Microsecond); to.IsZero() || to.After(last) {
			to = last
		}
	}
	return from, to
}

// checkRange refuses a range that ends before it begins.
func checkRange(from, to time.Time) error {
	if !from.IsZero() && !to.IsZero() && to.Before(from) {
		var p healthlab.Problems
		p.Add("order", "must not be before start_date", "end_date")
		return p.Err()
	}
	return nil
}
