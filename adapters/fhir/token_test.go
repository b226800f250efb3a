package fhir_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jwt"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fhir"
	"github.com/healthlab-dev/healthlab/adapters/fhir/smart"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
)

// tokens makes the handler accept tokens of a client of the team, and returns what gets one for scopes.
func (c *clinic) tokens() (get func(scope string) string, client *smart.Client) {
	c.t.Helper()
	raw, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(c.t, err)
	key, err := jwk.Import(raw)
	require.NoError(c.t, err)
	require.NoError(c.t, key.Set(jwk.KeyIDKey, "one"))
	public, err := key.PublicKey()
	require.NoError(c.t, err)
	set := jwk.NewSet()
	require.NoError(c.t, set.AddKey(public))
	keys, err := json.Marshal(set)
	require.NoError(c.t, err)
	client = &smart.Client{ID: "analytics", Key: uuid.New(), Team: c.team, Scopes: []string{"system/*.read"}, KeySet: keys}
	tokens, err := smart.New(smart.Config{
		TokenURL: base + "/auth/token", Secrets: [][]byte{[]byte(strings.Repeat("a", 32))},
		Clients: func(_ context.Context, id string) (smart.Client, error) {
			if id != client.ID {
				return smart.Client{}, healthlab.NotFound
			}
			return *client, nil
		},
	})
	require.NoError(c.t, err)
	c.config.Tokens = tokens
	c.handler, err = fhir.Handler(c.config)
	require.NoError(c.t, err)
	return func(scope string) string {
		t, err := jwt.NewBuilder().Issuer("analytics").Subject("analytics").Audience([]string{base + "/auth/token"}).
			Expiration(time.Now().Add(time.Minute)).JwtID(uuid.NewString()).Build()
		require.NoError(c.t, err)
		assertion, err := jwt.Sign(t, jwt.WithKey(jwa.ES384(), key))
		require.NoError(c.t, err)
		form := url.Values{
			"grant_type": {"client_credentials"}, "scope": {scope}, "client_assertion": {string(assertion)},
			"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
		}
		r := httptest.NewRequestWithContext(c.t.Context(), http.MethodPost, "/auth/token", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, r)
		var out struct {
			Token string `json:"access_token"`
		}
		require.NoError(c.t, json.Unmarshal(w.Body.Bytes(), &out))
		require.NotEmpty(c.t, out.Token, w.Body.String())
		return out.Token
	}, client
}

func (c *clinic) bear(token, path string) (int, string, http.Header) {
	c.t.Helper()
	r := httptest.NewRequestWithContext(c.t.Context(), http.MethodGet, path, http.NoBody)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Prefer", "respond-async")
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Header()
}

// A token reads the types of its scopes, and nothing else of the team, on every way.
func TestToken_readsOnlyResourceTypesOfItsScopes(t *testing.T) {
	c := newClinic(t)
	get, client := c.tokens()
	token := get("system/Patient.read system/Device.rs system/ServiceRequest.r")
	ann := c.ann.String()
	for path, status := range map[string]int{
		"/Patient": 200, "/Patient/" + ann: 200, "/Device?patient=" + ann: 200, "/Patient/" + c.foreign.String(): 404,
		"/Observation?patient=" + ann: 403, "/ServiceRequest?patient=" + ann: 403, "/ServiceRequest/" + c.order.String(): 200,
		"/Binary/" + c.order.String() + ".results": 403, "/Patient/" + ann + "/$everything?_type=Observation": 403, "/$export?_type=Observation": 403,
		c.group(): 403, c.group() + "/$export?_type=Observation": 403, c.group() + "/$export?_type=Patient": 202,
	} {
		got, body, _ := c.bear(token, path)
		require.Equal(t, status, got, path+body)
	}
	_, body, _ := c.bear(token, "/Patient/"+ann+"/$everything")
	var everything object
	require.NoError(t, json.Unmarshal([]byte(body), &everything))
	for _, r := range entries(everything) {
		require.Contains(t, []string{"Patient", "Device"}, r["resourceType"])
	}
	whole := get("system/*.read")
	status, _, _ := c.bear(whole, c.group())
	require.Equal(t, 200, status)
	status, _, head := c.bear(whole, "/$export")
	require.Equal(t, http.StatusAccepted, status)
	at := strings.TrimPrefix(head.Get("Content-Location"), base)
	file := strings.Replace(at, "status", "file", 1)
	status, _, _ = c.bear(whole, file+"/Observation/0")
	require.Equal(t, 200, status)
	status, _, _ = c.bear(token, file+"/Observation/0")
	require.Equal(t, 403, status)
	status, _, _ = c.bear(token, file+"/Patient/0")
	require.Equal(t, 200, status)
	status, body, head = c.bear("marker", "/Patient")
	require.Equal(t, 401, status)
	require.Contains(t, body, "or a token that has not ended, as Authorization: Bearer")
	require.Equal(t, "Bearer", head.Get("WWW-Authenticate"))
	c.get("team", "/Patient", 200) // keys count as before
	lines, err := c.s.Access.Lines(t.Context(), accesslog.Query{Team: c.team, N: 1000})
	require.NoError(t, err)
	found := false
	for _, l := range lines {
		found = found || l.Actor == "key:"+client.Key.String() && l.Operation == "fhir_read_patient" && l.Person == c.ann
	}
	require.True(t, found, "the access log names the client")
	client.ID = "removed"
	status, _, _ = c.bear(token, "/Patient")
	require.Equal(t, 401, status)
	require.Equal(t, "private_key_jwt", c.get("", "/.well-known/smart-configuration", 200)["token_endpoint_auth_methods_supported"].([]any)[0])
}

// Requests for tokens are limited by the address of the client, as other requests without a key are.
func TestTokenRequests_areRateLimitedByAddress(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c.config.API.Limits = httpapi.Limits{AddressRate: 1, AddressBurst: 2, Now: func() time.Time { return at }}
	get, _ := c.tokens()
	ask := func(address string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/auth/token", strings.NewReader("grant_type=marker"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.RemoteAddr = address
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, r)
		return w
	}
	for _, step := range []struct {
		address string
		after   time.Duration
		status  int
	}{
		{"192.0.2.7:1", 0, 400}, {"192.0.2.7:2", 0, 400}, {"192.0.2.7:3", 0, 429}, {"192.0.2.8:1", 0, 400}, {"192.0.2.7:4", time.Second, 400}, {"192.0.2.7:5", 0, 429},
	} {
		at = at.Add(step.after)
		w := ask(step.address)
		require.Equal(t, step.status, w.Code, step.address)
		if step.status == 429 {
			require.Equal(t, "1", w.Header().Get("Retry-After"))
			require.JSONEq(t, `{"error":"temporarily_unavailable","error_description":"too many requests; wait as long as Retry-After says"}`, w.Body.String())
		}
	}
	at = at.Add(time.Minute)
	token := get("system/*.read")
	for range 5 { // the team's limit holds for requests with a token
		status, _, _ := c.bear(token, "/Patient")
		require.Equal(t, 200, status)
	}
}

// The rate limit of a team counts its requests of all operations together.
func TestHandler_countsRequestsOfAllOperationsForTheRateLimit(t *testing.T) {
	t.Parallel()
	c := newClinic(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c.config.API.Limits = httpapi.Limits{TeamRate: 1, TeamBurst: 3, Now: func() time.Time { return at }}
	get, _ := c.tokens()
	token := get("system/*.read")
	for _, path := range []string{"/Patient", "/Observation", "/Device"} {
		status, _, _ := c.bear(token, path)
		require.NotEqual(t, 429, status, path)
	}
	for _, path := range []string{"/Patient", "/Observation", "/Device", "/Patient/none"} {
		status, _, _ := c.bear(token, path)
		require.Equal(t, 429, status, path)
	}
}
