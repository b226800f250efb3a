package appointment

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// DefaultCancellationReasons returns the reasons for cancelling a visit of a type that apply if a host
// configures none.
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

// Zips looks up the positions of postal codes. Implementations must be safe for concurrent use.
type Zips interface {
	// FindZip returns the position of the middle of a five-digit postal code, and its state; false if the code
	// is unknown.
	FindZip(ctx context.Context, code string) (Zip, bool, error)
}

// Zip is the position and state of a postal code.
type Zip struct {
	Location LngLat
	// State has two letters.
	State string
}

// SlotBackend finds providers of home visits, and free slots for taking samples. Implementations must be safe
// for concurrent use.
type SlotBackend interface {
	// ServedAt returns the phlebotomy providers that visit a five-digit postal code, in any order; empty if
	// there are none.
	ServedAt(ctx context.Context, zip string) ([]Served, error)
	// FreeSlots returns the free slots that start in the requested time range, in any order. It reserves nothing at the
	// provider. Invalid means that the provider does not accept the address or centers. After any error, Invalid too,
	// the service returns Unavailable and asks the caller to try later.
	FreeSlots(ctx context.Context, q SlotQuery) ([]Slot, error)
}

// Served is a phlebotomy provider that visits an area, with the tiers by which it is booked. The service leaves out a
// provider without tiers.
type Served struct {
	Provider string
	Tiers    []ServiceTier
}

// SlotQuery asks for free slots of centers of one lab, or at an address.
type SlotQuery struct {
	Type Type
	// Lab is the slug of the lab, and Sites are its centers to query.
	Lab   string
	Sites []Center
	// Address is the address for a home visit.
	Address Address
	// From (inclusive) and To (exclusive) are the limits of the slots' start times.
	From, To time.Time
}

// Slot is a time and place that can be booked.
type Slot struct {
	// Provider is the configured slug of the provider that visits, or of the lab that owns the center.
	Provider string `json:"provider"`
	// SiteCode is the code of the center; empty for a visit at home.
	SiteCode string    `json:"site_code,omitempty"`
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	// Expires is the time until which the slot can be booked; zero means until it starts.
	Expires time.Time `json:"expires,omitzero"`
	// Zone is the IANA time zone of a visit at home; empty for a center, whose time zone is in [Center].
	Zone string `json:"zone,omitempty"`
	// Location is the position of a visit at home; zero for a center, whose position is in [Center].
	Location LngLat `json:"location,omitzero"`
	// Price is in the smallest unit of the currency.
	Price    int64 `json:"price,omitempty"`
	Priority bool  `json:"priority,omitempty"`
	// Places is the number of further appointments that can be booked in the slot.
	Places int `json:"places"`
	// Key is the provider's id of the slot; empty if the slot cannot be booked.
	Key string `json:"key,omitempty"`
}

// Provider has the settings of a company or lab that makes appointments.
type Provider struct {
	// Slug is the configured name. For centers it is the slug of their lab.
	Slug string
	Type Type
	// PatientManaged is true if only the patient and the lab can change an appointment after its booking, and
	// the lab confirms it later. For centers only.
	PatientManaged bool
}

// CancellationReason is a reason for cancelling an appointment.
type CancellationReason struct {
	ID   uuid.UUID `json:"id"`
	Name string    `json:"name"`
	// IsRefundable is true if a cancellation for this reason refunds the price. The price of a visit at home is
	// refunded only if the visit is at least 24 hours away.
	IsRefundable bool `json:"is_refundable"`
}
