package orderstest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

// BookingHarness is a laboratory under test that takes appointments.
type BookingHarness struct {
	Slots    appointment.SlotBackend
	Bookings visits.Backend
	// Lab is the slug of a lab, and Site one of its centers, with free slots in the two days after Now, each
	// with room for one appointment.
	Lab  string
	Site appointment.Center
	Now  time.Time
}

// RunBookingBackend runs the contract tests of [appointment.SlotBackend] and [visits.Backend]. newLab returns a
// laboratory without appointments that confirms every booking at once.
func RunBookingBackend(t *testing.T, newLab func(t testing.TB) BookingHarness) {
	for name, run := range conformance.Sorted(bookingCases) {
		t.Run(name, func(t *testing.T) { run(t, newLab(t)) })
	}
}

// free returns the free slots of the center Site in the two days after Now.
func (h BookingHarness) free(t *testing.T) []appointment.Slot {
	t.Helper()
	list, err := h.Slots.FreeSlots(t.Context(), appointment.SlotQuery{Type: appointment.PatientServiceCenter, Lab: h.Lab, Sites: []appointment.Center{h.Site},
		From: h.Now, To: h.Now.Add(48 * time.Hour)})
	require.NoError(t, err)
	require.Greater(t, len(list), 2)
	return list
}

// isFree reports whether a slot is free.
func (h BookingHarness) isFree(t *testing.T, s appointment.Slot) bool {
	t.Helper()
	for _, f := range h.free(t) {
		if f.Key == s.Key {
			return true
		}
	}
	return false
}

func (h BookingHarness) booking(s appointment.Slot) visits.Booking {
	return visits.Booking{Appointment: uuid.New(), Team: conformance.Team("a"), Order: orderID(uuid.NewString()), Type: appointment.PatientServiceCenter,
		Provider: s.Provider, Slot: s, Address: h.Site.Metadata.Address()}
}

// book books a slot at the backend, and returns the booking.
func (h BookingHarness) book(t *testing.T, s appointment.Slot) visits.Booking {
	t.Helper()
	b := h.booking(s)
	got, err := h.Bookings.BookVisit(t.Context(), b)
	require.NoError(t, err)
	require.True(t, got.Confirmed)
	return b
}

var bookingCases = map[string]func(*testing.T, BookingHarness){
	"Slots/AreWhatWasAskedFor": func(t *testing.T, h BookingHarness) {
		seen := map[string]bool{}
		for _, s := range h.free(t) {
			require.Equal(t, h.Site.SiteCode, s.SiteCode)
			require.Equal(t, h.Lab, s.Provider)
			require.True(t, s.Start.After(h.Now) && s.Start.Before(h.Now.Add(48*time.Hour)))
			require.True(t, s.Start.Before(s.End))
			require.Positive(t, s.Places)
			require.NotEmpty(t, s.Key)
			require.False(t, seen[s.Key], "each has its own name")
			seen[s.Key] = true
		}
		none, err := h.Slots.FreeSlots(t.Context(), appointment.SlotQuery{Type: appointment.PatientServiceCenter, Lab: h.Lab, From: h.Now, To: h.Now.Add(48 * time.Hour)})
		require.NoError(t, err)
		require.Empty(t, none, "no center, no slot")
	},
	"Slots/AskingChangesNothing": func(t *testing.T, h BookingHarness) { require.ElementsMatch(t, h.free(t), h.free(t)) },
	"Slots/ContextEnded": func(t *testing.T, h BookingHarness) {
		_, err := h.Slots.FreeSlots(conformance.Ended(t), appointment.SlotQuery{Type: appointment.PatientServiceCenter})
		require.ErrorIs(t, err, context.Canceled)
		_, err = h.Slots.ServedAt(conformance.Ended(t), "85004")
		require.ErrorIs(t, err, context.Canceled)
	},
	"Book/TakesTheSlot": func(t *testing.T, h BookingHarness) {
		s := h.free(t)[1]
		h.book(t, s)
		require.False(t, h.isFree(t, s))
		_, err := h.Bookings.BookVisit(t.Context(), h.booking(s))
		require.ErrorIs(t, err, healthlab.NotFound, "it is gone")
	},
	"Book/Again": func(t *testing.T, h BookingHarness) {
		s := h.free(t)[1]
		b := h.booking(s)
		first, err := h.Bookings.BookVisit(t.Context(), b)
		require.NoError(t, err)
		again, err := h.Bookings.BookVisit(t.Context(), b)
		require.NoError(t, err)
		require.Equal(t, first, again)
		require.NoError(t, h.Bookings.CancelVisit(t.Context(), visits.Cancellation{Appointment: b.Appointment, Team: b.Team, Provider: b.Provider}))
		require.True(t, h.isFree(t, s), "there was one appointment")
	},
	"Book/NoSuchSlot": func(t *testing.T, h BookingHarness) {
		s := h.free(t)[1]
		for _, edit := range []func(*appointment.Slot){
			func(s *appointment.Slot) { s.Key = "no such slot" },
			func(s *appointment.Slot) { s.Key += "0" },
			func(s *appointment.Slot) { s.SiteCode = "another center" },
		} {
			bad := s
			edit(&bad)
			_, err := h.Bookings.BookVisit(t.Context(), h.booking(bad))
			require.Contains(t, []healthlab.ErrorKind{healthlab.Invalid, healthlab.NotFound}, healthlab.KindOf(err))
		}
		require.True(t, h.isFree(t, s))
	},
	"Book/ContextEnded": func(t *testing.T, h BookingHarness) {
		s := h.free(t)[1]
		_, err := h.Bookings.BookVisit(conformance.Ended(t), h.booking(s))
		require.ErrorIs(t, err, context.Canceled)
		require.True(t, h.isFree(t, s))
	},
	"Move/FreesAndTakes": func(t *testing.T, h BookingHarness) {
		list := h.free(t)
		b := h.book(t, list[1])
		b.Slot = list[2]
		for range 2 { // the second time changes nothing
			got, err := h.Bookings.MoveVisit(t.Context(), b)
			require.NoError(t, err)
			require.True(t, got.Confirmed)
			require.True(t, h.isFree(t, list[1]))
			require.False(t, h.isFree(t, list[2]))
		}
	},
	"Move/Gone": func(t *testing.T, h BookingHarness) {
		list := h.free(t)
		b := h.book(t, list[1])
		h.book(t, list[2])
		b.Slot = list[2]
		_, err := h.Bookings.MoveVisit(t.Context(), b)
		require.ErrorIs(t, err, healthlab.NotFound)
		require.False(t, h.isFree(t, list[1]), "it stays what it was")
	},
	"Move/NoSuchAppointment": func(t *testing.T, h BookingHarness) {
		s := h.free(t)[1]
		_, err := h.Bookings.MoveVisit(t.Context(), h.booking(s))
		require.Contains(t, []healthlab.ErrorKind{healthlab.Invalid, healthlab.NotFound}, healthlab.KindOf(err))
		require.True(t, h.isFree(t, s))
	},
	"Cancel/FreesTheSlot": func(t *testing.T, h BookingHarness) {
		s := h.free(t)[1]
		b := h.book(t, s)
		for range 2 {
			require.NoError(t, h.Bookings.CancelVisit(t.Context(), visits.Cancellation{Appointment: b.Appointment, Team: b.Team, Provider: b.Provider}))
			require.True(t, h.isFree(t, s))
		}
		h.book(t, s)
	},
	"Cancel/NeverBooked": func(t *testing.T, h BookingHarness) {
		require.NoError(t, h.Bookings.CancelVisit(t.Context(), visits.Cancellation{Appointment: uuid.New(), Team: conformance.Team("a"), Provider: h.Lab}))
	},
	"Cancel/ContextEnded": func(t *testing.T, h BookingHarness) {
		require.ErrorIs(t, h.Bookings.CancelVisit(conformance.Ended(t), visits.Cancellation{Appointment: uuid.New()}), context.Canceled)
	},
}
