package fhir

import (
	"context"
	"fmt"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
)

type observation struct {
	head
	BasedOn          []reference      `json:"basedOn,omitempty"`
	Status           string           `json:"status"`
	Category         []concept        `json:"category"`
	Code             concept          `json:"code"`
	Subject          reference        `json:"subject"`
	Effective        string           `json:"effectiveDateTime,omitempty"`
	Issued           string           `json:"issued,omitempty"`
	ValueQuantity    *quantity        `json:"valueQuantity,omitempty"`
	ValueConcept     *concept         `json:"valueCodeableConcept,omitempty"`
	ValueString      string           `json:"valueString,omitempty"`
	DataAbsentReason *concept         `json:"dataAbsentReason,omitempty"`
	Interpretation   []concept        `json:"interpretation,omitempty"`
	Note             []annotation     `json:"note,omitempty"`
	Method           *concept         `json:"method,omitempty"`
	ReferenceRange   []referenceRange `json:"referenceRange,omitempty"`
	Component        []component      `json:"component,omitempty"`
}

type component struct {
	Code             concept   `json:"code"`
	ValueQuantity    *quantity `json:"valueQuantity,omitempty"`
	DataAbsentReason *concept  `json:"dataAbsentReason,omitempty"`
}

// The categories of observations.
const (
	vitalSigns = "vital-signs"
	laboratory = "laboratory"
)

func category(code string) []concept {
	display := map[string]string{vitalSigns: "Vital Signs", laboratory: "Laboratory"}[code]
	return []concept{conceptOf(observationKinds, code, display)}
}

func personReference(user healthlab.UserID) reference {
	return reference{Reference: "Patient/" + user.String()}
}

func (o *observation) match(when span) match {
	return match{resource: o, codes: o.Code.Coding, categories: o.Category[0].Coding, status: o.Status, when: when}
}

// readObservation reads the one of an id: of a vital sign, or of a result.
func (s *server) readObservation(ctx context.Context, by caller, id string) (resource, error) {
	if v, ok := parseVitalID(id); ok {
		return s.readVital(ctx, by, v)
	}
	order, _, ok := strings.Cut(id, ".")
	if !ok || s.Orders == nil {
		return nil, healthlab.NotFound
	}
	r, err := s.record(ctx, by, order)
	if err != nil {
		return nil, err
	}
	for _, m := range s.results(&r) {
		if m.start().ID == id {
			return m.resource, nil
		}
	}
	return nil, healthlab.NotFound
}

// searchObservations finds vital signs and results of one person.
func (s *server) searchObservations(ctx context.Context, by caller, q *query) (found, error) {
	if q.patient.IsZero() {
		return s.byIDs(ctx, by, q, s.readObservation)
	}
	u, err := s.searched(ctx, by, q)
	if err != nil || u.ID.IsZero() {
		return found{}, err
	}
	var all []match
	// Nothing says when a vital sign was last updated, so that none is after or before a time.
	if len(q.updated) == 0 && hasToken(q.category, category(vitalSigns)[0].Coding) {
		if all, err = s.vitalsOf(ctx, by.Team, u.ID, q); err != nil {
			return found{}, err
		}
	}
	if hasToken(q.category, category(laboratory)[0].Coding) {
		err = s.eachRecord(ctx, by.Team, u.ID, func(r *orders.Record) { all = append(all, s.results(r)...) })
	}
	if err != nil {
		return found{}, err
	}
	return q.page(all), nil
}

// searched returns the user of a search; a zero user if the caller may read none of that id.
func (s *server) searched(ctx context.Context, by caller, q *query) (healthdata.User, error) {
	u, err := s.user(ctx, by, q.patient)
	if healthlab.KindOf(err) == healthlab.NotFound {
		return healthdata.User{}, nil
	}
	return u, err
}

// record reads an order by the id of its resource, and notes the access.
func (s *server) record(ctx context.Context, by caller, id string) (orders.Record, error) {
	order, ok := parseOrderID(id)
	if !ok {
		by.Concerns(healthlab.UserID{})
		return orders.Record{}, healthlab.NotFound
	}
	r, err := s.Orders.Record(ctx, by.Team, order)
	if healthlab.KindOf(err) == healthlab.NotFound {
		by.Concerns(healthlab.UserID{})
	}
	if err != nil {
		return r, fmt.Errorf("read order: %w", err)
	}
	if _, err := s.user(ctx, by, r.UserID); err != nil {
		return r, err
	}
	return r, nil
}

// eachRecord reads the orders of a user.
func (s *server) eachRecord(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, use func(*orders.Record)) error {
	if s.Orders == nil {
		return nil
	}
	const size = 100
	for page := 1; ; page++ {
		list, err := s.Orders.List(ctx, orders.Query{Team: team, User: user, Page: page, Size: size})
		if err != nil {
			return fmt.Errorf("list orders: %w", err)
		}
		for i := range list.Orders {
			r, err := s.Orders.Record(ctx, team, list.Orders[i].ID)
			if healthlab.KindOf(err) == healthlab.NotFound {
				continue // deleted since it was listed
			}
			if err != nil {
				return fmt.Errorf("read order: %w", err)
			}
			use(&r)
		}
		if page*size >= list.Total || len(list.Orders) == 0 {
			return nil
		}
	}
}
