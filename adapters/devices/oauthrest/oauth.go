package oauthrest

import (
	"context"
	"net/url"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
)

func (o *OAuth) pkce() bool { return o.PKCE == nil || *o.PKCE }

// flow returns the OAuth flow that the configuration describes.
func (c *Connector) flow(client Client) *rest.Flow {
	o := &c.config.OAuth
	f := &rest.Flow{Client: client, HTTP: c.http, OAuth: rest.OAuth{
		AuthorizeURL: o.AuthorizeURL, TokenURL: o.TokenURL, ClientAuth: rest.ClientAuth(orText(o.ClientAuth, authBasic)), PKCE: o.pkce(),
		ScopeSeparator: o.ScopeSeparator, AuthorizeParams: o.AuthorizeParams, TokenParams: o.TokenParams, TokenSeconds: o.TokenSeconds,
		EndErrors: o.OverErrors, Revocation: rest.Revocation{URL: o.RevocationURL, Token: rest.RevokeForm}, Minimum: o.MinimumScopes,
	}}
	if o.Revocation == revokeBearer {
		f.OAuth.Revocation.Token = rest.RevokeBearer
	}
	if o.Account != nil {
		f.OAuth.Account = c.account
	}
	return f
}

// account returns the provider's id of the person, which Config.OAuth.Account selects.
func (c *Connector) account(ctx context.Context, s *rest.SignedIn) (string, error) {
	a := c.config.OAuth.Account
	body, err := tree(s.Token, nil)
	if err != nil {
		return "", shapeError("the answer of oauth.token_url " + errDocument.Error())
	}
	if a.URL != "" {
		where, err := url.Parse(a.URL)
		if err != nil {
			return "", err
		}
		got, err := c.get(ctx, where, s.Access)
		if err != nil {
			return "", err
		}
		if _, err = c.checkStatus(got, "oauth.account.url"); err != nil {
			return "", err
		}
		if body, err = tree(got.Body, nil); err != nil {
			return "", shapeError("the answer of oauth.account.url " + errDocument.Error())
		}
	}
	v, _ := (&item{inside: []any{body}}).find(a.At)
	id, ok := text(v)
	if !ok || id == "" {
		return "", shapeError("oauth.account.at must select a text or a number")
	}
	return id, nil
}
