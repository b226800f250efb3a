package webhooktest

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/webhook"
)

// RunBodies runs the contract of [webhook.Bodies]. newStore returns a fresh, empty store, whose
// Bodies are set, and registers its own cleanup on t.
func RunBodies(t *testing.T, newStore func(t *testing.T) Harness) {
	for _, c := range bodyCases {
		t.Run(c.name, func(t *testing.T) { c.run(t, newStore(t)) })
	}
}

func (b *bench) empty(ended time.Time, n int) int {
	b.t.Helper()
	emptied, err := b.s.Bodies.EmptyBodies(b.t.Context(), b.team, ended, n)
	require.NoError(b.t, err)
	return emptied
}

// hasBody reports whether the body of a message is still stored.
func (b *bench) hasBody(event uuid.UUID) bool {
	b.t.Helper()
	m, err := b.s.Log.Message(b.t.Context(), b.team, event)
	require.NoError(b.t, err)
	require.Equal(b.t, event, m.Event)
	require.NotEmpty(b.t, m.Type)
	return len(m.Body) > 0
}

var bodyCases = []webhookCase{
	{"Delivered", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		old := b.delivered(typeIndependent, "k")
		s.Advance(time.Hour)
		between := b.now()
		s.Advance(time.Hour)
		fresh := b.delivered(typeIndependent, "k")
		other := newBench(t, s)
		foreign := other.delivered(typeIndependent, "k")
		require.Equal(t, 1, b.empty(between, 10))
		require.Equal(t, []bool{false, true, true}, []bool{b.hasBody(old), b.hasBody(fresh), other.hasBody(foreign)})
		require.Zero(t, b.empty(between, 10), "each once")
		s.Advance(time.Hour)
		require.Equal(t, 1, b.empty(b.now(), 10))
		require.False(t, b.hasBody(fresh))
		require.True(t, other.hasBody(foreign))
		teams, err := s.Bodies.Teams(t.Context())
		require.NoError(t, err)
		require.ElementsMatch(t, []healthlab.TeamID{b.team, other.team}, teams)
	}},
	{"TimeOfTheLastAttempt", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		event := b.send(typeIndependent, "k")
		b.record(failed(b.claimOnly(event), time.Minute))
		s.Advance(time.Hour)
		between := b.now()
		s.Advance(time.Hour)
		b.record(succeeded(b.claimOnly(event)))
		require.Zero(t, b.empty(between, 10), "it was delivered later")
		s.Advance(time.Hour)
		require.Equal(t, 1, b.empty(b.now(), 10))
	}},
	{"Unfinished", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		waits := b.write(typeIndependent, "a")
		s.Advance(time.Hour)
		require.Zero(t, b.empty(b.now(), 10), "it is not routed")
		b.route()
		b.record(failed(b.claimOnly(waits), time.Hour))
		s.Advance(2 * time.Hour)
		require.Zero(t, b.empty(b.now(), 10), "it is tried again")
		d := b.claimOnly(waits)
		require.NotEmpty(t, d.Body)
		b.record(succeeded(d))
	}},
	{"WithoutEndpoint", func(t *testing.T, s Harness) {
		b := newBench(t, s, func(e *webhook.Endpoint) { e.FilterTypes = []string{typeLatest} })
		event := b.send(typeIndependent, "k")
		s.Advance(time.Hour)
		require.Equal(t, 1, b.empty(b.now(), 10))
		require.False(t, b.hasBody(event))
	}},
	{"AtMost", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		var all []uuid.UUID
		for range 3 {
			all = append(all, b.delivered(typeIndependent, "k"))
			s.Advance(time.Second)
		}
		require.Equal(t, 2, b.empty(b.now(), 2))
		require.Equal(t, []bool{false, false, true}, []bool{b.hasBody(all[0]), b.hasBody(all[1]), b.hasBody(all[2])})
		require.Equal(t, 1, b.empty(b.now(), 2))
	}},
	{"Replay", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		gone := b.delivered(typeOrdered, "k")
		s.Advance(time.Hour)
		require.Equal(t, 1, b.empty(b.now(), 10))
		kept := b.delivered(typeOrdered, "k")
		_, err := b.replay(webhook.Replay{Event: gone})
		var rule *healthlab.RuleError
		require.ErrorAs(t, err, &rule)
		require.Equal(t, webhook.RuleBodyDeleted, rule.Type)
		require.ErrorIs(t, err, healthlab.Precondition)
		b.nothing()
		require.Equal(t, 1, b.replayOne(kept))
		b.drain()
	}},
	{"Recover", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		lost := b.send(typeIndependent, "a")
		b.record(exhausted(b.claimOnly(lost)))
		s.Advance(time.Hour)
		require.Equal(t, 1, b.empty(b.now(), 10))
		fresh := b.send(typeIndependent, "b")
		b.record(exhausted(b.claimOnly(fresh)))
		done, err := b.replay(webhook.Replay{Since: longAgo})
		require.NoError(t, err)
		require.Equal(t, 1, done.Queued)
		b.claimOnly(fresh)
	}},
	{"Ended", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		event := b.delivered(typeIndependent, "k")
		s.Advance(time.Hour)
		at, ctx := b.now(), conformance.Ended(t)
		require.ErrorIs(t, conformance.ErrOf(s.Bodies.EmptyBodies(ctx, b.team, at, 10)), ctx.Err())
		require.ErrorIs(t, conformance.ErrOf(s.Bodies.Teams(ctx)), ctx.Err())
		require.True(t, b.hasBody(event))
	}},
}
