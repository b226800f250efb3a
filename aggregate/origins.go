package aggregate

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"

	"github.com/healthlab-dev/healthlab/aggregate/internal/vector"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// The origins of one source, which are its apps and devices (such as two watches of one phone store), may record the
// same time. One origin may record it twice, such as with an hour that arrives after its minutes. Such data is counted
// once, before sources are compared:
//
//   - Of several origins, the one that covers more of the local day is preferred; then the one that was
//     received later. Samples without a duration are decided by local hour, intervals by their time.
//   - Of two intervals of one origin, the shorter one is used for its time; of equal ones the one that
//     was received later.

// unit is a set of series that compete within a source: the samples of one resource, and of one type if the
// resource has types.
type unit struct {
	source, resource int
	part             string
}

func (p *plan) unitOf(s *sampleSeries) unit {
	u := unit{source: s.source, resource: s.resource}
	if p.resources[s.resource].Key == healthdata.KeyType {
		u.part = s.Key.Part
	}
	return u
}

func hasSeparateEntries(r *healthdata.Resource) bool {
	return r.Diary() || slices.Contains([]string{"water", "caffeine", "inhaler_usage"}, r.Slug)
}

// contested returns the units in which the same data may have been recorded twice: by two origins (apps or devices), or
// by overlapping intervals of one origin.
func (p *plan) contested(set *sampleSet) map[unit]bool {
	if !p.origins {
		return nil
	}
	out := map[unit]bool{}
	for _, run := range p.units(set) {
		u := p.unitOf(&set.list[run[0]])
		list := set.list[run[0]:run[1]]
		if slices.ContainsFunc(list, func(s sampleSeries) bool { return s.Key.Origin != list[0].Key.Origin }) {
			out[u] = true
		} else if r := p.resources[u.resource]; r.Shape != healthdata.Discrete && !hasSeparateEntries(r) && mayOverlap(list) {
			out[u] = true
		}
	}
	return out
}

// units returns the range of series of each unit, as index of the first series and index after the last. The series of
// a unit are adjacent in set.list.
func (p *plan) units(set *sampleSet) (out [][2]int) {
	for i := 0; i < len(set.list); {
		u, j := p.unitOf(&set.list[i]), i+1
		for j < len(set.list) && p.unitOf(&set.list[j]) == u {
			j++
		}
		out, i = append(out, [2]int{i, j}), j
	}
	return out
}

// mayOverlap reports whether intervals of the series can overlap.
func mayOverlap(list []sampleSeries) bool {
	var all []*series.Header
	for i := range list {
		for _, chunks := range [...][]series.Chunk{list[i].Chunks, list[i].Pending} {
			for k := range chunks {
				if all = append(all, &chunks[k].Header); chunks[k].Crossed {
					return true
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b *series.Header) int { return cmp.Compare(a.Start, b.Start) })
	reach := int64(math.MinInt64)
	for _, h := range all {
		if h.Start < reach {
			return true
		}
		if h.MaxEnd != series.NoEnd {
			reach = max(reach, h.MaxEnd)
		}
		if len(list) > 1 || len(list[0].Pending) > 0 {
			reach = max(reach, h.Stop) // chunks of different series may overlap
		}
	}
	return false
}

// told is a sample that competes with other samples of the same unit.
type told struct {
	from, to int64 // in UTC; the limits of the local hour if point is true and length is true
	index    int64 // start in the person's local time
	at       int64 // start in UTC
	place    int32 // index in decider.out
	origin   int32
	rank     uint32
	point    bool // the sample has no end, or its end is not after its start
	length   bool // the span from from to to is not empty
}

// decision is how much of a sample counts, if other apps, devices or sources recorded the same time.
type decision struct {
	share  float64 // the part of the sample that counts, 0 to 1
	better int32   // index of the source that is used for the other part; -1 for none
	origin int32   // index of the app and device of that source in decider.origins; originOfNone for another source
	rule   string  // ruleOrigin or ruleOverlap if better is the sample's own source; else empty
}

// originDay summarizes the samples of an origin on a local day.
type originDay struct {
	covered int64
	rank    uint32
	last    int64
}

type originDate struct {
	day    int64
	origin int32
}

// decider decides about the samples of one unit.
type decider struct {
	p        *plan
	unit     unit
	resource *healthdata.Resource
	origins  []healthdata.Origin
	c        *sampleClaims
	across   bool // samples also compete with those of preferred sources

	items  []told
	first  []int // for each series, the index in items of its first sample
	orders map[int64][]int32
	out    []decision

	segments []segment
}

// segment is a time span and the sample that it belongs to.
type segment struct {
	from, to int64
	item     int // index in items; -1 for the hour of a sample without a duration
	origin   int32
	place    int32 // rank of the origin on the local day, 0 is the preferred one
}

// add adds the samples of a batch, which are of the origin with this index.
func (d *decider) add(b *vector.Batch, origin int32) {
	for i := range b.N {
		t := told{at: b.Start[i], from: b.Start[i], to: b.Start[i], index: b.Index[i], origin: origin, place: int32(len(d.items))}
		if b.Rank != nil {
			t.rank = b.Rank[i]
		}
		switch {
		case d.resource.Shape == healthdata.Discrete, b.End == nil, b.End[i] == series.NoEnd:
			t.from = b.Start[i] - (b.Index[i] - floorDiv(b.Index[i], hour)*hour)
			t.to, t.point, t.length = t.from+hour, true, true
		case b.End[i] > b.Start[i]:
			t.to, t.length = b.End[i], true
		default:
			t.point = true
		}
		d.items = append(d.items, t)
	}
}

// decide decides about all added samples.
func (d *decider) decide() {
	d.out = make([]decision, len(d.items))
	for i := range d.out {
		d.out[i] = decision{share: 1, better: -1}
	}
	d.rankOrigins()
	if d.resource.Shape == healthdata.Discrete {
		d.decideHours()
	} else {
		d.decideIntervals()
	}
}

// rankOrigins orders the origins of each local day by preference.
func (d *decider) rankOrigins() {
	stats, hours := map[originDate]*originDay{}, map[originDate]bool{}
	until := make([]int64, len(d.origins))
	for i := range until {
		until[i] = math.MinInt64
	}
	points := d.resource.Shape == healthdata.Discrete
	if !points {
		slices.SortStableFunc(d.items, func(a, b told) int { return cmp.Compare(a.from, b.from) })
	}
	days := map[int64]bool{}
	var at, in originDate // the day and the hour of the item before
	var s *originDay
	for i := range d.items {
		t := &d.items[i]
		if key := (originDate{floorDiv(t.index, day), t.origin}); s == nil || key != at {
			at = key
			if s = stats[key]; s == nil {
				s = &originDay{last: math.MinInt64}
				stats[key] = s
			}
			days[key.day] = true
		}
		if points {
			if h := (originDate{floorDiv(t.index, hour), t.origin}); (i == 0 || h != in) && !hours[h] {
				hours[h], in = true, h
				s.covered += hour
			}
		} else if from := max(t.from, until[t.origin]); from < t.to {
			s.covered += t.to - from
			until[t.origin] = t.to
		}
		if t.rank > s.rank || t.rank == s.rank && t.at > s.last {
			s.rank, s.last = t.rank, t.at
		}
	}
	d.orders = map[int64][]int32{}
	list := make([]int32, len(d.origins))
	for n := range days {
		for i := range list {
			list[i] = int32(i)
		}
		of := func(origin int32) originDay {
			if s := stats[originDate{n, origin}]; s != nil {
				return *s
			}
			return originDay{last: math.MinInt64}
		}
		slices.SortFunc(list, func(a, b int32) int {
			x, y := of(a), of(b)
			return cmp.Or(cmp.Compare(y.covered, x.covered), cmp.Compare(y.rank, x.rank), cmp.Compare(y.last, x.last), cmp.Compare(a, b))
		})
		places := make([]int32, len(list))
		for place, origin := range list {
			places[origin] = int32(place)
		}
		d.orders[n] = places
	}
}

func (d *decider) order(t *told) int32 { return d.orders[floorDiv(t.index, day)][t.origin] }

func (d *decider) before(a, b *told) bool {
	return cmp.Or(cmp.Compare(d.order(a), d.order(b)), cmp.Compare(a.origin, b.origin)) < 0
}

// decideHours gives each local hour to the preferred origin with a sample in it.
func (d *decider) decideHours() {
	owners := map[int64]*told{}
	for i := range d.items {
		t := &d.items[i]
		h := floorDiv(t.index, hour)
		if i > 0 && d.items[i-1].origin == t.origin && floorDiv(d.items[i-1].index, hour) == h {
			continue // same origin and hour as the sample before
		}
		if o := owners[h]; o == nil || d.before(t, o) {
			owners[h] = t
		}
	}
	for i := range d.items {
		t := &d.items[i]
		h := floorDiv(t.index, hour)
		out := &d.out[t.place]
		if i > 0 && d.items[i-1].origin == t.origin && floorDiv(d.items[i-1].index, hour) == h {
			*out = d.out[d.items[i-1].place]
			continue
		}
		if d.across {
			owner, ok := d.c.hours[h]
			if !ok {
				d.c.hours[h], owner = int32(d.unit.source), int32(d.unit.source)
			}
			if int(owner) != d.unit.source {
				*out = decision{better: owner, origin: -1}
				continue
			}
		}
		if o := owners[h]; o.origin != t.origin {
			*out = decision{better: int32(d.unit.source), origin: o.origin, rule: ruleOrigin}
		}
	}
}

// Rules that decide between samples of one source.
const (
	ruleOrigin  = "origin"  // the other origin covers more of the day, or was received later
	ruleOverlap = "overlap" // the other sample of the origin is shorter, or was received later
)

// originOfNone is the value of decision.origin without an app and device.
const originOfNone = int32(-1)

// priority decides which of several samples that cover the same time is preferred: the one that compare puts first.
type priority struct {
	place  int32
	origin int32
	point  bool
	length int64
	rank   uint32
	at     int64
	item   int
	to     int64
}

func (a *priority) compare(b *priority) int {
	return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.origin, b.origin), compareBool(a.point, b.point),
		cmp.Compare(a.length, b.length), cmp.Compare(b.rank, a.rank), cmp.Compare(b.at, a.at), cmp.Compare(a.item, b.item))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// active is a heap of the samples that cover the current time of the method sweep, preferred first.
type active []priority

func (a active) Len() int           { return len(a) }
func (a active) Less(i, j int) bool { return a[i].compare(&a[j]) < 0 }
func (a active) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *active) Push(x any)        { *a = append(*a, x.(priority)) } //nolint:forcetypeassert // by heap alone
func (a *active) Pop() any {
	n := len(*a) - 1
	x := (*a)[n]
	*a = (*a)[:n]
	return x
}

// sweep fills d.segments: it assigns each time span to the preferred sample that covers it. Samples are sorted by their
// start.
func (d *decider) sweep() {
	var open active
	at, i := int64(math.MinInt64), 0
	for i < len(d.items) || len(open) > 0 {
		for len(open) > 0 && open[0].to <= at {
			heap.Pop(&open)
		}
		if len(open) == 0 {
			if i == len(d.items) {
				return
			}
			at = max(at, d.items[i].from)
		}
		for i < len(d.items) && d.items[i].from <= at {
			if t := &d.items[i]; t.length {
				heap.Push(&open, priority{d.order(t), t.origin, t.point, t.to - t.from, t.rank, t.at, i, t.to})
			}
			i++
		}
		if len(open) == 0 || open[0].to <= at {
			continue
		}
		best := open[0]
		to := best.to
		if i < len(d.items) {
			to = min(to, d.items[i].from)
		}
		d.assign(at, to, &best)
		at = to
	}
}

// assign records that the time span from from to to belongs to the sample best.
func (d *decider) assign(from, to int64, best *priority) {
	if from >= to {
		return
	}
	item := best.item
	if best.point {
		item = -1
	}
	if k := len(d.segments) - 1; k >= 0 {
		if s := &d.segments[k]; s.item == item && s.origin == best.origin && s.place == best.place && s.to == from {
			s.to = to
			return
		}
	}
	d.segments = append(d.segments, segment{from, to, item, best.origin, best.place})
}

// decideIntervals decides about all samples of a resource whose samples have durations. A sample counts for the time
// that no preferred sample covers. A value that cannot be added up counts in full, unless all of its time is covered.
func (d *decider) decideIntervals() {
	d.sweep()
	apart := hasSeparateEntries(d.resource)
	instants := map[int64]*told{} // the preferred sample of each instant
	for i := range d.items {
		t := &d.items[i]
		if !t.point {
			d.c.fresh = append(d.c.fresh, interval{t.from, t.to})
			continue
		}
		if t.length {
			d.c.fresh = append(d.c.fresh, interval{t.from, t.to})
		}
		if o := instants[t.at]; o == nil || d.before(t, o) {
			instants[t.at] = t
		}
	}
	for i := range d.items {
		t := &d.items[i]
		if t.point {
			d.decideInstant(t, instants[t.at])
		} else {
			d.decideInterval(i, t, apart)
		}
	}
}

func (d *decider) segmentAt(at int64) int {
	k, _ := slices.BinarySearchFunc(d.segments, at, func(s segment, at int64) int { return cmp.Compare(s.to, at+1) })
	return k
}

func (d *decider) decideInterval(i int, t *told, apart bool) {
	out := &d.out[t.place]
	var free int64
	lost := originOfNone
	rule := ""
	for k := d.segmentAt(t.from); k < len(d.segments) && d.segments[k].from < t.to; k++ {
		s := &d.segments[k]
		if s.item == i || apart && s.origin == t.origin {
			part := interval{max(s.from, t.from), min(s.to, t.to)}
			length := part.to - part.from
			if d.across {
				taken, better := d.c.covered(part)
				if better >= 0 && out.better < 0 {
					out.better, out.origin = int32(better), originOfNone
				}
				length -= taken
			}
			free += length
		} else if rule == "" {
			lost, rule = s.origin, ruleOrigin
			if s.origin == t.origin {
				rule = ruleOverlap
			}
		}
	}
	if out.share = float64(free) / float64(t.to-t.from); out.better < 0 && rule != "" {
		out.better, out.origin, out.rule = int32(d.unit.source), lost, rule
	}
	if !d.resource.Additive && free > 0 {
		*out = decision{share: 1, better: -1}
	}
}

// decideInstant decides about the sample t, which has no duration. It counts unless a preferred origin or source has a
// sample at the same instant or an interval around it. best is the preferred sample of that instant in the unit.
func (d *decider) decideInstant(t, best *told) {
	out := &d.out[t.place]
	if best.origin != t.origin {
		*out = decision{better: int32(d.unit.source), origin: best.origin, rule: ruleOrigin}
		return
	}
	if k := d.segmentAt(t.at); k < len(d.segments) && d.segments[k].from <= t.at {
		if s := &d.segments[k]; s.origin != t.origin && cmp.Or(cmp.Compare(s.place, d.order(t)), cmp.Compare(s.origin, t.origin)) < 0 {
			*out = decision{better: int32(d.unit.source), origin: s.origin, rule: ruleOrigin}
			return
		}
	}
	if !d.across {
		return
	}
	if !t.length {
		if owner, ok := d.c.times[t.at]; !ok {
			d.c.times[t.at] = int32(d.unit.source)
		} else if int(owner) != d.unit.source {
			*out = decision{better: owner, origin: originOfNone}
			return
		}
	}
	if length, better := d.c.covered(interval{t.at, t.at + 1}); length > 0 {
		*out = decision{better: int32(better), origin: originOfNone}
	}
}

// slabSamples is the number of samples of a unit above which a window is decided in parts, to limit the memory.
const slabSamples = 1 << 20

// slabs cuts the window of a unit into parts of whole days.
func slabs(list []sampleSeries, w window) []window {
	n, from, to := 0, int64(math.MaxInt64), int64(math.MinInt64)
	for i := range list {
		for _, chunks := range [...][]series.Chunk{list[i].Chunks, list[i].Pending} {
			for k := range chunks {
				n += chunks[k].N
				from, to = min(from, chunks[k].Start), max(to, chunks[k].Stop)
			}
		}
	}
	margin := maxOffset.Microseconds()
	w = window{max(w.from, floorDiv(from-margin, day)*day), min(w.to, floorDiv(to+margin, day)*day+day)}
	if w.from >= w.to {
		return nil
	}
	length := w.to - w.from
	if parts := int64(n/slabSamples) + 1; parts > 1 {
		length = max(day, floorDiv(length/parts, day)*day)
	}
	var out []window
	for at := w.from; at < w.to; at += length {
		out = append(out, window{at, min(at+length, w.to)})
	}
	return out
}

// mergeUnit reads the samples of one unit in the window w, decides about them, and passes them on. It is for units that
// contested returns. run is the range of series from the method units; read reads a series in a window.
func (m *sampleMerger) mergeUnit(ctx context.Context, set *sampleSet, run [2]int, w window, read func(*sampleSeries, window, func(*vector.Batch) error) error) error {
	list := set.list[run[0]:run[1]]
	u := m.p.unitOf(&list[0])
	c := m.claimsOf(u.resource)
	c.begin(u.source)
	var origins []healthdata.Origin
	for i := range list {
		if o := list[i].Key.Origin; !slices.Contains(origins, o) {
			origins = append(origins, o)
		}
	}
	slices.SortFunc(origins, compareOrigins)
	for _, slab := range slabs(list, w) {
		if err := ctx.Err(); err != nil {
			return err
		}
		d := decider{p: m.p, unit: u, resource: m.p.resources[u.resource], origins: origins, c: c, across: m.p.merge}
		wide := window{max(w.from, slab.from-mergeMargin), min(w.to, slab.to+mergeMargin)}
		for i := range list {
			n := int32(slices.Index(origins, list[i].Key.Origin))
			d.first = append(d.first, len(d.items))
			if err := read(&list[i], wide, func(b *vector.Batch) error { d.add(b, n); return nil }); err != nil {
				return err
			}
		}
		d.decide()
		for i := range list {
			at := d.first[i]
			err := read(&list[i], wide, func(b *vector.Batch) error {
				made := d.out[at : at+b.N]
				at += b.N
				return m.emitDecided(b, made, slab, set.originOf(list[i].Key.Origin), func(n int32) int {
					if n == originOfNone {
						return -1
					}
					return set.originOf(origins[n])
				})
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func compareOrigins(a, b healthdata.Origin) int {
	return cmp.Or(cmp.Compare(a.App, b.App), bytes.Compare(a.Device[:], b.Device[:]))
}

// emitDecided passes on the samples of b inside the window slab, weighted by their decisions made. origin is the index
// of the samples' origin in the log, and name converts an origin of a decision to such an index.
func (m *sampleMerger) emitDecided(b *vector.Batch, made []decision, slab window, origin int, name func(int32) int) error {
	w := window{max(slab.from, m.p.window.from), min(slab.to, m.p.window.to)}
	m.kept, m.shares = m.kept[:0], m.shares[:0]
	cut := false
	for i := range b.N {
		if b.Index[i] < w.from || b.Index[i] >= w.to {
			continue
		}
		d := &made[i]
		if m.log != nil {
			m.log.add(m.verdict(b, i, d, origin, name), 1)
		}
		if d.share <= 0 {
			continue
		}
		m.kept, m.shares = append(m.kept, int32(i)), append(m.shares, d.share)
		cut = cut || d.share < 1
	}
	if !cut {
		m.shares = m.shares[:0]
	}
	return m.passOn(b)
}

// verdict converts the decision d about sample i of b to its form in the explanation. origin and name are those of
// emitDecided.
func (m *sampleMerger) verdict(b *vector.Batch, i int, d *decision, origin int, name func(int32) int) verdict {
	v := verdict{source: b.Source, origin: origin, resource: b.Resource, from: b.Index[i], to: b.Index[i], unit: "interval", used: usedAll, better: -1, betterOrigin: -1}
	if m.p.resources[b.Resource].Shape == healthdata.Discrete {
		v.from = floorDiv(b.Index[i], hour) * hour
		v.to, v.unit = v.from+hour, "hour"
	} else if b.End != nil && b.End[i] != series.NoEnd && b.End[i] > b.Start[i] {
		v.to += b.End[i] - b.Start[i]
	}
	switch {
	case d.share <= 0:
		v.used = usedNone
	case d.share < 1:
		v.used = usedPart
	default:
		return v
	}
	v.better, v.rule = int(d.better), d.rule
	if v.better == b.Source {
		v.betterOrigin = name(d.origin)
	}
	return v
}
