package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// pair is a porter whose secrets are two words.
type pair struct{}

func (pair) Encode(t linking.Tokens) ([]byte, error) { return []byte(t.Access + " " + t.Refresh), nil }

func (pair) Decode(secret []byte) (linking.Tokens, error) {
	access, refresh, _ := strings.Cut(string(secret), " ")
	return linking.Tokens{Access: access, Refresh: refresh}, nil
}

// importer is a process on a database.
func importer(t *testing.T, pool *pgxpool.Pool, now func() time.Time) (*healthdata.Service, *bulk.Service) {
	t.Helper()
	s := postgres.New(pool, nil)
	providers, err := healthdata.NewProviders([]healthdata.Provider{{
		Slug: linkedProvider, Name: "Acme Scale", AuthType: "oauth", SourceType: "device", Class: "cloud", OAuthVersion: 2,
	}})
	require.NoError(t, err)
	health, err := healthdata.New(s.Users(), s.Data(), providers, &healthdata.Options{Now: now, Environment: healthlab.Production})
	require.NoError(t, err)
	seal, err := healthlab.NewAESSealer("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	connectors := map[string]linking.ProviderConnector{linkedProvider: {TokenCodec: pair{}}}
	links, err := linking.New(s.Linking(), health, connectors, seal, [][]byte{bytes.Repeat([]byte{2}, 32)}, &linking.Options{
		Environment: healthlab.Sandbox,
		Now:         now, Settings: func(context.Context, healthlab.TeamID) (linking.TeamSettings, error) {
			return linking.TeamSettings{Bulk: true, OwnOAuth: []string{linkedProvider}, RejectDuplicates: true}, nil
		},
	})
	require.NoError(t, err)
	refresher, err := linking.NewCredentialRefresher(s.Credentials(), health, connectors, seal, nil)
	require.NoError(t, err)
	pulls, err := pull.New(s.Pulls(), health, refresher, connectors, &pull.Options{Now: now})
	require.NoError(t, err)
	out, err := bulk.New(s.Bulk(), health, links, pulls, connectors, seal, &bulk.Options{Now: now})
	require.NoError(t, err)
	return health, out
}

// Processes overtake each other all the time, and lose their connections in the middle of
// anything: every connection is made, and none twice.
func TestImportByManyProcesses(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	look := pgtest.Connect(t, address)
	// Every look at the clock of the store is after all leases.
	_, err := look.Exec(t.Context(), `
		create sequence public.hours;
		create or replace function healthlab.clock() returns timestamptz language sql volatile as
			$$ select timestamptz '2026-03-04 12:00Z' + nextval('public.hours') * interval '1 hour' $$`)
	require.NoError(t, err)
	now := func() time.Time { return noon.Time }
	health, first := importer(t, look, now)
	team := healthlab.TeamID{UUID: uuid.New()}
	var recipes []bulk.ConnectionTokens
	n := prove.Count(100, 2000)
	for i := range n {
		u, err := health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: fmt.Sprint("u", i)})
		require.NoError(t, err)
		recipes = append(recipes, bulk.ConnectionTokens{
			UserID: u.ID, AccessToken: fmt.Sprint("a", i), RefreshToken: "r", ProviderID: fmt.Sprint("account ", i/2*2), ExpiresAt: bulk.NeverExpires,
		})
	}
	done, err := first.Import(t.Context(), team, linkedProvider, recipes, false)
	require.NoError(t, err)

	var all sync.WaitGroup
	for p := range 3 {
		pool := pgtest.Connect(t, address)
		_, process := importer(t, pool, now)
		all.Go(func() {
			for range 100 * n {
				_, _ = process.Step(t.Context()) // an error is a crash
				got, err := first.ImportResult(t.Context(), team, done.Op.ID)
				if err == nil && got.Op.Status != bulk.InProgress {
					return
				}
			}
		})
		all.Go(func() {
			for range 20 * (p + 1) {
				_, _ = look.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
					where datname = current_database() and pid <> pg_backend_pid() and query ilike '%bulk_item%' order by pid limit 1`)
			}
		})
	}
	all.Wait()
	done, err = first.ImportResult(t.Context(), team, done.Op.ID)
	require.NoError(t, err)
	require.Equal(t, bulk.Failure, done.Op.Status)
	require.Len(t, done.Users, n/2, "of two who bring the same account one comes later")
	require.Len(t, done.Failed, n/2)
	require.Equal(t, n/2, done.Op.Failed)
	for _, f := range done.Failed {
		require.Equal(t, bulk.AccountTaken, f.Outcome)
	}
	require.Equal(t, []string{fmt.Sprint(n / 2)}, texts(t, look, `select count(*)::text from healthlab.webhook_event where team_id = $1`, team.UUID))
	require.Equal(t, []string{fmt.Sprint(n / 2)}, texts(t, look, `select count(*)::text from healthlab.link_credential where team_id = $1`, team.UUID))
	require.Equal(t, []string{fmt.Sprint(n / 2)}, texts(t, look, `select count(*)::text from healthlab.users where team_id = $1 and revision = 2`, team.UUID))
	require.Empty(t, texts(t, look, `select op_id::text from healthlab.bulk_item where team_id = $1 and box is not null`, team.UUID))
}
