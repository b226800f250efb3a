package linking

import (
	"context"
	"log/slog"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// TeamClient is an OAuth client that a team has registered at a provider. New sign-ins of the team's people use
// it in place of the deployment's client. Connections stay bound to their client, because a provider renews and
// ends a grant only for the client of the grant.
type TeamClient struct {
	Team     healthlab.TeamID
	Provider string
	// ClientID identifies the client in the team and provider.
	ClientID string
	// Box has the encrypted secret and details. Tail is the visible end of the secret, and Details are the
	// visible ends of the details.
	Box     healthlab.Sealed
	Tail    string
	Details map[string]string
	// RedirectURL is the redirect URL at the provider; empty means the service's callback.
	RedirectURL string
	// CreatedAt is when the team first set the client, and UpdatedAt when it last set it.
	CreatedAt, UpdatedAt time.Time
	// RetiredAt is when the client was replaced or deleted; zero while it is the current one. A retired client
	// is used for its existing connections, and not for new ones.
	RetiredAt time.Time
	// ProvenAt is when a person first came back from the provider through the client to the redirect URL ProvenURL;
	// zero if no person has done so yet.
	ProvenAt  time.Time
	ProvenURL string
	// Connections is the number of connections of live users that use the client, have a credential and are not
	// Deregistered. It is zero unless [ClientQuery] requests the count.
	Connections int
}

// LogValue logs the ids of the client and not the secret.
func (c TeamClient) LogValue() slog.Value {
	return slog.GroupValue(slog.String("team", c.Team.String()), slog.String("provider", c.Provider))
}

func (c *TeamClient) current() bool { return c.RetiredAt.IsZero() }

// ClientQuery selects the clients of a team. With Count, the result has the numbers of their connections, for which the
// store reads all connections.
type ClientQuery struct {
	Team  healthlab.TeamID
	Count bool
}

// TeamClients stores the OAuth clients of teams. The rules of [Store] about all methods apply here too. Clients
// are deleted with their team.
type TeamClients interface {
	// Clients returns all clients of a team: by provider, the current one first, then the most recently retired
	// one, then by ClientID.
	Clients(ctx context.Context, q ClientQuery) ([]TeamClient, error)

	// Client returns one client, current or retired.
	Client(ctx context.Context, team healthlab.TeamID, provider, clientID string) (TeamClient, error)

	// PutClient makes a client the current one of its team and provider, and retires the previous one at
	// c.UpdatedAt. A client with the same ClientID is replaced; its CreatedAt, ProvenAt and ProvenURL stay.
	// RetiredAt and Connections of c are ignored. It returns Invalid without team, provider, ClientID or a Box.
	PutClient(ctx context.Context, c TeamClient) (TeamClient, error)

	// RetireClient retires the current client of a provider. It returns NotFound if there is none.
	RetireClient(ctx context.Context, team healthlab.TeamID, provider string, at time.Time) error

	// ProveClient sets ProvenURL to redirectURL and ProvenAt to at, unless ProvenURL already has this value. It does
	// nothing if there is no such client.
	ProveClient(ctx context.Context, team healthlab.TeamID, provider, clientID, redirectURL string, at time.Time) error

	// ForgetClients deletes the clients of a team that were retired before an instant and that no connection of
	// a user uses. With a provider, it deletes all clients of that provider, even if connections use them. It
	// returns the number of deleted clients.
	ForgetClients(ctx context.Context, team healthlab.TeamID, provider string, before time.Time) (int, error)
}
