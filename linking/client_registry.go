package linking

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
)

// Types of the healthlab.RuleError about OAuth clients of teams.
const (
	// RuleNoOwnClient: the provider does not support clients of teams.
	RuleNoOwnClient = "OWN_CREDENTIALS_NOT_SUPPORTED"
	// RuleTooManyClients: too many replaced clients are still used by connections.
	RuleTooManyClients = "TOO_MANY_CREDENTIALS"
)

// NewTeamClient is an OAuth client that a team provides.
type NewTeamClient struct {
	healthlab.Private

	Provider         string
	ClientID, Secret string
	// RedirectURL is a URL of the team to which the provider sends people back. It must redirect to the
	// service's callback with the whole query. Empty: the provider uses the service's callback directly.
	RedirectURL string
	// Details are further fields that the provider requires.
	Details map[string]string
}

const (
	// maxClientText is the greatest length of a client id, maxClientSecret that of a secret and a detail, in
	// bytes.
	maxClientText   = 512
	maxClientSecret = 4096
	maxDetails      = 20
	maxRedirect     = 2048
	// maxClients is the greatest number of clients of a team at one provider, including replaced ones that
	// connections still use.
	maxClients = 20
	// clientLinger is how long a retired client is kept at least, for people who are at the provider's sign-in page.
	clientLinger = TokenLife
)

// ClientRegistry sets and lists the OAuth clients that teams have registered at providers. [Service.ClientRegistry]
// returns it. It is safe for concurrent use.
type ClientRegistry struct {
	connectors *clientConnectors
	offers     *offers
	baseURL    string
	now        func() time.Time
}

// Enabled reports whether teams can have their own OAuth clients in this service: whether [Options].Clients is set.
func (r *ClientRegistry) Enabled() bool { return r.connectors.clients != nil }

// List returns the clients of a team: by provider, the current one first. provider limits the list to one provider;
// empty means all. Retired clients are listed while connections use them, and at least for the [TokenLife] after they
// were retired. It returns none if the registry is not enabled.
func (r *ClientRegistry) List(ctx context.Context, team healthlab.TeamID, provider string) ([]TeamClient, error) {
	list, err := r.connectors.ofTeam(ctx, ClientQuery{team, true})
	if err != nil {
		return nil, fmt.Errorf("clients of team: %w", err)
	}
	linger := r.now().Add(-clientLinger)
	return slices.DeleteFunc(list, func(c TeamClient) bool {
		return provider != "" && c.Provider != provider || !c.current() && c.Connections == 0 && c.RetiredAt.Before(linger)
	}), nil
}

// Set sets the OAuth client of a team at a provider, from the next sign-in on. Existing connections keep the
// client that made them. With the same ClientID, the new secret applies to existing connections at once; with another
// ClientID, the old client is kept, sealed, until its last connection is removed.
//
// Errors: a [*healthlab.RuleError] of type [RuleNoOwnClient] or [RuleTooManyClients];
// Invalid, with every problem by the names in JSON.
func (r *ClientRegistry) Set(ctx context.Context, team healthlab.TeamID, n NewTeamClient) (TeamClient, error) {
	c, err := r.set(ctx, team, n)
	if err != nil {
		return TeamClient{}, fmt.Errorf("set client of team: %w", err)
	}
	return c, nil
}

func (r *ClientRegistry) set(ctx context.Context, team healthlab.TeamID, n NewTeamClient) (TeamClient, error) {
	conn, err := r.connector(n.Provider)
	if err != nil {
		return TeamClient{}, err
	}
	p := n.problems()
	if len(p) == 0 {
		if _, err := conn.ForClient(OAuthClient{ID: n.ClientID, Secret: n.Secret, Details: maps.Clone(n.Details)}); err != nil {
			p = problemsOf(err)
		}
	}
	if err := p.Err(); err != nil {
		return TeamClient{}, err
	}
	at := r.now()
	store := r.connectors.clients
	if _, err := store.ForgetClients(ctx, team, "", at.Add(-clientLinger)); err != nil {
		return TeamClient{}, err
	}
	list, err := store.Clients(ctx, ClientQuery{team, true})
	if err != nil {
		return TeamClient{}, err
	}
	had := 0
	for i := range list {
		if list[i].Provider == n.Provider && list[i].ClientID != n.ClientID {
			had++
		}
	}
	if had >= maxClients {
		return TeamClient{}, rule(RuleTooManyClients, fmt.Sprintf("client_id: the team has %d OAuth clients with connections at this provider, which is the maximum; let people link again, or delete the credentials", maxClients))
	}
	c := TeamClient{
		Team: team, Provider: n.Provider, ClientID: n.ClientID, RedirectURL: n.RedirectURL, CreatedAt: at, UpdatedAt: at,
		Tail: maskedSecret(n.Secret), Details: map[string]string{},
	}
	for name, value := range n.Details {
		c.Details[name] = maskedSecret(value)
	}
	doc, err := json.Marshal(map[string]any{"secret": n.Secret, "details": n.Details})
	if err == nil {
		c.Box, err = r.connectors.seal.Seal(ctx, doc, teamClientContext(&c))
	}
	if err != nil {
		return TeamClient{}, err
	}
	if c, err = store.PutClient(ctx, c); err != nil {
		return TeamClient{}, err
	}
	i := slices.IndexFunc(list, func(x TeamClient) bool { return x.Provider == c.Provider && x.ClientID == c.ClientID })
	if i >= 0 {
		c.Connections = list[i].Connections
	}
	return c, nil
}

// Delete retires a team's client at a provider. Sign-ins then use the deployment's client. If the provider requires the
// team's own client, people can no longer link it. Existing connections continue to work: the client stays stored,
// encrypted, until its last connection is removed.
//
// With erase, Delete deletes all clients of the team at the provider at once, also replaced ones. Their connections
// fail at the next refresh of their credentials, with an event, and the people must link again.
//
// It returns the number of connections that use the client or, with erase, any of the deleted clients. It returns
// NotFound if the team has no client.
func (r *ClientRegistry) Delete(ctx context.Context, team healthlab.TeamID, provider string, erase bool) (int, error) {
	bound, err := r.delete(ctx, team, provider, erase)
	if err != nil {
		return 0, fmt.Errorf("delete client of team: %w", err)
	}
	return bound, nil
}

func (r *ClientRegistry) delete(ctx context.Context, team healthlab.TeamID, provider string, erase bool) (bound int, err error) {
	list, err := r.connectors.ofTeam(ctx, ClientQuery{team, true})
	if err != nil {
		return 0, err
	}
	for i := range list {
		if c := &list[i]; c.Provider == provider && (erase || c.current()) {
			bound += c.Connections
		}
	}
	if r.connectors.clients == nil {
		return 0, healthlab.NotFound
	}
	at := r.now()
	if !erase {
		if err := r.connectors.clients.RetireClient(ctx, team, provider, at); err != nil {
			return 0, err
		}
		_, err = r.connectors.clients.ForgetClients(ctx, team, "", at.Add(-clientLinger))
		return bound, err
	}
	n, err := r.connectors.clients.ForgetClients(ctx, team, provider, at)
	if err == nil && n == 0 {
		err = healthlab.NotFound
	}
	return bound, err
}

// Preparation is the list of steps that a team must take at a provider before its own client works.
type Preparation struct {
	Status string
	Steps  []SetupStep
}

// Statuses of a Preparation.
const (
	PrepareNothing  = "no_action_needed"
	PrepareRequired = "preparations_required"
)

// Prepare returns the steps that a team must take at a provider for its own client. redirectURL is the client's
// redirect URL; the empty one means the service's callback, and nil that of the current client. The step for the
// redirect URL is left out if people have already come back through the current client with this URL. It changes
// nothing and does not call the provider.
//
// Errors: a [*healthlab.RuleError] of type [RuleNoOwnClient]; Invalid.
func (r *ClientRegistry) Prepare(ctx context.Context, team healthlab.TeamID, provider string, redirectURL *string) (Preparation, error) {
	out, err := r.prepare(ctx, team, provider, redirectURL)
	if err != nil {
		return Preparation{}, fmt.Errorf("prepare client of team: %w", err)
	}
	return out, nil
}

func (r *ClientRegistry) prepare(ctx context.Context, team healthlab.TeamID, provider string, redirectURL *string) (Preparation, error) {
	conn, err := r.connector(provider)
	if err != nil {
		return Preparation{}, err
	}
	if redirectURL != nil && !isRedirectURL(*redirectURL) {
		var p healthlab.Problems
		p.Add("redirect_url", badRedirect, "redirect_url_override")
		return Preparation{}, p.Err()
	}
	settings, err := r.offers.teamSettings(ctx, team)
	if err != nil {
		return Preparation{}, err
	}
	has, own := settings.teamClients[provider]
	if redirectURL != nil {
		settings.teamClients = map[string]TeamClient{provider: {RedirectURL: *redirectURL}}
	}
	ours := serviceCallback(r.baseURL, provider)
	back := settings.callbackURL(provider, ours)
	out := Preparation{Status: PrepareRequired, Steps: []SetupStep{}}
	if !own || has.ProvenURL != back {
		what := "Register this address with your client at the provider, as one that people may be sent back to."
		if back != ours {
			what += " It is yours: send whoever comes there on to " + ours + ", with everything behind the question mark."
		}
		out.Steps = append(out.Steps, SetupStep{Type: SetupRedirect, Key: "redirect_uri", Value: back, Description: what})
	}
	if conn.ClientListener {
		out.Steps = append(out.Steps, SetupStep{
			Type: SetupWebhook, Key: "webhook_uri", Value: r.baseURL + "/v2/link/push/" + url.PathEscape(provider) + "/" + team.String(),
			Description: "Register this address with your client at the provider, as the one that it sends its messages to.",
		})
	}
	out.Steps = append(out.Steps, conn.Setup...)
	if len(out.Steps) == 0 {
		out.Status = PrepareNothing
	}
	return out, nil
}

// connector returns the connector of a provider that supports OAuth clients of teams.
func (r *ClientRegistry) connector(provider string) (ProviderConnector, error) {
	p := r.offers.providers.Get(provider)
	if p == nil {
		var bad healthlab.Problems
		bad.Add("unknown_provider", r.offers.providers.Expected(provider), "provider")
		return ProviderConnector{}, bad.Err()
	}
	conn := r.connectors.byProvider[provider]
	if r.connectors.clients == nil || conn.ForClient == nil || p.AuthType != authOAuth && p.AuthType != authTeamOAuth {
		return ProviderConnector{}, rule(RuleNoOwnClient, "provider: must be one that supports OAuth credentials of a team")
	}
	return conn, nil
}

const badRedirect = "must be an https address, or http on this machine, without user, query and fragment, of at most 2,048 bytes"

func isRedirectURL(s string) bool {
	if s == "" {
		return true
	}
	u, err := url.Parse(s)
	if err != nil || len(s) > maxRedirect || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(s, "#") {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname())
}

// problems returns the invalid fields of n, except those that only the provider's connector can check.
func (n *NewTeamClient) problems() (p healthlab.Problems) {
	word := func(s string, most int, path ...any) {
		if s == "" || len(s) > most || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
			p.Add("text", fmt.Sprintf("must have 1 to %d printable ASCII characters", most), path...)
		}
	}
	word(n.ClientID, maxClientText, "client_id")
	if n.Secret != "" { // the connector checks whether a secret is required
		word(n.Secret, maxClientSecret, "client_secret")
	}
	if !isRedirectURL(n.RedirectURL) {
		p.Add("redirect_url", badRedirect, "redirect_url_override")
	}
	if len(n.Details) > maxDetails {
		p.Add("too_long", fmt.Sprintf("must have at most %d entries", maxDetails), "details")
		return p
	}
	for _, name := range slices.Sorted(maps.Keys(n.Details)) {
		word(n.Details[name], maxClientSecret, "details", truncateName(name))
	}
	return p
}

func truncateName(s string) string { return strings.ToValidUTF8(s[:min(len(s), 64)], "") }

// maskedSecret returns "…" and the last four characters of a secret; only "…" if the secret has less than 16
// characters.
func maskedSecret(s string) string {
	const shown = 4
	if len(s) < 4*shown || !utf8.ValidString(s) {
		return "…"
	}
	return "…" + s[len(s)-shown:]
}

// Listeners returns the [Listener] of each client of a team at a provider, by client id. They read the messages that
// the provider sends to these clients.
func (r *ClientRegistry) Listeners(ctx context.Context, team healthlab.TeamID, provider string) (map[string]Listener, error) {
	list, err := r.connectors.ofTeam(ctx, ClientQuery{Team: team})
	if err != nil {
		return nil, fmt.Errorf("listeners of team: %w", err)
	}
	out := map[string]Listener{}
	for i := range list {
		if list[i].Provider != provider {
			continue
		}
		conn, err := r.connectors.forTeamClient(ctx, &list[i])
		if err != nil {
			return nil, fmt.Errorf("listeners of team: %w", err)
		}
		if conn.Listener != nil {
			out[list[i].ClientID] = conn.Listener
		}
	}
	return out, nil
}

// problemsOf returns the problems of an [*healthlab.InvalidError], or one general problem for another error.
func problemsOf(err error) healthlab.Problems {
	var invalid *healthlab.InvalidError
	if errors.As(err, &invalid) && len(invalid.Problems) > 0 {
		return invalid.Problems
	}
	var p healthlab.Problems
	p.Add("invalid", "client_id, client_secret and details must be those of an OAuth client that the provider's connector accepts")
	return p
}
