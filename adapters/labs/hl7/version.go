package hl7

import (
	"cmp"
	"time"

	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// version is what decides between two reports of a test or a result. Its fields are stored with those of the test or
// the result.
type version struct {
	Status string
	At     time.Time
	// Changed is when the results were reported or changed (OBR-22), and Sent the time of the message (MSH-7); nil if
	// unknown.
	Changed, Sent *labresult.TimestampWithOffset
}

func (t *TestReport) version(status string) version {
	return version{Status: status, At: t.At, Changed: t.changed, Sent: t.sent}
}

// replaces reports whether a report replaces an earlier received one of the same test or result. A preliminary report
// never replaces a final one. Else the later one counts, by OBR-22 if both have it, then by MSH-7. Times that overlap,
// because one of them is coarser, are not compared. Then the status counts (a correction replaces a final report), then
// the order of receipt. If OBR-22 is the same, the status counts before MSH-7.
func (v version) replaces(held version) bool {
	if final, was := rank(v.Status) > 0, rank(held.Status) > 0; final != was {
		return final
	}
	status, sent := rank(v.Status)-rank(held.Status), compareTimes(v.Sent, held.Sent)
	if v.Changed != nil && held.Changed != nil && spanOf(v.Changed).equal(spanOf(held.Changed)) {
		return cmp.Or(status, sent) >= 0
	}
	return cmp.Or(compareTimes(v.Changed, held.Changed), sent, status) >= 0
}

// rank orders reports with equal times by their status: preliminary (0), final, cancelled, corrected, deleted.
func rank(status string) int {
	switch status {
	case "F", "U":
		return 1
	case "X":
		return 2
	case "C", "W":
		return 3
	case "D":
		return 4
	}
	return 0 // P, I, R, S, A and unknown codes
}

func compareTimes(a, b *labresult.TimestampWithOffset) int {
	if a == nil || b == nil {
		return 0
	}
	return spanOf(a).compare(spanOf(b))
}

// span is the time between from and to, which is not part of it: what a time with a precision says.
type span struct{ from, to time.Time }

func spanOf(t *labresult.TimestampWithOffset) span {
	from := t.Local()
	switch t.Precision {
	case labresult.YearPrecision:
		return span{from, from.AddDate(1, 0, 0)}
	case labresult.MonthPrecision:
		return span{from, from.AddDate(0, 1, 0)}
	case labresult.DayPrecision:
		return span{from, from.AddDate(0, 0, 1)}
	case labresult.HourPrecision:
		return span{from, from.Add(time.Hour)}
	case labresult.MinutePrecision:
		return span{from, from.Add(time.Minute)}
	}
	return span{from, from.Add(1)}
}

// compare returns -1 if a is before b, 1 if it is after b, and 0 if they overlap.
func (a span) compare(b span) int {
	switch {
	case !a.to.After(b.from):
		return -1
	case !b.to.After(a.from):
		return 1
	}
	return 0
}

func (a span) equal(b span) bool { return a.from.Equal(b.from) && a.to.Equal(b.to) }
