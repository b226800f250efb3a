package linkingtest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// ConnectorHarness is a connector under test, with a provider (a test server) at which one person has data.
type ConnectorHarness struct {
	Connector linking.ProviderConnector
	// Approve signs the person in on the provider's page, and returns the code that the
	// provider sends to the redirect URL. Required for an OAuth flow.
	Approve func(t testing.TB, page string) (code string)
	// ApproveOnly is Approve for a person who grants only these scopes. Nil if the test cannot do that.
	ApproveOnly func(t testing.TB, page string, scopes []string) (code string)
	// NoPKCE reports whether the provider does not support PKCE (RFC 7636), so that its page has no challenge.
	NoPKCE bool
	// Scopes are requested at the sign-in.
	Scopes []string
	// Password and Email sign the person in; required for a flow of that kind.
	Password linking.PasswordRequest
	Email    linking.EmailRequest
	// RefusedPassword and RefusedEmail are refused by the provider. Zero if the test cannot do that.
	RefusedPassword linking.PasswordRequest
	RefusedEmail    linking.EmailRequest
	// Resources are the slugs with data of the person from From (inclusive) to To (exclusive). Required for a
	// connector with a Puller.
	Resources []string
	From, To  time.Time
	// Whole are those Resources that the provider always returns completely, whatever range is requested.
	Whole []string
	// Known has an expected sample of the person by resource. The connector must return this sample, at its time and
	// with its value in any unit. For a summary, only Timestamp is compared: it must equal one of the summary's times,
	// such as bedtime_start. Nil compares nothing.
	Known map[string]healthdata.Sample
	// Record is the provider's record. Default: a record without resources whose times are in UTC.
	Record healthdata.Provider
	// Bounds are the bounds of the median of the person's values if they are unusual for an adult: by resource
	// ("weight"), by resource and field of summaries ("sleep.total"), and by resource for an hour of intervals
	// ("steps/h"); in the unit of the catalogue.
	Bounds map[string]healthdata.Bounds
	// Message returns a message as the provider sends it, and Forged one that another
	// party sends. Required for a connector with a Listener.
	Message, Forged func(t testing.TB) linking.Message
	// Answer makes the provider answer every further request with this status, headers and body. Nil if the test
	// cannot do that, or if the provider does not use HTTP.
	Answer func(status int, header map[string][]string, body string)
	// Outage makes the provider answer every further request as during an outage. Default: status 503, with Answer.
	Outage func()

	attempts int      // number of sign-ins
	secrets  []string // texts that no error may contain
}

const (
	redirectURL = "https://app.example/callback"
	nonsense    = "planted-nonsense-4711"
)

// attempt is one OAuth sign-in: the URL of the provider's page, and its parameters.
type attempt struct{ page, state, verifier, challenge string }

// begin starts a new OAuth sign-in with Authorize.
func (h *ConnectorHarness) begin(t testing.TB) attempt {
	t.Helper()
	h.attempts++
	a := attempt{state: fmt.Sprintf("state+/=&%08d", h.attempts), verifier: fmt.Sprintf("a-verifier-of-at-least-forty-three-characters-%08d", h.attempts)}
	sum := sha256.Sum256([]byte(a.verifier))
	var err error
	a.challenge = base64.RawURLEncoding.EncodeToString(sum[:])
	a.page, err = h.Connector.OAuth.Authorize(t.Context(), linking.AuthorizeRequest{
		State: a.state, RedirectURL: redirectURL, Challenge: a.challenge, Scopes: h.Scopes,
	})
	require.NoError(t, err)
	return a
}

func (h *ConnectorHarness) exchange(t testing.TB, code, verifier string) (linking.Grant, error) {
	t.Helper()
	return h.Connector.OAuth.Exchange(t.Context(), linking.ExchangeRequest{Code: code, RedirectURL: redirectURL, Verifier: verifier, Scopes: h.Scopes})
}

// signIn signs the person in through the first flow of the connector.
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
	h.secrets = append(h.secrets, h.secretTexts(g.Secret)...)
	return g
}

// request returns a request for a resource in the range From to To.
func (h *ConnectorHarness) request(g linking.Grant, resource string) linking.PullRequest {
	r := linking.PullRequest{Secret: g.Secret, Resource: resource, From: h.From, To: h.To, Zone: time.UTC}
	if g.ExternalUserID != "" {
		r.ExternalUserID = &g.ExternalUserID
	}
	return r
}

func (h *ConnectorHarness) pages(t testing.TB, r linking.PullRequest) []linking.PullItem {
	t.Helper()
	return h.pullAll(t, r)[r.Resource]
}

// pullAll pulls all pages of a request, and returns the items by resource.
func (h *ConnectorHarness) pullAll(t testing.TB, r linking.PullRequest) map[string][]linking.PullItem {
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

// secretTexts returns the texts of a secret that no error may contain: the secret, its tokens, and the texts of a
// secret that is a JSON object.
func (h *ConnectorHarness) secretTexts(secret []byte) []string {
	out := []string{string(secret)}
	var fields map[string]any
	if json.Unmarshal(secret, &fields) == nil {
		for _, v := range fields {
			if text, ok := v.(string); ok && len(text) >= leastSecret {
				out = append(out, text)
			}
		}
	}
	if h.Connector.TokenCodec != nil {
		if tokens, err := h.Connector.TokenCodec.Decode(secret); err == nil {
			out = append(out, tokens.Access, tokens.Refresh)
		}
	}
	return out
}

// leastSecret is the least length of a text in a secret that errors must not contain. A shorter text, such as a
// token type, may occur in an error by chance.
const leastSecret = 8

// requireRefused fails unless err is a [*linking.Error] of type want and contains none of the texts in hidden and no
// secret.
func (h *ConnectorHarness) requireRefused(t *testing.T, err error, want linking.ErrorType, hidden ...string) {
	t.Helper()
	var e *linking.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, want, e.Type)
	h.requireNoSecret(t, err, hidden...)
}

// requireProviderFailure fails if err is nil, if it is a [*linking.Error] for a mistake of the person, that is of
// another type than ProviderAPIError, or if it contains a text in hidden or a secret.
func (h *ConnectorHarness) requireProviderFailure(t *testing.T, err error, hidden ...string) {
	t.Helper()
	require.Error(t, err)
	var e *linking.Error
	require.False(t, errors.As(err, &e) && e.Type != linking.ProviderAPIError, "a failure of the provider is no mistake of the person")
	h.requireNoSecret(t, err, hidden...)
}

// requireNoSecret fails if err, or the Cause of a link error, contains one of the texts in hidden or a secret of the
// person, in clear, URL-encoded, in base64 or in hexadecimal.
func (h *ConnectorHarness) requireNoSecret(t *testing.T, err error, hidden ...string) {
	t.Helper()
	said := fmt.Sprintf("%v %+v", err, err)
	var e *linking.Error
	if errors.As(err, &e) && e.Cause != nil {
		said += fmt.Sprintf(" %v %+v", e.Cause, e.Cause)
	}
	for _, text := range append(hidden, h.secrets...) {
		if text == "" {
			continue
		}
		for _, form := range []string{text, url.QueryEscape(text), url.PathEscape(text), base64.StdEncoding.EncodeToString([]byte(text)), base64.RawURLEncoding.EncodeToString([]byte(text)), hex.EncodeToString([]byte(text))} {
			require.False(t, strings.Contains(said, form), "an error shows no credential, and nothing of what was sent or answered")
		}
	}
}

func isGrantError(err error) bool {
	var g *linking.GrantError
	return errors.As(err, &g) || errors.Is(err, healthlab.Unauthenticated)
}

// requireRetryable fails unless err means that a later retry helps: it ends no grant and is not Invalid or
// Unimplemented.
func (h *ConnectorHarness) requireRetryable(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.False(t, isGrantError(err), "a failure of the provider does not end a grant")
	require.NotErrorIs(t, err, healthlab.Invalid, "trying later helps")
	require.NotErrorIs(t, err, healthlab.Unimplemented, "trying later helps")
	h.requireNoSecret(t, err)
}

// requireRateLimit fails unless err is a [*linking.RateLimitError] with this wait.
func (h *ConnectorHarness) requireRateLimit(t *testing.T, err error, wait time.Duration) {
	t.Helper()
	h.requireRetryable(t, err)
	var limit *linking.RateLimitError
	require.ErrorAs(t, err, &limit, "status 429 is a RateLimitError")
	require.Equal(t, wait, limit.Wait.Round(time.Second), "the wait is what Retry-After says, in seconds")
	require.Contains(t, []linking.RateScope{"", linking.RateApp, linking.RateUser}, limit.Scope)
}

// failures are HTTP answers of a provider that is down or whose answers are damaged.
var failures = []struct {
	name   string
	status int
	header map[string][]string
	body   string
}{
	{"InternalError", 500, nil, nonsense},
	{"BadGateway", 502, map[string][]string{"Content-Type": {"text/html"}}, "<html>" + nonsense + "</html>"},
	{"Maintenance", 503, map[string][]string{"Retry-After": {"120"}}, ""},
	{"Garbled", 200, map[string][]string{"Content-Type": {"text/html"}}, "<html>" + nonsense + "</html>"},
	{"CutShort", 200, map[string][]string{"Content-Type": {"application/json"}}, `{"` + nonsense},
}

// eachFailure runs check after the provider was set to each of the failures, and to status 429.
func (h *ConnectorHarness) eachFailure(t *testing.T, check func(t *testing.T)) {
	for _, f := range failures {
		t.Run(f.name, func(t *testing.T) {
			h.Answer(f.status, f.header, f.body)
			check(t)
		})
	}
	t.Run("TooManyRequests", func(t *testing.T) {
		h.Answer(429, map[string][]string{"Retry-After": {"90"}}, "")
		check(t)
	})
}

// connectorCase is a test case of [RunConnector].
type connectorCase struct {
	name string
	// needs returns the support that the case needs and the harness lacks; empty if the case can run.
	needs func(h *ConnectorHarness) string
	run   func(t *testing.T, h *ConnectorHarness)
}

// RunConnector runs the contract of [linking.ProviderConnector]. newConnector returns a fresh connector and
// provider. Cases that the connector or the harness does not support are skipped with the reason. Pulled items
// are stored as a service does, and each refused item fails the test.
func RunConnector(t *testing.T, newConnector func(t testing.TB) ConnectorHarness) {
	for _, c := range slices.Concat(flowCases, pullCases, listenCases) {
		t.Run(c.name, func(t *testing.T) {
			h := newConnector(t)
			if h.Outage == nil && h.Answer != nil {
				h.Outage = func() { h.Answer(503, nil, "") }
			}
			if missing := c.needs(&h); missing != "" {
				t.Skip(missing)
			}
			c.run(t, &h)
		})
	}
}

// allNeeds returns a needs function that returns the first non-empty result of the given ones.
func allNeeds(needs ...func(*ConnectorHarness) string) func(*ConnectorHarness) string {
	return func(h *ConnectorHarness) string {
		for _, n := range needs {
			if missing := n(h); missing != "" {
				return missing
			}
		}
		return ""
	}
}

// requirement returns a needs function that returns what unless is returns true.
func requirement(what string, is func(h *ConnectorHarness) bool) func(*ConnectorHarness) string {
	return func(h *ConnectorHarness) string {
		if is(h) {
			return ""
		}
		return what
	}
}

var (
	always     = allNeeds()
	oauth      = requirement("the connector has no OAuthFlow", func(h *ConnectorHarness) bool { return h.Connector.OAuth != nil })
	password   = requirement("the connector has no PasswordFlow", func(h *ConnectorHarness) bool { return h.Connector.Password != nil })
	email      = requirement("the connector has no EmailFlow", func(h *ConnectorHarness) bool { return h.Connector.Email != nil })
	refresher  = requirement("the connector has no Refresher", func(h *ConnectorHarness) bool { return h.Connector.Refresher != nil })
	revoker    = requirement("the connector has no Revoker", func(h *ConnectorHarness) bool { return h.Connector.Revoker != nil })
	tokenCodec = requirement("the connector has no TokenCodec", func(h *ConnectorHarness) bool { return h.Connector.TokenCodec != nil })
	puller     = requirement("the connector has no Puller", func(h *ConnectorHarness) bool { return h.Connector.Puller != nil })
	listener   = requirement("the connector has no Listener", func(h *ConnectorHarness) bool { return h.Connector.Listener != nil })
	outage     = requirement("ConnectorHarness.Outage and Answer are nil", func(h *ConnectorHarness) bool { return h.Outage != nil })
	answer     = requirement("ConnectorHarness.Answer is nil", func(h *ConnectorHarness) bool { return h.Answer != nil })
)
