package webhooktest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/webhook"
)

var claimCases = []webhookCase{
	{"AtMostSoMany", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		second := b.endpoint()
		for i := range 5 {
			b.send(typeLatest, fmt.Sprint(i))
		}
		c, err := s.Deliveries.Claim(t.Context(), webhook.Claim{
			Quotas: []webhook.Quota{{Endpoint: b.to, Max: 2}, {Endpoint: second, Max: 3}}, Lease: lease,
		})
		require.NoError(t, err)
		count := map[webhook.EndpointID]int{}
		for _, d := range c.Deliveries {
			count[d.Endpoint]++
		}
		require.Equal(t, map[webhook.EndpointID]int{b.to: 2, second: 3}, count)
		require.Len(t, b.claim(), 3)
	}},
	{"LongestDueFirst", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		var all []uuid.UUID
		for i := range 4 {
			all = append(all, b.send(typeLatest, fmt.Sprint(i)))
		}
		delays := map[uuid.UUID]time.Duration{all[0]: 3 * time.Minute, all[1]: time.Minute, all[2]: 4 * time.Minute, all[3]: 2 * time.Minute}
		for _, d := range b.claim() {
			b.record(failed(d, delays[d.Event]))
		}
		s.Advance(time.Hour)
		for _, want := range []uuid.UUID{all[1], all[3], all[0], all[2]} {
			require.Equal(t, []uuid.UUID{want}, events(b.claimMax(1)))
		}
	}},
	{"SaysEverything", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		before := b.now()
		event := b.send(typeLatest, "k")
		d := b.claimOnly(event)
		require.NotZero(t, d.Lease.Token)
		require.NotEmpty(t, d.Body)
		require.WithinRange(t, d.QueuedAt, before, b.now())
		require.Equal(t, webhook.Delivery{
			Lease: webhook.Lease{Team: b.team, Delivery: d.Delivery, Token: d.Token}, Endpoint: b.to, Event: event, Type: typeLatest, Key: "k", Seq: 1,
			At: longAgo, Body: d.Body, Trigger: webhook.TriggerEvent, Starts: 1, QueuedAt: d.QueuedAt, Revision: b.get().Revision,
		}, d)
		b.record(failed(d, 0))
		d = b.claimOnly(event)
		require.Equal(t, 1, d.Attempts)
		require.Equal(t, 1, d.Starts)
		require.WithinRange(t, d.FirstFailedAt, before, b.now())
	}},
	{"RevisionOfTheEndpoint", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		for _, pauseStep := range []int{0, 0, 1, 1, 0} { // on probation, Claim chooses the delivery in another way
			b.update(func(e *webhook.Endpoint) { e.Health.PauseStep = pauseStep })
			d := b.claimOnly(b.send(typeLatest, "k"))
			require.Equal(t, b.get().Revision, d.Revision)
			b.record(succeeded(d))
		}
	}},
	{"Trace", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		const outer, own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		ctx := healthlab.WithTrace(t.Context(), outer)
		events := []healthlab.Event{b.event(typeLatest, "a"), b.event(typeLatest, "b")}
		events[1].Trace = own
		require.NoError(t, s.Outbox.Append(ctx, events))
		b.write(typeLatest, "c")
		b.route()
		got := map[string]string{}
		for _, d := range b.claim() {
			got[d.Key] = d.Trace
		}
		require.Equal(t, map[string]string{"a": outer, "b": own, "c": ""}, got)
	}},
	{"LeaseEnds", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		event := b.send(typeLatest, "k")
		first := b.claimOnly(event)
		s.Advance(lease - time.Second)
		b.nothing()
		s.Advance(time.Second)
		second := b.claimOnly(event)
		require.NotEqual(t, first.Token, second.Token)
		require.Equal(t, 0, second.Attempts, "no outcome, no attempt")
		require.Equal(t, 2, second.Starts)
	}},
	{"NeverTwice", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		n := prove.Count(200, 2000)
		for i := range n {
			b.write(typeLatest, fmt.Sprint(i))
		}
		b.route()
		var mu sync.Mutex
		seen, tokens := map[uuid.UUID]int{}, map[int64]bool{}
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for got := b.claimMax(3); len(got) > 0; got = b.claimMax(3) {
					mu.Lock()
					for _, d := range got {
						seen[d.Event]++
						tokens[d.Token] = true
					}
					mu.Unlock()
				}
			})
		}
		group.Wait()
		for _, d := range b.claim() {
			seen[d.Event]++ // deliveries that one claim skipped because another had locked them
			tokens[d.Token] = true
		}
		require.Len(t, seen, n)
		require.Len(t, tokens, n)
	}},
	{"PausedEndpoint", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		event := b.send(typeLatest, "k")
		until := b.now().Add(time.Hour)
		b.update(func(e *webhook.Endpoint) { e.Health.PausedUntil = until })
		b.nothing()
		b.notDue()
		s.Advance(time.Hour)
		b.isDue()
		b.claimOnly(event)
	}},
	{"ProbationSendsOne", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		for _, key := range []string{"a", "b", "c"} {
			b.send(typeLatest, key)
		}
		for _, d := range b.claim() {
			if d.Key != "b" {
				b.record(failed(d, 0))
				continue
			}
			s.Advance(time.Second) // so that this delivery is due last
			b.record(webhook.Outcome{Delivery: d, State: webhook.Retrying})
		}
		b.update(func(e *webhook.Endpoint) { e.Health.PauseStep = 1 })
		got := b.claim()
		require.Len(t, got, 1)
		require.Equal(t, "b", got[0].Key, "the one with the fewest attempts")
		b.nothing()
		b.notDue()
		b.record(failed(got[0], time.Hour))
		require.Len(t, b.claim(), 1)
	}},
	{"UnknownEndpoint", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		require.Empty(t, b.claimOf(webhook.EndpointID{UUID: id()}, most))
	}},
	{"Due", func(t *testing.T, s Harness) {
		b, quiet := newBench(t, s), newBench(t, s)
		b.notDue()
		event := b.send(typeLatest, "k")
		b.isDue()
		quiet.notDue()
		b.record(failed(b.claimOnly(event), time.Minute))
		b.notDue()
		s.Advance(time.Minute)
		b.isDue()
		d := b.claimOnly(event)
		b.notDue()
		s.Advance(lease)
		b.isDue()
		b.record(succeeded(d))
		b.notDue()
	}},
}

func (b *bench) due() []webhook.EndpointID {
	b.t.Helper()
	ids, err := b.s.Deliveries.Due(b.t.Context())
	require.NoError(b.t, err)
	return ids
}

func (b *bench) isDue()  { b.t.Helper(); require.Contains(b.t, b.due(), b.to) }
func (b *bench) notDue() { b.t.Helper(); require.NotContains(b.t, b.due(), b.to) }

var outcomeCases = []webhookCase{
	{"WrongToken", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		event := b.send(typeLatest, "k")
		stale := b.claimOnly(event)
		s.Advance(lease)
		d := b.claimOnly(event)
		require.Equal(t, []webhook.Lease{stale.Lease}, b.record(succeeded(stale)).Lost)
		require.Equal(t, "1 waiting lease_lost", b.lastAttempt(event))
		b.nothing()
		require.Empty(t, b.record(failed(d, 0)).Lost)
		require.Equal(t, 1, b.claimOnly(event).Attempts)
	}},
	{"LateButStillMine", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		event := b.send(typeLatest, "k")
		d := b.claimOnly(event)
		s.Advance(lease + time.Second)
		require.Empty(t, b.record(succeeded(d)).Lost)
		require.Equal(t, "1 succeeded ", b.lastAttempt(event))
		b.nothing()
	}},
	{"Twice", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		event := b.send(typeOrdered, "k")
		d := b.claimOnly(event)
		b.record(failed(d, 0))
		b.record(failed(d, 0))
		page, err := s.Log.Attempts(t.Context(), webhook.AttemptQuery{Team: b.team, Event: event})
		require.NoError(t, err)
		require.Len(t, page.Attempts, 1)
		require.Equal(t, 1, b.claimOnly(event).Attempts)
	}},
	{"Batch", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		var all []uuid.UUID
		for i := range 4 {
			all = append(all, b.send(typeOrdered, fmt.Sprint(i)))
		}
		next := b.send(typeOrdered, "0")
		by := map[uuid.UUID]webhook.Delivery{}
		for _, d := range b.claim() {
			by[d.Event] = d
		}
		stale := by[all[3]]
		stale.Token = -stale.Token
		recorded := b.record(succeeded(by[all[0]]), failed(by[all[1]], time.Hour), exhausted(by[all[2]]), succeeded(stale))
		require.Equal(t, []webhook.Lease{stale.Lease}, recorded.Lost)
		require.Equal(t, "1 succeeded ", b.lastAttempt(all[0]))
		require.Equal(t, "1 waiting ", b.lastAttempt(all[1]))
		require.Equal(t, "1 failed exhausted", b.lastAttempt(all[2]))
		b.claimOnly(next)
	}},
	{"DueAfterTheDelay", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		event := b.send(typeLatest, "k")
		b.record(failed(b.claimOnly(event), 10*time.Minute))
		s.Advance(10*time.Minute - time.Second)
		b.nothing()
		s.Advance(time.Second)
		b.claimOnly(event)
	}},
	{"QuietHoldsTheNextOne", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		d := b.claimOnly(b.send(typeLatest, "k"))
		fresh := b.send(typeLatest, "k")
		o := failed(d, time.Hour)
		o.Class, o.Quiet = webhook.ClassTimeout, 5*time.Second
		b.record(o)
		b.nothing()
		s.Advance(5 * time.Second)
		b.claimOnly(fresh)
	}},
	{"QuietHoldsTheOneThatReplaces", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		o := failed(b.claimOnly(b.send(typeLatest, "k")), time.Hour)
		o.Class, o.Quiet = webhook.ClassTimeout, 5*time.Second
		b.record(o)
		fresh := b.send(typeLatest, "k")
		b.nothing()
		s.Advance(5 * time.Second)
		b.claimOnly(fresh)
	}},
	{"EventsWithTheOutcome", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		second := b.endpoint()
		o := exhausted(b.claimOnly(b.send(typeLatest, "k")))
		about := b.event(typeIndependent, b.to.String())
		o.Events = []healthlab.Event{about}
		b.record(o)
		b.route()
		require.Contains(t, events(b.claimOf(second, most)), about.ID)
		again := b.event(typeIndependent, b.to.String())
		o.Events = []healthlab.Event{again}
		b.record(o) // the lease has ended
		b.route()
		require.Empty(t, events(b.claimOf(second, most)))
	}},
	{"UnsentCountsNoAttempt", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		event := b.send(typeLatest, "k")
		b.record(webhook.Outcome{Delivery: b.claimOnly(event), State: webhook.Failed, Reason: webhook.ReasonExpired})
		require.Equal(t, "0 failed expired", b.lastAttempt(event))
	}},
	{"NotAnOutcome", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		d := b.claimOnly(b.send(typeLatest, "k"))
		_, err := s.Deliveries.RecordOutcomes(t.Context(), []webhook.Outcome{{Delivery: d, State: webhook.Sending}})
		require.ErrorIs(t, err, healthlab.Invalid)
	}},
}

var releaseCases = []webhookCase{
	{"CountsNothing", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		event := b.send(typeLatest, "k")
		d := b.claimOnly(event)
		require.NoError(t, s.Deliveries.Release(t.Context(), []webhook.Released{{Lease: d.Lease}}))
		again := b.claimOnly(event)
		require.Zero(t, again.Attempts)
		require.Equal(t, 1, again.Starts)
		require.Equal(t, "nothing", b.lastAttempt(event))
	}},
	{"AfterADelay", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		event := b.send(typeLatest, "k")
		d := b.claimOnly(event)
		require.NoError(t, s.Deliveries.Release(t.Context(), []webhook.Released{{Lease: d.Lease, Delay: time.Minute}}))
		b.nothing()
		s.Advance(time.Minute)
		b.claimOnly(event)
	}},
	{"StaleLease", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		event := b.send(typeLatest, "k")
		stale := b.claimOnly(event)
		s.Advance(lease)
		b.claimOnly(event)
		require.NoError(t, s.Deliveries.Release(t.Context(), []webhook.Released{{Lease: stale.Lease}}))
		b.nothing()
	}},
}

var logCases = []webhookCase{
	{"Message", func(t *testing.T, s Harness) {
		b, other := newBench(t, s), newBench(t, s)
		e := b.event(typeLatest, "k")
		e.At = e.At.In(time.FixedZone("", 3600))
		require.NoError(t, s.Outbox.Append(t.Context(), []healthlab.Event{e}))
		m, err := s.Log.Message(t.Context(), b.team, e.ID)
		require.NoError(t, err)
		require.Equal(t, webhook.Message{
			Event: e.ID, Type: e.Type, Team: e.Team, User: e.User, Key: "k", Seq: 1, At: longAgo, Body: m.Body,
		}, m)
		m.Body[0] = 'X'
		m, err = s.Log.Message(t.Context(), b.team, e.ID)
		require.NoError(t, err)
		require.Equal(t, byte('{'), m.Body[0])
		_, err = s.Log.Message(t.Context(), other.team, e.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = s.Log.Message(t.Context(), b.team, id())
		require.ErrorIs(t, err, healthlab.NotFound)
	}},
	{"Attempts", func(t *testing.T, s Harness) {
		b, other := newBench(t, s), newBench(t, s)
		event := b.send(typeOrdered, "k")
		for range 5 {
			b.record(failed(b.claimOnly(event), 0))
		}
		o := succeeded(b.claimOnly(event))
		o.Head, o.Response = []byte("HTTP/1.1 200 OK"), []byte("thanks")
		before := b.now()
		b.record(o)
		b.send(typeOrdered, "l")
		q := webhook.AttemptQuery{Team: b.team, Endpoint: b.to, Event: event, Size: 4}
		page, err := s.Log.Attempts(t.Context(), q)
		require.NoError(t, err)
		require.Len(t, page.Attempts, 4)
		last := page.Attempts[0]
		require.WithinRange(t, last.At, before, b.now())
		require.Equal(t, webhook.Attempt{
			At: last.At, Endpoint: b.to, Event: event, Type: typeOrdered, Delivery: o.Delivery.Delivery, N: 6,
			Trigger: webhook.TriggerEvent, Status: 200, Class: webhook.ClassOK, Duration: time.Millisecond,
			State: webhook.Succeeded, Head: []byte("HTTP/1.1 200 OK"), Response: []byte("thanks"),
		}, last)
		q.Cursor = page.Next
		rest, err := s.Log.Attempts(t.Context(), q)
		require.NoError(t, err)
		require.Empty(t, rest.Next)
		var ns []int
		for _, a := range slices.Concat(page.Attempts, rest.Attempts) {
			ns = append(ns, a.N)
		}
		require.Equal(t, []int{6, 5, 4, 3, 2, 1}, ns)
		empty, err := s.Log.Attempts(t.Context(), webhook.AttemptQuery{Team: other.team, Endpoint: b.to, Event: event})
		require.NoError(t, err)
		require.Empty(t, empty.Attempts)
		_, err = s.Log.Attempts(t.Context(), webhook.AttemptQuery{Team: b.team, Cursor: "not a cursor"})
		require.ErrorIs(t, err, healthlab.Invalid)
	}},
}
