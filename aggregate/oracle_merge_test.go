package aggregate_test

import (
	"fmt"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// merge is the default policy, decided second by second: a row of steps keeps the seconds
// that no better source has, any other row its local hour if no better source has a row in
// it. Only sources with equal values of the group keys provider and type compete.
func (q *question) merge(rows []oracleRow) []oracleRow {
	if q.policy != "" && q.policy != "merge" {
		return rows
	}
	lane := func(r *oracleRow) string {
		out := ""
		for _, k := range q.keys {
			if k.name == "source_provider" || k.name == "source_type" {
				out += fmt.Sprint(k.value(r), "/")
			}
		}
		return out
	}
	better := func(a, b *oracleRow) bool {
		return lane(a) == lane(b) && q.better(
			healthdata.SeriesKey{Provider: a.key.Provider, SourceType: a.key.SourceType},
			healthdata.SeriesKey{Provider: b.key.Provider, SourceType: b.key.SourceType}) < 0
	}
	var out []oracleRow
	for _, r := range rows {
		var rivals []*oracleRow
		for i := range rows {
			if better(&rows[i], &r) {
				rivals = append(rivals, &rows[i])
			}
		}
		kept := 1.0
		switch {
		case q.resource != "steps":
			for _, o := range rivals {
				if truncOracle("hour", 1, o.at()).Equal(truncOracle("hour", 1, r.at())) {
					kept = 0
				}
			}
		case r.s.End <= r.s.Time:
			for _, o := range rivals {
				if o.s.Time == r.s.Time || o.s.Time <= r.s.Time && r.s.Time < o.s.End {
					kept = 0
				}
			}
		default:
			seconds := (r.s.End - r.s.Time) / 1e6
			lost := make([]bool, seconds)
			for _, o := range rivals {
				for s := max(0, (o.s.Time-r.s.Time)/1e6); s < min(seconds, (o.s.End-r.s.Time)/1e6); s++ {
					lost[s] = true
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
