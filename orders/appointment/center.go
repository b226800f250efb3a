package appointment

import (
	"context"
	"encoding/json"
)

// PSCCapability is a service that a patient service center offers.
type PSCCapability string

// Capabilities of patient service centers.
const (
	// PSCStat: the center takes urgent samples.
	PSCStat PSCCapability = "stat"
	// PSCSchedulingViaService: appointments can be booked through this service.
	PSCSchedulingViaService PSCCapability = "appointment_scheduling_via_service"
	// PSCSchedulingWithLab: appointments are made with the lab directly.
	PSCSchedulingWithLab PSCCapability = "appointment_scheduling_with_lab"
)

// PSCCapabilities returns the capabilities that a query may require.
func PSCCapabilities() []PSCCapability {
	return []PSCCapability{PSCStat, PSCSchedulingViaService, PSCSchedulingWithLab}
}

// Center is a patient service center (PSC) of a laboratory, where a patient goes to have a sample taken. It is
// a plain value.
type Center struct {
	LabID int `json:"lab_id"`
	// SiteCode is the lab's code of the center: unique within the lab, compared byte for byte.
	SiteCode string      `json:"site_code"`
	Metadata PSCMetadata `json:"metadata"`
	Location LngLat      `json:"location"`
	// IANATimezone is the time zone of the center's opening hours and slots.
	IANATimezone string          `json:"iana_timezone"`
	Capabilities []PSCCapability `json:"capabilities"`
	// Inactive is true if the center is closed to patients.
	Inactive bool `json:"inactive"`
}

// PSCMetadata has the name, address and contact data of a center.
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
	// Hours are the opening hours, as the lab writes them. Null means that the patient must ask the lab. If Hours is an
	// object of days ("mon", "mon-fri", "sat,sun", "weekdays", "daily") with times ("07:00-17:00", "7 AM - 5 PM"), a
	// list of times, "closed" or null, slots outside of these hours are not offered; a missing day is closed. Times are
	// in the time zone of the center.
	Hours json.RawMessage `json:"hours"`
}

// Address returns the center's address.
func (m PSCMetadata) Address() Address {
	a := Address{FirstLine: m.FirstLine, City: m.City, State: m.State, ZipCode: m.ZipCode}
	if m.SecondLine != "" {
		a.SecondLine = &m.SecondLine
	}
	return a
}

// Centers finds patient service centers. Implementations must be safe for concurrent use; the caller may edit
// returned values.
type Centers interface {
	// CentersNear returns the active centers that the query selects, the nearest first, then by lab and by site
	// code (byte for byte). The totals also count centers beyond the query's Most.
	CentersNear(ctx context.Context, q CenterQuery) (CentersNear, error)
	// CentersAt returns a lab's centers with the given site codes, inactive ones included, sorted by site code.
	// Unknown codes are left out.
	CentersAt(ctx context.Context, lab int, codes []string) ([]Center, error)
	// NextCenters returns at most n active centers of a lab that have the capability has and whose site code sorts
	// after the text after, sorted by site code.
	NextCenters(ctx context.Context, lab int, has PSCCapability, after string, n int) ([]Center, error)
}

// CenterQuery selects the centers of a lab around a position.
type CenterQuery struct {
	LabID int
	Near  LngLat
	// Miles is the radius, in statute miles. A center at exactly that distance is included.
	Miles float64
	// Capabilities are the capabilities that a center must have, all of them.
	Capabilities []PSCCapability
	// Most is the highest number of centers to return; none if it is zero or less.
	Most int
}

// CentersNear is the result of a center query.
type CentersNear struct {
	Centers []Center
	// Total is the number of all centers within the radius that have the capabilities.
	Total int
	// Capabilities are the capabilities of any of these centers, in the order of [PSCCapabilities]; others
	// follow by name.
	Capabilities []PSCCapability
}
