package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// BenchmarkLinkToken asks for link tokens, POST /v2/link/token, over a PostgreSQL that
// waits for the disk at every commit, and after each puts one row as large into a table of
// nothing else, by one plain insert. The slowest hundredth of each is compared: aim 3.
func BenchmarkLinkToken(b *testing.B) {
	server, err := pgtest.Start(b.Context(), pgtest.Durable)
	if err != nil {
		b.Skip("no PostgreSQL")
	}
	b.Cleanup(server.Remove)
	pool := pgtest.Connect(b, server.URL("postgres"))
	_, err = pool.Exec(b.Context(), `create table bare (id uuid primary key, body bytea not null)`)
	require.NoError(b, err)
	store := rowsOf(b, pool)
	providers, err := readProviders("")
	require.NoError(b, err)
	health, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	require.NoError(b, err)
	seal, err := master(bytes.Repeat([]byte{2}, masterBytes)).sealer("", true)
	require.NoError(b, err)
	links, err := linking.New(store.Linking(), health, nil, seal, &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{bytes.Repeat([]byte{1}, 32)}})
	require.NoError(b, err)
	team := healthlab.TeamID{UUID: uuid.New()}
	user, err := health.CreateUser(b.Context(), team, healthdata.NewUser{ClientUserID: "ann"})
	require.NoError(b, err)
	handler := httpapi.Handler(httpapi.Config{
		Authenticate: func(*http.Request) (httpapi.Caller, error) {
			return httpapi.Caller{Team: team}, nil
		},
		Parts: (&httpapi.Services{Health: health, Linking: links}).Parts(),
	})
	body := fmt.Sprintf(`{"user_id":%q,"redirect_url":"https://app.example/done"}`, user.ID)
	token := func() {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/v2/link/token", bytes.NewReader([]byte(body)))
		r.Header.Set("content-type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Equal(b, http.StatusOK, w.Code, w.Body.String())
	}
	row := make([]byte, 400)
	_, _ = rand.Read(row)
	insert := func() {
		_, err := pool.Exec(b.Context(), `insert into bare values ($1, $2)`, uuid.Must(uuid.NewV7()), row)
		require.NoError(b, err)
	}
	for range 200 { // caches of both
		token()
		insert()
	}
	var tokens, inserts []time.Duration
	took := func(do func()) time.Duration {
		began := time.Now()
		do()
		return time.Since(began)
	}
	for b.Loop() { // 1,000 of each, by turns
		for range 1000 {
			tokens, inserts = append(tokens, took(token)), append(inserts, took(insert))
		}
	}
	p := func(list []time.Duration, share float64) float64 {
		slices.Sort(list)
		return float64(list[int(share*float64(len(list)-1))].Microseconds()) / 1000
	}
	b.ReportMetric(p(tokens, 0.99), "token-p99-ms")
	b.ReportMetric(p(inserts, 0.99), "insert-p99-ms")
	b.ReportMetric(p(tokens, 0.99)/p(inserts, 0.99), "p99-ratio")
	b.ReportMetric(p(tokens, 0.5)/p(inserts, 0.5), "p50-ratio")
}
