package linkingtest_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
)

// noon is the end of the data of the provider.
var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// provider is a provider and its connector in one. Its people have a glucose sample an hour.
// A secret is "token N", a code "code N", a challenge is appended. The fields break it.
type provider struct {
	mu      sync.Mutex
	issued  int
	codes   map[string]string // challenge by code
	revoked map[string]bool
	down    bool

	page         func(linking.AuthorizeRequest) string
	codesStay    bool
	anyVerifier  bool
	refusal      func(detail string) error // of a sign-in
	external     func(n int) string
	renew        func(secret string) ([]byte, error) // nil: as it should be
	outage       error
	staysRevoked bool // Revoke fails the second time
	revokes      bool // Revoke ends the grant
	encode       func(linking.Tokens) ([]byte, error)
	decode       func([]byte) (linking.Tokens, error)
	edit         func(r linking.PullRequest, p *linking.PullPage)
	unknown      error // of a resource that is not there
	foreign      func(secret string) error
	deaf         bool
	listen       func(linking.Message) (linking.ListenResult, error)
	forClient    error
}

func (p *provider) Authorize(_ context.Context, r linking.AuthorizeRequest) (string, error) {
	return p.page(r), nil
}

func (p *provider) approve(t testing.TB, page string) string {
	u, err := url.Parse(page)
	require.NoError(t, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.issued++
	code := fmt.Sprint("code ", p.issued)
	p.codes[code] = u.Query().Get("code_challenge")
	return code
}

func (p *provider) Exchange(_ context.Context, r linking.ExchangeRequest) (linking.Grant, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.Verifier))
	challenge, ok := p.codes[r.Code]
	if !ok || challenge != base64.RawURLEncoding.EncodeToString(sum[:]) && !p.anyVerifier {
		return linking.Grant{}, p.refusal(r.Code)
	}
	if !p.codesStay {
		delete(p.codes, r.Code)
	}
	return p.grant(), nil
}

// grant issues a token. The caller holds the lock.
func (p *provider) grant() linking.Grant {
	p.issued++
	return linking.Grant{ExternalUserID: p.external(p.issued), Secret: []byte(fmt.Sprint("token ", p.issued))}
}

func (p *provider) SignIn(_ context.Context, r linking.PasswordRequest) (linking.PasswordResponse, error) {
	return linking.PasswordResponse{}, p.refusal(r.Password)
}

func (p *provider) CompleteMFA(context.Context, linking.MFARequest) (linking.Grant, error) {
	return linking.Grant{}, &linking.Error{Type: linking.IncorrectMFACode}
}

func (p *provider) SignInByEmail(_ context.Context, r linking.EmailRequest) (linking.Grant, error) {
	return linking.Grant{}, p.refusal(r.Email)
}

// known reports why a secret does not work; nil if it does. The caller holds the lock.
func (p *provider) known(secret []byte) error {
	switch {
	case p.down:
		return p.outage
	case !strings.HasPrefix(string(secret), "token "):
		return p.foreign(string(secret))
	case p.revoked[string(secret)]:
		return &linking.GrantError{}
	}
	return nil
}

func (p *provider) Refresh(_ context.Context, secret []byte) (linking.Renewal, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.renew != nil {
		out, err := p.renew(string(secret))
		return linking.Renewal{Secret: out}, err
	}
	if err := p.known(secret); err != nil {
		return linking.Renewal{}, err
	}
	return linking.Renewal{Secret: p.grant().Secret}, nil
}

func (p *provider) Revoke(_ context.Context, secret []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.revoked[string(secret)] && p.staysRevoked {
		return healthlab.NotFound
	}
	if p.revokes {
		p.revoked[string(secret)] = true
	}
	return nil
}

func (p *provider) Encode(t linking.Tokens) ([]byte, error)      { return p.encode(t) }
func (p *provider) Decode(secret []byte) (linking.Tokens, error) { return p.decode(secret) }

// Pull returns six hours a page.
func (p *provider) Pull(ctx context.Context, r linking.PullRequest) (linking.PullPage, error) {
	if err := ctx.Err(); err != nil && !p.deaf {
		return linking.PullPage{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.known(r.Secret); err != nil {
		return linking.PullPage{}, err
	}
	unit := map[string]string{"glucose": "mmol/L", "heartrate": "bpm"}
	if unit[r.Resource] == "" {
		return linking.PullPage{}, p.unknown
	}
	from := r.From.Truncate(time.Hour)
	if from.Before(r.From) {
		from = from.Add(time.Hour)
	}
	if r.Cursor != "" {
		n, err := strconv.ParseInt(r.Cursor, 10, 64)
		if err != nil {
			return linking.PullPage{}, healthlab.Invalid
		}
		from = time.Unix(n, 0).UTC()
	}
	owner := "ann"
	page := linking.PullPage{}
	at := from
	items := func(resource string) []linking.PullItem {
		item := linking.PullItem{Owner: &owner, Source: healthdata.Source{Type: "cgm"}}
		for at = from; at.Before(r.To) && len(item.Samples) < 6; at = at.Add(time.Hour) {
			item.Samples = append(item.Samples, healthdata.Sample{Timestamp: healthlab.At(at), Unit: unit[resource], Value: healthdata.Number(50)})
		}
		return []linking.PullItem{item}
	}
	page.Items = items(r.Resource)
	for _, other := range r.With {
		page.With = append(page.With, linking.ResourceData{Resource: other, Items: items(other)})
	}
	if at.Before(r.To) {
		page.Next = strconv.FormatInt(at.Unix(), 10)
	}
	p.edit(r, &page)
	return page, nil
}

func (p *provider) Listen(_ context.Context, m linking.Message) (linking.ListenResult, error) {
	return p.listen(m)
}

func news() linking.ListenResult {
	return linking.ListenResult{Notifications: []linking.Notification{{ID: "1", ExternalUserID: "ann"}}}
}

// connectors returns the suite over providers that are broken in one way.
func connectors(broken func(*provider)) func(*testing.T) {
	return func(t *testing.T) {
		linkingtest.RunConnector(t, func(testing.TB) linkingtest.ConnectorHarness {
			p := &provider{
				codes: map[string]string{}, revoked: map[string]bool{}, revokes: true,
				page: func(r linking.AuthorizeRequest) string {
					return "https://provider.example/sign-in?" + url.Values{"state": {r.State}, "redirect_uri": {r.RedirectURL}, "code_challenge": {r.Challenge}}.Encode()
				},
				refusal:  func(string) error { return &linking.Error{Type: linking.ProviderCredentialError} },
				external: func(int) string { return "ann" },
				outage:   healthlab.Unavailable,
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
			broken(p)
			message := func(body string) func(testing.TB) linking.Message {
				return func(testing.TB) linking.Message { return linking.Message{Method: "POST", Body: []byte(body), At: noon} }
			}
			return linkingtest.ConnectorHarness{
				Connector: linking.ProviderConnector{
					OAuth: p, Password: p, Email: p, Revoker: p, Refresher: p, TokenCodec: p, Puller: p, Listener: p,
					Together: [][]string{{"glucose", "heartrate"}},
					ForClient: func(linking.OAuthClient) (linking.ProviderConnector, error) {
						return linking.ProviderConnector{}, p.forClient
					},
				},
				Approve:         p.approve,
				RefusedPassword: linking.PasswordRequest{Username: "ann", Password: "planted-password"},
				RefusedEmail:    linking.EmailRequest{Email: "planted@example.com"},
				Resources:       []string{"glucose", "heartrate"}, From: noon.AddDate(0, 0, -3), To: noon,
				Message: message("signed"), Forged: message("forged"),
				Outage: func() { p.mu.Lock(); p.down = true; p.mu.Unlock() },
			}
		})
	}
}

func TestUnbroken(t *testing.T) { connectors(func(*provider) {})(t) }

// pages returns the suite over providers that change their pages.
func pages(edit func(r linking.PullRequest, p *linking.PullPage)) func(*testing.T) {
	return connectors(func(p *provider) { p.edit = edit })
}

func TestBrokenConnectors(t *testing.T) {
	calls := 0
	conformance.RunBroken(t, []conformance.Broken{
		{Name: "loses the state", Subtest: "OAuth/Page", Suite: connectors(func(p *provider) {
			p.page = func(r linking.AuthorizeRequest) string {
				return "https://provider.example/sign-in?" + url.Values{"redirect_uri": {r.RedirectURL}, "code_challenge": {r.Challenge}}.Encode()
			}
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
		{Name: "gives each sign-in another account", Subtest: "Grant", Suite: connectors(func(p *provider) { p.external = func(n int) string { return fmt.Sprint(n) } })},
		{Name: "renews to an empty secret", Subtest: "Refresh/NewSecret", Suite: connectors(func(p *provider) {
			p.renew = func(string) ([]byte, error) { return nil, nil }
		})},
		{Name: "renews to a secret that does not work", Subtest: "Refresh/NewSecret", Suite: connectors(func(p *provider) {
			p.renew = func(string) ([]byte, error) { return []byte("broken"), nil }
		})},
		{Name: "renews nonsense", Subtest: "Refresh/Nonsense", Suite: connectors(func(p *provider) {
			p.foreign = func(string) error { return nil }
		})},
		{Name: "ends grants in an outage", Subtest: "Refresh/Outage", Suite: connectors(func(p *provider) { p.outage = &linking.GrantError{} })},
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
		{Name: "gives data after the grant ended", Subtest: "Pull/Revoked", Suite: connectors(func(p *provider) { p.revokes = false })},
		{Name: "reports an outage as a bad request", Subtest: "Pull/Outage", Suite: connectors(func(p *provider) { p.outage = healthlab.Invalid })},
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
