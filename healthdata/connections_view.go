package healthdata

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/healthlab-dev/healthlab"
)

// ConnectionView is a connection as it is published: what became of it, and what data
// will come.
type ConnectionView struct {
	Name string `json:"name"`
	Slug string `json:"slug"`
	// Logo is a URL; empty if the provider has none.
	Logo string `json:"logo"`
	// CreatedOn is when it was (last) connected.
	CreatedOn healthlab.Time   `json:"created_on"`
	Status    ConnectionStatus `json:"status"`
	// ExternalUserID is the provider's own name for the person; null where it has none.
	ExternalUserID *string `json:"external_user_id"`
	// ErrorDetails is null unless the status is error.
	ErrorDetails *ConnectionErrorDetails `json:"error_details"`
	// ResourceAvailability says by resource whether data will come. Never nil on the
	// wire; empty for a provider that is no longer configured.
	ResourceAvailability map[string]Availability `json:"resource_availability"`
}

// ConnectionErrorDetails says why a connection failed for good.
type ConnectionErrorDetails struct {
	// ErrorType is one of the Failure names (open).
	ErrorType string `json:"error_type"`
	// ErrorMessage is for people.
	ErrorMessage string         `json:"error_message"`
	ErroredAt    healthlab.Time `json:"errored_at"`
}

// Connections returns the connections of a user that were not removed, the oldest first.
// [healthlab.NotFound] if the team has no such user.
func (s *Service) Connections(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) ([]ConnectionView, error) {
	u, err := s.live(ctx, team, id)
	if err != nil {
		return nil, fmt.Errorf("connections: %w", err)
	}
	out := []ConnectionView{}
	for _, c := range u.Connections {
		if c.Status == Deregistered {
			continue
		}
		name := s.providers.name(c.Provider)
		v := ConnectionView{
			Name: name.Name, Slug: name.Slug, Logo: name.Logo, CreatedOn: healthlab.At(c.CreatedOn), Status: c.Status,
			ExternalUserID: c.ExternalUserID, ResourceAvailability: map[string]Availability{},
		}
		if f := c.Failure; f != nil {
			v.ErrorDetails = &ConnectionErrorDetails{ErrorType: f.Type, ErrorMessage: f.Message, ErroredAt: healthlab.At(f.At)}
		}
		if p := s.providers.Get(c.Provider); p != nil {
			v.ResourceAvailability = p.Availability(c.Scopes)
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b ConnectionView) int {
		return cmp.Or(a.CreatedOn.Compare(b.CreatedOn.Time), cmp.Compare(a.Slug, b.Slug))
	})
	return out, nil
}
