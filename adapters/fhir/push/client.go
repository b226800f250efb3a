package push

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
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"github.com/healthlab-dev/healthlab/aggregate/continuous/ehr"
)

const (
	mediaType   = "application/fhir+json"
	answerLimit = 16 << 20
	tokenLimit  = 1 << 20
	// assertionLife is how long a signed assertion is valid. A token is replaced tokenMargin before it expires.
	assertionLife = 4 * time.Minute
	tokenMargin   = 30 * time.Second
	// tokenLife is how long a token is used if the server does not say when the token expires.
	tokenLife = 4 * time.Minute
)

// holdError means that the server does not answer, or that its answer is not that of a FHIR server, or says to send
// later. It pauses the pipeline.
type holdError struct {
	reason string // contains no value of a person
	after  time.Duration
}

func (e *holdError) Error() string { return e.reason }

// client sends transactions to FHIR servers.
type client struct {
	http      *http.Client
	pipelines *ehr.Service
	now       func() time.Time
	newID     func() uuid.UUID

	mu     sync.Mutex
	tokens map[ehr.PipelineID]token
}

type token struct {
	text  string
	until time.Time
}

// answer is the answer of a server to a transaction.
type answer struct {
	status int
	after  time.Duration
	body   []byte
}

// post sends a transaction. If the server refuses the token of a pipeline with BackendServices, post gets a new token
// and sends the transaction once more.
func (c *client) post(ctx context.Context, p *ehr.Pipeline, bundle []byte) (answer, error) {
	for again := false; ; again = true {
		bearer, err := c.bearer(ctx, p)
		if err != nil {
			return answer{}, err
		}
		out, err := c.do(ctx, http.MethodPost, p.BaseURL, bearer, mediaType, bundle, answerLimit)
		if err != nil || out.status != http.StatusUnauthorized || again || p.Auth != ehr.BackendServices {
			return out, err
		}
		c.forget(p.ID)
	}
}

func (c *client) forget(id ehr.PipelineID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tokens, id)
}

func (c *client) do(ctx context.Context, method, to, bearer, contentType string, body []byte, limit int64) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return answer{}, &holdError{reason: "the URL of the server or of its token endpoint is malformed"}
	}
	r.Header.Set("Accept", mediaType+", application/json")
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	w, err := c.http.Do(r) // the client refuses the addresses that the host forbids
	if err != nil {
		return answer{}, noAnswer(ctx, "the server does not answer, or its address is not allowed")
	}
	defer func() { _ = w.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(w.Body, limit+1))
	if err != nil || int64(len(text)) > limit {
		return answer{}, noAnswer(ctx, fmt.Sprintf("the server's answer was cut off, or has more than %d bytes", limit))
	}
	return answer{w.StatusCode, c.retryAfter(w.Header.Get("Retry-After")), text}, nil
}

func noAnswer(ctx context.Context, reason string) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return &holdError{reason: reason}
}

// mostAfter is the longest pause that a server can demand by Retry-After.
const mostAfter = 24 * time.Hour

func (c *client) retryAfter(text string) time.Duration {
	var d time.Duration
	if n, err := strconv.Atoi(text); err == nil {
		d = time.Duration(min(max(n, 0), int(mostAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		d = at.Sub(c.now())
	}
	return min(max(d, 0), mostAfter)
}

// bearer returns the token for a request; empty if the pipeline uses none.
func (c *client) bearer(ctx context.Context, p *ehr.Pipeline) (string, error) {
	switch p.Auth {
	case ehr.NoAuth:
		return "", nil
	case ehr.StaticToken:
		text, err := c.pipelines.Token(ctx, p)
		if err != nil {
			return "", fmt.Errorf("token of the pipeline: %w", err)
		}
		return text, nil
	}
	c.mu.Lock()
	held := c.tokens[p.ID]
	c.mu.Unlock()
	if held.text != "" && c.now().Before(held.until) {
		return held.text, nil
	}
	fresh, err := c.exchange(ctx, p)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	c.tokens[p.ID] = fresh
	c.mu.Unlock()
	return fresh.text, nil
}

// exchange gets a token from the token endpoint in exchange for a signed assertion.
func (c *client) exchange(ctx context.Context, p *ehr.Pipeline) (token, error) {
	endpoint, err := c.tokenURL(ctx, p)
	if err != nil {
		return token{}, err
	}
	assertion, err := c.assertion(ctx, p, endpoint)
	if err != nil {
		return token{}, err
	}
	form := url.Values{
		"grant_type": {"client_credentials"}, "scope": {p.Scope}, "client_assertion": {assertion},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
	}
	out, err := c.do(ctx, http.MethodPost, endpoint, "", "application/x-www-form-urlencoded", []byte(form.Encode()), tokenLimit)
	if err != nil {
		return token{}, err
	}
	var body struct {
		Token   string      `json:"access_token"`
		Expires json.Number `json:"expires_in"`
	}
	if out.status != http.StatusOK || json.Unmarshal(out.body, &body) != nil || body.Token == "" {
		return token{}, &holdError{fmt.Sprintf("the token endpoint answers HTTP status %d without an access_token", out.status), out.after}
	}
	life := tokenLife
	if n, err := body.Expires.Int64(); err == nil && n > 0 {
		life = time.Duration(min(n, int64(mostAfter/time.Second))) * time.Second
	}
	return token{body.Token, c.now().Add(life - min(tokenMargin, life/2))}, nil
}

// tokenURL returns the URL of the token endpoint: the URL that the team has set, or else the one that the server
// publishes.
func (c *client) tokenURL(ctx context.Context, p *ehr.Pipeline) (string, error) {
	if p.TokenURL != "" {
		return p.TokenURL, nil
	}
	out, err := c.do(ctx, http.MethodGet, p.BaseURL+"/.well-known/smart-configuration", "", "", nil, tokenLimit)
	if err != nil {
		return "", err
	}
	var body struct {
		Endpoint string `json:"token_endpoint"`
	}
	if out.status != http.StatusOK || json.Unmarshal(out.body, &body) != nil || !strings.Contains(body.Endpoint, "://") {
		return "", &holdError{fmt.Sprintf("smart-configuration answers HTTP status %d without the URL of a token_endpoint", out.status), out.after}
	}
	if strings.HasPrefix(p.BaseURL, "https:") && !strings.HasPrefix(body.Endpoint, "https:") {
		return "", &holdError{"token_endpoint of smart-configuration: must be an https URL, because that of the server is", out.after}
	}
	return body.Endpoint, nil
}

// assertion returns a signed JWT that authenticates the pipeline's client at a token endpoint. It is valid for one use.
func (c *client) assertion(ctx context.Context, p *ehr.Pipeline, endpoint string) (string, error) {
	signer, err := c.pipelines.Key(ctx, p)
	if err != nil {
		return "", fmt.Errorf("key of the pipeline: %w", err)
	}
	key, err := jwk.Import(signer)
	if err != nil {
		return "", fmt.Errorf("key of the pipeline: %w", err)
	}
	if err := key.Set(jwk.KeyIDKey, p.KeyID); err != nil {
		return "", fmt.Errorf("key of the pipeline: %w", err)
	}
	alg := jwa.ES384()
	if key.KeyType() == jwa.RSA() {
		alg = jwa.RS384()
	}
	now := c.now()
	t, err := jwt.NewBuilder().Issuer(p.ClientID).Subject(p.ClientID).Audience([]string{endpoint}).JwtID(c.newID().String()).
		IssuedAt(now).Expiration(now.Add(assertionLife)).Build()
	if err != nil {
		return "", fmt.Errorf("make assertion: %w", err)
	}
	signed, err := jwt.Sign(t, jwt.WithKey(alg, key))
	if err != nil {
		return "", fmt.Errorf("sign assertion: %w", err)
	}
	return string(signed), nil
}
