package sandbox_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

func TestLab_passesTheBookingBackendSuite(t *testing.T) {
	orderstest.RunBookingBackend(t, func(testing.TB) orderstest.BookingHarness {
		lab := newLab(&clock{noon})
		return orderstest.BookingHarness{Slots: lab, Bookings: lab, Lab: "northlab", Now: noon,
			Site: appointment.Center{LabID: 1, SiteCode: "A", IANATimezone: "America/Phoenix"}}
	})
}

// The slots of a day begin every twenty minutes from seven to twelve, by the local clock;
// today's begin at the next full hour and end at five, if it is before four.
func TestSlots_followTheLocalClockOfTheSite(t *testing.T) {
	site := appointment.Center{LabID: 1, SiteCode: "A", IANATimezone: "America/New_York"}
	newYork, err := time.LoadLocation(site.IANATimezone)
	require.NoError(t, err)
	for _, tc := range []struct {
		now         time.Time
		first, last string
	}{
		{time.Date(2026, 3, 2, 9, 10, 0, 0, newYork), "10:00", "16:40"},
		{time.Date(2026, 3, 2, 15, 59, 0, 0, newYork), "16:00", "16:40"},
		{time.Date(2026, 3, 2, 16, 0, 0, 0, newYork), "", ""},
		{time.Date(2026, 3, 2, 0, 0, 0, 0, newYork), "07:00", "16:40"},
		// An hour before clocks are set forward, and at the second one o'clock.
		{time.Date(2026, 3, 8, 1, 30, 0, 0, newYork), "07:00", "16:40"},
		{time.Date(2026, 11, 1, 6, 30, 0, 0, time.UTC), "07:00", "16:40"},
	} {
		lab := newLab(&clock{tc.now})
		list, err := lab.FreeSlots(t.Context(), appointment.SlotQuery{Type: appointment.PatientServiceCenter, Lab: "northlab", Sites: []appointment.Center{site},
			From: tc.now, To: tc.now.Add(40 * time.Hour)})
		require.NoError(t, err)
		days := map[healthlab.Date][]string{}
		for _, s := range list {
			day := healthlab.DateOf(s.Start.In(newYork))
			days[day] = append(days[day], s.Start.In(newYork).Format("15:04"))
		}
		today := healthlab.DateOf(tc.now.In(newYork))
		if tc.first == "" {
			require.Empty(t, days[today])
		} else {
			require.Equal(t, []string{tc.first, tc.last}, []string{days[today][0], days[today][len(days[today])-1]})
		}
		require.Equal(t, "07:00", days[today.AddDays(1)][0])
	}
}

func TestBooking_notesSelectAFailure(t *testing.T) {
	c := &clock{noon}
	lab := newLab(c)
	site := appointment.Center{LabID: 1, SiteCode: "A", IANATimezone: "America/Phoenix"}
	book := func(notes string) visits.Booking {
		list, err := lab.FreeSlots(t.Context(), appointment.SlotQuery{Type: appointment.PatientServiceCenter, Lab: "northlab", Sites: []appointment.Center{site},
			From: c.now(), To: c.now().Add(48 * time.Hour)})
		require.NoError(t, err)
		return visits.Booking{Appointment: uuid.New(), Order: orders.OrderID{UUID: uuid.New()}, Provider: "northlab", Slot: list[len(list)-1], Notes: "sandbox:" + notes}
	}
	for _, tc := range []struct {
		notes string
		want  error
	}{{"refused", healthlab.Invalid}, {"gone", healthlab.NotFound}, {"down", healthlab.Unavailable}} {
		_, err := lab.BookVisit(t.Context(), book(tc.notes))
		require.ErrorIs(t, err, tc.want, tc.notes)
	}
	b := book("slow")
	got, err := lab.BookVisit(t.Context(), b)
	require.NoError(t, err)
	require.False(t, got.Confirmed)
	c.pass(time.Minute)
	got, err = lab.BookVisit(t.Context(), b)
	require.NoError(t, err)
	require.True(t, got.Confirmed)

	b = book("too_late")
	_, err = lab.BookVisit(t.Context(), b)
	require.NoError(t, err)
	require.ErrorIs(t, lab.CancelVisit(t.Context(), visits.Cancellation{Appointment: b.Appointment}), healthlab.Precondition)
	_, err = lab.MoveVisit(t.Context(), b)
	require.ErrorIs(t, err, healthlab.Precondition)

	// A cancellation that overtakes its booking leaves nothing behind.
	b = book("")
	require.NoError(t, lab.CancelVisit(t.Context(), visits.Cancellation{Appointment: b.Appointment}))
	_, err = lab.BookVisit(t.Context(), b)
	require.ErrorIs(t, err, healthlab.Invalid)
	require.Zero(t, lab.Appointments(b.Order))

	for _, tc := range []struct {
		notes string
		want  []appointment.Trigger
	}{
		{"", []appointment.Trigger{appointment.VisitStarted, appointment.VisitDone}},
		{"dropped", []appointment.Trigger{appointment.VisitCalledOff}},
		{"moved", []appointment.Trigger{appointment.VisitRescheduled, appointment.VisitStarted, appointment.VisitDone}},
		{"repeats", []appointment.Trigger{appointment.VisitStarted, appointment.VisitStarted, appointment.VisitDone, appointment.VisitDone}},
		{"never", nil},
	} {
		b := book(tc.notes)
		_, err := lab.BookVisit(t.Context(), b)
		require.NoError(t, err)
		c.pass(5 * 24 * time.Hour)
		all, err := lab.Updates(t.Context(), "", 1000)
		require.NoError(t, err)
		var told []appointment.Trigger
		for _, m := range all.Messages {
			if m.Visit != nil && m.Visit.Appointment == b.Appointment {
				told = append(told, m.Visit.On)
			}
		}
		require.Equal(t, tc.want, told, tc.notes)
	}
	require.Equal(t, sandbox.VisitOutcome{}, sandbox.VisitOutcomeFromNotes("sandbox:unheard of"))
	require.Equal(t, sandbox.VisitOutcome{}, sandbox.VisitOutcomeFromNotes("refused"))
}

// An appointment that is booked while the lab reports one of its own replaces it: steps that
// were reported already are not reported again, and each of the others is reported once.
func TestBooking_replacesTheSimulatedAppointment(t *testing.T) {
	for hours := range 8 {
		c := &clock{noon}
		lab := newLab(c)
		s := kit("")
		s.Order.Details.Type, s.Order.LabTest.Method = catalogue.AtHomePhlebotomy, catalogue.AtHomePhlebotomy
		_, err := lab.Submit(t.Context(), s)
		require.NoError(t, err)
		c.pass(time.Duration(hours) * time.Hour)
		before, err := lab.Updates(t.Context(), "", 100)
		require.NoError(t, err)
		list, err := lab.FreeSlots(t.Context(), appointment.SlotQuery{Type: appointment.PatientServiceCenter, Lab: "northlab",
			Sites: []appointment.Center{{LabID: 1, SiteCode: "A", IANATimezone: "America/Phoenix"}}, From: c.now(), To: c.now().Add(48 * time.Hour)})
		require.NoError(t, err)
		_, err = lab.BookVisit(t.Context(), visits.Booking{Appointment: uuid.New(), Order: s.Order.ID, Provider: "northlab", Slot: list[0]})
		require.NoError(t, err)
		c.pass(20 * 24 * time.Hour)
		after, err := lab.Updates(t.Context(), before.Cursor, 100)
		require.NoError(t, err)
		told, ids := map[orders.Trigger]int{}, map[string]bool{}
		for i, m := range append(before.Messages, after.Messages...) {
			require.False(t, ids[m.ID], "each message is named")
			ids[m.ID] = true
			if m.Visit == nil {
				told[m.On]++
				require.Equal(t, 1, told[m.On], m.On)
				if i >= len(before.Messages) {
					require.NotContains(t, []orders.Trigger{orders.AppointmentBooked, orders.AppointmentConfirmed, orders.SampleDrawn}, m.On)
				}
			}
		}
		require.Equal(t, 1, told[orders.FinalResult], hours)
	}
}
