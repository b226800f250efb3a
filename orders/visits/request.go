package visits

import (
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// BookRequest is a request to book a slot.
type BookRequest struct {
	healthlab.Private

	// BookingKey is a key from an answer about free slots.
	BookingKey string `json:"booking_key"`
	// AppointmentNotes are instructions for this visit.
	AppointmentNotes *string `json:"appointment_notes"`
	// AsyncConfirmation accepts a pending appointment if the provider is slow; the service then calls the provider
	// again in the background. Only for visits to centers: for visits at home, this field and the two timeouts after it
	// are ignored.
	AsyncConfirmation bool `json:"async_confirmation" wire:"opt"`
	// SyncConfirmationTimeoutMillisecond is the time to wait for the provider before the appointment becomes
	// pending: 1,000 to 10,000, by default 2,500.
	SyncConfirmationTimeoutMillisecond *int `json:"sync_confirmation_timeout_millisecond"`
	// AsyncConfirmationTimeoutMillisecond is the time after which a pending appointment is cancelled: 60,000 to
	// 172,800,000 (48 hours), by default 900,000.
	AsyncConfirmationTimeoutMillisecond *int `json:"async_confirmation_timeout_millisecond"`
}

const (
	defaultSyncTimeout  = 2500 * time.Millisecond
	defaultAsyncTimeout = 15 * time.Minute
	maxKeyText          = 8192
)

// Check returns Invalid with every problem of the request.
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
			c.Add("out_of_range", fmt.Sprintf("must be from %d to %d", t.low, t.high), t.name)
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

// VisitRequest is a request for a visit at home, whose time the provider chooses.
type VisitRequest struct {
	healthlab.Private

	Address appointment.AddressInput `json:"address"`
	// Provider must be a provider of the tier appointment-request that serves the address.
	Provider         string  `json:"provider"`
	AppointmentNotes *string `json:"appointment_notes"`
}

// RescheduleRequest is a request to move an appointment to another slot.
type RescheduleRequest struct {
	healthlab.Private

	BookingKey string
	// Notes replace the notes of the appointment; nil clears them. If KeepNotes is true, Notes is ignored.
	Notes     *string
	KeepNotes bool
}

// Values of [healthlab.RuleError].Type in this package. The HTTP API returns them as the error's type.
const (
	PatientAddressMissing     = "PATIENT_ADDRESS_MISSING"
	AppointmentExists         = "APPOINTMENT_EXISTS"
	NotCancellable            = "APPOINTMENT_NOT_CANCELLABLE"
	NotReschedulable          = "APPOINTMENT_NOT_RESCHEDULABLE"
	BookingNotConfirmed       = "BOOKING_NOT_CONFIRMED"
	BookingRefused            = "BOOKING_REFUSED"
	SlotOfOtherPlace          = "SLOT_OF_OTHER_PLACE"
	OrderNotBookable          = "ORDER_NOT_BOOKABLE"
	ProviderNotAvailable      = "PROVIDER_NOT_AVAILABLE"
	CancellationReasonUnknown = "CANCELLATION_REASON_UNKNOWN"
	PatientTooYoung           = "PATIENT_TOO_YOUNG"
)
