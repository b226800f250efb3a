package linkingtest_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
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
	"github.com/healthlab-dev/healthlab/linking"
)

// noon is the end of the data of the provider.
var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// provider is a provider and its connector in one. Its people have a glucose sample and a heart rate
// an hour, steps for each hour, a night and a run a day. A secret is "token N", a code "code N", a
// challenge is appended. The fields break it.
type provider struct {
	mu      sync.Mutex
	issued  int
	codes   map[string]authorization
	revoked map[string]bool
	status  int // of every answer; 0: as it should be
	header  map[string][]string
	body    string

	page         func(linking.AuthorizeRequest) url.Values
	codesStay    bool
	anyVerifier  bool
	refusal      func(detail string) error // of a sign-in
	granted      func(asked []string) []string
	account      func(n int) string
	edited       func(*linking.Grant)
	renew        func(secret string) ([]byte, error) // nil: as it should be
	expires      time.Time                           // of what is renewed
	answered     func(call, secret string, status int, header map[string][]string, body string) error
	staysRevoked bool                      // Revoke fails the second time
	revokes      bool                      // Revoke ends the grant
	revokedError func(secret string) error // of a grant that was revoked
	encode       func(linking.Tokens) ([]byte, error)
	decode       func([]byte) (linking.Tokens, error)
	edit         func(r linking.PullRequest, p *linking.PullPage)
	rangeOf      func(r linking.PullRequest) (from, to time.Time)
	unknown      error // of a resource that is not there
	foreign      func(secret string) error
	deaf         bool // to the end of a context
	contextError func(secret string) error
	listen       func(linking.Message) (linking.ListenResult, error)
	forClient    error
}

// authorization is what a person agreed to.
type authorization struct {
	challenge string
	scopes    []string
}

func (p *provider) Authorize(_ context.Context, r linking.AuthorizeRequest) (string, error) {
	q := p.page(r)
	return cmp.Or(q.Get("page"), "https://provider.example/sign-in") + "?" + q.Encode(), nil
}

func signInPage(r linking.AuthorizeRequest) url.Values {
	return url.Values{
		"response_type": {"code"}, "client_id": {"ours"}, "state": {r.State}, "redirect_uri": {r.RedirectURL},
		"code_challenge": {r.Challenge}, "code_challenge_method": {"S256"}, "scope": {strings.Join(r.Scopes, " ")},
	}
}

func (p *provider) approve(t testing.TB, page string) string { return p.approveOnly(t, page, nil) }

func (p *provider) approveOnly(t testing.TB, page string, scopes []string) string {
	u, err := url.Parse(page)
	require.NoError(t, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.issued++
	code := fmt.Sprint("code ", p.issued)
	if scopes == nil {
		scopes = strings.Fields(u.Query().Get("scope"))
	}
	p.codes[code] = authorization{u.Query().Get("code_challenge"), scopes}
	return code
}

// reached reports why the provider does not answer as it should; nil if it does.
func (p *provider) reached(ctx context.Context, call, secret string) error {
	if err := ctx.Err(); err != nil && !p.deaf {
		if p.contextError != nil {
			return p.contextError(secret)
		}
		return err
	}
	if p.status == 0 {
		return nil
	}
	return p.answered(call, secret, p.status, p.header, p.body)
}

// answered is what a status means.
func answered(_, _ string, status int, header map[string][]string, _ string) error {
	switch status {
	case 401:
		return healthlab.Unauthenticated
	case 429:
		seconds, _ := strconv.Atoi(header["Retry-After"][0])
		return &linking.RateLimitError{Wait: time.Duration(seconds) * time.Second}
	}
	return healthlab.Unavailable
}

func (p *provider) Exchange(ctx context.Context, r linking.ExchangeRequest) (linking.Grant, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.reached(ctx, "exchange", r.Code); err != nil {
		return linking.Grant{}, err
	}
	sum := sha256.Sum256([]byte(r.Verifier))
	code, ok := p.codes[r.Code]
	if !ok || code.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) && !p.anyVerifier {
		return linking.Grant{}, p.refusal(r.Code)
	}
	if !p.codesStay {
		delete(p.codes, r.Code)
	}
	g := p.grant()
	g.Scopes = p.granted(code.scopes)
	p.edited(&g)
	return g, nil
}

func (p *provider) grant() linking.Grant {
	// The caller holds the lock.
	p.issued++
	return linking.Grant{ExternalUserID: p.account(p.issued), Secret: []byte(fmt.Sprint("token ", p.issued))}
}

func (p *provider) SignIn(ctx context.Context, r linking.PasswordRequest) (linking.PasswordResponse, error) {
	if err := p.reached(ctx, "password", r.Password); err != nil {
		return linking.PasswordResponse{}, err
	}
	return linking.PasswordResponse{}, p.refusal(r.Password)
}

func (p *provider) CompleteMFA(context.Context, linking.MFARequest) (linking.Grant, error) {
	return linking.Grant{}, &linking.Error{Type: linking.IncorrectMFACode}
}

func (p *provider) SignInByEmail(ctx context.Context, r linking.EmailRequest) (linking.Grant, error) {
	if err := p.reached(ctx, "email", r.Email); err != nil {
		return linking.Grant{}, err
	}
	return linking.Grant{}, p.refusal(r.Email)
}

// known reports why a secret does not work; nil if it does. The caller holds the lock.
func (p *provider) known(secret []byte) error {
	switch {
	case !strings.HasPrefix(string(secret), "token "):
		return p.foreign(string(secret))
	case p.revoked[string(secret)]:
		return p.revokedError(string(secret))
	}
	return nil
}

func (p *provider) Refresh(ctx context.Context, secret []byte) (linking.Renewal, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.reached(ctx, "refresh", string(secret)); err != nil {
		return linking.Renewal{}, err
	}
	if p.renew != nil {
		out, err := p.renew(string(secret))
		return linking.Renewal{Secret: out}, err
	}
	if err := p.known(secret); err != nil {
		return linking.Renewal{}, err
	}
	return linking.Renewal{Secret: p.grant().Secret, ExpiresAt: p.expires}, nil
}

func (p *provider) Revoke(ctx context.Context, secret []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.reached(ctx, "revoke", string(secret)); err != nil {
		return err
	}
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

// hourly are the samples of an hour.
var hourly = map[string]func(at time.Time) healthdata.Sample{
	"glucose": func(at time.Time) healthdata.Sample {
		return healthdata.Sample{Timestamp: healthlab.At(at), Unit: "mmol/L", Value: healthdata.Number(5.5)}
	},
	"heartrate": func(at time.Time) healthdata.Sample {
		return healthdata.Sample{Timestamp: healthlab.At(at), Unit: "bpm", Value: healthdata.Number(61)}
	},
	"steps": func(at time.Time) healthdata.Sample {
		start, end := healthlab.At(at), healthlab.At(at.Add(time.Hour))
		return healthdata.Sample{Timestamp: start, Start: &start, End: &end, TimezoneOffset: new(3600), Unit: "count", Value: healthdata.Number(420)}
	},
}

// daily are the summaries that begin at an hour of a day.
var daily = map[string]func(at time.Time) healthdata.Summary{
	"sleep": func(at time.Time) healthdata.Summary {
		if at.Hour() != 22 {
			return nil
		}
		s := &healthdata.Sleep{BedtimeStart: healthlab.At(at), BedtimeStop: healthlab.At(at.Add(8 * time.Hour)), Duration: 28_800, Total: new(int64(27_000)), Awake: new(int64(1800)), Light: new(int64(14_000)), REM: new(int64(6000)), Deep: new(int64(7000))}
		healthdata.HeadOf(s).ExternalID = "night " + at.Format(time.DateOnly)
		return s
	},
	"workouts": func(at time.Time) healthdata.Summary {
		if at.Hour() != 9 {
			return nil
		}
		s := &healthdata.Workout{TimeStart: healthlab.At(at), TimeEnd: healthlab.At(at.Add(time.Hour)), Distance: new(9800.0), MovingTime: new(int64(3500)), AverageHR: new(int64(141))}
		healthdata.HeadOf(s).ExternalID = "run " + at.Format(time.DateOnly)
		return s
	},
}

// Pull returns six hours a page.
func (p *provider) Pull(ctx context.Context, r linking.PullRequest) (linking.PullPage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.reached(ctx, "pull", string(r.Secret)); err != nil {
		return linking.PullPage{}, err
	}
	if err := p.known(r.Secret); err != nil {
		return linking.PullPage{}, err
	}
	if hourly[r.Resource] == nil && daily[r.Resource] == nil {
		return linking.PullPage{}, p.unknown
	}
	first, to := p.rangeOf(r)
	from := first.Truncate(time.Hour)
	if from.Before(first) {
		from = from.Add(time.Hour)
	}
	if r.Cursor != "" {
		n, err := strconv.ParseInt(r.Cursor, 10, 64)
		if err != nil {
			return linking.PullPage{}, healthlab.Invalid
		}
		from = time.Unix(n, 0).UTC()
	}
	until := from.Add(6 * time.Hour)
	if until.After(to) {
		until = to
	}
	owner := "ann"
	items := func(resource string) []linking.PullItem {
		item := linking.PullItem{Owner: &owner, Source: healthdata.Source{Type: healthdata.SourceWatch}}
		for at := from; at.Before(until); at = at.Add(time.Hour) {
			if sample := hourly[resource]; sample != nil {
				item.Samples = append(item.Samples, sample(at))
			} else if s := daily[resource](at); s != nil {
				item.Summaries = append(item.Summaries, s)
			}
		}
		return []linking.PullItem{item}
	}
	page := linking.PullPage{Items: items(r.Resource), RateLimits: []linking.RateLimit{{Scope: linking.RateUser, Remaining: 10, Reset: noon.Add(time.Hour)}}}
	for _, other := range r.With {
		page.With = append(page.With, linking.ResourceData{Resource: other, Items: items(other)})
	}
	if until.Before(to) {
		page.Next = strconv.FormatInt(until.Unix(), 10)
	}
	p.edit(r, &page)
	return page, nil
}

func (p *provider) Listen(_ context.Context, m linking.Message) (linking.ListenResult, error) {
	return p.listen(m)
}

func news() linking.ListenResult {
	return linking.ListenResult{Notifications: []linking.Notification{{ID: "1", ExternalUserID: "ann", Resources: []string{"steps"}, Since: noon.Add(-time.Hour)}}}
}
