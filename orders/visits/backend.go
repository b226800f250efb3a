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

// Backend takes bookings of what an [appointment.SlotBackend] offers: the provider that a visitor is sent
// by, or a laboratory for its centers. Implementations must be safe for concurrent use.
//
// All three calls carry the appointment's id, and may be made again with it after any
// error or timeout: the provider must recognise the appointment and not make a second
// one. A deadline that ends says nothing of what the provider did.
type Backend interface {
	// BookVisit makes an appointment, or asks for one without a time where the slot is
	// empty; made again, it answers how the appointment stands now. Errors: NotFound
	// (the slot is gone), Invalid (the provider refuses for good); anything else: the
	// outcome is open, and the call is made again.
	BookVisit(ctx context.Context, b Booking) (Booked, error)
	// MoveVisit gives an appointment the time of another slot. Made again with the
	// same slot, it answers as the first time. Errors as BookVisit, and Precondition
	// (too late); the appointment then stays what it was.
	MoveVisit(ctx context.Context, b Booking) (Booked, error)
	// CancelVisit takes an appointment back. One that the provider never got, or that
	// is over, is no error. Precondition means that it is too late: it is not called
	// again.
	CancelVisit(ctx context.Context, v Cancellation) error
}

// Booking is what a provider gets to make or move an appointment.
type Booking struct {
	healthlab.Private

	// Appointment names it, from the first call on.
	Appointment uuid.UUID
	Team        healthlab.TeamID
	Order       orders.OrderID
	Type        appointment.Type
	Provider    string
	// Slot is what was chosen; its Key is empty where only a visit is asked for.
	Slot appointment.Slot
	// Address is where the sample is taken, with how to get in.
	Address appointment.Address
	// Patient has the name, birth date, gender, phone number, e-mail address and medical
	// proxy; everything else is empty.
	Patient people.PatientDetails
	// Notes are instructions for this visit; empty for none.
	Notes string
	// SampleID is the lab's number of the order; empty before its requisition.
	SampleID string
}

// Booked is how an appointment stands at its provider.
type Booked struct {
	// Confirmed: it will take place at the time of the slot, or at Start. If not, the provider has
	// the booking and says so later: in a message, or when it is asked again.
	Confirmed bool
	// Start and End are the time that the provider found for a visit that was only
	// asked for; zero where the slot says it.
	Start, End time.Time
	// ProviderID is the provider's reference; empty if it has none yet.
	ProviderID string
	// ExternalID is the id to show to the patient; empty for none.
	ExternalID string
	// Data is the provider's own data, a JSON object; nil for none.
	Data json.RawMessage
}

// Cancellation takes an appointment back at its provider.
type Cancellation struct {
	healthlab.Private

	Appointment uuid.UUID
	Team        healthlab.TeamID
	Provider    string
	// Reason is the name of a [appointment.CancellationReason]; Notes is free text. Both may be
	// empty.
	Reason, Notes string
}
