package linking

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// OAuthClient is what a provider knows an application by.
type OAuthClient struct {
	// ID is the client id. Secret is empty where the provider gives none.
	ID, Secret string
	// Details are what the provider wants besides, by the names that its connector knows.
	Details map[string]string
}

// String shows nothing of it.
func (OAuthClient) String() string { return "OAuth client" }

// GoString is String.
func (c OAuthClient) GoString() string { return c.String() }

// LogValue is String.
func (c OAuthClient) LogValue() slog.Value { return slog.StringValue(c.String()) }

// SetupStep is something that the owner of a client has to set up at the provider.
type SetupStep struct {
	// Type is one of the names Setup… (open).
	Type string
	// Key names what it is at the provider, and Value is what to enter.
	Key, Value string
	// Description tells a person what to do.
	Description string
}

// Types of steps.
const (
	// SetupRedirect: an address that the provider may send people back to.
	SetupRedirect = "redirect_uri"
	// SetupWebhook: an address that the provider sends its messages to.
	SetupWebhook = "webhook_uri"
	// SetupPrincipal: an account of ours in a cloud that needs a right there.
	SetupPrincipal = "iam_principal"
)

// TeamClient is a client that a team has registered at a provider itself. People who link
// from then on are asked by it in place of the deployment's, and what they connect stays
// bound to it: a provider renews and ends a grant only for the client that it gave it to.
type TeamClient struct {
	Team     healthlab.TeamID
	Provider string
	// ClientID names it within the team and the provider.
	ClientID string
	// Box holds the secret and the details, sealed; Tail is all that is shown of the
	// secret, and Details of each detail: their last characters.
	Box     healthlab.Sealed
	Tail    string
	Details map[string]string
	// RedirectURL is where the provider sends people back to, in place of our callback.
	// Empty: our callback.
	RedirectURL string
	// CreatedAt is when the team gave it first, UpdatedAt when it did last.
	CreatedAt, UpdatedAt time.Time
	// RetiredAt is when another one took its place, or the team took it back; zero while
	// it is the current one. A retired client keeps alive what was connected with it, and
	// connects nothing new.
	RetiredAt time.Time
	// ProvenAt is when a person was led through it for the first time with ProvenURL as
	// the address to come back to; zero if no person was sent there yet.
	ProvenAt  time.Time
	ProvenURL string
	// Connections counts those of live users that are bound to it, have a credential and
	// are not Deregistered, where the query asked for that ([ClientQuery]); else it is zero.
	Connections int
}

// LogValue shows whose it is.
func (c TeamClient) LogValue() slog.Value {
	return slog.GroupValue(slog.String("team", c.Team.String()), slog.String("provider", c.Provider))
}

// current reports whether it is the one that people are asked by.
func (c *TeamClient) current() bool { return c.RetiredAt.IsZero() }

// ClientQuery asks for the clients of a team. Count counts their connections, which costs as
// much as there are.
type ClientQuery struct {
	Team  healthlab.TeamID
	Count bool
}

// TeamClients keeps the clients of teams. What the comment of [Store] says of all methods
// holds here, too. When a team is deleted, so are its clients.
type TeamClients interface {
	// Clients returns all clients of a team: by provider, the current one first, then the
	// one that was retired last, then by ClientID.
	Clients(ctx context.Context, q ClientQuery) ([]TeamClient, error)

	// Client returns one, current or retired.
	Client(ctx context.Context, team healthlab.TeamID, provider, clientID string) (TeamClient, error)

	// PutClient makes a client the current one of its team and provider, and retires the
	// one that was, at c.UpdatedAt. One with the same ClientID is replaced, but for its
	// CreatedAt; ProvenAt and ProvenURL are kept, too. RetiredAt and Connections are the
	// store's. Invalid without team, provider, ClientID or a Box.
	PutClient(ctx context.Context, c TeamClient) (TeamClient, error)

	// RetireClient retires the current client of a provider. NotFound if there is none.
	RetireClient(ctx context.Context, team healthlab.TeamID, provider string, at time.Time) error

	// ProveClient sets ProvenAt and ProvenURL, if ProvenURL is another one. Nothing
	// happens if there is no such client.
	ProveClient(ctx context.Context, team healthlab.TeamID, provider, clientID, redirectURL string, at time.Time) error

	// ForgetClients deletes the clients of a team that were retired before an instant and
	// that no connection needs: none of a user who is not erased has a credential and is
	// bound to it. With a provider, it deletes all of that provider instead, needed or not;
	// it returns how many it deleted.
	ForgetClients(ctx context.Context, team healthlab.TeamID, provider string, before time.Time) (int, error)
}

// clientPlace is what the box of a client is bound to.
func clientPlace(c *TeamClient) []byte {
	return []byte("own client " + c.Team.String() + " " + c.Provider + " " + c.ClientID)
}

// roster finds the connector of the client that made a grant.
type roster struct {
	connectors map[string]ProviderConnector
	clients    TeamClients
	seal       healthlab.Sealer
}

func newRoster(connectors map[string]ProviderConnector, clients TeamClients, seal healthlab.Sealer) roster {
	return roster{maps.Clone(connectors), clients, seal}
}

// as returns a provider as a client of a team is known to it; an empty client is the
// deployment's. A client that is gone for good is NotFound.
func (r *roster) as(ctx context.Context, team healthlab.TeamID, provider, client string) (ProviderConnector, error) {
	conn := r.connectors[provider]
	if client == "" {
		return conn, nil
	}
	if r.clients == nil || conn.As == nil {
		return ProviderConnector{}, fmt.Errorf("%w: clients of teams are not configured here", healthlab.Unavailable)
	}
	c, err := r.clients.Client(ctx, team, provider, client)
	if err != nil {
		return ProviderConnector{}, fmt.Errorf("own client: %w", err)
	}
	return r.by(ctx, &c)
}

// by is [roster.as] of a client that was read.
func (r *roster) by(ctx context.Context, c *TeamClient) (ProviderConnector, error) {
	as := r.connectors[c.Provider].As
	if as == nil {
		return ProviderConnector{}, fmt.Errorf("%w: the provider takes no clients of teams here", healthlab.Unavailable)
	}
	doc, err := r.seal.Open(ctx, c.Box, clientPlace(c))
	var kept struct {
		Secret  string            `json:"secret"`
		Details map[string]string `json:"details"`
	}
	if err == nil {
		err = json.Unmarshal(doc, &kept)
	}
	if err != nil {
		return ProviderConnector{}, unusable(err)
	}
	conn, err := as(OAuthClient{ID: c.ClientID, Secret: kept.Secret, Details: kept.Details})
	if err != nil {
		return ProviderConnector{}, unusable(err)
	}
	return conn, nil
}

// unusable says of a client that is kept and cannot be used that it may work again: no
// person has to link anew for it.
func unusable(cause error) error {
	return fmt.Errorf("own client: %w: %v", healthlab.Unavailable, cause)
}
