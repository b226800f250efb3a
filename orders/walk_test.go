package orders_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/orders/exchange"
)

// TestOrders_randomCallsAndMessagesFollowTheTable mixes calls of the API with messages of labs and carriers, sensible
// and not, with a lab that fails in every way. Whatever happens, an order's history is
// a walk through the table, and the team was told of every step of it, once.
func TestOrders_randomCallsAndMessagesFollowTheTable(t *testing.T) {
	for range prove.Count(1, 100) { // of a hundred walks each, in a plain go test of 30
		rapid.Check(t, randomWalk(t))
	}
}

func randomWalk(t *testing.T) func(*rapid.T) {
	return func(rt *rapid.T) {
		d := newFixture(t)
		d.settings = orders.Settings{OnSiteCollection: true, PartialWebhooks: rapid.Bool().Draw(rt, "partial webhooks")}
		var all []orders.Order
		var messages []exchange.Message
		some := func() orders.Order { return rapid.SampledFrom(all).Draw(rt, "order") }
		// refused is what a call may answer: a rule that forbids it, and nothing else.
		refused := func(err error) {
			var rule *healthlab.RuleError
			require.True(rt, err == nil || errors.As(err, &rule), "%v", err)
		}
		outcomes := append([]string{"", "down", "silent", "slow", "refused", "too_late_to_cancel", "repeats"}, stories()...)
		rt.Repeat(map[string]func(*rapid.T){
			"place": func(rt *rapid.T) {
				outcome := rapid.SampledFrom(outcomes).Draw(rt, "outcome")
				all = append(all, d.placed(rapid.SampledFrom([]string{"kit", "walk-in", "at home", "on site"}).Draw(rt, "test"), withOutcome(outcome)))
			},
			"kit": func(rt *rapid.T) {
				req := d.kit()
				req.Passthrough = ptr("sandbox:" + rapid.SampledFrom(outcomes).Draw(rt, "outcome"))
				o, err := d.PlaceTestkit(t.Context(), d.team, req)
				require.NoError(rt, err)
				all = append(all, o)
			},
			"register": func(rt *rapid.T) {
				if len(all) == 0 {
					return
				}
				if o := d.get(some()); o.SampleID != nil {
					_, err := d.Register(t.Context(), d.team, orders.RegisterRequest{SampleID: *o.SampleID, PatientDetails: patient(), PatientAddress: address()})
					refused(err)
				}
			},
			"cancel": func(rt *rapid.T) {
				if len(all) == 0 {
					return
				}
				o := d.get(some())
				_, err := d.Cancel(t.Context(), d.team, o.ID)
				require.Equal(rt, o.Cancellable(), err == nil)
				refused(err)
			},
			"draw": func(rt *rapid.T) {
				if len(all) > 0 {
					_, err := d.DrawCompleted(t.Context(), d.team, some().ID)
					refused(err)
				}
			},
			"simulate": func(rt *rapid.T) {
				if len(all) > 0 {
					_, err := d.Simulate(t.Context(), d.team, some().ID, rapid.SampledFrom(orders.Statuses()).Draw(rt, "final"), orders.SimulationFlags{})
					refused(err)
				}
			},
			"message": func(rt *rapid.T) {
				if len(all) == 0 {
					return
				}
				m := exchange.Message{ID: fmt.Sprint(len(messages)), Team: d.team, Order: some().ID, At: d.now(),
					On: rapid.SampledFrom(orders.Triggers()).Draw(rt, "on"), SampleID: rapid.SampledFrom([]string{"", "SAMPLE-" + fmt.Sprint(len(messages))}).Draw(rt, "sample")}
				messages = append(messages, m)
				require.NoError(rt, d.Receive(t.Context(), m))
			},
			"again": func(rt *rapid.T) {
				if len(messages) == 0 {
					return
				}
				m := rapid.SampledFrom(messages).Draw(rt, "message")
				before := d.get(orders.Order{ID: m.Order})
				require.NoError(rt, d.Receive(t.Context(), m))
				require.Equal(rt, before, d.get(before), "a message that comes again changes nothing")
			},
			"wait": func(rt *rapid.T) { d.advance(time.Duration(rapid.IntRange(0, 48).Draw(rt, "hours")) * time.Hour) },
			"":     func(*rapid.T) {},
		})
		for _, o := range all {
			d.checkWalk(rt, d.get(o))
		}
	}
}

func stories() []string {
	var out []string
	for _, s := range sandbox.Stories() {
		out = append(out, string(s))
	}
	return out
}

// checkWalk follows an order's history through the table, and compares it with what the
// team was told.
func (d *fixture) checkWalk(t require.TestingT, o orders.Order) {
	facts := orders.Facts{Registrable: o.ShippingDetails != nil, Initial: o.Origin == orders.OriginInitial}
	require.Equal(t, orders.Ordered, o.Events[0].Status.LowLevel())
	for i := 1; i < len(o.Events); i++ {
		from, to := o.Events[i-1].Status.LowLevel(), o.Events[i].Status.LowLevel()
		require.True(t, slices.ContainsFunc(orders.Triggers(), func(on orders.Trigger) bool {
			next, ok := orders.Next(o.Method(), from, on, facts)
			return ok && next == to
		}), "%s to %s", from, to)
		facts.Registered = facts.Registered || to == orders.Registered
		require.False(t, o.Events[i].CreatedAt.Before(o.Events[i-1].CreatedAt.Time))
	}
	var want []string
	for _, l := range history(o) {
		if l != orders.PartialResults || d.settings.PartialWebhooks {
			want = append(want, string(l))
		}
	}
	told := slices.DeleteFunc(d.notified(o), func(s string) bool { return s == critical.EventCritical })
	require.Equal(t, want, told)
	if facts.Registrable && !facts.Registered {
		require.NotContains(t, history(o), orders.Completed)
		_, err := d.Results(d.t.Context(), d.team, o.ID)
		require.ErrorIs(t, err, healthlab.NotFound)
	}
}

// TestOrders_twoProcessesSubmitEachOrderOnce runs the background work of two services on one store and one lab
// at once, while others place and cancel. Every order is placed at the lab once.
func TestOrders_twoProcessesSubmitEachOrderOnce(t *testing.T) {
	d := newFixture(t)
	other, err := d.newServices(book(t), d.lab, &options{orderOptions: orders.Options{Environment: healthlab.Production, Background: orders.Background{Now: d.now}}})
	require.NoError(t, err)
	const customers, each = 4, 10
	var wg sync.WaitGroup
	placed := make([][]orders.Order, customers)
	for c := range customers {
		wg.Go(func() {
			for i := range each {
				o, err := d.Place(t.Context(), d.team, d.asks("walk-in", withOutcome([]string{"", "slow", "repeats"}[i%3])))
				if err == nil && i%5 == 4 {
					_, err = other.Cancel(t.Context(), d.team, o.ID)
				}
				if err != nil {
					t.Error(err)
				}
				placed[c] = append(placed[c], o)
			}
		})
	}
	for _, s := range []services{d.services, other, d.services} {
		wg.Go(func() {
			for range each {
				_, err1 := s.SubmitDue(t.Context())
				_, err2 := s.PullUpdates(t.Context())
				if err := errors.Join(err1, err2); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for range 5 {
		d.advance(day)
	}
	for _, o := range slices.Concat(placed...) {
		o = d.get(o)
		want := "ordered requisition_created completed"
		if o.Status == orders.StageCancelled {
			want = "ordered cancelled"
			if len(o.Events) == 3 {
				want = "ordered requisition_created cancelled"
			}
		}
		require.Equal(t, strings.Fields(want), strings.Fields(fmt.Sprint(toText(history(o)))))
	}
}

func toText(levels []orders.LowLevel) string {
	var out []string
	for _, l := range levels {
		out = append(out, string(l))
	}
	return strings.Join(out, " ")
}
