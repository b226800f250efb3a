package storetest_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

var bookingMutants = []mutant{
	{"offers slots of no center", booksBadly(func(l *badLab) {
		l.free = func(ctx context.Context, q appointment.SlotQuery) ([]appointment.Slot, error) {
			if len(q.Sites) == 0 {
				q.Sites = []appointment.Center{bookingSite}
			}
			return l.Lab.FreeSlots(ctx, q)
		}
	}), "Slots/AreWhatWasAskedFor"},
	{"names all slots alike", booksBadly(func(l *badLab) {
		l.free = func(ctx context.Context, q appointment.SlotQuery) ([]appointment.Slot, error) {
			list, err := l.Lab.FreeSlots(ctx, q)
			for i := range list {
				list[i].Key = "slot"
			}
			return list, err
		}
	}), "Slots/AreWhatWasAskedFor"},
	{"offers what is past", booksBadly(func(l *badLab) {
		l.free = func(ctx context.Context, q appointment.SlotQuery) ([]appointment.Slot, error) {
			list, err := l.Lab.FreeSlots(ctx, q)
			for i := range list {
				list[i].Start = q.From.Add(-time.Minute)
			}
			return list, err
		}
	}), "Slots/AreWhatWasAskedFor"},
	{"holds what it shows", booksBadly(func(l *badLab) {
		shown := 0
		l.free = func(ctx context.Context, q appointment.SlotQuery) ([]appointment.Slot, error) {
			list, err := l.Lab.FreeSlots(ctx, q)
			shown++
			return list[min(shown-1, len(list)):], err
		}
	}), "Slots/AskingChangesNothing"},
	{"looks on without its caller", booksBadly(func(l *badLab) {
		l.free = func(ctx context.Context, q appointment.SlotQuery) ([]appointment.Slot, error) {
			return l.Lab.FreeSlots(context.WithoutCancel(ctx), q)
		}
	}), "Slots/ContextEnded"},
	{"gives a slot to everybody", booksBadly(func(l *badLab) {
		l.book = func(ctx context.Context, b orders.Booking) (orders.Booked, error) {
			got, err := l.Lab.BookVisit(ctx, b)
			if healthlab.KindOf(err) == healthlab.NotFound {
				return orders.Booked{Confirmed: true}, nil
			}
			return got, err
		}
	}), "Book/TakesTheSlot"},
	{"does not know a booking again", booksBadly(func(l *badLab) {
		l.book = func(ctx context.Context, b orders.Booking) (orders.Booked, error) {
			b.Appointment = uuid.New()
			return l.Lab.BookVisit(ctx, b)
		}
	}), "Book/Again"},
	{"books what there is not", booksBadly(func(l *badLab) {
		l.book = func(ctx context.Context, b orders.Booking) (orders.Booked, error) {
			got, err := l.Lab.BookVisit(ctx, b)
			if err != nil && b.Slot.SiteCode != bookingSite.SiteCode {
				return orders.Booked{Confirmed: true}, nil
			}
			return got, err
		}
	}), "Book/NoSuchSlot"},
	{"books without its caller", booksBadly(func(l *badLab) {
		l.book = func(ctx context.Context, b orders.Booking) (orders.Booked, error) {
			return l.Lab.BookVisit(context.WithoutCancel(ctx), b)
		}
	}), "Book/ContextEnded"},
	{"moves and keeps the old time", booksBadly(func(l *badLab) {
		l.move = func(ctx context.Context, b orders.Booking) (orders.Booked, error) {
			b.Appointment = uuid.NewSHA1(b.Appointment, []byte(b.Slot.Key))
			return l.Lab.BookVisit(ctx, b)
		}
	}), "Move/FreesAndTakes"},
	{"lets go of the old time first", booksBadly(func(l *badLab) {
		l.move = func(ctx context.Context, b orders.Booking) (orders.Booked, error) {
			got, err := l.Lab.MoveVisit(ctx, b)
			if err != nil {
				_ = l.Lab.CancelVisit(ctx, orders.VisitCancellation{Appointment: b.Appointment, Team: b.Team, Provider: b.Provider})
			}
			return got, err
		}
	}), "Move/Gone"},
	{"makes what it was to move", booksBadly(func(l *badLab) {
		l.move = func(ctx context.Context, b orders.Booking) (orders.Booked, error) {
			got, err := l.Lab.MoveVisit(ctx, b)
			if err != nil {
				return l.Lab.BookVisit(ctx, b)
			}
			return got, nil
		}
	}), "Move/NoSuchAppointment"},
	{"never frees a slot", booksBadly(func(l *badLab) {
		l.cancel = func(ctx context.Context, _ orders.VisitCancellation) error { return ctx.Err() }
	}), "Cancel/FreesTheSlot"},
	{"misses what was never booked", booksBadly(func(l *badLab) {
		l.cancel = func(ctx context.Context, v orders.VisitCancellation) error {
			if !l.known[v.Appointment] {
				return healthlab.NotFound
			}
			return l.Lab.CancelVisit(ctx, v)
		}
	}), "Cancel/NeverBooked"},
	{"cancels without its caller", booksBadly(func(l *badLab) {
		l.cancel = func(ctx context.Context, v orders.VisitCancellation) error {
			return l.Lab.CancelVisit(context.WithoutCancel(ctx), v)
		}
	}), "Cancel/ContextEnded"},
}

var bookingSite = appointment.Center{LabID: 1, SiteCode: "A", IANATimezone: "America/Phoenix"}

// badLab is a laboratory that makes appointments in a way of its own.
type badLab struct {
	*sandbox.Lab
	free       func(context.Context, appointment.SlotQuery) ([]appointment.Slot, error)
	book, move func(context.Context, orders.Booking) (orders.Booked, error)
	cancel     func(context.Context, orders.VisitCancellation) error
	known      map[uuid.UUID]bool
}

func (l *badLab) FreeSlots(ctx context.Context, q appointment.SlotQuery) ([]appointment.Slot, error) {
	if l.free != nil {
		return l.free(ctx, q)
	}
	return l.Lab.FreeSlots(ctx, q)
}

func (l *badLab) BookVisit(ctx context.Context, b orders.Booking) (orders.Booked, error) {
	l.known[b.Appointment] = true
	if l.book != nil {
		return l.book(ctx, b)
	}
	return l.Lab.BookVisit(ctx, b)
}

func (l *badLab) MoveVisit(ctx context.Context, b orders.Booking) (orders.Booked, error) {
	if l.move != nil {
		return l.move(ctx, b)
	}
	return l.Lab.MoveVisit(ctx, b)
}

func (l *badLab) CancelVisit(ctx context.Context, v orders.VisitCancellation) error {
	if l.cancel != nil {
		return l.cancel(ctx, v)
	}
	return l.Lab.CancelVisit(ctx, v)
}

func booksBadly(how func(*badLab)) func(*testing.T) {
	return func(t *testing.T) {
		storetest.RunBookingBackend(t, func(testing.TB) storetest.BookingHarness {
			now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
			l := &badLab{Lab: sandbox.NewLab(&sandbox.LabOptions{Now: func() time.Time { return now }}), known: map[uuid.UUID]bool{}}
			how(l)
			return storetest.BookingHarness{Slots: l, Bookings: l, Lab: "northlab", Now: now, Site: bookingSite}
		})
	}
}

// The laboratory that the mutants are made of keeps every promise.
func TestBookingMutantsAreOfAGoodLab(t *testing.T) { booksBadly(func(*badLab) {})(t) }
