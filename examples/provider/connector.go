package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Record returns the provider's entry for the host's list of providers.
func Record() healthdata.Provider {
	return healthdata.Provider{
		Slug: "tidewater", Name: "Tidewater Scales", Class: "cloud", AuthType: "password", Category: "device",
		Resources: []healthdata.ProviderResource{{Resource: "weight"}},
	}
}

// Connector connects to an invented maker of scales. A person signs in with a name and a password, and the API
// returns weighings in pages. It has no state and is safe for concurrent use.
type Connector struct {
	url    string
	client *http.Client
}

// NewConnector returns a Connector for the provider's API at url.
func NewConnector(url string) *Connector {
	return &Connector{url, &http.Client{Timeout: 20 * time.Second}}
}

// Flows returns the connector in the form that package linking takes. It has no Refresher, because tokens of this
// provider do not expire.
func (c *Connector) Flows() linking.ProviderConnector {
	return linking.ProviderConnector{Password: c, Revoker: c, Puller: c}
}

// refused is the error for an answer whose HTTP status is neither 200 nor 204.
type refused struct {
	status int
	wait   time.Duration // the wait of the header Retry-After; 0 without it
}

func (e *refused) Error() string { return fmt.Sprintf("the provider answered %d", e.status) }

// call makes one request to the API, and decodes the answer into out. Its errors contain neither the address nor
// the token.
func (c *Connector) call(ctx context.Context, method, path, token string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := c.client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: the provider does not answer", healthlab.Unavailable)
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusNoContent:
		return nil
	case answer.StatusCode != http.StatusOK:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // this provider sends seconds, not a date
		return &refused{answer.StatusCode, time.Duration(max(seconds, 0)) * time.Second}
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(out); err != nil {
		return fmt.Errorf("%w: the provider's answer must be the JSON that this connector expects", healthlab.Unavailable)
	}
	return nil
}

// answerOf returns the refused answer that caused an error; zero if none did.
func answerOf(err error) refused {
	var r *refused
	if errors.As(err, &r) {
		return *r
	}
	return refused{}
}

// SignIn implements [linking.PasswordFlow]: it exchanges a name and a password for a token.
func (c *Connector) SignIn(ctx context.Context, r linking.PasswordRequest) (linking.PasswordResponse, error) {
	var out struct{ Token, Account string }
	err := c.call(ctx, http.MethodPost, "/token", "", map[string]string{"name": r.Username, "password": r.Password}, &out)
	switch {
	case answerOf(err).status == http.StatusForbidden:
		return linking.PasswordResponse{}, &linking.Error{Type: linking.ProviderCredentialError}
	case err != nil:
		return linking.PasswordResponse{}, fmt.Errorf("sign in: %w", err)
	}
	return linking.PasswordResponse{Grant: linking.Grant{ExternalUserID: out.Account, Secret: []byte(out.Token)}}, nil
}

// CompleteMFA implements [linking.PasswordFlow]. The provider never asks for a code, so it is not called.
func (*Connector) CompleteMFA(context.Context, linking.MFARequest) (linking.Grant, error) {
	return linking.Grant{}, &linking.Error{Type: linking.ProviderCredentialError}
}

// Revoke implements [linking.Revoker]. A token that the provider does not know counts as revoked.
func (c *Connector) Revoke(ctx context.Context, secret []byte) error {
	err := c.call(ctx, http.MethodDelete, "/token", string(secret), nil, nil)
	if err != nil && answerOf(err).status != http.StatusUnauthorized {
		return fmt.Errorf("revoke: %w", err)
	}
	return nil
}

// Pull implements [linking.Puller]: one request returns one page of weighings.
func (c *Connector) Pull(ctx context.Context, r linking.PullRequest) (linking.PullPage, error) {
	if r.Resource != "weight" {
		return linking.PullPage{}, fmt.Errorf("pull: %w: resource: must be weight", healthlab.Unimplemented)
	}
	q := url.Values{"from": {r.From.Format(time.RFC3339)}, "to": {r.To.Format(time.RFC3339)}, "page": {r.Cursor}}
	var out struct {
		Weighings []struct {
			At time.Time
			KG float64
		}
		Next string
	}
	err := c.call(ctx, http.MethodGet, "/weighings?"+q.Encode(), string(r.Secret), nil, &out)
	switch answer := answerOf(err); answer.status {
	case http.StatusUnauthorized:
		return linking.PullPage{}, &linking.GrantError{} // the token cannot be renewed, so the person has to link again
	case http.StatusTooManyRequests:
		return linking.PullPage{}, &linking.RateLimitError{Wait: answer.wait}
	}
	if err != nil {
		return linking.PullPage{}, fmt.Errorf("pull: %w", err)
	}
	item := linking.PullItem{Source: healthdata.Source{Type: healthdata.SourceScale}}
	for _, w := range out.Weighings {
		item.Samples = append(item.Samples, healthdata.Sample{Timestamp: healthlab.At(w.At), Unit: "kg", Value: healthdata.Number(w.KG)})
	}
	return linking.PullPage{Items: []linking.PullItem{item}, Next: out.Next}, nil
}
