package service_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/accesslog"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/personkey"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, nil)) }

// wire counts the turns of connections from sending to receiving, which are round trips, and commits.
type wire struct {
	net.Dialer
	trips, commits atomic.Int64
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := w.DialContext(ctx, network, address)
	return &wireConn{Conn: c, of: w}, err
}

type wireConn struct {
	net.Conn
	of   *wire
	sent atomic.Bool
}

func (c *wireConn) Write(b []byte) (int, error) {
	if !c.sent.Swap(true) {
		c.of.trips.Add(1)
	}
	return c.Conn.Write(b)
}

func (c *wireConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.sent.Store(false)
	}
	return n, err
}

func (w *wire) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (w *wire) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	if q.SQL == "commit" {
		w.commits.Add(1)
	}
}

func (w *wire) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (w *wire) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (w *wire) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// An uploaded sample with its event takes two round trips to PostgreSQL and one commit, which has the
// count of the upload and the line in the access log too. The caller's key is not looked up here.
func TestUpload_takesTwoTripsAndOneCommit(t *testing.T) {
	w := &wire{}
	at, err := pgxpool.ParseConfig(pgtest.Empty(t))
	require.NoError(t, err)
	at.ConnConfig.DialFunc, at.ConnConfig.Tracer = w.dial, w
	pool, err := pgxpool.NewWithConfig(t.Context(), at)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	require.NoError(t, postgres.Migrate(t.Context(), conn.Conn(), stores.Tables(), nil))
	conn.Release()
	engine, err := postgres.New(t.Context(), pool, stores.Tables(), &postgres.Options{Now: time.Now})
	require.NoError(t, err)

	c := config(t)
	c.Providers, err = healthdata.NewProviders([]healthdata.Provider{{
		Slug: "manual", Name: "Manual", SourceType: "app", Class: "manual", Resources: []healthdata.ProviderResource{{Resource: "heartrate"}},
	}})
	require.NoError(t, err)
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	c.Stores = stores.New(engine, &stores.Options{Keys: personkey.New(memory.NewPersonKeys(), sealer, nil)})
	team := healthlab.TeamID{UUID: uuid.New()}
	c.HTTP.Authenticate = func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Team: team}, nil }
	s, err := service.New(t.Context(), c)
	require.NoError(t, err)
	u, err := s.Health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "u"})
	require.NoError(t, err)
	_, err = s.Health.Establish(t.Context(), team, u.ID, healthdata.NewConnection{Provider: "manual"})
	require.NoError(t, err)

	minute := 0
	upload := func() {
		minute++
		at := time.Date(2026, 3, 1, 10, minute, 0, 0, time.UTC).Format(time.RFC3339)
		body := `{"provider":"manual","data":[{"timestamp":"` + at + `","value":61,"unit":"bpm"}]}`
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v2/timeseries/"+u.ID.String()+"/heartrate", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		out := httptest.NewRecorder()
		s.Handler().ServeHTTP(out, r)
		require.Equal(t, http.StatusOK, out.Code, out.Body)
	}
	upload() // the first one finds no series, and prepares statements
	upload() // which are others for a series that is there
	for range 3 {
		trips, commits := w.trips.Load(), w.commits.Load()
		upload()
		require.EqualValues(t, 2, w.trips.Load()-trips, "trips")
		require.EqualValues(t, 1, w.commits.Load()-commits, "commits")
	}

	lines, err := s.Access.Lines(t.Context(), accesslog.Query{Team: team, N: 99})
	require.NoError(t, err)
	require.Len(t, lines, minute)
	list, _, err := s.Pulls.Resources(t.Context(), pull.StatusQuery{Team: team, Limit: 9})
	require.NoError(t, err)
	require.EqualValues(t, minute, list[0].Providers["manual"]["heartrate"].Sent)
	waiting, err := c.Stores.Backlog(t.Context())
	require.NoError(t, err)
	require.NotZero(t, waiting, "events")
}
