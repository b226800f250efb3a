package fhirlab

import (
	"context"
	"encoding/base32"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// Options describes one laboratory. The zero value, and nil, mean the defaults.
type Options struct {
	// LabSlug is the laboratory's slug in the catalogue, and the name of its journal. A result for an order that went to
	// another laboratory is held for review. Default: results name no laboratory, and are not checked.
	LabSlug string
	// ReviewTeam is the team that reviews results which name no order of this service. They go to its review queue in the
	// exchange.Service. Default: they stay in the journal, for [Backend.Review].
	ReviewTeam healthlab.TeamID
	// OrderSystem and PatientSystem are the identifier systems of this service's order numbers and patient numbers.
	// Defaults urn:healthlab:order and urn:healthlab:patient.
	OrderSystem, PatientSystem string
	// CodeSystem is the system of the laboratory's own test codes. Default urn:healthlab:test.
	CodeSystem string
	// Number returns the order number for the laboratory. It must be the same for the same order, and unique.
	// Default: 16 letters and digits made from the order's id.
	Number func(o orders.Order) string
	// Tests maps test codes in reports to test codes in orders (those of markers), where the two differ.
	Tests map[string]string
	// Insurance returns the insurance record to which an order is billed, such as orders.Service.People().Insurance.
	// Default: orders are sent without insurance.
	Insurance func(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (people.Coverage, error)
	// Reports stores the PDF file of a report that belongs to an order: [orders.Files.StoreReport]. It is not called
	// for a report with several files. Default: the files stay in the journal, inside the bundle.
	Reports func(ctx context.Context, team healthlab.TeamID, order orders.OrderID, id string, pdf []byte) error
	// MaxBytes is the largest accepted bundle, in bytes. Default 16 MiB.
	MaxBytes int64
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Log receives errors that have no caller. Default slog.Default().
	Log *slog.Logger
}

func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	for to, value := range map[*string]string{
		&out.OrderSystem: "urn:healthlab:order", &out.PatientSystem: "urn:healthlab:patient", &out.CodeSystem: "urn:healthlab:test",
	} {
		if *to == "" {
			*to = value
		}
	}
	if out.Number == nil {
		out.Number = func(o orders.Order) string { return base32.StdEncoding.EncodeToString(o.ID.UUID[6:]) }
	}
	if out.MaxBytes <= 0 {
		out.MaxBytes = 16 << 20
	}
	if out.Now == nil {
		out.Now = time.Now
	}
	if out.Log == nil {
		out.Log = slog.Default()
	}
	return out
}

func testCode(m *catalogue.Marker) string {
	if m.ProviderID != nil && *m.ProviderID != "" {
		return *m.ProviderID
	}
	return m.Slug
}
