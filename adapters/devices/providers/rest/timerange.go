package rest

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Format converts an instant to the value of a query parameter.
type Format func(time.Time) string

// Formats of instants.
var (
	// RFC3339 writes UTC to the second with a Z.
	RFC3339 Format = func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	// Zoneless writes UTC to the second without any zone.
	Zoneless Format = func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05") }
	// Unix writes seconds since 1970, UnixMilli milliseconds.
	Unix      Format = func(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
	UnixMilli Format = func(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
)

// Range describes how a request states its time range.
type Range struct {
	// From and To are the names of the query parameters. If From is empty, requests have no range.
	From, To string
	// Filter is the value of the parameter From, if this one parameter expresses the range. The placeholders {from} and
	// {to} stand for the start and the end.
	Filter string
	// Format writes instants. Default RFC3339.
	Format Format
	// Days requests days in the person's zone, from the first to the last that the range touches. With a Format, days
	// are requested as instants, from the midnight of the first day to the last second of the last day.
	Days bool
	// Before and After widen the range at its start and at its end; with Days they must be whole days. A provider that
	// excludes the last day needs an After of one day.
	Before, After time.Duration
	// Max is the longest range of one request. A longer range is split, the newest part first. 0: no limit.
	Max time.Duration
}

const day = 24 * time.Hour

// Day is 24 hours, for Before, After and Max.
const Day = day

// cut returns the start of the newest part of a range that one request may cover.
func (r *Range) cut(from, to time.Time) time.Time {
	if r.Max <= 0 {
		return from
	}
	if start := ceilSecond(to).Add(-r.Max + r.Before + r.After); start.After(from) {
		return start
	}
	return from
}

func ceilSecond(t time.Time) time.Time {
	return t.Add(time.Second - time.Nanosecond).Truncate(time.Second)
}

func (r *Range) days(from, to time.Time, zone *time.Location) (first, last healthlab.Date) {
	return healthlab.DateOf(from.Add(-r.Before).In(zone)), healthlab.DateOf(to.Add(r.After - time.Microsecond).In(zone))
}

// set adds the parameters of the range between from and to to a query. zone is the zone of the person, for Days.
func (r *Range) set(q url.Values, from, to time.Time, zone *time.Location) {
	if r.Filter != "" {
		ends, parts := *r, url.Values{}
		ends.Filter, ends.From, ends.To = "", "from", "to"
		ends.set(parts, from, to, zone)
		q.Set(r.From, strings.NewReplacer("{from}", parts.Get("from"), "{to}", parts.Get("to")).Replace(r.Filter))
		return
	}
	if r.From == "" {
		return
	}
	start, end := from.Add(-r.Before), to.Add(r.After)
	first, last := r.days(from, to, zone)
	format := r.Format
	switch {
	case r.Days && format != nil:
		q.Set(r.From, format(first.At(zone)))
		q.Set(r.To, format(last.AddDays(1).At(zone).Add(-time.Second)))
		return
	case r.Days:
		q.Set(r.From, first.String())
		q.Set(r.To, last.String())
		return
	case format == nil:
		format = RFC3339
	}
	q.Set(r.From, format(start))
	if r.To != "" {
		q.Set(r.To, format(ceilSecond(end)))
	}
}
