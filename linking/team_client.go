package linking

import (
	"context"
	"log/slog"
	"time"

	"github.com/healthlab-dev/healthlab"
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
