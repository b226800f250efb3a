package orders

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// TransactionResults returns the results of a whole testing journey: what a later
// order found replaces what an earlier one did. NotFound before any result.
func (s *Service) TransactionResults(ctx context.Context, team healthlab.TeamID, id TransactionID) (OrderResults, error) {
	results, _, err := s.TransactionRecords(ctx, team, id)
	return results, err
}

// TransactionRecords returns the results of a transaction as [Service.TransactionResults] does, and
// the orders that have any, oldest first: at least one.
func (s *Service) TransactionRecords(ctx context.Context, team healthlab.TeamID, id TransactionID) (OrderResults, []Record, error) {
	t, err := s.Transaction(ctx, team, id)
	if err != nil {
		return OrderResults{}, nil, err
	}
	var parts []OrderResults
	var of []Record
	transaction := OrderTransaction{ID: t.ID, Status: t.Status}
	for _, m := range t.Orders {
		transaction.Orders = append(transaction.Orders, m.TransactionMember)
		r, err := s.store.Get(ctx, team, m.ID)
		if err != nil {
			return OrderResults{}, nil, fmt.Errorf("get transaction results: %w", err)
		}
		if r.HasResults() {
			parts, of = append(parts, *r.Results), append(of, r)
		}
	}
	if len(parts) == 0 {
		return OrderResults{}, nil, rules.Missing(ResultNotFound, "the order transaction has no result yet")
	}
	return MergeResults(transaction, parts), of, nil
}

// MergeResults joins the results of the orders of a transaction, oldest first; there
// is at least one. A later order's results replace those of earlier ones of the same
// LOINC code, else lab's code, else slug; those of one order stay side by side, as the
// lab reported them. What is missing is what the latest misses, and what an earlier
// one missed and no later one reports. The head is the latest's, with the notes of all;
// once the transaction is completed, its status is final, or corrected if one of the
// reports is. It is pure.
func MergeResults(t OrderTransaction, parts []OrderResults) OrderResults {
	latest := parts[len(parts)-1]
	out := OrderResults{Metadata: latest.Metadata, Results: []LabResult{}, MissingResults: []MissingResult{}, OrderTransaction: &t}
	var notes []string
	for _, p := range parts {
		if n := rules.TextOf(p.Metadata.Notes); n != "" && !slices.Contains(notes, n) {
			notes = append(notes, n)
		}
		out.Results = supersede(out.Results, p.Results)
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
			found := i < len(parts)-1 && slices.ContainsFunc(out.Results, func(r LabResult) bool { return r.Key() == key })
			listed := slices.ContainsFunc(later, func(have MissingResult) bool { return have.Key() == key })
			if !found && !listed {
				out.MissingResults = append(out.MissingResults, m)
			}
		}
	}
	out.Metadata.Notes = nonEmpty(strings.Join(notes, "\n"))
	worst := Worst(out.Results)
	out.Metadata.Interpretation = &worst
	out.Metadata.Status = ResultPartial
	if t.Status == TransactionCompleted {
		out.Metadata.Status = ResultFinal
		if slices.ContainsFunc(parts, func(p OrderResults) bool { return p.Metadata.Status == ResultCorrected }) {
			out.Metadata.Status = ResultCorrected
		}
	}
	return out
}

// supersede returns the results so far with those of a later order, each in the place of
// the one that it replaces, if any.
func supersede(have, later []LabResult) []LabResult {
	news := map[string][]LabResult{}
	for _, r := range later {
		news[r.Key()] = append(news[r.Key()], r)
	}
	out := make([]LabResult, 0, len(have)+len(later))
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

// Key names a result across orders: its LOINC code, else the lab's code, the slug or the
// name.
func (r *LabResult) Key() string { return resultKey(r.LOINC, r.ProviderID, r.Slug, r.Name) }

// findingKey names a result within one order: isolates have the same codes in different
// groups.
func (r *LabResult) findingKey() string { return r.Group + " " + r.Key() }

// Key names a missing result as [LabResult.Key] names one that is there.
func (m *MissingResult) Key() string { return resultKey(m.LOINC, m.ProviderID, m.Slug, m.Name) }

// resultKey is the code of a result; its name, if it has none.
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
