package labresult

import (
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// CorrectedMarker names a marker whose result a report corrected. It does not contain the result.
type CorrectedMarker struct {
	Name  string  `json:"name"`
	Slug  string  `json:"slug"`
	LOINC *string `json:"loinc"`
}

// MarkCorrected compares the results of a corrected report with those of the previous report, before. It sets
// PreviousResult and CorrectedAt of each result that differs. If the lab set CorrectedAt of any result, only results
// with CorrectedAt count as corrected. A result that is unchanged keeps the marks of an earlier correction. Several
// results with the same code are compared in their order. MarkCorrected returns the marked results and the corrected
// markers.
func MarkCorrected(before, corrected []Result, at healthlab.Time) ([]Result, []CorrectedMarker) {
	named := slices.ContainsFunc(corrected, func(r Result) bool { return r.CorrectedAt != nil })
	return mark(before, corrected, at, func(r, _ *Result) bool { return !named || r.CorrectedAt != nil })
}

// MarkChanged is [MarkCorrected] for a report that is not a correction as a whole: only results that were in the
// previous report, differ, and have CorrectedAt count as corrected.
func MarkChanged(before, changed []Result, at healthlab.Time) ([]Result, []CorrectedMarker) {
	return mark(before, changed, at, func(r, was *Result) bool { return was != nil && r.CorrectedAt != nil })
}

// mark compares now with the previous results, before. For each result that differs, it sets PreviousResult and
// CorrectedAt if corrects returns true, and clears them otherwise. corrects gets the result and the previous one; was
// is nil if the result is new.
func mark(before, now []Result, at healthlab.Time, corrects func(r, was *Result) bool) ([]Result, []CorrectedMarker) {
	earlier := earlierOf(before, now)
	out := slices.Clone(now)
	var changed []CorrectedMarker
	for i := range out {
		r, was := &out[i], earlier[i]
		if was != nil && r.sameFinding(*was) {
			r.PreviousResult, r.CorrectedAt = was.PreviousResult, was.CorrectedAt
			continue
		}
		corrected := corrects(r, was)
		r.PreviousResult, r.CorrectedAt = nil, nil
		if !corrected {
			continue
		}
		if was != nil {
			r.PreviousResult = &was.Result
		}
		r.CorrectedAt = &at
		changed = append(changed, CorrectedMarker{Name: r.Name, Slug: r.Slug, LOINC: r.LOINC})
	}
	return out, changed
}

// earlierOf returns for each result of a report the one with the same Finding in the previous report, before; nil if it
// is new. If there is none, a result with the same group and lab's code counts if only one of the two has a LOINC code.
func earlierOf(before, now []Result) []*Result {
	out, used := make([]*Result, len(now)), make([]bool, len(before))
	take := func(same func(was, r *Result) bool) {
		for i := range now {
			for j := range before {
				if out[i] == nil && !used[j] && same(&before[j], &now[i]) {
					out[i], used[j] = &before[j], true
				}
			}
		}
	}
	take(func(was, r *Result) bool { return was.Finding() == r.Finding() })
	take(func(was, r *Result) bool {
		code := rules.TextOf(r.ProviderID)
		return was.Group == r.Group && code != "" && code == rules.TextOf(was.ProviderID) && (rules.TextOf(was.LOINC) == "") != (rules.TextOf(r.LOINC) == "")
	})
	return out
}

func (r *Result) sameFinding(o Result) bool {
	return r.Result == o.Result && r.Type == o.Type && r.Interpretation == o.Interpretation &&
		slices.Equal(r.Codes, o.Codes) && rules.TextOf(r.Unit) == rules.TextOf(o.Unit) && rules.TextOf(r.ReferenceRange) == rules.TextOf(o.ReferenceRange)
}

// AllCriticalIn reports whether every critical result of the report now was critical in the report before too.
func AllCriticalIn(before, now Report) bool {
	return !slices.ContainsFunc(now.Results, func(r Result) bool {
		return r.Interpretation == Critical && !slices.ContainsFunc(before.Results, func(b Result) bool {
			return b.Interpretation == Critical && b.Finding() == r.Finding()
		})
	})
}
