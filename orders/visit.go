package orders

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

// Appointment is a visit for an order: a phlebotomist's to the patient, or the patient's to a patient service
// center.
type Appointment struct {
	healthlab.Private

	ID                 uuid.UUID           `json:"id"`
	UserID             healthlab.UserID    `json:"user_id"`
	OrderID            OrderID             `json:"order_id"`
	OrderTransactionID *TransactionID      `json:"order_transaction_id"`
	Address            appointment.Address `json:"address"`
	Location           appointment.LngLat  `json:"location"`
	// StartAt and EndAt are null while a requested visit has no time.
	StartAt *healthlab.Time `json:"start_at"`
	EndAt   *healthlab.Time `json:"end_at"`
	// IANATimezone is the time zone of the address of the visit, for display.
	IANATimezone *string          `json:"iana_timezone"`
	Type         appointment.Type `json:"type"`
	// Provider is the configured slug of the visiting provider, or of the lab that owns the center.
	Provider string `json:"provider"`
	// Status is pending, reserved, confirmed, in_progress, completed or cancelled.
	Status appointment.Status `json:"status"`
	// ProviderID is the provider's reference of the appointment.
	ProviderID string `json:"provider_id"`
	// ExternalID is the lab's id of the appointment, for the patient.
	ExternalID *string `json:"external_id"`
	// CanReschedule is true if the appointment can be rescheduled at present.
	CanReschedule    bool    `json:"can_reschedule"`
	AppointmentNotes *string `json:"appointment_notes"`
	// EventStatus equals the status of the last of Events.
	EventStatus appointment.EventStatus `json:"event_status"`
	// EventData is the provider's data about the present status.
	EventData json.RawMessage `json:"event_data"`
	// Events is the history, oldest first.
	Events []AppointmentEvent `json:"events"`
}

// AppointmentEvent is one entry in an appointment's history.
type AppointmentEvent struct {
	CreatedAt healthlab.Time          `json:"created_at"`
	Status    appointment.EventStatus `json:"status"`
	// Data is an object, or null.
	Data json.RawMessage `json:"data"`
}

// VisitUpdate is a provider's update of an appointment, as a part of a message of package exchange.
type VisitUpdate struct {
	healthlab.Private

	Appointment uuid.UUID
	On          appointment.Trigger
	// Start and End are the new time; zero if it is unchanged.
	Start, End time.Time
	ProviderID string
	ExternalID string
	// Data is the provider's data about the step, a JSON object; nil for none.
	Data json.RawMessage
}

// Visit is a stored appointment of an order: the published fields, and internal ones.
type Visit struct {
	healthlab.Private

	Appointment
	// PatientManaged is true if only the patient and the lab can change the appointment; the order's status then
	// changes when the lab confirms the appointment.
	PatientManaged bool
	// Slot is the chosen slot; empty for a requested visit.
	Slot appointment.Slot
	// Keys are the ids of the booking keys with which the appointment was booked or rescheduled, the latest last.
	Keys []uuid.UUID
	// Open is true if the provider has not answered the booking call yet.
	Open bool
	// Released is true if the provider has no booking of the appointment.
	Released bool `json:"Told"`
	// Deadline is the time until which an open booking may be confirmed; zero for no
	// deadline.
	Deadline time.Time
	// Move is another slot that was requested from the provider; nil for none.
	Move *VisitMove
	// Next is the time of the next call to the provider; zero for none. Attempts counts the calls since the provider
	// last accepted or refused a booking or a move.
	Next     time.Time
	Attempts int
	// Reason and Remark are the reason and the remark of a cancellation.
	Reason, Remark string
}

// VisitMove is another slot that was requested from a provider.
type VisitMove struct {
	Key  uuid.UUID
	Slot appointment.Slot
	// Notes are the new notes of the visit; null for none.
	Notes *string
}

// Work is the time of background work on an order.
type Work struct {
	// Due is the time of the work; zero means never. A claim of the store finds orders by it.
	Due time.Time
	// Lease is the time, on the store's clock, until which a process may be doing the work; zero if none is.
	Lease time.Time
}

// VisitIndex returns the index of an appointment in Visits; -1 if the order has no such appointment.
func (r *Record) VisitIndex(id uuid.UUID) int {
	return slices.IndexFunc(r.Visits, func(v Visit) bool { return v.ID == id })
}

// ActiveVisit returns the index of the appointment that has not ended; -1 if all have.
func (r *Record) ActiveVisit() int {
	return slices.IndexFunc(r.Visits, func(v Visit) bool { return !v.Status.Final() })
}

// ShownVisit returns the index of the appointment of this type that the team sees: the active one, else the latest; -1
// if there is none.
func (r *Record) ShownVisit(t appointment.Type) int {
	shown := -1
	for i, v := range r.Visits {
		if v.Type == t && v.Status.Published() && (shown < 0 || !v.Status.Final() || r.Visits[shown].Status.Final()) {
			shown = i
		}
	}
	return shown
}

// HasRequisition reports whether the order has a requisition, from the lab or from outside.
func (r *Record) HasRequisition() bool {
	return r.Reached(RequisitionCreated) || r.Reached(RequisitionBypassed)
}
