package orders

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

// Appointment is a visit for an order: a phlebotomist's to the patient, or the
// patient's to a patient service center.
type Appointment struct {
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
