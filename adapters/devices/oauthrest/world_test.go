package oauthrest_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/devices/oauthrest"
	"github.com/healthlab-dev/healthlab/webhook"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

const exampleFile = "../../../examples/server/connectors/fjord_ring.json"

// fjord is the provider: it keeps to the protocol strictly, and answers with what a test
// wants.
type fjord struct {
	t      testing.TB
	server *httptest.Server

	mu       sync.Mutex
	id       string // the client that it knows
	secret   string
	codes    map[string]url.Values // what a code was given for
	access   string                // the only one that works
	refresh  string
	scope    string // what an answer says was granted; - leaves it out
	issued   int
	revoked  []string
	requests []*http.Request
	data     http.HandlerFunc // answers for data
	now      func() time.Time
	tokens   http.HandlerFunc // answers in place of the token URL
}

func newFjord(t testing.TB) *fjord {
	f := &fjord{t: t, id: "our id", secret: "our secret", codes: map[string]url.Values{}, scope: "-", now: func() time.Time { return noon }}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /oauth/token", f.token)
	mux.HandleFunc("POST /oauth/revoke", f.revoke)
	mux.HandleFunc("GET /me", f.me)
	mux.HandleFunc("/v1/", f.api)
	f.server = httptest.NewServer(mux)
	t.Cleanup(f.server.Close)
	return f
}

func guard() *webhook.Guard {
	return &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
}

func (f *fjord) document() string {
	doc, err := os.ReadFile(exampleFile)
	require.NoError(f.t, err)
	return strings.NewReplacer("https://account.fjord.example", f.server.URL, "https://api.fjord.example", f.server.URL).Replace(string(doc))
}

func (f *fjord) connector(edit func(*oauthrest.Config)) *oauthrest.Connector {
	f.t.Helper()
	config, err := oauthrest.ReadConfig(strings.NewReader(f.document()))
	require.NoError(f.t, err)
	client := oauthrest.Client{ID: "our id", Secret: "our secret"}
	if edit != nil {
		edit(&config)
		if config.OAuth.ClientAuth == "none" {
			client.Secret = ""
		}
	}
	c, err := oauthrest.New(config, client, &oauthrest.Options{Guard: guard(), Timeout: time.Second, Now: f.now})
	require.NoError(f.t, err)
	return c
}

// approve is the person at the sign-in page who says yes.
func (f *fjord) approve(page string) (code string) {
	u, err := url.Parse(page)
	require.NoError(f.t, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	code = fmt.Sprintf("code %d", len(f.codes))
	f.codes[code] = u.Query()
	return code
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":%q,"error_description":"MARK"}`, code)
}

func (f *fjord) token(w http.ResponseWriter, r *http.Request) {
	if f.tokens != nil {
		f.tokens(w, r)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.known(r) {
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		asked, ok := f.codes[r.PostFormValue("code")]
		delete(f.codes, r.PostFormValue("code"))
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		challenge := base64.RawURLEncoding.EncodeToString(sum[:])
		if !ok || asked.Get("redirect_uri") != r.PostFormValue("redirect_uri") || asked.Get("code_challenge") != "" && asked.Get("code_challenge") != challenge {
			refuse(w, http.StatusBadRequest, "invalid_grant")
			return
		}
	case "refresh_token":
		if r.PostFormValue("refresh_token") != f.refresh {
			refuse(w, http.StatusBadRequest, "invalid_grant")
			return
		}
	default:
		refuse(w, http.StatusBadRequest, "unsupported_grant_type")
		return
	}
	f.issued++
	f.access, f.refresh = fmt.Sprintf("access-%d", f.issued), fmt.Sprintf("refresh-%d", f.issued)
	answer := map[string]any{
		"access_token": f.access, "refresh_token": f.refresh, "token_type": "bearer", "expires_in": 7200,
		"user": map[string]any{"id": json.Number("90071992547409931")}, // beyond what a float holds
	}
	if f.scope != "-" {
		answer["scope"] = f.scope
	}
	w.Header().Set("Content-Type", "application/json")
	require.NoError(f.t, json.NewEncoder(w).Encode(answer))
}

// known reports whether a request says who we are, in any of the ways.
func (f *fjord) known(r *http.Request) bool {
	if id, secret, ok := r.BasicAuth(); ok {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
		return id == f.id && secret == f.secret && r.PostFormValue("client_secret") == ""
	}
	return r.PostFormValue("client_id") == f.id && (r.PostFormValue("client_secret") == f.secret || r.PostFormValue("code_verifier") != "")
}

func (f *fjord) revoke(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	token := r.PostFormValue("token")
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		token = bearer
	} else if !f.known(r) {
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	f.revoked = append(f.revoked, token)
}

func (f *fjord) me(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+f.access {
		refuse(w, http.StatusUnauthorized, "invalid_token")
		return
	}
	fmt.Fprint(w, `{"account":{"name":"ann-7"}}`)
}

func (f *fjord) api(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.requests = append(f.requests, r)
	f.mu.Unlock()
	f.data(w, r)
}

// answers makes the provider answer every request for data alike.
func (f *fjord) answers(status int, body string, header ...string) {
	f.data = func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}
