package orders_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

// TestVisits_randomCallsAndMessagesFollowTheTables mixes bookings, reschedules and cancellations with what happens to
// the orders and with news of providers, sensible and not, from providers that fail in
// every way. Whatever happens: histories are walks through the tables, the team was told
// of every step, once; an order has one appointment at most; and what is called off here
// is called off at the provider.
func TestVisits_randomCallsAndMessagesFollowTheTables(t *testing.T) {
	for range prove.Count(1, 100) { // of a hundred walks each, in a plain go test of 30
		rapid.Check(t, randomVisits(t))
	}
}

func randomVisits(t *testing.T) func(*rapid.T) {
	outcomes := []string{"", "", "", "refused", "gone", "down", "silent", "down,silent", "slow", "never", "moved", "dropped", "repeats", "slow,silent"}
	return func(rt *rapid.T) {
		d := newVisits(t)
		d.settings.PreRequisitionBooking = rapid.Bool().Draw(rt, "pre-requisition")
		var all []orders.Order
		var used []string
		news := 0
		some := func() orders.Order { return rapid.SampledFrom(all).Draw(rt, "order") }
		refused := func(err error) {
			var rule *healthlab.RuleError
			require.True(rt, err == nil || errors.As(err, &rule), "%v", err)
		}
		typeOf := func(o orders.Order) appointment.Type {
			if o.Method() == catalogue.AtHomePhlebotomy {
				return home
			}
			return center
		}
		key := func(typ appointment.Type) string {
			if len(used) > 0 && rapid.IntRange(0, 5).Draw(rt, "old key") == 0 {
				return rapid.SampledFrom(used).Draw(rt, "key")
			}
			keys := d.homeKeys
			if typ == center {
				keys = func() []string { return d.centerKeys("THERE") }
			}
			k := rapid.SampledFrom(keys()).Draw(rt, "key")
			used = append(used, k)
			return k
		}
		notes := func() *string { return ptr("sandbox:" + rapid.SampledFrom(outcomes).Draw(rt, "outcome")) }
		rt.Repeat(map[string]func(*rapid.T){
			"place": func(rt *rapid.T) {
				outcome := rapid.SampledFrom([]string{"", "never_again", "slow", "down"}).Draw(rt, "order outcome")
				all = append(all, d.placed(rapid.SampledFrom([]string{"walk-in", "at home"}).Draw(rt, "test"), withOutcome(outcome)))
			},
			"book": func(rt *rapid.T) {
				if len(all) == 0 {
					return
				}
				o := some()
				_, err := d.visits.Book(t.Context(), d.team, o.ID, typeOf(o), visits.BookRequest{BookingKey: key(typeOf(o)), AppointmentNotes: notes(),
					AsyncConfirmation: rapid.Bool().Draw(rt, "async")})
				refused(err)
			},
			"request": func(rt *rapid.T) {
				if len(all) == 0 {
					return
				}
				address := homeAddress()
				address.State, address.ZipCode = "WI", "54650"
				_, err := d.visits.Request(t.Context(), d.team, some().ID, visits.VisitRequest{Address: address, Provider: "phleb_request", AppointmentNotes: notes()})
				refused(err)
			},
			"reschedule": func(rt *rapid.T) {
				if len(all) == 0 {
					return
				}
				o := some()
				_, err := d.visits.Reschedule(t.Context(), d.team, o.ID, typeOf(o), visits.RescheduleRequest{BookingKey: key(typeOf(o)), Notes: notes()})
				refused(err)
			},
			"cancel visit": func(rt *rapid.T) {
				if len(all) == 0 {
					return
				}
				o := some()
				_, err := d.visits.Cancel(t.Context(), d.team, o.ID, typeOf(o), d.visits.CancellationReasons(typeOf(o))[0].ID, nil)
				refused(err)
			},
			"cancel order": func(rt *rapid.T) {
				if len(all) > 0 {
					_, err := d.Cancel(t.Context(), d.team, some().ID)
					refused(err)
				}
			},
			"simulate": func(rt *rapid.T) {
				if len(all) > 0 {
					_, err := d.Simulate(t.Context(), d.team, some().ID, rapid.SampledFrom(orders.Statuses()).Draw(rt, "final"), orders.SimulationFlags{})
					refused(err)
				}
			},
			"news": func(rt *rapid.T) {
				if len(all) == 0 {
					return
				}
				o := some()
				r, err := d.store.Orders().Get(t.Context(), d.team, o.ID)
				require.NoError(rt, err)
				if len(r.Visits) == 0 {
					return
				}
				n := orders.VisitUpdate{Appointment: rapid.SampledFrom(r.Visits).Draw(rt, "visit").ID,
					On: rapid.SampledFrom([]appointment.Trigger{appointment.VisitRequested, appointment.VisitSlotReserved, appointment.VisitAccepted, appointment.VisitRescheduled, appointment.VisitStarted}).Draw(rt, "on")}
				if rapid.Bool().Draw(rt, "timed") {
					n.Start = d.now().Add(time.Duration(rapid.IntRange(-5, 100).Draw(rt, "hours")) * time.Hour)
					n.End = n.Start.Add(time.Duration(rapid.IntRange(-1, 2).Draw(rt, "length")) * time.Hour)
				}
				news++
				m := exchange.Message{ID: fmt.Sprint("news ", news), Team: d.team, Order: o.ID, Visit: &n, At: d.now()}
				require.NoError(rt, d.Receive(t.Context(), m))
				before := d.get(o)
				require.NoError(rt, d.Receive(t.Context(), m))
				require.Equal(rt, before, d.get(o), "news that comes again changes nothing")
			},
			"result": func(rt *rapid.T) {
				if len(all) == 0 {
					return
				}
				news++
				on := rapid.SampledFrom([]orders.Trigger{orders.PartialResult, orders.FinalResult, orders.CorrectedResult, orders.SampleRejected}).Draw(rt, "on")
				m := exchange.Message{ID: fmt.Sprint("result ", news), Team: d.team, Order: some().ID, On: on, At: d.now()}
				if on != orders.SampleRejected {
					m.Results = &labresult.Report{Results: []labresult.Result{{Name: "Iron", Result: "1"}}}
				}
				require.NoError(rt, d.Receive(t.Context(), m))
			},
			"wait": func(rt *rapid.T) { d.advance(time.Duration(rapid.IntRange(0, 40).Draw(rt, "hours")) * time.Hour) },
			"":     func(*rapid.T) {},
		})
		for range 3 {
			d.advance(time.Hour) // what is open is settled
		}
		for _, o := range all {
			d.checkWalk(rt, d.get(o))
			d.checkVisits(rt, o)
		}
	}
}

// checkVisits follows the histories of an order's appointments through their table, and
// compares them with what the team was told.
func (d *fixture) checkVisits(t require.TestingT, o orders.Order) {
	r, err := d.store.Orders().Get(d.t.Context(), d.team, o.ID)
	require.NoError(t, err)
	active, held := 0, 0
	if r.LowLevel().Final() {
		require.False(t, slices.ContainsFunc(r.Visits, func(v orders.Visit) bool { return !v.Status.Final() }), "an order that ended holds a slot: %s", visitsOf(r))
	}
	for _, v := range r.Visits {
		if !v.Status.Final() {
			active++
			require.True(t, v.Status.Published(), "nothing is open for hours")
		}
		if v.Status != appointment.VisitCancelled && v.Status != appointment.VisitWithdrawn {
			held++
		}
		if !v.Status.Published() {
			require.Empty(t, d.heard(v.Appointment))
			continue
		}
		checkVisit(t, v.Appointment)
		movable := v.StartAt != nil && !v.PatientManaged && (v.Status == appointment.VisitPending || v.Status == appointment.VisitReserved || v.Status == appointment.VisitConfirmed)
		require.Equal(t, movable, v.CanReschedule, "a %s appointment, with and without a time", v.Status)
		require.Equal(t, life(v.Appointment), d.heard(v.Appointment))
		from := appointment.VisitHeld
		for _, e := range v.Events {
			i := slices.IndexFunc(appointment.Statuses(), func(s appointment.Status) bool { return s.EventStatus() == e.Status })
			require.GreaterOrEqual(t, i, 0)
			to := appointment.Statuses()[i]
			require.True(t, slices.ContainsFunc(appointment.Triggers(), func(on appointment.Trigger) bool {
				next, ok := appointment.Next(v.Type, from, on, appointment.Facts{Timed: true, Requisition: true})
				return ok && next == to
			}), "%s to %s", from, to)
			from = to
		}
	}
	require.LessOrEqual(t, active, 1)
	require.LessOrEqual(t, d.lab.Appointments(o.ID), held, "what is called off here is called off there: %s", visitsOf(r))
}

func visitsOf(r orders.Record) string {
	var out []string
	for _, v := range r.Visits {
		out = append(out, string(v.Status))
	}
	return strings.Join(out, " ")
}

// Cached availability is answered from the cache if it knows every center well enough,
// else by the provider.
func TestSlots_areCachedIfEveryCenterIsKnown(t *testing.T) {
	d := newVisits(t)
	d.opts.SlotCache = d.store.SlotCache()
	d.restart()
	ask := func(stale bool, sites ...string) int {
		t.Helper()
		slots, err := d.visits.Places().CenterSlots(t.Context(), d.team, appointment.CenterSlotsRequest{Lab: "northlab", SiteCodes: sites, AllowStale: stale})
		require.NoError(t, err)
		return len(keysOf(slots))
	}
	live := ask(false, "THERE")
	require.Equal(t, live, ask(true, "THERE"), "nothing is cached yet")
	n, err := d.visits.Places().RefreshSlots(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, n, "two centers can be booked")
	n, err = d.visits.Places().RefreshSlots(t.Context())
	require.NoError(t, err)
	require.Zero(t, n, "not within a minute")

	o := d.placed("walk-in")
	d.work()
	d.booked(o, center)
	require.Equal(t, live-1, ask(false, "THERE"))
	require.Equal(t, live, ask(true, "THERE"), "the cache does not know yet")
	// The slot is offered and gone.
	slots, err := d.visits.Places().CenterSlots(t.Context(), d.team, appointment.CenterSlotsRequest{Lab: "northlab", SiteCodes: []string{"THERE"}, AllowStale: true})
	require.NoError(t, err)
	other := d.placed("walk-in")
	d.work()
	_, err = d.visits.Book(t.Context(), d.team, other.ID, center, visits.BookRequest{BookingKey: keysOf(slots)[60]})
	requireRule(t, err, appointment.SlotNotAvailable, healthlab.Conflict)

	pass := func(by time.Duration) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.at = d.at.Add(by)
	}
	pass(15*time.Minute - time.Second)
	require.Equal(t, live, ask(true, "THERE"))
	pass(time.Second)
	require.Equal(t, live-1, ask(true, "THERE"), "too old")
	n, err = d.visits.Places().RefreshSlots(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, live-1, ask(true, "THERE"))
	start := healthlab.Date{Year: 2026, Month: 4, Day: 20}
	far, err := d.visits.Places().CenterSlots(t.Context(), d.team, appointment.CenterSlotsRequest{Lab: "northlab", SiteCodes: []string{"THERE"}, Start: &start, AllowStale: true})
	require.NoError(t, err, "what the cache cannot know is asked for")
	require.Len(t, keysOf(far), 14*15)
	d.settings.CachedAvailability = false
	_, err = d.visits.Places().CenterSlots(t.Context(), d.team, appointment.CenterSlotsRequest{Lab: "northlab", SiteCodes: []string{"THERE"}, AllowStale: true})
	requireRule(t, err, catalogue.FeatureNotEnabled, healthlab.Forbidden)
}

// A booking key can be used for one booking, even if that booking has ended.
func TestBook_keyIsUsedOnce(t *testing.T) {
	d := newVisits(t)
	o := d.placed("walk-in")
	d.work()
	keys := d.centerKeys("THERE")
	with := func(key string) func(*visits.BookRequest) {
		return func(r *visits.BookRequest) { r.BookingKey = key }
	}
	d.booked(o, center, with(keys[60]))
	move := func(key string) error {
		_, err := d.visits.Reschedule(t.Context(), d.team, o.ID, center, visits.RescheduleRequest{BookingKey: key})
		return err
	}
	require.NoError(t, move(keys[61]))
	requireRule(t, move(keys[60]), appointment.SlotNotAvailable, healthlab.Conflict)
	requireRule(t, move(keys[61]), appointment.SlotNotAvailable, healthlab.Conflict)
	_, err := d.visits.Cancel(t.Context(), d.team, o.ID, center, d.visits.CancellationReasons(center)[0].ID, nil)
	require.NoError(t, err)
	d.work()
	for _, used := range keys[60:62] {
		_, err = d.books(o, center, with(used))
		requireRule(t, err, appointment.SlotNotAvailable, healthlab.Conflict)
	}
	d.booked(o, center, with(keys[62]))
}

// A provider's late answer to a booking changes nothing if the requisition has confirmed the
// visit meanwhile.
func TestBook_lateProviderAnswerDoesNotChangeAConfirmedVisit(t *testing.T) {
	for _, byMessage := range []bool{false, true} {
		d := newVisits(t)
		o := d.placed("at home")
		a := d.booked(o, home, noted("slow"))
		require.Equal(t, "pending", life(a))
		news := func(id string, on appointment.Trigger) {
			require.NoError(t, d.Receive(t.Context(), exchange.Message{ID: id, Team: d.team, Order: o.ID, Visit: &orders.VisitUpdate{Appointment: a.ID, On: on}, At: d.now()}))
		}
		news("1", appointment.VisitSlotReserved)
		_, err := d.SubmitDue(t.Context())
		require.NoError(t, err)
		require.Equal(t, "pending reserved scheduled", life(d.visit(o, home)))
		if byMessage {
			news("2", appointment.VisitAccepted)
		}
		for range 5 {
			d.advance(time.Hour)
		}
		require.Equal(t, "pending reserved scheduled", life(d.visit(o, home)))
		require.Equal(t, "ordered requisition_created appointment_pending appointment_scheduled", steps(d.get(o)))
		n, err := d.visits.ProcessDue(t.Context())
		require.NoError(t, err)
		require.Zero(t, n, "nobody is asked again")
	}
}

// A visit that has begun cannot be moved, also if the provider was asked to move it before.
func TestReschedule_startedVisitIsNotMoved(t *testing.T) {
	d := newVisits(t)
	o := d.placed("at home")
	d.work()
	a := d.booked(o, home)
	_, err := d.visits.Reschedule(t.Context(), d.team, o.ID, home, visits.RescheduleRequest{BookingKey: d.tomorrow(home), Notes: ptr("sandbox:down")})
	requireRule(t, err, visits.BookingNotConfirmed, healthlab.Unavailable)
	require.NoError(t, d.Receive(t.Context(), exchange.Message{ID: "1", Team: d.team, Order: o.ID,
		Visit: &orders.VisitUpdate{Appointment: a.ID, On: appointment.VisitStarted}, At: d.now()}))
	d.advance(time.Hour)
	d.advance(time.Hour)
	require.Equal(t, "pending scheduled in_progress", life(d.visit(o, home)))
	require.Equal(t, a.StartAt, d.visit(o, home).StartAt)
}

func (d *fixture) partly(o orders.Order) exchange.Message {
	return exchange.Message{ID: "p", Team: d.team, Order: o.ID, SampleID: *d.get(o).SampleID, On: orders.PartialResult, At: d.now(), CollectedAt: d.now(),
		Patient: &orders.ReportedPatient{FirstName: "Ana", LastName: "Roe", DOB: patient().DOB},
		Results: &labresult.Report{Results: []labresult.Result{{Name: "glucose", Slug: "glucose", Result: "1", ProviderID: ptr("code-glucose")}}}}
}

// The event of an order does not name an appointment that the same step ends.
func TestOrderEvent_omitsAnAppointmentThatTheSameStepEnds(t *testing.T) {
	for _, tc := range []struct {
		name string
		ends func(*fixture, orders.Order) error
		told []string
	}{
		{"cancelled by the team", func(d *fixture, o orders.Order) error {
			_, err := d.Cancel(t.Context(), d.team, o.ID)
			return err
		}, []string{"", "", "same", "same", ""}},
		{"drawn, says the lab", func(d *fixture, o orders.Order) error {
			return d.Receive(t.Context(), exchange.Message{ID: "1", Team: d.team, Order: o.ID, On: orders.SampleDrawn, At: d.now()})
		}, []string{"", "", "same", "same", ""}},
		{"results are there, and the visit is not over", func(d *fixture, o orders.Order) error {
			return d.Receive(t.Context(), d.partly(o))
		}, []string{"", "", "same", "same", "same"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newVisits(t)
			d.settings.PartialWebhooks = true
			o := d.placed("at home")
			d.work()
			a := d.booked(o, home)
			require.Equal(t, appointment.VisitConfirmed, a.Status)
			require.NoError(t, tc.ends(d, o))
			var told []string
			for _, m := range d.messages(o) {
				var body struct {
					Data orders.Order `json:"data"`
				}
				require.NoError(t, json.Unmarshal(m.Body, &body))
				switch shown := body.Data.Details.AtHome.AppointmentID; {
				case shown == nil:
					told = append(told, "")
				default:
					require.Equal(t, a.ID, *shown)
					told = append(told, "same")
				}
			}
			require.Equal(t, tc.told, told)
			require.Equal(t, tc.told[len(tc.told)-1] == "", d.get(o).Details.AtHome.AppointmentID == nil)
		})
	}
}

// If an order refuses a step, its appointment keeps its published status.
func TestVisit_keepsItsStatusIfTheOrderRefusesTheStep(t *testing.T) {
	d := newVisits(t)
	o := d.placed("at home")
	d.work()
	a := d.booked(o, home)
	require.NoError(t, d.Receive(t.Context(), d.partly(o)))
	_, err := d.Cancel(t.Context(), d.team, o.ID)
	requireRule(t, err, orders.CancelNotAllowed, healthlab.Precondition)
	require.NoError(t, d.Receive(t.Context(), exchange.Message{ID: "2", Team: d.team, Order: o.ID, On: orders.SampleDrawn, At: d.now()}))
	require.Equal(t, a.ID, *d.get(o).Details.AtHome.AppointmentID)
}

// The spec has no end for a visit at home that its provider never confirms: it stays pending, and the
// provider is asked ever more rarely.
func TestVisit_unconfirmedHomeVisitIsPolledMoreRarely(t *testing.T) {
	d := newVisits(t, func(o *options) { o.Retry = nil })
	o := d.placed("at home")
	d.work()
	d.booked(o, home, noted("never"))
	calls := func() int {
		r, err := d.store.Orders().Get(t.Context(), d.team, o.ID)
		require.NoError(t, err)
		return r.Visits[0].Attempts
	}
	wait := func(by time.Duration) int {
		before := calls()
		for range by / time.Hour {
			d.advance(time.Hour)
		}
		return calls() - before
	}
	require.Greater(t, wait(day), 20, "about once an hour on the first day")
	require.Less(t, wait(29*day), 100, "in the month, a few times a day")
	require.LessOrEqual(t, wait(30*day), 31, "then once a day")
	require.Equal(t, "pending", life(d.visit(o, home)))
	_, err := d.Cancel(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Equal(t, "pending cancelled", life(d.visit(o, home)))
}
