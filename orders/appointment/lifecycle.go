package appointment

import (
	"slices"

	"github.com/healthlab-dev/healthlab/internal/fsm"
)

// Type is the kind of a visit: at home or at a center.
type Type string

// Types of visits.
const (
	// Phlebotomy is a phlebotomist's visit to the patient.
	Phlebotomy Type = "phlebotomy"
	// PatientServiceCenter is the patient's visit to a center.
	PatientServiceCenter Type = "patient_service_center"
)

// Types returns both types.
func Types() []Type {
	return []Type{Phlebotomy, PatientServiceCenter}
}

// ServiceTier is the way in which a phlebotomy provider is booked.
type ServiceTier string

// Service tiers.
const (
	// ReadyTier: the team chooses a slot and books it.
	ReadyTier ServiceTier = "appointment-ready"
	// RequestTier: the team requests a visit, and the provider chooses the time.
	RequestTier ServiceTier = "appointment-request"
)

// Status is the state of an appointment.
type Status string

// Appointment statuses. Two are not published: an appointment is held until the provider answers the booking
// call, and withdrawn if it ended before it was published.
const (
	VisitHeld       Status = "held"
	VisitPending    Status = "pending"
	VisitReserved   Status = "reserved"
	VisitConfirmed  Status = "confirmed"
	VisitInProgress Status = "in_progress"
	VisitCompleted  Status = "completed"
	VisitCancelled  Status = "cancelled"
	VisitWithdrawn  Status = "withdrawn"
)

// EventStatus returns the name of the status in the history of an appointment: scheduled for confirmed, else
// unchanged.
func (s Status) EventStatus() EventStatus {
	if s == VisitConfirmed {
		return "scheduled"
	}
	return EventStatus(s)
}

// Final reports whether an appointment may end in this status.
func (s Status) Final() bool { return visitLifecycle.Final(s) }

// Published reports whether the API and the webhooks show an appointment in this status to the team.
func (s Status) Published() bool { return s != VisitHeld && s != VisitWithdrawn && s != "" }

// EventStatus is a status in the history of an appointment: as [Status], except that confirmed is named
// scheduled.
type EventStatus string

// Trigger is an event that changes the status of an appointment.
type Trigger string

// Triggers, in the order of an appointment's life.
const (
	// VisitRequested: the provider has received the booking and has not accepted it yet.
	VisitRequested Trigger = "visit_asked"
	// VisitSlotReserved: the provider has reserved the slot; the requisition, or the patient's agreement with the lab,
	// is still missing.
	VisitSlotReserved Trigger = "visit_kept"
	// VisitAccepted: the visit will take place.
	VisitAccepted Trigger = "visit_agreed"
	// VisitRescheduled: the visit has a new time.
	VisitRescheduled Trigger = "visit_moved"
	// VisitStarted: the visit has started.
	VisitStarted Trigger = "visit_started"
	// VisitDone: the sample was taken.
	VisitDone Trigger = "visit_done"
	// VisitCalledOff: the visit will not take place.
	VisitCalledOff Trigger = "visit_dropped"
	// VisitRefused: the provider refused the booking.
	VisitRefused Trigger = "visit_refused"
)

// Triggers returns every trigger.
func Triggers() []Trigger {
	return []Trigger{VisitRequested, VisitSlotReserved, VisitAccepted, VisitRescheduled, VisitStarted, VisitDone, VisitCalledOff, VisitRefused}
}

// Facts are the facts that the transitions of an appointment depend on.
type Facts struct {
	// Timed is true if the appointment has a time.
	Timed bool
	// Requisition is true if the order has its requisition.
	Requisition bool
}

type visitRow = fsm.Row[Status, Trigger, Type, Facts]

// visitLifecycle is the table of all states and transitions.
var visitLifecycle = fsm.Must(fsm.Table[Status, Trigger, Type, Facts]{
	Initial:  VisitHeld,
	Variants: Types(),
	Final:    []Status{VisitCompleted, VisitCancelled, VisitWithdrawn},
	Rows: slices.Concat(
		visitRows(nil, "", VisitRequested, VisitPending, VisitHeld),
		visitRows([]Type{PatientServiceCenter}, "has a time", VisitSlotReserved, VisitReserved, VisitHeld),
		visitRows(nil, "has a time", VisitSlotReserved, VisitReserved, VisitPending),
		visitRows(nil, "has time and requisition", VisitAccepted, VisitConfirmed, VisitHeld, VisitPending, VisitReserved),
		visitRows(nil, "has a time", VisitRescheduled, VisitPending, VisitPending),
		visitRows(nil, "", VisitRescheduled, VisitReserved, VisitReserved),
		visitRows(nil, "", VisitRescheduled, VisitConfirmed, VisitConfirmed),
		visitRows(nil, "", VisitStarted, VisitInProgress, VisitConfirmed),
		visitRows(nil, "", VisitDone, VisitCompleted, VisitConfirmed, VisitInProgress),
		visitRows(nil, "", VisitCalledOff, VisitCancelled, VisitPending, VisitReserved, VisitConfirmed, VisitInProgress),
		visitRows(nil, "", VisitRefused, VisitWithdrawn, VisitHeld),
	),
	Guards: map[string]func(Facts) bool{
		"has a time":               func(f Facts) bool { return f.Timed },
		"has time and requisition": func(f Facts) bool { return f.Timed && f.Requisition },
	},
})

// visitRows returns a row of the lifecycle table for each status in from. All rows have the same types, guard, trigger
// and target; an empty guard means no condition.
func visitRows(types []Type, guard string, on Trigger, to Status, from ...Status) []visitRow {
	out := make([]visitRow, 0, len(from))
	for _, f := range from {
		out = append(out, visitRow{From: f, On: on, To: to, Variants: types, Guard: guard})
	}
	return out
}

// Next returns the status after a trigger for an appointment of this type and these facts; false if the trigger
// is not allowed.
func Next(t Type, from Status, on Trigger, f Facts) (Status, bool) {
	return visitLifecycle.Next(t, from, on, f)
}

// Diagram returns the lifecycle of appointments of a type as a Mermaid state diagram.
func Diagram(t Type) string { return visitLifecycle.Mermaid(t) }

// Statuses returns the published statuses.
func Statuses() []Status {
	return slices.DeleteFunc(visitLifecycle.States(PatientServiceCenter), func(s Status) bool { return !s.Published() })
}
