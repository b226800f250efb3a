package visits

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

// ProcessDue does the due work on the appointments of at most 100 orders. It repeats calls to providers whose answer is
// missing, cancels appointments at providers, and cancels appointments that wait too long for a requisition or a
// confirmation. It returns the number of processed orders. Hosts with a scheduler of their own call it in place of
// [Service.Run]. A failing provider is no error. An error means that orders could not be claimed, that a change was not
// stored, or that ctx ended.
func (s *Service) ProcessDue(ctx context.Context) (int, error) {
	if !s.canBook() {
		return 0, nil
	}
	const batchSize = 100
	return s.visitLoop().Once(ctx, batchSize)
}

func (s *Service) visitLoop() *work.Loop[orders.Record] {
	return &work.Loop[orders.Record]{
		Name: "appointments", Workers: s.shared.Workers, Idle: s.shared.Idle, Log: s.shared.Log, Do: s.workOnVisits,
		Claim: func(ctx context.Context, n int) ([]orders.Record, error) {
			return s.due.ClaimVisits(ctx, n, s.now(), s.shared.Lease)
		},
	}
}

// workOnVisits cancels an overdue appointment of a claimed order. Then it makes the next due call to a provider about
// the order's appointments, and stores the outcome. If more calls are due, the order stays due.
func (s *Service) workOnVisits(ctx context.Context, claimed orders.Record) error {
	r, err := s.cancelOverdueVisit(ctx, claimed)
	if err != nil {
		return err
	}
	at := s.now()
	for i := range r.Visits {
		v := &r.Visits[i]
		if !v.NeedsCall() || v.Next.After(at) {
			continue
		}
		call, cancel := context.WithTimeout(ctx, s.shared.LabTimeout)
		defer cancel()
		lease := claimed.VisitWork.Lease
		var callErr error
		var b Booked
		switch {
		case v.Status.Final():
			callErr = s.opts.Bookings.CancelVisit(call, Cancellation{
				Appointment: v.ID, Team: r.TeamID, Provider: v.Provider, Reason: v.Reason, Notes: v.Remark,
			})
			if ctx.Err() == nil {
				_, err = s.recordCancellation(ctx, r, v.ID, lease, callErr)
			}
		case v.Move != nil:
			b, callErr = s.opts.Bookings.MoveVisit(call, bookingOf(&r, v))
			if ctx.Err() == nil {
				_, err = s.recordMove(ctx, r.TeamID, r.ID, v.ID, v.Move.Key, lease, b, callErr)
			}
		default:
			b, callErr = s.opts.Bookings.BookVisit(call, bookingOf(&r, v))
			if ctx.Err() == nil {
				_, err = s.recordBooking(ctx, r.TeamID, r.ID, v.ID, lease, b, callErr)
			}
		}
		if ctx.Err() != nil {
			return ctx.Err() // the process stops; after the lease another one continues
		}
		return err
	}
	_, err = s.allOrders.Update(ctx, r.TeamID, r.ID, func(r *orders.Record) ([]healthlab.Event, error) {
		releaseLease(r, claimed.VisitWork.Lease)
		r.PlanVisits()
		return nil, nil
	})
	if err != nil {
		return fmt.Errorf("plan appointments: %w", err)
	}
	return nil
}

// cancelOverdueVisit cancels the active appointment of a claimed order if it has waited too long for a requisition or
// for the provider's confirmation. It returns the order.
func (s *Service) cancelOverdueVisit(ctx context.Context, claimed orders.Record) (orders.Record, error) {
	at, event := s.now(), s.shared.NewID()
	over := func(r *orders.Record) (int, orders.VisitStep) {
		st := orders.NewVisitStep(appointment.VisitCalledOff, at, event)
		i := r.ActiveVisit()
		if i < 0 {
			return -1, st
		}
		v := &r.Visits[i]
		if !v.Status.Published() {
			st.On = appointment.VisitRefused
		}
		switch auto := r.AutoCancelAt(v); {
		case !auto.IsZero() && !auto.After(at):
			st.Data = orders.VisitData(map[string]any{"origin": "service", "reason": "no_requisition"})
		case v.Open && !v.Deadline.IsZero() && !v.Deadline.After(at):
			st.Data = orders.VisitData(map[string]any{"origin": "service", "reason": "not_confirmed"})
		default:
			return -1, st
		}
		return i, st
	}
	if i, _ := over(&claimed); i < 0 {
		return claimed, nil
	}
	r, err := s.allOrders.Update(ctx, claimed.TeamID, claimed.ID, func(r *orders.Record) ([]healthlab.Event, error) {
		i, st := over(r)
		if i < 0 {
			return nil, nil
		}
		return r.ApplyVisit(i, st)
	})
	if err != nil {
		return r, fmt.Errorf("cancel appointment: %w", err)
	}
	return r, nil
}

// recordCancellation stores the outcome of a call that cancels an appointment; callErr is the error of the call, nil
// for success.
func (s *Service) recordCancellation(ctx context.Context, claimed orders.Record, visit uuid.UUID, lease time.Time, callErr error) (orders.Record, error) {
	at := s.now()
	r, err := s.allOrders.Update(ctx, claimed.TeamID, claimed.ID, func(r *orders.Record) ([]healthlab.Event, error) {
		releaseLease(r, lease)
		if i := r.VisitIndex(visit); i >= 0 {
			v := &r.Visits[i]
			switch kind := healthlab.KindOf(callErr); {
			case callErr == nil, kind == healthlab.Precondition, kind == healthlab.Invalid, kind == healthlab.NotFound:
				v.Released = true // cancelled at the provider, or the provider no longer accepts a cancellation
			default:
				v.Attempts++
				v.Next = at.Add(s.shared.Retry(v.Attempts))
			}
		}
		r.PlanVisits()
		return nil, nil
	})
	if err != nil {
		return r, fmt.Errorf("record cancellation: %w", err)
	}
	return r, nil
}
