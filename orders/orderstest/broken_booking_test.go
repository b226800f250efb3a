package orderstest_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

var brokenBookingBackends = []conformance.Broken{
	{Name: "offers slots of no center", Suite: booksBadly(func(l *badLab) {
		l.free = func(ctx context.Context, q appointment.SlotQuery) ([]appointment.Slot, error) {
			if len(q.Sites) == 0 {
				q.Sites = []appointment.Center{bookingSite}
			}
			return l.Lab.FreeSlots(ctx, q)
		}
	}), Subtest: "Slots/AreWhatWasAskedFor"},
	{Name: "names all slots alike", Suite: booksBadly(func(l *badLab) {
		l.free = func(ctx context.Context, q appointment.SlotQuery) ([]appointment.Slot, error) {
			list, err := l.Lab.FreeSlots(ctx, q)
			for i := range list {
				list[i].Key = "slot"
			}
			return list, err
		}
	}), Subtest: "Slots/AreWhatWasAskedFor"},
	{Name: "offers what is past", Suite: booksBadly(func(l *badLab) {
		l.free = func(ctx context.Context, q appointment.SlotQuery) ([]appointment.Slot, error) {
			list, err := l.Lab.FreeSlots(ctx, q)
			for i := range list {
				list[i].Start = q.From.Add(-time.Minute)
			}
			return list, err
		}
	}), Subtest: "Slots/AreWhatWasAskedFor"},
	{Name: "holds what it shows", Suite: booksBadly(func(l *badLab) {
		shown := 0
		l.free = func(ctx context.Context, q appointment.SlotQuery) ([]appointment.Slot, error) {
			list, err := l.Lab.FreeSlots(ctx, q)
			shown++
			return list[min(shown-1, len(list)):], err
		}
	}), Subtest: "Slots/AskingChangesNothing"},
	{Name: "looks on without its caller", Suite: booksBadly(func(l *badLab) {
		l.free = func(ctx context.Context, q appointment.SlotQuery) ([]appointment.Slot, error) {
			return l.Lab.FreeSlots(context.WithoutCancel(ctx), q)
		}
	}), Subtest: "Slots/ContextEnded"},
	{Name: "gives a slot to everybody", Suite: booksBadly(func(l *badLab) {
		l.book = func(ctx context.Context, b visits.Booking) (visits.Booked, error) {
			got, err := l.Lab.BookVisit(ctx, b)
			if healthlab.KindOf(err) == healthlab.NotFound {
				return visits.Booked{Confirmed: true}, nil
			}
			return got, err
		}
	}), Subtest: "Book/TakesTheSlot"},
	{Name: "does not know a booking again", Suite: booksBadly(func(l *badLab) {
		l.book = func(ctx context.Context, b visits.Booking) (visits.Booked, error) {
			b.Appointment = uuid.New()
			return l.Lab.BookVisit(ctx, b)
		}
	}), Subtest: "Book/Again"},
	{Name: "books what there is not", Suite: booksBadly(func(l *badLab) {
		l.book = func(ctx context.Context, b visits.Booking) (visits.Booked, error) {
			got, err := l.Lab.BookVisit(ctx, b)
			if err != nil && b.Slot.SiteCode != bookingSite.SiteCode {
				return visits.Booked{Confirmed: true}, nil
			}
			return got, err
		}
	}), Subtest: "Book/NoSuchSlot"},
	{Name: "books without its caller", Suite: booksBadly(func(l *badLab) {
		l.book = func(ctx context.Context, b visits.Booking) (visits.Booked, error) {
			return l.Lab.BookVisit(context.WithoutCancel(ctx), b)
		}
	}), Subtest: "Book/ContextEnded"},
	{Name: "moves and keeps the old time", Suite: booksBadly(func(l *badLab) {
		l.move = func(ctx context.Context, b visits.Booking) (visits.Booked, error) {
			b.Appointment = uuid.NewSHA1(b.Appointment, []byte(b.Slot.Key))
			return l.Lab.BookVisit(ctx, b)
		}
	}), Subtest: "Move/FreesAndTakes"},
	{Name: "lets go of the old time first", Suite: booksBadly(func(l *badLab) {
		l.move = func(ctx context.Context, b visits.Booking) (visits.Booked, error) {
			got, err := l.Lab.MoveVisit(ctx, b)
			if err != nil {
				_ = l.Lab.CancelVisit(ctx, visits.Cancellation{Appointment: b.Appointment, Team: b.Team, Provider: b.Provider})
			}
			return got, err
		}
	}), Subtest: "Move/Gone"},
	{Name: "makes what it was to move", Suite: booksBadly(func(l *badLab) {
		l.move = func(ctx context.Context, b visits.Booking) (visits.Booked, error) {
			got, err := l.Lab.MoveVisit(ctx, b)
			if err != nil {
				return l.Lab.BookVisit(ctx, b)
			}
			return got, nil
		}
	}), Subtest: "Move/NoSuchAppointment"},
	{Name: "never frees a slot", Suite: booksBadly(func(l *badLab) {
		l.cancel = func(ctx context.Context, _ visits.Cancellation) error { return ctx.Err() }
	}), Subtest: "Cancel/FreesTheSlot"},
	{Name: "misses what was never booked", Suite: booksBadly(func(l *badLab) {
		l.cancel = func(ctx context.Context, v visits.Cancellation) error {
			if !l.known[v.Appointment] {
				return healthlab.NotFound
			}
			return l.Lab.CancelVisit(ctx, v)
		}
	}), Subtest: "Cancel/NeverBooked"},
	{Name: "cancels without its caller", Suite: booksBadly(func(l *badLab) {
		l.cancel = func(ctx context.Context, v visits.Cancellation) error {
			return l.Lab.CancelVisit(context.WithoutCancel(ctx), v)
		}
	}), Subtest: "Cancel/ContextEnded"},
}

var bookingSite = appointment.Center{LabID: 1, SiteCode: "A", IANATimezone: "America/Phoenix"}

// badLab is a laboratory that makes appointments in a way of its own.
type badLab struct {
	*sandbox.Lab
	free       func(context.Context, appointment.SlotQuery) ([]appointment.Slot, error)
	book, move func(context.Context, visits.Booking) (visits.Booked, error)
	cancel     func(context.Context, visits.Cancellation) error
	known      map[uuid.UUID]bool
}

func (l *badLab) FreeSlots(ctx context.Context, q appointment.SlotQuery) ([]appointment.Slot, error) {
	if l.free != nil {
		return l.free(ctx, q)
	}
	return l.Lab.FreeSlots(ctx, q)
}

func (l *badLab) BookVisit(ctx context.Context, b visits.Booking) (visits.Booked, error) {
	l.known[b.Appointment] = true
	if l.book != nil {
		return l.book(ctx, b)
	}
	return l.Lab.BookVisit(ctx, b)
}

func (l *badLab) MoveVisit(ctx context.Context, b visits.Booking) (visits.Booked, error) {
	if l.move != nil {
		return l.move(ctx, b)
	}
	return l.Lab.MoveVisit(ctx, b)
}

func (l *badLab) CancelVisit(ctx context.Context, v visits.Cancellation) error {
	if l.cancel != nil {
		return l.cancel(ctx, v)
	}
	return l.Lab.CancelVisit(ctx, v)
}

func booksBadly(how func(*badLab)) func(*testing.T) {
	return func(t *testing.T) {
		orderstest.RunBookingBackend(t, func(testing.TB) orderstest.BookingHarness {
			now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
			l := &badLab{Lab: sandbox.NewLab(&sandbox.LabOptions{Now: func() time.Time { return now }}), known: map[uuid.UUID]bool{}}
			how(l)
			return orderstest.BookingHarness{Slots: l, Bookings: l, Lab: "northlab", Now: now, Site: bookingSite}
		})
	}
}

// The laboratory from which the mutants are made passes the suite.
func TestBrokenBookings_unbrokenBasePassesTheSuite(t *testing.T) { booksBadly(func(*badLab) {})(t) }
