package orders

import (
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// Details is what only orders of one collection method have. In JSON it is
// {"type": …, "data": …}; exactly the field that belongs to Type is set.
type Details struct {
	// Type is the collection method of the order.
	Type    catalogue.CollectionMethod
	Testkit *TestkitDetails
	WalkIn  *VisitDetails
	AtHome  *VisitDetails
	OnSite  *OnSiteDetails
	// Raw is the data of a type that we do not know.
	Raw json.RawMessage
}

// TestkitDetails is the data of a testkit order.
type TestkitDetails struct {
	// ID is that of this record, not of the order.
	ID uuid.UUID `json:"id"`
	// Shipment is null until there is one.
	Shipment  *Shipment      `json:"shipment"`
	CreatedAt healthlab.Time `json:"created_at"`
	UpdatedAt healthlab.Time `json:"updated_at"`
}

// VisitDetails is the data of a walk-in or at-home order.
type VisitDetails struct {
	// ID is that of this record, not of the order.
	ID uuid.UUID `json:"id"`
	// AppointmentID is the active appointment, or null.
	AppointmentID *uuid.UUID     `json:"appointment_id"`
	CreatedAt     healthlab.Time `json:"created_at"`
	UpdatedAt     healthlab.Time `json:"updated_at"`
}

// OnSiteDetails is the data of an order whose sample the team draws itself.
type OnSiteDetails struct {
	// ID is that of this record, not of the order.
	ID        uuid.UUID      `json:"id"`
	CreatedAt healthlab.Time `json:"created_at"`
	UpdatedAt healthlab.Time `json:"updated_at"`
}

// Shipment is a kit's way to the patient and the sample's way to the lab. Tracking is
// null until a carrier has it.
type Shipment struct {
	ID                     uuid.UUID      `json:"id"`
	OutboundTrackingNumber *string        `json:"outbound_tracking_number"`
	OutboundTrackingURL    *string        `json:"outbound_tracking_url"`
	InboundTrackingNumber  *string        `json:"inbound_tracking_number"`
	InboundTrackingURL     *string        `json:"inbound_tracking_url"`
	OutboundCourier        *string        `json:"outbound_courier"`
	InboundCourier         *string        `json:"inbound_courier"`
	Notes                  *string        `json:"notes"`
	CreatedAt              healthlab.Time `json:"created_at"`
	UpdatedAt              healthlab.Time `json:"updated_at"`
}

// NewDetails returns the details of a new order. A kit gets its shipment at once,
// without tracking; id names the record, shipment the shipment.
func NewDetails(m catalogue.CollectionMethod, id, shipment uuid.UUID, at healthlab.Time) Details {
	d := Details{Type: m}
	switch m {
	case catalogue.Testkit:
		d.Testkit = &TestkitDetails{
			ID: id, Shipment: &Shipment{ID: shipment, CreatedAt: at, UpdatedAt: at}, CreatedAt: at, UpdatedAt: at,
		}
	case catalogue.WalkInTest:
		d.WalkIn = &VisitDetails{ID: id, CreatedAt: at, UpdatedAt: at}
	case catalogue.AtHomePhlebotomy:
		d.AtHome = &VisitDetails{ID: id, CreatedAt: at, UpdatedAt: at}
	case catalogue.OnSiteCollection:
		d.OnSite = &OnSiteDetails{ID: id, CreatedAt: at, UpdatedAt: at}
	}
	return d
}

// MarshalJSON writes the type and its data.
func (d Details) MarshalJSON() ([]byte, error) {
	var data any
	switch d.Type {
	case catalogue.Testkit:
		data = d.Testkit
	case catalogue.WalkInTest:
		data = d.WalkIn
	case catalogue.AtHomePhlebotomy:
		data = d.AtHome
	case catalogue.OnSiteCollection:
		data = d.OnSite
	default:
		if len(d.Raw) > 0 {
			data = d.Raw
		}
	}
	return json.Marshal(struct {
		Type catalogue.CollectionMethod `json:"type"`
		Data any                        `json:"data"`
	}{d.Type, data})
}

// UnmarshalJSON reads the type and its data; data of a type that we do not know is
// kept as it is.
func (d *Details) UnmarshalJSON(b []byte) error {
	var raw struct {
		Type catalogue.CollectionMethod `json:"type"`
		Data json.RawMessage            `json:"data"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	*d = Details{Type: raw.Type}
	var err error
	switch raw.Type {
	case catalogue.Testkit:
		err = unmarshalPart(raw.Data, &d.Testkit)
	case catalogue.WalkInTest:
		err = unmarshalPart(raw.Data, &d.WalkIn)
	case catalogue.AtHomePhlebotomy:
		err = unmarshalPart(raw.Data, &d.AtHome)
	case catalogue.OnSiteCollection:
		err = unmarshalPart(raw.Data, &d.OnSite)
	default:
		d.Raw = raw.Data
	}
	if err != nil {
		return fmt.Errorf("details: %w", err)
	}
	return nil
}

func unmarshalPart(b []byte, into any) error {
	if len(b) == 0 {
		return nil
	}
	return json.Unmarshal(b, into)
}
