package orders

import (
	"context"
	"encoding/json"
	"math"
	"slices"
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
	// Inactive: it is known, and nobody can go there now.
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
	// Hours are the opening hours, as the lab writes them. Null: the patient asks the lab.
	Hours json.RawMessage `json:"hours"`
}

// Address is where a visit to the center takes place.
func (m PSCMetadata) Address() AppointmentAddress {
	a := AppointmentAddress{FirstLine: m.FirstLine, City: m.City, State: m.State, ZipCode: m.ZipCode}
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

// earthMiles is the mean radius of the earth in statute miles: 6,371.0088 km, the mean
// radius of the IUGG.
const earthMiles = 6371.0088 / 1.609344

// Vector returns the place on a sphere of radius 1, seen from its middle. Of two
// places, the straight line between their vectors is the longer the farther they are
// apart ([Chord]), which indexes can compare without any trigonometry.
func (l LngLat) Vector() (x, y, z float64) {
	lng, lat := l.Lng*math.Pi/180, l.Lat*math.Pi/180
	return math.Cos(lat) * math.Cos(lng), math.Cos(lat) * math.Sin(lng), math.Sin(lat)
}

// Miles is how far another place is away along the surface, in statute miles, on a
// spherical earth: at most 0.6 % off.
func (l LngLat) Miles(to LngLat) float64 {
	x, y, z := l.Vector()
	u, v, w := to.Vector()
	return 2 * earthMiles * math.Asin(min(1, math.Sqrt(chord2(x-u, y-v, z-w))/2))
}

// Chord returns the square of the straight line, on a sphere of radius 1, between two
// places that are so many miles apart along its surface.
func Chord(miles float64) float64 {
	c := 2 * math.Sin(min(max(miles, 0)/earthMiles, math.Pi)/2)
	return c * c
}

// chord2 sums in one order and without fused operations, so that every engine gets the
// same number.
func chord2(dx, dy, dz float64) float64 {
	return float64(float64(dx*dx)+float64(dy*dy)) + float64(dz*dz)
}

// valid reports whether the place is one on earth.
func (l LngLat) valid() bool {
	return l.Lng >= -180 && l.Lng <= 180 && l.Lat >= -90 && l.Lat <= 90
}

// Cell is a field of a grid over the earth: a degree of latitude by a degree of
// longitude.
func (l LngLat) Cell() int {
	lng := (int(math.Floor(l.Lng)) + 540) % 360 // 180 degrees east is 180 degrees west
	lat := min(int(math.Floor(l.Lat)), 89) + 90
	return lat*360 + lng
}

// CellsWithin returns every cell that has a place within so many miles, and perhaps
// some more, ascending.
func CellsWithin(l LngLat, miles float64) []int {
	degrees := max(miles, 0)/earthMiles*180/math.Pi + 1e-9 // numbers end somewhere
	// The pole itself is in the cells below it.
	south, north := min(int(math.Floor(max(l.Lat-degrees, -90))), 89), min(int(math.Floor(min(l.Lat+degrees, 90))), 89)
	// How many degrees of longitude the circle spans where it is widest; all of them
	// if it has a pole in it.
	wide := 180.0
	if math.Abs(l.Lat)+degrees < 90 {
		s := math.Sin(degrees*math.Pi/180) / math.Cos(l.Lat*math.Pi/180)
		wide = math.Asin(min(s, 1)) * 180 / math.Pi
	}
	west, east := int(math.Floor(l.Lng-wide)), int(math.Floor(l.Lng+wide))
	if east-west >= 359 {
		west, east = -180, 179
	}
	cells := make([]int, 0, (north-south+1)*(east-west+1))
	for lat := south; lat <= north; lat++ {
		row := (lat + 90) * 360
		first := len(cells)
		for lng := west; lng <= east; lng++ {
			cells = append(cells, row+((lng+540)%360+360)%360)
		}
		slices.Sort(cells[first:])
	}
	return cells
}
