package bulk

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Service moves connections in bulk. Safe for concurrent use.
type Service struct {
	store      Store
	users      *healthdata.Service
	links      *linking.Service
	connectors map[string]linking.ProviderConnector
}

// New returns a Service for what the links have connected. Invalid if something is missing,
// or a connector is for a provider that is not configured. It starts nothing.
func New(store Store, users *healthdata.Service, links *linking.Service, connectors map[string]linking.ProviderConnector) (*Service, error) {
	if store == nil || users == nil || links == nil {
		return nil, fmt.Errorf("%w: bulk operations need a store, users and links", healthlab.Invalid)
	}
	for slug := range connectors {
		if users.Providers().Get(slug) == nil {
			return nil, fmt.Errorf("%w: a connector for a provider that is not configured", healthlab.Invalid)
		}
	}
	return &Service{store: store, users: users, links: links, connectors: maps.Clone(connectors)}, nil
}

// Rules by the names that callers branch on.
const (
	// RuleNotEnabled: bulk operations are not enabled for the team.
	RuleNotEnabled = "BULK_NOT_ENABLED"
	// RuleOtherCredentials: the connections are bound to credentials that are not the
	// team's own.
	RuleOtherCredentials = "NO_OWN_CREDENTIALS"
)

// enabled returns the settings of a team that bulk operations are enabled for.
func (s *Service) enabled(ctx context.Context, team healthlab.TeamID) (linking.TeamSettings, error) {
	settings, err := s.links.Settings(ctx, team)
	if err == nil && !settings.Bulk {
		err = &healthlab.RuleError{Kind: healthlab.Forbidden, Type: RuleNotEnabled, Msg: "bulk operations are not enabled for this team"}
	}
	return settings, err
}

// provider returns the record of a provider.
func (s *Service) provider(slug string) (*healthdata.Provider, error) {
	p := s.users.Providers().Get(slug)
	if p == nil {
		var bad healthlab.Problems
		bad.Add("unknown", "not a configured provider", "provider")
		return nil, bad.Err()
	}
	return p, nil
}

// movable returns how the tokens of a provider are read and written, if a team may move
// them.
func (s *Service) movable(ctx context.Context, team healthlab.TeamID, slug string) (linking.Porter, *healthdata.Provider, error) {
	settings, err := s.enabled(ctx, team)
	if err != nil {
		return nil, nil, err
	}
	p, err := s.provider(slug)
	if err != nil {
		return nil, nil, err
	}
	porter := s.connectors[slug].Porter
	if porter == nil || !slices.Contains(settings.OwnOAuth, slug) {
		return nil, nil, &healthlab.RuleError{
			Type: RuleOtherCredentials, Msg: "connections move only at OAuth providers for which the team has credentials of its own",
		}
	}
	return porter, p, nil
}
