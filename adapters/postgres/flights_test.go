package postgres_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

// wire counts the turns of connections from sending to receiving, which are round trips, commits, and
// statements about the ends of access logs, of which each team has one.
type wire struct {
	net.Dialer
	trips, commits, heads atomic.Int64
	// statement, if it is set, gets each statement. It must be safe for concurrent use.
	statement func(sql string)
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
	if w.statement != nil {
		w.statement(q.SQL)
	}
	if q.SQL == "commit" {
		w.commits.Add(1)
	}
	if strings.Contains(q.SQL, "access_head") {
		w.heads.Add(1)
	}
}

func (w *wire) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (w *wire) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (w *wire) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// onPostgres returns a service over PostgreSQL whose trips are counted, and a team that every key is of.
// Its persons may have data of two providers: manual, and a store of a phone.
func onPostgres(t testing.TB) (*service.Service, *wire, *stores.Stores, healthlab.TeamID) {
	t.Helper()
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

	book, err := sandbox.Catalogue()
	require.NoError(t, err)
	resources := make([]healthdata.ProviderResource, len(uploaded))
	for i, r := range uploaded {
		resources[i].Resource = r
	}
	providers, err := healthdata.NewProviders([]healthdata.Provider{
		{Slug: "manual", Name: "Manual", Category: "app", Class: "manual", Resources: resources},
		{Slug: "phone", Name: "Phone", Category: "app", Class: "sdk_store", Resources: resources},
	})
	require.NoError(t, err)
	sealer, err := healthlab.NewAESSealer("host", map[string][]byte{"host": bytes.Repeat([]byte{7}, 32)})
	require.NoError(t, err)
	team := healthlab.TeamID{UUID: uuid.New()}
	c := service.Config{
		AllowPlaintext: true, Environment: healthlab.Sandbox, URL: "http://localhost:8080",
		Stores: stores.New(engine, &stores.Options{Keys: personkey.New(memory.NewPersonKeys(), sealer, nil), Events: stores.Outbox}), Files: memory.New(nil).Blobs(),
		Secret: bytes.Repeat([]byte{7}, 32), Providers: providers, Catalogue: book, Laboratory: sandbox.NewLab(nil),
	}
	c.HTTP.Authenticate = func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Team: team}, nil }
	s, err := service.New(t.Context(), c)
	require.NoError(t, err)
	return s, w, c.Stores, team
}

// uploaded are the resources that are uploaded.
var uploaded = []string{"heartrate", "steps", "distance", "respiratory_rate", "blood_oxygen", "weight", "floors_climbed", "vo2_max"}

// upload sends a sample and returns the answer.
func upload(ctx context.Context, s *service.Service, user healthlab.UserID, provider, resource string, at time.Time) *httptest.ResponseRecorder {
	r := healthdata.ResourceBySlug(resource)
	sample := `"timestamp":"` + at.Format(time.RFC3339) + `","value":31,"unit":"` + r.Unit + `"`
	if r.Shape == healthdata.Interval {
		sample += `,"end":"` + at.Add(time.Second).Format(time.RFC3339) + `"`
	}
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v2/timeseries/"+user.String()+"/"+r.Path,
		strings.NewReader(`{"provider":"`+provider+`","data":[{`+sample+`}]}`))
	req.Header.Set("Content-Type", "application/json")
	out := httptest.NewRecorder()
	s.Handler().ServeHTTP(out, req)
	return out
}

// An uploaded sample with its event takes two round trips to PostgreSQL and one commit, which has the
// count of the upload and the line in the access log too. The caller's key is not looked up here.
func TestUpload_takesTwoRoundTripsAndOneCommit(t *testing.T) {
	s, w, all, team := onPostgres(t)
	u, err := s.Health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "u"})
	require.NoError(t, err)
	_, err = s.Health.Connections().ConnectLinked(t.Context(), team, u.ID, healthdata.NewConnection{Provider: "manual"})
	require.NoError(t, err)

	minute := 0
	one := func() {
		minute++
		out := upload(t.Context(), s, u.ID, "manual", "heartrate", time.Date(2026, 3, 1, 10, minute, 0, 0, time.UTC))
		require.Equal(t, http.StatusOK, out.Code, out.Body)
	}
	one() // the first one finds no series, and prepares statements
	one() // which are others for a series that is there
	for range 3 {
		trips, commits := w.trips.Load(), w.commits.Load()
		one()
		require.EqualValues(t, 2, w.trips.Load()-trips, "trips")
		require.EqualValues(t, 1, w.commits.Load()-commits, "commits")
	}
	require.Zero(t, w.heads.Load(), "a request reads or writes the row of its team")

	lines, err := s.Access.Lines(t.Context(), accesslog.Query{Team: team, N: 99})
	require.NoError(t, err)
	require.NotZero(t, w.heads.Load(), "sealing does")
	require.Len(t, lines, minute)
	list, _, err := s.Pulls.Resources(t.Context(), pull.StatusQuery{Team: team, Limit: 9})
	require.NoError(t, err)
	require.EqualValues(t, minute, list[0].Providers["manual"]["heartrate"].Sent)
	waiting, err := all.Backlog(t.Context())
	require.NoError(t, err)
	require.NotZero(t, waiting, "events")
}

// placeOrder orders a lab test and returns the answer. key is an
// idempotency key; empty for none.
func placeOrder(ctx context.Context, s *service.Service, user healthlab.UserID, test, key string) *httptest.ResponseRecorder {
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v3/order", strings.NewReader(`{"user_id":"`+user.String()+`","order_set":{"lab_test_ids":["`+test+`"]},
		"patient_details":{"first_name":"Kim","last_name":"Person","dob":"1984-01-02","gender":"female","phone_number":"+12175550100","email":"kim@example.org"},
		"patient_address":{"receiver_name":"Kim Person","phone_number":"+12175550100","first_line":"1 Example Street","city":"Springfield","state":"IL","zip":"62701","country":"US"}}`))
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("x-idempotency-key", key)
	}
	out := httptest.NewRecorder()
	s.Handler().ServeHTTP(out, req)
	return out
}

// walkInTest is a lab test of the sandbox's laboratory.
const walkInTest = "5ab0c1d2-0000-4000-8000-000000000001"

// An order takes two round trips and one commit, which has its event, the answer for its idempotency key
// and the line in the access log too. So does a repeated request.
func TestOrder_takesTwoRoundTripsAndOneCommit(t *testing.T) {
	s, w, all, team := onPostgres(t)
	u, err := s.Health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "u"})
	require.NoError(t, err)
	requests := []struct {
		name string
		key  func(n int) string
	}{
		{"without a key", func(int) string { return "" }},
		{"with a key", func(n int) string { return "k" + strconv.Itoa(n) }},
		{"repeated", func(int) string { return "k0" }},
	}
	sent := 0
	for _, r := range requests {
		for n := range 5 {
			trips, commits := w.trips.Load(), w.commits.Load()
			out := placeOrder(t.Context(), s, u.ID, walkInTest, r.key(n))
			require.Equal(t, http.StatusOK, out.Code, out.Body)
			sent++
			if n < 2 {
				continue // they prepare statements: for the first event of the team, and for the next one
			}
			require.EqualValues(t, 2, w.trips.Load()-trips, "trips "+r.name)
			require.EqualValues(t, 1, w.commits.Load()-commits, "commits "+r.name)
		}
	}
	lines, err := s.Access.Lines(t.Context(), accesslog.Query{Team: team, N: 99})
	require.NoError(t, err)
	require.Len(t, lines, sent)
	page, err := s.Orders.List(t.Context(), orders.Query{Team: team})
	require.NoError(t, err)
	require.Equal(t, 10, page.Total)
	waiting, err := all.Backlog(t.Context())
	require.NoError(t, err)
	require.Equal(t, page.Total, waiting.Unrouted, "an event for each order")
}

// A request with a key that is refused leaves its answer and no order. A lab test that the catalogue does
// not have is looked up among those of the team, before the transaction: a third trip.
func TestOrder_refusedWithIdempotencyKeyStoresOnlyTheResponse(t *testing.T) {
	s, w, _, team := onPostgres(t)
	u, err := s.Health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "u"})
	require.NoError(t, err)
	absent := uuid.NewString()
	require.Equal(t, http.StatusNotFound, placeOrder(t.Context(), s, u.ID, absent, "other").Code, "it makes keys of persons")
	trips, commits := w.trips.Load(), w.commits.Load()
	first := placeOrder(t.Context(), s, u.ID, absent, "k")
	require.Equal(t, http.StatusNotFound, first.Code, first.Body)
	require.EqualValues(t, 3, w.trips.Load()-trips)
	require.EqualValues(t, 2, w.commits.Load()-commits, "one ends the snapshot of the look-up")
	again := placeOrder(t.Context(), s, u.ID, absent, "k")
	require.Equal(t, http.StatusNotFound, again.Code)
	require.Equal(t, first.Body.String(), again.Body.String())
	require.Equal(t, http.StatusConflict, placeOrder(t.Context(), s, u.ID, walkInTest, "k").Code)
	page, err := s.Orders.List(t.Context(), orders.Query{Team: team})
	require.NoError(t, err)
	require.Zero(t, page.Total)
}

// Requests with one key that come at once place one order, and each gets its answer.
func TestOrder_concurrentRequestsWithOneKeyPlaceOneOrder(t *testing.T) {
	s, _, _, team := onPostgres(t)
	u, err := s.Health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "u"})
	require.NoError(t, err)
	for round := range 3 {
		answers := make([]*httptest.ResponseRecorder, 8)
		conformance.Together(len(answers), func(i int) error {
			answers[i] = placeOrder(t.Context(), s, u.ID, walkInTest, "k"+strconv.Itoa(round))
			return nil
		})
		for _, a := range answers {
			require.Equal(t, http.StatusOK, a.Code, a.Body)
			require.Equal(t, answers[0].Body.String(), a.Body.String())
		}
		page, err := s.Orders.List(t.Context(), orders.Query{Team: team})
		require.NoError(t, err)
		require.Equal(t, round+1, page.Total)
	}
}

// The first uploads of a person, which make the connection, the series and the counts, come from one phone
// at once.
func TestUpload_firstUploadsOfAUserMayBeConcurrent(t *testing.T) {
	s, _, _, team := onPostgres(t)
	for _, provider := range []string{"manual", "phone"} {
		for round := range 3 {
			u, err := s.Health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: provider + strconv.Itoa(round)})
			require.NoError(t, err)
			if provider == "manual" {
				_, err = s.Health.Connections().ConnectLinked(t.Context(), team, u.ID, healthdata.NewConnection{Provider: provider})
				require.NoError(t, err)
			}
			answers := make([]*httptest.ResponseRecorder, len(uploaded))
			conformance.Together(len(uploaded), func(i int) error {
				answers[i] = upload(t.Context(), s, u.ID, provider, uploaded[i], time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
				return nil
			})
			for _, a := range answers {
				require.Equal(t, http.StatusOK, a.Code, a.Body)
			}
		}
	}
}
