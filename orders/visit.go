package orders

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

// Appointment is a visit for an order: a phlebotomist's to the patient, or the
// patient's to a patient service center.
type Appointment struct {
	healthlab.Private

	ID                 uuid.UUID           `json:"id"`
	UserID             healthlab.UserID    `json:"user_id"`
	OrderID            OrderID             `json:"order_id"`
	OrderTransactionID *TransactionID      `json:"order_transaction_id"`
	Address            appointment.Address `json:"address"`
	Location           appointment.LngLat  `json:"location"`
	// StartAt and EndAt are null while a request has no time.
	StartAt *healthlab.Time `json:"start_at"`
	EndAt   *healthlab.Time `json:"end_at"`
	// IANATimezone is the zone of the place, for display.
	IANATimezone *string          `json:"iana_timezone"`
	Type         appointment.Type `json:"type"`
	// Provider is the configured slug of who comes, or of whose center it is.
	Provider string `json:"provider"`
	// Status is pending, reserved, confirmed, in_progress, completed or cancelled.
	Status appointment.Status `json:"status"`
	// ProviderID is our reference at the provider.
	ProviderID string `json:"provider_id"`
	// ExternalID is the lab's id of the appointment, to be shown to the patient.
	ExternalID *string `json:"external_id"`
	// CanReschedule: another time may be asked for now.
	CanReschedule    bool    `json:"can_reschedule"`
	AppointmentNotes *string `json:"appointment_notes"`
	// EventStatus equals the status of the last of Events.
	EventStatus appointment.EventStatus `json:"event_status"`
	// EventData is the provider's own data of the current state.
	EventData json.RawMessage `json:"event_data"`
	// Events is the history, oldest first.
	Events []AppointmentEvent `json:"events"`
}

// AppointmentEvent is one step of an appointment's life.
type AppointmentEvent struct {
	CreatedAt healthlab.Time          `json:"created_at"`
	Status    appointment.EventStatus `json:"status"`
	// Data is an object, or null.
	Data json.RawMessage `json:"data"`
}

// VisitUpdate is what a provider reports of an appointment, as a part of a [Message].
type VisitUpdate struct {
	healthlab.Private

	Appointment uuid.UUID
	On          appointment.Trigger
	// Start and End are the new time; zero if it is the same.
	Start, End time.Time
	ProviderID string
	ExternalID string
	// Data is the provider's own data of the step, a JSON object; nil for none.
	Data json.RawMessage
}

// Visit is an appointment as it is kept with its order: what is published, and what is
// not.
type Visit struct {
	healthlab.Private

	Appointment
	// PatientManaged: only the patient and the lab can change it; its order does not
	// move before it is confirmed.
	PatientManaged bool
	// Slot is what was chosen; empty for a visit that was only asked for.
	Slot appointment.Slot
	// Keys name the booking keys that were used for it, the latest last.
	Keys []uuid.UUID
	// Open: the provider owes an answer to the call that books.
	Open bool
	// Released: the provider has no booking of it.
	Released bool `json:"Told"`
	// Deadline is the time until which an open booking may be confirmed; zero for no
	// deadline.
	Deadline time.Time
	// Move is another slot that the provider was asked for; nil for none.
	Move *VisitMove
	// Next is the time of the next call to the provider; zero for none. Attempts counts
	// the calls since the last one that settled the booking or the move.
	Next     time.Time
	Attempts int
	// Reason and Remark go with a cancellation.
	Reason, Remark string
}

// VisitMove is another slot that a provider was asked for.
type VisitMove struct {
	Key  uuid.UUID
	Slot appointment.Slot
	// Notes are those of the visit afterwards; null for none.
	Notes *string
}

// Work is when something is to be done about an order.
type Work struct {
	// Due is when; zero means never. A claim of the store looks for it.
	Due time.Time
	// Lease is until when, on the store's clock, a process may be doing it; zero if none is.
	Lease time.Time
}

// VisitIndex returns the place of an appointment in Visits; -1 if the order has no such appointment.
func (r *Record) VisitIndex(id uuid.UUID) int {
	return slices.IndexFunc(r.Visits, func(v Visit) bool { return v.ID == id })
}

// ActiveVisit returns the place of the appointment that has not ended; -1 if every one has.
func (r *Record) ActiveVisit() int {
	return slices.IndexFunc(r.Visits, func(v Visit) bool { return !v.Status.Final() })
}

// ShownVisit returns the place of the appointment that a team sees: the active one,
// else the latest; -1 if there is none of this type.
func (r *Record) ShownVisit(t appointment.Type) int {
	shown := -1
	for i, v := range r.Visits {
		if v.Type == t && v.Status.Published() && (shown < 0 || !v.Status.Final() || r.Visits[shown].Status.Final()) {
			shown = i
		}
	}
	return shown
}

// HasRequisition reports whether the lab, or the one that placed the order, has written one.
func (r *Record) HasRequisition() bool {
	return r.Reached(RequisitionCreated) || r.Reached(RequisitionBypassed)
}
