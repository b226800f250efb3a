package appointment

import (
	"slices"

	"github.com/healthlab-dev/healthlab/internal/fsm"
)

// Type is the kind of a visit.
type Type string

// The appointment types.
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

// ServiceTier is how a phlebotomy provider is booked.
type ServiceTier string

// The service tiers.
const (
	// ReadyTier: a slot is chosen and booked.
	ReadyTier ServiceTier = "appointment-ready"
	// RequestTier: a visit is asked for, and the provider finds the time.
	RequestTier ServiceTier = "appointment-request"
)

// Status is where an appointment stands.
type Status string

// The appointment statuses. An appointment that was not announced yet (its provider has
// not answered the call that books it) is held, one that never was is withdrawn: neither is
// published.
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

// EventStatus is the status as events of an appointment have it.
func (s Status) EventStatus() EventStatus {
	if s == VisitConfirmed {
		return "scheduled"
	}
	return EventStatus(s)
}

// Final reports whether an appointment may end in this status.
func (s Status) Final() bool { return visitLifecycle.Final(s) }

// Published reports whether callers and receivers see an appointment in this status.
func (s Status) Published() bool { return s != VisitHeld && s != VisitWithdrawn && s != "" }

// EventStatus is a status in the history of an appointment: as
// [Status], but that confirmed is called scheduled.
type EventStatus string

// Trigger is something that happens to an appointment.
type Trigger string

// The triggers, in the order of an appointment's life.
const (
	// VisitRequested: the provider has the booking and has not agreed yet.
	VisitRequested Trigger = "visit_asked"
	// VisitSlotReserved: the time is held, and something is missing: the requisition, or the
	// patient's agreement with the lab.
	VisitSlotReserved Trigger = "visit_kept"
	// VisitAccepted: the visit will take place.
	VisitAccepted Trigger = "visit_agreed"
	// VisitRescheduled: the visit has another time.
	VisitRescheduled Trigger = "visit_moved"
	// VisitStarted: the visit takes place.
	VisitStarted Trigger = "visit_started"
	// VisitDone: the sample was taken.
	VisitDone Trigger = "visit_done"
	// VisitCalledOff: the visit will not take place.
	VisitCalledOff Trigger = "visit_dropped"
	// VisitRefused: the provider did not take the booking.
	VisitRefused Trigger = "visit_refused"
)

// Triggers returns every trigger.
func Triggers() []Trigger {
	return []Trigger{VisitRequested, VisitSlotReserved, VisitAccepted, VisitRescheduled, VisitStarted, VisitDone, VisitCalledOff, VisitRefused}
}

// Facts is what the guards of an appointment's life look at.
type Facts struct {
	// Timed: it has a time.
	Timed bool
	// Requisition: the order has its requisition.
	Requisition bool
}

type visitRow = fsm.Row[Status, Trigger, Type, Facts]

// visitLifecycle is the whole automaton.
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

// visitRows spells out a transition that starts in several states.
func visitRows(types []Type, guard string, on Trigger, to Status, from ...Status) []visitRow {
	out := make([]visitRow, 0, len(from))
	for _, f := range from {
		out = append(out, visitRow{From: f, On: on, To: to, Variants: types, Guard: guard})
	}
	return out
}

// Next returns where a trigger leads an appointment of this type and these facts,
// and whether it leads anywhere.
func Next(t Type, from Status, on Trigger, f Facts) (Status, bool) {
	return visitLifecycle.Next(t, from, on, f)
}

// Diagram draws the life of appointments of a type as a Mermaid state diagram.
func Diagram(t Type) string { return visitLifecycle.Mermaid(t) }

// Statuses returns the statuses that are published.
func Statuses() []Status {
	return slices.DeleteFunc(visitLifecycle.States(PatientServiceCenter), func(s Status) bool { return !s.Published() })
}
