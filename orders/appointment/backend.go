package appointment

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// DefaultCancellationReasons are reasons that fit most visits.
func DefaultCancellationReasons(t Type) []CancellationReason {
	named := func(name string, refundable bool) CancellationReason {
		return CancellationReason{ID: uuid.NewSHA1(uuid.Nil, []byte("cancellation reason: "+name)), Name: name, IsRefundable: refundable}
	}
	common := []CancellationReason{named("The time does not suit", true), named("The test is not needed any more", true), named("Other", true)}
	if t == Phlebotomy {
		return append(common, named("The patient was not at home", false))
	}
	return append(common, named("Another place suits better", true))
}

// Zips says where postal codes are. Implementations must be safe for concurrent use.
type Zips interface {
	// FindZip returns where the middle of a five-digit postal code is, and its state;
	// false if it is not known.
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
	// any order; empty if none does.
	ServedAt(ctx context.Context, zip string) ([]Served, error)
	// FreeSlots returns the slots that begin in the asked span of time and are free
	// now, in any order. Asking changes nothing at the provider. Errors: Invalid (the
	// place makes no sense to the provider), Unavailable and anything else (try
	// later).
	FreeSlots(ctx context.Context, q SlotQuery) ([]Slot, error)
}

// Served says that a phlebotomy provider comes to an area, and how it is booked there.
type Served struct {
	Provider string
	Tiers    []ServiceTier
}

// SlotQuery asks for free slots: of centers of one lab, or at an address.
type SlotQuery struct {
	Type Type
	// Lab is the slug of the lab whose centers are asked for, Sites are the centers.
	Lab   string
	Sites []Center
	// Address is where the phlebotomist is to come.
	Address Address
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

// Provider is a company or a center that makes appointments.
type Provider struct {
	// Slug is its configured name. For centers it is the slug of their lab.
	Slug string
	Type Type
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
