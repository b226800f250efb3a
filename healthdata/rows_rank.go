package healthdata

import (
	"cmp"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/store"
)

// Samples of one time, of one series or of several apps and devices of one source, are ordered by when they were
// received: see [series.Attrs.Rank]. A write gives its samples a higher rank than the stored ones.

// hourMicros is one hour in microseconds. Instant samples of two apps or devices in the same hour compete, because
// readers take a whole hour from one of them.
var hourMicros = time.Hour.Microseconds()

// rival is a sample that may compete with another one. Intervals compete if they overlap, instants if they are in the
// same hour; of two that compete the higher rank wins.
type rival struct {
	from, to int64
	point    bool
	rank     uint32
	own      bool // the sample is in the series that is being written
}

func extent(from, end int64) (to int64, point bool) {
	if end != series.NoEnd && end > from {
		return end, false
	}
	return from + 1, true
}

func (r *rival) competes(o *rival) bool {
	if r.point && o.point {
		return floorTo(r.from, hourMicros) == floorTo(o.from, hourMicros)
	}
	return r.from < o.to && o.from < r.to
}

func floorTo(t, step int64) int64 { return t - ((t%step)+step)%step }

// competingRange returns the start times of samples that can compete with those of a batch.
func (w *seriesWrite) competingRange(b *series.Block) series.Range {
	r := series.Range{From: floorTo(b.Time[0], hourMicros), To: floorTo(b.Time[b.Len()-1], hourMicros) + hourMicros}
	if b.End == nil {
		return r
	}
	r.From = min(r.From, b.Time[0]-w.longest)
	for _, e := range b.End {
		r.To = max(r.To, e)
	}
	return r
}

// rivalQueries returns the queries for closed chunks of w with samples that can compete with the batch b. own reports
// whether w is the series of the batch. rivalQueries returns none if all chunks end before the batch.
func (w *seriesWrite) rivalQueries(b *series.Block, own bool) []store.Query {
	r, h := w.competingRange(b), &w.head.Value
	first := b.Time[0]
	if !own {
		first = floorTo(first, hourMicros)
	}
	if h.closed < series.MinTime || h.closed < first && (b.End == nil || h.closedEnd <= b.Time[0]) {
		return nil
	}
	from := chunkID(w.id, r.From)
	return []store.Query{w.lastClosed(from), w.chunks(from, chunkID(w.id, r.To))}
}

// dayQueries returns the queries for the chunk headers of w, the series of another app or device, on the local days of
// a batch.
func (w *seriesWrite) dayQueries(b *series.Block) []store.Query {
	margin := 2 * 24 * hourMicros
	from, to := b.Time[0]-margin, b.Time[b.Len()-1]+margin
	if w.head.Value.closed < from {
		return nil
	}
	table := headerTable.Key(store.Key{Team: w.team, User: w.user})
	before := store.Query{Key: table, By: store.ByID, From: w.id, To: chunkID(w.id, from), Desc: true, Limit: 1, Lock: store.Plain}
	return []store.Query{before, {Key: table, By: store.ByID, From: chunkID(w.id, from), To: chunkID(w.id, to), Lock: store.Plain}}
}

// arrival orders apps and devices by when their samples were received: by rank, then by the time of the last sample.
type arrival struct {
	rank uint32
	at   int64
}

func (a arrival) compare(b arrival) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.at, b.at))
}

// latestArrival returns the greatest arrival of the chunks of a series between two times in microseconds. ok is false
// if there is none.
func (w *seriesWrite) latestArrival(from, to int64) (out arrival, ok bool) {
	see := func(h *series.Header) {
		if a := (arrival{h.MaxRank, h.Stop}); h.Overlaps(from, to) && (!ok || a.compare(out) > 0) {
			out, ok = a, true
		}
	}
	for i := range w.headers {
		see(&w.headers[i])
	}
	if w.head.Value.open.N > 0 {
		see(&w.head.Value.open.Header)
	}
	return out, ok
}

// raiseRanks ranks the changed samples of a batch (list) above those of other apps and devices on each of its local
// days. changes reports which samples are new or changed. raiseRanks raises each of them, so that this app or device
// wins the day as long as one of them is stored.
func (w *seriesWrite) raiseRanks(list []series.Sample, changes []bool) {
	const day = 24 * int64(time.Hour/time.Microsecond)
	local := func(s *series.Sample) int64 { return floorTo(s.Time+int64(s.Offset)*1e6, day) }
	var until int64 // the end of the raised samples so far
	var above uint32
	for i := 0; i < len(list); {
		at, first := local(&list[i]), i
		for i < len(list) && local(&list[i]) == at {
			i++
		}
		for first < i && !changes[first] {
			first++
		}
		if first == i {
			continue
		}
		rank := w.rankOfDay(list[first].Time, at-farthestOffset, at+day+farthestOffset)
		// Of overlapping intervals in one batch the later one wins, even if it begins on the next day.
		if list[first].Time < until {
			rank = max(rank, above)
		}
		for k := first; k < i; k++ {
			if changes[k] {
				list[k].Rank = max(list[k].Rank, rank)
				end, _ := extent(list[k].Time, list[k].End)
				until, above = max(until, end), max(above, list[k].Rank)
			}
		}
	}
}

// farthestOffset is more than any offset of local time from UTC.
var farthestOffset = 18 * hourMicros

// rankOfDay returns the least rank with which samples from the time first on win against all samples that other apps
// and devices have between from and to.
func (w *seriesWrite) rankOfDay(first, from, to int64) (rank uint32) {
	for _, o := range w.siblings {
		a, ok := o.latestArrival(from, to)
		switch {
		case !ok:
		case first > a.at:
			rank = max(rank, a.rank)
		default:
			rank = max(rank, a.rank+1)
		}
	}
	return rank
}

// rivals returns the samples of w that can compete with the batch b. own reports whether w is the series of the batch.
func (w *seriesWrite) rivals(b *series.Block, own bool) ([]rival, error) {
	r := w.competingRange(b)
	var out []rival
	var block series.Block
	for _, list := range [...][]series.Chunk{w.old, w.pending()} {
		for i := range list {
			if c := &list[i]; c.Start >= r.To || c.Stop < r.From {
				continue
			}
			if err := list[i].Decode(&block); err != nil {
				return nil, err
			}
			for _, s := range block.All() {
				if s.Time < r.From || s.Time >= r.To {
					continue
				}
				to, point := extent(s.Time, s.End)
				out = append(out, rival{s.Time, to, point, s.Rank, own})
			}
		}
	}
	return out, nil
}

// rankSamples returns a batch with ranks. shared reports for each sample whether another app or device has one at its
// time; nil if there are no samples to compare with.
func (w *seriesWrite) rankSamples(b *series.Block) (ranked *series.Block, shared []bool, err error) {
	if len(w.siblings) == 0 && (b.End == nil || len(w.old) == 0 && w.head.Value.open.MaxEnd <= b.Time[0]) {
		return b, nil, nil
	}
	rivals, err := w.allRivals(b)
	if err != nil {
		return nil, nil, err
	}
	if len(rivals) == 0 && len(w.siblings) == 0 {
		return b, nil, nil
	}
	stored, err := w.storedSamples(b.Time)
	if err != nil {
		return nil, nil, err
	}
	longest := hourMicros
	for i := range rivals {
		longest = max(longest, rivals[i].to-rivals[i].from)
	}
	shared = make([]bool, b.Len())
	list, changes := make([]series.Sample, 0, b.Len()), make([]bool, b.Len())
	var before rival // the sample of the batch that ends last so far
	for i, s := range b.All() {
		v := rival{from: s.Time}
		v.to, v.point = extent(s.Time, s.End)
		at, _ := slices.BinarySearchFunc(rivals, s.Time-longest, func(r rival, t int64) int { return cmp.Compare(r.from, t) })
		for ; at < len(rivals) && rivals[at].from < max(v.to, s.Time+hourMicros); at++ {
			r := &rivals[at]
			shared[i] = shared[i] || !r.own && r.from == s.Time
			v.raiseAbove(r)
		}
		if before.to > s.Time {
			v.rank = max(v.rank, before.rank)
		}
		changes[i] = true
		if was, ok := stored[s.Time]; ok {
			rank := was.Rank
			if was.Rank = 0; was == s {
				v.rank, changes[i] = rank, false
			}
		}
		s.Rank = v.rank
		if v.to > before.to {
			before = v
		}
		list = append(list, s)
	}
	w.raiseRanks(list, changes)
	ranked = new(series.Block)
	for _, s := range list {
		ranked.Append(s)
	}
	return ranked, shared, nil
}

// raiseAbove raises the rank of r so that r wins against o, which was received earlier, if the two compete.
func (r *rival) raiseAbove(o *rival) {
	switch {
	case o.own && (o.from == r.from || o.point && r.point), !r.competes(o):
	case o.from >= r.from:
		r.rank = max(r.rank, o.rank+1)
	case !r.point || !o.point:
		r.rank = max(r.rank, o.rank)
	}
}

// allRivals returns the samples of all origins that can compete with a batch, by start time.
func (w *seriesWrite) allRivals(b *series.Block) ([]rival, error) {
	out, err := w.rivals(b, true)
	if err != nil {
		return nil, err
	}
	for _, s := range w.siblings {
		more, err := s.rivals(b, false)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	slices.SortFunc(out, func(a, b rival) int { return cmp.Compare(a.from, b.from) })
	return out, nil
}

// storedSamples returns the stored samples of the series at some times, by time. times must ascend and not be empty.
func (w *seriesWrite) storedSamples(times []int64) (map[int64]series.Sample, error) {
	out := map[int64]series.Sample{}
	var block series.Block
	for _, list := range [...][]series.Chunk{w.old, w.pending()} {
		for i := range list {
			if !list[i].Overlaps(times[0], times[len(times)-1]+1) {
				continue
			}
			if err := list[i].Decode(&block); err != nil {
				return nil, err
			}
			for _, s := range block.All() {
				if _, ok := slices.BinarySearch(times, s.Time); ok {
					out[s.Time] = s
				}
			}
		}
	}
	return out, nil
}

// publishedOutcome corrects the outcome of a merge to what readers see. A new sample counts as changed if another app
// or device had a sample at its time (shared), because readers saw a value at that time before.
func publishedOutcome(o *series.Outcome, shared []bool) {
	for i, s := range shared {
		if s && o.States[i] == series.New {
			o.States[i] = series.Changed
			o.New--
			o.Changed++
		}
	}
}

// originTold has the samples of one origin at some times before a removal, and which of them were removed.
type originTold struct {
	key    SeriesKey
	before map[int64]series.Sample
	gone   []series.Gone
}

type originsTold []originTold

// visibleChanges returns the samples that readers no longer see after a removal, and the samples of other apps and
// devices that readers see in place of removed ones.
func (o originsTold) visibleChanges() (gone []series.Gone, shown []ShownSample) {
	type place struct {
		key SeriesKey
		at  int64
	}
	latest := func(p place, left func(i int) bool) (best int, s series.Sample) {
		best = -1
		for i := range o {
			if t, ok := o[i].before[p.at]; ok && o[i].key.Published() == p.key && left(i) && (best < 0 || t.Rank > s.Rank) {
				best, s = i, t
			}
		}
		return best, s
	}
	removed := func(i int, at int64) bool {
		return slices.ContainsFunc(o[i].gone, func(g series.Gone) bool { return g.Time == at })
	}
	done := map[place]bool{}
	for i := range o {
		for _, g := range o[i].gone {
			p := place{o[i].key.Published(), g.Time}
			if done[p] {
				continue
			}
			done[p] = true
			if was, _ := latest(p, func(int) bool { return true }); !removed(was, g.Time) {
				continue // readers saw the sample of another origin
			}
			if next, s := latest(p, func(i int) bool { return !removed(i, g.Time) }); next >= 0 {
				shown = append(shown, ShownSample{o[next].key, s})
			} else {
				gone = append(gone, g)
			}
		}
	}
	slices.SortFunc(shown, func(a, b ShownSample) int {
		return cmp.Or(a.Key.Compare(b.Key), cmp.Compare(a.Sample.Time, b.Sample.Time))
	})
	return gone, shown
}
