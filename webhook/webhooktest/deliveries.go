package webhooktest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/webhook"
)

// RunDeliveries runs the contract of webhook.Outbox, webhook.Deliveries and
// webhook.Log. newStore returns a fresh, empty store and registers its own cleanup.
func RunDeliveries(t *testing.T, newStore func(t *testing.T) Harness) {
	for _, group := range []struct {
		name  string
		cases []webhookCase
	}{
		{"Append", appendCases},
		{"Route", routeCases},
		{"Lanes", laneCases},
		{"Superseding", supersedingCases},
		{"Claim", claimCases},
		{"RecordOutcomes", outcomeCases},
		{"Release", releaseCases},
		{"Replay", replayCases},
		{"Recover", recoverCases},
		{"Log", logCases},
	} {
		t.Run(group.name, func(t *testing.T) {
			if group.name == "Append" {
				for _, c := range outboxCases {
					t.Run(c.name, func(t *testing.T) { c.run(t, newStore(t).outbox()) })
				}
			}
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) { c.run(t, newStore(t)) })
			}
		})
	}
}

// webhookCase is one test case of the suite.
type webhookCase struct {
	name string
	run  func(t *testing.T, s Harness)
}

var appendCases = []webhookCase{
	{"BodyIsMadeOnce", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		e := b.event(typeLatest, "k")
		e.Data = []byte("{\"b\":1.50, \"a\":\"é\\u0001\"}")
		require.NoError(t, s.Outbox.Append(t.Context(), []healthlab.Event{e}))
		want, err := webhook.Envelope{}.Render(e, nil)
		require.NoError(t, err)
		m, err := s.Log.Message(t.Context(), b.team, e.ID)
		require.NoError(t, err)
		require.Equal(t, string(want), string(m.Body))
		b.route()
		for range 2 {
			d := b.claimOnly(e.ID)
			require.Equal(t, string(want), string(d.Body))
			b.record(failed(d, 0))
		}
	}},
	{"RefusedIsNotRouted", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		good, bad := b.event(typeLatest, "k"), b.event(typeLatest, "k")
		bad.Data = []byte("[]")
		require.ErrorIs(t, s.Outbox.Append(t.Context(), []healthlab.Event{good, bad}), healthlab.Invalid)
		b.route()
		b.nothing()
	}},
	{"CancelledIsNotRouted", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, s.Outbox.Append(ctx, []healthlab.Event{b.event(typeLatest, "k")}), context.Canceled)
		_, err := s.Deliveries.Route(ctx, modes, most)
		require.ErrorIs(t, err, context.Canceled)
		b.route()
		b.nothing()
	}},
	{"SeqIsInOrderUnderWriters", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		writers, each := 8, prove.Count(25, 250)
		var group sync.WaitGroup
		for range writers {
			group.Go(func() {
				for range each {
					b.write(typeOrdered, "k")
				}
			})
		}
		for routed := 0; routed < writers*each; {
			got, err := s.Deliveries.Route(t.Context(), modes, 7)
			require.NoError(t, err)
			routed += got.Events
		}
		group.Wait()
		for want := range int64(writers * each) {
			got := b.claim()
			require.Len(t, got, 1)
			require.Equal(t, want+1, got[0].Seq)
			b.record(succeeded(got[0]))
		}
		b.nothing()
	}},
}

var routeCases = []webhookCase{
	{"Filter", func(t *testing.T, s Harness) {
		b := newBench(t, s, func(e *webhook.Endpoint) { e.FilterTypes = []string{typeOrdered} })
		b.send(typeLatest, "k")
		want := b.send(typeOrdered, "l")
		b.claimOnly(want)
	}},
	{"DisabledEndpoint", func(t *testing.T, s Harness) {
		b := newBench(t, s, func(e *webhook.Endpoint) { e.Disabled, e.DisabledReason = true, webhook.DisabledManual })
		b.send(typeLatest, "k")
		b.nothing()
		b.update(func(e *webhook.Endpoint) { e.Disabled = false })
		b.nothing()
	}},
	{"OtherTeam", func(t *testing.T, s Harness) {
		b, other := newBench(t, s), newBench(t, s)
		want := b.send(typeLatest, "k")
		other.nothing()
		b.claimOnly(want)
	}},
	{"NotAboutItself", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		second := b.endpoint()
		want := b.send(typeIndependent, b.to.String())
		b.nothing()
		require.Equal(t, []uuid.UUID{want}, events(b.claimOf(second, most)))
	}},
	{"FanOut", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		all := []webhook.EndpointID{b.to}
		for range 4 {
			all = append(all, b.endpoint())
		}
		want := b.send(typeLatest, "k")
		for _, to := range all {
			require.Equal(t, []uuid.UUID{want}, events(b.claimOf(to, most)))
		}
	}},
	{"AtMostSoMany", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		for range 5 {
			b.write(typeIndependent, "k")
		}
		for _, want := range []int{2, 2, 1, 0} {
			routed, err := s.Deliveries.Route(t.Context(), modes, 2)
			require.NoError(t, err)
			require.Equal(t, want, routed.Events)
		}
		require.Len(t, b.claim(), 5)
	}},
	{"SaysWhere", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		second := b.endpoint()
		b.endpoint(func(e *webhook.Endpoint) { e.FilterTypes = []string{"test.other"} })
		for range 2 {
			b.write(typeOrdered, "k")
		}
		routed, err := s.Deliveries.Route(t.Context(), modes, most)
		require.NoError(t, err)
		require.ElementsMatch(t, []webhook.EndpointID{b.to, second}, routed.Endpoints)
	}},
	{"OneLaneInOneBatch", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		var want []uuid.UUID
		for range 4 {
			want = append(want, b.write(typeOrdered, "k"))
		}
		b.route()
		for _, e := range want {
			b.record(succeeded(b.claimOnly(e)))
		}
	}},
	{"UnknownTypeIsOrdered", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		first, second := b.write("test.unknown.changed", "k"), b.write("test.unknown.changed", "k")
		b.route()
		b.record(succeeded(b.claimOnly(first)))
		b.claimOnly(second)
	}},
	{"TwoRouters", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		n := prove.Count(200, 2000)
		want := make([]uuid.UUID, n)
		for i := range want {
			want[i] = b.write(typeOrdered, fmt.Sprint("k", i%10))
		}
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() { b.route() })
		}
		group.Wait()
		b.route()
		last := map[string]int64{}
		seen := map[uuid.UUID]bool{}
		for got := b.claim(); len(got) > 0; got = b.claim() {
			for _, d := range got {
				require.False(t, seen[d.Event])
				seen[d.Event] = true
				require.Equal(t, last[d.Key]+1, d.Seq)
				last[d.Key] = d.Seq
				b.record(succeeded(d))
			}
		}
		require.Len(t, seen, n)
	}},
}

var laneCases = []webhookCase{
	{"OneHead", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		first, second := b.send(typeOrdered, "k"), b.send(typeOrdered, "k")
		d := b.claimOnly(first)
		require.True(t, d.Blocking)
		b.nothing()
		b.record(succeeded(d))
		require.False(t, b.claimOnly(second).Blocking)
	}},
	{"FailureHoldsTheLane", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		first, second := b.send(typeOrdered, "k"), b.send(typeOrdered, "k")
		b.record(failed(b.claimOnly(first), time.Hour))
		b.nothing()
		s.Advance(time.Hour)
		b.record(exhausted(b.claimOnly(first)))
		b.claimOnly(second)
	}},
	{"CancelPromotes", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		first, second := b.send(typeOrdered, "k"), b.send(typeOrdered, "k")
		b.record(cancelled(b.claimOnly(first), webhook.ReasonExpired))
		b.claimOnly(second)
	}},
	{"KeysDoNotWaitForEachOther", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		want := []uuid.UUID{b.send(typeOrdered, "k"), b.send(typeOrdered, "K"), b.send(typeOrdered, "k ")}
		require.ElementsMatch(t, want, events(b.claim()))
	}},
	{"EndpointsDoNotWaitForEachOther", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		second := b.endpoint()
		first := b.send(typeOrdered, "k")
		next := b.send(typeOrdered, "k")
		b.claimOnly(first)
		d := b.claimOf(second, most)[0]
		b.record(succeeded(d))
		require.Equal(t, []uuid.UUID{next}, events(b.claimOf(second, most)))
	}},
	{"IndependentWaitsForNothing", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		want := []uuid.UUID{b.send(typeIndependent, "k"), b.send(typeIndependent, "k"), b.send(typeLatest, ""), b.send(typeOrdered, "")}
		require.ElementsMatch(t, want, events(b.claim()))
	}},
	{"UserScope", func(t *testing.T, s Harness) {
		b := newBench(t, s, func(e *webhook.Endpoint) { e.OrderScope = webhook.OrderUser })
		a, k, z := b.send(typeOrdered, "a"), b.send(typeLatest, "k"), b.send(typeOrdered, "z")
		for _, want := range []uuid.UUID{a, k, z} {
			b.record(succeeded(b.claimOnly(want)))
		}
	}},
	{"UserScopeSupersedesPerKey", func(t *testing.T, s Harness) {
		b := newBench(t, s, func(e *webhook.Endpoint) { e.OrderScope = webhook.OrderUser })
		head := b.send(typeOrdered, "a")
		old := b.send(typeLatest, "k")
		last := b.send(typeLatest, "l")
		fresh := b.send(typeLatest, "k")
		for _, want := range []uuid.UUID{head, fresh, last} {
			b.record(succeeded(b.claimOnly(want)))
		}
		b.nothing()
		require.Equal(t, "0 cancelled superseded", b.lastAttempt(old), "and the newer one has its place")
	}},
}

var supersedingCases = []webhookCase{
	{"InOneBatch", func(t *testing.T, s Harness) {
		b := newBench(t, s, func(e *webhook.Endpoint) { e.OrderScope = webhook.OrderUser })
		head := b.write(typeOrdered, "a")
		var versions []uuid.UUID
		for range 5 {
			versions = append(versions, b.write(typeLatest, "k"))
		}
		b.route()
		b.record(succeeded(b.claimOnly(head)))
		b.record(succeeded(b.claimOnly(versions[4])))
		b.nothing()
		for _, old := range versions[:4] {
			require.Equal(t, "0 cancelled superseded", b.lastAttempt(old))
		}
	}},
	{"UnsentHead", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		old, fresh := b.send(typeLatest, "k"), b.send(typeLatest, "k")
		b.record(succeeded(b.claimOnly(fresh)))
		b.nothing()
		require.Equal(t, "0 cancelled superseded", b.lastAttempt(old))
	}},
	{"FailedHeadStartsOver", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		old := b.send(typeLatest, "k")
		b.record(failed(b.claimOnly(old), time.Hour))
		fresh := b.send(typeLatest, "k")
		d := b.claimOnly(fresh)
		require.Zero(t, d.Attempts)
		require.Equal(t, 1, d.Starts)
		require.True(t, d.FirstFailedAt.IsZero())
		require.Equal(t, "1 cancelled superseded", b.lastAttempt(old))
	}},
	{"SendingHeadIsWaitedFor", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		old := b.send(typeLatest, "k")
		d := b.claimOnly(old)
		fresh := b.send(typeLatest, "k")
		b.nothing()
		b.record(succeeded(d))
		b.claimOnly(fresh)
		require.Equal(t, "1 succeeded ", b.lastAttempt(old))
	}},
	{"SendingHeadThatFailsIsNotSentAgain", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		old := b.send(typeLatest, "k")
		d := b.claimOnly(old)
		fresh := b.send(typeLatest, "k")
		b.record(failed(d, time.Hour))
		b.claimOnly(fresh)
		require.Equal(t, "1 cancelled superseded", b.lastAttempt(old))
	}},
	{"WaitingOneIsReplaced", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		d := b.claimOnly(b.send(typeLatest, "k"))
		second, third := b.send(typeLatest, "k"), b.send(typeLatest, "k")
		b.record(succeeded(d))
		b.record(succeeded(b.claimOnly(third)))
		b.nothing()
		require.Equal(t, "0 cancelled superseded", b.lastAttempt(second))
	}},
	{"NeverIntoAHeadWithSomethingWaiting", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		b.claimOnly(b.send(typeLatest, "k")) // and its worker crashes
		second := b.send(typeLatest, "k")
		s.Advance(lease)
		third := b.send(typeLatest, "k")
		d := b.claim()[0]
		require.True(t, d.Superseded)
		b.record(cancelled(d, webhook.ReasonSuperseded))
		b.record(succeeded(b.claimOnly(third)))
		b.nothing()
		require.Equal(t, "0 cancelled superseded", b.lastAttempt(second))
	}},
	{"ExpiredLeaseIsNotSending", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		d := b.claimOnly(b.send(typeLatest, "k"))
		s.Advance(lease)
		fresh := b.send(typeLatest, "k")
		require.Equal(t, []webhook.Lease{d.Lease}, b.record(succeeded(d)).Lost, "its place was taken")
		b.claimOnly(fresh)
	}},
	{"OtherKeysStay", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		want := []uuid.UUID{b.send(typeLatest, "k"), b.send(typeLatest, "l")}
		require.ElementsMatch(t, want, events(b.claim()))
	}},
	{"OrderedNever", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		first := b.send(typeOrdered, "k")
		b.record(failed(b.claimOnly(first), time.Hour))
		b.send(typeOrdered, "k")
		b.nothing()
		s.Advance(time.Hour)
		d := b.claimOnly(first)
		require.False(t, d.Superseded)
		require.Equal(t, 1, d.Attempts)
	}},
}
