package smart_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jwt"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fhir/smart"
)

const tokenURL = "https://api.example.com/fhir/r4/auth/token"

// signer is a key of a client.
type signer struct {
	alg jwa.SignatureAlgorithm
	key jwk.Key
}

func newSigner(t testing.TB, kid string, rsaKey bool) signer {
	var raw any
	var err error
	alg := jwa.ES384()
	if rsaKey {
		raw, err = rsa.GenerateKey(rand.Reader, 2048)
		alg = jwa.RS384()
	} else {
		raw, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	}
	require.NoError(t, err)
	key, err := jwk.Import(raw)
	require.NoError(t, err)
	require.NoError(t, key.Set(jwk.KeyIDKey, kid))
	return signer{alg, key}
}

// keySet is the public keys of signers.
func keySet(t testing.TB, all ...signer) []byte {
	set := jwk.NewSet()
	for _, s := range all {
		key, err := s.key.PublicKey()
		require.NoError(t, err)
		require.NoError(t, set.AddKey(key))
	}
	b, err := json.Marshal(set)
	require.NoError(t, err)
	return b
}

type claims map[string]any

func (s signer) sign(t testing.TB, c claims) string {
	token := jwt.New()
	for name, v := range c {
		if v != nil {
			require.NoError(t, token.Set(name, v))
		}
	}
	b, err := jwt.Sign(token, jwt.WithKey(s.alg, s.key))
	require.NoError(t, err)
	return string(b)
}

// bench is a server with one client.
type bench struct {
	t       testing.TB
	now     time.Time
	client  smart.Client
	gone    bool
	secrets [][]byte
	server  *smart.Server
}

func newBench(t testing.TB, keys []byte, scopes ...string) *bench {
	b := &bench{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), secrets: [][]byte{[]byte(strings.Repeat("a", 32))}}
	b.client = smart.Client{ID: "analytics", Key: uuid.New(), Team: healthlab.TeamID{UUID: uuid.New()}, Scopes: scopes, KeySet: keys}
	b.restart()
	return b
}

func (b *bench) restart() {
	var err error
	b.server, err = smart.New(smart.Config{
		TokenURL: tokenURL, Secrets: b.secrets, Now: func() time.Time { return b.now }, Log: slog.New(slog.DiscardHandler),
		Clients: func(_ context.Context, id string) (smart.Client, error) {
			if b.gone || id != b.client.ID {
				return smart.Client{}, healthlab.NotFound
			}
			return b.client, nil
		},
	})
	require.NoError(b.t, err)
}

func (b *bench) claims() claims {
	return claims{"iss": "analytics", "sub": "analytics", "aud": tokenURL, "exp": b.now.Add(4 * time.Minute), "jti": uuid.NewString()}
}

// ask asks for a token.
func (b *bench) ask(assertion, scope string) (int, map[string]any) {
	b.t.Helper()
	form := url.Values{
		"grant_type": {"client_credentials"}, "scope": {scope}, "client_assertion": {assertion},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
	}
	r := httptest.NewRequestWithContext(b.t.Context(), http.MethodPost, "/auth/token", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	b.server.ServeHTTP(w, r)
	var out map[string]any
	require.NoError(b.t, json.Unmarshal(w.Body.Bytes(), &out))
	return w.Code, out
}

func TestToken_grantsRequestedScopesUntilItExpires(t *testing.T) {
	for _, isRSA := range []bool{true, false} {
		key := newSigner(t, "one", isRSA)
		b := newBench(t, keySet(t, key), "system/*.read")
		status, out := b.ask(key.sign(t, b.claims()), "system/Patient.read system/Observation.rs")
		require.Equal(t, 200, status, out)
		require.Equal(t, "system/Patient.read system/Observation.rs", out["scope"])
		g, err := b.server.Grant(t.Context(), out["access_token"].(string))
		require.NoError(t, err)
		require.Equal(t, b.client.Team, g.Client.Team)
		require.True(t, g.Reads("Patient") && g.Searches("Patient") && g.Reads("Observation"))
		require.False(t, g.Reads("Device"))
		b.now = b.now.Add(6 * time.Minute)
		_, err = b.server.Grant(t.Context(), out["access_token"].(string))
		require.ErrorIs(t, err, healthlab.Unauthenticated, "it is over")
	}
}

// Every claim counts.
func TestAssertion_withAnInvalidClaimOrKeyIsRefused(t *testing.T) {
	key, other := newSigner(t, "one", false), newSigner(t, "one", false)
	small, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	rs256, err := jwk.Import(small)
	require.NoError(t, err)
	require.NoError(t, rs256.Set(jwk.KeyIDKey, "weak"))
	weak := signer{jwa.RS256(), rs256}
	secret, err := jwk.Import([]byte(strings.Repeat("a", 48)))
	require.NoError(t, err)
	require.NoError(t, secret.Set(jwk.KeyIDKey, "one"))
	b := newBench(t, keySet(t, key, weak), "system/*.read")
	edit := func(name string, v any) string {
		c := b.claims()
		c[name] = v
		return key.sign(t, c)
	}
	for what, assertion := range map[string]string{
		"no JWT": "marker", "another key": other.sign(t, b.claims()), "an algorithm that is not allowed": weak.sign(t, b.claims()),
		"a secret": signer{jwa.HS384(), secret}.sign(t, b.claims()), "another issuer": edit("iss", "other"), "another subject": edit("sub", "other"),
		"another audience": edit("aud", "https://other.example.com"), "over": edit("exp", b.now.Add(-time.Minute)), "too long": edit("exp", b.now.Add(time.Hour)),
		"no end": edit("exp", nil), "no id": edit("jti", nil), "an empty id": edit("jti", ""), "not yet made": edit("iat", b.now.Add(2*time.Minute)), "several audiences": edit("aud", []string{"https://other.example.com"}), "not begun": edit("nbf", b.now.Add(2*time.Minute)),
	} {
		status, out := b.ask(assertion, "system/*.read")
		require.Equal(t, 401, status, what)
		require.Equal(t, "invalid_client", out["error"], what)
		require.NotContains(t, fmt.Sprint(out), "marker")
	}
	once := key.sign(t, b.claims())
	status, _ := b.ask(once, "system/*.read")
	require.Equal(t, 200, status)
	status, _ = b.ask(once, "system/*.read")
	require.Equal(t, 401, status, "used before")
}

// A key that is not for signatures signs nothing.
func TestAssertion_signedWithAnEncryptionKeyIsRefused(t *testing.T) {
	key := newSigner(t, "one", true)
	require.NoError(t, key.key.Set(jwk.KeyUsageKey, "enc"))
	b := newBench(t, keySet(t, key), "system/*.read")
	status, _ := b.ask(key.sign(t, b.claims()), "system/*.read")
	require.Equal(t, 401, status)
	require.NoError(t, key.key.Set(jwk.KeyUsageKey, "sig"))
	b = newBench(t, keySet(t, key), "system/*.read")
	status, _ = b.ask(key.sign(t, b.claims()), "system/*.read")
	require.Equal(t, 200, status)
}

func TestScopes_areTheRequestedOnesThatTheClientHas(t *testing.T) {
	key := newSigner(t, "one", false)
	for _, c := range []struct{ has, asks, gets string }{
		{"system/*.read", "system/*.read", "system/*.read"},
		{"system/*.rs", "system/*.read", "system/*.read"},
		{"system/Patient.read", "system/*.read", "system/Patient.read"},
		{"system/Patient.read", "system/Patient.r", "system/Patient.r"},
		{"system/Patient.r", "system/Patient.read", ""},
		{"system/Patient.r system/Device.rs", "system/*.r", "system/Patient.r"},
		{"system/Patient.read", "system/Device.read", ""},
		{"system/*.read", "patient/*.read user/*.read system/*.write system/*.* openid", ""},
		{"system/*.read", "system/Patient.rs?category=x system/Device.s", "system/Device.s"},
		{"system/*.read", "", ""},
	} {
		b := newBench(t, keySet(t, key), strings.Fields(c.has)...)
		status, out := b.ask(key.sign(t, b.claims()), c.asks)
		if c.gets == "" {
			require.Equal(t, 400, status, c.asks)
			require.Equal(t, "invalid_scope", out["error"])
			continue
		}
		require.Equal(t, 200, status, c.asks)
		require.Equal(t, c.gets, out["scope"], c.asks)
	}
}

// A client, a scope or a secret that is taken away counts no more, and a secret is replaced without a gap.
func TestToken_isInvalidAfterItsClientScopeOrSecretIsRemoved(t *testing.T) {
	key := newSigner(t, "one", false)
	b := newBench(t, keySet(t, key), "system/*.read")
	_, out := b.ask(key.sign(t, b.claims()), "system/Patient.read system/Device.read")
	token := out["access_token"].(string)
	old := b.secrets[0]
	b.secrets = [][]byte{[]byte(strings.Repeat("b", 32)), old}
	b.restart()
	g, err := b.server.Grant(t.Context(), token)
	require.NoError(t, err)
	require.True(t, g.Reads("Device"))
	b.client.Scopes = []string{"system/Patient.read"}
	g, err = b.server.Grant(t.Context(), token)
	require.NoError(t, err)
	require.True(t, g.Reads("Patient"))
	require.False(t, g.Reads("Device"))
	b.secrets = b.secrets[:1]
	b.restart()
	_, err = b.server.Grant(t.Context(), token)
	require.ErrorIs(t, err, healthlab.Unauthenticated)
	b.secrets = [][]byte{old}
	b.restart()
	b.gone = true
	_, err = b.server.Grant(t.Context(), token)
	require.ErrorIs(t, err, healthlab.Unauthenticated)
}

// A client replaces its key at the address of its key set: the new one counts at once, the old one no longer
// than the set is used.
func TestKeySet_newKeyIsAcceptedAtOnceAndOldOneExpires(t *testing.T) {
	first, second := newSigner(t, "first", false), newSigner(t, "second", true)
	var body atomic.Value
	var reads atomic.Int64
	body.Store(keySet(t, first))
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reads.Add(1)
		_, _ = w.Write(body.Load().([]byte))
	}))
	defer host.Close()
	b := newBench(t, nil, "system/*.read")
	b.client.KeySetURL = host.URL
	use := func(s signer) int {
		status, _ := b.ask(s.sign(t, b.claims()), "system/*.read")
		return status
	}
	require.Equal(t, 200, use(first))
	require.Equal(t, 200, use(first))
	require.EqualValues(t, 1, reads.Load())
	require.Equal(t, 401, use(second))
	require.EqualValues(t, 1, reads.Load(), "unknown keys are looked for every 10 seconds at most")
	b.now = b.now.Add(time.Minute)
	body.Store(keySet(t, second))
	require.Equal(t, 200, use(second))
	require.EqualValues(t, 2, reads.Load())
	b.now = b.now.Add(time.Minute)
	require.Equal(t, 401, use(first))
	host.Close()
	b.now = b.now.Add(30 * time.Minute)
	require.Equal(t, 200, use(second), "the address does not answer")
	b.now = b.now.Add(2 * time.Hour)
	require.Equal(t, 503, use(second))
}

// However many requests come, the address of a key set is asked once in 10 seconds, also if it does not answer.
func TestKeySet_urlIsFetchedAtMostOnceInTenSeconds(t *testing.T) {
	key := newSigner(t, "one", false)
	var reads atomic.Int64
	var works atomic.Bool
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reads.Add(1)
		if !works.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = w.Write(keySet(t, key))
	}))
	defer host.Close()
	b := newBench(t, nil, "system/*.read")
	b.client.KeySetURL = host.URL
	use := func() int {
		status, _ := b.ask(key.sign(t, b.claims()), "system/*.read")
		return status
	}
	for range 3 {
		require.Equal(t, 503, use())
	}
	require.EqualValues(t, 1, reads.Load())
	works.Store(true)
	b.now = b.now.Add(11 * time.Second)
	require.Equal(t, 200, use())
	require.EqualValues(t, 2, reads.Load())
}

func TestNew_requiresTokenURLClientsAndSecrets(t *testing.T) {
	_, err := smart.New(smart.Config{Secrets: [][]byte{[]byte("short")}})
	require.ErrorIs(t, err, healthlab.Invalid)
	for _, name := range []string{"TokenURL", "Clients", "Secrets"} {
		require.ErrorContains(t, err, name)
	}
}
