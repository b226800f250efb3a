package webhooktest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

func (b *bench) replay(r webhook.Replay) (webhook.Replayed, error) {
	r.Team, r.Endpoint, r.Modes = b.team, b.to, modes
	return b.s.Deliveries.Replay(b.t.Context(), r)
}

func (b *bench) replayOne(event uuid.UUID) int {
	b.t.Helper()
	done, err := b.replay(webhook.Replay{Event: event})
	require.NoError(b.t, err)
	return done.Queued
}

func (b *bench) delivered(eventType, key string) uuid.UUID {
	b.t.Helper()
	e := b.send(eventType, key)
	b.record(succeeded(b.claimOnly(e)))
	return e
}

// drain accepts all claimable deliveries of the endpoint one by one, and returns their events in that order.
func (b *bench) drain() []uuid.UUID {
	b.t.Helper()
	var out []uuid.UUID
	for got := b.claimMax(1); len(got) > 0; got = b.claimMax(1) {
		out = append(out, got[0].Event)
		b.record(succeeded(got[0]))
	}
	return out
}

var replayCases = []webhookCase{
	{"Latest", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		event := b.delivered(typeLatest, "k")
		before, err := s.Log.Message(t.Context(), b.team, event)
		require.NoError(t, err)
		require.Equal(t, 1, b.replayOne(event))
		d := b.claimOnly(event)
		require.Equal(t, webhook.TriggerRetry, d.Trigger)
		require.Zero(t, d.Attempts)
		require.Equal(t, before.Body, d.Body)
	}},
	{"LatestRefusedIfNewerExists", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		old := b.delivered(typeLatest, "k")
		fresh := b.delivered(typeLatest, "k")
		_, err := b.replay(webhook.Replay{Event: old})
		require.ErrorIs(t, err, healthlab.Precondition)
		require.ErrorContains(t, err, webhook.MessageID(fresh))
		b.nothing()
	}},
	{"LatestOfWhatTheEndpointTakes", func(t *testing.T, s Harness) {
		b := newBench(t, s, func(e *webhook.Endpoint) { e.FilterTypes = []string{typeLatest} })
		event := b.delivered(typeLatest, "k")
		b.send(typeOrdered, "k") // newer, but not sent to this endpoint
		require.Equal(t, 1, b.replayOne(event))
		b.claimOnly(event)
	}},
	{"LatestThatWaitsIsDueAtOnce", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		event := b.send(typeLatest, "k")
		b.record(failed(b.claimOnly(event), time.Hour))
		b.replayOne(event)
		d := b.claimOnly(event)
		require.Zero(t, d.Attempts)
		b.record(succeeded(d))
		b.nothing()
	}},
	{"OrderedRewinds", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		var all []uuid.UUID
		for range 4 {
			all = append(all, b.delivered(typeOrdered, "k"))
		}
		for range 2 {
			all = append(all, b.send(typeOrdered, "k"))
		}
		b.record(failed(b.claimOnly(all[4]), time.Hour))
		require.Equal(t, 5, b.replayOne(all[1]))
		require.Equal(t, all[1:], b.drain(), "those that waited are not overtaken")
	}},
	{"Independent", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		event := b.delivered(typeIndependent, "k")
		b.delivered(typeIndependent, "k")
		require.Equal(t, 1, b.replayOne(event))
		require.Equal(t, []uuid.UUID{event}, b.drain())
	}},
	{"RefusedWhileSending", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		for _, eventType := range []string{typeLatest, typeOrdered, typeIndependent} {
			event := b.send(eventType, eventType)
			d := b.claimOnly(event)
			_, err := b.replay(webhook.Replay{Event: event})
			require.ErrorIs(t, err, healthlab.Precondition)
			require.Empty(t, b.record(succeeded(d)).Lost, "its lease is not touched")
			b.nothing()
		}
	}},
	{"RefusedWhileDisabled", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		event := b.delivered(typeLatest, "k")
		b.update(func(e *webhook.Endpoint) { e.Disabled = true })
		_, err := b.replay(webhook.Replay{Event: event})
		require.ErrorIs(t, err, healthlab.Precondition)
		_, err = b.replay(webhook.Replay{Since: longAgo})
		require.ErrorIs(t, err, healthlab.Precondition)
	}},
	{"RefusedForAnotherType", func(t *testing.T, s Harness) {
		b := newBench(t, s, func(e *webhook.Endpoint) { e.FilterTypes = []string{typeLatest} })
		event := b.send(typeOrdered, "k")
		_, err := b.replay(webhook.Replay{Event: event})
		require.ErrorIs(t, err, healthlab.Precondition)
	}},
	{"NotFound", func(t *testing.T, s Harness) {
		b, other := newBench(t, s), newBench(t, s)
		_, err := b.replay(webhook.Replay{Event: id()})
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = b.replay(webhook.Replay{Event: other.delivered(typeLatest, "k")})
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = s.Deliveries.Replay(t.Context(), webhook.Replay{
			Team: b.team, Endpoint: other.to, Modes: modes, Event: b.delivered(typeLatest, "k"),
		})
		require.ErrorIs(t, err, healthlab.NotFound)
	}},
}

// recovered recovers all lost messages, with page messages per call, and returns the number of queued deliveries.
func (b *bench) recovered(page int) int {
	b.t.Helper()
	n := 0
	r := webhook.Replay{Since: longAgo, Max: page}
	for {
		done, err := b.replay(r)
		require.NoError(b.t, err)
		n += done.Queued
		if done.Next == "" {
			return n
		}
		r.After = done.Next
	}
}

var recoverCases = []webhookCase{
	{"FailedAndCancelled", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		lost := b.send(typeIndependent, "a")
		b.record(exhausted(b.claimOnly(lost)))
		dropped := b.send(typeIndependent, "b")
		b.record(cancelled(b.claimOnly(dropped), webhook.ReasonExpired))
		b.delivered(typeIndependent, "c")
		waits := b.send(typeIndependent, "d")
		b.record(failed(b.claimOnly(waits), time.Hour))
		require.Equal(t, 2, b.recovered(0))
		got := b.claim()
		require.ElementsMatch(t, []uuid.UUID{lost, dropped}, events(got))
		require.Equal(t, webhook.TriggerRecover, got[0].Trigger)
		require.Zero(t, b.recovered(0), "what is queued already is not queued twice")
	}},
	{"WhileItWasDisabled", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		waits := b.send(typeOrdered, "k")
		b.update(func(e *webhook.Endpoint) { e.Disabled = true })
		require.Equal(t, "0 cancelled disabled", b.lastAttempt(waits))
		missed := b.send(typeOrdered, "k")
		b.update(func(e *webhook.Endpoint) { e.Disabled = false })
		b.nothing()
		b.recovered(0)
		require.Equal(t, []uuid.UUID{waits, missed}, b.drain())
	}},
	{"NotWhatIsNotRoutedYet", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		event := b.write(typeIndependent, "k")
		require.Zero(t, b.recovered(0))
		b.route()
		require.Equal(t, []uuid.UUID{event}, b.drain())
	}},
	{"OrderedFromTheFirstLost", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		b.delivered(typeOrdered, "k")
		lost := b.send(typeOrdered, "k")
		b.record(exhausted(b.claimOnly(lost)))
		then := b.delivered(typeOrdered, "k")
		also := b.send(typeOrdered, "k")
		b.record(exhausted(b.claimOnly(also)))
		require.Equal(t, 3, b.recovered(1))
		require.Equal(t, []uuid.UUID{lost, then, also}, b.drain())
		require.Zero(t, b.recovered(1))
	}},
	{"OrderedEndsWithTheNewest", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		lost := b.send(typeOrdered, "k")
		b.record(exhausted(b.claimOnly(lost)))
		newest := b.send(typeOrdered, "k")
		d := b.claimOnly(newest) // also while it is being sent
		b.recovered(0)
		b.nothing()
		require.Empty(t, b.record(succeeded(d)).Lost)
		require.Equal(t, []uuid.UUID{lost, newest}, b.drain())
	}},
	{"LatestOnlyTheNewest", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		old := b.send(typeLatest, "k")
		b.record(exhausted(b.claimOnly(old)))
		newest := b.send(typeLatest, "k")
		b.record(exhausted(b.claimOnly(newest)))
		gone := b.send(typeLatest, "l")
		b.record(exhausted(b.claimOnly(gone)))
		b.delivered(typeLatest, "l")
		require.Equal(t, 1, b.recovered(1))
		require.Equal(t, []uuid.UUID{newest}, b.drain())
	}},
	{"SinceATime", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		early := b.send(typeIndependent, "k")
		b.record(exhausted(b.claimOnly(early)))
		s.Advance(time.Hour)
		since := b.now()
		late := b.send(typeIndependent, "k")
		b.record(exhausted(b.claimOnly(late)))
		done, err := b.replay(webhook.Replay{Since: since})
		require.NoError(t, err)
		require.Equal(t, 1, done.Queued)
		require.Equal(t, []uuid.UUID{late}, b.drain())
	}},
	{"UntilATime", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		early := b.send(typeIndependent, "k")
		b.record(exhausted(b.claimOnly(early)))
		s.Advance(time.Hour)
		until := b.now()
		b.record(exhausted(b.claimOnly(b.send(typeIndependent, "k"))))
		done, err := b.replay(webhook.Replay{Since: longAgo, Until: until})
		require.NoError(t, err)
		require.Equal(t, 1, done.Queued)
		require.Equal(t, []uuid.UUID{early}, b.drain())
	}},
	{"Pages", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		var want []uuid.UUID
		for i := range 10 {
			event := b.send(typeIndependent, fmt.Sprint(i))
			b.record(exhausted(b.claimOnly(event)))
			want = append(want, event)
		}
		done, err := b.replay(webhook.Replay{Since: longAgo, Max: 4})
		require.NoError(t, err)
		require.Equal(t, 4, done.Queued)
		require.NotEmpty(t, done.Next)
		require.Equal(t, 6, b.recovered(4))
		require.ElementsMatch(t, want, b.drain())
		_, err = b.replay(webhook.Replay{Since: longAgo, After: "not a cursor"})
		require.ErrorIs(t, err, healthlab.Invalid)
	}},
}
