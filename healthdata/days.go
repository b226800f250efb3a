package healthdata

import (
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// Days is a range of calendar days, both inclusive, on the clock that each item was
// recorded under: its time plus its own offset. A zero day is no bound.
type Days struct {
	From, To healthlab.Date
}

// IsZero reports whether neither end is bounded.
func (d Days) IsZero() bool { return d.From.IsZero() && d.To.IsZero() }

// has reports whether an instant lies in the range, given the offset of its clock in
// seconds east of UTC.
func (d Days) has(at time.Time, offset int) bool {
	if d.IsZero() {
		return true
	}
	day := healthlab.DateOf(at.UTC().Add(time.Duration(offset) * time.Second))
	return (d.From.IsZero() || !day.Before(d.From)) && (d.To.IsZero() || !d.To.Before(day))
}

// check refuses a range that ends before it begins.
func (d Days) check() error {
	if d.From.IsZero() || d.To.IsZero() {
		return nil
	}
	return checkRange(d.From.At(time.UTC), d.To.At(time.UTC))
}

// narrow returns the part of a range of instants in which items of these days can lie,
// whatever their offsets are.
func (d Days) narrow(from, to time.Time) (time.Time, time.Time) {
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
