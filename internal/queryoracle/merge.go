package queryoracle

import (
	"cmp"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// merge applies an overlap policy (other than all) to rows of several sources, before they are grouped. A row of
// steps loses the seconds that a preferred origin of its source covers; under the default policy also those that a
// preferred source covers. Any other row is removed if a preferred row is in the same local hour.
func (q *Question) merge(rows []row) []row { //nolint:funlen // one case a kind of resource, from scratch
	if q.policy == "all" {
		return rows
	}
	days := q.originDays(rows)
	var out []row
	for i := range rows {
		r := rows[i]
		var own, rivals []*row
		for k := range rows {
			switch o := &rows[k]; {
			case q.sameSource(o, &r):
				if k != i && o.key.Part == r.key.Part {
					own = append(own, o)
				}
			case (q.policy == "" || q.policy == "merge") && q.better(o.key, r.key) < 0:
				rivals = append(rivals, o)
			}
		}
		kept := 1.0
		switch {
		case q.resource != "steps":
			hour := func(o *row) bool { return truncate("hour", 1, o.at()).Equal(truncate("hour", 1, r.at())) }
			if slices.ContainsFunc(rivals, hour) {
				kept = 0
			}
			for _, o := range own {
				if hour(o) && days.better(o, &r) && o.key.Origin != r.key.Origin {
					kept = 0
				}
			}
		case r.s.End <= r.s.Time:
			at := func(o *row) bool {
				return o.s.Time == r.s.Time && o.s.End == o.s.Time || o.s.Time <= r.s.Time && r.s.Time < o.s.End
			}
			if slices.ContainsFunc(rivals, func(o *row) bool { return at(o) || o.s.Time == r.s.Time }) {
				kept = 0
			}
			for _, o := range own {
				if at(o) && o.key.Origin != r.key.Origin && days.better(o, &r) {
					kept = 0
				}
			}
		default:
			seconds := (r.s.End - r.s.Time) / 1e6
			lost := make([]bool, seconds)
			lose := func(o *row) {
				for s := max(0, (o.s.Time-r.s.Time)/1e6); s < min(seconds, (o.s.End-r.s.Time)/1e6); s++ {
					lost[s] = true
				}
			}
			for _, o := range rivals {
				lose(o)
			}
			for _, o := range own {
				if o.s.End > o.s.Time && days.better(o, &r) {
					lose(o)
				}
			}
			free := 0
			for _, l := range lost {
				if !l {
					free++
				}
			}
			kept = float64(free) / float64(seconds)
		}
		if kept > 0 {
			r.s.Value *= kept
			r.lost = 1 - kept
			out = append(out, r)
		}
	}
	return out
}

func (q *Question) sameSource(a, b *row) bool {
	return a.key.Provider == b.key.Provider && a.key.SourceType == b.key.SourceType
}

// originDays is the rank of each origin (app and device) of a source on each local day; the rank of the preferred
// one is 0.
type originDays map[string]map[healthdata.Origin]int

func localDay(r *row) string {
	return r.key.Provider + "/" + string(r.key.SourceType) + "/" + r.key.Part + "/" + r.at().Format(time.DateOnly)
}

func (q *Question) originDays(rows []row) originDays {
	type told struct {
		seconds map[int64]bool
		rank    uint32
		last    int64
	}
	days := map[string]map[healthdata.Origin]*told{}
	until := map[string]map[int64]bool{} // seconds of an origin count on one day only
	sorted := slices.SortedFunc(slices.Values(rows), func(a, b row) int { return cmp.Compare(a.s.Time, b.s.Time) })
	for i := range sorted {
		r := &sorted[i]
		day := days[localDay(r)]
		if day == nil {
			day = map[healthdata.Origin]*told{}
			days[localDay(r)] = day
		}
		t := day[r.key.Origin]
		if t == nil {
			t = &told{seconds: map[int64]bool{}}
			day[r.key.Origin] = t
		}
		if r.s.Rank > t.rank || r.s.Rank == t.rank && r.s.Time > t.last {
			t.rank, t.last = r.s.Rank, r.s.Time
		}
		if q.resource != "steps" {
			t.seconds[r.wall/3600e6] = true
			continue
		}
		id := r.key.Provider + "/" + string(r.key.SourceType) + "/" + r.key.Origin.App + r.key.Origin.Device.String()
		if until[id] == nil {
			until[id] = map[int64]bool{}
		}
		for s := r.s.Time / 1e6; s < r.s.End/1e6; s++ {
			if !until[id][s] {
				until[id][s], t.seconds[s] = true, true
			}
		}
	}
	out := originDays{}
	for id, day := range days {
		var list []healthdata.Origin
		for o := range day {
			list = append(list, o)
		}
		slices.SortFunc(list, func(a, b healthdata.Origin) int {
			x, y := day[a], day[b]
			return cmp.Or(cmp.Compare(len(y.seconds), len(x.seconds)), cmp.Compare(y.rank, x.rank), cmp.Compare(y.last, x.last), a.Compare(b))
		})
		out[id] = map[healthdata.Origin]int{}
		for i, o := range list {
			out[id][o] = i
		}
	}
	return out
}

// better reports whether row a is preferred where it overlaps row b of the same source.
func (d originDays) better(a, b *row) bool {
	x, y := d[localDay(a)][a.key.Origin], d[localDay(b)][b.key.Origin]
	c := cmp.Or(cmp.Compare(x, y), a.key.Origin.Compare(b.key.Origin))
	if c == 0 {
		c = cmp.Or(cmp.Compare(a.s.End-a.s.Time, b.s.End-b.s.Time), cmp.Compare(b.s.Rank, a.s.Rank), cmp.Compare(b.s.Time, a.s.Time))
	}
	return c < 0
}
