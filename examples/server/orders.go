package main

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/adapters/uszips"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
)

// Values of the flag -invented: parts of the sandbox that production may use.
const (
	inventedLab       = "lab"       // the laboratory, its catalogue, its visits and its centers
	inventedRegistry  = "registry"  // insurers and diagnosis codes
	inventedMessenger = "messenger" // messages to patients are not sent
)

// addOrders adds lab orders: with an invented laboratory in a sandbox, with the laboratory that the flags name in
// production. If the flags name none, production has no lab orders.
func (s *host) addOrders(ctx context.Context, c *service.Config) error {
	if s.hl7.target == "" && !s.uses(inventedLab) {
		return nil
	}
	book, err := s.catalogue()
	if err != nil {
		return err
	}
	portal, err := s.portal()
	if err != nil {
		return err
	}
	own := sandbox.NewLab(&sandbox.LabOptions{Catalogue: book, Step: s.labStep()})
	if c.Laboratory, err = s.laboratory(ctx, own); err != nil {
		return err
	}
	c.Catalogue = book
	c.Orders = orders.Options{
		Settings: s.orderSettings, Portal: portal,
	}
	c.Exchange = exchange.Options{
		RedrawLabs: []string{labSlug}, SandboxMoves: s.sandboxSpeed > 0 || s.hl7.target != "", LabName: s.labName(),
	}
	c.Visits.Zips = uszips.Embedded()
	if s.uses(inventedLab) {
		c.Visits.Slots, c.Visits.Bookings = own, own
		if c.Visits.Centers, err = appointment.ReadCenterIndex(bytes.NewReader(exampleCenters)); err != nil {
			return err
		}
		c.Visits.Providers = []appointment.Provider{{Slug: labSlug, Type: appointment.PatientServiceCenter}}
	}
	if s.uses(inventedRegistry) {
		if c.Orders.Registry, err = sandbox.Registry(); err != nil {
			return err
		}
	}
	if s.uses(inventedMessenger) {
		c.Orders.Messenger = &sandbox.Outbox{}
	}
	printer, err := s.printer()
	if err != nil {
		return err
	}
	c.Printer, c.HTTP.GlucoseProfiles = printer, printer
	return nil
}

// catalogue returns the catalogue of lab tests from the file of -lab-catalogue, or an invented one.
func (c *config) catalogue() (*catalogue.StaticCatalog, error) {
	text := exampleLab
	if c.labCatalogue != "" {
		var err error
		if text, err = os.ReadFile(c.labCatalogue); err != nil {
			return nil, fmt.Errorf("-lab-catalogue: %w", err)
		}
	}
	book, err := catalogue.ReadStaticCatalog(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("-lab-catalogue: %w", err)
	}
	return book, nil
}
