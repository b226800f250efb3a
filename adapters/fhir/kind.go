package fhir

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/orders"
)

// kind is a resource type that is served, with the functions that read it.
type kind struct {
	name     string
	scopes   organisation.Scopes
	params   []string // search parameters, without those of resultParams
	profiles []string
	// byID is true if a search of this type must have the parameter _id.
	byID   bool
	read   func(ctx context.Context, by caller, id string) (resource, error)
	search func(ctx context.Context, by caller, q *query) (found, error)
	// ofUser calls use with the resources of a person, and ofOrder returns those of an order; nil if the type has none.
	ofUser  func(ctx context.Context, u *healthdata.User, q *query, use func([]match) error) error
	ofOrder func(ctx context.Context, r *orders.Record) ([]match, error)
}

var (
	dataScope   = organisation.Scopes{organisation.DataRead}
	ordersScope = organisation.Scopes{organisation.OrdersRead}
	everyScope  = organisation.Scopes{organisation.DataRead, organisation.OrdersRead}
)

// kinds returns the resource types that are served.
func (s *server) kinds() []kind {
	var vital []string
	for i := range measurements {
		vital = append(vital, texts(measurements[i].profile)...)
	}
	clinical := []string{"_id", "_lastUpdated", "patient", "subject", "code", "category", "date", "status"}
	out := []kind{
		{name: "Patient", scopes: everyScope, params: []string{"_id", "identifier"}, profiles: []string{usCore + "patient"}, read: s.readPatient, search: s.searchPatients},
		{name: "Observation", scopes: everyScope, params: append(slices.Clone(clinical), "interval"), profiles: append([]string{usCore + "observation-lab"}, vital...),
			read: s.readObservation, ofUser: s.eachMeasurement, ofOrder: s.results},
		{name: "Device", scopes: dataScope, params: []string{"_id", "patient", "status"}, ofUser: s.devices},
		{name: "Consent", scopes: dataScope, params: []string{"_id", "_lastUpdated", "patient", "date", "status"}, ofUser: s.consents},
	}
	if s.Orders != nil {
		out = append(out,
			kind{name: "DiagnosticReport", params: clinical, profiles: []string{usCore + "diagnosticreport-lab"}, ofOrder: s.report},
			kind{name: "ServiceRequest", params: append(slices.Clone(clinical), "authored"), profiles: []string{usCore + "servicerequest"}, ofOrder: s.request},
			kind{name: "Specimen", params: []string{"_id", "_lastUpdated", "patient", "subject", "status"}, ofOrder: s.specimens},
			kind{name: "Appointment", params: []string{"_id", "_lastUpdated", "patient", "date", "status"}, ofOrder: s.appointments},
			kind{name: "Provenance", params: []string{"_id", "_lastUpdated", "patient"}, profiles: []string{usCore + "provenance"}, ofOrder: s.provenance},
			kind{name: "Coverage", params: []string{"_id", "_lastUpdated", "patient", "status"}, read: s.readCoverage, ofUser: s.coverages},
			kind{name: "Organization", params: []string{"_id"}, profiles: []string{usCore + "organization"}, read: s.readOrganization, search: s.searchOrganizations, ofUser: s.payors, ofOrder: s.organizationsOf},
			kind{name: "Practitioner", params: []string{"_id"}, byID: true, profiles: []string{usCore + "practitioner"}, search: func(ctx context.Context, by caller, q *query) (found, error) {
				return s.byIDs(ctx, by, q, s.readPractitioner)
			},
				read: s.readPractitioner, ofOrder: s.practitioners},
		)
	}
	if s.Orders != nil && s.Documents != nil {
		out = append(out, kind{name: "DocumentReference", params: []string{"_id", "_lastUpdated", "patient", "subject", "category", "date", "status"},
			profiles: []string{usCore + "documentreference"}, ofOrder: s.documents})
	}
	for i := range out {
		k := &out[i]
		if k.scopes == nil {
			k.scopes = ordersScope
		}
		if k.read == nil && k.ofOrder != nil {
			k.read = func(ctx context.Context, by caller, id string) (resource, error) {
				return s.readOfOrder(ctx, by, id, k.ofOrder)
			}
		}
		if k.read == nil {
			k.read = func(ctx context.Context, by caller, id string) (resource, error) {
				return s.readOfUser(ctx, by, id, k.ofUser)
			}
		}
		if k.search == nil {
			k.search = func(ctx context.Context, by caller, q *query) (found, error) { return s.searchPersonal(ctx, by, q, k) }
		}
	}
	return out
}

// A resource without an id of its own gets one that begins with the id of its user in base32, or with the id of its
// order. A digest of the parts that distinguish it follows.

var short = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:6])
}

func ofUserID(user healthlab.UserID, parts ...string) string {
	return short.EncodeToString(user.UUID[:]) + "." + digest(parts...)
}

func ofOrderID(order orders.OrderID, parts ...string) string {
	return order.String() + "." + digest(parts...)
}

func (s *server) readOfOrder(ctx context.Context, by caller, id string, of func(context.Context, *orders.Record) ([]match, error)) (resource, error) {
	order, _, _ := strings.Cut(id, ".")
	r, err := s.record(ctx, by, order)
	if err != nil {
		return nil, err
	}
	list, err := of(ctx, &r)
	return resourceByID(list, id, err)
}

func (s *server) readOfUser(ctx context.Context, by caller, id string, of func(context.Context, *healthdata.User, *query, func([]match) error) error) (resource, error) {
	begin, _, _ := strings.Cut(id, ".")
	b, err := short.DecodeString(begin)
	user, wrong := uuid.FromBytes(b)
	if err != nil || wrong != nil || short.EncodeToString(user[:]) != begin {
		by.Concerns(healthlab.UserID{})
		return nil, healthlab.NotFound
	}
	u, err := s.user(ctx, by, healthlab.UserID{UUID: user})
	if err != nil {
		return nil, err
	}
	var all []match
	err = of(ctx, &u, &query{}, func(m []match) error {
		all = append(all, m...)
		return nil
	})
	return resourceByID(all, id, err)
}

// resourceByID returns the resource with an id among all; NotFound if there is none. An err that is not nil is
// returned.
func resourceByID(all []match, id string, err error) (resource, error) {
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if m.start().ID == id {
			return m.resource, nil
		}
	}
	return nil, healthlab.NotFound
}

// searchPersonal finds resources that belong to persons.
func (s *server) searchPersonal(ctx context.Context, by caller, q *query, k *kind) (found, error) {
	if !q.byPatient {
		return s.byIDs(ctx, by, q, k.read)
	}
	var all []match
	for _, id := range q.patients {
		u, err := s.user(ctx, by, id)
		if healthlab.KindOf(err) == healthlab.NotFound {
			continue
		}
		if err != nil {
			return found{}, err
		}
		err = s.eachResource(ctx, &u, q, []kind{*k}, func(_ *kind, list []match) error {
			for _, m := range list {
				if q.matches(&m) {
					all = append(all, m)
				}
			}
			return nil
		})
		if err != nil {
			return found{}, err
		}
	}
	return q.page(all), nil
}

// eachResource calls use with the resources of some types of a person, in several lists, so that memory does not grow
// with the number of resources.
func (s *server) eachResource(ctx context.Context, u *healthdata.User, q *query, kinds []kind, use func(*kind, []match) error) error {
	orderly := false
	for i := range kinds {
		k := &kinds[i]
		orderly = orderly || k.ofOrder != nil
		if k.ofUser == nil {
			continue
		}
		if err := k.ofUser(ctx, u, q, func(list []match) error { return use(k, list) }); err != nil {
			return err
		}
	}
	if !orderly || s.Orders == nil {
		return nil
	}
	return s.eachRecord(ctx, u.Team, u.ID, func(r *orders.Record) error {
		for i := range kinds {
			k := &kinds[i]
			if k.ofOrder == nil {
				continue
			}
			list, err := k.ofOrder(ctx, r)
			if err != nil {
				return err
			}
			if err := use(k, list); err != nil {
				return err
			}
		}
		return nil
	})
}

// record reads the order whose id is id, and adds its user to the access log entry.
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

// eachRecord calls use with each order of a user.
func (s *server) eachRecord(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, use func(*orders.Record) error) error {
	const size = 100
	for page := 1; ; page++ {
		list, err := s.Orders.List(ctx, orders.Query{Team: team, User: user, Page: page, Size: size})
		if err != nil {
			return fmt.Errorf("list orders: %w", err)
		}
		for i := range list.Orders {
			r, err := s.Orders.Record(ctx, team, list.Orders[i].ID)
			if healthlab.KindOf(err) == healthlab.NotFound {
				continue // the order was deleted after it was listed
			}
			if err != nil {
				return fmt.Errorf("read order: %w", err)
			}
			if err := use(&r); err != nil {
				return err
			}
		}
		if page*size >= list.Total || len(list.Orders) == 0 {
			return nil
		}
	}
}
