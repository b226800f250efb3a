package orders_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // zones, also where the machine has none

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

const home, center = appointment.Phlebotomy, appointment.PatientServiceCenter

// visitsOn is a team that has everything about appointments switched on.
var visitsOn = orders.Settings{PSCScheduling: true, PreRequisitionBooking: true, PatientManagedPSC: true,
	CachedAvailability: true, BookingIdempotency: true, AsyncConfirmation: true}

// newVisits is a fixture that makes appointments.
func newVisits(t testing.TB, edit ...func(*options)) *fixture {
	t.Helper()
	seal, err := healthlab.NewAESSealer("test", map[string][]byte{"test": make([]byte, 32)})
	require.NoError(t, err)
	d := newFixture(t, append([]func(*options){withPlaces(t), func(o *options) {
		o.BookingKeys = seal
		o.Providers = []appointment.Provider{{Slug: "northlab", Type: center}, {Slug: "eastlab", Type: center, PatientManaged: true}}
		o.Retry = func(int) time.Duration { return time.Minute }
	}}, edit...)...)
	d.settings = visitsOn
	d.everywhere()
	return d
}

func homeAddress() appointment.AddressInput {
	return appointment.AddressInput{FirstLine: "100 Example Avenue", City: "Phoenix", State: "AZ", ZipCode: "85004"}
}

func (d *fixture) homeKeys() []string {
	d.t.Helper()
	slots, err := d.visits.Places().HomeSlots(d.t.Context(), d.team, nil, homeAddress())
	require.NoError(d.t, err)
	return keysOf(slots)
}

func (d *fixture) centerKeys(sites ...string) []string {
	d.t.Helper()
	slots, err := d.visits.Places().CenterSlots(d.t.Context(), d.team, appointment.CenterSlotsRequest{Lab: "northlab", SiteCodes: sites})
	require.NoError(d.t, err)
	return keysOf(slots)
}

func keysOf(a appointment.AvailabilitySlots) []string {
	var out []string
	for _, day := range a.Slots {
		for _, slot := range day.Slots {
			if slot.BookingKey != nil {
				out = append(out, *slot.BookingKey)
			}
		}
	}
	return out
}

func (d *fixture) tomorrow(t appointment.Type) string {
	if t == home {
		return d.homeKeys()[8]
	}
	return d.centerKeys("THERE")[60]
}

func (d *fixture) books(o orders.Order, t appointment.Type, edit ...func(*visits.BookRequest)) (orders.Appointment, error) {
	var req visits.BookRequest
	for _, e := range edit {
		e(&req)
	}
	if req.BookingKey == "" {
		req.BookingKey = d.tomorrow(t)
	}
	return d.visits.Book(d.t.Context(), d.team, o.ID, t, req)
}

func noted(notes string) func(*visits.BookRequest) {
	return func(r *visits.BookRequest) { r.AppointmentNotes = ptr("sandbox:" + notes) }
}

func (d *fixture) booked(o orders.Order, t appointment.Type, edit ...func(*visits.BookRequest)) orders.Appointment {
	d.t.Helper()
	a, err := d.books(o, t, edit...)
	require.NoError(d.t, err)
	return a
}

func (d *fixture) visit(o orders.Order, t appointment.Type) orders.Appointment {
	d.t.Helper()
	a, err := d.visits.Get(d.t.Context(), d.team, o.ID, t)
	require.NoError(d.t, err)
	checkVisit(d.t, a)
	return a
}

// checkVisit checks what must hold for every published appointment.
func checkVisit(t require.TestingT, a orders.Appointment) {
	require.True(t, a.Status.Published())
	require.Equal(t, a.Status.EventStatus(), a.EventStatus)
	require.NotEmpty(t, a.Events)
	require.Equal(t, a.EventStatus, a.Events[len(a.Events)-1].Status)
	require.Equal(t, string(a.EventData), string(a.Events[len(a.Events)-1].Data))
	require.Equal(t, a.StartAt == nil, a.EndAt == nil)
	if a.Status == appointment.VisitConfirmed || a.Status == appointment.VisitReserved {
		require.NotNil(t, a.StartAt)
	}
}

// life is the statuses of an appointment, as its history has them.
func life(a orders.Appointment) string {
	var out []string
	for _, e := range a.Events {
		out = append(out, string(e.Status))
	}
	return strings.Join(out, " ")
}

func steps(o orders.Order) string { return toText(history(o)) }

// heard returns what the team was told of an appointment.
func (d *fixture) heard(a orders.Appointment) string {
	d.t.Helper()
	told := d.messages(orders.Order{ID: orders.OrderID{UUID: a.ID}})
	var out []string
	for i, m := range told {
		want := orders.EventAppointmentUpdated
		if i == 0 {
			want = orders.EventAppointmentCreated
		}
		require.Equal(d.t, want, m.Type)
		var envelope struct{ Data orders.Appointment }
		require.NoError(d.t, json.Unmarshal(m.Body, &envelope))
		checkVisit(d.t, envelope.Data)
		require.Len(d.t, envelope.Data.Events, i+1)
		out = append(out, string(envelope.Data.EventStatus))
	}
	return strings.Join(out, " ")
}

func TestVisitLifecycle_everyStateAndTriggerMatchesTheGoldenFile(t *testing.T) {
	var b strings.Builder
	all := []appointment.Status{appointment.VisitHeld, appointment.VisitPending, appointment.VisitReserved, appointment.VisitConfirmed,
		appointment.VisitInProgress, appointment.VisitCompleted, appointment.VisitCancelled, appointment.VisitWithdrawn}
	for _, typ := range appointment.Types() {
		for _, facts := range []appointment.Facts{{}, {Timed: true}, {Timed: true, Requisition: true}} {
			fmt.Fprintf(&b, "%s timed=%t requisition=%t\n", typ, facts.Timed, facts.Requisition)
			for _, from := range all {
				fmt.Fprintf(&b, "  %s\n", from)
				for _, on := range appointment.Triggers() {
					if to, ok := appointment.Next(typ, from, on, facts); ok {
						fmt.Fprintf(&b, "    %-14s -> %s\n", on, to)
					}
				}
			}
		}
	}
	golden(t, "testdata/visit_lifecycle.golden", b.String())
	require.Equal(t, []appointment.Status{appointment.VisitPending, appointment.VisitReserved, appointment.VisitConfirmed, appointment.VisitInProgress,
		appointment.VisitCompleted, appointment.VisitCancelled}, appointment.Statuses())
}

func TestVisitLifecycle_diagramsMatchTheDocumentedOnes(t *testing.T) {
	for _, typ := range appointment.Types() {
		golden(t, "../docs/appointment-lifecycle-"+string(typ)+".mmd", appointment.Diagram(typ))
	}
}

func TestVisit_toACenterIsBookedMovedAndCompleted(t *testing.T) {
	d := newVisits(t)
	o := d.placed("walk-in")
	d.work()
	a := d.booked(o, center, func(r *visits.BookRequest) { r.AppointmentNotes = ptr("left arm") })
	checkVisit(t, a)
	require.Equal(t, appointment.VisitConfirmed, a.Status)
	require.Equal(t, "scheduled", life(a))
	require.Equal(t, "scheduled", d.heard(a))
	require.Equal(t, d.user, a.UserID)
	require.Equal(t, o.OrderTransaction.ID, *a.OrderTransactionID)
	require.Equal(t, "America/Phoenix", *a.IANATimezone)
	require.Equal(t, "northlab", a.Provider)
	require.Equal(t, "left arm", *a.AppointmentNotes)
	require.Equal(t, "Mesa", a.Address.City)
	require.True(t, a.CanReschedule)
	require.NotEmpty(t, *a.ExternalID)
	o = d.get(o)
	require.Equal(t, a.ID, *o.Details.WalkIn.AppointmentID)
	require.Equal(t, "ordered requisition_created appointment_pending appointment_scheduled", steps(o))

	_, err := d.books(o, center)
	requireRule(t, err, visits.AppointmentExists, healthlab.Precondition)
	_, err = d.books(o, home)
	requireRule(t, err, visits.OrderNotBookable, healthlab.Precondition)

	moved, err := d.visits.Reschedule(t.Context(), d.team, o.ID, center, visits.RescheduleRequest{BookingKey: d.centerKeys("FAR")[70], KeepNotes: true})
	require.NoError(t, err)
	require.NotEqual(t, a.StartAt, moved.StartAt)
	require.Equal(t, "left arm", *moved.AppointmentNotes)
	require.JSONEq(t, `{"origin":"patient","is_reschedule":true}`, string(moved.EventData))
	require.Equal(t, "ordered requisition_created appointment_pending appointment_scheduled appointment_pending appointment_scheduled", steps(d.get(o)))
	require.Equal(t, "scheduled scheduled", d.heard(a))

	reason := d.visits.CancellationReasons(center)[0]
	_, err = d.visits.Cancel(t.Context(), d.team, o.ID, center, uuid.New(), nil)
	requireRule(t, err, visits.CancellationReasonUnknown, healthlab.Precondition)
	gone, err := d.visits.Cancel(t.Context(), d.team, o.ID, center, reason.ID, ptr("raining"))
	require.NoError(t, err)
	require.Equal(t, "scheduled scheduled cancelled", life(gone))
	require.False(t, gone.CanReschedule)
	o = d.get(o)
	require.Nil(t, o.Details.WalkIn.AppointmentID)
	require.Equal(t, orders.AppointmentCancelled, o.LowLevel())
	require.Equal(t, 1, d.lab.Appointments(o.ID), "the provider is told in the background")
	d.work()
	require.Equal(t, 0, d.lab.Appointments(o.ID))
	_, err = d.visits.Cancel(t.Context(), d.team, o.ID, center, reason.ID, nil)
	requireRule(t, err, visits.NotCancellable, healthlab.Precondition)
	_, err = d.visits.Reschedule(t.Context(), d.team, o.ID, center, visits.RescheduleRequest{BookingKey: d.tomorrow(center)})
	requireRule(t, err, visits.NotReschedulable, healthlab.Precondition)

	again := d.booked(o, center)
	require.NotEqual(t, a.ID, again.ID)
	require.Equal(t, again.ID, d.visit(o, center).ID)
	_, err = d.visits.Get(t.Context(), d.team, o.ID, home)
	requireRule(t, err, orders.AppointmentNotFound, healthlab.NotFound)
	_, err = d.visits.Get(t.Context(), healthlab.TeamID{UUID: id("other")}, o.ID, center)
	requireRule(t, err, orders.OrderNotFound, healthlab.NotFound)
	require.Len(t, d.notified(o), len(d.get(o).Events), "the team was told of every step of the order")
}

func TestVisit_atHomeIsBookedMovedAndCompleted(t *testing.T) {
	d := newVisits(t)
	o := d.placed("at home")
	d.work()
	a := d.booked(o, home)
	require.Equal(t, "pending scheduled", life(a))
	require.Equal(t, "pending scheduled", d.heard(a))
	require.Equal(t, "America/Phoenix", *a.IANATimezone)
	require.Equal(t, "100 Example Avenue", a.Address.FirstLine)
	require.Equal(t, 2*time.Hour, a.EndAt.Sub(a.StartAt.Time))
	moved, err := d.visits.Reschedule(t.Context(), d.team, o.ID, home, visits.RescheduleRequest{BookingKey: d.homeKeys()[12], Notes: nil})
	require.NoError(t, err)
	require.Nil(t, moved.AppointmentNotes)
	for d.get(o).LowLevel() != orders.Completed {
		d.advance(6 * time.Hour)
	}
	o = d.get(o)
	require.Equal(t, "ordered requisition_created appointment_pending appointment_scheduled appointment_scheduled draw_completed completed", steps(o))
	a = d.visit(o, home)
	require.Equal(t, "pending scheduled scheduled in_progress completed", life(a))
	require.Equal(t, life(a), d.heard(a))
	require.Nil(t, o.Details.AtHome.AppointmentID)
}

// An appointment that is made before the lab has the order waits for it.
func TestVisit_bookedBeforeTheRequisitionIsReserved(t *testing.T) {
	d := newVisits(t)
	o := d.placed("at home")
	a := d.booked(o, home)
	require.Equal(t, "pending reserved", life(a))
	require.Equal(t, "ordered", steps(d.get(o)))
	require.Equal(t, a.ID, *d.get(o).Details.AtHome.AppointmentID)
	d.work()
	require.Equal(t, "ordered requisition_created appointment_pending appointment_scheduled", steps(d.get(o)))
	require.Equal(t, "pending reserved scheduled", life(d.visit(o, home)))
	require.Equal(t, "pending reserved scheduled", d.heard(a))

	o = d.placed("walk-in")
	a = d.booked(o, center)
	require.Equal(t, "reserved", life(a))
	d.work()
	require.Equal(t, "ordered requisition_created appointment_pending appointment_scheduled", steps(d.get(o)))

	d.settings.PreRequisitionBooking = false
	_, err := d.books(d.placed("walk-in"), center)
	requireRule(t, err, visits.OrderNotBookable, healthlab.Precondition)
}

func TestVisit_onRequestIsScheduledByTheProvider(t *testing.T) {
	d := newVisits(t)
	o := d.placed("at home")
	d.work()
	address := homeAddress()
	address.State, address.ZipCode = "WI", "54650"
	req := visits.VisitRequest{Address: address, Provider: "phleb_request"}
	a, err := d.visits.Request(t.Context(), d.team, o.ID, req)
	require.NoError(t, err)
	require.Equal(t, "pending", life(a))
	require.Nil(t, a.StartAt)
	require.False(t, a.CanReschedule)
	_, err = d.visits.Reschedule(t.Context(), d.team, o.ID, home, visits.RescheduleRequest{BookingKey: d.homeKeys()[9]})
	requireRule(t, err, visits.NotReschedulable, healthlab.Precondition)
	d.advance(day)
	a = d.visit(o, home)
	require.Equal(t, "pending scheduled", life(a))
	require.Equal(t, 10, a.StartAt.In(zone(t, "America/Chicago")).Hour())
	for d.get(o).LowLevel() != orders.Completed {
		d.advance(6 * time.Hour)
	}
	require.Equal(t, "ordered requisition_created appointment_pending appointment_scheduled draw_completed completed", steps(d.get(o)))

	o = d.placed("at home")
	for _, tc := range []struct {
		edit func(*visits.VisitRequest)
		rule string
	}{
		{func(r *visits.VisitRequest) { r.Provider = "phleb_ready" }, visits.ProviderNotAvailable},
		{func(r *visits.VisitRequest) { r.Address.State, r.Address.ZipCode = "NY", "10001" }, visits.ProviderNotAvailable},
		{func(r *visits.VisitRequest) { r.Address.FirstLine = "Elm Road" }, appointment.StreetNumberMissing},
	} {
		bad := req
		tc.edit(&bad)
		_, err = d.visits.Request(t.Context(), d.team, o.ID, bad)
		requireRule(t, err, tc.rule, healthlab.Precondition)
	}
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	require.NoError(t, err)
	return loc
}

// A provider that takes a booking and does not answer: the appointment is pending, and
// there is one in the end, whether the team books again or not.
func TestVisit_providerTimeoutStillMakesOnlyOneAppointment(t *testing.T) {
	for _, typ := range appointment.Types() {
		for _, again := range []bool{false, true} {
			for _, outcome := range []string{"silent", "down", "down,silent"} {
				d := newVisits(t)
				o := d.placed(map[appointment.Type]string{home: "at home", center: "walk-in"}[typ])
				d.work()
				req := visits.BookRequest{BookingKey: d.tomorrow(typ), AppointmentNotes: ptr("sandbox:" + outcome)}
				first, err := d.visits.Book(t.Context(), d.team, o.ID, typ, req)
				require.NoError(t, err)
				require.Equal(t, "pending", life(first))
				require.Equal(t, first, d.visit(o, typ))
				require.Equal(t, "ordered requisition_created appointment_pending", steps(d.get(o)))
				if again {
					_, err = d.visits.Book(t.Context(), d.team, o.ID, typ, req)
					requireRule(t, err, visits.AppointmentExists, healthlab.Precondition)
				}
				d.advance(time.Minute)
				d.advance(time.Minute)
				a := d.visit(o, typ)
				require.Equal(t, first.ID, a.ID)
				require.Equal(t, appointment.VisitConfirmed, a.Status)
				require.Equal(t, life(a), d.heard(a))
				require.Equal(t, 1, d.lab.Appointments(o.ID))
				require.Equal(t, "ordered requisition_created appointment_pending appointment_scheduled", steps(d.get(o)))
			}
		}
	}
}

// An appointment whose outcome is open can be cancelled, and another slot booked.
func TestVisit_pendingOneCanBeCancelledAndAnotherSlotBooked(t *testing.T) {
	d := newVisits(t)
	o := d.placed("walk-in")
	d.work()
	keys := d.centerKeys("THERE")
	_, err := d.visits.Book(t.Context(), d.team, o.ID, center, visits.BookRequest{BookingKey: keys[60], AppointmentNotes: ptr("sandbox:silent")})
	require.NoError(t, err)
	_, err = d.visits.Cancel(t.Context(), d.team, o.ID, center, d.visits.CancellationReasons(center)[0].ID, nil)
	require.NoError(t, err)
	a, err := d.visits.Book(t.Context(), d.team, o.ID, center, visits.BookRequest{BookingKey: keys[61]})
	require.NoError(t, err)
	require.Equal(t, 2, d.lab.Appointments(o.ID))
	d.work()
	require.Equal(t, 1, d.lab.Appointments(o.ID))
	require.Equal(t, a.ID, d.visit(o, center).ID)
}

func TestReschedule_isCompletedAfterAProviderTimeout(t *testing.T) {
	d := newVisits(t)
	o := d.placed("walk-in")
	d.work()
	a := d.booked(o, center)
	req := visits.RescheduleRequest{BookingKey: d.centerKeys("FAR")[70], Notes: ptr("sandbox:silent")}
	_, err := d.visits.Reschedule(t.Context(), d.team, o.ID, center, req)
	requireRule(t, err, visits.BookingNotConfirmed, healthlab.Unavailable)
	require.Equal(t, a.StartAt, d.visit(o, center).StartAt)
	d.advance(time.Minute)
	moved := d.visit(o, center)
	require.NotEqual(t, a.StartAt, moved.StartAt)
	require.Equal(t, "scheduled scheduled", d.heard(a))
	require.Equal(t, 1, d.lab.Appointments(o.ID))
	_, err = d.visits.Reschedule(t.Context(), d.team, o.ID, center, visits.RescheduleRequest{BookingKey: d.centerKeys("FAR")[71], Notes: ptr("sandbox:gone")})
	requireRule(t, err, appointment.SlotNotAvailable, healthlab.Conflict)
	require.Equal(t, moved.StartAt, d.visit(o, center).StartAt)
}

func TestBook_asyncConfirmationAnswersPending(t *testing.T) {
	async := func(r *visits.BookRequest) { r.AsyncConfirmation = true }
	d := newVisits(t)
	for _, tc := range []struct{ outcome, first, last, order string }{
		{"", "scheduled", "scheduled", "appointment_scheduled"},
		{"slow", "pending", "pending scheduled", "appointment_scheduled"},
		{"down", "pending", "pending scheduled", "appointment_scheduled"},
		{"silent", "pending", "pending scheduled", "appointment_scheduled"},
		{"never", "pending", "pending cancelled", "appointment_cancelled"},
	} {
		o := d.placed("walk-in")
		d.work()
		a := d.booked(o, center, async, noted(tc.outcome))
		require.Equal(t, tc.first, life(a), tc.outcome)
		d.advance(time.Minute)
		d.advance(14 * time.Minute)
		a = d.visit(o, center)
		require.Equal(t, tc.last, life(a), tc.outcome)
		require.Equal(t, tc.last, d.heard(a), tc.outcome)
		require.Equal(t, tc.order, string(d.get(o).LowLevel()))
		require.Equal(t, tc.order == "appointment_scheduled", d.lab.Appointments(o.ID) == 1)
	}
	_, err := d.books(d.placed("walk-in"), center, async, noted("gone"))
	requireRule(t, err, appointment.SlotNotAvailable, healthlab.Conflict)
	_, err = d.books(d.placed("walk-in"), center, async, noted("refused"))
	requireRule(t, err, visits.BookingRefused, healthlab.Precondition)
	// Without it, an appointment that the provider does not confirm is pending as well.
	o := d.placed("walk-in")
	d.work()
	_, err = d.books(o, center, noted("never"))
	require.NoError(t, err)
	d.advance(15 * time.Minute)
	require.Equal(t, 0, d.lab.Appointments(o.ID), "it was given up and taken back")
	require.Equal(t, "pending cancelled", life(d.visit(o, center)))
	require.Equal(t, "ordered requisition_created appointment_pending appointment_cancelled", steps(d.get(o)))
	d.settings.AsyncConfirmation = false
	_, err = d.books(o, center, async)
	requireRule(t, err, catalogue.FeatureNotEnabled, healthlab.Forbidden)
}

// Only the patient and the lab change such an appointment, and the order moves when they
// have confirmed it.
func TestVisit_patientManagedIsChangedByPatientAndLabOnly(t *testing.T) {
	d := newVisits(t, func(o *options) {
		o.Centers = atlas(t, centerAt(3, "EAST", mesa.Lng, mesa.Lat, appointment.PSCSchedulingViaService))
	})
	key := func() string {
		slots, err := d.visits.Places().CenterSlots(t.Context(), d.team, appointment.CenterSlotsRequest{Lab: "eastlab", Zip: "85201"})
		require.NoError(t, err)
		return keysOf(slots)[70]
	}
	for _, tc := range []struct{ outcome, life, order string }{
		{"", "reserved scheduled", "ordered requisition_created appointment_pending appointment_scheduled"},
		{"dropped", "reserved cancelled", "ordered requisition_created"},
	} {
		d.lab = sandbox.NewLab(&sandbox.LabOptions{Now: d.now, Step: time.Hour, PatientManaged: []string{"eastlab"}})
		d.restart()
		o := d.placed("east", withOutcome("never_again"))
		d.work()
		a := d.booked(o, center, noted(tc.outcome), func(r *visits.BookRequest) { r.BookingKey = key() })
		require.Equal(t, "reserved", life(a))
		require.False(t, a.CanReschedule)
		require.Equal(t, "ordered requisition_created", steps(d.get(o)))
		_, err := d.visits.Cancel(t.Context(), d.team, o.ID, center, d.visits.CancellationReasons(center)[0].ID, nil)
		requireRule(t, err, visits.NotCancellable, healthlab.Precondition)
		_, err = d.visits.Reschedule(t.Context(), d.team, o.ID, center, visits.RescheduleRequest{BookingKey: key()})
		requireRule(t, err, visits.NotReschedulable, healthlab.Precondition)
		d.advance(time.Hour)
		require.Equal(t, tc.life, life(d.visit(o, center)))
		require.Equal(t, tc.order, steps(d.get(o)))
	}
}

// An appointment of an order that the lab does not accept is cancelled.
func TestVisit_isCancelledIfTheLabRefusesTheOrder(t *testing.T) {
	idle := func(o *options) { o.LabTimeout = time.Second }
	tomorrow := healthlab.Date{Year: 2026, Month: 3, Day: 9}
	for _, tc := range []struct {
		name string
		edit func(*orders.PlaceRequest)
		key  int // which slot of the center
		wait []time.Duration
		want []string
	}{
		{"order too old", func(*orders.PlaceRequest) {}, 60, []time.Duration{8 * time.Hour, time.Second}, []string{"reserved", "reserved cancelled"}},
		{"visit too close", func(*orders.PlaceRequest) {}, 6, []time.Duration{2 * time.Hour, time.Second}, []string{"reserved", "reserved cancelled"}},
		{"scheduled order", func(r *orders.PlaceRequest) { r.ActivateBy = &tomorrow }, 60, []time.Duration{9 * time.Hour}, []string{"reserved"}},
	} {
		d := newVisits(t, idle)
		o := d.placed("walk-in", tc.edit, withOutcome("down"))
		d.booked(o, center, func(r *visits.BookRequest) { r.BookingKey = d.centerKeys("THERE")[tc.key] })
		for i, wait := range tc.wait {
			d.mu.Lock()
			d.at = d.at.Add(wait)
			d.mu.Unlock()
			for n := 1; n > 0; {
				var err error
				n, err = d.visits.ProcessDue(t.Context())
				require.NoError(t, err)
			}
			require.Equal(t, tc.want[i], life(d.visit(o, center)), tc.name)
			require.Equal(t, "ordered", steps(d.get(o)), tc.name)
			require.Equal(t, strings.HasSuffix(tc.want[i], "cancelled"), d.lab.Appointments(o.ID) == 0, tc.name)
		}
	}
}

// If a person accepts a result for an order that the lab has not accepted, its visit is
// cancelled.
func TestVisit_isCancelledIfAResultIsAccepted(t *testing.T) {
	for _, tc := range []struct {
		test string
		kind appointment.Type
		life string
	}{{"at home", home, "pending reserved"}, {"walk-in", center, "reserved"}} {
		d := newVisits(t, func(o *options) { o.LabTimeout = time.Second })
		d.settings.UnmatchedResults = true
		o := d.placed(tc.test, withOutcome("down"))
		d.booked(o, tc.kind)
		r := d.held(d.report(o, func(m *exchange.Message) { m.Order, m.SampleID = orders.OrderID{}, "" }))
		require.Equal(t, orders.Completed, d.accepts(r, exchange.AcceptRequest{OrderID: &o.ID}).LowLevel())
		require.Equal(t, tc.life+" cancelled", life(d.visit(o, tc.kind)), tc.test)
		d.advance(time.Second)
		require.Equal(t, tc.life+" cancelled", life(d.visit(o, tc.kind)), tc.test)
		require.Equal(t, "ordered completed", steps(d.get(o)), tc.test)
		require.Zero(t, d.lab.Appointments(o.ID), tc.test)
	}
}

func TestCancel_ofAnOrderCancelsItsVisit(t *testing.T) {
	d := newVisits(t)
	o := d.placed("at home")
	d.work()
	a := d.booked(o, home)
	_, err := d.Cancel(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Equal(t, "pending scheduled cancelled", life(d.visit(o, home)))
	require.Equal(t, "pending scheduled cancelled", d.heard(a))
	require.Equal(t, orders.Cancelled, d.get(o).LowLevel())
	d.work()
	require.Equal(t, 0, d.lab.Appointments(o.ID))

	o = d.placed("walk-in")
	d.work()
	a = d.booked(o, center)
	_, err = d.Cancel(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Equal(t, "scheduled cancelled", life(d.visit(o, center)))
	require.Equal(t, "scheduled cancelled", d.heard(a))
	require.Equal(t, orders.Cancelled, d.get(o).LowLevel())
	d.work()
	require.Equal(t, 0, d.lab.Appointments(o.ID), "the slot is free")
	_, err = d.visits.Reschedule(t.Context(), d.team, o.ID, center, visits.RescheduleRequest{BookingKey: d.centerKeys("THERE")[0]})
	require.Error(t, err)

	// A booking that is open when the order is cancelled is taken back.
	o = d.placed("at home")
	d.work()
	_, err = d.books(o, home, noted("silent"))
	require.NoError(t, err)
	_, err = d.Cancel(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	d.work()
	require.Equal(t, 0, d.lab.Appointments(o.ID))
}

func TestBook_refusesUsedKeysAndTakenOrPastSlots(t *testing.T) {
	d := newVisits(t)
	o := d.placed("walk-in")
	d.work()
	good := d.tomorrow(center)
	refused := func(key string, o orders.Order, typ appointment.Type, rule string, kind healthlab.ErrorKind) {
		t.Helper()
		_, err := d.visits.Book(t.Context(), d.team, o.ID, typ, visits.BookRequest{BookingKey: key})
		requireRule(t, err, rule, kind)
	}
	const no = healthlab.Precondition
	spoilt := []byte(good)
	spoilt[len(spoilt)-3] ^= 1
	for _, key := range []string{"x", ".", "dGVzdA.", string(spoilt), good + "A", strings.ToUpper(good), "dGVzdA.AAAA"} {
		refused(key, o, center, appointment.BookingKeyInvalid, no)
	}
	refused(d.tomorrow(home), o, center, appointment.BookingKeyInvalid, no)
	_, err := d.visits.Book(t.Context(), healthlab.TeamID{UUID: id("other team")}, o.ID, center, visits.BookRequest{BookingKey: good})
	requireRule(t, err, appointment.BookingKeyInvalid, no)
	south := d.placed("south")
	d.work()
	refused(good, south, center, visits.SlotOfOtherPlace, no)
	_, err = d.visits.Book(t.Context(), d.team, orders.OrderID{UUID: id("nobody's")}, center, visits.BookRequest{BookingKey: good})
	requireRule(t, err, orders.OrderNotFound, healthlab.NotFound)

	// A booking key can be used once.
	d.booked(o, center, func(r *visits.BookRequest) { r.BookingKey = good })
	other := d.placed("walk-in")
	d.work()
	refused(good, other, center, appointment.SlotNotAvailable, healthlab.Conflict)
	// The same slot under a key of another answer, made before it was taken.
	third := d.placed("walk-in")
	fresh := d.centerKeys("THERE")
	d.booked(other, center, func(r *visits.BookRequest) { r.BookingKey = fresh[60] })
	refused(fresh[60], third, center, appointment.SlotNotAvailable, healthlab.Conflict)
	require.NotContains(t, d.centerKeys("THERE"), fresh[60])

	// A slot in the past.
	late := d.centerKeys("THERE")[0]
	d.advance(day)
	refused(late, third, center, appointment.SlotNotAvailable, healthlab.Conflict)

	child := d.placed("at home", func(r *orders.PlaceRequest) { r.PatientDetails.DOB.Year = 2000 })
	d.work()
	d.settings.Minors = true
	young, err := d.Place(t.Context(), d.team, d.asks("at home", func(r *orders.PlaceRequest) {
		r.PatientDetails.DOB.Year = 2010
		r.PatientDetails.MedicalProxy = &people.GuarantorInput{FirstName: "Bo", LastName: "Roe", PhoneNumber: "+15550101",
			Address: people.AddressInput{FirstLine: "7 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201", Country: "US"}}
	}))
	require.NoError(t, err)
	d.work()
	refused(d.tomorrow(home), young, home, visits.PatientTooYoung, no)
	// A patient has one visit of a provider at a time, whatever it is for.
	d.booked(child, home)
	second := d.placed("at home")
	d.work()
	refused(d.homeKeys()[9], second, home, visits.AppointmentExists, no)
	_, err = d.visits.Reschedule(t.Context(), d.team, child.ID, home, visits.RescheduleRequest{BookingKey: d.centerKeys("THERE")[60]})
	requireRule(t, err, appointment.BookingKeyInvalid, no)

	d.settings.PSCScheduling = false
	_, err = d.books(third, home)
	requireRule(t, err, visits.OrderNotBookable, no)
	_, err = d.visits.Book(t.Context(), d.team, third.ID, center, visits.BookRequest{BookingKey: good})
	requireRule(t, err, appointment.SchedulingNotEnabled, healthlab.Unavailable)
	plain := newFixture(t)
	_, err = plain.visits.Book(t.Context(), d.team, third.ID, home, visits.BookRequest{BookingKey: good})
	requireRule(t, err, appointment.AppointmentsNotOffered, healthlab.Unimplemented)
}

// Messages of the provider move the appointment and its order; an impossible message changes
// nothing, and the feed continues.
func TestReceive_providerMessagesMoveTheVisit(t *testing.T) {
	d := newVisits(t)
	o := d.placed("walk-in")
	d.work()
	a := d.booked(o, center)
	news := func(id string, n orders.VisitUpdate) {
		t.Helper()
		n.Appointment = a.ID
		for range 2 { // the second time changes nothing
			require.NoError(t, d.Receive(t.Context(), exchange.Message{ID: id, Team: d.team, Order: o.ID, Visit: &n, At: d.now()}))
		}
	}
	start := a.StartAt.Add(24 * time.Hour)
	news("1", orders.VisitUpdate{On: appointment.VisitRescheduled, Start: start, End: start.Add(time.Hour), Data: []byte(`{"by":"lab"}`)})
	moved := d.visit(o, center)
	require.True(t, moved.StartAt.Equal(start))
	require.JSONEq(t, `{"by":"lab"}`, string(moved.EventData))
	require.Equal(t, "scheduled scheduled", life(moved))
	before := d.get(o)
	news("2", orders.VisitUpdate{On: appointment.VisitRescheduled, Start: start, End: start})
	news("3", orders.VisitUpdate{On: appointment.VisitRequested})
	news("4", orders.VisitUpdate{On: appointment.VisitRefused})
	require.NoError(t, d.Receive(t.Context(), exchange.Message{ID: "5", Team: d.team, Order: o.ID, Visit: &orders.VisitUpdate{Appointment: uuid.New(), On: appointment.VisitCalledOff}}))
	require.Equal(t, before, d.get(o))
	require.Equal(t, moved, d.visit(o, center))
	news("6", orders.VisitUpdate{On: appointment.VisitCalledOff})
	require.Equal(t, "scheduled scheduled cancelled", life(d.visit(o, center)))
	require.Equal(t, orders.AppointmentCancelled, d.get(o).LowLevel())
	news("7", orders.VisitUpdate{On: appointment.VisitAccepted})
	require.Equal(t, "scheduled scheduled cancelled", d.heard(a))
}

// A simulated order moves its appointment, too.
func TestSimulate_movesTheVisitToo(t *testing.T) {
	d := newVisits(t)
	o := d.placed("at home")
	a := d.booked(o, home)
	_, err := d.Simulate(t.Context(), d.team, o.ID, "", orders.SimulationFlags{})
	require.NoError(t, err)
	require.Equal(t, "ordered requisition_created appointment_pending appointment_scheduled draw_completed completed", steps(d.get(o)))
	require.Equal(t, "pending reserved scheduled completed", d.heard(a))
}
