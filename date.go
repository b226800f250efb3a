package healthlab

import (
	"fmt"
	"time"
)

// Date is a day of the proleptic Gregorian calendar without a time zone: a birth date, or the local day of a
// summary. Values compare with ==; the zero value means no date.
//
// In text and JSON it is YYYY-MM-DD (ISO 8601), years 0001 to 9999.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// DateOf returns the day on which t falls in t's own location.
func DateOf(t time.Time) Date {
	y, m, d := t.Date()
	return Date{y, m, d}
}

// ParseDate parses YYYY-MM-DD. Any other text, or a day that does not exist, is [Invalid]; the error does not
// repeat the text.
func ParseDate(s string) (Date, error) {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return Date{}, fmt.Errorf("%w: a date must have the form YYYY-MM-DD", Invalid)
	}
	t, err := time.Parse(time.DateOnly, s)
	if err != nil || t.Year() < 1 {
		return Date{}, fmt.Errorf("%w: a date must exist in the calendar", Invalid)
	}
	return DateOf(t), nil
}

// IsZero reports whether d is no date.
func (d Date) IsZero() bool { return d == Date{} }

// Compare returns -1 if d is before e, +1 if it is after, and 0 if they are the same
// day.
func (d Date) Compare(e Date) int {
	switch {
	case d == e:
		return 0
	case d.Year < e.Year, d.Year == e.Year && d.Month < e.Month,
		d.Year == e.Year && d.Month == e.Month && d.Day < e.Day:
		return -1
	default:
		return 1
	}
}

// Before reports whether d is an earlier day than e.
func (d Date) Before(e Date) bool { return d.Compare(e) < 0 }

// After reports whether d is a later day than e.
func (d Date) After(e Date) bool { return d.Compare(e) > 0 }

// AddDays returns the day n days later, or earlier if n is negative.
func (d Date) AddDays(n int) Date {
	return DateOf(time.Date(d.Year, d.Month, d.Day+n, 0, 0, 0, 0, time.UTC))
}

// At returns the day's first instant in loc. If clocks skip midnight that day, it is the instant just after the
// gap; if midnight comes twice, the first; if loc left out the whole day, the start of the next day.
func (d Date) At(loc *time.Location) time.Time {
	midnight := time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC)
	// time.Date promises neither side of a gap, so search forward from one change of the zone's offset to the next. The
	// search starts two days before midnight UTC, which is before the day begins in every zone.
	from := midnight.AddDate(0, 0, -2).In(loc)
	for {
		_, offset := from.Zone()
		at := midnight.Add(-time.Duration(offset) * time.Second).In(loc)
		if at.Before(from) {
			at = from
		}
		_, end := from.ZoneBounds()
		if end.IsZero() || at.Before(end) {
			return at
		}
		from = end
	}
}

// String returns YYYY-MM-DD, or the empty string for the zero Date.
func (d Date) String() string {
	if d.IsZero() {
		return ""
	}
	return fmt.Sprintf("%04d-%02d-%02d", d.Year, d.Month, d.Day)
}

// MarshalText returns YYYY-MM-DD. The zero Date, and a year without four digits, is [Invalid].
func (d Date) MarshalText() ([]byte, error) {
	if d.IsZero() {
		return nil, fmt.Errorf("%w: the date must not be the zero Date", Invalid)
	}
	if d.Year < 1 || d.Year > 9999 {
		return nil, fmt.Errorf("%w: the year of a date must be 0001 to 9999", Invalid)
	}
	return []byte(d.String()), nil
}

// UnmarshalText parses YYYY-MM-DD.
func (d *Date) UnmarshalText(b []byte) error {
	v, err := ParseDate(string(b))
	if err != nil {
		return err
	}
	*d = v
	return nil
}
