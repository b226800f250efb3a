package fhir

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders/people"
)

type patient struct {
	head
	Extension  []extension    `json:"extension,omitempty"`
	Identifier []identifier   `json:"identifier"`
	Name       []humanName    `json:"name"`
	Telecom    []contactPoint `json:"telecom,omitempty"`
	Gender     string         `json:"gender"`
	BirthDate  string         `json:"birthDate,omitempty"`
	Address    []address      `json:"address,omitempty"`
}

type humanName struct {
	Extension []extension `json:"extension,omitempty"`
	Family    string      `json:"family,omitempty"`
	Given     []string    `json:"given,omitempty"`
}

type contactPoint struct {
	System string `json:"system"`
	Value  string `json:"value"`
}

type address struct {
	Line       []string `json:"line,omitempty"`
	City       string   `json:"city,omitempty"`
	State      string   `json:"state,omitempty"`
	PostalCode string   `json:"postalCode,omitempty"`
	Country    string   `json:"country,omitempty"`
}

// patientOf returns a user as a Patient, with the name and address that the team has given for orders.
func (s *server) patientOf(ctx context.Context, u *healthdata.User) (*patient, error) {
	p := &patient{head: head{ResourceType: "Patient", ID: u.ID.String(), Meta: meta{Profile: []string{usCore + "patient"}}}, Gender: "unknown"}
	p.Identifier = []identifier{{System: uriSystem, Value: "urn:uuid:" + u.ID.String()}, {System: s.clientUserIDs(), Value: u.ClientUserID}}
	// US Core 5.0.1 looks for the reason of a missing name in the extensions of the Patient, but also requires a
	// name.
	p.Extension = absent("unknown").Extension
	p.Name = []humanName{{Extension: p.Extension}}
	if u.FallbackBirthDate != nil {
		p.BirthDate = u.FallbackBirthDate.Value.String()
	}
	if s.Orders == nil {
		return p, nil
	}
	info, err := s.Orders.People().UserInfo(ctx, u.Team, u.ID)
	switch {
	case errors.Is(err, healthlab.NotFound), errors.Is(err, healthlab.Unimplemented):
		return p, nil
	case err != nil:
		return nil, fmt.Errorf("read demographics: %w", err)
	}
	p.describe(&info)
	return p, nil
}

// describe adds the known name, birth date and contact data of the person.
func (p *patient) describe(info *people.UserInfo) {
	if info.LastName != "" || info.FirstName != "" {
		p.Name, p.Extension = []humanName{{Family: info.LastName, Given: texts(info.FirstName)}}, nil
	}
	for _, c := range []contactPoint{{"phone", info.PhoneNumber}, {"email", info.Email}} {
		if c.Value != "" {
			p.Telecom = append(p.Telecom, c)
		}
	}
	switch g := strings.ToLower(info.Gender); people.Gender(g) {
	case people.Female, people.Male, people.OtherGender:
		p.Gender = g
	}
	if !info.DOB.IsZero() {
		p.BirthDate = info.DOB.String()
	}
	a := info.Address
	second := ""
	if a.SecondLine != nil {
		second = *a.SecondLine
	}
	if lines := texts(a.FirstLine, second); len(lines) > 0 || a.City != "" || a.Zip != "" {
		p.Address = []address{{Line: lines, City: a.City, State: a.State, PostalCode: a.Zip, Country: a.Country}}
	}
}

// texts returns the arguments that are not empty.
func texts(all ...string) (out []string) {
	for _, t := range all {
		if t != "" {
			out = append(out, t)
		}
	}
	return out
}

func (s *server) readPatient(ctx context.Context, by caller, id string) (resource, error) {
	user, ok := parseUUID(id)
	if !ok {
		by.Concerns(healthlab.UserID{})
		return nil, healthlab.NotFound
	}
	u, err := s.user(ctx, by, healthlab.UserID{UUID: user})
	if err != nil {
		return nil, err
	}
	return s.patientOf(ctx, &u)
}

// user returns the user with an id, and adds the user to the access log entry. It returns NotFound if the caller may
// not read the user.
func (s *server) user(ctx context.Context, by caller, id healthlab.UserID) (healthdata.User, error) {
	by.Concerns(id)
	if !by.User.IsZero() && by.User != id {
		return healthdata.User{}, healthlab.NotFound
	}
	u, err := s.Health.User(ctx, by.Team, id)
	if err != nil {
		return healthdata.User{}, fmt.Errorf("read user: %w", err)
	}
	return u, nil
}

func (s *server) clientUserIDs() string { return s.URL + "/NamingSystem/client-user-id" }

// resolveIdentifiers replaces the values of the parameter identifier in a query by the ids of the users who have them.
func (s *server) resolveIdentifiers(ctx context.Context, by caller, q *query) error {
	for _, alternatives := range q.identifier {
		var ids []string
		for _, t := range alternatives {
			id, isID := strings.CutPrefix(t.code, "urn:uuid:")
			if isID && (t.anySystem || t.system == uriSystem) {
				ids = append(ids, id)
			}
			if !t.anySystem && t.system != s.clientUserIDs() {
				continue
			}
			u, err := s.Health.ResolveUser(ctx, by.Team, t.code)
			if healthlab.KindOf(err) == healthlab.NotFound || errors.Is(err, healthlab.Invalid) {
				continue
			}
			if err != nil {
				return fmt.Errorf("find user: %w", err)
			}
			ids = append(ids, u.ID.String())
		}
		if len(ids) == 0 {
			by.Concerns(healthlab.UserID{}) // record also an attempt that finds no user
		}
		if q.byID {
			ids = slices.DeleteFunc(ids, func(id string) bool { return !slices.Contains(q.ids, id) })
		}
		q.ids, q.byID = ids, true
	}
	q.identifier = nil
	return nil
}

// searchPatients returns a page of the team's users as Patients, in the order of the list of users. A search by _id or
// identifier sorts them by id.
func (s *server) searchPatients(ctx context.Context, by caller, q *query) (found, error) {
	if err := s.resolveIdentifiers(ctx, by, q); err != nil {
		return found{}, err
	}
	if !by.User.IsZero() && !q.byID {
		q.ids, q.byID = []string{by.User.String()}, true
	}
	if q.byID {
		return s.byIDs(ctx, by, q, s.readPatient)
	}
	if q.count == 0 {
		n, err := s.countPersons(ctx, by)
		return found{total: n}, err
	}
	page, err := s.Health.Users(ctx, by.Team, q.offset, q.count)
	if err != nil {
		return found{}, fmt.Errorf("list users: %w", err)
	}
	out := found{total: page.Total, all: make([]match, len(page.Users))}
	for i := range page.Users {
		by.Concerns(page.Users[i].ID)
		p, err := s.patientOf(ctx, &page.Users[i])
		if err != nil {
			return found{}, err
		}
		out.all[i] = match{resource: p}
	}
	if end := q.offset + len(page.Users); end < page.Total && len(page.Users) > 0 {
		out.next = fmt.Sprint(end)
	}
	return out, nil
}
