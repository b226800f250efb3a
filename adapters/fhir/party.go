package fhir

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

type organization struct {
	head
	Identifier []identifier   `json:"identifier,omitempty"`
	Active     bool           `json:"active"`
	Type       []concept      `json:"type"`
	Name       string         `json:"name"`
	Telecom    []contactPoint `json:"telecom,omitempty"`
	Address    []address      `json:"address,omitempty"`
}

type practitioner struct {
	head
	Identifier []identifier `json:"identifier"`
	Name       []humanName  `json:"name"`
}

const (
	clia              = "urn:oid:2.16.840.1.113883.4.7"
	organizationKinds = "http://terminology.hl7.org/CodeSystem/organization-type"
	payorIDs          = "payor."
	labIDs            = "lab."
)

func newOrganization(id, name, code, display string) *organization {
	return &organization{
		head:   head{ResourceType: "Organization", ID: id, Meta: meta{Profile: []string{usCore + "organization"}}},
		Active: true, Type: []concept{conceptOf(organizationKinds, code, display)}, Name: name,
	}
}

func labID(l *catalogue.Lab) string { return labIDs + fmt.Sprint(l.ID) }

func labReference(l *catalogue.Lab) reference {
	return reference{Reference: "Organization/" + labID(l), Display: l.Name}
}

// labOrganization returns a laboratory of the catalogue as an Organization.
func (s *server) labOrganization(l *catalogue.Lab) *organization {
	o := newOrganization(labID(l), l.Name, "prov", "Healthcare Provider")
	o.Identifier = []identifier{{System: s.URL + "/NamingSystem/lab", Value: l.Slug}}
	if l.CLIANumber != nil && *l.CLIANumber != "" {
		o.Identifier = append(o.Identifier, identifier{System: clia, Value: *l.CLIANumber})
	}
	if l.FirstLineAddress != "" || l.City != "" {
		o.Address = []address{{Line: texts(l.FirstLineAddress), City: l.City, PostalCode: l.Zipcode}}
	}
	return o
}

// performingOrganization returns a laboratory that a lab report names as an Organization.
func performingOrganization(id string, l *labresult.PerformingLaboratory) *organization {
	o := newOrganization(id, l.Name, "prov", "Healthcare Provider")
	if l.PhoneNumber != nil && *l.PhoneNumber != "" {
		o.Telecom = []contactPoint{{"phone", *l.PhoneNumber}}
	}
	if l.Address != nil {
		o.Address = postal(l.Address)
	}
	return o
}

func postal(a *people.Address) []address {
	second := ""
	if a.SecondLine != nil {
		second = *a.SecondLine
	}
	lines := texts(a.FirstLine, second)
	if len(lines) == 0 && a.City == "" && a.Zip == "" {
		return nil
	}
	return []address{{Line: lines, City: a.City, State: a.State, PostalCode: a.Zip, Country: a.Country}}
}

// readOrganization reads an Organization by id: a laboratory of the catalogue or of a report, or a payor.
func (s *server) readOrganization(ctx context.Context, by caller, id string) (resource, error) {
	if strings.HasPrefix(id, labIDs) {
		labs, err := s.Orders.Catalogue().Labs(ctx)
		if err != nil {
			return nil, fmt.Errorf("list laboratories: %w", err)
		}
		for i := range labs {
			if labID(&labs[i]) == id {
				return s.labOrganization(&labs[i]), nil
			}
		}
		return nil, healthlab.NotFound
	}
	if coverage, ok := strings.CutPrefix(id, payorIDs); ok {
		c, err := s.insuranceRecord(ctx, by, coverage)
		if err != nil {
			return nil, err
		}
		return s.payor(&c), nil
	}
	order, _, _ := strings.Cut(id, ".")
	r, err := s.record(ctx, by, order)
	if err != nil {
		return nil, err
	}
	list, err := s.organizationsOf(ctx, &r)
	return resourceByID(list, id, err)
}

// searchOrganizations finds organizations by their ids; without ids, the laboratories of the catalogue.
func (s *server) searchOrganizations(ctx context.Context, by caller, q *query) (found, error) {
	if q.byID {
		return s.byIDs(ctx, by, q, s.readOrganization)
	}
	labs, err := s.Orders.Catalogue().Labs(ctx)
	if err != nil {
		return found{}, fmt.Errorf("list laboratories: %w", err)
	}
	all := make([]match, len(labs))
	for i := range labs {
		all[i] = match{resource: s.labOrganization(&labs[i])}
	}
	return q.page(all), nil
}

// organizationsOf returns the laboratory of an order, and those that its report names.
func (s *server) organizationsOf(_ context.Context, r *orders.Record) (out []match, err error) {
	if l := r.LabTest.Lab; l != nil {
		out = append(out, match{resource: s.labOrganization(l)})
	}
	for _, key := range samplesOf(r) {
		labs := r.Results.SampleInformation[key].PerformingLaboratories
		for _, name := range slices.Sorted(maps.Keys(labs)) {
			if lab := labs[name]; lab.Name != "" {
				out = append(out, match{resource: performingOrganization(ofOrderID(r.ID, key, name), &lab), updated: r.LatestReportAt})
			}
		}
	}
	return out, nil
}

func isPractitioner(p *people.Physician) bool { return p != nil && p.NPI != "" && p.LastName != "" }

func (s *server) readPractitioner(ctx context.Context, by caller, id string) (resource, error) {
	return s.readOfOrder(ctx, by, id, s.practitioners)
}

// practitioners returns the physician of an order.
func (s *server) practitioners(_ context.Context, r *orders.Record) ([]match, error) {
	p := r.Physician
	if !isPractitioner(p) {
		return nil, nil
	}
	return []match{{resource: &practitioner{
		head:       head{ResourceType: "Practitioner", ID: r.ID.String(), Meta: meta{Profile: []string{usCore + "practitioner"}}},
		Identifier: []identifier{{npiSystem, p.NPI}}, Name: []humanName{{Family: p.LastName, Given: texts(p.FirstName)}},
	}}}, nil
}

func parseUUID(text string) (uuid.UUID, bool) {
	u, err := uuid.Parse(text)
	return u, err == nil && u.String() == text
}
