package fhir

import (
	"context"

	"github.com/healthlab-dev/healthlab/orders"
)

type provenanceResource struct {
	head
	Target   []reference `json:"target"`
	Recorded string      `json:"recorded"`
	Agent    []agent     `json:"agent"`
}

type agent struct {
	Type concept   `json:"type"`
	Who  reference `json:"who"`
}

// provenance returns the Provenance that names the laboratory which reported an order's results; nothing if that
// laboratory is unknown.
func (s *server) provenance(ctx context.Context, r *orders.Record) ([]match, error) {
	if !r.HasResults() {
		return nil, nil
	}
	var who reference
	switch name := r.Results.Metadata.Laboratory; {
	case r.LabTest.Lab != nil:
		who = labReference(r.LabTest.Lab)
	case name != nil && *name != "":
		who = reference{Display: *name}
	default:
		return nil, nil
	}
	p := &provenanceResource{
		head: head{ResourceType: "Provenance", ID: r.ID.String(), Meta: meta{
			LastUpdated: instant(r.LatestReportAt), Profile: []string{usCore + "provenance"},
		}},
		Target: []reference{{Reference: "DiagnosticReport/" + r.ID.String()}}, Recorded: instant(r.LatestReportAt),
		Agent: []agent{{conceptOf("http://terminology.hl7.org/CodeSystem/provenance-participant-type", "author", "Author"), who}},
	}
	results, err := s.results(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, m := range results {
		p.Target = append(p.Target, reference{Reference: "Observation/" + m.start().ID})
	}
	return []match{{resource: p, updated: r.LatestReportAt}}, nil
}
