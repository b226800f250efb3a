package linking

import (
	"context"
	"fmt"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Classes of providers, by the names in a provider's record. People sign in only at those of classCloud.
const (
	classCloud  = "cloud"
	classStore  = "sdk_store"
	classManual = "manual"
)

func onDevice(p *healthdata.Provider) bool { return p.Class == classStore }

// Kinds of sign-in, by the names in a provider's record.
const (
	authOAuth     = "oauth"
	authTeamOAuth = "team_oauth"
	authPassword  = "password"
	authEmail     = "email"
)

// offers decides which providers the people of a team can link.
type offers struct {
	providers  *healthdata.Providers
	connectors *clientConnectors
	settings   func(context.Context, healthlab.TeamID) (TeamSettings, error) // without TeamSettings.teamClients
}

// teamSettings returns the settings of a team with its current OAuth clients.
func (o *offers) teamSettings(ctx context.Context, team healthlab.TeamID) (TeamSettings, error) {
	out, err := o.settings(ctx, team)
	if err != nil {
		return TeamSettings{}, fmt.Errorf("settings: %w", err)
	}
	list, err := o.connectors.ofTeam(ctx, ClientQuery{Team: team})
	if err != nil {
		return TeamSettings{}, fmt.Errorf("clients of team: %w", err)
	}
	for _, c := range list {
		if c.current() && o.connectors.byProvider[c.Provider].ForClient != nil {
			if out.teamClients == nil {
				out.teamClients = map[string]TeamClient{}
			}
			out.teamClients[c.Provider] = c
		}
	}
	return out, nil
}

// linkable reports whether a team's people can link a provider: a cloud provider whose connector has the flow of its
// AuthType. If the AuthType is team_oauth, the team must also have OAuth credentials of its own for it.
func (o *offers) linkable(p *healthdata.Provider, settings *TeamSettings) bool {
	if p == nil || p.Class != classCloud {
		return false
	}
	c := o.connectors.byProvider[p.Slug]
	switch p.AuthType {
	case authOAuth:
		return c.OAuth != nil
	case authTeamOAuth:
		return c.OAuth != nil && (settings.OwnClient(p.Slug) != "" || slices.Contains(settings.OwnOAuth, p.Slug))
	case authPassword:
		return c.Password != nil
	case authEmail:
		return c.Email != nil
	default:
		return false
	}
}

// find returns a provider that the team's people can link, and the team's settings. flows are the allowed values of the
// provider's AuthType; none means any.
func (o *offers) find(ctx context.Context, team healthlab.TeamID, slug string, flows ...string) (*healthdata.Provider, *TeamSettings, error) {
	settings, err := o.teamSettings(ctx, team)
	if err != nil {
		return nil, nil, err
	}
	p := o.providers.Get(slug)
	if !o.linkable(p, &settings) || (len(flows) > 0 && !slices.Contains(flows, p.AuthType)) {
		return nil, nil, errProvider()
	}
	return p, &settings, nil
}

// findWithoutConnector returns a provider for which ok is true, which needs no connector, and the team's settings.
func (o *offers) findWithoutConnector(ctx context.Context, team healthlab.TeamID, slug string, ok func(*healthdata.Provider) bool) (
	*healthdata.Provider, *TeamSettings, error,
) {
	p := o.providers.Get(slug)
	if p == nil || !ok(p) {
		return nil, nil, errProvider()
	}
	settings, err := o.settings(ctx, team)
	if err != nil {
		return nil, nil, fmt.Errorf("settings: %w", err)
	}
	return p, &settings, nil
}
