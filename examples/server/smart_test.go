package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// smartKey is a private key of a client of SMART backend services.
type smartKey struct {
	kid    string
	signer crypto.Signer
}

func newSmartKey(t *testing.T, kid string, isRSA bool) smartKey {
	t.Helper()
	if isRSA {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		require.NoError(t, err)
		return smartKey{kid, key}
	}
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	return smartKey{kid, key}
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// public is the key in a key set.
func (k smartKey) public() map[string]string {
	switch key := k.signer.Public().(type) {
	case *rsa.PublicKey:
		return map[string]string{"kty": "RSA", "kid": k.kid, "n": b64(key.N.Bytes()), "e": b64(big.NewInt(int64(key.E)).Bytes())}
	case *ecdsa.PublicKey:
		text, _ := key.Bytes() // of a key that was made here
		return map[string]string{"kty": "EC", "crv": "P-384", "kid": k.kid, "x": b64(text[1:49]), "y": b64(text[49:])}
	}
	return nil
}

// assertion is a JWT for a token endpoint.
func (k smartKey) assertion(t *testing.T, client, audience string) string {
	t.Helper()
	alg := "RS384"
	if _, ok := k.signer.(*ecdsa.PrivateKey); ok {
		alg = "ES384"
	}
	part := func(v any) string {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		return b64(b)
	}
	text := part(map[string]string{"alg": alg, "kid": k.kid, "typ": "JWT"}) + "." + part(map[string]any{
		"iss": client, "sub": client, "aud": audience, "exp": time.Now().Add(4 * time.Minute).Unix(), "jti": uuid.NewString(),
	})
	sum := sha512.Sum384([]byte(text))
	if key, ok := k.signer.(*ecdsa.PrivateKey); ok {
		r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
		require.NoError(t, err)
		return text + "." + b64(append(r.FillBytes(make([]byte, 48)), s.FillBytes(make([]byte, 48))...))
	}
	b, err := k.signer.Sign(rand.Reader, sum[:], crypto.SHA384)
	require.NoError(t, err)
	return text + "." + b64(b)
}

// smartClients is the file of -smart-clients.
type smartClients struct {
	t    *testing.T
	path string
}

// write replaces the clients of the file.
func (f smartClients) write(clients ...map[string]any) {
	f.t.Helper()
	b, err := json.Marshal(map[string]any{"clients": append([]map[string]any{}, clients...)})
	require.NoError(f.t, err)
	next := f.path + ".new"
	require.NoError(f.t, os.WriteFile(next, b, 0o600))
	require.NoError(f.t, os.Rename(next, f.path))
}

func newSmartClients(t *testing.T) smartClients {
	f := smartClients{t, filepath.Join(t.TempDir(), "clients.json")}
	f.write()
	return f
}

func smartClient(id, team string, scopes []string, keys ...smartKey) map[string]any {
	var set []any
	for _, k := range keys {
		set = append(set, k.public())
	}
	return map[string]any{"client_id": id, "team": team, "scopes": scopes, "key_set": map[string]any{"keys": set}}
}

// token asks for a token, and returns what the answer has beside the status.
func (p *program) token(assertion, scope string, status int) (out struct {
	AccessToken string `json:"access_token"`
	Scope       string
	Error       string
},
) {
	p.Helper()
	var about struct {
		Endpoint string `json:"token_endpoint"`
	}
	p.get("/fhir/r4/.well-known/smart-configuration", &about)
	form := url.Values{
		"grant_type": {"client_credentials"}, "scope": {scope}, "client_assertion": {assertion},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
	}
	ask(p, "POST", about.Endpoint, form.Encode(), status, &out, "content-type", "application/x-www-form-urlencoded")
	return out
}

// read asks for a path of FHIR with a token.
func (p *program) read(token, path string, status int) (out map[string]any) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), http.MethodGet, p.url+"/fhir/r4"+path, http.NoBody)
	require.NoError(p, err)
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(p, err)
	defer answer.Body.Close()
	require.Equal(p, status, answer.StatusCode, path)
	require.NoError(p, json.NewDecoder(answer.Body).Decode(&out))
	return out
}

// A client that the file names gets tokens for what it signs, reads and searches within its scopes, changes its key,
// and has no access once the file has it no more. The access log names it by its client_id.
func TestSMART_clientOfTheFileReadsWithinItsScopes(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"sandbox": nil, "production": {"-env", "production", "-store", "memory", "-invented", "lab"},
		"folder": {"-data", t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := newSmartClients(t)
			p := start(t, append(args, "-smart-clients", file.path)...)
			team, id := teamOf(p.key).String(), uuid.NewString()
			person := userNamed(p, "smart-ana")
			post(p, "/v2/timeseries/"+person+"/heartrate", `{"stage":"daily","provider":"manual","source":{"type":"app"},"data":[{"timestamp":"2026-03-01T07:00:00+00:00","value":60,"unit":"bpm"}]}`)
			endpoint := p.url + "/fhir/r4/auth/token"
			first, second := newSmartKey(t, "first", true), newSmartKey(t, "second", false)

			require.Equal(t, "invalid_client", p.token(first.assertion(t, id, endpoint), "system/*.read", http.StatusUnauthorized).Error)
			scopes := []string{"system/Patient.read", "system/Observation.rs"}
			file.write(smartClient(id, team, scopes, first))
			signed := first.assertion(t, id, endpoint)
			got := p.token(signed, "system/*.read", http.StatusOK)
			require.Equal(t, "system/Patient.read system/Observation.rs", got.Scope)
			require.Equal(t, "invalid_client", p.token(signed, "system/*.read", http.StatusUnauthorized).Error, "an assertion counts once")
			require.Equal(t, "invalid_scope", p.token(first.assertion(t, id, endpoint), "system/Device.read", http.StatusBadRequest).Error)

			require.Equal(t, person, p.read(got.AccessToken, "/Patient/"+person, http.StatusOK)["id"])
			require.EqualValues(t, 1, p.read(got.AccessToken, "/Observation?code=8867-4&patient="+person, http.StatusOK)["total"])
			require.Equal(t, "OperationOutcome", p.read(got.AccessToken, "/Device?patient="+person, http.StatusForbidden)["resourceType"])
			require.Equal(t, "OperationOutcome", p.read("none", "/Patient/"+person, http.StatusUnauthorized)["resourceType"])
			ask(p, "GET", "/fhir/r4/Device?patient="+person, "", http.StatusOK, nil) // the key reads what the token does not
			ask(p, "GET", "/v2/user/"+person, "", http.StatusUnauthorized, nil, "x-service-api-key", "", "Authorization", "Bearer "+got.AccessToken)

			var log struct {
				Lines []struct{ Actor, Operation string } `json:"lines"`
			}
			p.get("/v2/user/"+person+"/access_log", &log)
			require.Contains(t, log.Lines, struct{ Actor, Operation string }{"key:" + id, "fhir_read_patient"})
			require.Contains(t, log.Lines, struct{ Actor, Operation string }{"key:" + id, "fhir_search_observation"})

			file.write(smartClient(id, team, scopes, first, second))
			newer := p.token(second.assertion(t, id, endpoint), "system/Patient.r", http.StatusOK)
			p.token(first.assertion(t, id, endpoint), "system/Patient.r", http.StatusOK)
			file.write(smartClient(id, team, scopes, second))
			p.token(first.assertion(t, id, endpoint), "system/Patient.r", http.StatusUnauthorized)
			p.token(second.assertion(t, id, endpoint), "system/Patient.r", http.StatusOK)
			p.read(newer.AccessToken, "/Patient/"+person, http.StatusOK)
			p.read(newer.AccessToken, "/Patient?_id="+person, http.StatusForbidden)

			file.write()
			p.read(newer.AccessToken, "/Patient/"+person, http.StatusUnauthorized)
			p.token(second.assertion(t, id, endpoint), "system/Patient.r", http.StatusUnauthorized)
			ask(p, "GET", "/fhir/r4/Patient/"+person, "", http.StatusOK, nil)
			p.quit()
		})
	}
}

// The key set of a client is read from its address, which a sandbox's may have on the same machine.
func TestSMART_keySetIsReadFromItsAddress(t *testing.T) {
	t.Parallel()
	key := newSmartKey(t, "one", false)
	at := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{key.public()}})
	})
	for environment, status := range map[string]int{"sandbox": http.StatusOK, "production": http.StatusServiceUnavailable} {
		file, id := newSmartClients(t), uuid.NewString()
		p := start(t, "-smart-clients", file.path, "-env", environment, "-store", "memory")
		file.write(map[string]any{"client_id": id, "team": teamOf(p.key).String(), "scopes": []string{"system/*.read"}, "key_set_url": at})
		p.token(key.assertion(t, id, p.url+"/fhir/r4/auth/token"), "system/*.read", status)
		p.quit()
	}
}

// What a client has used counts in the next process on a folder, too.
func TestUsedAssertions_areAcceptedOnceAcrossProcesses(t *testing.T) {
	t.Parallel()
	now := time.Now()
	clock := func() time.Time { return now }
	dir := filepath.Join(t.TempDir(), usedDir)
	one, other := &usedAssertions{dir: dir, now: clock}, &usedAssertions{dir: dir, now: clock}
	use := func(u *usedAssertions, client, id string) bool {
		fresh, err := u.use(t.Context(), client, id, now.Add(5*time.Minute))
		require.NoError(t, err)
		return fresh
	}
	require.True(t, use(one, "a", "1"))
	require.False(t, use(one, "a", "1"))
	require.False(t, use(other, "a", "1"))
	require.True(t, use(other, "b", "1"))
	require.True(t, use(one, "a", "2"))
	now = now.Add(14 * time.Minute)
	require.True(t, use(one, "a", "3"))
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, list, 4)
	now = now.Add(3 * time.Minute)
	require.True(t, use(other, "a", "4"))
	list, err = os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, list, 2, "those that are long over are removed")
}

func TestSMART_invalidClientFileStopsTheStart(t *testing.T) {
	t.Parallel()
	file := newSmartClients(t)
	file.write(map[string]any{"client_id": "marker"})
	err := run(t.Context(), []string{"-addr", "127.0.0.1:0", "-store", "memory", "-smart-clients", file.path}, io.Discard, io.Discard)
	require.ErrorContains(t, err, "-smart-clients: invalid: clients[0].client_id: must be a UUID")
	require.NotContains(t, err.Error(), "marker")
}
