package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/webhook"
)

func config(t testing.TB) service.Config {
	t.Helper()
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", Category: "app", Class: "manual"}})
	require.NoError(t, err)
	book, err := sandbox.Catalogue()
	require.NoError(t, err)
	store := memory.New(nil)
	return service.Config{
		AllowPlaintext: true,
		Environment:    healthlab.Sandbox, URL: "http://localhost:8080", Stores: store.Stores, Files: store.Blobs(),
		Secret: bytes.Repeat([]byte{7}, 32), Providers: providers, Catalogue: book, Laboratory: sandbox.NewLab(nil),
	}
}

// New reports every missing or wrong field of the Config at once.
func TestNew_reportsEveryWrongConfigField(t *testing.T) {
	_, err := service.New(t.Context(), service.Config{})
	require.ErrorIs(t, err, healthlab.Invalid)
	for _, field := range []string{"Environment", "URL", "Store", "Files", "Secret", "Providers"} {
		require.ErrorContains(t, err, field)
	}
	for name, edit := range map[string]func(*service.Config){
		"another environment":     func(c *service.Config) { c.Environment = "staging" },
		"a URL with a slash":      func(c *service.Config) { c.URL += "/" },
		"a short secret":          func(c *service.Config) { c.Secret = c.Secret[:31] },
		"a lab without catalogue": func(c *service.Config) { c.Catalogue = nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t)
			edit(&c)
			_, err := service.New(t.Context(), c)
			require.ErrorIs(t, err, healthlab.Invalid)
		})
	}
}

// A service is ready while its background work runs, and no longer.
func TestReady_succeedsOnlyWhileBackgroundWorkRuns(t *testing.T) {
	var logged lines
	c := config(t)
	c.Log = slog.New(slog.NewTextHandler(&logged, nil))
	s, err := service.New(t.Context(), c)
	require.NoError(t, err)
	status := func(path string) int {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		return w.Code
	}
	require.ErrorContains(t, s.Ready(t.Context()), "Run")
	require.Equal(t, []int{200, 503}, []int{status("/healthz"), status("/readyz")})
	for range 3 {
		require.Equal(t, 401, status("/v2/user/"))
	}
	require.Equal(t, 1, strings.Count(logged.String(), "no background work runs"))

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	require.Eventually(t, func() bool { return s.Ready(t.Context()) == nil }, time.Minute, time.Millisecond)
	require.Equal(t, 200, status("/readyz"))
	stop()
	require.NoError(t, <-ended)
	require.Equal(t, 503, status("/readyz"))
}

// What background work does to a person's data is in the access log: an erasure before it begins.
func TestAccessLog_recordsAnErasureBeforeItBegins(t *testing.T) {
	s, err := service.New(t.Context(), config(t))
	require.NoError(t, err)
	team := healthlab.TeamID{UUID: uuid.New()}
	u, err := s.Health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "one"})
	require.NoError(t, err)
	require.NoError(t, s.Health.Deletions().Erase(t.Context(), team, u.ID))
	lines, err := s.Access.Lines(t.Context(), accesslog.Query{Team: team, Person: u.ID, N: 10})
	require.NoError(t, err)
	require.Len(t, lines, 1)
	require.Equal(t, []string{"job:erasure", "data", "erase_user"}, []string{lines[0].Actor, lines[0].Kind, lines[0].Operation})
}

// A store that does not answer makes the service not ready.
func TestReady_failsWhileTheStoreDoesNotAnswer(t *testing.T) {
	broken := errors.New("no connection")
	c := config(t)
	engine := &failing{Store: c.Stores.Engine()}
	c.Stores = stores.New(engine, &stores.Options{Events: stores.Outbox})
	s, err := service.New(t.Context(), c)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	require.Eventually(t, func() bool { return s.Ready(t.Context()) == nil }, time.Minute, time.Millisecond)
	engine.ping.Store(&broken)
	require.ErrorIs(t, s.Ready(t.Context()), broken)
	stop()
	require.NoError(t, <-ended)
	require.ErrorIs(t, s.Run(t.Context()), healthlab.Precondition, "it has run")
}

// failing is an engine whose Ping returns an error, once it is set.
type failing struct {
	store.Store
	ping atomic.Pointer[error]
}

func (f *failing) Ping(context.Context) error {
	if fault := f.ping.Load(); fault != nil {
		return *fault
	}
	return nil
}

// lines is a log that many may write to.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// The assembled parts work together: a team's key opens the API, the event of a new
// connection arrives at the team's endpoint, and the order of a deleted user is cancelled.
func TestService_assembledPartsServeAPIEventsAndOrders(t *testing.T) {
	c := config(t)
	events := make(chan string, 100)
	c.Notifier = notify(func(_ context.Context, n webhook.Notification) webhook.Result {
		var event struct {
			Type string `json:"event_type"`
		}
		_ = json.Unmarshal(n.Body, &event)
		events <- event.Type
		return webhook.Result{Status: http.StatusNoContent}
	})
	s, err := service.New(t.Context(), c)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})

	org := uuid.New()
	team, err := s.Organisations.CreateTeam(ctx, org, organisation.NewTeam{Name: "Clinic"})
	require.NoError(t, err)
	_, key, err := s.Organisations.CreateKey(ctx, org, team.ID, organisation.NewKey{Label: "first"})
	require.NoError(t, err)
	_, err = s.Webhooks.Create(ctx, team.ID, webhook.NewEndpoint{URL: "https://events.example.com/in"})
	require.NoError(t, err)

	ask := func(method, path, body string, status int) map[string]any {
		t.Helper()
		r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
		r.Header.Set("x-service-api-key", key)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		require.Equal(t, status, w.Code, w.Body.String())
		var out map[string]any
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &out))
		return out
	}
	user := ask("POST", "/v2/user/", `{"client_user_id":"ann"}`, 200)["user_id"].(string)
	ask("POST", "/v2/link/provider/manual/manual", `{"user_id":"`+user+`"}`, 200)
	require.Equal(t, "provider.connection.created", <-events)

	order := ask("POST", "/v3/order", `{"user_id":"`+user+`","order_set":{"lab_test_ids":["5ab0c1d2-0000-4000-8000-000000000001"]},
		"patient_details":{"first_name":"Kim","last_name":"Person","dob":"1984-01-02","gender":"female","phone_number":"+12175550100","email":"kim@example.org"},
		"patient_address":{"receiver_name":"Kim Person","phone_number":"+12175550100","first_line":"1 Example Street","city":"Springfield","state":"IL","zip":"62701","country":"US"}}`, 200)
	require.Equal(t, "labtest.order.created", <-events)
	ask("DELETE", "/v2/user/"+user, "", 200)
	id := order["order"].(map[string]any)["id"].(string)
	ask("GET", "/v3/order/"+id, "", 404)
}

// notify is a function as a notifier.
type notify func(context.Context, webhook.Notification) webhook.Result

func (f notify) Notify(ctx context.Context, n webhook.Notification) webhook.Result { return f(ctx, n) }

// Critical results escalate as the settings of a team say, by default as without settings.
func TestDefaultLadder_escalationStepsEqualTheDefaultTeamSettings(t *testing.T) {
	var ladder []critical.Step
	for _, step := range teamsettings.DefaultLadder() {
		ladder = append(ladder, critical.Step{After: time.Duration(step.AfterMinutes) * time.Minute, To: step.To})
	}
	require.Equal(t, critical.DefaultLadder(), ladder)
}
