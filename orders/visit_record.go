package orders

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Limits for appointments of orders without a requisition.
const (
	// noRequisitionFor is the age at which an order without a requisition loses its appointment, unless the order was
	// created with an activation day.
	noRequisitionFor = 8 * time.Hour
	// noRequisitionBefore is the time before a visit at which the visit is cancelled if its order has no requisition.
	noRequisitionBefore = 2 * time.Hour
	// tick is the precision of stored times.
	tick = time.Microsecond
)

// Reservations returns names that no two orders of a team may have at the same time: one for each used booking
// key, and one for the provider's next home visit to the patient.
func (r *Record) Reservations() []string {
	var out []string
	for _, v := range r.Visits {
		for _, k := range v.Keys {
			out = append(out, SlotReservation+k.String())
		}
		if v.Move != nil {
			out = append(out, SlotReservation+v.Move.Key.String())
		}
		if v.Type == appointment.Phlebotomy && !v.Status.Final() {
			out = append(out, VisitReservation+v.Provider+" "+r.UserID.String())
		}
	}
	return out
}

// UsesKey reports whether an appointment of the order was booked with a key.
func (r *Record) UsesKey(key uuid.UUID) bool {
	// Ended appointments count too, because a booking key can be used only once.
	return slices.ContainsFunc(r.Visits, func(v Visit) bool { return slices.Contains(v.Keys, key) })
}

// SlotReservation is the prefix of the names in [Record.Reservations] that stand for booking keys.
const SlotReservation = "slot "

// VisitReservation is the prefix of the names in [Record.Reservations] that stand for a provider's next home visit to a
// patient.
const VisitReservation = "visit "

// ReservedError reports that another order of the team has one of [Record.Reservations], or that this order had
// it before. It unwraps to [healthlab.Conflict].
type ReservedError struct{ Name string }

// Error returns a text without the name of the reservation.
func (e *ReservedError) Error() string { return "conflict: a slot or a visit is held already" }

// Unwrap returns [healthlab.Conflict].
func (e *ReservedError) Unwrap() error { return healthlab.Conflict }

// VisitStep is a trigger of an appointment with its data.
type VisitStep struct {
	// On is the trigger.
	On appointment.Trigger
	// At is the time of the trigger.
	At time.Time
	// Data is the provider's or the service's data about the step, a JSON object; nil for none.
	Data json.RawMessage
	// Start and End are the new time; zero if it is unchanged.
	Start, End time.Time
	ids        *eventIDs
}

// NewVisitStep returns a step without data. The ids of its events are derived from id, so that a [Change] that
// runs again returns the same events.
func NewVisitStep(on appointment.Trigger, at time.Time, id uuid.UUID) VisitStep {
	return VisitStep{On: on, At: at, ids: &eventIDs{base: id}}
}

// eventIDs makes the ids of the events of one step from base. A step that runs again gets the same ids in the same
// order.
type eventIDs struct {
	base uuid.UUID
	n    int
}

func (g *eventIDs) next() uuid.UUID {
	g.n++
	return uuid.NewSHA1(g.base, []byte("visit "+strconv.Itoa(g.n)))
}

// VisitData encodes the data of a step that the service or the patient caused.
func VisitData(data map[string]any) json.RawMessage {
	b, err := json.Marshal(data)
	if err != nil {
		panic("orders: data of an appointment does not encode")
	}
	return b
}

// ApplyVisit applies a step to Visits[i], changes the order's status accordingly, and returns the events for the team
// about both. It changes only r. RuleError TRANSITION_NOT_ALLOWED if the status of the appointment does not allow the
// trigger; r is then unchanged.
func (r *Record) ApplyVisit(i int, s VisitStep) ([]healthlab.Event, error) {
	v := &r.Visits[i]
	timed := v.StartAt != nil || !s.Start.IsZero()
	from := v.Status
	to, ok := appointment.Next(v.Type, from, s.On, appointment.Facts{Timed: timed, Requisition: r.HasRequisition()})
	if !ok {
		return nil, rules.Broken(TransitionNotAllowed, fmt.Sprintf("an appointment in the status %s does not allow the change %s", from, s.On))
	}
	if !s.Start.IsZero() {
		start, end := healthlab.At(s.Start), healthlab.At(s.End)
		v.StartAt, v.EndAt = &start, &end
	}
	v.Status = to
	if to.Final() {
		v.Open, v.Move, v.Next = false, nil, s.At
	}
	r.showActiveVisit()
	if !to.Published() {
		r.PlanVisits()
		return nil, nil
	}
	at := healthlab.At(s.At)
	v.EventStatus, v.EventData = to.EventStatus(), s.Data
	v.Events = append(slices.Clone(v.Events), AppointmentEvent{CreatedAt: at, Status: v.EventStatus, Data: s.Data})
	v.CanReschedule = v.StartAt != nil && !v.PatientManaged && !to.Final() && to != appointment.VisitInProgress
	name := EventAppointmentUpdated
	if !from.Published() {
		name = EventAppointmentCreated
	}
	events, err := event(v.Appointment, healthlab.Event{
		ID: s.ids.next(), Type: name, Team: r.TeamID, User: r.UserID, Key: v.ID.String(), At: at.Time,
	})
	if err != nil {
		return nil, err
	}
	for _, on := range r.orderTriggers(v, from, s.On) {
		told, err := r.applyToOrder(on, s)
		if err != nil {
			return nil, err
		}
		events = append(events, told...)
	}
	r.PlanVisits()
	r.PlanMessages() // messages to the patient about the step
	return events, nil
}

// orderTriggers returns the triggers to apply to the order after an appointment v left the status from by the trigger
// on. None before the order has its requisition.
func (r *Record) orderTriggers(v *Visit, from appointment.Status, on appointment.Trigger) []Trigger {
	if !r.HasRequisition() {
		return nil
	}
	agreed := v.Status == appointment.VisitConfirmed && from != appointment.VisitConfirmed
	var out []Trigger
	if made := !from.Published() && !v.PatientManaged; made || agreed && v.PatientManaged {
		out = append(out, AppointmentBooked)
	}
	switch {
	case agreed:
		out = append(out, AppointmentConfirmed)
	case on == appointment.VisitRescheduled && v.Status == appointment.VisitConfirmed && v.Type == appointment.PatientServiceCenter:
		out = append(out, AppointmentRescheduled, AppointmentConfirmed)
	case on == appointment.VisitRescheduled && v.Status == appointment.VisitConfirmed:
		out = append(out, AppointmentRescheduled)
	case v.Status == appointment.VisitCancelled:
		out = append(out, AppointmentCalledOff)
	case v.Status == appointment.VisitCompleted && v.Type == appointment.Phlebotomy:
		out = append(out, SampleDrawn)
	}
	return out
}

// applyToOrder applies to the order the trigger on, which a step of its appointment caused. It is a no-op if the
// order's status does not allow the trigger.
func (r *Record) applyToOrder(on Trigger, s VisitStep) ([]healthlab.Event, error) {
	if _, ok := Next(r.Method(), r.LowLevel(), on, r.Facts()); !ok {
		return nil, nil
	}
	r.noteDraw(on, s.At)
	return Apply(&r.Order, Step{On: on, At: s.At, EventID: s.ids.next()})
}

// showActiveVisit stores the id of the active appointment in the order's Details; null if no appointment is active and
// published.
func (r *Record) showActiveVisit() {
	var active *uuid.UUID
	if i := r.ActiveVisit(); i >= 0 && r.Visits[i].Status.Published() {
		id := r.Visits[i].ID
		active = &id
	}
	r.setShownVisit(active)
}

// setShownVisit stores the id of an appointment in the order's Details; nil for none.
func (r *Record) setShownVisit(active *uuid.UUID) {
	for _, d := range []**VisitDetails{&r.Details.WalkIn, &r.Details.AtHome} {
		if *d != nil {
			own := **d
			own.AppointmentID = active
			*d = &own
		}
	}
}

// followOrder updates the active appointment after a step of its order. It calls onRequisition if the order got its
// requisition, else endVisit. It returns the events about the appointment and the order.
func (r *Record) followOrder(st Step) ([]healthlab.Event, error) {
	i := r.ActiveVisit()
	if i < 0 {
		return nil, nil
	}
	if st.On == LabAccepted || st.On == Imported {
		return r.onRequisition(i, NewVisitStep("", st.At, st.EventID))
	}
	events, err := r.endVisit(st)
	if r.ActiveVisit() >= 0 {
		r.PlanVisits()
	}
	return events, err
}

// onRequisition continues the appointment Visits[i] after the order got its requisition: the order becomes booked, and
// an appointment that waited for the requisition becomes confirmed. Nothing changes yet if the team does not see the
// appointment, or if it is managed by the patient and has no answer of the provider.
func (r *Record) onRequisition(i int, s VisitStep) ([]healthlab.Event, error) {
	v := &r.Visits[i]
	waits := v.PatientManaged && v.Open // until the patient and the lab agree on it
	if !v.Status.Published() || waits {
		r.PlanVisits()
		return nil, nil
	}
	var events []healthlab.Event
	if !v.PatientManaged {
		made, err := r.applyToOrder(AppointmentBooked, s)
		if err != nil {
			return nil, err
		}
		events = made
	}
	if v.Status != appointment.VisitReserved {
		r.PlanVisits()
		return events, nil
	}
	s.On = appointment.VisitAccepted
	agreed, err := r.ApplyVisit(i, s)
	return append(events, agreed...), err
}

// AutoCancelAt returns the time at which an appointment of an order without a requisition is cancelled; zero
// means never.
func (r *Record) AutoCancelAt(v *Visit) time.Time {
	low := r.LowLevel()
	if r.HasRequisition() || endings[low].TakeBack || v.Status.Final() || !v.Status.Published() {
		return time.Time{}
	}
	var at time.Time
	if !r.Scheduled {
		at = r.CreatedAt.Add(noRequisitionFor + tick)
	}
	if v.StartAt != nil {
		if near := v.StartAt.Add(tick - noRequisitionBefore); at.IsZero() || near.Before(at) {
			at = near
		}
	}
	return at
}

// Agreed reports whether the appointment is confirmed or in progress.
func (v *Visit) Agreed() bool {
	return v.Status == appointment.VisitConfirmed || v.Status == appointment.VisitInProgress
}

// NeedsCall reports whether the service must call the provider, because a booking or a move has no answer yet, or
// because the provider still has the booking of a cancelled appointment.
func (v *Visit) NeedsCall() bool {
	if v.Status.Final() {
		return v.Status != appointment.VisitCompleted && !v.Released
	}
	return v.Open || v.Move != nil
}

// PlanVisits sets the time of the next work on appointments. While a process calls a provider, its lease keeps
// other processes from calling, so the provider gets a cancellation after the booking.
func (r *Record) PlanVisits() {
	var due time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	for i := range r.Visits {
		v := &r.Visits[i]
		if v.NeedsCall() {
			sooner(v.Next)
		}
		if v.Open && !v.Status.Final() {
			sooner(v.Deadline)
		}
		sooner(r.AutoCancelAt(v))
	}
	r.VisitWork.Due = due
}

// SetProviderIDs stores the provider's ids of an appointment; an empty text leaves an id unchanged.
func (v *Visit) SetProviderIDs(providerID, externalID string) {
	if providerID != "" {
		v.ProviderID = providerID
	}
	if externalID != "" {
		v.ExternalID = &externalID
	}
}

// endVisit ends the active appointment if the step ended its order or completed the draw; else it is a no-op.
func (r *Record) endVisit(st Step) ([]healthlab.Event, error) {
	i, on := r.ActiveVisit(), r.endingTrigger(r.LowLevel(), st)
	if i < 0 || on == "" {
		return nil, nil
	}
	s := NewVisitStep(on, st.At, st.EventID)
	if on != appointment.VisitDone {
		origin := "order_completed"
		switch stages[r.LowLevel()] {
		case StageCancelled:
			origin = "order_cancelled"
		case StageFailed:
			origin = "order_failed"
		}
		s.Data = VisitData(map[string]any{"origin": origin})
	}
	return r.ApplyVisit(i, s)
}

// endingTrigger returns the trigger that ends the active appointment when the order reaches the status to by the step
// st. Empty if the appointment continues, or if there is none.
func (r *Record) endingTrigger(to LowLevel, st Step) appointment.Trigger {
	i := r.ActiveVisit()
	if i < 0 {
		return ""
	}
	v := &r.Visits[i]
	e, ends := endings[to]
	switch {
	case st.On == SampleDrawn && v.Agreed() && v.Type == appointment.Phlebotomy:
		return appointment.VisitDone
	case !ends:
		return ""
	case !v.Status.Published():
		return appointment.VisitRefused
	case e.VisitTookPlace && v.Agreed() && v.StartAt != nil && !v.StartAt.After(st.At):
		return appointment.VisitDone
	}
	return appointment.VisitCalledOff
}

// ReceiveVisitUpdate applies an appointment's update from its provider, and returns the events for the team. at is the
// time of the update; the ids of the events are derived from base. It changes only r; after an error r is unchanged.
func (r *Record) ReceiveVisitUpdate(n *VisitUpdate, at time.Time, base uuid.UUID) ([]healthlab.Event, error) {
	was, visits := *r, slices.Clone(r.Visits)
	events, err := r.applyVisitUpdate(n, at, base)
	if err != nil {
		*r, r.Visits = was, visits
		return nil, err
	}
	return events, nil
}

// applyVisitUpdate does what ReceiveVisitUpdate does, but may leave r partly changed after an error.
func (r *Record) applyVisitUpdate(n *VisitUpdate, at time.Time, base uuid.UUID) ([]healthlab.Event, error) {
	i := r.VisitIndex(n.Appointment)
	switch {
	case i < 0:
		return nil, rules.Broken(AppointmentNotFound, "the order has no appointment with this id")
	case !n.Start.IsZero() && !n.Start.Before(n.End):
		return nil, rules.Broken(AppointmentNotFound, "the end of the appointment must be after its start")
	}
	v := &r.Visits[i]
	v.SetProviderIDs(n.ProviderID, n.ExternalID)
	s := NewVisitStep(n.On, at, base)
	s.Data, s.Start, s.End = n.Data, n.Start, n.End
	var events []healthlab.Event
	if v.Status == appointment.VisitHeld && v.Type == appointment.Phlebotomy && (n.On == appointment.VisitAccepted || n.On == appointment.VisitSlotReserved) {
		first := s
		first.On, first.Data = appointment.VisitRequested, nil
		told, err := r.ApplyVisit(i, first)
		if err != nil {
			return nil, err
		}
		events = told
	}
	if n.On == appointment.VisitAccepted {
		if v.Open && v.Agreed() {
			v.Open = false // the provider has answered the booking call
			r.PlanVisits()
			return events, nil
		}
		v.Open = false
		if !r.HasRequisition() {
			s.On = appointment.VisitSlotReserved
			if v.Status == appointment.VisitReserved {
				r.PlanVisits()
				return events, nil // the appointment waits for the requisition
			}
		}
	}
	if s.On == appointment.VisitRescheduled && s.Data == nil {
		s.Data = VisitData(map[string]any{"origin": "provider", "is_reschedule": true})
	}
	if s.On == appointment.VisitCalledOff {
		v.Released = true
		if !v.Status.Published() {
			s.On = appointment.VisitRefused
		}
	}
	told, err := r.ApplyVisit(i, s)
	return append(events, told...), err
}
