package postgres_test

import (
	"context"
	"fmt"
	"os"
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
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/webhooktest"
)

// serverClock is the clock of deliveries in a database, ahead of the server's.
type serverClock struct {
	t    testing.TB
	pool *pgxpool.Pool

	mu    sync.Mutex
	ahead time.Duration
}

// advance puts another clock in the place of healthlab.clock, as owner of the database.
func (c *serverClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	_, err := c.pool.Exec(c.t.Context(), fmt.Sprintf(
		`create or replace function healthlab.clock() returns timestamptz language sql stable parallel safe as $$ select now() + interval '%d microseconds' $$`,
		c.ahead.Microseconds()))
	require.NoError(c.t, err)
}

func webhookStoreOf(s *postgres.Store, c *serverClock) webhooktest.Harness {
	return webhooktest.Harness{
		Outbox: s.Outbox(), Deliveries: s.Deliveries(), Endpoints: s.Endpoints(), Log: s.WebhookLog(), Bodies: s.EventBodies(), Advance: c.advance,
	}
}

// webhookStores returns empty stores of one database, each of which empties it.
func webhookStores(t *testing.T) func(t *testing.T) webhooktest.Harness {
	pool := pgtest.Pool(t)
	return emptied(postgres.New(pool, sealed()), pool)
}

// emptied returns a function that returns the store without any row.
func emptied(s *postgres.Store, owner *pgxpool.Pool) func(t *testing.T) webhooktest.Harness {
	return func(t *testing.T) webhooktest.Harness {
		c := &serverClock{t: t, pool: owner}
		c.advance(0)
		pgtest.Clear(t, owner)
		return webhookStoreOf(s, c)
	}
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	webhooktest.RunDeliveries(t, webhookStores(t))
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	webhooktest.RunEndpoints(t, webhookStores(t))
}

func TestDeliveriesModel(t *testing.T) {
	t.Parallel()
	webhooktest.RunDeliveriesModel(t, webhookStores(t))
}

func TestDispatcher(t *testing.T) {
	t.Parallel()
	webhooktest.RunDispatcher(t, webhookStores(t))
}

func TestOrderUnderFire(t *testing.T) {
	t.Parallel()
	webhooktest.RunOrderUnderFailures(t, func(t *testing.T) webhooktest.Harness { return webhookStores(t)(t) })
}

// deliverTo gives the team of a user an endpoint, to which one message of the user was
// sent in vain and waits.
func deliverTo(t testing.TB, s *postgres.Store, u healthdata.User) webhook.EndpointID {
	t.Helper()
	to := webhook.EndpointID{UUID: uuid.New()}
	require.NoError(t, s.Endpoints().Insert(t.Context(), webhook.Endpoint{ID: to, Team: u.Team, URL: "https://receiver.example.com"}, 50))
	e := event(u, "sent")
	require.NoError(t, s.Outbox().Append(t.Context(), []healthlab.Event{e}))
	_, err := s.Deliveries().Route(t.Context(), nil, 1000)
	require.NoError(t, err)
	for _, d := range claim(t, s, to) {
		_, err = s.Deliveries().RecordOutcomes(t.Context(), []webhook.Outcome{{Delivery: d, State: webhook.Retrying, Sent: true, Response: []byte("no")}})
		require.NoError(t, err)
	}
	return to
}

func claim(t testing.TB, s *postgres.Store, to webhook.EndpointID) []webhook.Delivery {
	t.Helper()
	c, err := s.Deliveries().Claim(t.Context(), webhook.Claim{Quotas: []webhook.Quota{{Endpoint: to, Max: 1000}}, Lease: time.Minute})
	require.NoError(t, err)
	return c.Deliveries
}

// newWebhookTeam is a user of a new team with an endpoint.
func newWebhookTeam(t testing.TB, s *postgres.Store) (healthdata.User, webhook.EndpointID) {
	t.Helper()
	u := newPerson(t, s)
	to := webhook.EndpointID{UUID: uuid.New()}
	require.NoError(t, s.Endpoints().Insert(t.Context(), webhook.Endpoint{ID: to, Team: u.Team, URL: "https://receiver.example.com"}, 50))
	return u, to
}

func appendEvents(t testing.TB, s *postgres.Store, events ...healthlab.Event) {
	t.Helper()
	require.NoError(t, s.Outbox().Append(t.Context(), events))
}

func route(t testing.TB, s *postgres.Store) int {
	t.Helper()
	routed, err := s.Deliveries().Route(t.Context(), nil, 1000)
	require.NoError(t, err)
	return routed.Events
}

func succeed(t testing.TB, s *postgres.Store, d webhook.Delivery) webhook.RecordedOutcomes {
	t.Helper()
	recorded, err := s.Deliveries().RecordOutcomes(t.Context(), []webhook.Outcome{{
		Delivery: d, State: webhook.Succeeded, Sent: true, Status: 200, Class: webhook.ClassOK,
	}})
	require.NoError(t, err)
	return recorded
}

// eventsOf returns the events of deliveries.
func eventsOf(ds []webhook.Delivery) []uuid.UUID {
	var out []uuid.UUID
	for _, d := range ds {
		out = append(out, d.Event)
	}
	return out
}

// A host's transaction that locks a lane delays that lane, and calls that need the same lane;
// everything else is routed, claimed and recorded.
func TestHeldLane(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := postgres.New(pool, sealed())
	u, to := newWebhookTeam(t, s)
	held, free, second := event(u, "held"), event(u, "free"), event(u, "free")
	appendEvents(t, s, held, free)
	require.Equal(t, 2, route(t, s))
	claimed := claim(t, s, to)
	require.Len(t, claimed, 2)

	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `select from healthlab.webhook_delivery where event_id = $1 for update`, held.ID)
	require.NoError(t, err)
	behind, after := event(u, "held"), event(u, "other")
	appendEvents(t, s, behind, second, after)
	require.Equal(t, 2, route(t, s), "one event waits for the host")
	for _, d := range claimed {
		recorded := succeed(t, s, d)
		if d.Event == held.ID {
			require.Equal(t, []webhook.Lease{d.Lease}, recorded.Locked)
		} else {
			require.Empty(t, recorded.Locked)
		}
	}
	require.ElementsMatch(t, []uuid.UUID{second.ID, after.ID}, eventsOf(claim(t, s, to)))
	require.Zero(t, route(t, s))

	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, 1, route(t, s))
	for _, d := range claimed {
		succeed(t, s, d)
	}
	require.Equal(t, []uuid.UUID{behind.ID}, eventsOf(claim(t, s, to)))
	requireIdle(t, pool)
}

// A host's transaction that locks an endpoint delays only the deliveries to it.
func TestHeldEndpoint(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := postgres.New(pool, sealed())
	one, _ := newWebhookTeam(t, s)
	two, to := newWebhookTeam(t, s)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `select from healthlab.webhook_endpoint where team_id = $1 for update`, one.Team.UUID)
	require.NoError(t, err)
	stays, goes := event(one, "k"), event(two, "k")
	appendEvents(t, s, stays, goes)
	require.Equal(t, 1, route(t, s))
	require.Equal(t, []uuid.UUID{goes.ID}, eventsOf(claim(t, s, to)))
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, 1, route(t, s))
	requireIdle(t, pool)
}

// In a host's transaction the queue works, and a rollback undoes it.
func TestDeliveriesInAHostsTransaction(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := postgres.New(pool, sealed())
	u, to := newWebhookTeam(t, s)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	inside := postgres.New(tx, sealed())
	appendEvents(t, inside, event(u, "k"))
	require.Equal(t, 1, route(t, inside))
	d := claim(t, inside, to)
	require.Len(t, d, 1)
	require.Empty(t, succeed(t, inside, d[0]).Lost)
	var planner, durable string
	require.NoError(t, tx.QueryRow(t.Context(), `select current_setting('enable_seqscan'), current_setting('synchronous_commit')`).Scan(&planner, &durable))
	require.Equal(t, "on", planner, "the settings of a host stay as they are")
	require.Equal(t, setting(t, pool, "synchronous_commit"), durable)
	require.NoError(t, tx.Rollback(t.Context()))
	require.Zero(t, rows(t, pool, "webhook_event"))
	require.Zero(t, rows(t, pool, "webhook_attempt"))
	require.Equal(t, "on", setting(t, pool, "enable_seqscan"), "nor does the queue leave its own behind")
}

func setting(t testing.TB, pool *pgxpool.Pool, name string) string {
	t.Helper()
	return texts(t, pool, `select current_setting($1)`, name)[0]
}

// Messages older than the retention are deleted with their deliveries and attempts, delivered
// or not. Deliveries that waited behind them move up, and messages that are not routed yet
// stay.
func TestRetention(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	clock := &serverClock{t: t, pool: pool}
	s := postgres.New(pool, &postgres.Options{Retention: 24 * time.Hour})
	u, to := newWebhookTeam(t, s)
	other, _ := newWebhookTeam(t, s)
	done, stuck := event(u, "done"), event(u, "lane")
	appendEvents(t, s, done, stuck)
	appendEvents(t, s, event(other, "k"))
	require.Equal(t, 3, route(t, s))
	for _, d := range claim(t, s, to) {
		if d.Event == done.ID {
			succeed(t, s, d)
		}
	}
	clock.advance(23 * time.Hour)
	next := event(u, "lane")
	appendEvents(t, s, next)
	require.Equal(t, 1, route(t, s))
	clock.advance(2 * time.Hour)

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.RunRetention(ctx) }()
	for rows(t, pool, "webhook_event") > 1 {
		require.NoError(t, t.Context().Err())
	}
	stop()
	require.NoError(t, <-ended)
	require.Equal(t, 1, rows(t, pool, "webhook_event"))
	require.Equal(t, 1, rows(t, pool, "webhook_delivery"))
	require.Zero(t, rows(t, pool, "webhook_attempt"))
	require.Equal(t, []uuid.UUID{next.ID}, eventsOf(claim(t, s, to)))
	require.Equal(t, 2, numberOf(t, pool, "lane"), "numbers go on")
	_, err := s.WebhookLog().Message(t.Context(), u.Team, done.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
}

// numberOf returns the newest number that is stored of a key.
func numberOf(t testing.TB, pool *pgxpool.Pool, key string) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), `select max(seq) from healthlab.webhook_event where key = $1`, key).Scan(&n))
	return n
}

// Erasing a user takes their messages out of lanes that others are in, and those move up.
func TestEraseMovesOthersUp(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := postgres.New(pool, sealed())
	ann, to := newWebhookTeam(t, s)
	bob := personOf(ann.Team)
	require.NoError(t, s.Users().Insert(t.Context(), bob, 0))
	hers, his, hers2, his2 := event(ann, "shared"), event(bob, "shared"), event(ann, "shared"), event(bob, "shared")
	appendEvents(t, s, hers, his, hers2, his2)
	require.Equal(t, 4, route(t, s))
	lost := claim(t, s, to)
	require.Equal(t, []uuid.UUID{hers.ID}, eventsOf(lost))
	_, err := s.Users().Update(t.Context(), ann.Team, ann.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
		u.DeletedAt = noon.Time
		return nil, nil
	})
	require.NoError(t, err)
	require.NoError(t, s.Users().Erase(t.Context(), ann.Team, ann.ID))
	require.Len(t, succeed(t, s, lost[0]).Lost, 1)
	require.Zero(t, rows(t, pool, "webhook_attempt"), "nothing is noted about a message that is gone")
	for _, want := range []uuid.UUID{his.ID, his2.ID} {
		got := claim(t, s, to)
		require.Equal(t, []uuid.UUID{want}, eventsOf(got))
		succeed(t, s, got[0])
	}
	require.Empty(t, claim(t, s, to))
}

// The server goes away at once in the middle of deliveries, and comes back: the
// dispatcher goes on, and nothing is lost.
func TestDispatcherOutlivesTheServer(t *testing.T) {
	t.Parallel()
	if os.Getenv(pgtest.Env) != "" {
		t.Skip("the server of " + pgtest.Env + " is not ours to crash")
	}
	pgtest.URL(t) // skips where there is none
	server, err := pgtest.Start(t.Context(), pgtest.Durable)
	require.NoError(t, err)
	defer server.Remove()
	pool := pgtest.Connect(t, server.URL("postgres"))
	require.NoError(t, postgres.Migrate(t.Context(), pool))
	s := postgres.New(pool, sealed())
	u := newPerson(t, s)

	const events = 500
	var mu sync.Mutex
	got := map[string]bool{}
	half, all := make(chan struct{}), make(chan struct{})
	halfway, complete := sync.OnceFunc(func() { close(half) }), sync.OnceFunc(func() { close(all) })
	receive := notifierFunc(func(_ context.Context, n webhook.Notification) webhook.Result {
		mu.Lock()
		defer mu.Unlock()
		got[n.ID] = true
		if len(got) >= events/2 {
			halfway()
		}
		if len(got) == events {
			complete()
		}
		return webhook.Result{Class: webhook.ClassOK, Status: 200}
	})
	service, err := webhook.NewService(faultTypes(), s.Deliveries(), s.Endpoints(), s.WebhookLog(), receive, faultSealer(), nil)
	require.NoError(t, err)
	_, err = service.Create(t.Context(), u.Team, webhook.NewEndpoint{URL: "https://receiver.example.com"})
	require.NoError(t, err)
	for i := range events {
		appendEvents(t, s, event(u, fmt.Sprint("k", i%50)))
	}
	d, err := webhook.NewDispatcher(faultTypes(), s.Deliveries(), s.Endpoints(), receive, faultSealer(), &webhook.Options{
		Slots: 16, Lease: 2 * time.Second, Timeout: time.Second, StartMargin: 500 * time.Millisecond, CrashLimit: 100,
		Busy: 10 * time.Millisecond, Idle: 10 * time.Millisecond, Drain: time.Second,
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Run(ctx) }()
	<-half
	server.Crash()
	require.NoError(t, server.Up(t.Context()))
	<-all
	stop()
	require.NoError(t, <-ended)
}

type notifierFunc func(context.Context, webhook.Notification) webhook.Result

func (f notifierFunc) Notify(ctx context.Context, n webhook.Notification) webhook.Result {
	return f(ctx, n)
}

func TestWrittenIsToldOfEvents(t *testing.T) {
	pool := pgtest.Connect(t, pgtest.Empty(t))
	require.NoError(t, postgres.Migrate(t.Context(), pool))
	told := 0
	s := postgres.New(pool, sealed())
	s.OnWritten(func() { told++ })
	e := healthlab.Event{ID: uuid.New(), Type: "a.b.c", Team: healthlab.TeamID{UUID: uuid.New()}, At: noon.Time, Data: []byte(`{}`)}
	require.NoError(t, s.Outbox().Append(t.Context(), []healthlab.Event{e}))
	require.Equal(t, 1, told)
	require.ErrorIs(t, s.Outbox().Append(t.Context(), []healthlab.Event{e}), healthlab.Conflict)
	_, err := s.Deliveries().Route(t.Context(), nil, 10)
	require.NoError(t, err)
	require.Equal(t, 1, told, "nothing was written")

	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	e.ID = uuid.New()
	inTx := postgres.New(tx, sealed())
	inTx.OnWritten(func() { told++ })
	require.NoError(t, inTx.Outbox().Append(t.Context(), []healthlab.Event{e}))
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, 1, told, "a host knows when it commits")
}
