package visits

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// refundBefore is the shortest time before a home visit at which a cancellation for a refundable reason still refunds
// the price.
const refundBefore = 24 * time.Hour

// Reschedule moves an order's appointment to another slot of the same provider; a visit at home keeps its
// address. RuleErrors APPOINTMENT_NOT_FOUND, APPOINTMENT_NOT_RESCHEDULABLE, and as [Service.Book]; after
// BOOKING_NOT_CONFIRMED the appointment keeps its time until the outcome is known.
func (s *Service) Reschedule(ctx context.Context, team healthlab.TeamID, id orders.OrderID, t appointment.Type, req RescheduleRequest) (orders.Appointment, error) {
	check := BookRequest{BookingKey: req.BookingKey, AppointmentNotes: req.Notes}
	if err := check.Check(); err != nil {
		return orders.Appointment{}, err
	}
	if _, err := s.checkScheduling(ctx, team, t); err != nil {
		return orders.Appointment{}, err
	}
	at := s.now()
	key, err := s.places.OpenKey(ctx, team, t, req.BookingKey, at)
	if err != nil {
		return orders.Appointment{}, err
	}
	if _, err := s.withPlace(ctx, orders.Appointment{}, key); err != nil {
		return orders.Appointment{}, err
	}
	var visit uuid.UUID
	r, err := s.store.Update(ctx, team, id, func(r *orders.Record) ([]healthlab.Event, error) {
		i := r.ShownVisit(t)
		if i < 0 {
			return nil, noAppointment()
		}
		v := &r.Visits[i]
		visit = v.ID
		switch {
		case !v.CanReschedule:
			return nil, rules.Broken(NotReschedulable, unchangeable(v, "rescheduled"))
		case v.Provider != key.Slot.Provider || t == appointment.Phlebotomy && !sameAddress(v.Address, key.Address):
			return nil, rules.Broken(SlotOfOtherPlace, "booking_key: must be of a slot of the same provider and address as the appointment")
		case r.VisitWork.Lease.After(r.StoreTime), v.Move != nil && v.Move.Key != key.ID:
			return nil, rules.Broken(NotReschedulable, "another request is changing the appointment; retry in a minute")
		case r.UsesKey(key.ID):
			return nil, &orders.ReservedError{Name: orders.SlotReservation + key.ID.String()}
		}
		notes := req.Notes
		if req.KeepNotes {
			notes = v.AppointmentNotes
		}
		v.Move, v.Next, v.Attempts = &orders.VisitMove{Key: key.ID, Slot: key.Slot, Notes: notes}, at, 0
		r.VisitWork.Lease = r.StoreTime.Add(s.shared.Lease)
		r.PlanVisits()
		return nil, nil
	})
	if err != nil {
		return orders.Appointment{}, s.bookingError(t, err)
	}
	i := r.VisitIndex(visit)
	call, cancel := context.WithTimeout(ctx, s.shared.LabTimeout)
	booked, callErr := s.opts.Bookings.MoveVisit(call, bookingOf(&r, &r.Visits[i]))
	cancel()
	if ctx.Err() != nil {
		return orders.Appointment{}, ctx.Err()
	}
	r, err = s.recordMove(ctx, team, id, visit, key.ID, r.VisitWork.Lease, booked, callErr)
	if err != nil {
		return orders.Appointment{}, err
	}
	switch kind := healthlab.KindOf(callErr); {
	case callErr == nil:
		return r.Visits[r.VisitIndex(visit)].Appointment, nil
	case kind == healthlab.NotFound:
		return orders.Appointment{}, appointment.SlotGone()
	case kind == healthlab.Invalid, kind == healthlab.Precondition:
		return orders.Appointment{}, rules.Broken(NotReschedulable, "the provider refused the new time of the appointment")
	}
	return orders.Appointment{}, notConfirmed()
}

func sameAddress(a appointment.Address, b *appointment.Address) bool {
	same := func(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
	return b != nil && a.FirstLine == b.FirstLine && same(a.SecondLine, b.SecondLine) && a.City == b.City && a.State == b.State &&
		a.ZipCode == b.ZipCode && same(a.Unit, b.Unit)
}

// recordMove stores the outcome of a call that moves an appointment: the provider's answer b, or the error callErr. It
// ignores the outcome if the appointment no longer has a Move with the given booking key.
func (s *Service) recordMove(ctx context.Context, team healthlab.TeamID, id orders.OrderID, visit, key uuid.UUID, lease time.Time, b Booked, callErr error) (orders.Record, error) {
	at, event := s.now(), s.shared.NewID()
	r, err := s.allOrders.Update(ctx, team, id, func(r *orders.Record) ([]healthlab.Event, error) {
		releaseLease(r, lease)
		i := r.VisitIndex(visit)
		if i < 0 || r.Visits[i].Move == nil || r.Visits[i].Move.Key != key {
			r.PlanVisits()
			return nil, nil
		}
		return applyMove(r, i, b, callErr, orders.NewVisitStep(appointment.VisitRescheduled, at, event), s)
	})
	if err != nil {
		return r, fmt.Errorf("record reschedule: %w", err)
	}
	return r, nil
}

// applyMove applies the outcome of a call that moves Visits[i], and returns the events for the team. b is the
// provider's answer, callErr the error of the call.
func applyMove(r *orders.Record, i int, b Booked, callErr error, step orders.VisitStep, s *Service) ([]healthlab.Event, error) {
	v := &r.Visits[i]
	_, movable := appointment.Next(v.Type, v.Status, appointment.VisitRescheduled, appointment.Facts{Timed: true, Requisition: r.HasRequisition()})
	switch kind := healthlab.KindOf(callErr); {
	case !movable:
		v.Move, v.Attempts = nil, 0 // the visit has begun or ended in the meantime, at its old time
	case callErr == nil:
		m := *v.Move
		v.Move, v.Attempts, v.Slot, v.AppointmentNotes = nil, 0, m.Slot, m.Notes
		v.Keys = append(slices.Clone(v.Keys), m.Key)
		v.SetProviderIDs(b.ProviderID, b.ExternalID)
		step.Start, step.End = m.Slot.Start, m.Slot.End
		step.Data = orders.VisitData(map[string]any{"origin": "patient", "is_reschedule": true})
		return r.ApplyVisit(i, step)
	case kind == healthlab.NotFound, kind == healthlab.Invalid, kind == healthlab.Precondition:
		v.Move, v.Attempts = nil, 0
	default:
		v.Attempts++
		v.Next = step.At.Add(s.shared.Retry(v.Attempts))
	}
	r.PlanVisits()
	return nil, nil
}

// unchangeable returns why an appointment cannot be changed, as a text for errors. change is cancelled or rescheduled.
func unchangeable(v *orders.Visit, change string) string {
	switch {
	case v.Status.Final():
	case v.PatientManaged:
		return "only the patient can change the appointment, at the lab"
	case v.StartAt == nil:
		return "an appointment without a time cannot be " + change
	}
	return "an appointment in the status " + string(v.Status) + " cannot be " + change
}

func reasonsPath(t appointment.Type) string {
	if t == appointment.PatientServiceCenter {
		return "/v3/order/psc/appointment/cancellation-reasons"
	}
	return "/v3/order/phlebotomy/appointment/cancellation-reasons"
}

// Cancel cancels an order's appointment. The provider is called in the background.
// RuleErrors APPOINTMENT_NOT_FOUND, APPOINTMENT_NOT_CANCELLABLE,
// CANCELLATION_REASON_UNKNOWN.
func (s *Service) Cancel(ctx context.Context, team healthlab.TeamID, id orders.OrderID, t appointment.Type, reason uuid.UUID, notes *string) (orders.Appointment, error) {
	var p healthlab.Problems
	rules.Check{Problems: &p}.Optional(notes, "notes", rules.MaxNotes)
	if err := p.Err(); err != nil {
		return orders.Appointment{}, err
	}
	reasons := s.opts.CancellationReasons(t)
	why := slices.IndexFunc(reasons, func(r appointment.CancellationReason) bool { return r.ID == reason })
	at, event := s.now(), s.shared.NewID()
	var visit int
	r, err := s.store.Update(ctx, team, id, func(r *orders.Record) ([]healthlab.Event, error) {
		if visit = r.ShownVisit(t); visit < 0 {
			return nil, noAppointment()
		}
		v := &r.Visits[visit]
		switch {
		case why < 0:
			return nil, rules.Broken(CancellationReasonUnknown, "cancellation_reason_id: must be the id of a reason; GET "+reasonsPath(t)+" lists them")
		case v.Status.Final(), v.PatientManaged:
			return nil, rules.Broken(NotCancellable, unchangeable(v, "cancelled"))
		}
		v.Reason = reasons[why].Name
		data := map[string]any{"origin": "patient", "cancellation_reason_id": reason.String(), "cancellation_reason": v.Reason,
			"is_refundable": reasons[why].IsRefundable && (t != appointment.Phlebotomy || v.StartAt == nil || !at.After(v.StartAt.Add(-refundBefore)))}
		if notes != nil {
			v.Remark, data["notes"] = *notes, *notes
		}
		st := orders.NewVisitStep(appointment.VisitCalledOff, at, event)
		st.Data = orders.VisitData(data)
		return r.ApplyVisit(visit, st)
	})
	if err != nil {
		return orders.Appointment{}, fmt.Errorf("cancel appointment: %w", rules.NotFound(err, orders.OrderNotFound, "the team has no such order"))
	}
	return r.Visits[visit].Appointment, nil
}

// CancellationReasons returns the reasons for cancelling appointments of a type.
func (s *Service) CancellationReasons(t appointment.Type) []appointment.CancellationReason {
	return slices.Clone(s.opts.CancellationReasons(t))
}
