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

// Options says how one laboratory speaks. The zero value, and nil, mean the defaults.
type Options struct {
	// LabSlug is the laboratory's slug in the catalogue, and names its journal. A result for an order at
	// another one is held for review. Default: results do not say whose they are.
	LabSlug string
	// ReviewTeam reviews results that name no order of ours, through the exchange.Service. Default: they wait in the journal, for [Backend.Review].
	ReviewTeam healthlab.TeamID
	// OrderSystem is the system of our order numbers, and PatientSystem that of our patient numbers, in
	// identifiers. Defaults urn:healthlab:order and urn:healthlab:patient.
	OrderSystem, PatientSystem string
	// CodeSystem is the system of the laboratory's own test codes. Default urn:healthlab:test.
	CodeSystem string
	// Number names an order for the laboratory. It must be the same for the same order, and differ from all
	// others. Default: 16 letters and digits made from the order's id.
	Number func(o orders.Order) string
	// Tests maps what reports call a test to how it was ordered (the code of the marker), where the two
	// differ.
	Tests map[string]string
	// Insurance returns the record that an order is billed to, such as orders.Service.People().Insurance.
	// Default: orders go out without insurance.
	Insurance func(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (people.Coverage, error)
	// Reports keeps PDF files that come with reports of an order: the method StoreReport of an
	// orders.Service. Default: they stay in the journal, in the bundle that they came in.
	Reports func(ctx context.Context, team healthlab.TeamID, order orders.OrderID, id string, pdf []byte) error
	// MaxBytes bounds a bundle that comes in. Default 16 MiB.
	MaxBytes int64
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Log receives what went wrong. Default slog.Default().
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
