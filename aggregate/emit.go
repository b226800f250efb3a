package aggregate

import (
	"slices"

	"github.com/healthlab-dev/healthlab/aggregate/internal/vector"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// emit adds the buckets of a slab to the result.
func (s *slab) emit(out *grid) error {
	if s.accs == nil {
		return nil
	}
	hits := make([]int32, 0, min(len(s.starts), 1024))
	for k := range s.winner {
		if s.winner[k] >= 0 {
			hits = append(hits, int32(k))
		}
	}
	if s.b.p.grouped && out.n+len(hits) > s.b.limit {
		return errRows(s.b.limit)
	}
	for k := range s.b.p.keys {
		v := &out.keys[k].v
		if k == s.b.p.trunc {
			v.Ints = slices.Grow(v.Ints, len(hits))
			for _, h := range hits {
				v.Ints = append(v.Ints, s.starts[h])
			}
			v.OwnInts = v.Ints
			continue
		}
		for range hits {
			v.Add(s.lane.keys[k])
		}
	}
	for k := range s.b.p.aggs {
		emitColumn(&out.aggs[k].v, s.b.p.aggs[k].fn, s.accs[s.b.aggs[k]], hits)
	}
	out.n += len(hits)
	if s.b.p.traced {
		for _, h := range hits {
			out.wins = append(out.wins, win{at: s.starts[h], source: int(s.winner[h])})
		}
	}
	return nil
}

func emitColumn(v *vector.Vec, fn Func, accs []series.Acc, hits []int32) {
	if fn == Count {
		v.Ints = slices.Grow(v.Ints, len(hits))
		for _, h := range hits {
			v.Ints = append(v.Ints, int64(accs[h].N))
		}
		v.OwnInts = v.Ints
		return
	}
	v.Floats = slices.Grow(v.Floats, len(hits))
	for _, h := range hits {
		a := &accs[h]
		var x float64
		switch fn {
		case Sum:
			x = a.Sum.Float64()
		case Mean:
			x = a.Mean()
		case Min:
			x = a.Min
		case Max:
			x = a.Max
		case Oldest:
			x = a.First
		default:
			x = a.Last
		}
		if v.Nulls != nil || x-x != 0 {
			v.Add(vector.FloatCell(x))
			continue
		}
		v.Floats = append(v.Floats, x)
		v.OwnFloats = v.Floats
	}
}
