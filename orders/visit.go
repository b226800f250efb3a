package orders

import (
	"slices"

	"github.com/healthlab-dev/healthlab/internal/fsm"
)

// AppointmentType is the kind of a visit.
type AppointmentType string

// The appointment types.
const (
	// Phlebotomy is a phlebotomist's visit to the patient.
	Phlebotomy AppointmentType = "phlebotomy"
	// PatientServiceCenter is the patient's visit to a center.
	PatientServiceCenter AppointmentType = "patient_service_center"
)

// AppointmentTypes returns both types.
func AppointmentTypes() []AppointmentType {
	return []AppointmentType{Phlebotomy, PatientServiceCenter}
}

// ServiceTier is how a phlebotomy provider is booked.
type ServiceTier string

// The service tiers.
const (
	// AppointmentReady: a slot is chosen and booked.
	AppointmentReady ServiceTier = "appointment-ready"
	// AppointmentRequest: a visit is asked for, and the provider finds the time.
	AppointmentRequest ServiceTier = "appointment-request"
)

// AppointmentStatus is where an appointment stands.
type AppointmentStatus string

// The appointment statuses. An appointment that was not announced yet (its provider has
// not answered the call that books it) is held, one that never was is withdrawn: nobody
// outside sees either of them.
const (
	VisitHeld       AppointmentStatus = "held"
	VisitPending    AppointmentStatus = "pending"
	VisitReserved   AppointmentStatus = "reserved"
	VisitConfirmed  AppointmentStatus = "confirmed"
	VisitInProgress AppointmentStatus = "in_progress"
	VisitCompleted  AppointmentStatus = "completed"
	VisitCancelled  AppointmentStatus = "cancelled"
	VisitWithdrawn  AppointmentStatus = "withdrawn"
)

// EventStatus is the status as events of an appointment have it.
func (s AppointmentStatus) EventStatus() AppointmentEventStatus {
	if s == VisitConfirmed {
		return "scheduled"
	}
	return AppointmentEventStatus(s)
}

// Final reports whether an appointment may end in this status.
func (s AppointmentStatus) Final() bool { return visitLifecycle.Final(s) }

// Published reports whether anybody outside sees an appointment in this status.
func (s AppointmentStatus) Published() bool { return s != VisitHeld && s != VisitWithdrawn && s != "" }

// AppointmentEventStatus is a status in the history of an appointment: as
// [AppointmentStatus], but that confirmed is called scheduled.
type AppointmentEventStatus string

// VisitTrigger is something that happens to an appointment.
type VisitTrigger string

// The triggers, in the order of an appointment's life.
const (
	// VisitAsked: the provider has the booking and has not agreed yet.
	VisitAsked VisitTrigger = "visit_asked"
	// VisitKept: the time is held, and something is missing: the requisition, or the
	// patient's agreement with the lab.
	VisitKept VisitTrigger = "visit_kept"
	// VisitAgreed: the visit will take place.
	VisitAgreed VisitTrigger = "visit_agreed"
	// VisitMoved: the visit has another time.
	VisitMoved VisitTrigger = "visit_moved"
	// VisitStarted: the visit takes place.
	VisitStarted VisitTrigger = "visit_started"
	// VisitDone: the sample was taken.
	VisitDone VisitTrigger = "visit_done"
	// VisitDropped: the visit will not take place.
	VisitDropped VisitTrigger = "visit_dropped"
	// VisitRefused: the provider did not take the booking.
	VisitRefused VisitTrigger = "visit_refused"
)

// VisitTriggers returns every trigger.
func VisitTriggers() []VisitTrigger {
	return []VisitTrigger{VisitAsked, VisitKept, VisitAgreed, VisitMoved, VisitStarted, VisitDone, VisitDropped, VisitRefused}
}

// VisitFacts is what the guards of an appointment's life look at.
type VisitFacts struct {
	// Timed: it has a time.
	Timed bool
	// Requisition: the order has its requisition.
	Requisition bool
}

type visitRow = fsm.Row[AppointmentStatus, VisitTrigger, AppointmentType, VisitFacts]

// visitLifecycle is the whole automaton.
var visitLifecycle = fsm.Must(fsm.Table[AppointmentStatus, VisitTrigger, AppointmentType, VisitFacts]{
	Initial:  VisitHeld,
	Variants: AppointmentTypes(),
	Final:    []AppointmentStatus{VisitCompleted, VisitCancelled, VisitWithdrawn},
	Rows: slices.Concat(
		visitRows(nil, "", VisitAsked, VisitPending, VisitHeld),
		visitRows([]AppointmentType{PatientServiceCenter}, "has a time", VisitKept, VisitReserved, VisitHeld),
		visitRows(nil, "has a time", VisitKept, VisitReserved, VisitPending),
		visitRows(nil, "has time and requisition", VisitAgreed, VisitConfirmed, VisitHeld, VisitPending, VisitReserved),
		visitRows(nil, "has a time", VisitMoved, VisitPending, VisitPending),
		visitRows(nil, "", VisitMoved, VisitReserved, VisitReserved),
		visitRows(nil, "", VisitMoved, VisitConfirmed, VisitConfirmed),
		visitRows(nil, "", VisitStarted, VisitInProgress, VisitConfirmed),
		visitRows(nil, "", VisitDone, VisitCompleted, VisitConfirmed, VisitInProgress),
		visitRows(nil, "", VisitDropped, VisitCancelled, VisitPending, VisitReserved, VisitConfirmed, VisitInProgress),
		visitRows(nil, "", VisitRefused, VisitWithdrawn, VisitHeld),
	),
	Guards: map[string]func(VisitFacts) bool{
		"has a time":               func(f VisitFacts) bool { return f.Timed },
		"has time and requisition": func(f VisitFacts) bool { return f.Timed && f.Requisition },
	},
})

// visitRows spells out a transition that starts in several states.
func visitRows(types []AppointmentType, guard string, on VisitTrigger, to AppointmentStatus, from ...AppointmentStatus) []visitRow {
	out := make([]visitRow, 0, len(from))
	for _, f := range from {
		out = append(out, visitRow{From: f, On: on, To: to, Variants: types, Guard: guard})
	}
	return out
}

// NextVisit returns where a trigger leads an appointment of this type and these facts,
// and whether it leads anywhere.
func NextVisit(t AppointmentType, from AppointmentStatus, on VisitTrigger, f VisitFacts) (AppointmentStatus, bool) {
	return visitLifecycle.Next(t, from, on, f)
}

// VisitDiagram draws the life of appointments of a type as a Mermaid state diagram.
func VisitDiagram(t AppointmentType) string { return visitLifecycle.Mermaid(t) }

// AppointmentStatuses returns the statuses that somebody outside can see.
func AppointmentStatuses() []AppointmentStatus {
	return slices.DeleteFunc(visitLifecycle.States(PatientServiceCenter), func(s AppointmentStatus) bool { return !s.Published() })
}
