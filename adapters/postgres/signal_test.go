package postgres_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/webhook"
)

// listeners returns the processes of the server that listen, but for one. The last thing
// that such a one was told is to listen, or to answer.
func listeners(t *testing.T, pool *pgxpool.Pool, but int32) []int32 {
	t.Helper()
	var pids []int32
	require.NoError(t, pool.QueryRow(t.Context(), `select coalesce(array_agg(pid), '{}') from pg_stat_activity
		where datname = current_database() and query in ('listen healthlab_routed', '-- ping') and pid <> $1`, but).Scan(&pids))
	return pids
}

// awaitListener waits until a connection other than the given one listens.
func awaitListener(t *testing.T, pool *pgxpool.Pool, but int32) int32 {
	t.Helper()
	for {
		if pids := listeners(t, pool, but); len(pids) == 1 {
			return pids[0]
		}
		require.NoError(t, t.Context().Err())
		time.Sleep(time.Millisecond)
	}
}

// routing is the queue of a process all of whose slots are taken: it routes, and claims
// nothing.
type routing struct{ webhook.Deliveries }

func (routing) Due(context.Context) ([]webhook.EndpointID, error) { return nil, nil }

func (r routing) Route(ctx context.Context, modes map[string]healthlab.Mode, most int) (webhook.Routed, error) {
	routed, err := r.Deliveries.Route(ctx, modes, most)
	routed.Endpoints = nil
	return routed, err
}

// One process routes and another one delivers. The second polls once an hour, so only a
// signal can make it deliver before that, also after its connection was cut.
func TestSignalBetweenProcesses(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	here, there := postgres.New(pool, nil), postgres.New(pgtest.Connect(t, pool.Config().ConnString()), nil)
	u := newPerson(t, here)
	got := make(chan string)
	receive := notifierFunc(func(_ context.Context, n webhook.Notification) webhook.Result {
		got <- n.ID
		return webhook.Result{Class: webhook.ClassOK, Status: 200}
	})
	service, err := webhook.NewService(faultTypes(), here.Deliveries(), here.Endpoints(), here.WebhookLog(), receive, faultSealer(), nil)
	require.NoError(t, err)
	_, err = service.Create(t.Context(), u.Team, webhook.NewEndpoint{URL: "https://receiver.example.com"})
	require.NoError(t, err)

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	dispatch := func(s *postgres.Store, queue webhook.Deliveries) *webhook.Dispatcher {
		d, err := webhook.NewDispatcher(faultTypes(), queue, s.Endpoints(), receive, faultSealer(),
			&webhook.Options{Signal: s.Signal(), Busy: time.Hour, Idle: time.Hour, Drain: time.Second})
		require.NoError(t, err)
		go func() { ended <- d.Run(ctx) }()
		return d
	}
	dispatch(there, there.Deliveries())
	line := awaitListener(t, pool, 0)
	router := dispatch(here, routing{here.Deliveries()})

	write := func() string {
		e := event(u, "k")
		e.Type = faultOrdered
		appendEvents(t, here, e)
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
	for len(listeners(t, pool, 0)) > 0 { // the lines are given up; the server sees it a moment later
		time.Sleep(time.Millisecond)
	}
}

func TestSignal(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := postgres.New(pool, nil)
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
	time.Sleep(100 * time.Millisecond) // it asks a few times whether the line is there
	require.NoError(t, mine.Send(t.Context()))
	require.NoError(t, other.Send(t.Context()))
	hears()
	require.EqualValues(t, 2, times.Load(), "what it sends itself it does not hear")

	_, err := pool.Exec(t.Context(), `select pg_terminate_backend($1::integer)`, awaitListener(t, pool, 0))
	require.NoError(t, err)
	require.ErrorIs(t, <-ended, healthlab.Unavailable)
	go func() { ended <- mine.Listen(ctx, func() { heard <- struct{}{} }) }()
	hears()
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)

	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	require.Nil(t, postgres.New(tx, nil).Signal(), "a transaction does not listen")
	require.NoError(t, tx.Rollback(t.Context()))
}
