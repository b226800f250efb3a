package fhir

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/people"
)

type coverageResource struct {
	head
	Status       string          `json:"status"`
	Subscriber   *reference      `json:"subscriber,omitempty"`
	SubscriberID string          `json:"subscriberId,omitempty"`
	Beneficiary  reference       `json:"beneficiary"`
	Relationship concept         `json:"relationship"`
	Period       period          `json:"period"`
	Payor        []reference     `json:"payor"`
	Class        []coverageClass `json:"class,omitempty"`
	Order        int             `json:"order"`
}

type coverageClass struct {
	Type  concept `json:"type"`
	Value string  `json:"value"`
}

func payorID(c *people.Coverage) string { return payorIDs + c.ID.String() }

func (s *server) payor(c *people.Coverage) *organization {
	o := newOrganization(payorID(c), c.Record.Company.Name, "ins", "Insurance Company")
	o.Identifier = []identifier{{System: s.URL + "/NamingSystem/payor", Value: c.Record.PayorCode}}
	o.Address = postal(&c.Record.Company.Address)
	return o
}

func (s *server) coverageOf(c *people.Coverage) match {
	r := &c.Record
	out := &coverageResource{
		head:   head{ResourceType: "Coverage", ID: c.ID.String(), Meta: meta{LastUpdated: instant(c.ValidFrom)}},
		Status: "active", SubscriberID: r.MemberID, Beneficiary: personReference(c.User), Period: period{Start: instant(c.ValidFrom)},
		Relationship: conceptOf("http://terminology.hl7.org/CodeSystem/subscriber-relationship", strings.ToLower(string(r.Relationship)), string(r.Relationship)),
		Payor:        []reference{{Reference: "Organization/" + payorID(c), Display: r.Company.Name}}, Order: 2,
	}
	updated := c.ValidFrom
	if !c.ValidUntil.IsZero() {
		out.Status, out.Period.End, updated = "cancelled", instant(c.ValidUntil), c.ValidUntil
		out.Meta.LastUpdated = instant(updated)
	}
	if r.IsPrimary {
		out.Order = 1
	}
	if r.Relationship == people.RelationSelf {
		self := personReference(c.User)
		out.Subscriber = &self
	} else if name := strings.TrimSpace(r.Insured.FirstName + " " + r.Insured.LastName); name != "" {
		out.Subscriber = &reference{Display: name}
	}
	if r.GroupID != nil && *r.GroupID != "" {
		out.Class = []coverageClass{{conceptOf("http://terminology.hl7.org/CodeSystem/coverage-class", "group", "Group"), *r.GroupID}}
	}
	return match{resource: out, status: out.Status, updated: updated}
}

// mayRead returns Forbidden unless the team may read insurance records.
func (s *server) mayRead(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
	_, err := s.Orders.People().LatestInsurance(ctx, team, user, true, time.Time{})
	if k := healthlab.KindOf(err); k == healthlab.NotFound || k == healthlab.Unimplemented {
		return nil
	}
	return err //nolint:wrapcheck // names the feature that is off
}

// insuranceRecord reads an insurance record by its id, and adds its user to the access log entry. It returns Forbidden
// unless the team may read insurance records.
func (s *server) insuranceRecord(ctx context.Context, by caller, id string) (people.Coverage, error) {
	u, ok := parseUUID(id)
	if !ok {
		by.Concerns(healthlab.UserID{})
		return people.Coverage{}, healthlab.NotFound
	}
	c, err := s.Orders.People().Insurance(ctx, by.Team, u)
	if kind := healthlab.KindOf(err); kind == healthlab.NotFound || kind == healthlab.Unimplemented {
		by.Concerns(healthlab.UserID{})
		return c, healthlab.NotFound
	}
	if err != nil {
		return c, fmt.Errorf("read insurance: %w", err)
	}
	if _, err := s.user(ctx, by, c.User); err != nil {
		return c, err
	}
	return c, s.mayRead(ctx, by.Team, c.User)
}

func (s *server) readCoverage(ctx context.Context, by caller, id string) (resource, error) {
	c, err := s.insuranceRecord(ctx, by, id)
	if err != nil {
		return nil, err
	}
	return s.coverageOf(&c).resource, nil
}

// coverages calls use with the Coverages of a user: the newest insurance records, and those to which orders are billed.
func (s *server) coverages(ctx context.Context, u *healthdata.User, _ *query, use func([]match) error) error {
	list, err := s.insurance(ctx, u)
	if err != nil {
		return err
	}
	out := make([]match, len(list))
	for i := range list {
		out[i] = s.coverageOf(&list[i])
	}
	return use(out)
}

// payors calls use with the Organizations that a user's insurance records name; with none if the team may not read
// insurance records.
func (s *server) payors(ctx context.Context, u *healthdata.User, _ *query, use func([]match) error) error {
	list, err := s.insurance(ctx, u)
	if err != nil && healthlab.KindOf(err) != healthlab.Forbidden {
		return err
	}
	out := make([]match, len(list))
	for i := range list {
		out[i] = match{resource: s.payor(&list[i]), updated: list[i].ValidFrom}
	}
	return use(out)
}

// insurance reads the insurance records of a user. It returns Forbidden unless the team may read them.
func (s *server) insurance(ctx context.Context, u *healthdata.User) (out []people.Coverage, err error) {
	if err := s.mayRead(ctx, u.Team, u.ID); err != nil {
		return nil, err
	}
	seen := map[uuid.UUID]bool{}
	add := func(c people.Coverage, err error) error {
		if k := healthlab.KindOf(err); k == healthlab.NotFound || k == healthlab.Unimplemented {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read insurance: %w", err)
		}
		if !seen[c.ID] {
			seen[c.ID] = true
			out = append(out, c)
		}
		return nil
	}
	for _, primary := range []bool{true, false} {
		if err := add(s.Orders.People().InsuranceAt(ctx, u.Team, u.ID, primary, time.Time{})); err != nil {
			return nil, err
		}
	}
	err = s.eachRecord(ctx, u.Team, u.ID, func(r *orders.Record) error {
		if id := r.HealthInsuranceID; id != nil && !seen[*id] {
			return add(s.Orders.People().Insurance(ctx, u.Team, *id))
		}
		return nil
	})
	return out, err
}
