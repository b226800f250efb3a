package fhir

import (
	"context"
	"fmt"
	"slices"

	"github.com/healthlab-dev/healthlab"
)

// group is the Group of all persons of a team. It does not list its members; an export of the Group returns them.
type group struct {
	head
	Identifier []identifier `json:"identifier"`
	Active     bool         `json:"active"`
	Type       string       `json:"type"`
	Actual     bool         `json:"actual"`
	Quantity   int          `json:"quantity"`
}

func (s *server) groupKind() kind {
	// Group is not in the list of kinds, because no Group belongs to a person or is exported.
	return kind{name: "Group", scopes: everyScope, params: []string{"_id", "identifier"}, read: s.readGroup, search: s.searchGroups}
}

// isGroup reports whether an id is that of the Group of the caller's team. For any other id, the access log records
// that the caller has tried to read it.
func isGroup(by caller, id string) bool {
	if id == by.Team.String() {
		return true
	}
	by.Concerns(healthlab.UserID{})
	return false
}

// readGroup reads the Group of the caller's team: the persons whom an export by this caller would contain. It
// returns NotFound for every other id.
func (s *server) readGroup(ctx context.Context, by caller, id string) (resource, error) {
	if !isGroup(by, id) {
		return nil, healthlab.NotFound
	}
	persons, err := s.countPersons(ctx, by)
	if err != nil {
		return nil, err
	}
	return &group{
		head:       head{ResourceType: "Group", ID: id},
		Identifier: []identifier{{System: uriSystem, Value: "urn:uuid:" + id}}, Active: true, Type: "person", Actual: true, Quantity: persons,
	}, nil
}

// searchGroups finds the Group of the caller's team.
func (s *server) searchGroups(ctx context.Context, by caller, q *query) (found, error) {
	own := by.Team.String()
	for _, id := range q.ids {
		isGroup(by, id)
	}
	if q.byID && !slices.Contains(q.ids, own) {
		return found{}, nil
	}
	r, err := s.readGroup(ctx, by, own)
	if err != nil {
		return found{}, err
	}
	return q.page([]match{{resource: r, identifiers: []coding{{System: uriSystem, Code: "urn:uuid:" + own}}}}), nil
}

func (s *server) countPersons(ctx context.Context, by caller) (int, error) {
	if by.User.IsZero() {
		page, err := s.Health.Users(ctx, by.Team, 0, 1)
		if err != nil {
			return 0, fmt.Errorf("count users: %w", err)
		}
		return page.Total, nil
	}
	_, err := s.user(ctx, by, by.User)
	if healthlab.KindOf(err) == healthlab.NotFound {
		return 0, nil
	}
	return 1, err
}
