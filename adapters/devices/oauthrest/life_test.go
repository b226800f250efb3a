package oauthrest_test

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/oauthrest"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// life is a person's connection with everything behind it.
type life struct {
	t      *testing.T
	f      *fjord
	team   healthlab.TeamID
	user   healthlab.UserID
	health *healthdata.Service
	links  *linking.Service
	pulls  *pull.Service
	store  *memory.Store
	mu     sync.Mutex
	at     time.Time
}

func (l *life) now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

func newLife(t *testing.T) *life {
	l := &life{t: t, f: newFjord(t), team: healthlab.TeamID{UUID: uuid.New()}, at: noon}
	l.f.now = l.now
	var record healthdata.Provider
	ring := l.f.connector(func(c *oauthrest.Config) {
		// One resource, without history: what a test looks at.
		c.Provider.Resources = c.Provider.Resources[:1]
		c.Provider.Scopes = nil
		c.Provider.Backfill = healthdata.Backfill{Mode: "none"}
		c.Resources, c.OAuth.MinimumScopes = c.Resources[:1], nil
		record = c.Provider
	})
	connectors := map[string]linking.ProviderConnector{record.Slug: ring.Flows()}
	l.store = memory.New(&memory.Options{Now: l.now})
	providers, err := healthdata.NewProviders([]healthdata.Provider{record})
	require.NoError(t, err)
	l.health, err = healthdata.New(l.store.Users(), l.store.Data(), providers, &healthdata.Options{Now: l.now, Environment: healthlab.Production})
	require.NoError(t, err)
	seal, err := healthlab.NewAESSealer("k", map[string][]byte{"k": make([]byte, 32)})
	require.NoError(t, err)
	l.links, err = linking.New(l.store.Linking(), l.health, connectors, seal, &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{bytes.Repeat([]byte{2}, 32)}, Now: l.now})
	require.NoError(t, err)
	refresher, err := linking.NewCredentialRefresher(l.store.Credentials(), l.health, connectors, seal, &linking.CredentialRefresherOptions{Now: l.now})
	require.NoError(t, err)
	l.pulls, err = pull.New(l.store.Pulls(), l.health, refresher, connectors, &pull.Options{Now: l.now})
	require.NoError(t, err)
	u, err := l.health.CreateUser(t.Context(), l.team, healthdata.NewUser{ClientUserID: "patient-1"})
	require.NoError(t, err)
	l.user = u.ID
	return l
}

func (l *life) link() linking.Result {
	l.t.Helper()
	issued, err := l.links.CreateToken(l.t.Context(), l.team, linking.NewToken{User: l.user})
	require.NoError(l.t, err)
	away, err := l.links.Authorize(l.t.Context(), issued.Token, linking.OAuthSignIn{Provider: "fjord_ring"})
	require.NoError(l.t, err)
	r, err := l.links.Callback(l.t.Context(), linking.Callback{Provider: "fjord_ring", State: issued.Token, Code: l.f.approve(away.URL)})
	require.NoError(l.t, err)
	return r
}

// pass lets time go by, and does what is due.
func (l *life) pass(d time.Duration) {
	l.t.Helper()
	l.mu.Lock()
	l.at = l.at.Add(d)
	l.mu.Unlock()
	for range 100 {
		n, err := l.pulls.Step(l.t.Context())
		require.NoError(l.t, err)
		if n == 0 {
			return
		}
	}
	l.t.Fatal("it never ends")
}

func (l *life) connection() *healthdata.Connection {
	l.t.Helper()
	u, err := l.health.User(l.t.Context(), l.team, l.user)
	require.NoError(l.t, err)
	return u.Connection("fjord_ring")
}

// beating makes the server answer requests with the current access token, and refuse others.
func (f *fjord) beating() {
	f.data = func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer "+f.access {
			refuse(w, http.StatusUnauthorized, "invalid_token")
			return
		}
		fmt.Fprintf(w, `{"user":90071992547409931,"samples":[{"time":%q,"bpm":%d,"device":"ring"},{"time":"?","bpm":1,"device":"ring"}]}`,
			noon.Add(time.Duration(len(f.requests))*time.Second).Format(time.RFC3339), 50+len(f.requests))
	}
}

func (l *life) beats() int {
	l.t.Helper()
	list, err := l.health.AllSamples(l.t.Context(), l.team, l.user, healthdata.SampleQuery{
		Resource: "heartrate", From: noon.AddDate(0, 0, -1), To: noon.AddDate(1, 0, 0),
	})
	require.NoError(l.t, err)
	return len(list)
}

// The life of a connection: sign-in, data, rotation of tokens, an outage that ends nothing, a
// revocation by the provider that ends the connection, linking again, and a disconnect that
// revokes the grant.
func TestConnection_survivesRotationAndOutageUntilRevoked(t *testing.T) {
	l := newLife(t)
	l.f.beating()
	require.Equal(t, linking.ResultSuccess, l.link().State)
	l.pass(time.Second)
	require.Equal(t, 1, l.beats())
	refused, err := l.store.Pulls().Quarantined(t.Context(), l.team, l.user, 10)
	require.NoError(t, err)
	require.Len(t, refused, 1, "what nobody could read is told, once")
	require.Equal(t, "timestamp", refused[0].Reasons[0].Field)

	l.pass(3 * time.Hour) // the token's time is over
	require.Equal(t, "access-2", l.f.access)
	require.Equal(t, 2, l.beats())

	l.f.access = "another" // withdrawn before its time
	l.pass(20 * time.Minute)
	require.Equal(t, "access-3", l.f.access)
	require.Equal(t, 3, l.beats())

	l.f.tokens = func(w http.ResponseWriter, _ *http.Request) { refuse(w, 503, "server_error") }
	l.pass(3 * time.Hour)
	require.Equal(t, healthdata.Connected, l.connection().Status, "an outage ends nothing")
	l.f.tokens = nil
	l.pass(time.Hour)
	require.Equal(t, 4, l.beats())

	l.f.refresh = "gone"
	l.pass(3 * time.Hour)
	require.Equal(t, healthdata.ConnectionError, l.connection().Status)
	before := len(l.f.requests)
	l.pass(24 * time.Hour)
	require.Len(t, l.f.requests, before, "nobody asks any more")

	require.Equal(t, linking.ResultSuccess, l.link().State)
	l.pass(time.Second)
	require.Equal(t, healthdata.Connected, l.connection().Status)
	require.Equal(t, 5, l.beats())
	last := l.f.refresh
	require.NoError(t, l.links.Disconnect(t.Context(), l.team, l.user, "fjord_ring"))
	require.Equal(t, []string{last}, l.f.revoked)
}

// A failed sign-in has an error for the person, and stores nothing.
func TestSignIn_failedStoresNoConnection(t *testing.T) {
	l := newLife(t)
	for _, tt := range badTokens {
		if tt.kind == nil || tt.name == "too late" {
			continue
		}
		l.f.tokens = tt.say
		require.Equal(t, linking.ProviderAPIError, l.link().Error, tt.name)
	}
	l.f.tokens = func(w http.ResponseWriter, _ *http.Request) { refuse(w, 400, "invalid_grant") }
	require.Equal(t, linking.ProviderCredentialError, l.link().Error)
	require.Nil(t, l.connection())
}
