package oauthrest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Client is the OAuth client at the provider. It is separate from Config, which contains no secret.
type Client = rest.Client

// Options adjusts a Connector. The zero value, and nil, mean the defaults.
type Options struct {
	// Guard decides which addresses may be requested. Default: https to public addresses only.
	Guard *webhook.Guard
	// Timeout limits one request including its answer. Default 20 seconds.
	Timeout time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Connector pulls data from one provider. Make it with [New]. Safe for concurrent use. It stores nothing of a person.
type Connector struct {
	*rest.Flow
	config  Config
	http    *rest.HTTP
	now     func() time.Time
	entries map[string][]*mapper
}

// New returns the connector of a configuration that [ReadConfig] returned. It sends no requests. It returns Invalid
// with the path of every address that opts.Guard refuses, and for a client that has no id or whose secret does not fit
// client_auth.
func New(config Config, client Client, opts *Options) (*Connector, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	o.Guard = cmp.Or(o.Guard, &webhook.Guard{})
	if o.Timeout <= 0 {
		o.Timeout = 20 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	p := config.check()
	if len(p) == 0 {
		p = config.addresses(o.Guard)
	}
	if !config.canUseClient(client) {
		p.Add("client", "must have an id and, unless client_auth is none, a secret", "oauth", "client_auth")
	}
	if err := p.Err(); err != nil {
		return nil, fmt.Errorf("connector: %w", err)
	}
	c := &Connector{
		config: config, now: o.Now, entries: map[string][]*mapper{},
		http: rest.NewHTTP(&rest.Options{Guard: o.Guard, Timeout: o.Timeout, Now: o.Now, MaxBytes: int64(cmp.Or(config.API.MaxBytes, defaultBytes))}),
	}
	c.Flow = c.flow(client)
	for i := range config.Resources {
		e := &config.Resources[i]
		c.entries[e.Resource] = append(c.entries[e.Resource], newMapper(e))
	}
	return c, nil
}

func (c *Config) canUseClient(client Client) bool {
	return client.ID != "" && (client.Secret == "") == (c.OAuth.ClientAuth == authNone)
}

// ForClient returns a connector for another OAuth client of the provider. client.Details must be empty. client.Secret
// must be empty if client_auth is none, and set otherwise. Errors are those that linking.ProviderConnector documents.
func (c *Connector) ForClient(client linking.OAuthClient) (linking.ProviderConnector, error) {
	var p healthlab.Problems
	own, as := *c, Client{ID: client.ID, Secret: client.Secret}
	own.Flow = c.flow(as)
	switch {
	case client.ID == "":
		p.Add("missing", "must be set", "client_id")
	case !c.config.canUseClient(as) && client.Secret == "":
		p.Add("missing", "must be set for this provider", "client_secret")
	case !c.config.canUseClient(as):
		p.Add("secret", "must be empty for this provider", "client_secret")
	}
	for _, name := range slices.Sorted(maps.Keys(client.Details)) {
		p.Add("unknown", "must be left out: the OAuth client of this provider has no detail of this name", "details", name[:min(len(name), 64)])
	}
	if err := p.Err(); err != nil {
		return linking.ProviderConnector{}, fmt.Errorf("client: %w", err)
	}
	return own.Flows(), nil
}

// addresses reports the URLs of the configuration that a guard refuses.
func (c *Config) addresses(guard *webhook.Guard) (p healthlab.Problems) {
	check := func(address string, path ...any) {
		if address == "" {
			return
		}
		if _, err := guard.CheckURL(address); err != nil {
			p.Under(problemsOf(err), path...)
		}
	}
	check(c.OAuth.AuthorizeURL, "oauth", "authorize_url")
	check(c.OAuth.TokenURL, "oauth", "token_url")
	check(c.OAuth.RevocationURL, "oauth", "revocation_url")
	if c.OAuth.Account != nil {
		check(c.OAuth.Account.URL, "oauth", "account", "url")
	}
	check(c.API.BaseURL, "api", "base_url")
	return p
}

// problemsOf returns the problems that an Invalid error contains, or one general problem for another error.
func problemsOf(err error) healthlab.Problems {
	var invalid *healthlab.InvalidError
	if errors.As(err, &invalid) {
		return invalid.Problems
	}
	return healthlab.Problems{{Code: "invalid", Msg: "must be a valid URL that the guard of outgoing requests allows"}}
}

// Flows returns the connector as the interfaces of package linking that it implements.
func (c *Connector) Flows() linking.ProviderConnector {
	out := linking.ProviderConnector{OAuth: c, Refresher: c, TokenCodec: c, Puller: c, ForClient: c.ForClient, Minimum: slices.Clone(c.config.OAuth.MinimumScopes)}
	for _, s := range c.config.OAuth.Setup {
		out.Setup = append(out.Setup, linking.SetupStep(s))
	}
	if c.config.OAuth.RevocationURL != "" {
		out.Revoker = c
	}
	return out
}

// get sends a GET request with an access token, and reads the response body up to API.MaxBytes.
func (c *Connector) get(ctx context.Context, where *url.URL, token string) (*rest.Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%w: the URL of the request to the provider must be valid", healthlab.Invalid)
	}
	for name, value := range c.config.API.Headers {
		req.Header.Set(name, value)
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return c.http.Do(req)
}
