package postgres_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/webhook"
)

func TestOutboxRefuses(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := postgres.New(pool, sealed())
	u := newPerson(t, s)
	good := event(u, "k")
	require.NoError(t, s.Outbox().Append(t.Context(), []healthlab.Event{good}))
	for what, c := range map[string]struct {
		spoil func(*healthlab.Event)
		want  error
	}{
		"no id":             {func(e *healthlab.Event) { e.ID = uuid.Nil }, healthlab.Invalid},
		"a taken id":        {func(e *healthlab.Event) { e.ID = good.ID }, healthlab.Conflict},
		"no team":           {func(e *healthlab.Event) { e.Team = healthlab.TeamID{} }, healthlab.Invalid},
		"a type of no form": {func(e *healthlab.Event) { e.Type = "No Type" }, healthlab.Invalid},
		"no JSON":           {func(e *healthlab.Event) { e.Data = []byte(`{"n":`) }, healthlab.Invalid},
		"NUL in the key":    {func(e *healthlab.Event) { e.Key = "a\x00" }, healthlab.Invalid},
	} {
		bad, fine := event(u, "k"), event(u, "k")
		c.spoil(&bad)
		require.ErrorIs(t, s.Outbox().Append(t.Context(), []healthlab.Event{fine, bad}), c.want, what)
		require.Equal(t, 1, rows(t, pool, "webhook_event"), what)
		require.Equal(t, 1, rows(t, pool, "webhook_pending"), what)
	}
	require.NoError(t, s.Outbox().Append(t.Context(), nil))
	requireIdle(t, pool)
}

// The number that a body contains is the one that was drawn.
func TestSequenceInTheBody(t *testing.T) {
	t.Parallel()
	s := postgres.New(pgtest.Pool(t), &postgres.Options{Envelope: webhook.Envelope{Sequence: true}})
	u := newPerson(t, s)
	events := []healthlab.Event{event(u, "k"), event(u, "l"), event(u, "k"), event(u, "")}
	require.NoError(t, s.Outbox().Append(t.Context(), events[:1]))
	require.NoError(t, s.Outbox().Append(t.Context(), events[1:]))
	for i, want := range []string{`"sequence":1}`, `"sequence":1}`, `"sequence":2}`, `"client_user_id":"` + u.ClientUserID + `"}`} {
		m, err := s.WebhookLog().Message(t.Context(), u.Team, events[i].ID)
		require.NoError(t, err)
		require.Contains(t, string(m.Body), want)
	}
}

// A reader sees no number of a key before the lower ones, and the order of what is
// pending is that of the numbers.
func TestSeqNeverOvertakes(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := postgres.New(pool, sealed())
	u := newPerson(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	var writers, readers sync.WaitGroup
	readers.Go(func() {
		for ctx.Err() == nil {
			got, err := pool.Query(t.Context(), `select e.seq from healthlab.webhook_event e join healthlab.webhook_pending p on p.event_id = e.id order by p.n`)
			if err != nil {
				t.Error(err)
				return
			}
			var want int64
			for got.Next() {
				var seq int64
				want++
				if err := got.Scan(&seq); err != nil || seq != want {
					t.Error("number", seq, "where", want, "should be", err)
				}
			}
		}
	})
	for range 8 {
		writers.Go(func() {
			for range 10 {
				if err := s.Outbox().Append(t.Context(), []healthlab.Event{event(u, "k"), event(u, "k")}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	cancel()
	readers.Wait()
	seqs := texts(t, pool, `select seq::text from healthlab.webhook_event`)
	slices.Sort(seqs)
	require.Len(t, slices.Compact(seqs), 160)
}
