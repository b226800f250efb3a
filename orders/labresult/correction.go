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

// MarkCorrected sets PreviousResult and CorrectedAt of each result in a corrected report that differs from the
// previous report; if CorrectedAt of any result is set, only of those results. Results that are unchanged keep
// the marks of an earlier correction. Several results with the same code are compared in their order. The
// second value lists the corrected markers.
func MarkCorrected(before, corrected []Result, at healthlab.Time) ([]Result, []CorrectedMarker) {
	named := slices.ContainsFunc(corrected, func(r Result) bool { return r.CorrectedAt != nil })
	return mark(before, corrected, at, func(r, _ *Result) bool { return !named || r.CorrectedAt != nil })
}

// MarkChanged is [MarkCorrected] for a report that is not a correction as a whole: only results whose
// CorrectedAt is set are corrections.
func MarkChanged(before, changed []Result, at healthlab.Time) ([]Result, []CorrectedMarker) {
	return mark(before, changed, at, func(r, was *Result) bool { return was != nil && r.CorrectedAt != nil })
}

// mark sets PreviousResult and CorrectedAt of each result that differs from the previous report, or clears both
// if corrects returns false for it. was is nil for a new result.
func mark(before, now []Result, at healthlab.Time, corrects func(r, was *Result) bool) ([]Result, []CorrectedMarker) {
	earlier := map[string][]Result{}
	for _, r := range before {
		earlier[r.Finding()] = append(earlier[r.Finding()], r)
	}
	out := slices.Clone(now)
	var changed []CorrectedMarker
	for i := range out {
		r := &out[i]
		var was *Result
		if rest := earlier[r.Finding()]; len(rest) > 0 {
			was, earlier[r.Finding()] = &rest[0], rest[1:]
		}
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

func (r *Result) sameFinding(o Result) bool {
	return r.Result == o.Result && r.Type == o.Type && r.Interpretation == o.Interpretation &&
		slices.Equal(r.Codes, o.Codes) && rules.TextOf(r.Unit) == rules.TextOf(o.Unit) && rules.TextOf(r.ReferenceRange) == rules.TextOf(o.ReferenceRange)
}

// AllCriticalIn reports whether every critical result of a report was critical in the previous report too.
func AllCriticalIn(before, now Report) bool {
	return !slices.ContainsFunc(now.Results, func(r Result) bool {
		return r.Interpretation == Critical && !slices.ContainsFunc(before.Results, func(b Result) bool {
			return b.Interpretation == Critical && b.Finding() == r.Finding()
		})
	})
}
