package healthdata

import (
	"context"
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// ByPublished groups series whose keys differ only in app and device ([SeriesKey.Published]). Readers see such a group
// as one series.
func ByPublished(all []Series) [][]Series {
	slices.SortStableFunc(all, func(a, b Series) int { return a.Key.Compare(b.Key) })
	var out [][]Series
	for _, s := range all {
		if n := len(out); n > 0 && out[n-1][0].Key.Published() == s.Key.Published() {
			out[n-1] = append(out[n-1], s)
			continue
		}
		out = append(out, []Series{s})
	}
	return out
}

// ReadPublished calls visit with the samples of origins inside a range, in order of time, until visit returns false.
// The keys of origins differ only in app and device. Of several samples with one timestamp it visits the one that was
// received last. A block is valid until visit returns.
func ReadPublished(ctx context.Context, v View, origins []Series, r series.Range, visit func(*series.Block) bool) error {
	if len(origins) == 1 {
		return readSeries(ctx, v, &origins[0], r, visit)
	}
	for _, part := range splitAtChunks(origins, r) {
		blocks := make([]*series.Block, len(origins))
		for i := range origins {
			blocks[i] = new(series.Block)
			err := readSeries(ctx, v, &origins[i], part, func(b *series.Block) bool {
				for _, s := range b.All() {
					blocks[i].Append(s)
				}
				return true
			})
			if err != nil {
				return err
			}
		}
		var out series.Block
		if series.Latest(&out, blocks...); out.Len() > 0 && !visit(&out) {
			return nil
		}
	}
	return nil
}

// apartChunks is about how many chunks ReadPublished holds in memory at a time, of all apps and devices together.
const apartChunks = 64

// splitAtChunks cuts r into ranges with about apartChunks chunks of origins each.
func splitAtChunks(origins []Series, r series.Range) []series.Range {
	var starts []int64
	for i := range origins {
		for k := range origins[i].Chunks {
			if at := origins[i].Chunks[k].Start; at > r.From && at < r.To {
				starts = append(starts, at)
			}
		}
	}
	slices.Sort(starts)
	var out []series.Range
	for i := apartChunks; i < len(starts); i += apartChunks {
		if at := starts[i]; at > r.From {
			out = append(out, series.Range{From: r.From, To: at})
			r.From = at
		}
	}
	return append(out, r)
}
