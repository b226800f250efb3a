package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// String lists the data for tests and checks of a connector: one line per sample, summary, recording, deletion and
// unreadable item. The text contains personal measurements.
func (d Data) String() string {
	var b strings.Builder
	for _, resource := range slices.Sorted(maps.Keys(d)) {
		for i := range d[resource] {
			p := &d[resource][i]
			fmt.Fprintf(&b, "%s from %s", resource, p.Source.Type)
			if p.Owner != nil {
				fmt.Fprintf(&b, " of %s", *p.Owner)
			}
			if p.Device != nil && p.Device.Model != nil {
				fmt.Fprintf(&b, " by %s", *p.Device.Model)
			}
			b.WriteByte('\n')
			for _, s := range p.Samples {
				writeLine(&b, "sample", s)
			}
			for _, s := range p.Summaries {
				writeLine(&b, "summary", withCalendarDate(s))
			}
			if p.Stream != nil {
				writeLine(&b, "stream", p.Stream)
			}
			for _, x := range p.Deleted {
				fmt.Fprintf(&b, "  deleted %s %s %s\n", x.ID, x.At, x.Type)
			}
			for _, u := range p.Unparsed {
				for _, why := range u.Problems {
					fmt.Fprintf(&b, "  unread %v: %s: %s\n", why.Path, why.Code, why.Msg)
				}
			}
		}
	}
	return b.String()
}

// withCalendarDate returns a summary in a form that writeLine can encode: a missing CalendarDate becomes 0001-01-01,
// which writeLine omits.
func withCalendarDate(s healthdata.Summary) healthdata.Summary {
	first := healthlab.Date{Year: 1, Month: 1, Day: 1}
	switch v := s.(type) {
	case *healthdata.Sleep:
		out := *v
		s = &out
		if out.CalendarDate.IsZero() {
			out.CalendarDate = first
		}
	case *healthdata.Workout:
		out := *v
		s = &out
		if out.CalendarDate.IsZero() {
			out.CalendarDate = first
		}
	case *healthdata.Body:
		out := *v
		s = &out
		if out.CalendarDate.IsZero() {
			out.CalendarDate = first
		}
	}
	return s
}

// writeLine writes the fields of v, a sample, summary or stream, as JSON. It leaves out ids, sources, and empty and
// zero values. what names the kind of v.
func writeLine(b *strings.Builder, what string, v any) {
	doc, err := json.Marshal(v)
	var members map[string]any
	if err != nil || json.Unmarshal(doc, &members) != nil {
		fmt.Fprintf(b, "  %s that cannot be written\n", what)
		return
	}
	maps.DeleteFunc(members, func(name string, v any) bool {
		return v == nil || v == "" || v == 0.0 || v == "0001-01-01T00:00:00+00:00" || v == "0001-01-01" || strings.HasPrefix(name, "source") || name == "id" || name == "user_id"
	})
	doc, _ = json.Marshal(members) //nolint:errchkjson // it was JSON
	fmt.Fprintf(b, "  %s %s\n", what, doc)
}
