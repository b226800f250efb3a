package push_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fhir/push"
	"github.com/healthlab-dev/healthlab/adapters/fhir/smart"
	"github.com/healthlab-dev/healthlab/aggregate/continuous/ehr"
)

// A pipeline signs in by SMART backend services, with a key of its own or one that the team gives, finds the token
// endpoint, and replaces a token that is not accepted.
func TestToken_isFetchedBySMARTBackendServicesAndReplaced(t *testing.T) {
	own, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(own)
	require.NoError(t, err)
	given := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	for name, key := range map[string]string{"ES384": "", "RS384": given} {
		t.Run(name, func(t *testing.T) {
			c := newClinic(t)
			mux := http.NewServeMux()
			outer := httptest.NewServer(mux)
			t.Cleanup(outer.Close)
			p := c.pipeline(func(n *ehr.NewPipeline) {
				n.BaseURL, n.ClientID, n.Scope, n.PrivateKey = outer.URL+"/fhir", "healthlab", "system/*.read", key
			})
			set, err := json.Marshal(object{"keys": []any{json.RawMessage(p.PublicKey)}})
			require.NoError(t, err)
			secret := strings.Repeat("s", 32)
			revoked := false
			tokens, err := smart.New(smart.Config{
				TokenURL: outer.URL + "/token", Secrets: [][]byte{[]byte(secret)}, Now: c.clock.now,
				Clients: func(_ context.Context, id string) (smart.Client, error) {
					if id != "healthlab" {
						return smart.Client{}, healthlab.NotFound
					}
					return smart.Client{ID: id, Key: uuid.New(), KeySet: set, Scopes: []string{"system/*.read"}}, nil
				},
			})
			require.NoError(t, err)
			exchanges := 0
			mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
				exchanges++
				revoked = false
				tokens.ServeHTTP(w, r)
			})
			mux.HandleFunc("GET /fhir/.well-known/smart-configuration", func(w http.ResponseWriter, _ *http.Request) {
				_ = json.NewEncoder(w).Encode(tokens.Configuration())
			})
			mux.HandleFunc("POST /fhir", func(w http.ResponseWriter, r *http.Request) {
				if _, err := tokens.Grant(r.Context(), smart.Bearer(r)); err != nil || revoked {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				c.server.ServeHTTP(w, r)
			})
			ann := c.person("ann")
			c.measure(ann, "weight", c.noon(1), 70)
			c.push()
			c.agree(ann)
			require.Equal(t, 1, exchanges)
			c.measure(ann, "weight", c.noon(2), 71)
			c.push()
			require.Equal(t, 1, exchanges, "a token is used until its end")
			revoked = true
			c.measure(ann, "weight", c.noon(3), 72)
			c.push()
			c.agree(ann)
			require.Equal(t, 2, exchanges)
		})
	}
}

// An assertion is not sent in clear because a server that is reached by https says so.
func TestTokenEndpoint_withoutHTTPSReceivesNoAssertion(t *testing.T) {
	asked := false
	clear := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(clear.Close)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(object{"token_endpoint": clear.URL})
	}))
	t.Cleanup(server.Close)
	c := newClinic(t, func(o *push.Options) { o.Client = server.Client() })
	p := c.pipeline(func(n *ehr.NewPipeline) { n.BaseURL, n.ClientID = server.URL, "healthlab" })
	c.measure(c.person("ann"), "weight", c.noon(1), 70)
	c.push()
	require.False(t, asked)
	st, err := c.pipelines.State(t.Context(), c.team, p.ID)
	require.NoError(t, err)
	require.Equal(t, "token_endpoint of smart-configuration: must be an https URL, because that of the server is", st.LastError)
	require.Equal(t, 1, st.Waiting)
}

// A static token is sent, and is stored sealed.
func TestToken_staticOneIsSentAndStoredEncrypted(t *testing.T) {
	c := newClinic(t)
	c.server.change(func(s *ehrServer) { s.token = "token-marker" })
	p := c.pipeline(func(n *ehr.NewPipeline) { n.Token = "token-marker" })
	ann := c.person("ann")
	c.measure(ann, "weight", c.noon(1), 70)
	c.push()
	c.agree(ann)
	for _, r := range c.store.Kept() {
		require.NotContains(t, string(r.Doc), "token-marker")
	}
	// A server that refuses the token holds the queue.
	c.server.change(func(s *ehrServer) { s.token = "another" })
	c.measure(ann, "weight", c.noon(2), 70)
	c.push()
	require.Empty(t, c.letters(p))
	fresh := "another"
	_, err := c.pipelines.Update(t.Context(), c.team, p.ID, ehr.Patch{Token: &fresh})
	require.NoError(t, err)
	c.settle(p)
	c.agree(ann)
	require.NotContains(t, c.logs.String(), "token-marker")
}
