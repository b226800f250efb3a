package main

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/store"
)

// A member and the member's user are made together or not at all, and the service is ready
// beside the program's own pages.
func TestTransaction(t *testing.T) {
	database := pgtest.Empty(t)
	ctx, stop := context.WithCancel(t.Context())
	at, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- run(ctx, database, "127.0.0.1:0", func(url string) { at <- url }) }()
	var base string
	select {
	case base = <-at:
	case err := <-ended:
		require.NoError(t, err)
	}
	add := func(name string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/members", strings.NewReader(url.Values{"name": {name}}.Encode()))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, strings.TrimSpace(string(body))
	}
	status, _ := add("Kim")
	require.Equal(t, http.StatusOK, status)
	status, _ = add("") // the member's row is refused, so there is no user either
	require.Equal(t, http.StatusInternalServerError, status)

	pool := pgtest.Connect(t, database)
	engine, err := postgres.Open(t.Context(), pool, stores.Tables(), nil)
	require.NoError(t, err)
	users := store.LiveUsers(team)
	users.Bare = true // the documents are encrypted
	got, err := engine.Read(t.Context(), users)
	require.NoError(t, err)
	require.Len(t, got[0], 1)
	var members int
	require.NoError(t, pool.QueryRow(t.Context(), "select count(*) from member").Scan(&members))
	require.Equal(t, 1, members)
	pool.Close()

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/readyz", http.NoBody)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	stop()
	require.NoError(t, <-ended)
}
