package orders_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

func newMessageFixture(t testing.TB) (*fixture, *sandbox.Outbox) {
	out := &sandbox.Outbox{}
	return newFixture(t, func(o *options) { o.Messenger = out }), out
}

// settle does everything that is to happen by itself.
func (d *fixture) settle() {
	d.t.Helper()
	for {
		n, err := d.PatientMessages().SendDue(d.t.Context())
		require.NoError(d.t, err)
		m, err := d.ContinueSimulations(d.t.Context())
		require.NoError(d.t, err)
		if n+m == 0 {
			return
		}
	}
}

func (d *fixture) wait(by time.Duration) {
	d.mu.Lock()
	d.at = d.at.Add(by)
	d.mu.Unlock()
}

func sent(out *sandbox.Outbox, o orders.Order) []string {
	var got []string
	for _, m := range out.Sent(o.ID) {
		got = append(got, fmt.Sprintf("%s %s", m.Channel, m.Moment))
	}
	return got
}

func TestPatientMessages_areSentOncePerStatus(t *testing.T) {
	for _, tc := range []struct {
		test  string
		final orders.LowLevel
		want  []string
	}{
		{"kit", orders.Completed, []string{"sms ordered", "sms transit_customer", "sms out_for_delivery", "sms delivered_to_lab", "sms completed"}},
		{"walk-in", orders.Completed, []string{"sms ordered", "email ordered", "sms requisition_created", "email requisition_created", "sms completed", "email completed"}},
		{"walk-in", orders.PartialResults, []string{"sms ordered", "email ordered", "sms requisition_created", "email requisition_created"}},
		{"walk-in", orders.SampleError, []string{"sms ordered", "email ordered", "sms requisition_created", "email requisition_created"}},
		{"at home", orders.DrawCompleted, []string{"sms ordered", "email ordered", "sms requisition_created", "email requisition_created",
			"email appointment_pending", "email appointment_scheduled", "sms draw_completed", "email draw_completed"}},
		{"on site", orders.Completed, []string{"sms ordered", "email ordered", "sms requisition_created", "email requisition_created",
			"sms draw_completed", "email draw_completed", "sms completed", "email completed"}},
	} {
		t.Run(tc.test+" "+string(tc.final), func(t *testing.T) {
			d, out := newMessageFixture(t)
			d.settings.OnSiteCollection = true
			o := d.placed(tc.test)
			_, err := d.Simulate(t.Context(), d.team, o.ID, orders.StatusOf(o.Method(), tc.final), orders.SimulationFlags{})
			require.NoError(t, err)
			d.settle()
			require.Equal(t, tc.want, sent(out, o))
			d.settle()
			require.Equal(t, tc.want, sent(out, o), "each once")
			for _, m := range out.Sent(o.ID) {
				require.Equal(t, map[orders.Channel]string{orders.SMS: "+15550100", orders.Email: "ana@example.com"}[m.Channel], m.To)
				require.Equal(t, "Ana", m.FirstName)
			}
		})
	}
}

func TestPatientMessages_followTeamAndOrderSettings(t *testing.T) {
	d, out := newMessageFixture(t)
	d.settings.SMSOff = true
	o := d.placed("walk-in")
	got, err := d.PatientMessages().Settings(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Equal(t, orders.CommunicationSettings{OrderID: o.ID}, got)
	d.settle()
	require.Equal(t, []string{"email ordered"}, sent(out, o))

	// What is said of an order counts, whatever holds for the team.
	got, err = d.PatientMessages().SetSMS(t.Context(), d.team, o.ID, true)
	require.NoError(t, err)
	require.True(t, got.SMSEnabled)
	d.settings.EmailOff = true
	_, err = d.Cancel(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	d.settle()
	require.Equal(t, []string{"email ordered", "sms cancelled"}, sent(out, o))
	_, err = d.PatientMessages().Settings(t.Context(), healthlab.TeamID{UUID: id("other team")}, o.ID)
	requireRule(t, err, orders.OrderNotFound, healthlab.NotFound)
}

// If the team sends no e-mail, messages about a visit at home are sent by SMS instead.
func TestPatientMessages_ofVisitsUseSMSIfEmailIsOff(t *testing.T) {
	d, out := newMessageFixture(t)
	d.settings.EmailOff = true
	o := d.placed("at home")
	_, err := d.Simulate(t.Context(), d.team, o.ID, orders.StatusOf(o.Method(), orders.AppointmentScheduled), orders.SimulationFlags{})
	require.NoError(t, err)
	d.settle()
	require.Equal(t, []string{"sms ordered", "sms requisition_created", "sms appointment_pending", "sms appointment_scheduled"}, sent(out, o))
}

// A team that has enabled it gets one e-mail about critical results, whatever the patient's
// settings, also if the messenger is down at first. Other teams get none.
func TestTeamMessages_criticalResultSendsOneEmail(t *testing.T) {
	d, out := newMessageFixture(t)
	d.settings = orders.Settings{SMSOff: true, EmailOff: true}
	simulate := func(i labresult.Interpretation) orders.Order {
		o := d.placed("walk-in")
		_, err := d.Simulate(t.Context(), d.team, o.ID, "", orders.SimulationFlags{Interpretation: i})
		require.NoError(t, err)
		return o
	}
	o := simulate(labresult.Critical)
	d.settle()
	require.Empty(t, sent(out, o), "nobody wants to know")
	d.settings.CriticalEmail = "on-call@riverside.example"
	d.wait(time.Hour)
	d.settle()
	require.Empty(t, sent(out, o), "nor do they hear of what is over")

	o = simulate(labresult.Abnormal)
	d.settle()
	require.Empty(t, sent(out, o))
	out.Fail(1)
	o = simulate(labresult.Critical)
	d.settle()
	require.Empty(t, sent(out, o))
	for range 2 {
		d.wait(time.Minute)
		d.settle()
		require.Equal(t, []string{"email critical_result"}, sent(out, o))
	}
	m := out.Sent(o.ID)[0]
	require.Equal(t, "on-call@riverside.example", m.To)
	require.Empty(t, m.FirstName)
}

// While the messenger is down, messages are delayed, and none is lost.
func TestPatientMessages_areDelayedWhileTheMessengerIsDown(t *testing.T) {
	d, out := newMessageFixture(t)
	out.Fail(1)
	o := d.placed("walk-in")
	d.settle()
	require.Equal(t, []string{"email ordered"}, sent(out, o))
	d.wait(time.Minute)
	d.settle()
	require.Equal(t, []string{"email ordered", "sms ordered"}, sent(out, o))
}

func TestReminders_stopWhenTheOrderEnds(t *testing.T) {
	d, out := newMessageFixture(t)
	d.settings.Reminders = true
	o := d.requisitioned("walk-in")
	kit := d.placed("kit")
	_, err := d.Simulate(t.Context(), d.team, kit.ID, orders.StatusOf(catalogue.Testkit, orders.WithCustomer), orders.SimulationFlags{})
	require.NoError(t, err)
	d.settle()
	before, kitBefore := len(sent(out, o)), len(sent(out, kit))
	for _, at := range []struct {
		wait      time.Duration
		walk, kit int
	}{{23 * time.Hour, 0, 0}, {time.Hour, 2, 0}, {day, 2, 1}, {day, 4, 1}} {
		d.wait(at.wait)
		d.settle()
		require.Len(t, sent(out, o)[before:], at.walk)
		require.Len(t, sent(out, kit)[kitBefore:], at.kit)
	}
	_, err = d.Cancel(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	d.wait(10 * day)
	d.settle()
	require.Equal(t, []string{"sms cancelled", "email cancelled"}, sent(out, o)[before+4:], "nobody is reminded of what is over")
	require.Len(t, sent(out, kit)[kitBefore:], 2)
}

// Patients get a message when an appointment is booked, and reminders a day and two hours
// before it; no reminder if it was booked later than that, moved or cancelled.
func TestReminders_ofAppointmentsAreSentADayAndTwoHoursBefore(t *testing.T) {
	out := &sandbox.Outbox{}
	d := newVisits(t, func(o *options) { o.Messenger = out })
	d.settings.Reminders = true
	requisitioned := func() orders.Order {
		o := d.placed("walk-in")
		d.work()
		d.settle()
		return o
	}
	o, moved, dropped, none := requisitioned(), requisitioned(), requisitioned(), requisitioned()
	keys := d.centerKeys("THERE")
	before := len(sent(out, o))
	made := d.booked(o, center, func(r *visits.BookRequest) { r.BookingKey = keys[60] })
	d.booked(moved, center, func(r *visits.BookRequest) { r.BookingKey = keys[61] })
	d.booked(dropped, center, func(r *visits.BookRequest) { r.BookingKey = keys[62] })
	d.settle()
	require.Equal(t, []string{"sms appointment_scheduled"}, sent(out, o)[before:])
	_, err := d.visits.Reschedule(t.Context(), d.team, moved.ID, center, visits.RescheduleRequest{BookingKey: keys[120]})
	require.NoError(t, err)
	_, err = d.visits.Cancel(t.Context(), d.team, dropped.ID, center, appointment.DefaultCancellationReasons(center)[0].ID, nil)
	require.NoError(t, err)
	reminded := func(o orders.Order) (n int) {
		d.settle()
		for _, m := range out.Sent(o.ID) {
			if m.Moment == orders.RemindAppointment {
				n++
				require.False(t, m.At.Before(d.now()))
			}
		}
		return n
	}
	for _, at := range []struct {
		before time.Duration
		want   int
	}{{24*time.Hour + time.Second, 0}, {24 * time.Hour, 2}, {2*time.Hour + time.Second, 2}, {2 * time.Hour, 4}, {0, 4}} {
		d.wait(made.StartAt.Add(-at.before).Sub(d.now()))
		require.Equal(t, []int{at.want, 0, 0, 0}, []int{reminded(o), reminded(moved), reminded(dropped), reminded(none)}, at.before)
	}
}

// Patients get reminders to book until they have booked, also where patient and lab make the
// appointment and the order keeps its status. Reminders that were skipped are not sent later.
func TestReminders_toBookStopWhenTheVisitIsBooked(t *testing.T) {
	out := &sandbox.Outbox{}
	d := newVisits(t, func(o *options) {
		o.Messenger = out
		o.Centers = atlas(t, centerAt(3, "EAST", mesa.Lng, mesa.Lat, appointment.PSCSchedulingViaService))
	})
	d.lab = sandbox.NewLab(&sandbox.LabOptions{Now: d.now, Step: 2 * day, PatientManaged: []string{"eastlab"}})
	d.restart()
	d.settings.Reminders = true
	o, none := d.placed("east", withOutcome("never_again")), d.placed("east", withOutcome("never_again"))
	d.work()
	slots, err := d.visits.Places().CenterSlots(t.Context(), d.team, appointment.CenterSlotsRequest{Lab: "eastlab", Zip: "85201"})
	require.NoError(t, err)
	d.booked(o, center, noted("dropped"), func(r *visits.BookRequest) { r.BookingKey = keysOf(slots)[100] })
	reminded := func(o orders.Order) (n int) {
		for _, m := range out.Sent(o.ID) {
			if m.Moment == orders.RemindVisit {
				n++
			}
		}
		return n
	}
	d.wait(day)
	d.settle()
	require.Equal(t, appointment.VisitReserved, d.visit(o, center).Status)
	require.Equal(t, []int{0, 2}, []int{reminded(o), reminded(none)})
	d.advance(day)
	require.Equal(t, appointment.VisitCancelled, d.visit(o, center).Status)
	d.settle()
	require.Equal(t, []int{0, 2}, []int{reminded(o), reminded(none)})
	d.wait(day)
	d.settle()
	require.Equal(t, []int{2, 4}, []int{reminded(o), reminded(none)})
}

// A simulation with a delay takes a step at a time, and stops where the order goes
// another way.
func TestSimulateSlowly_takesOneStepPerDelay(t *testing.T) {
	d := newFixture(t)
	o := d.placed("kit")
	_, err := d.SimulateSlowly(t.Context(), d.team, o.ID, "", orders.SimulationFlags{Interpretation: labresult.Abnormal}, 10*time.Second)
	require.NoError(t, err)
	steps := []orders.LowLevel{orders.RequisitionCreated, orders.TransitCustomer, orders.OutForDelivery, orders.WithCustomer, orders.TransitLab,
		orders.DeliveredToLab, orders.Completed}
	for i, low := range steps {
		d.settle()
		got := d.get(o)
		require.Equal(t, low, got.LowLevel())
		require.Len(t, got.Events, i+2)
		d.wait(9 * time.Second)
		d.settle()
		require.Equal(t, low, d.get(o).LowLevel(), "not before its time")
		d.wait(time.Second)
	}
	require.Equal(t, labresult.Abnormal, *d.get(o).Interpretation)
	require.NotEqual(t, d.get(o).Events[1].CreatedAt, d.get(o).Events[2].CreatedAt)

	d.settings.Redraws, d.opts.RedrawLabs = true, []string{"northlab"}
	d.restart()
	again := d.placed("walk-in")
	_, err = d.SimulateSlowly(t.Context(), d.team, again.ID, orders.StatusOf(catalogue.WalkInTest, orders.RedrawAvailable), orders.SimulationFlags{}, time.Second)
	require.NoError(t, err)
	d.settle()
	require.Equal(t, orders.RequisitionCreated, d.get(again).LowLevel())
	d.wait(time.Second)
	d.settle()
	require.Equal(t, orders.RedrawAvailable, d.get(again).LowLevel())
	require.Len(t, d.get(again).OrderTransaction.Orders, 2)

	other := d.placed("walk-in")
	_, err = d.SimulateSlowly(t.Context(), d.team, other.ID, "", orders.SimulationFlags{}, time.Second)
	require.NoError(t, err)
	_, err = d.Cancel(t.Context(), d.team, other.ID)
	require.NoError(t, err)
	d.wait(time.Hour)
	d.settle()
	require.Equal(t, orders.Cancelled, d.get(other).LowLevel())
}
