package orders

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/people"
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

// BookRequest books a slot.
type BookRequest struct {
	healthlab.Private

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
	maxKeyText          = 8192
)

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
	healthlab.Private

	Address appointment.AddressInput `json:"address"`
	// Provider must be bookable by request at the address.
	Provider         string  `json:"provider"`
	AppointmentNotes *string `json:"appointment_notes"`
}

// RescheduleRequest gives an appointment another time.
type RescheduleRequest struct {
	healthlab.Private

	BookingKey string
	// Notes replace those of the appointment; null clears them. KeepNotes leaves them
	// as they are.
	Notes     *string
	KeepNotes bool
}

// BookingBackend is a [LabBackend] that takes bookings of what its [appointment.SlotBackend]
// offers. A Service looks for it once, in its constructor. Implementations must be safe
// for concurrent use.
//
// All three calls carry the appointment's id, and may be made again with it after any
// error or timeout: the provider must recognise the appointment and not make a second
// one. A deadline that ends says nothing of what the provider did.
type BookingBackend interface {
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
	CancelVisit(ctx context.Context, v VisitCancellation) error
}

// Booking is what a provider gets to make or move an appointment.
type Booking struct {
	healthlab.Private

	// Appointment names it, from the first call on.
	Appointment uuid.UUID
	Team        healthlab.TeamID
	Order       OrderID
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

// VisitCancellation takes an appointment back at its provider.
type VisitCancellation struct {
	healthlab.Private

	Appointment uuid.UUID
	Team        healthlab.TeamID
	Provider    string
	// Reason is the name of a [appointment.CancellationReason]; Notes is free text. Both may be
	// empty.
	Reason, Notes string
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

// VisitWork is when something is to be done about the appointments of an order.
type VisitWork struct {
	// Due is when; zero means never. [VisitStore.ClaimVisits] looks for it.
	Due time.Time
	// Lease is until when, on the store's clock, a process may be talking to a provider;
	// zero if none is.
	Lease time.Time
}

func (r *Record) visit(id uuid.UUID) int {
	return slices.IndexFunc(r.Visits, func(v Visit) bool { return v.ID == id })
}

func (r *Record) activeVisit() int {
	return slices.IndexFunc(r.Visits, func(v Visit) bool { return !v.Status.Final() })
}

// shownVisit returns the place of the appointment that a team sees: the active one,
// else the latest; -1 if there is none of this type.
func (r *Record) shownVisit(t appointment.Type) int {
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
