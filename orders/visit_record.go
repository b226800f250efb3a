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

// Rules for appointments of orders without a requisition.
const (
	// noRequisitionFor is how old an order without one may be, if no day was set.
	noRequisitionFor = 8 * time.Hour
	// noRequisitionBefore is how close a visit without one may come.
	noRequisitionBefore = 2 * time.Hour
	// refundBefore is how long before a visit what was paid is still given back.
	refundBefore = 24 * time.Hour
	// tick is the precision of stored times.
	tick = time.Microsecond
)

// Reservations returns names that no two orders of a team may have at once: of every booking
// key that was used, and of the provider who comes to the patient's home next.
func (r *Record) Reservations() []string {
	var out []string
	for _, v := range r.Visits {
		for _, k := range v.Keys {
			out = append(out, slotReservation+k.String())
		}
		if v.Move != nil {
			out = append(out, slotReservation+v.Move.Key.String())
		}
		if v.Type == appointment.Phlebotomy && !v.Status.Final() {
			out = append(out, VisitReservation+v.Provider+" "+r.UserID.String())
		}
	}
	return out
}

func (r *Record) usesKey(key uuid.UUID) bool {
	// A booking key is for one time.
	return slices.ContainsFunc(r.Visits, func(v Visit) bool { return slices.Contains(v.Keys, key) })
}

// slotReservation is how the names of [Record.Reservations] begin that are about booking keys.
const slotReservation = "slot "

// VisitReservation is how the names of [Record.Reservations] begin that are about a provider's next
// visit to a patient; the others are about booking keys.
const VisitReservation = "visit "

// ReservedError says that another order of the team has one of [Record.Reservations], or this one had
// it before. It unwraps to [healthlab.Conflict].
type ReservedError struct{ Name string }

// Error does not say which.
func (e *ReservedError) Error() string { return "conflict: a slot or a visit is held already" }

// Unwrap returns [healthlab.Conflict].
func (e *ReservedError) Unwrap() error { return healthlab.Conflict }

// visitStep is one thing that happens to an appointment.
type visitStep struct {
	on  appointment.Trigger
	at  time.Time
	ids *eventIDs
	// data is the provider's own, or ours, of the step; nil for none.
	data json.RawMessage
	// start and end are the new time; zero if it is the same.
	start, end time.Time
}

// eventIDs makes the ids of events that follow from one step: the same every time.
type eventIDs struct {
	base uuid.UUID
	n    int
}

func (g *eventIDs) next() uuid.UUID {
	g.n++
	return uuid.NewSHA1(g.base, []byte("visit "+strconv.Itoa(g.n)))
}

// eventData is the data of a step that this service or the patient caused.
type eventData map[string]any

func encodeData(data eventData) json.RawMessage {
	b, err := json.Marshal(data)
	if err != nil {
		panic("orders: data of an appointment does not encode")
	}
	return b
}

// applyVisit applies a step to an appointment, with what follows for its order, and
// returns the events for the team. It changes nothing but r; an error leaves r as it was.
func (r *Record) applyVisit(i int, s visitStep) ([]healthlab.Event, error) {
	v := &r.Visits[i]
	timed := v.StartAt != nil || !s.start.IsZero()
	from := v.Status
	to, ok := appointment.Next(v.Type, from, s.on, appointment.Facts{Timed: timed, Requisition: r.HasRequisition()})
	if !ok {
		return nil, rules.Broken(TransitionNotAllowed, fmt.Sprintf("an appointment that is %s does not take %s", from, s.on))
	}
	if !s.start.IsZero() {
		start, end := healthlab.At(s.start), healthlab.At(s.end)
		v.StartAt, v.EndAt = &start, &end
	}
	v.Status = to
	if to.Final() {
		v.Open, v.Move, v.Next = false, nil, s.at
	}
	r.showActiveVisit()
	if !to.Published() {
		r.planVisits()
		return nil, nil
	}
	at := healthlab.At(s.at)
	v.EventStatus, v.EventData = to.EventStatus(), s.data
	v.Events = append(slices.Clone(v.Events), AppointmentEvent{CreatedAt: at, Status: v.EventStatus, Data: s.data})
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
	for _, on := range r.effects(v, from, s.on) {
		told, err := r.applyToOrder(on, s)
		if err != nil {
			return nil, err
		}
		events = append(events, told...)
	}
	r.planVisits()
	r.planMessages() // the patient is told
	return events, nil
}

// effects returns what a step of an appointment means for its order.
func (r *Record) effects(v *Visit, from appointment.Status, on appointment.Trigger) []Trigger {
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

// applyToOrder applies a step of an appointment to the order, unless the order has moved on
// without it.
func (r *Record) applyToOrder(on Trigger, s visitStep) ([]healthlab.Event, error) {
	if _, ok := Next(r.Method(), r.LowLevel(), on, r.Facts()); !ok {
		return nil, nil
	}
	r.noteDraw(on, s.at)
	return Apply(&r.Order, Step{On: on, At: s.at, EventID: s.ids.next()})
}

// showActiveVisit puts the active appointment into the details of the order.
func (r *Record) showActiveVisit() {
	var active *uuid.UUID
	if i := r.activeVisit(); i >= 0 && r.Visits[i].Status.Published() {
		id := r.Visits[i].ID
		active = &id
	}
	r.showVisit(active)
}

// showVisit puts an appointment into the details of the order; nil for none.
func (r *Record) showVisit(active *uuid.UUID) {
	for _, d := range []**VisitDetails{&r.Details.WalkIn, &r.Details.AtHome} {
		if *d != nil {
			own := **d
			own.AppointmentID = active
			*d = &own
		}
	}
}

// followOrder lets the appointment of an order follow a step of the order.
func (r *Record) followOrder(st Step) ([]healthlab.Event, error) {
	i := r.activeVisit()
	if i < 0 {
		return nil, nil
	}
	if st.On == LabAccepted || st.On == Imported {
		return r.onRequisition(i, visitStep{at: st.At, ids: &eventIDs{base: st.EventID}})
	}
	events, err := r.endVisit(st)
	if r.activeVisit() >= 0 {
		r.planVisits()
	}
	return events, err
}

// onRequisition: what waited for the requisition goes on.
func (r *Record) onRequisition(i int, s visitStep) ([]healthlab.Event, error) {
	v := &r.Visits[i]
	waits := v.PatientManaged && v.Open // for the patient and the lab
	if !v.Status.Published() || waits {
		r.planVisits()
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
		r.planVisits()
		return events, nil
	}
	s.on = appointment.VisitAccepted
	agreed, err := r.applyVisit(i, s)
	return append(events, agreed...), err
}

// autoCancelAt is when an appointment of an order without requisition is cancelled;
// zero means never.
func (r *Record) autoCancelAt(v *Visit) time.Time {
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

func (v *Visit) agreed() bool {
	return v.Status == appointment.VisitConfirmed || v.Status == appointment.VisitInProgress
}

func (v *Visit) needsCall() bool {
	if v.Status.Final() {
		return v.Status != appointment.VisitCompleted && !v.Released
	}
	return v.Open || v.Move != nil
}

func (v *Visit) retryDelay(at time.Time, retry time.Duration) time.Duration {
	// A booking without a deadline can stay pending for weeks, so the wait grows: a 24th of the time since it was
	// announced, at most a day, and never less than retry.
	if !v.Deadline.IsZero() || len(v.Events) == 0 {
		return retry
	}
	return max(retry, min(at.Sub(v.Events[0].CreatedAt.Time)/24, 24*time.Hour))
}

// planVisits sets when something is to be done next. A process that is talking to a provider
// has a lease, so a cancellation does not overtake its booking.
func (r *Record) planVisits() {
	var due time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (due.IsZero() || t.Before(due)) {
			due = t
		}
	}
	for i := range r.Visits {
		v := &r.Visits[i]
		if v.needsCall() {
			sooner(v.Next)
		}
		if v.Open && !v.Status.Final() {
			sooner(v.Deadline)
		}
		sooner(r.autoCancelAt(v))
	}
	r.VisitWork.Due = due
}

// setProviderIDs notes what the provider calls an appointment; empty text is no news.
func (v *Visit) setProviderIDs(providerID, externalID string) {
	if providerID != "" {
		v.ProviderID = providerID
	}
	if externalID != "" {
		v.ExternalID = &externalID
	}
}

// applyBooking records what a provider answered to the call that books.
func (r *Record) applyBooking(i int, b Booked, callErr error, s visitStep, retry func(int) time.Duration) ([]healthlab.Event, error) {
	v := &r.Visits[i]
	kind := healthlab.KindOf(callErr)
	refused := callErr != nil && (kind == healthlab.NotFound || kind == healthlab.Invalid)
	switch {
	case v.Status.Final():
		// It was cancelled while the call was under way; so it is taken back.
		v.Released, v.Next = v.Status == appointment.VisitCompleted || refused, s.at
		r.planVisits()
		return nil, nil
	case refused:
		s.on, s.data = appointment.VisitCalledOff, encodeData(eventData{"origin": "provider", "reason": "not_available"})
		if !v.Status.Published() {
			s.on = appointment.VisitRefused
		}
		v.Released = true
		return r.applyVisit(i, s)
	}
	v.Attempts++
	if b.Start.Before(b.End) && v.StartAt == nil {
		s.start, s.end = b.Start, b.End
	}
	b.Confirmed = b.Confirmed && (v.StartAt != nil || !s.start.IsZero()) // without a time, nothing is
	if callErr == nil {
		v.setProviderIDs(b.ProviderID, b.ExternalID)
		s.data = b.Data
	}
	v.Next = s.at.Add(v.retryDelay(s.at, retry(v.Attempts)))
	events, err := r.announce(i, b, callErr, s)
	if err != nil {
		return nil, err
	}
	if callErr == nil && b.Confirmed {
		v.Open, v.Attempts = false, 0
		s.on = appointment.VisitAccepted
		if !r.HasRequisition() {
			s.on = appointment.VisitSlotReserved
		}
		if !v.agreed() && (s.on != appointment.VisitSlotReserved || v.Status != appointment.VisitReserved) {
			told, err := r.applyVisit(i, s)
			if err != nil {
				return nil, err
			}
			events = append(events, told...)
		}
	}
	r.planVisits()
	return events, nil
}

// announce shows an appointment that is held, where its provider's answer allows it
// before it is confirmed.
func (r *Record) announce(i int, b Booked, callErr error, s visitStep) ([]healthlab.Event, error) {
	v := &r.Visits[i]
	if v.Status.Published() {
		return nil, nil
	}
	switch {
	case callErr == nil && (v.Type == appointment.Phlebotomy || v.PatientManaged):
		v.Deadline = time.Time{} // it says so when it knows
		s.on = appointment.VisitRequested
		if v.PatientManaged {
			s.on = appointment.VisitSlotReserved
		}
	case callErr != nil || !b.Confirmed:
		s.on = appointment.VisitRequested
	default:
		return nil, nil
	}
	if s.on == appointment.VisitRequested {
		s.start, s.end = time.Time{}, time.Time{}
	}
	return r.applyVisit(i, s)
}

// endVisit ends the appointment of an order that has ended.
func (r *Record) endVisit(st Step) ([]healthlab.Event, error) {
	i, on := r.activeVisit(), r.endsVisit(r.LowLevel(), st)
	if i < 0 || on == "" {
		return nil, nil
	}
	s := visitStep{on: on, at: st.At, ids: &eventIDs{base: st.EventID}}
	if on != appointment.VisitDone {
		origin := "order_completed"
		switch stages[r.LowLevel()] {
		case StageCancelled:
			origin = "order_cancelled"
		case StageFailed:
			origin = "order_failed"
		}
		s.data = encodeData(eventData{"origin": origin})
	}
	return r.applyVisit(i, s)
}

// endsVisit returns the trigger that ends the active appointment when its order reaches a
// status; empty if the appointment goes on, or if there is none.
func (r *Record) endsVisit(to LowLevel, st Step) appointment.Trigger {
	i := r.activeVisit()
	if i < 0 {
		return ""
	}
	v := &r.Visits[i]
	e, ends := endings[to]
	switch {
	case st.On == SampleDrawn && v.agreed() && v.Type == appointment.Phlebotomy:
		return appointment.VisitDone
	case !ends:
		return ""
	case !v.Status.Published():
		return appointment.VisitRefused
	case e.VisitTookPlace && v.agreed() && v.StartAt != nil && !v.StartAt.After(st.At):
		return appointment.VisitDone
	}
	return appointment.VisitCalledOff
}
