package linkingtest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// ConnectorHarness is a connector, and a provider with one person who has data.
type ConnectorHarness struct {
	Connector linking.ProviderConnector
	// Approve signs the person in on the provider's page, and returns the code that the
	// provider sends to the redirect URL. Required for an OAuth flow.
	Approve func(t testing.TB, page string) (code string)
	// Scopes are requested at the sign-in.
	Scopes []string
	// Password and Email sign the person in; required for a flow of that kind.
	Password linking.PasswordRequest
	Email    linking.EmailRequest
	// RefusedPassword and RefusedEmail are refused by the provider. Zero if the test
	// cannot cause that.
	RefusedPassword linking.PasswordRequest
	RefusedEmail    linking.EmailRequest
	// Resources are slugs of which the person has data from From (inclusive) to To
	// (exclusive). Required for a connector with a Puller.
	Resources []string
	From, To  time.Time
	// Message returns a message as the provider sends it, and Forged one that another
	// party sends. Required for a connector with a Listener.
	Message, Forged func(t testing.TB) linking.Message
	// Outage makes the provider answer every further request with a failure of its own. Nil
	// if the test cannot cause that.
	Outage func()

	attempts int // sign-ins so far
}

const (
	redirectURL = "https://app.example/callback"
	nonsense    = "planted-nonsense-4711"
)

// attempt is one sign-in.
type attempt struct{ page, state, verifier string }

// begin returns the address of the provider's sign-in page, each time for another sign-in.
func (h *ConnectorHarness) begin(t testing.TB) attempt {
	t.Helper()
	h.attempts++
	a := attempt{state: fmt.Sprintf("state-%08d", h.attempts), verifier: fmt.Sprintf("a verifier of forty-three characters %08d", h.attempts)}
	sum := sha256.Sum256([]byte(a.verifier))
	var err error
	a.page, err = h.Connector.OAuth.Authorize(t.Context(), linking.AuthorizeRequest{
		State: a.state, RedirectURL: redirectURL, Challenge: base64.RawURLEncoding.EncodeToString(sum[:]), Scopes: h.Scopes,
	})
	require.NoError(t, err)
	return a
}

// exchange exchanges a code.
func (h *ConnectorHarness) exchange(t testing.TB, code, verifier string) (linking.Grant, error) {
	t.Helper()
	return h.Connector.OAuth.Exchange(t.Context(), linking.ExchangeRequest{Code: code, RedirectURL: redirectURL, Verifier: verifier, Scopes: h.Scopes})
}

// signIn signs the person in through the first flow that the connector has.
func (h *ConnectorHarness) signIn(t testing.TB) linking.Grant {
	t.Helper()
	var g linking.Grant
	var err error
	switch c := h.Connector; {
	case c.OAuth != nil:
		a := h.begin(t)
		g, err = h.exchange(t, h.Approve(t, a.page), a.verifier)
	case c.Password != nil:
		var answer linking.PasswordResponse
		answer, err = c.Password.SignIn(t.Context(), h.Password)
		g = answer.Grant
	default:
		g, err = c.Email.SignInByEmail(t.Context(), h.Email)
	}
	require.NoError(t, err)
	return g
}

// request asks for a resource in the whole range.
func (h *ConnectorHarness) request(g linking.Grant, resource string) linking.PullRequest {
	r := linking.PullRequest{Secret: g.Secret, Resource: resource, From: h.From, To: h.To, Zone: time.UTC}
	if g.ExternalUserID != "" {
		r.ExternalUserID = &g.ExternalUserID
	}
	return r
}

// pages reads a request to its last page.
func (h *ConnectorHarness) pages(t testing.TB, r linking.PullRequest) []linking.PullItem {
	t.Helper()
	return h.together(t, r)[r.Resource]
}

// together reads a request to its last page, and returns the items by resource.
func (h *ConnectorHarness) together(t testing.TB, r linking.PullRequest) map[string][]linking.PullItem {
	t.Helper()
	out := map[string][]linking.PullItem{}
	seen := map[string]bool{"": true}
	for {
		p, err := h.Connector.Puller.Pull(t.Context(), r)
		require.NoError(t, err)
		out[r.Resource] = append(out[r.Resource], p.Items...)
		for _, other := range p.With {
			require.Contains(t, r.With, other.Resource, "a page has only what was asked for")
			out[other.Resource] = append(out[other.Resource], other.Items...)
		}
		if p.Next == "" {
			return out
		}
		require.False(t, seen[p.Next], "a cursor comes twice: the pages do not end")
		seen[p.Next] = true
		r.Cursor = p.Next
	}
}

// records names what items hold: samples by instant and type, summaries by their own id.
func records(items []linking.PullItem) map[string]bool {
	out := map[string]bool{}
	for _, item := range items {
		for _, s := range item.Samples {
			key := "sample " + s.Timestamp.UTC().Format(time.RFC3339Nano)
			if s.Type != nil {
				key += " " + *s.Type
			}
			out[key] = true
		}
		for _, s := range item.Summaries {
			if id := healthdata.HeadOf(s).ExternalID; id != "" {
				out["summary "+id] = true
			}
		}
	}
	return out
}

// refusedAs reports whether an error is of a link error type, and shows nothing of the input.
func refusedAs(t *testing.T, err error, want linking.ErrorType, hidden ...string) {
	t.Helper()
	var e *linking.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, want, e.Type)
	shows(t, err, hidden...)
}

// shows fails if an error contains one of the texts.
func shows(t *testing.T, err error, hidden ...string) {
	t.Helper()
	for _, text := range hidden {
		if text != "" {
			require.NotContains(t, err.Error(), text, "an error shows no credential")
		}
	}
}

// ended reports whether an error says that the grant works no longer.
func ended(err error) bool {
	var g *linking.GrantError
	return errors.As(err, &g) || errors.Is(err, healthlab.Unauthenticated)
}

// RunConnector runs the contract of [linking.ProviderConnector]. newConnector returns a fresh
// connector and provider. Cases for what the connector does not have are skipped.
func RunConnector(t *testing.T, newConnector func(t testing.TB) ConnectorHarness) {
	cases := []struct {
		name string
		// needs reports whether the connector has what the case tests.
		needs func(h *ConnectorHarness) bool
		run   func(t *testing.T, h *ConnectorHarness)
	}{
		{"Flow", always, func(t *testing.T, h *ConnectorHarness) {
			c := h.Connector
			require.True(t, c.OAuth != nil || c.Password != nil || c.Email != nil, "a connector has a flow")
		}},
		{"OAuth/Page", oauth, func(t *testing.T, h *ConnectorHarness) {
			a := h.begin(t)
			page, err := url.Parse(a.page)
			require.NoError(t, err)
			require.Equal(t, a.state, page.Query().Get("state"), "the state is passed on")
			require.Equal(t, redirectURL, page.Query().Get("redirect_uri"))
			require.NotContains(t, page.Query().Encode(), url.QueryEscape(a.verifier), "the verifier stays secret")
			require.NotEmpty(t, h.Approve(t, h.begin(t).page), "Authorize may be called again")
		}},
		{"OAuth/UnknownCode", oauth, func(t *testing.T, h *ConnectorHarness) {
			a := h.begin(t)
			_, err := h.exchange(t, nonsense, a.verifier)
			refusedAs(t, err, linking.ProviderCredentialError, nonsense, a.verifier)
		}},
		{"OAuth/CodeWorksOnce", oauth, func(t *testing.T, h *ConnectorHarness) {
			a := h.begin(t)
			code := h.Approve(t, a.page)
			_, err := h.exchange(t, code, a.verifier)
			require.NoError(t, err)
			_, err = h.exchange(t, code, a.verifier)
			refusedAs(t, err, linking.ProviderCredentialError, code)
		}},
		{"OAuth/Verifier", oauth, func(t *testing.T, h *ConnectorHarness) {
			a := h.begin(t)
			if u, err := url.Parse(a.page); err != nil || u.Query().Get("code_challenge") == "" {
				t.Skip("the provider has no PKCE")
			}
			_, err := h.exchange(t, h.Approve(t, a.page), "another verifier that has at least forty-three characters")
			refusedAs(t, err, linking.ProviderCredentialError)
		}},
		{"Password/Refused", func(h *ConnectorHarness) bool {
			return h.Connector.Password != nil && h.RefusedPassword != linking.PasswordRequest{}
		}, func(t *testing.T, h *ConnectorHarness) {
			_, err := h.Connector.Password.SignIn(t.Context(), h.RefusedPassword)
			refusedAs(t, err, linking.ProviderCredentialError, h.RefusedPassword.Username, h.RefusedPassword.Password)
		}},
		{"Email/Refused", func(h *ConnectorHarness) bool {
			return h.Connector.Email != nil && h.RefusedEmail != linking.EmailRequest{}
		}, func(t *testing.T, h *ConnectorHarness) {
			_, err := h.Connector.Email.SignInByEmail(t.Context(), h.RefusedEmail)
			refusedAs(t, err, linking.ProviderCredentialError, h.RefusedEmail.Email)
		}},
		{"Grant", always, func(t *testing.T, h *ConnectorHarness) {
			first, second := h.signIn(t), h.signIn(t)
			require.NotEmpty(t, first.Secret)
			require.Equal(t, first.ExternalUserID, second.ExternalUserID, "a person has one account")
			require.Empty(t, first.Client, "connectors leave Client empty")
		}},
		{"Refresh/NewSecret", refresher, func(t *testing.T, h *ConnectorHarness) {
			g := h.signIn(t)
			renewed, err := h.Connector.Refresher.Refresh(t.Context(), g.Secret)
			require.NoError(t, err)
			require.NotEmpty(t, renewed.Secret)
			g.Secret = renewed.Secret
			if h.Connector.Puller != nil {
				_, err = h.Connector.Puller.Pull(t.Context(), h.request(g, h.Resources[0]))
				require.NoError(t, err, "the new secret works")
			}
			_, err = h.Connector.Refresher.Refresh(t.Context(), renewed.Secret)
			require.NoError(t, err, "the new secret can be renewed")
		}},
		{"Refresh/Nonsense", refresher, func(t *testing.T, h *ConnectorHarness) {
			_, err := h.Connector.Refresher.Refresh(t.Context(), []byte(nonsense))
			require.Error(t, err)
			shows(t, err, nonsense)
		}},
		{"Refresh/Outage", func(h *ConnectorHarness) bool { return refresher(h) && h.Outage != nil }, func(t *testing.T, h *ConnectorHarness) {
			g := h.signIn(t)
			h.Outage()
			_, err := h.Connector.Refresher.Refresh(t.Context(), g.Secret)
			require.Error(t, err)
			var over *linking.GrantError
			require.False(t, errors.As(err, &over), "an outage does not end a grant")
			shows(t, err, string(g.Secret))
		}},
		{"Refresh/Revoked", func(h *ConnectorHarness) bool { return refresher(h) && revoker(h) }, func(t *testing.T, h *ConnectorHarness) {
			g := h.signIn(t)
			require.NoError(t, h.Connector.Revoker.Revoke(t.Context(), g.Secret))
			_, err := h.Connector.Refresher.Refresh(t.Context(), g.Secret)
			var over *linking.GrantError
			require.ErrorAs(t, err, &over, "a grant that the provider ended is over")
		}},
		{"Revoke/Repeat", revoker, func(t *testing.T, h *ConnectorHarness) {
			g := h.signIn(t)
			for range 2 {
				require.NoError(t, h.Connector.Revoker.Revoke(t.Context(), g.Secret), "a grant that has ended is a success")
			}
		}},
		{"Tokens/RoundTrip", tokenCodec, func(t *testing.T, h *ConnectorHarness) {
			tokens, err := h.Connector.TokenCodec.Decode(h.signIn(t).Secret)
			require.NoError(t, err)
			require.NotEmpty(t, tokens.Access+tokens.Refresh)
			secret, err := h.Connector.TokenCodec.Encode(tokens)
			require.NoError(t, err)
			again, err := h.Connector.TokenCodec.Decode(secret)
			require.NoError(t, err)
			require.True(t, tokens.Refresh == again.Refresh && (tokens.Refresh != "" || tokens.Access == again.Access), "what Encode takes, Decode returns")
		}},
		{"Tokens/Empty", tokenCodec, func(t *testing.T, h *ConnectorHarness) {
			_, err := h.Connector.TokenCodec.Encode(linking.Tokens{})
			require.ErrorIs(t, err, healthlab.Invalid)
		}},
		{"Tokens/Nonsense", tokenCodec, func(t *testing.T, h *ConnectorHarness) {
			_, err := h.Connector.TokenCodec.Decode([]byte(nonsense))
			require.Error(t, err)
			shows(t, err, nonsense)
		}},
		{"Pull/Shape", puller, func(t *testing.T, h *ConnectorHarness) {
			g := h.signIn(t)
			for _, slug := range h.Resources {
				found := 0
				for _, item := range h.pages(t, h.request(g, slug)) {
					found += len(item.Samples) + len(item.Summaries)
					shape(t, slug, item)
					if item.Owner != nil && g.ExternalUserID != "" {
						require.Equal(t, g.ExternalUserID, *item.Owner, "the data is the person's own")
					}
				}
				require.Positive(t, found, "no data of %s", slug)
			}
		}},
		{"Pull/Repeat", puller, func(t *testing.T, h *ConnectorHarness) {
			g := h.signIn(t)
			for _, slug := range h.Resources {
				require.Equal(t, records(h.pages(t, h.request(g, slug))), records(h.pages(t, h.request(g, slug))), slug)
			}
		}},
		{"Pull/Halves", puller, func(t *testing.T, h *ConnectorHarness) {
			g := h.signIn(t)
			middle := h.From.Add(h.To.Sub(h.From) / 2).Truncate(24 * time.Hour)
			for _, slug := range h.Resources {
				want := records(h.pages(t, h.request(g, slug)))
				first, second := h.request(g, slug), h.request(g, slug)
				first.To, second.From = middle, middle
				got := records(append(h.pages(t, first), h.pages(t, second)...))
				for key := range want {
					require.True(t, got[key], "%s: a range in two parts loses what the whole has", slug)
				}
				for key := range got {
					require.True(t, want[key], "%s: the whole range loses what its parts have", slug)
				}
			}
		}},
		{"Pull/Together", puller, func(t *testing.T, h *ConnectorHarness) {
			g := h.signIn(t)
			for _, set := range h.Connector.Together {
				set = slices.DeleteFunc(slices.Clone(set), func(slug string) bool { return !slices.Contains(h.Resources, slug) })
				if len(set) < 2 {
					continue
				}
				r := h.request(g, set[0])
				r.With = set[1:]
				got := h.together(t, r)
				for _, slug := range set {
					require.Equal(t, records(h.pages(t, h.request(g, slug))), records(got[slug]), "%s comes with %s as it does alone", slug, set[0])
				}
			}
		}},
		{"Pull/UnknownResource", puller, func(t *testing.T, h *ConnectorHarness) {
			_, err := h.Connector.Puller.Pull(t.Context(), h.request(h.signIn(t), nonsense))
			require.True(t, errors.Is(err, healthlab.Invalid) || errors.Is(err, healthlab.Unimplemented), "asking again does not help; got %v", err)
		}},
		{"Pull/ForeignSecret", puller, func(t *testing.T, h *ConnectorHarness) {
			r := h.request(h.signIn(t), h.Resources[0])
			r.Secret = []byte(nonsense)
			_, err := h.Connector.Puller.Pull(t.Context(), r)
			require.True(t, ended(err) || errors.Is(err, healthlab.Invalid), "trying later does not help; got %v", err)
			shows(t, err, nonsense)
		}},
		{"Pull/Revoked", func(h *ConnectorHarness) bool { return puller(h) && revoker(h) }, func(t *testing.T, h *ConnectorHarness) {
			g := h.signIn(t)
			require.NoError(t, h.Connector.Revoker.Revoke(t.Context(), g.Secret))
			_, err := h.Connector.Puller.Pull(t.Context(), h.request(g, h.Resources[0]))
			require.True(t, ended(err), "a revoked grant gives no data; got %v", err)
		}},
		{"Pull/Outage", func(h *ConnectorHarness) bool { return puller(h) && h.Outage != nil }, func(t *testing.T, h *ConnectorHarness) {
			g := h.signIn(t)
			h.Outage()
			_, err := h.Connector.Puller.Pull(t.Context(), h.request(g, h.Resources[0]))
			require.Error(t, err)
			require.False(t, ended(err), "an outage does not end a grant")
			require.NotErrorIs(t, err, healthlab.Invalid, "trying later helps")
			require.NotErrorIs(t, err, healthlab.Unimplemented, "trying later helps")
			shows(t, err, string(g.Secret))
		}},
		{"Pull/ContextEnded", puller, func(t *testing.T, h *ConnectorHarness) {
			g := h.signIn(t)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := h.Connector.Puller.Pull(ctx, h.request(g, h.Resources[0]))
			require.Error(t, err)
			require.False(t, ended(err), "an end of the context does not end a grant")
		}},
		{"Pull/Concurrent", puller, func(t *testing.T, h *ConnectorHarness) {
			g := h.signIn(t)
			r := h.request(g, h.Resources[0])
			want, err := h.Connector.Puller.Pull(t.Context(), r)
			require.NoError(t, err)
			var wg sync.WaitGroup
			got, errs := make([]linking.PullPage, 8), make([]error, 8)
			for i := range got {
				wg.Go(func() { got[i], errs[i] = h.Connector.Puller.Pull(t.Context(), r) })
			}
			wg.Wait()
			for i := range got {
				require.NoError(t, errs[i])
				require.Equal(t, records(want.Items), records(got[i].Items))
			}
		}},
		{"Listen/Repeat", listener, func(t *testing.T, h *ConnectorHarness) {
			m := h.Message(t)
			first, err := h.Connector.Listener.Listen(t.Context(), m)
			require.NoError(t, err)
			require.True(t, len(first.Notifications) > 0 || len(first.Reply) > 0, "a message of the provider says something")
			second, err := h.Connector.Listener.Listen(t.Context(), m)
			require.NoError(t, err)
			require.Equal(t, first, second, "nothing is kept between calls")
		}},
		{"Listen/Forged", listener, func(t *testing.T, h *ConnectorHarness) {
			m := h.Forged(t)
			got, err := h.Connector.Listener.Listen(t.Context(), m)
			require.ErrorIs(t, err, healthlab.Unauthenticated)
			require.Empty(t, got.Notifications)
			shows(t, err, string(m.Body))
		}},
		{"Listen/Nonsense", listener, func(t *testing.T, h *ConnectorHarness) {
			for i, m := range []linking.Message{{}, {Method: "POST"}, {Method: "POST", Body: []byte(nonsense)}, {Method: "GET"}} {
				m.At = h.To
				_, err := h.Connector.Listener.Listen(t.Context(), m)
				require.True(t, errors.Is(err, healthlab.Unauthenticated) || errors.Is(err, healthlab.Invalid), "message "+strconv.Itoa(i))
				shows(t, err, nonsense)
			}
		}},
		{"ForClient/Empty", func(h *ConnectorHarness) bool { return h.Connector.ForClient != nil }, func(t *testing.T, h *ConnectorHarness) {
			_, err := h.Connector.ForClient(linking.OAuthClient{})
			require.ErrorIs(t, err, healthlab.Invalid)
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := newConnector(t)
			if !c.needs(&h) {
				t.Skip("the connector has nothing of this kind")
			}
			c.run(t, &h)
		})
	}
}

func always(*ConnectorHarness) bool       { return true }
func oauth(h *ConnectorHarness) bool      { return h.Connector.OAuth != nil }
func refresher(h *ConnectorHarness) bool  { return h.Connector.Refresher != nil }
func revoker(h *ConnectorHarness) bool    { return h.Connector.Revoker != nil }
func tokenCodec(h *ConnectorHarness) bool { return h.Connector.TokenCodec != nil }
func puller(h *ConnectorHarness) bool     { return h.Connector.Puller != nil }
func listener(h *ConnectorHarness) bool   { return h.Connector.Listener != nil }

// shape fails if an item has what its resource does not.
func shape(t *testing.T, slug string, item linking.PullItem) {
	t.Helper()
	r := healthdata.ResourceBySlug(slug)
	require.NotNil(t, r, "%s is no resource", slug)
	if r.Class == healthdata.ClassTimeseries {
		require.Empty(t, item.Summaries, "%s has samples", slug)
	} else {
		require.Empty(t, item.Samples, "%s has summaries", slug)
	}
	for _, s := range item.Samples {
		require.False(t, s.Timestamp.IsZero())
		require.NotEmpty(t, s.Unit)
		if r.TypeRequired {
			require.NotNil(t, s.Type, "samples of %s have a type", slug)
		}
	}
	require.NotEmpty(t, item.Source.Type, "a source has a type")
}
