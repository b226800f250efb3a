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

// recordBooking stores the outcome of a booking call in the order: the provider's answer b, or the error callErr. visit
// is the id of the appointment. The order's lease is released if it is still the one that ends at lease.
func (s *Service) recordBooking(ctx context.Context, team healthlab.TeamID, id orders.OrderID, visit uuid.UUID, lease time.Time, b Booked, callErr error) (orders.Record, error) {
	at, event := s.now(), s.shared.NewID()
	r, err := s.allOrders.Update(ctx, team, id, func(r *orders.Record) ([]healthlab.Event, error) {
		releaseLease(r, lease)
		i := r.VisitIndex(visit)
		if i < 0 {
			return nil, nil
		}
		return applyBooking(r, i, b, callErr, orders.NewVisitStep("", at, event), s.shared.Retry)
	})
	if err != nil {
		return r, fmt.Errorf("record booking: %w", err)
	}
	if callErr != nil {
		s.shared.Log.Warn("provider did not confirm an appointment", "order", id.String(), "appointment", visit.String(), "kind", healthlab.KindOf(callErr).Error(), "cause", work.Cause(callErr))
	}
	return r, nil
}

func releaseLease(r *orders.Record, lease time.Time) {
	if r.VisitWork.Lease.Equal(lease) {
		r.VisitWork.Lease = time.Time{}
	}
}

func retryDelay(v *orders.Visit, at time.Time, retry time.Duration) time.Duration {
	// A booking without a deadline can stay pending for weeks, so the wait between two calls grows: it is a 24th of
	// the age of the first event of the appointment, at most a day, and at least retry.
	if !v.Deadline.IsZero() || len(v.Events) == 0 {
		return retry
	}
	return max(retry, min(at.Sub(v.Events[0].CreatedAt.Time)/24, 24*time.Hour))
}

// applyBooking applies the outcome of a booking call to Visits[i], and returns the events for the team. b is the
// provider's answer, callErr the error of the call; retry returns the wait before the next call.
func applyBooking(r *orders.Record, i int, b Booked, callErr error, s orders.VisitStep, retry func(int) time.Duration) ([]healthlab.Event, error) {
	v := &r.Visits[i]
	kind := healthlab.KindOf(callErr)
	refused := callErr != nil && (kind == healthlab.NotFound || kind == healthlab.Invalid)
	switch {
	case v.Status.Final():
		// The appointment ended during the call. The provider must cancel its booking, unless the visit took place or
		// the provider refused the booking.
		v.Released, v.Next = v.Status == appointment.VisitCompleted || refused, s.At
		r.PlanVisits()
		return nil, nil
	case refused:
		s.On, s.Data = appointment.VisitCalledOff, orders.VisitData(map[string]any{"origin": "provider", "reason": "not_available"})
		if !v.Status.Published() {
			s.On = appointment.VisitRefused
		}
		v.Released = true
		return r.ApplyVisit(i, s)
	}
	v.Attempts++
	if b.Start.Before(b.End) && v.StartAt == nil {
		s.Start, s.End = b.Start, b.End
	}
	b.Confirmed = b.Confirmed && (v.StartAt != nil || !s.Start.IsZero()) // an appointment without a time cannot be confirmed
	if callErr == nil {
		v.SetProviderIDs(b.ProviderID, b.ExternalID)
		s.Data = b.Data
	}
	v.Next = s.At.Add(retryDelay(v, s.At, retry(v.Attempts)))
	events, err := publishPending(r, i, b, callErr, s)
	if err != nil {
		return nil, err
	}
	if callErr == nil && b.Confirmed {
		v.Open, v.Attempts = false, 0
		s.On = appointment.VisitAccepted
		if !r.HasRequisition() {
			s.On = appointment.VisitSlotReserved
		}
		if !v.Agreed() && (s.On != appointment.VisitSlotReserved || v.Status != appointment.VisitReserved) {
			told, err := r.ApplyVisit(i, s)
			if err != nil {
				return nil, err
			}
			events = append(events, told...)
		}
	}
	r.PlanVisits()
	return events, nil
}

// publishPending publishes the appointment Visits[i] before it is confirmed, and returns the events for the team. It is
// a no-op if the team sees the appointment already, or if the provider confirmed it at once and it is neither a home
// visit nor managed by the patient.
func publishPending(r *orders.Record, i int, b Booked, callErr error, s orders.VisitStep) ([]healthlab.Event, error) {
	v := &r.Visits[i]
	if v.Status.Published() {
		return nil, nil
	}
	switch {
	case callErr == nil && (v.Type == appointment.Phlebotomy || v.PatientManaged):
		v.Deadline = time.Time{} // the provider confirms or cancels at any later time
		s.On = appointment.VisitRequested
		if v.PatientManaged {
			s.On = appointment.VisitSlotReserved
		}
	case callErr != nil || !b.Confirmed:
		s.On = appointment.VisitRequested
	default:
		return nil, nil
	}
	if s.On == appointment.VisitRequested {
		s.Start, s.End = time.Time{}, time.Time{}
	}
	return r.ApplyVisit(i, s)
}
