package webhooktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

// RunEndpoints runs the contract of webhook.Endpoints. newStore returns a fresh, empty
// store and registers its own cleanup.
func RunEndpoints(t *testing.T, newStore func(t *testing.T) Harness) {
	for _, c := range endpointCases {
		t.Run(c.name, func(t *testing.T) { c.run(t, newStore(t)) })
	}
}

// fullEndpoint returns a disabled endpoint whose other fields all have values, to test that a store keeps them.
func fullEndpoint(team healthlab.TeamID) webhook.Endpoint {
	at := func(h int) time.Time { return longAgo.Add(time.Duration(h) * time.Hour) }
	return webhook.Endpoint{
		ID: webhook.EndpointID{UUID: id()}, Team: team, URL: "https://receiver.example.com/in?x=1",
		Description: "night shift, Ward É", RateLimit: 7, FilterTypes: []string{typeOrdered, typeLatest},
		OrderScope: webhook.OrderUser, Disabled: true, DisabledReason: webhook.DisabledGone,
		Health: webhook.Health{
			FirstFailedAt: at(1), LastFailedAt: at(2), ArmedAt: at(3), PausedUntil: at(4), PauseStep: 5,
		},
		Secrets: []webhook.SealedSecret{
			{ID: id(), Sealed: healthlab.Sealed{KeyID: "k2", Box: []byte{0, 1, 2}}, CreatedAt: at(6)},
			{ID: id(), Sealed: healthlab.Sealed{KeyID: "k1", Box: []byte{3}}, CreatedAt: at(5), ExpiresAt: at(30)},
		},
		Headers:   []webhook.SealedHeader{{Name: "X-Ward", Sealed: healthlab.Sealed{KeyID: "k2", Box: []byte{9, 9}}}},
		Revision:  1,
		CreatedAt: at(7), UpdatedAt: at(8),
	}
}

var endpointCases = []webhookCase{
	{"Insert/RoundTrip", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		want := fullEndpoint(b.team)
		in := want.Clone()
		in.CreatedAt = in.CreatedAt.In(time.FixedZone("", 7200))
		in.Revision = 99
		require.NoError(t, s.Endpoints.Insert(t.Context(), in, most))
		in.FilterTypes[0], in.Secrets[0].Sealed.Box[0], in.Headers[0].Name = "x", 'x', "x"
		got, err := s.Endpoints.Get(t.Context(), b.team, want.ID)
		require.NoError(t, err)
		require.Equal(t, want, got)
		got.FilterTypes[0], got.Secrets[0].Sealed.Box[0], got.Headers[0].Sealed.Box[0] = "x", 'x', 'x'
		got, err = s.Endpoints.Get(t.Context(), b.team, want.ID)
		require.NoError(t, err)
		require.Equal(t, want, got, "what comes out shares no memory with what is stored")
	}},
	{"Insert/NilFilterStaysNil", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		require.Nil(t, b.get().FilterTypes)
	}},
	{"Insert/Duplicate", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		require.ErrorIs(t, s.Endpoints.Insert(t.Context(), b.get(), most), healthlab.Conflict)
	}},
	{"Insert/Full", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				err := s.Endpoints.Insert(t.Context(), fullEndpoint(b.team), 3)
				if err != nil && !errors.Is(err, healthlab.Exhausted) {
					t.Errorf("insert: %v", err)
				}
			})
		}
		group.Wait()
		page, err := s.Endpoints.List(t.Context(), webhook.EndpointQuery{Team: b.team})
		require.NoError(t, err)
		require.Len(t, page.Endpoints, 3)
		newBench(t, s) // another team can still add one
	}},
	{"Get/NotFound", func(t *testing.T, s Harness) {
		b, other := newBench(t, s), newBench(t, s)
		_, err := s.Endpoints.Get(t.Context(), b.team, webhook.EndpointID{UUID: id()})
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = s.Endpoints.Get(t.Context(), b.team, other.to)
		require.ErrorIs(t, err, healthlab.NotFound)
	}},
	{"Update/WritesBack", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		was := b.get()
		want := fullEndpoint(b.team)
		want.ID, want.CreatedAt, want.Revision = was.ID, was.CreatedAt, 2
		got := b.update(func(e *webhook.Endpoint) {
			*e = want.Clone()
			e.ID, e.Team = webhook.EndpointID{UUID: id()}, healthlab.TeamID{UUID: id()}
			e.CreatedAt, e.Revision = e.CreatedAt.Add(time.Hour), 77
		})
		require.Equal(t, want, got)
		require.Equal(t, want, b.get())
	}},
	{"Update/ErrorWritesNothing", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		was, own := b.get(), errors.New("own")
		_, err := s.Endpoints.Update(t.Context(), b.team, b.to, func(e *webhook.Endpoint) ([]healthlab.Event, error) {
			e.Description = "changed"
			return []healthlab.Event{b.event(typeIndependent, "k")}, own
		})
		require.ErrorIs(t, err, own)
		require.Equal(t, was, b.get())
		b.route()
		b.nothing()
	}},
	{"Update/EventsTogetherOrNotAtAll", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		was := b.get()
		event := b.event(typeIndependent, "k")
		write := func(e healthlab.Event) error {
			_, err := s.Endpoints.Update(t.Context(), b.team, b.to, func(to *webhook.Endpoint) ([]healthlab.Event, error) {
				to.Description = "changed"
				return []healthlab.Event{e}, nil
			})
			return err
		}
		bad := event
		bad.Data = []byte("[]")
		require.ErrorIs(t, write(bad), healthlab.Invalid)
		require.Equal(t, was, b.get())
		require.NoError(t, write(event))
		b.route()
		b.claimOnly(event.ID)
	}},
	{"Update/NoLostUpdates", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() { b.update(func(e *webhook.Endpoint) { e.RateLimit++ }) })
		}
		group.Wait()
		e := b.get()
		require.Equal(t, 16, e.RateLimit)
		require.Equal(t, int64(17), e.Revision)
	}},
	{"Update/NotFound", func(t *testing.T, s Harness) {
		b, other := newBench(t, s), newBench(t, s)
		_, err := s.Endpoints.Update(t.Context(), b.team, other.to, func(*webhook.Endpoint) ([]healthlab.Event, error) {
			t.Error("called for another team's endpoint")
			return nil, nil
		})
		require.ErrorIs(t, err, healthlab.NotFound)
	}},
	{"Update/CancelledContext", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Endpoints.Update(ctx, b.team, b.to, func(e *webhook.Endpoint) ([]healthlab.Event, error) {
			e.Description = "changed"
			return nil, nil
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, b.get().Description)
	}},
	{"Update/DisablingCancels", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		sending, behind, waiting := b.send(typeOrdered, "a"), b.send(typeOrdered, "a"), b.send(typeLatest, "b")
		var d webhook.Delivery
		for _, c := range b.claim() {
			if c.Event == waiting {
				b.record(failed(c, time.Hour))
			} else {
				d = c
			}
		}
		b.update(func(e *webhook.Endpoint) { e.Disabled, e.DisabledReason = true, webhook.DisabledManual })
		for _, e := range []uuid.UUID{sending, behind, waiting} {
			require.Contains(t, b.lastAttempt(e), "cancelled disabled")
		}
		require.Equal(t, []webhook.Lease{d.Lease}, b.record(succeeded(d)).Lost)
		b.update(func(e *webhook.Endpoint) { e.Disabled, e.DisabledReason = false, "" })
		s.Advance(2 * time.Hour)
		b.nothing()
	}},
	{"Update/ResumingMakesAllDue", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		first, second := b.send(typeLatest, "a"), b.send(typeLatest, "b")
		for _, d := range b.claim() {
			o := failed(d, time.Hour)
			if d.Event == second {
				o.Quiet = 5 * time.Second
			}
			b.record(o)
		}
		b.update(func(e *webhook.Endpoint) { e.Health.PauseStep = 2 })
		b.nothing()
		b.update(func(e *webhook.Endpoint) { e.Health = webhook.Health{} })
		b.claimOnly(first)
		s.Advance(5 * time.Second)
		b.claimOnly(second)
	}},
	{"Delete/Cancels", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		event := b.send(typeLatest, "k")
		d := b.claimOnly(event)
		require.NoError(t, s.Endpoints.Delete(t.Context(), b.team, b.to))
		require.Equal(t, "0 cancelled deleted", b.lastAttempt(event))
		_, err := s.Endpoints.Get(t.Context(), b.team, b.to)
		require.ErrorIs(t, err, healthlab.NotFound)
		require.Equal(t, []webhook.Lease{d.Lease}, b.record(succeeded(d)).Lost)
		require.Equal(t, "1 waiting lease_lost", b.lastAttempt(event))
		b.nothing()
		b.notDue()
	}},
	{"Delete/NotFound", func(t *testing.T, s Harness) {
		b, other := newBench(t, s), newBench(t, s)
		require.ErrorIs(t, s.Endpoints.Delete(t.Context(), b.team, other.to), healthlab.NotFound)
		other.get()
	}},
	{"List/NewestFirst", func(t *testing.T, s Harness) {
		b, other := newBench(t, s), newBench(t, s)
		var want []webhook.EndpointID
		for i := range 7 {
			want = append([]webhook.EndpointID{b.endpoint(func(e *webhook.Endpoint) {
				e.CreatedAt = longAgo.Add(time.Duration(1+i/2) * time.Hour) // equal times are sorted by id
			})}, want...)
		}
		want = append(want, b.to)
		for _, size := range []int{1, 3, 8, 50} {
			t.Run(fmt.Sprint("pages of ", size), func(t *testing.T) {
				var got []webhook.EndpointID
				q := webhook.EndpointQuery{Team: b.team, Size: size}
				for {
					page, err := s.Endpoints.List(t.Context(), q)
					require.NoError(t, err)
					require.LessOrEqual(t, len(page.Endpoints), size)
					for _, e := range page.Endpoints {
						got = append(got, e.ID)
					}
					if page.Next == "" {
						break
					}
					q.Cursor = page.Next
				}
				require.Equal(t, want, got)
			})
		}
		for _, cursor := range []string{"x", "bm90IGEgY3Vyc29y", "////"} {
			_, err := s.Endpoints.List(t.Context(), webhook.EndpointQuery{Team: b.team, Cursor: cursor})
			require.ErrorIs(t, err, healthlab.Invalid)
		}
		page, err := s.Endpoints.List(t.Context(), webhook.EndpointQuery{Team: other.team})
		require.NoError(t, err)
		require.Len(t, page.Endpoints, 1)
	}},
	{"List/PagesAreStable", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		for i := range 3 {
			b.endpoint(func(e *webhook.Endpoint) { e.CreatedAt = longAgo.Add(time.Duration(i+1) * time.Hour) })
		}
		first, err := s.Endpoints.List(t.Context(), webhook.EndpointQuery{Team: b.team, Size: 2})
		require.NoError(t, err)
		b.endpoint(func(e *webhook.Endpoint) { e.CreatedAt = longAgo.Add(time.Hour * 10) })
		second, err := s.Endpoints.List(t.Context(), webhook.EndpointQuery{Team: b.team, Size: 2, Cursor: first.Next})
		require.NoError(t, err)
		require.Len(t, second.Endpoints, 2)
		require.Equal(t, b.to, second.Endpoints[1].ID)
		require.Empty(t, second.Next)
	}},
	{"Armed", func(t *testing.T, s Harness) {
		b := newBench(t, s)
		armed := func(at time.Time, disabled bool) webhook.EndpointID {
			return b.endpoint(func(e *webhook.Endpoint) { e.Health.ArmedAt, e.Disabled = at, disabled })
		}
		want := armed(longAgo, false)
		edge := armed(longAgo.Add(time.Hour), false)
		armed(longAgo.Add(time.Hour+time.Microsecond), false)
		armed(longAgo, true)
		got, err := s.Endpoints.Armed(t.Context(), longAgo.Add(time.Hour))
		require.NoError(t, err)
		var ids []webhook.EndpointID
		for _, e := range got {
			ids = append(ids, e.ID)
		}
		require.ElementsMatch(t, []webhook.EndpointID{want, edge}, ids)
	}},
}
