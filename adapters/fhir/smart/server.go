package smart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"github.com/healthlab-dev/healthlab"
)

// Client is a program that may get tokens.
type Client struct {
	// ID is the client_id. Key names the client in the access log.
	ID  string
	Key uuid.UUID
	// Team is the team whose data the client reads.
	Team healthlab.TeamID
	// Scopes are the scopes that the client may request, such as system/*.read or system/Patient.rs.
	Scopes []string
	// KeySet holds the client's public keys as a JWK set. KeySetURL is the URL of a key set, which may replace KeySet. A
	// client may have several keys, so that it can replace one.
	KeySet    []byte
	KeySetURL string
}

// Config holds the settings of a Server.
type Config struct {
	// TokenURL is the URL of the token endpoint, which is also the audience of assertions. Required.
	TokenURL string
	// Clients returns a client by its id; healthlab.NotFound if there is none. It is also called at each use of a
	// token, so that a removed client loses access at once. Required.
	Clients func(ctx context.Context, id string) (Client, error)
	// Secrets sign tokens. The first signs new tokens; all are accepted, so that a secret can be replaced. Each has
	// at least 32 bytes. Required.
	Secrets [][]byte
	// Use records the id of a client's assertion until the assertion expires. It returns false if the id is already
	// recorded. Services of several processes must share the records. Default: the memory of this process.
	Use func(ctx context.Context, client, id string, until time.Time) (bool, error)
	// Life is how long a token is valid. Default and maximum 5 minutes.
	Life time.Duration
	// Client is the HTTP client that reads key sets from their URLs. Default: one with a timeout of 10 seconds.
	Client *http.Client
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids of tokens. Default: UUID version 4.
	NewID func() uuid.UUID
	// Log receives errors that have no caller. Default slog.Default().
	Log *slog.Logger
}

const (
	// longest is the longest validity of an assertion or a token.
	longest = 5 * time.Minute
	// skew is the largest accepted difference between two clocks.
	skew      = 30 * time.Second
	audience  = "healthlab-fhir"
	keyTimes  = 5 * time.Minute  // how long a key set is used before it is read again
	keyKept   = time.Hour        // how long a key set is used if its URL does not answer
	keyPause  = 10 * time.Second // shortest time between two attempts to read a key set
	keyLimit  = 1 << 20
	formLimit = 64 << 10
)

// algorithms lists the accepted signature algorithms of assertions.
var algorithms = []jwa.SignatureAlgorithm{jwa.RS384(), jwa.ES384()}

// Server issues tokens and checks them. It is safe for concurrent use.
type Server struct {
	Config

	mu   sync.Mutex
	sets map[string]*keySet
	used map[string]time.Time
}

// keySet caches the key set at a URL. Its lock is held during a read, so that concurrent requests cause one read.
type keySet struct {
	mu    sync.Mutex
	keys  jwk.Set   // nil if not read yet
	at    time.Time // time of the last successful read
	tried time.Time // time of the last attempt to read
}

// New returns a Server. It returns Invalid with the names of the missing fields of c.
func New(c Config) (*Server, error) {
	var missing []string
	for name, is := range map[string]bool{
		"TokenURL": c.TokenURL != "", "Clients": c.Clients != nil,
		"Secrets": len(c.Secrets) > 0 && !slices.ContainsFunc(c.Secrets, func(b []byte) bool { return len(b) < 32 }),
	} {
		if !is {
			missing = append(missing, "Config."+name)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return nil, fmt.Errorf("%w: smart: %s: must be set; secrets must have at least 32 bytes", healthlab.Invalid, strings.Join(missing, ", "))
	}
	s := &Server{Config: c, sets: map[string]*keySet{}, used: map[string]time.Time{}}
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.NewID == nil {
		s.NewID = uuid.New
	}
	if s.Life <= 0 || s.Life > longest {
		s.Life = longest
	}
	if s.Client == nil {
		s.Client = &http.Client{Timeout: 10 * time.Second}
	}
	if s.Log == nil {
		s.Log = slog.Default()
	}
	if s.Use == nil {
		s.Use = s.useOnce
	}
	return s, nil
}

// useOnce is the default of Config.Use. It reports whether this process sees the id of a client's assertion for the
// first time.
func (s *Server) useOnce(_ context.Context, client, id string, until time.Time) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	for key, end := range s.used {
		if end.Before(now) {
			delete(s.used, key)
		}
	}
	key := client + "\x00" + id
	if _, ok := s.used[key]; ok {
		return false, nil
	}
	s.used[key] = until
	return true, nil
}

// refusal is an error answer in the form that OAuth prescribes.
type refusal struct{ code, text string }

func (r *refusal) Error() string { return r.code + ": " + r.text }

// ServeHTTP answers the token endpoint: POST of a form with grant_type, scope, client_assertion_type and
// client_assertion.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		answer(w, http.StatusMethodNotAllowed, map[string]any{"error": "invalid_request", "error_description": "the method must be POST"})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, formLimit)
	token, scopes, err := s.exchange(r)
	var no *refusal
	switch {
	case errors.As(err, &no):
		status := http.StatusBadRequest
		if no.code == "invalid_client" {
			status = http.StatusUnauthorized
		}
		answer(w, status, map[string]any{"error": no.code, "error_description": no.text})
	case err != nil:
		s.Log.Error("token not given", "error", err.Error())
		answer(w, http.StatusServiceUnavailable, map[string]any{"error": "temporarily_unavailable", "error_description": "try again"})
	default:
		answer(w, http.StatusOK, map[string]any{"access_token": token, "token_type": "bearer", "expires_in": int(s.Life.Seconds()), "scope": strings.Join(scopes, " ")})
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// exchange issues a token for the assertion in a request.
func (s *Server) exchange(r *http.Request) (token string, scopes []string, err error) {
	if err := r.ParseForm(); err != nil {
		return "", nil, &refusal{"invalid_request", "the body must be a well-formed form (application/x-www-form-urlencoded)"}
	}
	one := func(name string) string {
		if list := r.PostForm[name]; len(list) == 1 {
			return list[0]
		}
		return ""
	}
	switch {
	case one("grant_type") != "client_credentials":
		return "", nil, &refusal{"unsupported_grant_type", "grant_type must be client_credentials"}
	case one("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer":
		return "", nil, &refusal{"invalid_request", "client_assertion_type must be urn:ietf:params:oauth:client-assertion-type:jwt-bearer"}
	}
	client, err := s.client(r.Context(), one("client_assertion"))
	if err != nil {
		return "", nil, err
	}
	scopes = granted(strings.Fields(one("scope")), client.Scopes)
	if len(scopes) == 0 {
		return "", nil, &refusal{"invalid_scope", "scope must be some of system/*.read, system/*.rs and those of one type, that the client has"}
	}
	now := s.Now()
	t, err := jwt.NewBuilder().Issuer(s.TokenURL).Audience([]string{audience}).Subject(client.ID).JwtID(s.NewID().String()).
		IssuedAt(now).Expiration(now.Add(s.Life)).Claim("scope", strings.Join(scopes, " ")).Build()
	if err != nil {
		return "", nil, fmt.Errorf("make token: %w", err)
	}
	signed, err := jwt.Sign(t, jwt.WithKey(jwa.HS256(), s.Secrets[0]))
	if err != nil {
		return "", nil, fmt.Errorf("sign token: %w", err)
	}
	return string(signed), scopes, nil
}

// client checks an assertion, and returns the client that signed it.
func (s *Server) client(ctx context.Context, assertion string) (Client, error) {
	no := &refusal{"invalid_client", "client_assertion must be a JWT that is signed with a key of the client, for this address, and used once within 5 minutes"}
	unverified, err := jwt.Parse([]byte(assertion), jwt.WithVerify(false), jwt.WithValidate(false))
	if err != nil {
		return Client{}, no
	}
	id, _ := unverified.Issuer()
	client, err := s.Clients(ctx, id)
	if errors.Is(err, healthlab.NotFound) || err == nil && (id == "" || client.ID != id) {
		return Client{}, no
	}
	if err != nil {
		return Client{}, fmt.Errorf("find client: %w", err)
	}
	message, err := jws.Parse([]byte(assertion))
	if err != nil || len(message.Signatures()) != 1 {
		return Client{}, no
	}
	head := message.Signatures()[0].ProtectedHeaders()
	alg, _ := head.Algorithm()
	kid, _ := head.KeyID()
	if !slices.Contains(algorithms, alg) || kid == "" {
		return Client{}, no
	}
	if from, ok := head.JWKSetURL(); ok && from != client.KeySetURL {
		return Client{}, no
	}
	key, err := s.key(ctx, &client, kid)
	if err != nil {
		return Client{}, err
	}
	if key == nil {
		return Client{}, no
	}
	t, err := jwt.Parse([]byte(assertion), jwt.WithKey(alg, key), jwt.WithIssuer(id), jwt.WithSubject(id), jwt.WithAudience(s.TokenURL),
		jwt.WithRequiredClaim(jwt.ExpirationKey), jwt.WithRequiredClaim(jwt.JwtIDKey), jwt.WithClock(jwt.ClockFunc(s.Now)), jwt.WithAcceptableSkew(skew))
	if err != nil {
		return Client{}, no
	}
	end, _ := t.Expiration()
	if end.After(s.Now().Add(longest + skew)) {
		return Client{}, no
	}
	number, _ := t.JwtID()
	if number == "" {
		return Client{}, no
	}
	fresh, err := s.Use(ctx, id, number, end.Add(skew))
	if err != nil {
		return Client{}, fmt.Errorf("note assertion: %w", err)
	}
	if !fresh {
		return Client{}, no
	}
	return client, nil
}

// key returns a client's public key with a key id; nil if there is none. If a cached key set lacks the key, the set is
// read again from its URL.
func (s *Server) key(ctx context.Context, c *Client, kid string) (jwk.Key, error) {
	if c.KeySetURL == "" {
		keys, err := jwk.Parse(c.KeySet)
		if err != nil {
			return nil, fmt.Errorf("%w: Client.KeySet: must be a JWK set", healthlab.Unavailable)
		}
		return public(keys, kid), nil
	}
	s.mu.Lock()
	held := s.sets[c.KeySetURL]
	if held == nil {
		held = &keySet{}
		s.sets[c.KeySetURL] = held
	}
	s.mu.Unlock()
	held.mu.Lock()
	defer held.mu.Unlock()
	age := s.Now().Sub(held.at)
	if held.keys != nil && age < keyTimes {
		if key := public(held.keys, kid); key != nil {
			return key, nil
		}
	}
	if s.Now().Sub(held.tried) >= keyPause {
		held.tried = s.Now()
		keys, err := jwk.Fetch(context.WithoutCancel(ctx), c.KeySetURL, jwk.WithHTTPClient(limited{s.Client}))
		if err == nil {
			held.keys, held.at, age = keys, s.Now(), 0
		}
	}
	if held.keys == nil || age >= keyKept {
		return nil, fmt.Errorf("%w: Client.KeySetURL: the server at this URL has sent no JWK set", healthlab.Unavailable)
	}
	return public(held.keys, kid), nil
}

// public returns the public part of the key with a key id; nil if there is none.
func public(keys jwk.Set, kid string) jwk.Key {
	key, ok := keys.LookupKeyID(kid)
	if !ok || key.KeyType() != jwa.RSA() && key.KeyType() != jwa.EC() {
		return nil
	}
	if use, said := key.KeyUsage(); said && use != string(jwk.ForSignature) {
		return nil
	}
	out, err := key.PublicKey()
	if err != nil {
		return nil
	}
	return out
}

// limited is an HTTP client that limits the size of the key sets that it reads.
type limited struct{ client *http.Client }

func (l limited) Do(r *http.Request) (*http.Response, error) {
	w, err := l.client.Do(r) //nolint:gosec // the host chooses the address
	if err == nil {
		w.Body = http.MaxBytesReader(nil, w.Body, keyLimit)
	}
	return w, err //nolint:wrapcheck // the caller adds context
}

// Bearer returns the bearer token of a request; empty if there is none.
func Bearer(r *http.Request) string {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// Grant checks a token. It returns [healthlab.Unauthenticated] if the token was not issued by this server or has
// expired, or if its client was removed. Scopes that the client no longer has are left out.
func (s *Server) Grant(ctx context.Context, token string) (*Grant, error) {
	for _, secret := range s.Secrets {
		t, err := jwt.Parse([]byte(token), jwt.WithKey(jwa.HS256(), secret), jwt.WithIssuer(s.TokenURL), jwt.WithAudience(audience),
			jwt.WithRequiredClaim(jwt.ExpirationKey), jwt.WithClock(jwt.ClockFunc(s.Now)))
		if err != nil {
			continue
		}
		id, _ := t.Subject()
		client, err := s.Clients(ctx, id)
		if errors.Is(err, healthlab.NotFound) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("find client: %w", err)
		}
		var text string
		if err := t.Get("scope", &text); err != nil {
			break
		}
		return &Grant{Client: client, Scopes: granted(strings.Fields(text), client.Scopes)}, nil
	}
	return nil, fmt.Errorf("%w: the token was not issued by this server, has expired, or its client was removed", healthlab.Unauthenticated)
}

// Configuration returns the document that clients read at .well-known/smart-configuration.
func (s *Server) Configuration() map[string]any {
	return map[string]any{
		"token_endpoint": s.TokenURL, "grant_types_supported": []string{"client_credentials"},
		"token_endpoint_auth_methods_supported":            []string{"private_key_jwt"},
		"token_endpoint_auth_signing_alg_values_supported": []string{"RS384", "ES384"},
		"scopes_supported":                                 []string{"system/*.read", "system/*.rs"},
		"capabilities":                                     []string{"client-confidential-asymmetric", "permission-v1", "permission-v2"},
	}
}
