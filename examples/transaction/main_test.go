package main

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/store"
)

// A member and the member's user are made together or not at all, and the service is ready
// beside the program's own pages.
func TestMember_isStoredTogetherWithItsUser(t *testing.T) {
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

// If healthlab refuses what it is asked to write, the program's row is not there either.
func TestMember_isNotStoredIfItsUserIsRefused(t *testing.T) {
	database := pgtest.Empty(t)
	pool := pgtest.Connect(t, database)
	engine, err := postgres.Open(t.Context(), pool, stores.Tables(), nil)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), "create table member (id uuid primary key, name text not null)")
	require.NoError(t, err)
	keys, err := newKeys(t.Context(), pool)
	require.NoError(t, err)
	health, err := assemble(t.Context(), engine, keys, "http://127.0.0.1")
	require.NoError(t, err)
	_, err = health.Health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "taken"})
	require.NoError(t, err)
	require.ErrorIs(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "insert into member (id, name) values (gen_random_uuid(), 'Kim')"); err != nil {
			return err
		}
		_, err := health.Health.CreateUser(engine.WithTx(t.Context(), tx), team, healthdata.NewUser{ClientUserID: "taken"})
		return err
	}), healthlab.Conflict)
	var members int
	require.NoError(t, pool.QueryRow(t.Context(), "select count(*) from member").Scan(&members))
	require.Zero(t, members)
}
