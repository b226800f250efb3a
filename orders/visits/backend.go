package visits

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// Backend makes the bookings of slots from an [appointment.SlotBackend], at a provider of home visits or at a
// laboratory's centers. Implementations must be safe for concurrent use.
//
// All three calls have the appointment's id, and the service may repeat them after any error or timeout: the provider
// must recognize the appointment and not make a second one. A timeout does not mean that the provider did nothing.
type Backend interface {
	// BookVisit makes an appointment, or requests one without a time if the slot is empty. A repeated call returns the
	// present state of the appointment. NotFound means that the slot is no longer free; Invalid that the provider
	// refuses permanently. After any other error the outcome is unknown, and the service repeats the call.
	BookVisit(ctx context.Context, b Booking) (Booked, error)
	// MoveVisit moves an appointment to another slot. A repeated call with the same slot returns the first answer.
	// Errors as BookVisit, and Precondition if it is too late to move the appointment. After NotFound, Invalid and
	// Precondition the appointment is unchanged.
	MoveVisit(ctx context.Context, b Booking) (Booked, error)
	// CancelVisit cancels an appointment. An unknown or ended appointment is no error. Precondition means that it is
	// too late to cancel; the service does not repeat the call.
	CancelVisit(ctx context.Context, v Cancellation) error
}

// Booking is the content of a call that makes or moves an appointment.
type Booking struct {
	healthlab.Private

	// Appointment is the id of the appointment, from the first call on.
	Appointment uuid.UUID
	Team        healthlab.TeamID
	Order       orders.OrderID
	Type        appointment.Type
	Provider    string
	// Slot is the chosen slot; its Key is empty for a requested visit.
	Slot appointment.Slot
	// Address is the address of the visit, with access notes.
	Address appointment.Address
	// Patient has the name, birth date, gender, phone number, e-mail address and medical
	// proxy; everything else is empty.
	Patient people.PatientDetails
	// Notes are instructions for this visit; empty for none.
	Notes string
	// SampleID is the lab's number of the order; empty before its requisition.
	SampleID string
}

// Booked is the state of an appointment at its provider.
type Booked struct {
	// Confirmed is true if the appointment will take place at the time of the slot, or at Start. If false, the
	// provider confirms it later: by a message, or in answer to a repeated call.
	Confirmed bool
	// Start and End are the provider's time for a requested visit; zero if the slot has the time.
	Start, End time.Time
	// ProviderID is the provider's reference; empty if it has none yet.
	ProviderID string
	// ExternalID is the id to show to the patient; empty for none.
	ExternalID string
	// Data is the provider's data, a JSON object; nil for none.
	Data json.RawMessage
}

// Cancellation is the content of a call that cancels an appointment.
type Cancellation struct {
	healthlab.Private

	Appointment uuid.UUID
	Team        healthlab.TeamID
	Provider    string
	// Reason is the name of a [appointment.CancellationReason]; Notes is free text. Both may be
	// empty.
	Reason, Notes string
}
