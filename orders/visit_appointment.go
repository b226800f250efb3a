package orders

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
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

// BookRequest books a slot.
type BookRequest struct {
	// BookingKey is from an answer about free slots.
	BookingKey string `json:"booking_key"`
	// AppointmentNotes are instructions for this visit.
	AppointmentNotes *string `json:"appointment_notes"`
	// AsyncConfirmation takes pending as an answer, where the provider is slow: it is
	// then asked again in the background. For visits to centers; else it is passed
	// over, as are the next two.
	AsyncConfirmation bool `json:"async_confirmation" wire:"opt"`
	// SyncConfirmationTimeoutMillisecond is how long to wait for the provider before
	// that: 1,000 to 10,000, 2,500 if not given.
	SyncConfirmationTimeoutMillisecond *int `json:"sync_confirmation_timeout_millisecond"`
	// AsyncConfirmationTimeoutMillisecond is how long to go on asking before the
	// appointment is cancelled: 60,000 to 172,800,000 (48 hours), 900,000 if not given.
	AsyncConfirmationTimeoutMillisecond *int `json:"async_confirmation_timeout_millisecond"`
}

const (
	defaultSyncTimeout  = 2500 * time.Millisecond
	defaultAsyncTimeout = 15 * time.Minute
	// bookingKeep is how long answers of bookings are kept for their idempotency keys.
	bookingKeep = 14 * 24 * time.Hour
	maxKeyText  = 8192
)

// BookingKeep is how long the answer of a booking is kept for its idempotency key.
func BookingKeep() time.Duration { return bookingKeep }

// Check returns Invalid with every problem of the request itself.
func (r *BookRequest) Check() error {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	c.Text(r.BookingKey, "booking_key", 1, maxKeyText)
	c.Optional(r.AppointmentNotes, "appointment_notes", rules.MaxNotes)
	for _, t := range []struct {
		n         *int
		low, high int
		name      string
	}{
		{r.SyncConfirmationTimeoutMillisecond, 1000, 10_000, "sync_confirmation_timeout_millisecond"},
		{r.AsyncConfirmationTimeoutMillisecond, 60_000, 172_800_000, "async_confirmation_timeout_millisecond"},
	} {
		if t.n != nil && (*t.n < t.low || *t.n > t.high) {
			c.Add("out_of_range", fmt.Sprintf("is %d to %d", t.low, t.high), t.name)
		}
	}
	return p.Err()
}

func millis(n *int, def time.Duration) time.Duration {
	if n == nil {
		return def
	}
	return time.Duration(*n) * time.Millisecond
}

// VisitRequest asks for a visit at home, whose time the provider finds.
type VisitRequest struct {
	Address appointment.AddressInput `json:"address"`
	// Provider must be bookable by request at the address.
	Provider         string  `json:"provider"`
	AppointmentNotes *string `json:"appointment_notes"`
}

// RescheduleRequest gives an appointment another time.
type RescheduleRequest struct {
	BookingKey string
	// Notes replace those of the appointment; null clears them. KeepNotes leaves them
	// as they are.
	Notes     *string
	KeepNotes bool
}
