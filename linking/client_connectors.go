package linking

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/healthlab-dev/healthlab"
)

func teamClientContext(c *TeamClient) []byte {
	return []byte("own client " + c.Team.String() + " " + c.Provider + " " + c.ClientID)
}

// clientConnectors returns the connector of a provider for an OAuth client.
type clientConnectors struct {
	byProvider map[string]ProviderConnector
	clients    TeamClients
	seal       healthlab.Sealer
}

func newClientConnectors(connectors map[string]ProviderConnector, clients TeamClients, seal healthlab.Sealer) *clientConnectors {
	return &clientConnectors{maps.Clone(connectors), clients, seal}
}

func (r *clientConnectors) ofTeam(ctx context.Context, q ClientQuery) ([]TeamClient, error) {
	if r.clients == nil {
		return nil, nil
	}
	return r.clients.Clients(ctx, q)
}

// forClient returns the connector of a provider for the team's OAuth client with the id client; the empty id is the
// deployment's client. It returns NotFound if the client was erased.
func (r *clientConnectors) forClient(ctx context.Context, team healthlab.TeamID, provider, client string) (ProviderConnector, error) {
	conn := r.byProvider[provider]
	if client == "" {
		return conn, nil
	}
	if r.clients == nil || conn.ForClient == nil {
		return ProviderConnector{}, fmt.Errorf("%w: the connection uses an OAuth client of the team, so Options.Clients, CredentialRefresherOptions.Clients and ProviderConnector.ForClient must be set", healthlab.Unavailable)
	}
	c, err := r.clients.Client(ctx, team, provider, client)
	if err != nil {
		return ProviderConnector{}, fmt.Errorf("own client: %w", err)
	}
	return r.forTeamClient(ctx, &c)
}

// forTeamClient returns the connector for the team's OAuth client c.
func (r *clientConnectors) forTeamClient(ctx context.Context, c *TeamClient) (ProviderConnector, error) {
	as := r.byProvider[c.Provider].ForClient
	if as == nil {
		return ProviderConnector{}, fmt.Errorf("%w: provider: its connector does not support OAuth clients of teams", healthlab.Unavailable)
	}
	doc, err := r.seal.Open(ctx, c.Box, teamClientContext(c))
	var kept struct {
		Secret  string            `json:"secret"`
		Details map[string]string `json:"details"`
	}
	if err == nil {
		err = json.Unmarshal(doc, &kept)
	}
	if err != nil {
		return ProviderConnector{}, unusableClient(err)
	}
	conn, err := as(OAuthClient{ID: c.ClientID, Secret: kept.Secret, Details: kept.Details})
	if err != nil {
		return ProviderConnector{}, unusableClient(err)
	}
	return conn, nil
}

func unusableClient(cause error) error {
	return fmt.Errorf("OAuth client of the team: %w: %v", healthlab.Unavailable, cause)
}
