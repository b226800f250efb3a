package linkingtest_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
)

func connectors(broken func(*provider)) func(*testing.T) {
	return harnesses(func(p *provider, _ *linkingtest.ConnectorHarness) { broken(p) })
}

// harnesses returns the suite over providers and harnesses that are broken in one way.
func harnesses(broken func(*provider, *linkingtest.ConnectorHarness)) func(*testing.T) {
	return func(t *testing.T) {
		linkingtest.RunConnector(t, func(testing.TB) linkingtest.ConnectorHarness {
			p := &provider{
				codes: map[string]authorization{}, revoked: map[string]bool{}, revokes: true, page: signInPage, answered: answered,
				refusal:      func(string) error { return &linking.Error{Type: linking.ProviderCredentialError} },
				granted:      func(asked []string) []string { return append([]string{}, asked...) },
				account:      func(int) string { return "ann" },
				edited:       func(*linking.Grant) {},
				rangeOf:      func(r linking.PullRequest) (time.Time, time.Time) { return r.From, r.To },
				revokedError: func(string) error { return &linking.GrantError{} },
				encode: func(t linking.Tokens) ([]byte, error) {
					if t.Refresh == "" {
						return nil, healthlab.Invalid
					}
					return []byte(t.Refresh), nil
				},
				decode: func(b []byte) (linking.Tokens, error) {
					if !strings.HasPrefix(string(b), "token ") {
						return linking.Tokens{}, healthlab.Invalid
					}
					return linking.Tokens{Access: string(b), Refresh: string(b)}, nil
				},
				edit:    func(linking.PullRequest, *linking.PullPage) {},
				unknown: healthlab.Unimplemented,
				foreign: func(string) error { return healthlab.Unauthenticated },
				listen: func(m linking.Message) (linking.ListenResult, error) {
					if string(m.Body) != "signed" {
						return linking.ListenResult{}, healthlab.Unauthenticated
					}
					return news(), nil
				},
				forClient: healthlab.Invalid,
			}
			message := func(body string) func(testing.TB) linking.Message {
				return func(testing.TB) linking.Message { return linking.Message{Method: "POST", Body: []byte(body), At: noon} }
			}
			h := linkingtest.ConnectorHarness{
				Connector: linking.ProviderConnector{
					OAuth: p, Password: p, Email: p, Revoker: p, Refresher: p, TokenCodec: p, Puller: p, Listener: p,
					Together: [][]string{{"glucose", "heartrate"}},
					ForClient: func(linking.OAuthClient) (linking.ProviderConnector, error) {
						return linking.ProviderConnector{}, p.forClient
					},
				},
				Approve: p.approve, ApproveOnly: p.approveOnly, Scopes: []string{"read.body", "read.sleep"},
				Password:        linking.PasswordRequest{Username: "ann", Password: "planted-password"},
				RefusedPassword: linking.PasswordRequest{Username: "ann", Password: "planted-password"},
				Email:           linking.EmailRequest{Email: "planted@example.com"},
				RefusedEmail:    linking.EmailRequest{Email: "planted@example.com"},
				Resources:       []string{"glucose", "heartrate", "sleep", "steps", "workouts"}, From: noon.AddDate(0, 0, -8), To: noon,
				Record: healthdata.Provider{
					Slug: "broken", Name: "Broken", Class: "cloud", AuthType: "oauth", Category: "device", Resources: []healthdata.ProviderResource{
						{Resource: "glucose"}, {Resource: "heartrate"}, {Resource: "sleep"}, {Resource: "steps"}, {Resource: "workouts"},
					},
				},
				Known: map[string]healthdata.Sample{
					"glucose":   {Timestamp: healthlab.At(noon.AddDate(0, 0, -2)), Unit: "mg/dL", Value: healthdata.Number(5.5 * 18.0182)},
					"heartrate": {Timestamp: healthlab.At(noon.AddDate(0, 0, -2)), Unit: "bpm", Value: healthdata.Number(61)},
					"sleep":     {Timestamp: healthlab.At(time.Date(2026, 3, 8, 22, 0, 0, 0, time.UTC))},
				},
				Message: message("signed"), Forged: message("forged"),
				Answer: func(status int, header map[string][]string, body string) {
					p.mu.Lock()
					defer p.mu.Unlock()
					p.status, p.header, p.body = status, header, body
				},
			}
			broken(p, &h)
			return h
		})
	}
}

func TestConnector_unbrokenPassesTheSuite(t *testing.T) { connectors(func(*provider) {})(t) }

func pages(edit func(r linking.PullRequest, p *linking.PullPage)) func(*testing.T) {
	return connectors(func(p *provider) { p.edit = edit })
}

// samples returns the suite over providers that change the samples of a resource.
func samples(resource string, edit func(s *healthdata.Sample)) func(*testing.T) {
	return pages(func(r linking.PullRequest, p *linking.PullPage) {
		if r.Resource != resource {
			return
		}
		for i := range p.Items[0].Samples {
			edit(&p.Items[0].Samples[i])
		}
	})
}

// summaries returns the suite over providers that change the summaries of a resource.
func summaries[T healthdata.Summary](edit func(s T)) func(*testing.T) {
	return pages(func(_ linking.PullRequest, p *linking.PullPage) {
		for _, s := range p.Items[0].Summaries {
			if s, ok := s.(T); ok {
				edit(s)
			}
		}
	})
}

// answers returns the suite over connectors that read answers in another way. A nil error is what
// they should return.
func answers(read func(call, secret string, status int, body string) error) func(*testing.T) {
	return connectors(func(p *provider) {
		p.answered = func(call, secret string, status int, header map[string][]string, body string) error {
			if err := read(call, secret, status, body); err != nil {
				return err
			}
			return answered(call, secret, status, header, body)
		}
	})
}

// loginPages returns the suite over connectors that change the address of the sign-in page.
func loginPages(edit func(r linking.AuthorizeRequest, q url.Values)) func(*testing.T) {
	return connectors(func(p *provider) {
		p.page = func(r linking.AuthorizeRequest) url.Values {
			q := signInPage(r)
			edit(r, q)
			return q
		}
	})
}

func number(v *healthdata.Value) float64 { return v.Number }

func TestBrokenConnectors_eachFailsTheSuite(t *testing.T) {
	calls := 0
	conformance.RunBroken(t, []conformance.Broken{
		{Name: "loses the state", Subtest: "OAuth/Page", Suite: loginPages(func(_ linking.AuthorizeRequest, q url.Values) { q.Del("state") })},
		{Name: "escapes the state twice", Subtest: "OAuth/Page", Suite: loginPages(func(r linking.AuthorizeRequest, q url.Values) { q.Set("state", url.QueryEscape(r.State)) })},
		{Name: "returns to another address", Subtest: "OAuth/Page", Suite: loginPages(func(_ linking.AuthorizeRequest, q url.Values) { q.Set("redirect_uri", "https://provider.example/done") })},
		{Name: "asks for a token in the address", Subtest: "OAuth/Page", Suite: loginPages(func(_ linking.AuthorizeRequest, q url.Values) { q.Set("response_type", "token") })},
		{Name: "names no client", Subtest: "OAuth/Page", Suite: loginPages(func(_ linking.AuthorizeRequest, q url.Values) { q.Del("client_id") })},
		{Name: "shows the client secret on the page", Subtest: "OAuth/Page", Suite: loginPages(func(_ linking.AuthorizeRequest, q url.Values) { q.Set("client_secret", "ours") })},
		{Name: "signs in without TLS", Subtest: "OAuth/Page", Suite: loginPages(func(_ linking.AuthorizeRequest, q url.Values) { q.Set("page", "http://provider.example/sign-in") })},
		{Name: "says the state twice", Subtest: "OAuth/Page", Suite: loginPages(func(_ linking.AuthorizeRequest, q url.Values) { q.Add("state", "1") })},
		{Name: "asks without a challenge", Subtest: "OAuth/Challenge", Suite: loginPages(func(_ linking.AuthorizeRequest, q url.Values) {
			q.Del("code_challenge")
			q.Del("code_challenge_method")
		})},
		{Name: "does not say the method of the challenge", Subtest: "OAuth/Challenge", Suite: loginPages(func(_ linking.AuthorizeRequest, q url.Values) { q.Del("code_challenge_method") })},
		{Name: "says that the challenge is plain", Subtest: "OAuth/Challenge", Suite: loginPages(func(_ linking.AuthorizeRequest, q url.Values) { q.Set("code_challenge_method", "plain") })},
		{Name: "hashes the challenge", Subtest: "OAuth/Challenge", Suite: loginPages(func(r linking.AuthorizeRequest, q url.Values) {
			sum := sha256.Sum256([]byte(r.Challenge))
			q.Set("code_challenge", base64.RawURLEncoding.EncodeToString(sum[:]))
		})},
		{Name: "asks for no scopes", Subtest: "OAuth/Scopes", Suite: loginPages(func(_ linking.AuthorizeRequest, q url.Values) { q.Del("scope") })},
		{Name: "asks for the first scope alone", Subtest: "OAuth/Scopes", Suite: loginPages(func(r linking.AuthorizeRequest, q url.Values) { q.Set("scope", r.Scopes[0]) })},
		{Name: "asks for all scopes there are", Subtest: "OAuth/Scopes", Suite: loginPages(func(_ linking.AuthorizeRequest, q url.Values) { q.Set("scope", "read.body read.sleep") })},
		{Name: "reports the scopes that were asked for as granted", Subtest: "OAuth/Granted", Suite: connectors(func(p *provider) {
			p.granted = func([]string) []string { return []string{"read.body", "read.sleep"} }
		})},
		{Name: "reports the scopes as one text", Subtest: "Grant", Suite: connectors(func(p *provider) {
			p.granted = func(asked []string) []string { return []string{strings.Join(asked, " ")} }
		})},
		{Name: "reports a scope twice", Subtest: "Grant", Suite: connectors(func(p *provider) {
			p.granted = func(asked []string) []string { return append(asked, asked[0]) }
		})},
		{Name: "names the team's client", Subtest: "Grant", Suite: connectors(func(p *provider) { p.edited = func(g *linking.Grant) { g.Client = "ours" } })},
		{Name: "reports that a new grant is over", Subtest: "Grant", Suite: connectors(func(p *provider) { p.edited = func(g *linking.Grant) { g.ExpiresAt = time.Unix(3600, 0) } })},
		{Name: "gives a secret that is too long", Subtest: "Grant", Suite: connectors(func(p *provider) { p.edited = func(g *linking.Grant) { g.Secret = make([]byte, 65<<10) } })},
		{Name: "gives no secret", Subtest: "Grant", Suite: connectors(func(p *provider) { p.edited = func(g *linking.Grant) { g.Secret = nil } })},
		{Name: "names the person by the token", Subtest: "Grant", Suite: connectors(func(p *provider) {
			p.edited = func(g *linking.Grant) { g.Secret, g.ExternalUserID = []byte("token ann"), "token ann" }
		})},
		{Name: "reports an unknown code as an outage", Subtest: "OAuth/UnknownCode", Suite: connectors(func(p *provider) {
			p.refusal = func(string) error { return healthlab.Unavailable }
		})},
		{Name: "names the code in an error", Subtest: "OAuth/UnknownCode", Suite: connectors(func(p *provider) {
			p.refusal = func(code string) error {
				return fmt.Errorf("code %s: %w", code, &linking.Error{Type: linking.ProviderCredentialError})
			}
		})},
		{Name: "takes a code twice", Subtest: "OAuth/CodeWorksOnce", Suite: connectors(func(p *provider) { p.codesStay = true })},
		{Name: "ignores the verifier", Subtest: "OAuth/Verifier", Suite: connectors(func(p *provider) { p.anyVerifier = true })},
		{Name: "names the password in an error", Subtest: "Password/Refused", Suite: connectors(func(p *provider) {
			p.refusal = func(detail string) error {
				return fmt.Errorf("%s: %w", detail, &linking.Error{Type: linking.ProviderCredentialError})
			}
		})},
		{Name: "reports an unknown address as an outage", Subtest: "Email/Refused", Suite: connectors(func(p *provider) {
			p.refusal = func(string) error { return &linking.Error{Type: linking.ProviderAPIError} }
		})},
		{Name: "gives each sign-in another account", Subtest: "Grant", Suite: connectors(func(p *provider) { p.account = func(n int) string { return fmt.Sprint(n) } })},
		{Name: "renews to an empty secret", Subtest: "Refresh/NewSecret", Suite: connectors(func(p *provider) {
			p.renew = func(string) ([]byte, error) { return nil, nil }
		})},
		{Name: "renews to a secret that does not work", Subtest: "Refresh/NewSecret", Suite: connectors(func(p *provider) {
			p.renew = func(string) ([]byte, error) { return []byte("broken"), nil }
		})},
		{Name: "renews nonsense", Subtest: "Refresh/Nonsense", Suite: connectors(func(p *provider) {
			p.foreign = func(string) error { return nil }
		})},
		{Name: "ends grants in an outage", Subtest: "Refresh/Outage", Suite: answers(func(call, _ string, status int, _ string) error {
			if call == "refresh" && status == 503 {
				return &linking.GrantError{}
			}
			return nil
		})},
		{Name: "renews a revoked grant", Subtest: "Refresh/Revoked", Suite: connectors(func(p *provider) { p.revokes = false })},
		{Name: "fails to revoke twice", Subtest: "Revoke/Repeat", Suite: connectors(func(p *provider) { p.staysRevoked = true })},
		{Name: "drops the refresh token", Subtest: "Tokens/RoundTrip", Suite: connectors(func(p *provider) {
			p.encode = func(linking.Tokens) ([]byte, error) { return []byte("token 0"), nil }
		})},
		{Name: "packs no tokens", Subtest: "Tokens/Empty", Suite: connectors(func(p *provider) {
			p.encode = func(t linking.Tokens) ([]byte, error) { return []byte(t.Refresh), nil }
		})},
		{Name: "decodes nonsense", Subtest: "Tokens/Nonsense", Suite: connectors(func(p *provider) {
			p.decode = func(b []byte) (linking.Tokens, error) {
				return linking.Tokens{Access: string(b), Refresh: string(b)}, nil
			}
		})},
		{Name: "blames the person for an outage at the exchange", Subtest: "OAuth/Outage", Suite: answers(blames("exchange"))},
		{Name: "blames the person for an outage at the password", Subtest: "Password/Outage", Suite: answers(blames("password"))},
		{Name: "blames the person for an outage at the address", Subtest: "Email/Outage", Suite: answers(blames("email"))},
		{Name: "blames the person for an answer that cannot be read", Subtest: "OAuth/Answers", Suite: answers(func(call, _ string, status int, _ string) error {
			if call == "exchange" && status == 200 {
				return &linking.Error{Type: linking.ProviderCredentialError}
			}
			return nil
		})},
		{Name: "shows the code in an outage", Subtest: "OAuth/Outage", Suite: answers(showsSecret("exchange"))},
		{Name: "shows the password in an outage", Subtest: "Password/Answers", Suite: answers(showsSecret("password"))},
		{Name: "hides the password in the cause", Subtest: "Password/Refused", Suite: connectors(func(p *provider) {
			p.refusal = func(detail string) error {
				return &linking.Error{Type: linking.ProviderCredentialError, Cause: errors.New(detail)}
			}
		})},
		{Name: "exchanges a code after its context ended", Subtest: "OAuth/ContextEnded", Suite: connectors(func(p *provider) { p.deaf = true })},
		{Name: "blames the person for the end of a context", Subtest: "Password/ContextEnded", Suite: connectors(func(p *provider) {
			p.contextError = func(string) error { return &linking.Error{Type: linking.ProviderCredentialError} }
		})},
		{Name: "ends a grant with its context", Subtest: "Refresh/ContextEnded", Suite: connectors(func(p *provider) {
			p.contextError = func(string) error { return &linking.GrantError{} }
		})},
		{Name: "ends a grant for too many requests", Subtest: "Refresh/Limited", Suite: answers(func(call, _ string, status int, _ string) error {
			if call == "refresh" && status == 429 {
				return &linking.GrantError{}
			}
			return nil
		})},
		{Name: "renews at once after too many requests", Subtest: "Refresh/Limited", Suite: answers(func(call, _ string, status int, _ string) error {
			if call == "refresh" && status == 429 {
				return healthlab.Unavailable
			}
			return nil
		})},
		{Name: "ends a grant for an answer that cannot be read", Subtest: "Refresh/Answers", Suite: answers(func(call, _ string, status int, _ string) error {
			if call == "refresh" && status == 200 {
				return &linking.GrantError{}
			}
			return nil
		})},
		{Name: "shows the token in a renewal that failed", Subtest: "Refresh/Outage", Suite: answers(showsSecret("refresh"))},
		{Name: "renews to a secret that is over", Subtest: "Refresh/NewSecret", Suite: connectors(func(p *provider) { p.expires = time.Unix(3600, 0) })},
		{Name: "shows the token of a grant that is over", Subtest: "Refresh/Revoked", Suite: connectors(func(p *provider) {
			p.revokedError = func(secret string) error { return fmt.Errorf("%s: %w", secret, &linking.GrantError{}) }
		})},
		{Name: "reports a grant as ended in an outage", Subtest: "Revoke/Outage", Suite: connectors(func(p *provider) {
			p.answered = func(call, secret string, status int, header map[string][]string, body string) error {
				if call == "revoke" {
					return nil
				}
				return answered(call, secret, status, header, body)
			}
		})},
		{Name: "shows the token in a URL", Subtest: "Pull/Outage", Suite: answers(func(call, secret string, _ int, _ string) error {
			return fmt.Errorf("%w: get https://provider.example/%s?token=%s", healthlab.Unavailable, call, url.QueryEscape(secret))
		})},
		{Name: "shows the token in base64", Subtest: "Pull/Outage", Suite: answers(func(_, secret string, _ int, _ string) error {
			return fmt.Errorf("%w: basic %s", healthlab.Unavailable, base64.StdEncoding.EncodeToString([]byte(secret)))
		})},
		{Name: "shows the body of an answer", Subtest: "Pull/Answers", Suite: answers(func(_, _ string, status int, body string) error {
			if status == 500 {
				return fmt.Errorf("%w: %s", healthlab.Unavailable, body)
			}
			return nil
		})},
		{Name: "takes an answer that cannot be read as no data", Subtest: "Pull/Answers", Suite: connectors(func(p *provider) {
			p.answered = func(call, secret string, status int, header map[string][]string, body string) error {
				if call == "pull" && status == 200 {
					return nil
				}
				return answered(call, secret, status, header, body)
			}
		})},
		{Name: "takes an answer that cannot be read as a bad request", Subtest: "Pull/Answers", Suite: answers(func(_, _ string, status int, _ string) error {
			if status == 200 {
				return healthlab.Invalid
			}
			return nil
		})},
		{Name: "reports too many requests as an outage", Subtest: "Pull/Limited", Suite: answers(func(_, _ string, status int, _ string) error {
			if status == 429 {
				return healthlab.Unavailable
			}
			return nil
		})},
		{Name: "ignores Retry-After", Subtest: "Pull/Limited", Suite: answers(func(_, _ string, status int, _ string) error {
			if status == 429 {
				return &linking.RateLimitError{}
			}
			return nil
		})},
		{Name: "reads Retry-After in milliseconds", Subtest: "Pull/Limited", Suite: answers(func(_, _ string, status int, _ string) error {
			if status == 429 {
				return &linking.RateLimitError{Wait: 90 * time.Millisecond}
			}
			return nil
		})},
		{Name: "tries a token that is over again later", Subtest: "Pull/Unauthorized", Suite: answers(func(_, _ string, status int, _ string) error {
			if status == 401 {
				return healthlab.Unavailable
			}
			return nil
		})},
		{Name: "takes the end of a context as a bad request", Subtest: "Pull/ContextEnded", Suite: connectors(func(p *provider) {
			p.contextError = func(string) error { return healthlab.Invalid }
		})},
		{Name: "says nothing of whose limit it is", Subtest: "Pull/Limits", Suite: pages(func(_ linking.PullRequest, p *linking.PullPage) { p.RateLimits[0].Scope = "" })},
		{Name: "reads the reset of a limit as an instant", Subtest: "Pull/Limits", Suite: pages(func(_ linking.PullRequest, p *linking.PullPage) { p.RateLimits[0].Reset = time.Unix(3600, 0) })},
		{Name: "joins what is no resource", Subtest: "Pull/Resources", Suite: harnesses(func(_ *provider, h *linkingtest.ConnectorHarness) {
			h.Connector.Together = [][]string{{"glucose", "heart_rate"}}
		})},
		{Name: "joins a resource twice", Subtest: "Pull/Resources", Suite: harnesses(func(_ *provider, h *linkingtest.ConnectorHarness) {
			h.Connector.Together = [][]string{{"glucose", "heartrate"}, {"heartrate", "steps"}}
		})},
		{Name: "has a resource in its record that it does not pull", Subtest: "Pull/Resources", Suite: harnesses(func(_ *provider, h *linkingtest.ConnectorHarness) {
			h.Record.Resources = append(h.Record.Resources, healthdata.ProviderResource{Resource: "weight"})
		})},
		{Name: "pulls a resource that its record does not have", Subtest: "Pull/Resources", Suite: harnesses(func(_ *provider, h *linkingtest.ConnectorHarness) {
			h.Record.Resources = h.Record.Resources[1:]
		})},
		{Name: "gives an owner without an account", Subtest: "Pull/Shape", Suite: connectors(func(p *provider) { p.account = func(int) string { return "" } })},
		{Name: "reads none of the items", Subtest: "Pull/Shape", Suite: pages(func(_ linking.PullRequest, p *linking.PullPage) {
			p.Items[0].Unparsed = []linking.UnparsedItem{{Item: []byte("{}"), Problems: []healthlab.Problem{{Code: "missing"}}}}
		})},
		{Name: "names the device as the type of the source", Subtest: "Pull/Shape", Suite: pages(func(_ linking.PullRequest, p *linking.PullPage) { p.Items[0].Source.Type = "Watch Pro 2" })},
		{Name: "gives two values of one sample", Subtest: "Pull/Shape", Suite: pages(func(r linking.PullRequest, p *linking.PullPage) {
			if r.Resource == "heartrate" {
				s := p.Items[0].Samples[0]
				s.Value = healthdata.Number(number(s.Value) + 1)
				p.Items[0].Samples = append(p.Items[0].Samples, s)
			}
		})},
		{Name: "gives offsets in minutes", Subtest: "Pull/Shape", Suite: samples("steps", func(s *healthdata.Sample) { s.TimezoneOffset = new(60) })},
		{Name: "gives intervals of no length", Subtest: "Pull/Shape", Suite: samples("steps", func(s *healthdata.Sample) { s.End = s.Start })},
		{Name: "gives intervals that end before they start", Subtest: "Pull/Stored", Suite: samples("steps", func(s *healthdata.Sample) { s.End = new(healthlab.At(s.Start.Add(-time.Hour))) })},
		{Name: "gives intervals of two days", Subtest: "Pull/Shape", Suite: samples("steps", func(s *healthdata.Sample) { s.End = new(healthlab.At(s.Start.Add(48 * time.Hour))) })},
		{Name: "gives intervals without an end", Subtest: "Pull/Stored", Suite: samples("steps", func(s *healthdata.Sample) { s.Start, s.End = nil, nil })},
		{Name: "gives a unit that does not exist", Subtest: "Pull/Stored", Suite: samples("glucose", func(s *healthdata.Sample) { s.Unit = "mmol" })},
		{Name: "gives the unit of another resource", Subtest: "Pull/Stored", Suite: samples("heartrate", func(s *healthdata.Sample) { s.Unit = "kg" })},
		{Name: "gives no value", Subtest: "Pull/Stored", Suite: samples("heartrate", func(s *healthdata.Sample) { s.Value = nil })},
		{Name: "gives a text for a number", Subtest: "Pull/Stored", Suite: samples("heartrate", func(s *healthdata.Sample) { s.Value = healthdata.Text("61") })},
		{Name: "gives what is no number", Subtest: "Pull/Stored", Suite: samples("heartrate", func(s *healthdata.Sample) { s.Value = healthdata.Number(math.NaN()) })},
		{Name: "gives values below zero", Subtest: "Pull/Stored", Suite: samples("steps", func(s *healthdata.Sample) { s.Value = healthdata.Number(-number(s.Value)) })},
		{Name: "gives a field that the resource does not have", Subtest: "Pull/Stored", Suite: samples("heartrate", func(s *healthdata.Sample) { s.SensorLocation = new("wrist") })},
		{Name: "gives local time as UTC", Subtest: "Pull/Known", Suite: pages(func(_ linking.PullRequest, p *linking.PullPage) {
			for _, s := range p.Items[0].Summaries {
				if night, ok := s.(*healthdata.Sleep); ok {
					night.BedtimeStart, night.BedtimeStop = healthlab.At(night.BedtimeStart.Add(-5*time.Hour)), healthlab.At(night.BedtimeStop.Add(-5*time.Hour))
				}
			}
		})},
		{Name: "gives the middle of an interval as its time", Subtest: "Pull/Known", Suite: samples("heartrate", func(s *healthdata.Sample) { s.Timestamp = healthlab.At(s.Timestamp.Add(-30 * time.Minute)) })},
		{Name: "cuts decimals", Subtest: "Pull/Known", Suite: samples("glucose", func(s *healthdata.Sample) { s.Value = healthdata.Number(math.Trunc(number(s.Value))) })},
		{Name: "gives a value per second as one per minute", Subtest: "Pull/Known", Suite: samples("heartrate", func(s *healthdata.Sample) { s.Value = healthdata.Number(number(s.Value) * 1.6) })},
		{Name: "gives times of the future", Subtest: "Pull/Stored", Suite: samples("heartrate", func(s *healthdata.Sample) { s.Timestamp = healthlab.At(s.Timestamp.AddDate(1, 0, 0)) })},
		{Name: "reads milliseconds as seconds", Subtest: "Pull/Stored", Suite: samples("heartrate", func(s *healthdata.Sample) { s.Timestamp = healthlab.At(time.Unix(s.Timestamp.UnixMilli(), 0)) })},
		{Name: "reads seconds as milliseconds", Subtest: "Pull/Range", Suite: samples("heartrate", func(s *healthdata.Sample) { s.Timestamp = healthlab.At(time.UnixMilli(s.Timestamp.Unix())) })},
		{Name: "gives an unknown zone", Subtest: "Pull/Stored", Suite: pages(func(_ linking.PullRequest, p *linking.PullPage) { p.Items[0].TimeZone = "Provider/Town" })},
		{Name: "is off by 1000 in a glucose", Subtest: "Pull/Stored", Suite: samples("glucose", func(s *healthdata.Sample) { s.Value = healthdata.Number(1000 * number(s.Value)) })},
		{Name: "gives mg/dL as mmol/L", Subtest: "Pull/Scale", Suite: samples("glucose", func(s *healthdata.Sample) { s.Value = healthdata.Number(18 * number(s.Value)) })},
		{Name: "is off by 1000 in steps", Subtest: "Pull/Scale", Suite: samples("steps", func(s *healthdata.Sample) { s.Value = healthdata.Number(1000 * number(s.Value)) })},
		{Name: "is 1000 times too low in steps", Subtest: "Pull/Scale", Suite: samples("steps", func(s *healthdata.Sample) { s.Value = healthdata.Number(number(s.Value) / 1000) })},
		{Name: "is off by 1000 against the declared bounds", Subtest: "Pull/Scale", Suite: harnesses(func(p *provider, h *linkingtest.ConnectorHarness) {
			h.Bounds = map[string]healthdata.Bounds{"heartrate": {Low: 10, High: 12, Unit: "bpm"}}
		})},
		{Name: "gives distances in kilometres", Subtest: "Pull/Scale", Suite: summaries(func(s *healthdata.Workout) { s.Distance = new(*s.Distance / 1000) })},
		{Name: "gives sleep in minutes", Subtest: "Pull/Shape", Suite: summaries(func(s *healthdata.Sleep) { s.Duration /= 60 })},
		{Name: "gives the stages of sleep in milliseconds", Subtest: "Pull/Shape", Suite: summaries(func(s *healthdata.Sleep) {
			s.REM, s.Deep, s.Light = new(1000**s.REM), new(1000**s.Deep), new(1000**s.Light)
		})},
		{Name: "gives the stages of sleep in minutes", Subtest: "Pull/Scale", Suite: summaries(func(s *healthdata.Sleep) {
			s.Awake, s.Light, s.REM, s.Deep = new(*s.Awake/60), new(*s.Light/60), new(*s.REM/60), new(*s.Deep/60)
		})},
		{Name: "gives nights that end before they start", Subtest: "Pull/Shape", Suite: summaries(func(s *healthdata.Sleep) { s.BedtimeStart, s.BedtimeStop = s.BedtimeStop, s.BedtimeStart })},
		{Name: "gives nights of two days", Subtest: "Pull/Shape", Suite: summaries(func(s *healthdata.Sleep) { s.BedtimeStop = healthlab.At(s.BedtimeStart.Add(48 * time.Hour)) })},
		{Name: "gives nights without an end", Subtest: "Pull/Stored", Suite: summaries(func(s *healthdata.Sleep) { s.BedtimeStop = healthlab.Time{} })},
		{Name: "gives a heart rate that cannot be", Subtest: "Pull/Stored", Suite: summaries(func(s *healthdata.Workout) { s.AverageHR = new(int64(1410)) })},
		{Name: "gives more time in motion than the workout has", Subtest: "Pull/Shape", Suite: summaries(func(s *healthdata.Workout) { s.MovingTime = new(int64(60 * 3500)) })},
		{Name: "gives running totals", Subtest: "Pull/Shape", Suite: samples("steps", func(s *healthdata.Sample) { s.Value = healthdata.Number(420 * float64(1+s.Timestamp.Hour())) })},
		{Name: "gives totals that rest at night", Subtest: "Pull/Shape", Suite: samples("steps", func(s *healthdata.Sample) {
			s.Value = healthdata.Number(420 * float64(min(18, max(6, s.Timestamp.Hour()))))
		})},
		{Name: "gives a highest heart rate below the average", Subtest: "Pull/Shape", Suite: summaries(func(s *healthdata.Workout) { s.MaxHR = new(int64(100)) })},
		{Name: "gives a highest speed below the average", Subtest: "Pull/Shape", Suite: summaries(func(s *healthdata.Workout) { s.AverageSpeed, s.MaxSpeed = new(2.8), new(1.0) })},
		{Name: "gives a lowest heart rate above the average", Subtest: "Pull/Shape", Suite: summaries(func(s *healthdata.Sleep) { s.HRLowest, s.HRAverage = new(int64(61)), new(int64(52)) })},
		{Name: "gives all nights one id", Subtest: "Pull/Stored", Suite: summaries(func(s *healthdata.Sleep) { healthdata.HeadOf(s).ExternalID = "night" })},
		{Name: "ignores the start of a range", Subtest: "Pull/Range", Suite: connectors(func(p *provider) {
			p.rangeOf = func(r linking.PullRequest) (time.Time, time.Time) { return noon.AddDate(0, 0, -8), r.To }
		})},
		{Name: "ignores the end of a range", Subtest: "Pull/Range", Suite: connectors(func(p *provider) {
			p.rangeOf = func(r linking.PullRequest) (time.Time, time.Time) { return r.From, noon }
		})},
		{Name: "gives other values each time", Subtest: "Pull/Repeat", Suite: samples("heartrate", func(s *healthdata.Sample) {
			calls++
			s.Value = healthdata.Number(number(s.Value) + float64(calls%7))
		})},
		{Name: "hears of nobody", Subtest: "Listen/Notifications", Suite: notifications(func(n *linking.Notification) { n.ExternalUserID = "" })},
		{Name: "hears of what is no resource", Subtest: "Listen/Notifications", Suite: notifications(func(n *linking.Notification) { n.Resources = []string{"step"} })},
		{Name: "hears of the future", Subtest: "Listen/Notifications", Suite: notifications(func(n *linking.Notification) { n.Since = noon.AddDate(0, 0, 3) })},
		{Name: "hears samples without a unit", Subtest: "Listen/Notifications", Suite: notifications(func(n *linking.Notification) {
			n.Data = []linking.ResourceData{{Resource: "heartrate", Items: []linking.PullItem{{
				Source: healthdata.Source{Type: healthdata.SourceWatch}, Samples: []healthdata.Sample{{Timestamp: healthlab.At(noon), Value: healthdata.Number(61)}},
			}}}}
		})},
		{Name: "returns samples without a unit", Subtest: "Pull/Shape", Suite: pages(func(_ linking.PullRequest, p *linking.PullPage) {
			for i := range p.Items[0].Samples {
				p.Items[0].Samples[i].Unit = ""
			}
		})},
		{Name: "returns no data", Subtest: "Pull/Shape", Suite: pages(func(_ linking.PullRequest, p *linking.PullPage) { p.Items = nil })},
		{Name: "returns another person's data", Subtest: "Pull/Shape", Suite: pages(func(_ linking.PullRequest, p *linking.PullPage) {
			other := "ben"
			p.Items[0].Owner = &other
		})},
		{Name: "returns summaries of samples", Subtest: "Pull/Shape", Suite: pages(func(_ linking.PullRequest, p *linking.PullPage) {
			p.Items[0].Summaries = []healthdata.Summary{&healthdata.Sleep{}}
		})},
		{Name: "never ends", Subtest: "Pull/Shape", Suite: pages(func(r linking.PullRequest, p *linking.PullPage) { p.Next = strconv.FormatInt(r.From.Unix(), 10) })},
		{Name: "depends on the calls before", Subtest: "Pull/Repeat", Suite: pages(func(_ linking.PullRequest, p *linking.PullPage) {
			calls++
			p.Items[0].Samples = p.Items[0].Samples[min(calls%5, len(p.Items[0].Samples)):]
		})},
		{Name: "loses the last hour of a range", Subtest: "Pull/Halves", Suite: pages(func(_ linking.PullRequest, p *linking.PullPage) {
			if samples := p.Items[0].Samples; p.Next == "" {
				p.Items[0].Samples = samples[:len(samples)-1]
			}
		})},
		{Name: "leaves out what comes along", Subtest: "Pull/Together", Suite: pages(func(_ linking.PullRequest, p *linking.PullPage) { p.With = nil })},
		{Name: "asks again for an unknown resource", Subtest: "Pull/UnknownResource", Suite: connectors(func(p *provider) { p.unknown = healthlab.Unavailable })},
		{Name: "returns nothing of an unknown resource", Subtest: "Pull/UnknownResource", Suite: connectors(func(p *provider) { p.unknown = nil })},
		{Name: "tries a foreign secret later", Subtest: "Pull/ForeignSecret", Suite: connectors(func(p *provider) {
			p.foreign = func(string) error { return healthlab.Unavailable }
		})},
		{Name: "names the secret in an error", Subtest: "Pull/ForeignSecret", Suite: connectors(func(p *provider) {
			p.foreign = func(secret string) error { return fmt.Errorf("%w: %s", healthlab.Unauthenticated, secret) }
		})},
		{Name: "shows the token of a grant that was revoked", Subtest: "Pull/Revoked", Suite: connectors(func(p *provider) {
			p.revokedError = func(secret string) error { return fmt.Errorf("%w: %s", healthlab.Unauthenticated, secret) }
		})},
		{Name: "gives data after the grant ended", Subtest: "Pull/Revoked", Suite: connectors(func(p *provider) { p.revokes = false })},
		{Name: "reports an outage as a bad request", Subtest: "Pull/Outage", Suite: answers(func(string, string, int, string) error { return healthlab.Invalid })},
		{Name: "pulls after its context ended", Subtest: "Pull/ContextEnded", Suite: connectors(func(p *provider) { p.deaf = true })},
		{Name: "believes any message", Subtest: "Listen/Forged", Suite: connectors(func(p *provider) {
			p.listen = func(linking.Message) (linking.ListenResult, error) { return news(), nil }
		})},
		{Name: "hears nothing", Subtest: "Listen/Repeat", Suite: connectors(func(p *provider) {
			p.listen = func(linking.Message) (linking.ListenResult, error) { return linking.ListenResult{}, nil }
		})},
		{Name: "remembers messages", Subtest: "Listen/Repeat", Suite: connectors(func(p *provider) {
			calls := 0
			p.listen = func(linking.Message) (linking.ListenResult, error) {
				if calls++; calls > 1 {
					return linking.ListenResult{}, nil
				}
				return news(), nil
			}
		})},
		{Name: "shows a message in an error", Subtest: "Listen/Nonsense", Suite: connectors(func(p *provider) {
			p.listen = func(m linking.Message) (linking.ListenResult, error) {
				if string(m.Body) != "signed" {
					return linking.ListenResult{}, fmt.Errorf("%w: %s", healthlab.Invalid, m.Body)
				}
				return news(), nil
			}
		})},
		{Name: "fails without a kind on nonsense", Subtest: "Listen/Nonsense", Suite: connectors(func(p *provider) {
			p.listen = func(m linking.Message) (linking.ListenResult, error) {
				if string(m.Body) != "signed" {
					return linking.ListenResult{}, errors.New("unexpected end of JSON input")
				}
				return news(), nil
			}
		})},
		{Name: "takes a client without an id", Subtest: "ForClient/Empty", Suite: connectors(func(p *provider) { p.forClient = nil })},
	})
}

// blames returns an answer that blames the person for a failure in a call.
func blames(in string) func(call, secret string, status int, body string) error {
	return func(call, _ string, _ int, _ string) error {
		if call == in {
			return &linking.Error{Type: linking.ProviderCredentialError}
		}
		return nil
	}
}

// showsSecret returns an answer that shows the secret of a call.
func showsSecret(in string) func(call, secret string, status int, body string) error {
	return func(call, secret string, _ int, _ string) error {
		if call == in {
			return fmt.Errorf("%w: %s", healthlab.Unavailable, secret)
		}
		return nil
	}
}

// notifications returns the suite over connectors that change what they hear.
func notifications(edit func(*linking.Notification)) func(*testing.T) {
	return connectors(func(p *provider) {
		was := p.listen
		p.listen = func(m linking.Message) (linking.ListenResult, error) {
			out, err := was(m)
			for i := range out.Notifications {
				edit(&out.Notifications[i])
			}
			return out, err
		}
	})
}
