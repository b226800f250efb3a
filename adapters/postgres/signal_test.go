package postgres_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/webhook"
)

// The last statement of a connection that listens.
const (
	listenStatement = "listen healthlab_routed"
	pingStatement   = "-- ping"
)

// listeners returns the processes of the server whose last statement is one of these.
func listeners(t *testing.T, pool *pgxpool.Pool, last ...string) []int32 {
	t.Helper()
	var pids []int32
	require.NoError(t, pool.QueryRow(t.Context(), `select coalesce(array_agg(pid), '{}') from pg_stat_activity
		where datname = current_database() and query = any($1)`, last).Scan(&pids))
	return pids
}

// awaitListener waits until one connection has one of these as its last statement.
func awaitListener(t *testing.T, pool *pgxpool.Pool, last ...string) (pid int32) {
	t.Helper()
	require.Eventually(t, func() bool {
		pids := listeners(t, pool, last...)
		if len(pids) == 1 {
			pid = pids[0]
		}
		return len(pids) == 1
	}, time.Minute, time.Millisecond)
	return pid
}

// dispatcherStore has deliveries of a test and the endpoints of a store.
type dispatcherStore struct {
	webhook.Deliveries
	webhook.Endpoints
}

// routing is the queue of a process all of whose slots are taken: it routes, and claims nothing.
type routing struct{ webhook.Deliveries }

func (routing) Due(context.Context) ([]webhook.EndpointID, error) { return nil, nil }

func (r routing) Route(ctx context.Context, modes map[string]healthlab.Mode, most int) (webhook.Routed, error) {
	routed, err := r.Deliveries.Route(ctx, modes, most)
	routed.Endpoints = nil
	return routed, err
}

// One process routes and another one delivers. The second polls once an hour, so only a signal can
// make it deliver before that, also after its connection was cut.
func TestSignal_wakesTheDispatcherOfAnotherProcess(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	engine, second := openEngine(t, pool, stores.Tables(), postgres.Options{}), openEngine(t, pgtest.Connect(t, pool.Config().ConnString()), stores.Tables(), postgres.Options{})
	here, there := stores.New(engine, &stores.Options{Events: stores.Outbox}), stores.New(second, &stores.Options{Events: stores.Outbox})
	team := anyTeam()
	got := make(chan string)
	receive := notifierFunc(func(_ context.Context, n webhook.Notification) webhook.Result {
		got <- n.ID
		return webhook.Result{Class: webhook.ClassOK, Status: 200}
	})
	service, err := webhook.NewService(eventTypes(), here.Webhooks(), receive, secretSealer(), nil)
	require.NoError(t, err)
	_, err = service.Create(t.Context(), team, webhook.NewEndpoint{URL: "https://receiver.example.com"})
	require.NoError(t, err)

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	dispatch := func(s *stores.Stores, queue webhook.Deliveries, signal webhook.Signal) *webhook.Dispatcher {
		d, err := webhook.NewDispatcher(eventTypes(), dispatcherStore{queue, s.Endpoints()}, receive, secretSealer(),
			&webhook.Options{Signal: signal, Busy: time.Hour, Idle: time.Hour, Drain: time.Second})
		require.NoError(t, err)
		go func() { ended <- d.Run(ctx) }()
		return d
	}
	dispatch(there, there.Deliveries(), second.Signal())
	line := awaitListener(t, pool, listenStatement)
	router := dispatch(here, routing{here.Deliveries()}, engine.Signal())

	write := func() string {
		e := healthlab.Event{ID: uuid.New(), Type: orderedType, Team: team, Key: "k", At: eventTime, Data: []byte("{}")}
		require.NoError(t, here.Outbox().Append(t.Context(), []healthlab.Event{e}))
		router.Wake()
		return webhook.MessageID(e.ID)
	}
	for range 3 {
		require.Equal(t, write(), <-got)
	}
	_, err = pool.Exec(t.Context(), `select pg_terminate_backend($1::integer)`, line)
	require.NoError(t, err)
	require.Equal(t, write(), <-got, "heard, or found when it listens again")
	stop()
	require.NoError(t, <-ended)
	require.NoError(t, <-ended)
	require.Eventually(t, func() bool { return len(listeners(t, pool, listenStatement, pingStatement)) == 0 }, time.Minute, time.Millisecond)
}

func TestSignal_wakesListenersAndReconnects(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := openEngine(t, pool, stores.Tables(), postgres.Options{})
	mine, other := postgres.Impatient(s.Signal()), s.Signal()
	ctx, stop := context.WithCancel(t.Context())
	var times atomic.Int32
	heard := make(chan struct{}, 100)
	ended := make(chan error)
	go func() {
		ended <- mine.Listen(ctx, func() {
			times.Add(1)
			heard <- struct{}{}
		})
	}()
	hears := func() {
		t.Helper()
		select {
		case <-heard:
		case err := <-ended:
			require.FailNow(t, "it listens no longer", "%v", err)
		}
	}
	hears()
	line := awaitListener(t, pool, pingStatement) // it asks whether the other end is there
	require.NoError(t, mine.Send(t.Context()))
	require.NoError(t, other.Send(t.Context()))
	hears()
	require.EqualValues(t, 2, times.Load(), "what it sends itself it does not hear")

	_, err := pool.Exec(t.Context(), `select pg_terminate_backend($1::integer)`, line)
	require.NoError(t, err)
	require.ErrorIs(t, <-ended, healthlab.Unavailable)
	go func() { ended <- mine.Listen(ctx, func() { heard <- struct{}{} }) }()
	hears()
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
}
