package rest

import (
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

// Connector pulls data from one provider as one OAuth client. Safe for concurrent use. It stores nothing of a person.
type Connector struct {
	*Flow
	def  *Definition
	opts Options
	base *url.URL
}

// New returns the connector of a definition for one OAuth client. It sends no requests. It returns Invalid for an
// address that opts.Guard refuses, and for an incomplete client.
func New(d *Definition, client Client, opts *Options) (*Connector, error) {
	o := opts.withDefaults()
	var p healthlab.Problems
	for _, u := range []struct{ name, address string }{
		{"sign-in page", d.OAuth.AuthorizeURL}, {"token URL", d.OAuth.TokenURL}, {"revocation URL", d.OAuth.Revocation.URL}, {"base URL", d.BaseURL},
	} {
		if u.address == "" {
			continue
		}
		if _, err := o.Guard.CheckURL(rebase(u.address, o.Origin)); err != nil {
			p.Add("url", "the guard of outgoing requests must allow the "+u.name+" of the provider, with the scheme and host of Origin if that is set", "origin")
			break
		}
	}
	if client.ID == "" || client.Secret == "" && d.OAuth.ClientAuth != ClientNone {
		p.Add("client", "must have an id and a secret", "client")
	}
	if client.Key == "" && d.KeyHeader != "" {
		p.Add("client", "must also have a key, for this provider", "client")
	}
	base, err := url.Parse(rebase(d.BaseURL, o.Origin))
	if err != nil {
		p.Add("url", "must be a valid URL", "base_url")
	}
	if err := p.Err(); err != nil {
		return nil, fmt.Errorf("connector: %w", err)
	}
	return &Connector{&Flow{d.OAuth, client, NewHTTP(&o), o.Origin, o.MessageURL}, d, o, base}, nil
}

// Flows returns the connector as the interfaces of package linking that it implements.
func (c *Connector) Flows() linking.ProviderConnector {
	out := linking.ProviderConnector{
		OAuth: c, Refresher: c, TokenCodec: c, Puller: c, Together: c.def.resourceSets(), ForClient: c.ForClient, Minimum: slices.Clone(c.def.OAuth.Minimum), Setup: slices.Clone(c.def.Setup),
	}
	if c.def.OAuth.Revocation.URL != "" || c.def.OAuth.Revoke != nil {
		out.Revoker = c
	}
	if c.def.Listen != nil {
		out.Listener, out.ClientListener = &listener{Listening{Client: c.Client, VerifyToken: c.opts.VerifyToken, def: c.def}, c.def.Listen}, true
	}
	return out
}

// keyDetail is the name of the detail that holds [Client.Key] in a team's own OAuth client.
const keyDetail = "key"

// ForClient returns a connector for another OAuth client of the same provider. See [linking.ProviderConnector].
func (c *Connector) ForClient(client linking.OAuthClient) (linking.ProviderConnector, error) {
	var p healthlab.Problems
	if client.ID == "" {
		p.Add("missing", "must not be empty", "client_id")
	}
	if client.Secret == "" && c.def.OAuth.ClientAuth != ClientNone {
		p.Add("missing", "must not be empty", "client_secret")
	}
	key := client.Details[keyDetail]
	if key == "" && c.def.KeyHeader != "" {
		p.Add("missing", "must not be empty", "details", keyDetail)
	}
	for _, name := range slices.Sorted(maps.Keys(client.Details)) {
		if name == keyDetail && c.def.KeyHeader != "" || name == c.def.MessageKey {
			continue
		}
		p.Add("unknown", "must be left out: the OAuth client of this provider has no detail of this name", "details", name[:min(len(name), 64)])
	}
	if err := p.Err(); err != nil {
		return linking.ProviderConnector{}, fmt.Errorf("client: %w", err)
	}
	other, flow := *c, *c.Flow
	flow.Client, flow.MessageURL = Client{ID: client.ID, Secret: client.Secret, Key: key}, "" // the address is that of the connector's own client
	other.Flow = &flow
	if name := c.def.MessageKey; name != "" {
		other.opts.VerifyToken = client.Details[name]
	}
	return other.Flows(), nil
}
