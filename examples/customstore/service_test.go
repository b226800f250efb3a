package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/examples/customstore/boltstore"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/webhook"
)

// server is the whole service over files of bbolt, with its background work.
type server struct {
	*service.Service
	rows   *boltstore.Store
	events chan string // the types of the events that were delivered
	stop   func()
}

// serve starts the service over the files of a folder.
func serve(t *testing.T, dir string) *server {
	t.Helper()
	open := func(name string, tables []store.Definition) *boltstore.Store {
		s, err := boltstore.Open(filepath.Join(dir, name), tables, nil)
		require.NoError(t, err)
		return s
	}
	rows, keyRows := open("rows.db", stores.Tables()), open("keys.db", personkey.Tables())
	secret := bytes.Repeat([]byte{7}, 32)
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": secret})
	require.NoError(t, err)
	keys := personkey.New(personkey.NewStore(keyRows), sealer, nil)
	providers, err := healthdata.NewProviders([]healthdata.Provider{{
		Slug: "manual", Name: "Manual", Category: "app", Class: "manual", Resources: []healthdata.ProviderResource{{Resource: "glucose"}},
	}})
	require.NoError(t, err)
	catalogue, err := sandbox.Catalogue()
	require.NoError(t, err)
	s := &server{rows: rows, events: make(chan string, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	s.Service, err = service.New(ctx, service.Config{
		Environment: healthlab.Sandbox, URL: "http://localhost:8080", Secret: secret, Providers: providers,
		Stores: stores.New(rows, &stores.Options{Keys: keys, Events: stores.Outbox}), Files: memory.New(&memory.Options{Keys: keys}).Blobs(),
		Catalogue: catalogue, Laboratory: sandbox.NewLab(nil), Notifier: s,
	})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	s.stop = func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, rows.Close())
		require.NoError(t, keyRows.Close())
	}
	return s
}

// Notify implements [webhook.Notifier].
func (s *server) Notify(_ context.Context, n webhook.Notification) webhook.Result {
	var event struct {
		Type string `json:"event_type"`
	}
	_ = json.Unmarshal(n.Body, &event) // an event without a type is not one that the test expects
	s.events <- event.Type
	return webhook.Result{Status: http.StatusNoContent}
}

// call returns the answer of the service to a request, which must have a status.
func (s *server) call(t *testing.T, key, method, path, body string, status int) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("x-service-api-key", key)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	require.Equal(t, status, w.Code, w.Body.String())
	return w.Body.String()
}

func field(t *testing.T, answer string, path ...string) string {
	t.Helper()
	var doc map[string]any
	require.NoError(t, json.Unmarshal([]byte(answer), &doc))
	for _, name := range path[:len(path)-1] {
		doc, _ = doc[name].(map[string]any)
	}
	text, ok := doc[path[len(path)-1]].(string)
	require.True(t, ok, path)
	return text
}

// The HTTP service runs on the files: users, samples, events, orders and erasures. What it answered
// before a restart, it answers after it.
func TestService_answersTheSameAfterARestart(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir)
	org := uuid.New()
	team, err := s.Organisations.CreateTeam(t.Context(), org, organisation.NewTeam{Name: "Clinic"})
	require.NoError(t, err)
	_, key, err := s.Organisations.CreateKey(t.Context(), org, team.ID, organisation.NewKey{Label: "first"})
	require.NoError(t, err)
	_, err = s.Webhooks.Create(t.Context(), team.ID, webhook.NewEndpoint{URL: "https://events.example.com/in"})
	require.NoError(t, err)

	user := field(t, s.call(t, key, "POST", "/v2/user/", `{"client_user_id":"ann"}`, 200), "user_id")
	s.call(t, key, "POST", "/v2/link/provider/manual/manual", `{"user_id":"`+user+`"}`, 200)
	require.Equal(t, "provider.connection.created", <-s.events)
	s.call(t, key, "POST", "/v2/timeseries/"+user+"/glucose",
		`{"provider":"manual","source":{"type":"fingerprick"},"data":[{"timestamp":"2026-03-01T07:00:00Z","unit":"mg/dL","value":95}]}`, 200)
	require.Equal(t, "daily.data.glucose.created", <-s.events)
	order := "/v3/order/" + field(t, s.call(t, key, "POST", "/v3/order", `{"user_id":"`+user+`","order_set":{"lab_test_ids":["5ab0c1d2-0000-4000-8000-000000000001"]},
		"patient_details":{"first_name":"Kim","last_name":"Person","dob":"1984-01-02","gender":"female","phone_number":"+12175550100","email":"kim@example.org"},
		"patient_address":{"receiver_name":"Kim Person","phone_number":"+12175550100","first_line":"1 Example Street","city":"Springfield","state":"IL","zip":"62701","country":"US"}}`, 200),
		"order", "id")
	require.Equal(t, "labtest.order.created", <-s.events)
	paths := []string{"/v2/user/" + user, "/v2/timeseries/" + user + "/glucose/grouped?start_date=2026-03-01&end_date=2026-03-02"}
	var before []string
	for _, path := range paths {
		before = append(before, s.call(t, key, "GET", path, "", 200))
	}
	require.Contains(t, before[1], "5.27")
	s.stop()

	s = serve(t, dir)
	defer func() { s.stop() }()
	for i, path := range paths {
		require.JSONEq(t, before[i], s.call(t, key, "GET", path, "", 200))
	}
	require.Equal(t, user, field(t, s.call(t, key, "GET", order, "", 200), "user_id"))
	s.call(t, key, "DELETE", "/v2/user/"+user, "", 200)
	s.call(t, key, "GET", order, "", 404)
	id := healthlab.UserID{UUID: uuid.MustParse(user)}
	require.NoError(t, s.Health.Deletions().Erase(t.Context(), team.ID, id))
	left, err := s.rows.Read(t.Context(), store.Query{Key: store.Key{User: id}, By: store.ByUser})
	require.NoError(t, err)
	for _, r := range left[0] {
		require.Equal(t, "webhook_key", r.Table, "the counts of events go on")
	}
}
