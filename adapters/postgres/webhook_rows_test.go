package postgres_test

import (
	"encoding/hex"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/webhook"
)

// A message to fifty endpoints is stored once: one body, and fifty deliveries of it.
func TestFanOutStoresOneBody(t *testing.T) {
	t.Parallel()
	const endpoints = 50
	pool := pgtest.Pool(t)
	s := postgres.New(pool, nil)
	u, first := newWebhookTeam(t, s)
	to := []webhook.EndpointID{first}
	for len(to) < endpoints {
		id := webhook.EndpointID{UUID: uuid.New()}
		require.NoError(t, s.Endpoints().Insert(t.Context(), webhook.Endpoint{ID: id, Team: u.Team, URL: "https://receiver.example.com"}, endpoints))
		to = append(to, id)
	}
	e := event(u, "k")
	e.Data = []byte(`{"diagnosis":"` + marker + `"}`)
	appendEvents(t, s, e)
	require.Equal(t, 1, route(t, s))
	// Where it is, in whatever column.
	bodies := func() (in []string) {
		for _, table := range texts(t, pool, `select relname from`+ourTables+`and not relispartition`) {
			for _, row := range texts(t, pool, `select t::text from healthlab.`+table+` t`) {
				if strings.Contains(row, marker) || strings.Contains(row, hex.EncodeToString([]byte(marker))) {
					in = append(in, table)
				}
			}
		}
		return in
	}
	require.Equal(t, []string{"webhook_event"}, bodies())
	require.Equal(t, endpoints, rows(t, pool, "webhook_delivery"))
	for _, id := range to {
		got := claim(t, s, id)
		require.Equal(t, []uuid.UUID{e.ID}, eventsOf(got))
		require.Contains(t, string(got[0].Body), marker)
		succeed(t, s, got[0])
	}
	require.Equal(t, []string{"webhook_event"}, bodies(), "nor does sending copy it")

	// A copy would be seen, under any name.
	_, err := pool.Exec(t.Context(), `alter table healthlab.webhook_attempt add column other bytea;
		update healthlab.webhook_attempt a set other = e.body from healthlab.webhook_event e where e.id = a.event_id`)
	require.NoError(t, err)
	require.Contains(t, bodies(), "webhook_attempt")
}

// Retention says how many deliveries were unfinished when their messages went, by team:
// they are cancelled, expired.
func TestRetentionCountsWhatExpires(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	clock := &serverClock{t: t, pool: pool}
	var log lockedBuffer
	s := postgres.New(pool, &postgres.Options{Retention: 24 * time.Hour, Log: slog.New(slog.NewTextHandler(&log, nil))})
	u, to := newWebhookTeam(t, s)
	served, other := newWebhookTeam(t, s)
	appendEvents(t, s, event(u, "sent"), event(u, "lane"), event(u, "lane"), event(u, "another lane"), event(served, "k"))
	require.Equal(t, 5, route(t, s))
	succeed(t, s, claim(t, s, other)[0])
	for _, d := range claim(t, s, to)[:1] {
		succeed(t, s, d)
	}
	unfinished := rows(t, pool, "webhook_delivery")
	require.Equal(t, 3, unfinished)
	clock.advance(25 * time.Hour)
	for _, team := range []uuid.UUID{u.Team.UUID, served.Team.UUID} {
		require.NoError(t, postgres.Retain(t.Context(), s, team))
	}
	require.Zero(t, rows(t, pool, "webhook_event"))
	require.Zero(t, rows(t, pool, "webhook_delivery"))
	require.Equal(t, 1, strings.Count(log.String(), "\n"), "a team that got everything is not spoken of")
	require.Contains(t, log.String(), "team="+u.Team.String()+" reason=expired deliveries=3")
	require.NotContains(t, log.String(), served.Team.String())
}
