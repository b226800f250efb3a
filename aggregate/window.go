package aggregate

import (
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Times here are floating: what the clock of the person showed, as microseconds since
// 1970-01-01T00:00 on that clock. There are no zones and no daylight saving left; every
// day has 24 hours.

const (
	second  = int64(1_000_000)
	minute  = 60 * second
	hour    = 60 * minute
	day     = 24 * hour
	week    = 7 * day
	maxTime = int64(1) << 62 // later than every valid time
)

// window is a time range, From inclusive, To exclusive.
type window struct{ from, to int64 }

// interval is a half-open time range; an instant has no duration.
type interval struct{ from, to int64 }

// everything is the window of queries without a timeframe.
var everything = window{-maxTime, maxTime}

// bounds returns the time range of a timeframe, up to the end of its last day.
func (t Timeframe) bounds() window {
	end := dayStart(t.Anchor) + day
	n := t.Past.count()
	switch t.Past.Unit {
	case Month:
		return window{monthsBefore(end, n), end}
	case Year:
		return window{monthsBefore(end, 12*n), end}
	default:
		return window{end - n*t.Past.width(), end}
	}
}

func dayStart(d healthlab.Date) int64 {
	return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC).UnixMicro()
}

// width returns the length of one unit, 0 for months and years.
func (p Period) width() int64 {
	switch p.Unit {
	case Minute:
		return minute
	case Hour:
		return hour
	case Day:
		return day
	case Week:
		return week
	default:
		return 0
	}
}

func monthsBefore(t, n int64) int64 {
	// A day that the month does not have becomes the last of the month.
	at := time.UnixMicro(t).UTC()
	first := time.Date(at.Year(), at.Month()-time.Month(n), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(at.Day(), last)-1).UnixMicro()
}

func (w window) yearsLong(n int) bool { return w.from < monthsBefore(w.to, 12*int64(n)) }

// Start returns the start of the bucket that contains at in the local time of at's location. The result is that local
// time written as UTC, as the value of a date_trunc group key. Buckets of several units start at multiples of their
// number: days and shorter from 1970-01-01, weeks from Monday 1970-01-05, months and years from year 0.
func (p Period) Start(at time.Time) time.Time {
	_, offset := at.Zone()
	return time.UnixMicro(p.truncate(at.UnixMicro() + int64(offset)*second)).UTC()
}

// truncate returns the start of the bucket of t. Times are local, in microseconds since 1970.
func (p Period) truncate(t int64) int64 {
	n := p.count()
	switch p.Unit {
	case Month, Year:
		at := time.UnixMicro(t).UTC()
		months := int64(at.Year())*12 + int64(at.Month()) - 1
		if p.Unit == Year {
			n *= 12
		}
		return monthStart(floorDiv(months, n) * n)
	case Week:
		const monday = 4 * day // 1970-01-05
		return floorDiv(t-monday, n*week)*n*week + monday
	default:
		w := n * p.width()
		return floorDiv(t, w) * w
	}
}

func (p Period) next(start int64) int64 { return p.step(start, 1) }

// step returns the start of the bucket that is k buckets after the one at start.
func (p Period) step(start, k int64) int64 {
	n := p.count() * k
	switch p.Unit {
	case Month, Year:
		if p.Unit == Year {
			n *= 12
		}
		at := time.UnixMicro(start).UTC()
		return monthStart(int64(at.Year())*12 + int64(at.Month()) - 1 + n)
	default:
		return start + n*p.width()
	}
}

// monthStart returns the first midnight of a month. Months are counted from year 0.
func monthStart(m int64) int64 {
	const most = 200_000 * 12
	if m > most {
		return maxTime
	}
	y := floorDiv(m, 12)
	return time.Date(int(y), time.Month(m-12*y+1), 1, 0, 0, 0, 0, time.UTC).UnixMicro()
}

// edges appends to edges the limits of the buckets in w, which start at w.from and end at w.to, and to starts the start
// of each bucket. The start of the first bucket may be before w.from. After limit buckets it stops; rest is the
// remaining part of w.
func (p Period) edges(edges, starts []int64, w window, limit int) (e, s []int64, rest window) {
	edges = append(edges, w.from)
	at := p.truncate(w.from)
	for limit > 0 {
		next := p.next(at)
		starts = append(starts, at)
		edges = append(edges, min(next, w.to))
		if next >= w.to {
			return edges, starts, window{w.to, w.to}
		}
		at = next
		limit--
	}
	return edges, starts, window{at, w.to}
}

// of returns the date part of the local time t, and the time until which the part stays the same.
func (p Part) of(t int64) (value, until int64) {
	switch p {
	case MinuteOfHour:
		m := floorDiv(t, minute)
		return m - floorDiv(m, 60)*60, (m + 1) * minute
	case HourOfDay:
		h := floorDiv(t, hour)
		return h - floorDiv(h, 24)*24, (h + 1) * hour
	}
	d := floorDiv(t, day)
	at := time.UnixMicro(t).UTC()
	switch p {
	case DayOfMonth:
		value = int64(at.Day())
	case ISOWeek, WeekOfYear:
		_, w := at.ISOWeek()
		value = int64(w)
	case MonthOfYear:
		value = int64(at.Month())
	case CalendarYear:
		value = int64(at.Year())
	case Weekday:
		value = int64((at.Weekday()+6)%7) + 1
	default:
		value = int64(at.YearDay())
	}
	return value, (d + 1) * day
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func wallText(at int64) string { return time.UnixMicro(at).UTC().Format("2006-01-02T15:04:05") }

// rough returns the approximate length of a period in minutes, with months of 30 days and years of 365.
func (p Period) rough() int64 {
	switch p.Unit {
	case Month:
		return p.count() * 30 * day / minute
	case Year:
		return p.count() * 365 * day / minute
	default:
		return p.count() * (p.width() / minute)
	}
}
