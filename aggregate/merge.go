package aggregate

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/tables"
)

// Merging decides which source counts before rows are grouped. The grain of the decision
// (an interval, an hour, a date, a session) is the same for every question, so the days of
// a result add up to its weeks, its months and its ungrouped total.
//
//	kind of row                              decided by
//	interval samples (steps, distance)       interval: a worse source fills what better ones leave
//	samples without an end (heart rate)      local hour: the best source with a sample in it
//	meals                                    local hour
//	dated summaries (activity, body)         local date and column
//	profile                                  column
//	sessions (sleep, workout, cycle)         overlap with the sessions of better sources
//
// Data that several apps or devices of one source recorded is merged before that, in origins.go.
//
// "Better" is the comparator of [order]. A condition of the query comes first: rows that it
// leaves out do not count as data of their source.

// mergeMargin is the time that a merged query reads before and after its window, so that intervals, hours,
// dates and sessions across the window's edge are decided as in a longer window. Intervals of more than a day
// that begin earlier are not seen.
const mergeMargin = day

// readWindow returns the window in which the plan reads rows.
func (p *plan) readWindow() window {
	if !p.origins || p.window == everything {
		return p.window
	}
	w := window{floorDiv(p.window.from, day) * day, -floorDiv(-p.window.to, day) * day}
	return window{w.from - mergeMargin, w.to + mergeMargin}
}

// claim is a time span that a source has data for.
type claim struct {
	interval
	source int
}

// claims are the time spans of the sources that were read before, disjoint and in order of time. fresh are the
// spans of the source that is being read.
type claims struct {
	taken  []claim
	fresh  []interval
	source int
}

// begin starts the next source. Sources come in order of preference.
func (c *claims) begin(source int) {
	if source == c.source {
		return
	}
	c.addFresh()
	c.source = source
}

// addFresh adds the spans of the source that was read to the claimed ones.
func (c *claims) addFresh() {
	if len(c.fresh) == 0 {
		return
	}
	slices.SortFunc(c.fresh, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	out := make([]claim, 0, len(c.taken)+len(c.fresh))
	add := func(from, to int64, source int) {
		if k := len(out) - 1; k >= 0 && out[k].source == source && out[k].to >= from {
			out[k].to = max(out[k].to, to)
		} else if from < to {
			out = append(out, claim{interval{from, to}, source})
		}
	}
	i := 0
	for _, v := range c.fresh {
		for i < len(c.taken) && c.taken[i].to <= v.from {
			add(c.taken[i].from, c.taken[i].to, c.taken[i].source)
			i++
		}
		at := v.from
		if k := len(out) - 1; k >= 0 {
			at = max(at, out[k].to)
		}
		for i < len(c.taken) && c.taken[i].from < v.to {
			add(at, min(v.to, c.taken[i].from), c.source)
			add(c.taken[i].from, c.taken[i].to, c.taken[i].source)
			at = max(at, c.taken[i].to)
			i++
		}
		add(at, v.to, c.source)
	}
	out = append(out, c.taken[i:]...)
	c.taken, c.fresh = out, c.fresh[:0]
}

// covered returns the part of v, in microseconds, that preferred sources have claimed, and the source that claimed the
// earliest part; -1 if no source did.
func (c *claims) covered(v interval) (length int64, source int) {
	source = -1
	i, _ := slices.BinarySearchFunc(c.taken, v.from, func(e claim, at int64) int { return cmp.Compare(e.to, at+1) })
	for ; i < len(c.taken) && c.taken[i].from < v.to; i++ {
		if source < 0 {
			source = c.taken[i].source
		}
		length += min(v.to, c.taken[i].to) - max(v.from, c.taken[i].from)
	}
	return length, source
}

// Recorder is a source together with the app and device that recorded the data. App and device are as the sender named
// them.
type Recorder struct {
	Source
	AppID string `json:"app_id,omitempty"`
	// DeviceID is this service's id of the device.
	DeviceID string `json:"device_id,omitempty"`
}

func recorder(s Source, o healthdata.Origin) Recorder {
	out := Recorder{Source: s, AppID: o.App}
	if o.Device != uuid.Nil {
		out.DeviceID = o.Device.String()
	}
	return out
}

// Share is a time span in which a source was used, or not used because another source was preferred.
type Share struct {
	// Recorder is the source, and Resource its timeseries; empty for summaries.
	Recorder
	Resource string `json:"resource,omitempty"`
	// From and To are the limits of the span in the person's local time, To exclusive.
	From string `json:"from"`
	To   string `json:"to"`
	// Unit is the unit of the decision: interval, hour, date or session. Count is the number of rows in the
	// span.
	Unit  string `json:"unit"`
	Count int    `json:"count"`
	// Used is all, part or none.
	Used string `json:"used"`
	// LostTo is the preferred source, and Rule the reason: override, source_type, team_priority or provider
	// between sources; within one source origin (another app or device covers more of the day or was received
	// later) or overlap (the same one has more detailed or repeated data). Both are absent if Used is all.
	LostTo *Recorder `json:"lost_to,omitempty"`
	Rule   string    `json:"rule,omitempty"`
}

// ShareTotal has the numbers of a source's rows that were used, used in part and not used.
type ShareTotal struct {
	Recorder
	Resource string `json:"resource,omitempty"`
	Used     int    `json:"used"`
	Part     int    `json:"part"`
	Lost     int    `json:"lost"`
}

// Merged lists, by time span, the sources that were used and those that were not.
type Merged struct {
	// Shares are sorted by source, resource and time; at most 1,000.
	Shares []Share `json:"shares"`
	// Omitted is the number of further shares.
	Omitted int `json:"omitted"`
	// Totals are the numbers of all rows, also those of omitted shares.
	Totals []ShareTotal `json:"totals"`
}

// maxShares is the highest number of shares in one explanation.
const maxShares = 1000

// Values of Share.Used.
const (
	usedAll  = "all"
	usedPart = "part"
	usedNone = "none"
)

// verdict is the decision about one row.
type verdict struct {
	source, resource int
	from, to         int64 // in the person's local time, in microseconds
	unit, used       string
	better           int    // index of the preferred source; -1 for none
	origin           int    // index of the row's app and device in mergeLog.origins
	betterOrigin     int    // index of the preferred app and device; -1 if another source is preferred
	rule             string // ruleOrigin or ruleOverlap if the row lost within its source; else empty
}

// mergeLog collects verdicts. A nil log collects nothing.
type mergeLog struct {
	p        *plan
	origins  []healthdata.Origin // the first one is empty: the origin is unknown
	verdicts []verdict
	counts   map[[3]int]*ShareTotal
	open     map[[3]int]int // by source, resource and origin: the index in verdicts that the next equal verdict extends
	omitted  int
	rows     []int // number of rows by verdict
}

func newMergeLog(p *plan, origins []healthdata.Origin) *mergeLog {
	if !p.traced {
		return nil
	}
	return &mergeLog{p: p, origins: origins, counts: map[[3]int]*ShareTotal{}, open: map[[3]int]int{}}
}

// add records a verdict that holds for a number of rows.
func (l *mergeLog) add(v verdict, rows int) {
	if l == nil {
		return
	}
	key := [3]int{v.source, v.resource, v.origin}
	n := l.counts[key]
	if n == nil {
		n = &ShareTotal{}
		l.counts[key] = n
	}
	switch v.used {
	case usedAll:
		n.Used += rows
	case usedPart:
		n.Part += rows
	default:
		n.Lost += rows
	}
	if i, ok := l.open[key]; ok {
		if o := &l.verdicts[i]; o.unit == v.unit && o.used == v.used && o.better == v.better && o.betterOrigin == v.betterOrigin && o.rule == v.rule && v.from >= o.from {
			o.to = max(o.to, v.to)
			l.rows[i] += rows
			return
		}
	}
	if len(l.verdicts) >= maxShares {
		delete(l.open, key)
		l.omitted++
		return
	}
	l.open[key] = len(l.verdicts)
	l.verdicts, l.rows = append(l.verdicts, v), append(l.rows, rows)
}

// join adds the verdicts of o, which is the log of another part of the window.
func (l *mergeLog) join(o *mergeLog) {
	if l == nil || o == nil {
		return
	}
	l.omitted += o.omitted
	for i, v := range o.verdicts {
		if len(l.verdicts) >= maxShares {
			l.omitted++
			continue
		}
		l.verdicts, l.rows = append(l.verdicts, v), append(l.rows, o.rows[i])
	}
	for key, n := range o.counts {
		if m := l.counts[key]; m != nil {
			m.Used, m.Part, m.Lost = m.Used+n.Used, m.Part+n.Part, m.Lost+n.Lost
		} else {
			l.counts[key] = n
		}
	}
}

// merged returns the collected verdicts as an explanation.
func (l *mergeLog) merged(o *order, sources []Source) *Merged {
	if l == nil {
		return nil
	}
	resource := func(i int) string {
		if i < len(l.p.resources) {
			return l.p.resources[i].Slug
		}
		return ""
	}
	out := &Merged{Shares: []Share{}, Totals: []ShareTotal{}, Omitted: l.omitted}
	for i, v := range l.verdicts {
		s := Share{Recorder: recorder(sources[v.source], l.origins[v.origin]), Resource: resource(v.resource), From: wallText(v.from), To: wallText(v.to),
			Unit: v.unit, Count: l.rows[i], Used: v.used}
		if v.better >= 0 {
			better := recorder(sources[v.better], healthdata.Origin{})
			if v.betterOrigin >= 0 {
				better = recorder(sources[v.better], l.origins[v.betterOrigin])
			}
			s.LostTo = &better
			if _, s.Rule = o.compare(better.Source, s.Source); v.rule != "" {
				s.Rule = v.rule
			}
		}
		out.Shares = append(out.Shares, s)
	}
	keys := make([][3]int, 0, len(l.counts))
	for key := range l.counts {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b [3]int) int { return slices.Compare(a[:], b[:]) })
	for _, key := range keys {
		t := *l.counts[key]
		t.Recorder, t.Resource = recorder(sources[key[0]], l.origins[key[2]]), resource(key[1])
		out.Totals = append(out.Totals, t)
	}
	return out
}

// sessionSpan returns the time span of a session in UTC, because two sources may write the same time with different
// offsets. The span of a menstrual cycle is in whole days. It returns false if the row is no session or the session has
// no length.
func sessionSpan(r *tables.Row) (interval, bool) {
	var v interval
	switch s := r.Summary.(type) {
	case *healthdata.Sleep:
		v = interval{s.BedtimeStart.UnixMicro(), s.BedtimeStop.UnixMicro()}
	case *healthdata.Workout:
		v = interval{s.TimeStart.UnixMicro(), s.TimeEnd.UnixMicro()}
	case *healthdata.MenstrualCycle:
		last := s.PeriodEnd
		if s.CycleEnd != nil {
			last = s.CycleEnd
		}
		if last == nil {
			return v, false
		}
		v = interval{s.PeriodStart.At(time.UTC).UnixMicro(), last.At(time.UTC).UnixMicro() + day}
	default:
		return v, false
	}
	return v, v.from < v.to
}
