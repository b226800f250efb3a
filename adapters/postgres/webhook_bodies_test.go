package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/webhook/webhooktest"
)

func TestEventBodies(t *testing.T) {
	t.Parallel()
	webhooktest.RunBodies(t, webhookStores(t))
}

// A team without old bodies is looked through while another process routes.
func TestEmptyBodiesLooksWithoutTheLock(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := postgres.New(pool, sealed())
	u := newPerson(t, s)
	appendEvents(t, s, event(u, "a"))
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `select pg_advisory_xact_lock($1)`, postgres.Routing)
		require.NoError(t, err)
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		n, err := s.EventBodies().EmptyBodies(ctx, u.Team, time.Now().Add(time.Hour), 10)
		require.Zero(t, n)
		return err
	}))
}

// A message that is sent between the search and the update keeps its body.
func TestEmptyBodiesChecksTwice(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := postgres.New(pool, sealed())
	u := newPerson(t, s)
	idle, sent := event(u, "a"), event(u, "b")
	appendEvents(t, s, idle, sent)
	route(t, s) // to no endpoint
	ended := time.Now().Add(time.Hour)
	type answer struct {
		n   int
		err error
	}
	answered := make(chan answer, 1)
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `select pg_advisory_xact_lock($1)`, postgres.Routing)
		require.NoError(t, err)
		go func() {
			n, err := s.EventBodies().EmptyBodies(context.WithoutCancel(t.Context()), u.Team, ended, 10)
			answered <- answer{n, err}
		}()
		eventually(t, time.Minute, func() bool {
			return len(texts(t, pool, `select '' from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)) == 1
		})
		_, err = tx.Exec(t.Context(), `insert into healthlab.webhook_attempt
			(team_id, at, endpoint_id, event_id, delivery_id, n, cause, status, class, duration, state, reason)
			values ($1, $2, $3, $4, 1, 1, 'replay', 200, 'ok', 0, 'succeeded', '')`, u.Team.UUID, ended, uuid.New(), sent.ID)
		return err
	}))
	got := <-answered
	require.NoError(t, got.err)
	require.Equal(t, 1, got.n)
	for id, kept := range map[uuid.UUID]bool{idle.ID: false, sent.ID: true} {
		m, err := s.WebhookLog().Message(t.Context(), u.Team, id)
		require.NoError(t, err)
		require.Equal(t, kept, len(m.Body) > 0)
	}
}
