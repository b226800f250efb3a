package labresult

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// SameTest reports whether two results are of the same test: they have the same group, none or common ordered markers,
// and the same first of these that both have: LOINC code, lab's code, slug, name.
func (r *Result) SameTest(o *Result) bool {
	apart := len(r.SourceMarkers) > 0 && len(o.SourceMarkers) > 0 && !slices.ContainsFunc(r.SourceMarkers, func(m SourceMarker) bool {
		return slices.ContainsFunc(o.SourceMarkers, func(n SourceMarker) bool { return m.MarkerID == n.MarkerID })
	})
	if r.Group != o.Group || apart {
		return false
	}
	for _, codes := range [][2]string{
		{rules.TextOf(r.LOINC), rules.TextOf(o.LOINC)}, {rules.TextOf(r.ProviderID), rules.TextOf(o.ProviderID)}, {r.Slug, o.Slug},
	} {
		if codes[0] != "" && codes[1] != "" {
			return codes[0] == codes[1]
		}
	}
	return r.Name == o.Name
}

func (m *Missing) asResult() *Result {
	return &Result{Name: m.Name, Slug: m.Slug, LOINC: m.LOINC, ProviderID: m.ProviderID, SourceMarkers: m.SourceMarkers, Group: m.Group}
}

// counterparts returns for each result of a the index of the result of b that it replaces; -1 for none. Results of a
// test that a and b have equally often are paired in their order. Otherwise a test was measured several times, and only
// results with equal times are paired.
func counterparts(a, b []Result) []int {
	positions := func(list []Result, of *Result) (out []int) {
		for i := range list {
			if list[i].SameTest(of) {
				out = append(out, i)
			}
		}
		return out
	}
	out := make([]int, len(a))
	for i := range a {
		out[i] = -1
		mine, theirs := positions(a, &a[i]), positions(b, &a[i])
		if len(mine) == len(theirs) {
			out[i] = theirs[slices.Index(mine, i)]
			continue
		}
		for _, j := range theirs {
			if a[i].Timestamp != nil && b[j].Timestamp != nil && a[i].Timestamp.Equal(b[j].Timestamp.Time) && !slices.Contains(out[:i], j) {
				out[i] = j
				break
			}
		}
	}
	return out
}

// Join returns the report of an order: the laboratory's report with the attached results, which replace the results of
// the same tests. A result is missing if one of the reports says so and neither has it. The metadata is that of the
// laboratory's report. Join changes neither report.
func Join(lab, attached Report) Report {
	out := lab
	out.SampleInformation = maps.Clone(lab.SampleInformation)
	added := renameSamples(attached, &out)
	out.Results = slices.Clone(lab.Results)
	for i, j := range counterparts(added, lab.Results) {
		if j >= 0 {
			out.Results[j] = added[i]
		} else {
			out.Results = append(out.Results, added[i])
		}
	}
	out.MissingResults = nil
	if lab.MissingResults != nil {
		out.MissingResults = []Missing{}
	}
	for _, m := range slices.Concat(lab.MissingResults, attached.MissingResults) {
		key := m.asResult()
		found := slices.ContainsFunc(out.Results, func(r Result) bool { return r.SameTest(key) })
		listed := slices.ContainsFunc(out.MissingResults, func(o Missing) bool { return o.asResult().SameTest(key) })
		if !found && !listed {
			out.MissingResults = append(out.MissingResults, m)
		}
	}
	return out
}

// renameSamples adds the samples of a report to another one, under new keys where that has other samples with the same
// keys. It returns the results of from with the new keys.
func renameSamples(from Report, to *Report) []Result {
	results := slices.Clone(from.Results)
	for _, id := range slices.Sorted(maps.Keys(from.SampleInformation)) {
		sample, key := from.SampleInformation[id], id
		for n := 2; ; n++ {
			have, ok := to.SampleInformation[key]
			if !ok || reflect.DeepEqual(have, sample) {
				break
			}
			key = fmt.Sprintf("%s-%d", id, n)
		}
		if to.SampleInformation == nil {
			to.SampleInformation = map[string]SampleData{}
		}
		to.SampleInformation[key] = sample
		for i := range results {
			if s := from.Results[i].SourceSampleID; s != nil && *s == id {
				results[i].SourceSampleID = &key
			}
		}
	}
	return results
}

// Outdated compares the laboratory's report now with its report before. It returns for each attached result whether now
// replaces it: now has a new or changed result of the test, or says that it is missing, or does not have it any more.
// ignored are the new results of now that replace no attached result, because preliminary returns true for both.
func Outdated(attached []Result, before, now Report, preliminary func(lab, attached *Result) bool) (outdated []bool, ignored []int) {
	outdated = make([]bool, len(attached))
	was, is := counterparts(attached, before.Results), counterparts(attached, now.Results)
	for i := range attached {
		a := &attached[i]
		if j := is[i]; j >= 0 {
			r := &now.Results[j]
			repeated := slices.ContainsFunc(before.Results, func(b Result) bool { return b.SameTest(r) && r.sameMeasurement(b) })
			switch {
			case r.CorrectedAt != nil:
				outdated[i] = true
			case repeated:
			case preliminary(r, a):
				ignored = append(ignored, j)
			default:
				outdated[i] = true
			}
			continue
		}
		if slices.ContainsFunc(now.Results, func(r Result) bool { return r.SameTest(a) }) {
			continue // of several measurements, none is known to be the attached one
		}
		k := slices.IndexFunc(now.MissingResults, func(m Missing) bool { return m.asResult().SameTest(a) })
		if k < 0 {
			outdated[i] = was[i] >= 0
			continue
		}
		m := &now.MissingResults[k]
		outdated[i] = !slices.ContainsFunc(before.MissingResults, func(b Missing) bool {
			return b.asResult().SameTest(a) && b.InferredFailureType == m.InferredFailureType && rules.TextOf(b.Note) == rules.TextOf(m.Note)
		})
	}
	return outdated, ignored
}

func (r *Result) sameMeasurement(o Result) bool {
	return r.sameFinding(o) && (r.Timestamp == nil) == (o.Timestamp == nil) && (r.Timestamp == nil || r.Timestamp.Equal(o.Timestamp.Time))
}

// Equal reports whether two results have the same JSON, so that a stored result can be compared with a received one.
func (r Result) Equal(o Result) bool {
	a, errA := json.Marshal(r)
	b, errB := json.Marshal(o)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}
