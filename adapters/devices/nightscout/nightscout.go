package nightscout

import (
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // what Nightscout calls the hash of its secret
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Slug is the slug of the provider in [Record].
const Slug = "nightscout"

// Record returns the catalogue record of Nightscout. The caller may change it.
func Record() healthdata.Provider {
	return healthdata.Provider{
		Slug: Slug, Name: "Nightscout", Group: "cgm", AuthType: "password", Category: "provider", Class: "cloud", UpdateModel: "poll",
		Description: "Your own site, with what your glucose monitor and your pump report.", OwnSite: true,
		Resources: []healthdata.ProviderResource{
			{Resource: "glucose", Affinity: healthdata.AffinityFallback}, {Resource: "insulin_injection", Affinity: healthdata.AffinityFallback},
			{Resource: "carbohydrates", Affinity: healthdata.AffinityFallback}, {Resource: "note", Affinity: healthdata.AffinityFallback},
		},
		Backfill: healthdata.Backfill{DefaultDays: 90, MaxDays: 365, Configurable: true, Mode: "pull"},
	}
}

// Options adjusts a Connector. The zero value, and nil, mean the defaults.
type Options struct {
	// Guard decides which addresses may be requested. Default: https to public addresses only.
	Guard *webhook.Guard
	// Timeout limits one request including its answer. Default 20 seconds.
	Timeout time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Connector pulls data from Nightscout sites. Make it with [New]. Safe for concurrent use. It stores nothing of a
// person.
type Connector struct {
	guard *webhook.Guard
	http  *http.Client
	now   func() time.Time
}

// New returns a Connector. It starts no goroutine.
func New(opts *Options) *Connector {
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
	return &Connector{guard: o.Guard, now: o.Now, http: webhook.NewClient(&webhook.ClientOptions{Guard: o.Guard, Timeout: o.Timeout})}
}

// Flows returns the flows of the connector. It cannot revoke tokens; a person deletes a token at the site.
func (c *Connector) Flows() linking.ProviderConnector {
	return linking.ProviderConnector{Password: c, Puller: c}
}

// site is the content of a grant's secret, as JSON. Package linking encrypts it.
type site struct {
	healthlab.Private

	// Base is the address of the site without a trailing slash.
	Base string `json:"base"`
	// Proof is an access token or, if Hashed is true, the SHA-1 of the API secret in hex.
	Proof  string `json:"proof"`
	Hashed bool   `json:"hashed"`
	// Zone is the IANA time zone of the site's profile, and Unit the glucose unit of the site: mg/dL or mmol/L. Empty
	// means unknown.
	Zone string `json:"zone"`
	Unit string `json:"unit"`
}

var (
	tokenForm = regexp.MustCompile(`^[a-z0-9_]{0,10}-[0-9a-f]{16}$`)
	hashForm  = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// defaultPorts maps a scheme to its default port.
var defaultPorts = map[string]string{"https": "443", "http": "80"}

// address returns the base URL of a site from the address that a person typed or pasted.
func (c *Connector) address(typed string) (string, error) {
	s := strings.TrimSpace(typed)
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		s = s[:i]
	}
	if !strings.Contains(s, "://") {
		s = "https://" + s
	}
	s = strings.TrimRight(strings.TrimSuffix(strings.TrimRight(s, "/"), "/api/v1"), "/")
	u, err := c.guard.CheckURL(s)
	if err != nil || strings.Contains(u.Path, "..") {
		return "", &linking.Error{Type: linking.ProviderCredentialError}
	}
	if port := u.Port(); port == defaultPorts[u.Scheme] {
		u.Host = strings.TrimSuffix(u.Host, ":"+port) // with and without the default port it is the same site
	}
	return u.String(), nil
}

// SignIn checks that the site accepts the token or API secret, and that the token or secret may read entries. See
// [linking.PasswordFlow].
func (c *Connector) SignIn(ctx context.Context, r linking.PasswordRequest) (linking.PasswordResponse, error) {
	base, err := c.address(r.Username)
	if err != nil {
		return linking.PasswordResponse{}, err
	}
	s := site{Base: base, Proof: strings.TrimSpace(r.Password)}
	switch {
	case s.Proof == "":
		return linking.PasswordResponse{}, &linking.Error{Type: linking.ProviderCredentialError}
	case hashForm.MatchString(s.Proof):
		s.Hashed = true
	case !tokenForm.MatchString(s.Proof):
		sum := sha1.Sum([]byte(s.Proof)) //nolint:gosec // as above
		s.Proof, s.Hashed = hex.EncodeToString(sum[:]), true
	}
	if err := c.verify(ctx, &s); err != nil {
		return linking.PasswordResponse{}, err
	}
	if err := c.settings(ctx, &s); err != nil {
		return linking.PasswordResponse{}, err
	}
	doc, err := json.Marshal(s)
	if err != nil {
		return linking.PasswordResponse{}, err
	}
	return linking.PasswordResponse{Grant: linking.Grant{ExternalUserID: base, Secret: doc}}, nil
}

// CompleteMFA always fails. It is never called, because Nightscout has no second factor.
func (*Connector) CompleteMFA(context.Context, linking.MFARequest) (linking.Grant, error) {
	return linking.Grant{}, &linking.Error{Type: linking.ProviderCredentialError}
}

// verify checks that a site accepts the token and allows reading. It refuses a wrong token even if the site is
// readable without one, because the site may require a token later.
func (c *Connector) verify(ctx context.Context, s *site) error {
	body, err := c.get(ctx, s, "/api/v1/verifyauth", nil)
	var missing *statusError
	switch {
	case errors.Is(err, healthlab.Unauthenticated), errors.As(err, &missing) && missing.status == http.StatusNotFound:
		return &linking.Error{Type: linking.ProviderCredentialError} // a wrong token, or no Nightscout site
	case err != nil:
		return err
	}
	type verdict struct {
		Message   any    `json:"message"`
		RoleFound string `json:"rolefound"`
	}
	var v struct {
		Message verdict `json:"message"`
	}
	if json.Unmarshal(body, &v) != nil {
		var flat verdict
		if json.Unmarshal(body, &flat) != nil {
			return errShape
		}
		v.Message = flat
	}
	if v.Message.Message != "OK" && v.Message.RoleFound != "FOUND" {
		return &linking.Error{Type: linking.ProviderCredentialError}
	}
	body, err = c.get(ctx, s, "/api/v1/entries.json", url.Values{"count": {"1"}})
	if errors.Is(err, healthlab.Unauthenticated) {
		return &linking.Error{Type: linking.ProviderCredentialError} // a valid token that may not read
	}
	if err == nil && json.Unmarshal(body, &[]json.RawMessage{}) != nil {
		err = errShape
	}
	return err
}

// settings sets the zone and the unit of s from the profile and the status of the site. A value that the site lacks, or
// that the token may not read, stays empty. If the site does not answer, settings returns an error.
func (c *Connector) settings(ctx context.Context, s *site) error {
	body, err := c.get(ctx, s, "/api/v1/profile.json", url.Values{"count": {"1"}})
	var missing *statusError
	switch {
	case errors.Is(err, healthlab.Unauthenticated), errors.As(err, &missing) && missing.status == http.StatusNotFound:
	case err != nil:
		return err
	default:
		var profiles []json.RawMessage
		if json.Unmarshal(body, &profiles) != nil {
			return errShape
		}
		if len(profiles) > 0 {
			s.Zone = zoneOf(profiles[0])
		}
	}
	body, err = c.get(ctx, s, "/api/v1/status.json", nil)
	if errors.Is(err, healthlab.Unauthenticated) {
		return nil
	}
	var status struct {
		Settings struct {
			Units any `json:"units"`
		} `json:"settings"`
	}
	if err == nil && json.Unmarshal(body, &status) != nil {
		err = errShape
	}
	units, _ := status.Settings.Units.(string)
	s.Unit = unitOf(units)
	return err
}

// zoneOf returns the zone of a profile; empty if it names no known zone.
func zoneOf(doc json.RawMessage) string {
	var profile struct {
		Default string `json:"defaultProfile"`
		Store   map[string]struct {
			Timezone string `json:"timezone"`
		} `json:"store"`
	}
	if json.Unmarshal(doc, &profile) != nil {
		return ""
	}
	zone := profile.Store[profile.Default].Timezone
	if _, err := time.LoadLocation(zone); err != nil || zone == "Local" || len(zone) >= 64 {
		return ""
	}
	return zone
}

// unitOf returns the catalogue name of a glucose unit; empty if it is unknown.
func unitOf(written string) string {
	switch s := strings.ToLower(strings.TrimSpace(written)); {
	case strings.HasPrefix(s, "mmol"):
		return "mmol/L"
	case strings.HasPrefix(s, "mg"):
		return "mg/dL"
	}
	return ""
}

// maxBody is the longest accepted answer, in bytes. A page has some hundred kilobytes.
const maxBody = 8 << 20

// get requests a path of a site, with the query q, and returns the body of the answer. It does not check that the body
// is JSON.
func (c *Connector) get(ctx context.Context, s *site, path string, q url.Values) ([]byte, error) {
	if q == nil {
		q = url.Values{}
	}
	if !s.Hashed {
		q.Set("token", s.Proof)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Base+path+"?"+q.Encode(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%w: the address of the site must be a valid URL", healthlab.Invalid)
	}
	if s.Hashed {
		req.Header.Set("Api-Secret", s.Proof)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, unreachable(ctx, err)
	}
	defer resp.Body.Close() //nolint:errcheck // the body was read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, unreachable(ctx, err)
	case len(body) > maxBody:
		return nil, fmt.Errorf("%w: the answer of the site must have at most %d bytes", healthlab.Unavailable, maxBody)
	case resp.StatusCode == http.StatusOK:
		return body, nil
	}
	wait := webhook.ParseRetryAfter(resp.Header.Get("Retry-After"), c.now())
	switch {
	case resp.StatusCode == http.StatusUnauthorized && json.Valid(body):
		// The host of a sleeping or deleted site answers with a page of another form.
		return nil, fmt.Errorf("%w: the site does not accept the token or API secret, or the token may not read; connect again with a token that has the role readable", healthlab.Unauthenticated)
	case resp.StatusCode == http.StatusTooManyRequests:
		return nil, &linking.RateLimitError{Scope: linking.RateUser, Wait: wait} // each site has only one person
	}
	return nil, &statusError{resp.StatusCode, wait}
}

// statusError is the error of an HTTP status without data, which may be temporary.
type statusError struct {
	status int
	wait   time.Duration
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%v: the site answers with status %d", healthlab.Unavailable, e.status)
}

// Unwrap returns healthlab.Unavailable.
func (*statusError) Unwrap() error { return healthlab.Unavailable }

// RetryAfter returns how long the site asks to wait; 0 if it does not say.
func (e *statusError) RetryAfter() time.Duration { return e.wait }

// errShape is the error of an answer that does not have the documented form.
var errShape = fmt.Errorf("%w: the answer of the site must have the form that Nightscout documents", healthlab.Unavailable)

// unreachable describes a failure of the network. It omits the cause, because the text of the cause contains the
// address.
func unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("the site answers too late: %w", context.DeadlineExceeded)
	}
	return fmt.Errorf("%w: the site cannot be reached", healthlab.Unavailable)
}
