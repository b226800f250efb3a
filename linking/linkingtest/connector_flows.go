package linkingtest

import (
	"context"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

// maxSecret is the greatest length of a stored secret, in bytes.
const maxSecret = 64 << 10

// query returns the parameters of a sign-in page's URL and requires that each occurs once.
func query(t testing.TB, page string) url.Values {
	t.Helper()
	u, err := url.Parse(page)
	require.NoError(t, err)
	local := u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
	require.True(t, u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && local), "the page has an address of scheme https")
	for name, list := range u.Query() {
		require.Len(t, list, 1, "%s stands once", name)
	}
	return u.Query()
}

func scopes(q url.Values) []string {
	return strings.FieldsFunc(q.Get("scope"), func(r rune) bool { return r == ' ' || r == ',' || r == ';' })
}

// checkGrant fails unless a grant can be stored and its fields are consistent with the sign-in.
func (h *ConnectorHarness) checkGrant(t *testing.T, g linking.Grant) {
	t.Helper()
	require.NotEmpty(t, g.Secret, "a grant has a secret")
	require.LessOrEqual(t, len(g.Secret), maxSecret, "a service keeps secrets of at most 64 KiB")
	require.Empty(t, g.Client, "connectors leave Client empty")
	require.True(t, g.ExpiresAt.IsZero() || g.ExpiresAt.After(h.From), "a new secret works: ExpiresAt is not over")
	if g.Scopes == nil {
		return
	}
	for _, s := range slices.Concat(h.Scopes, h.Connector.Minimum) {
		require.Contains(t, g.Scopes, s, "the person grants what was asked for")
	}
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(g.Scopes))), len(g.Scopes), "a scope stands once")
}

var flowCases = []connectorCase{
	{"Flow", always, func(t *testing.T, h *ConnectorHarness) {
		c := h.Connector
		require.True(t, c.OAuth != nil || c.Password != nil || c.Email != nil, "a connector has a flow")
	}},
	{"OAuth/Page", oauth, func(t *testing.T, h *ConnectorHarness) {
		a := h.begin(t)
		q := query(t, a.page)
		require.Equal(t, a.state, q.Get("state"), "the state is passed on")
		require.Equal(t, redirectURL, q.Get("redirect_uri"))
		require.Equal(t, "code", q.Get("response_type"))
		require.NotEmpty(t, q.Get("client_id"))
		require.Empty(t, q.Get("client_secret"), "the page is seen by the person")
		require.NotContains(t, a.page, a.verifier, "the verifier stays secret")
		require.NotEmpty(t, h.Approve(t, h.begin(t).page), "Authorize may be called again")
	}},
	{"OAuth/Challenge", oauth, func(t *testing.T, h *ConnectorHarness) {
		a := h.begin(t)
		q := query(t, a.page)
		if h.NoPKCE {
			require.Empty(t, q.Get("code_challenge"), "ConnectorHarness.NoPKCE is set")
			return
		}
		require.Equal(t, a.challenge, q.Get("code_challenge"), "the challenge is passed on (RFC 7636)")
		require.Equal(t, "S256", q.Get("code_challenge_method"), "the method of the challenge is S256; without it, it is plain")
	}},
	{"OAuth/Scopes", allNeeds(oauth, requirement("ConnectorHarness.Scopes is empty", func(h *ConnectorHarness) bool { return len(h.Scopes) > 0 })),
		func(t *testing.T, h *ConnectorHarness) {
			require.Subset(t, scopes(query(t, h.begin(t).page)), h.Scopes, "the page asks for the scopes of the request")
			asked := h.Scopes
			h.Scopes = h.Scopes[:1]
			less := scopes(query(t, h.begin(t).page))
			for _, s := range asked[1:] {
				require.False(t, slices.Contains(less, s) && !slices.Contains(h.Connector.Minimum, s), "the page asks for no scope that the request does not have")
			}
		}},
	{"OAuth/Granted", allNeeds(oauth, requirement("ConnectorHarness.ApproveOnly is nil, or there are fewer than two Scopes", func(h *ConnectorHarness) bool { return h.ApproveOnly != nil && len(h.Scopes) > 1 })),
		func(t *testing.T, h *ConnectorHarness) {
			a := h.begin(t)
			g, err := h.exchange(t, h.ApproveOnly(t, a.page, h.Scopes[:1]), a.verifier)
			require.NoError(t, err)
			require.ElementsMatch(t, h.Scopes[:1], g.Scopes, "the grant has the scopes that the person granted")
		}},
	{"OAuth/UnknownCode", oauth, func(t *testing.T, h *ConnectorHarness) {
		a := h.begin(t)
		_, err := h.exchange(t, nonsense, a.verifier)
		h.requireRefused(t, err, linking.ProviderCredentialError, nonsense, a.verifier)
	}},
	{"OAuth/CodeWorksOnce", oauth, func(t *testing.T, h *ConnectorHarness) {
		a := h.begin(t)
		code := h.Approve(t, a.page)
		_, err := h.exchange(t, code, a.verifier)
		require.NoError(t, err)
		_, err = h.exchange(t, code, a.verifier)
		h.requireRefused(t, err, linking.ProviderCredentialError, code, a.verifier)
	}},
	{"OAuth/Verifier", allNeeds(oauth, requirement("ConnectorHarness.NoPKCE is set", func(h *ConnectorHarness) bool { return !h.NoPKCE })), func(t *testing.T, h *ConnectorHarness) {
		const other = "another-verifier-that-has-at-least-forty-three-characters"
		a := h.begin(t)
		_, err := h.exchange(t, h.Approve(t, a.page), other)
		h.requireRefused(t, err, linking.ProviderCredentialError, other)
	}},
	{"OAuth/Outage", allNeeds(oauth, outage), func(t *testing.T, h *ConnectorHarness) {
		a := h.begin(t)
		code := h.Approve(t, a.page)
		h.Outage()
		_, err := h.exchange(t, code, a.verifier)
		h.requireProviderFailure(t, err, code, a.verifier)
	}},
	{"OAuth/Answers", allNeeds(oauth, answer), func(t *testing.T, h *ConnectorHarness) {
		a := h.begin(t)
		code := h.Approve(t, a.page)
		h.eachFailure(t, func(t *testing.T) {
			_, err := h.exchange(t, code, a.verifier)
			h.requireProviderFailure(t, err, code, a.verifier, nonsense)
		})
	}},
	{"OAuth/ContextEnded", oauth, func(t *testing.T, h *ConnectorHarness) {
		a := h.begin(t)
		code := h.Approve(t, a.page)
		_, err := h.Connector.OAuth.Exchange(cancelledContext(t), linking.ExchangeRequest{Code: code, RedirectURL: redirectURL, Verifier: a.verifier, Scopes: h.Scopes})
		h.requireProviderFailure(t, err, code, a.verifier)
	}},
	{"Password/Refused", allNeeds(password, requirement("ConnectorHarness.RefusedPassword is zero", func(h *ConnectorHarness) bool { return h.RefusedPassword != linking.PasswordRequest{} })),
		func(t *testing.T, h *ConnectorHarness) {
			_, err := h.Connector.Password.SignIn(t.Context(), h.RefusedPassword)
			h.requireRefused(t, err, linking.ProviderCredentialError, h.RefusedPassword.Username, h.RefusedPassword.Password)
		}},
	{"Password/Outage", allNeeds(password, outage), func(t *testing.T, h *ConnectorHarness) {
		h.Outage()
		_, err := h.Connector.Password.SignIn(t.Context(), h.Password)
		h.requireProviderFailure(t, err, h.Password.Password)
	}},
	{"Password/Answers", allNeeds(password, answer), func(t *testing.T, h *ConnectorHarness) {
		h.eachFailure(t, func(t *testing.T) {
			_, err := h.Connector.Password.SignIn(t.Context(), h.Password)
			h.requireProviderFailure(t, err, h.Password.Password, nonsense)
		})
	}},
	{"Password/ContextEnded", password, func(t *testing.T, h *ConnectorHarness) {
		_, err := h.Connector.Password.SignIn(cancelledContext(t), h.Password)
		h.requireProviderFailure(t, err, h.Password.Password)
	}},
	{"Email/Refused", allNeeds(email, requirement("ConnectorHarness.RefusedEmail is zero", func(h *ConnectorHarness) bool { return h.RefusedEmail != linking.EmailRequest{} })),
		func(t *testing.T, h *ConnectorHarness) {
			_, err := h.Connector.Email.SignInByEmail(t.Context(), h.RefusedEmail)
			h.requireRefused(t, err, linking.ProviderCredentialError, h.RefusedEmail.Email)
		}},
	{"Email/Outage", allNeeds(email, outage), func(t *testing.T, h *ConnectorHarness) {
		h.Outage()
		_, err := h.Connector.Email.SignInByEmail(t.Context(), h.Email)
		h.requireProviderFailure(t, err, h.Email.Email)
	}},
	{"Grant", always, func(t *testing.T, h *ConnectorHarness) {
		first, second := h.signIn(t), h.signIn(t)
		h.checkGrant(t, first)
		h.checkGrant(t, second)
		require.Equal(t, first.ExternalUserID, second.ExternalUserID, "a person has one account")
		for _, text := range h.secrets {
			require.False(t, len(text) >= leastSecret && first.ExternalUserID == text, "the account is shown to teams, and is no token")
		}
	}},
	{"Refresh/NewSecret", refresher, func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		renewed, err := h.Connector.Refresher.Refresh(t.Context(), g.Secret)
		require.NoError(t, err)
		require.NotEmpty(t, renewed.Secret)
		require.LessOrEqual(t, len(renewed.Secret), maxSecret, "a service keeps secrets of at most 64 KiB")
		require.True(t, renewed.ExpiresAt.IsZero() || renewed.ExpiresAt.After(h.From), "a new secret works: ExpiresAt is not over")
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
		h.requireNoSecret(t, err, nonsense)
	}},
	{"Refresh/Outage", allNeeds(refresher, outage), func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		h.Outage()
		_, err := h.Connector.Refresher.Refresh(t.Context(), g.Secret)
		h.requireTransient(t, err)
	}},
	{"Refresh/Answers", allNeeds(refresher, answer), func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		h.eachFailure(t, func(t *testing.T) {
			_, err := h.Connector.Refresher.Refresh(t.Context(), g.Secret)
			h.requireTransient(t, err, nonsense)
		})
	}},
	{"Refresh/Limited", allNeeds(refresher, answer), func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		h.Answer(429, map[string][]string{"Retry-After": {"90"}}, "")
		_, err := h.Connector.Refresher.Refresh(t.Context(), g.Secret)
		h.requireRateLimit(t, err, limitedFor)
	}},
	{"Refresh/ContextEnded", refresher, func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		_, err := h.Connector.Refresher.Refresh(cancelledContext(t), g.Secret)
		h.requireTransient(t, err)
	}},
	{"Refresh/Revoked", allNeeds(refresher, revoker), func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		require.NoError(t, h.Connector.Revoker.Revoke(t.Context(), g.Secret))
		_, err := h.Connector.Refresher.Refresh(t.Context(), g.Secret)
		var over *linking.GrantError
		require.ErrorAs(t, err, &over, "a grant that the provider ended is over")
		h.requireNoSecret(t, err)
	}},
	{"Revoke/Repeat", revoker, func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		for range 2 {
			require.NoError(t, h.Connector.Revoker.Revoke(t.Context(), g.Secret), "a grant that has ended is a success")
		}
	}},
	{"Revoke/Outage", allNeeds(revoker, outage), func(t *testing.T, h *ConnectorHarness) {
		g := h.signIn(t)
		h.Outage()
		err := h.Connector.Revoker.Revoke(t.Context(), g.Secret)
		require.Error(t, err, "a grant that the provider did not end goes on")
		h.requireNoSecret(t, err)
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
		h.requireNoSecret(t, err, nonsense)
	}},
	{"ForClient/Empty", requirement("the connector has no ForClient", func(h *ConnectorHarness) bool { return h.Connector.ForClient != nil }), func(t *testing.T, h *ConnectorHarness) {
		_, err := h.Connector.ForClient(linking.OAuthClient{})
		require.ErrorIs(t, err, healthlab.Invalid)
	}},
}

// requireTransient fails if err is nil, is a [*linking.GrantError], which ends the grant, or contains a secret or a
// text in hidden.
func (h *ConnectorHarness) requireTransient(t *testing.T, err error, hidden ...string) {
	t.Helper()
	require.Error(t, err)
	var over *linking.GrantError
	require.False(t, errors.As(err, &over), "only the provider's own words end a grant")
	h.requireNoSecret(t, err, hidden...)
}

func cancelledContext(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
