package orders

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Appointment is a visit for an order: a phlebotomist's to the patient, or the
// patient's to a patient service center.
type Appointment struct {
	ID                 uuid.UUID          `json:"id"`
	UserID             healthlab.UserID   `json:"user_id"`
	OrderID            OrderID            `json:"order_id"`
	OrderTransactionID *TransactionID     `json:"order_transaction_id"`
	Address            AppointmentAddress `json:"address"`
	Location           LngLat             `json:"location"`
	// StartAt and EndAt are null while a request has no time.
	StartAt *healthlab.Time `json:"start_at"`
	EndAt   *healthlab.Time `json:"end_at"`
	// IANATimezone is the zone of the place, for display.
	IANATimezone *string         `json:"iana_timezone"`
	Type         AppointmentType `json:"type"`
	// Provider is the configured slug of who comes, or of whose center it is.
	Provider string `json:"provider"`
	// Status is pending, reserved, confirmed, in_progress, completed or cancelled.
	Status AppointmentStatus `json:"status"`
	// ProviderID is our reference at the provider.
	ProviderID string `json:"provider_id"`
	// ExternalID is the lab's id of the appointment, to be shown to the patient.
	ExternalID *string `json:"external_id"`
	// CanReschedule: another time may be asked for now.
	CanReschedule    bool    `json:"can_reschedule"`
	AppointmentNotes *string `json:"appointment_notes"`
	// EventStatus equals the status of the last of Events.
	EventStatus AppointmentEventStatus `json:"event_status"`
	// EventData is the provider's own data of the current state.
	EventData json.RawMessage `json:"event_data"`
	// Events is the history, oldest first.
	Events []AppointmentEvent `json:"events"`
}

// AppointmentEvent is one step of an appointment's life.
type AppointmentEvent struct {
	CreatedAt healthlab.Time         `json:"created_at"`
	Status    AppointmentEventStatus `json:"status"`
	// Data is an object, or null.
	Data json.RawMessage `json:"data"`
}

// AppointmentAddress is where a visit takes place.
type AppointmentAddress struct {
	FirstLine   string  `json:"first_line"`
	SecondLine  *string `json:"second_line"`
	City        string  `json:"city"`
	State       string  `json:"state"`
	ZipCode     string  `json:"zip_code"`
	AccessNotes *string `json:"access_notes"`
	// Unit is deprecated; use SecondLine.
	Unit *string `json:"unit"`
}

// UnmarshalJSON reads what is published; the postal code may be called zip.
func (a *AppointmentAddress) UnmarshalJSON(b []byte) error {
	type plain AppointmentAddress
	return rules.UnmarshalZip(b, (*plain)(a), &a.ZipCode)
}

// LngLat is a place on earth, in degrees.
type LngLat struct {
	Lng float64 `json:"lng"`
	Lat float64 `json:"lat"`
}
