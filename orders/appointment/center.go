package appointment

import (
	"context"
	"encoding/json"
)

// PSCCapability is something that a patient service center offers.
type PSCCapability string

// The capabilities of a patient service center.
const (
	// PSCStat: urgent samples are taken.
	PSCStat PSCCapability = "stat"
	// PSCSchedulingViaService: appointments can be booked here, through this service.
	PSCSchedulingViaService PSCCapability = "appointment_scheduling_via_service"
	// PSCSchedulingWithLab: appointments are made with the lab itself.
	PSCSchedulingWithLab PSCCapability = "appointment_scheduling_with_lab"
)

// PSCCapabilities returns the capabilities that a query may ask for.
func PSCCapabilities() []PSCCapability {
	return []PSCCapability{PSCStat, PSCSchedulingViaService, PSCSchedulingWithLab}
}

// Center is a patient service center (PSC) of a laboratory: where a patient goes to
// have a sample taken. It is a plain value.
type Center struct {
	LabID int `json:"lab_id"`
	// SiteCode is the lab's own code of the center: unique within the lab, compared
	// byte for byte.
	SiteCode string      `json:"site_code"`
	Metadata PSCMetadata `json:"metadata"`
	Location LngLat      `json:"location"`
	// IANATimezone is the zone of the place: what its opening hours and its slots are in.
	IANATimezone string          `json:"iana_timezone"`
	Capabilities []PSCCapability `json:"capabilities"`
	// Inactive: it is known, and closed to patients.
	Inactive bool `json:"inactive"`
}

// PSCMetadata is name, address and such of a center.
type PSCMetadata struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	City      string `json:"city"`
	ZipCode   string `json:"zip_code"`
	FirstLine string `json:"first_line"`
	// SecondLine, PhoneNumber and FaxNumber are empty if there is none.
	SecondLine  string  `json:"second_line"`
	PhoneNumber string  `json:"phone_number"`
	FaxNumber   string  `json:"fax_number"`
	Website     *string `json:"website"`
	// Hours are the opening hours, as the lab writes them. Null: the patient asks the lab. Slots
	// outside of them are not offered if they are an object of days ("mon", "mon-fri", "sat,sun",
	// "weekdays", "daily") with a span ("07:00-17:00", "7 AM - 5 PM"), a list of spans, "closed" or
	// null, in the zone of the place; a day that is not named is closed.
	Hours json.RawMessage `json:"hours"`
}

// Address is where a visit to the center takes place.
func (m PSCMetadata) Address() Address {
	a := Address{FirstLine: m.FirstLine, City: m.City, State: m.State, ZipCode: m.ZipCode}
	if m.SecondLine != "" {
		a.SecondLine = &m.SecondLine
	}
	return a
}

// Centers says where patients can have a sample taken. Implementations must be safe for
// concurrent use; what they return is the caller's to edit.
type Centers interface {
	// CentersNear returns the active centers that the query asks for, the nearest
	// first, ties by lab and then by site code (byte for byte), and what is true of
	// all of them, also of those beyond the query's Most.
	CentersNear(ctx context.Context, q CenterQuery) (CentersNear, error)
	// CentersAt returns those of a lab's centers that have one of the codes, inactive
	// ones included, by site code. What does not exist is left out.
	CentersAt(ctx context.Context, lab int, codes []string) ([]Center, error)
	// NextCenters returns the first n of a lab's active centers with a capability
	// whose site code comes after a text, by site code.
	NextCenters(ctx context.Context, lab int, has PSCCapability, after string, n int) ([]Center, error)
}

// CenterQuery asks for the centers around a place.
type CenterQuery struct {
	LabID int
	Near  LngLat
	// Miles is the radius, in statute miles. A center that far away is in.
	Miles float64
	// Capabilities are those that a center must have, all of them.
	Capabilities []PSCCapability
	// Most is how many to return; none if it is not above zero.
	Most int
}

// CentersNear are the centers around a place.
type CentersNear struct {
	Centers []Center
	// Total counts all that are within the radius and have the capabilities.
	Total int
	// Capabilities are those that any of these has, in the order of
	// [PSCCapabilities]; what is not among those comes after, by name.
	Capabilities []PSCCapability
}
