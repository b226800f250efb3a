package labresult

import (
	"maps"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Merge joins the reports of a transaction's orders, oldest first; parts must have at least one. A later order's
// results replace those of earlier orders with the same [Result.Key]; results of one order with the same key all stay.
// A result is missing if the latest report lists it as missing, or if an earlier report does and no report has it. The
// metadata is that of the latest report, with the notes of all and the worst interpretation of the joined results. Its
// status is the given one; final becomes corrected if one of the reports is corrected. Merge does not change parts.
func Merge(status Status, parts []Report) Report {
	latest := parts[len(parts)-1]
	out := Report{Metadata: latest.Metadata, Results: []Result{}, MissingResults: []Missing{}}
	var notes []string
	for _, p := range parts {
		if n := rules.TextOf(p.Metadata.Notes); n != "" && !slices.Contains(notes, n) {
			notes = append(notes, n)
		}
		out.Results = replaceResults(out.Results, p.Results)
		if p.SampleInformation != nil {
			if out.SampleInformation == nil {
				out.SampleInformation = map[string]SampleData{}
			}
			maps.Copy(out.SampleInformation, p.SampleInformation)
		}
	}
	for i, p := range slices.Backward(parts) {
		later := slices.Clone(out.MissingResults)
		for _, m := range p.MissingResults {
			key := m.Key()
			found := i < len(parts)-1 && slices.ContainsFunc(out.Results, func(r Result) bool { return r.Key() == key })
			listed := slices.ContainsFunc(later, func(have Missing) bool { return have.Key() == key })
			if !found && !listed {
				out.MissingResults = append(out.MissingResults, m)
			}
		}
	}
	out.Metadata.Notes = rules.NonEmpty(strings.Join(notes, "\n"))
	worst := Worst(out.Results)
	out.Metadata.Interpretation = &worst
	out.Metadata.Status = status
	if status == Final && slices.ContainsFunc(parts, func(p Report) bool { return p.Metadata.Status == Corrected }) {
		out.Metadata.Status = Corrected
	}
	return out
}

// replaceResults returns the results have of earlier orders with the results later of a later order. The later results
// replace the earlier ones with the same key.
func replaceResults(have, later []Result) []Result {
	news := map[string][]Result{}
	for _, r := range later {
		news[r.Key()] = append(news[r.Key()], r)
	}
	out := make([]Result, 0, len(have)+len(later))
	placed := map[string]bool{}
	for _, r := range have {
		key := r.Key()
		of, replaced := news[key]
		switch {
		case !replaced:
			out = append(out, r)
		case !placed[key]:
			out = append(out, of...)
		}
		placed[key] = placed[key] || replaced
	}
	for _, r := range later {
		if !placed[r.Key()] {
			out = append(out, r)
		}
	}
	return out
}

// Key identifies a result across orders: by its LOINC code, else the lab's code, else the slug, else the name.
func (r *Result) Key() string { return resultKey(r.LOINC, r.ProviderID, r.Slug, r.Name) }

// Finding identifies a result within one report by its group and its Key, because isolates in different groups
// may have the same codes.
func (r *Result) Finding() string { return r.Group + " " + r.Key() }

// Key identifies a missing result as [Result.Key] does a result.
func (m *Missing) Key() string { return resultKey(m.LOINC, m.ProviderID, m.Slug, m.Name) }

// resultKey returns the kind and the text of the first of these that is given: LOINC code, lab's code, slug,
// name.
func resultKey(loinc, providerID *string, slug, name string) string {
	switch {
	case loinc != nil && *loinc != "":
		return "loinc " + *loinc
	case providerID != nil && *providerID != "":
		return "code " + *providerID
	case slug != "":
		return "slug " + slug
	}
	return "name " + name
}
