package orders

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// ProcessDue does what is due about appointments now: it asks providers again whose answer
// is open, takes cancelled ones back, and cancels those that wait too long for a requisition
// or a confirmation. It returns how many orders it took
// up: for hosts that bring their own scheduler. The first errors that left an outcome
// unrecorded are returned; a provider that fails is not an error.
func (b Bookings) ProcessDue(ctx context.Context) (int, error) {
	if b.s.visits == nil || b.s.bookings == nil {
		return 0, nil
	}
	return b.s.visitLoop().Once(ctx, batchSize)
}

func (s *Service) visitLoop() *work.Loop[Record] {
	return newLoop(s, "appointments", s.visits.ClaimVisits, s.workOnVisits)
}

// workOnVisits does one thing about the appointments of a claimed order, and records the
// outcome; what is left is due again.
func (s *Service) workOnVisits(ctx context.Context, claimed Record) error {
	r, err := s.cancelOverdueVisit(ctx, claimed)
	if err != nil {
		return err
	}
	at := s.now()
	for i := range r.Visits {
		v := &r.Visits[i]
		if !v.needsCall() || v.Next.After(at) {
			continue
		}
		call, cancel := context.WithTimeout(ctx, s.opts.LabTimeout)
		defer cancel()
		lease := claimed.VisitWork.Lease
		var callErr error
		var b Booked
		switch {
		case v.Status.Final():
			callErr = s.bookings.CancelVisit(call, VisitCancellation{
				Appointment: v.ID, Team: r.TeamID, Provider: v.Provider, Reason: v.Reason, Notes: v.Remark,
			})
			if ctx.Err() == nil {
				_, err = s.recordCancellation(ctx, r, v.ID, lease, callErr)
			}
		case v.Move != nil:
			b, callErr = s.bookings.MoveVisit(call, r.bookingOf(v))
			if ctx.Err() == nil {
				_, err = s.recordMove(ctx, r.TeamID, r.ID, v.ID, v.Move.Key, lease, b, callErr)
			}
		default:
			b, callErr = s.bookings.BookVisit(call, r.bookingOf(v))
			if ctx.Err() == nil {
				_, err = s.recordBooking(ctx, r.TeamID, r.ID, v.ID, lease, b, callErr)
			}
		}
		if ctx.Err() != nil {
			return ctx.Err() // stopping; the lease brings the order back
		}
		return err
	}
	_, err = s.allOrders.Update(ctx, r.TeamID, r.ID, func(r *Record) ([]healthlab.Event, error) {
		r.releaseLease(claimed.VisitWork.Lease)
		r.planVisits()
		return nil, nil
	})
	if err != nil {
		return fmt.Errorf("plan appointments: %w", err)
	}
	return nil
}

// cancelOverdueVisit cancels an appointment that has waited too long.
func (s *Service) cancelOverdueVisit(ctx context.Context, claimed Record) (Record, error) {
	at, ids := s.now(), eventIDs{base: s.opts.NewID()}
	over := func(r *Record) (int, visitStep) {
		i := r.activeVisit()
		if i < 0 {
			return -1, visitStep{}
		}
		v := &r.Visits[i]
		st := visitStep{on: appointment.VisitCalledOff, at: at}
		if !v.Status.Published() {
			st.on = appointment.VisitRefused
		}
		switch auto := r.autoCancelAt(v); {
		case !auto.IsZero() && !auto.After(at):
			st.data = encodeData(eventData{"origin": "service", "reason": "no_requisition"})
		case v.Open && !v.Deadline.IsZero() && !v.Deadline.After(at):
			st.data = encodeData(eventData{"origin": "service", "reason": "not_confirmed"})
		default:
			return -1, visitStep{}
		}
		return i, st
	}
	if i, _ := over(&claimed); i < 0 {
		return claimed, nil
	}
	r, err := s.allOrders.Update(ctx, claimed.TeamID, claimed.ID, func(r *Record) ([]healthlab.Event, error) {
		i, st := over(r)
		if i < 0 {
			return nil, nil
		}
		following := ids
		st.ids = &following
		return r.applyVisit(i, st)
	})
	if err != nil {
		return r, fmt.Errorf("cancel appointment: %w", err)
	}
	return r, nil
}

// recordCancellation records what a provider said to a cancellation.
func (s *Service) recordCancellation(ctx context.Context, claimed Record, visit uuid.UUID, lease time.Time, callErr error) (Record, error) {
	at := s.now()
	r, err := s.allOrders.Update(ctx, claimed.TeamID, claimed.ID, func(r *Record) ([]healthlab.Event, error) {
		r.releaseLease(lease)
		if i := r.visit(visit); i >= 0 {
			v := &r.Visits[i]
			switch kind := healthlab.KindOf(callErr); {
			case callErr == nil, kind == healthlab.Precondition, kind == healthlab.Invalid, kind == healthlab.NotFound:
				v.Released = true // or it is too late to tell
			default:
				v.Attempts++
				v.Next = at.Add(s.opts.Retry(v.Attempts))
			}
		}
		r.planVisits()
		return nil, nil
	})
	if err != nil {
		return r, fmt.Errorf("record cancellation: %w", err)
	}
	return r, nil
}

// receiveVisitUpdate takes in what a provider reports of an appointment. It is pure apart from r; an
// error leaves r as it was.
func (r *Record) receiveVisitUpdate(n *VisitUpdate, at time.Time, base uuid.UUID) ([]healthlab.Event, error) {
	was, visits := *r, slices.Clone(r.Visits)
	events, err := r.applyVisitUpdate(n, at, base)
	if err != nil {
		*r, r.Visits = was, visits
		return nil, err
	}
	return events, nil
}

// applyVisitUpdate lets the steps happen that news are about; an error may come between two.
func (r *Record) applyVisitUpdate(n *VisitUpdate, at time.Time, base uuid.UUID) ([]healthlab.Event, error) {
	i := r.visit(n.Appointment)
	if i < 0 || !n.Start.IsZero() && !n.Start.Before(n.End) {
		return nil, rules.Broken(AppointmentNotFound, "the order has no such appointment, or it ends before it begins")
	}
	v := &r.Visits[i]
	v.setProviderIDs(n.ProviderID, n.ExternalID)
	s := visitStep{on: n.On, at: at, ids: &eventIDs{base: base}, data: n.Data, start: n.Start, end: n.End}
	var events []healthlab.Event
	if v.Status == appointment.VisitHeld && v.Type == appointment.Phlebotomy && (n.On == appointment.VisitAccepted || n.On == appointment.VisitSlotReserved) {
		first := s
		first.on, first.data = appointment.VisitRequested, nil
		told, err := r.applyVisit(i, first)
		if err != nil {
			return nil, err
		}
		events = told
	}
	if n.On == appointment.VisitAccepted {
		if v.Open && v.agreed() {
			v.Open = false // the answer that it owed
			r.planVisits()
			return events, nil
		}
		v.Open = false
		if !r.HasRequisition() {
			s.on = appointment.VisitSlotReserved
			if v.Status == appointment.VisitReserved {
				r.planVisits()
				return events, nil // it waits for the requisition
			}
		}
	}
	if s.on == appointment.VisitRescheduled && s.data == nil {
		s.data = encodeData(eventData{"origin": "provider", "is_reschedule": true})
	}
	if s.on == appointment.VisitCalledOff {
		v.Released = true
		if !v.Status.Published() {
			s.on = appointment.VisitRefused
		}
	}
	told, err := r.applyVisit(i, s)
	return append(events, told...), err
}
