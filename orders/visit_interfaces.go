package orders

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// Zips says where postal codes are. Implementations must be safe for concurrent use.
type Zips interface {
	// FindZip returns where the middle of a five-digit postal code is, and its state;
	// false if nobody knows.
	FindZip(ctx context.Context, code string) (Zip, bool, error)
}

// Zip is what is known of a postal code.
type Zip struct {
	Location LngLat
	// State has two letters.
	State string
}

// SlotBackend is a [LabBackend] that knows where and when samples can be taken. A
// Service looks for it once, in its constructor. Implementations must be safe for
// concurrent use.
type SlotBackend interface {
	// ServedAt returns which phlebotomy providers come to a five-digit postal code, in
	// any order; none if nobody does.
	ServedAt(ctx context.Context, zip string) ([]Served, error)
	// FreeSlots returns the slots that begin in the asked span of time and are free
	// now, in any order. Asking changes nothing at the provider. Faults: Invalid (the
	// place makes no sense to the provider), Unavailable and anything else (try
	// later).
	FreeSlots(ctx context.Context, q SlotQuery) ([]Slot, error)
}

// BookingBackend is a [LabBackend] that takes bookings of what its [SlotBackend]
// offers. A Service looks for it once, in its constructor. Implementations must be safe
// for concurrent use.
//
// All three calls carry the appointment's id, and may be made again with it after any
// error or timeout: the provider must recognise the appointment and not make a second
// one. A deadline that ends says nothing of what the provider did.
type BookingBackend interface {
	// BookVisit makes an appointment, or asks for one without a time where the slot is
	// empty; made again, it answers how the appointment stands now. Faults: NotFound
	// (the slot is gone), Invalid (the provider refuses for good); anything else: the
	// outcome is open, and the call is made again.
	BookVisit(ctx context.Context, b Booking) (Booked, error)
	// MoveVisit gives an appointment the time of another slot. Made again with the
	// same slot, it answers as the first time. Faults as BookVisit, and Precondition
	// (too late); the appointment then stays what it was.
	MoveVisit(ctx context.Context, b Booking) (Booked, error)
	// CancelVisit takes an appointment back. One that the provider never got, or that
	// is over, is no error. Precondition means that it is too late: it is not called
	// again.
	CancelVisit(ctx context.Context, v VisitCancellation) error
}

// Served says that a phlebotomy provider comes to an area, and how it is booked there.
type Served struct {
	Provider string
	Tiers    []ServiceTier
}

// SlotQuery asks for free slots: of centers of one lab, or at an address.
type SlotQuery struct {
	Type AppointmentType
	// Lab is the slug of the lab whose centers are asked for, Sites are the centers.
	Lab   string
	Sites []Center
	// Address is where the phlebotomist is to come.
	Address AppointmentAddress
	// From (inclusive) and To (exclusive) are the span of time in which slots begin.
	From, To time.Time
}

// Slot is a time at a place that can be booked.
type Slot struct {
	// Provider is the configured slug of who comes, or of whose center it is.
	Provider string `json:"provider"`
	// SiteCode names the center; empty for a visit at home.
	SiteCode string    `json:"site_code,omitempty"`
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	// Expires is until when it may be booked; zero means until it begins.
	Expires time.Time `json:"expires,omitzero"`
	// Zone is the IANA name of the zone of a visit at home; a center knows its own.
	Zone string `json:"zone,omitempty"`
	// Location is where a visit at home takes place; a center knows its own.
	Location LngLat `json:"location,omitzero"`
	// Price is in the smallest unit of the currency.
	Price    int64 `json:"price,omitempty"`
	Priority bool  `json:"priority,omitempty"`
	// Places is how many appointments the slot has room for now.
	Places int `json:"places"`
	// Key is the provider's own name of the slot; empty if it cannot be booked.
	Key string `json:"key,omitempty"`
}

// Booking is what a provider gets to make or move an appointment.
type Booking struct {
	// Appointment names it, from the first call on.
	Appointment uuid.UUID
	Team        healthlab.TeamID
	Order       OrderID
	Type        AppointmentType
	Provider    string
	// Slot is what was chosen; its Key is empty where only a visit is asked for.
	Slot Slot
	// Address is where the sample is taken, with how to get in.
	Address AppointmentAddress
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
	Appointment uuid.UUID
	Team        healthlab.TeamID
	Provider    string
	// Reason is the name of a [CancellationReason]; Notes is free text. Both may be
	// empty.
	Reason, Notes string
}

// VisitNews is what a provider reports of an appointment, as a part of a [Message].
type VisitNews struct {
	Appointment uuid.UUID
	On          VisitTrigger
	// Start and End are the new time; zero if it is the same.
	Start, End time.Time
	ProviderID string
	ExternalID string
	// Data is the provider's own data of the step, a JSON object; nil for none.
	Data json.RawMessage
}

// AppointmentProvider is somebody who makes appointments.
type AppointmentProvider struct {
	// Slug is its configured name. For centers it is the slug of their lab.
	Slug string
	Type AppointmentType
	// PatientManaged: after the booking, only the patient and the lab can change the
	// appointment, and it is confirmed later. For centers only.
	PatientManaged bool
}

// CancellationReason is why an appointment is cancelled.
type CancellationReason struct {
	ID   uuid.UUID `json:"id"`
	Name string    `json:"name"`
	// IsRefundable: what was paid is given back, if the visit is more than 24 hours
	// away.
	IsRefundable bool `json:"is_refundable"`
}
