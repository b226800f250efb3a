package orders

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/healthlab-dev/healthlab"
)

// TransactionResults returns the results of a whole testing journey: what a later
// order found replaces what an earlier one did. NotFound before any result.
func (s *Service) TransactionResults(ctx context.Context, team healthlab.TeamID, id TransactionID) (OrderResults, error) {
	results, _, err := s.merged(ctx, team, id)
	return results, err
}

// merged returns the results of a transaction, and the orders that have any, oldest
// first: at least one.
func (s *Service) merged(ctx context.Context, team healthlab.TeamID, id TransactionID) (OrderResults, []Record, error) {
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
		if r.Results != nil && patientKnown(r.Facts()) {
			parts, of = append(parts, *r.Results), append(of, r)
		}
	}
	if len(parts) == 0 {
		return OrderResults{}, nil, missing(ResultNotFound, "the order transaction has no result yet")
	}
	return MergeResults(transaction, parts), of, nil
}

// MergeResults joins the results of the orders of a transaction, oldest first; there
// is at least one. A later result replaces an earlier one of the same LOINC code, else
// lab's code, else slug. What is missing is what the latest misses, and what an earlier
// one missed and nobody has found since. The head is the latest's, final once the
// transaction is completed. It is pure.
func MergeResults(t OrderTransaction, parts []OrderResults) OrderResults {
	latest := parts[len(parts)-1]
	out := OrderResults{Metadata: latest.Metadata, Results: []LabResult{}, MissingResults: []MissingResult{}, OrderTransaction: &t}
	for _, p := range parts {
		for _, r := range p.Results {
			key := resultKey(r.LOINC, r.ProviderID, r.Slug)
			if i := slices.IndexFunc(out.Results, func(have LabResult) bool {
				return resultKey(have.LOINC, have.ProviderID, have.Slug) == key
			}); i >= 0 {
				out.Results[i] = r
			} else {
				out.Results = append(out.Results, r)
			}
		}
		if p.SampleInformation != nil {
			if out.SampleInformation == nil {
				out.SampleInformation = map[string]SampleData{}
			}
			maps.Copy(out.SampleInformation, p.SampleInformation)
		}
	}
	for i, p := range slices.Backward(parts) {
		for _, m := range p.MissingResults {
			key := resultKey(m.LOINC, m.ProviderID, m.Slug)
			found := i < len(parts)-1 && slices.ContainsFunc(out.Results, func(r LabResult) bool {
				return resultKey(r.LOINC, r.ProviderID, r.Slug) == key
			})
			listed := slices.ContainsFunc(out.MissingResults, func(have MissingResult) bool {
				return resultKey(have.LOINC, have.ProviderID, have.Slug) == key
			})
			if !found && !listed {
				out.MissingResults = append(out.MissingResults, m)
			}
		}
	}
	worst := Worst(out.Results)
	out.Metadata.Interpretation = &worst
	out.Metadata.Status = ResultPartial
	if t.Status == TransactionCompleted {
		out.Metadata.Status = ResultFinal
	}
	return out
}

// resultKey names a result across orders.
func resultKey(loinc, providerID *string, slug string) string {
	switch {
	case loinc != nil && *loinc != "":
		return "loinc " + *loinc
	case providerID != nil && *providerID != "":
		return "code " + *providerID
	}
	return "slug " + slug
}
