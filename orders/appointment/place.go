package appointment

import (
	"math"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Address is the address of a visit.
type Address struct {
	healthlab.Private

	FirstLine   string  `json:"first_line"`
	SecondLine  *string `json:"second_line"`
	City        string  `json:"city"`
	State       string  `json:"state"`
	ZipCode     string  `json:"zip_code"`
	AccessNotes *string `json:"access_notes"`
	// Unit is deprecated; use SecondLine.
	Unit *string `json:"unit"`
}

// UnmarshalJSON reads the JSON of the HTTP API; zip_code may be named zip.
func (a *Address) UnmarshalJSON(b []byte) error {
	type plain Address
	return rules.UnmarshalZip(b, (*plain)(a), &a.ZipCode)
}

// LngLat is a position on earth, in degrees.
type LngLat struct {
	Lng float64 `json:"lng"`
	Lat float64 `json:"lat"`
}

func wholeMiles(a, b LngLat) int { return int(math.Round(a.Miles(b))) }

// earthMiles is the mean radius of the earth in statute miles: 6,371.0088 km, the mean
// radius of the IUGG.
const earthMiles = 6371.0088 / 1.609344

// Vector returns the position as a point on a sphere of radius 1. The straight line between two points grows with the
// distance on earth, so an index can compare distances without trigonometry.
func (l LngLat) Vector() (x, y, z float64) {
	lng, lat := l.Lng*math.Pi/180, l.Lat*math.Pi/180
	return math.Cos(lat) * math.Cos(lng), math.Cos(lat) * math.Sin(lng), math.Sin(lat)
}

// Miles returns the distance to another position along the surface of a spherical earth, in statute miles. The error is
// at most 0.6 %.
func (l LngLat) Miles(to LngLat) float64 {
	x, y, z := l.Vector()
	u, v, w := to.Vector()
	return 2 * earthMiles * math.Asin(min(1, math.Sqrt(chord2(x-u, y-v, z-w))/2))
}

func chord(miles float64) float64 {
	// The squared length of a straight line through a sphere of radius 1, for a distance in miles along its surface.
	c := 2 * math.Sin(min(max(miles, 0)/earthMiles, math.Pi)/2)
	return c * c
}

func chord2(dx, dy, dz float64) float64 {
	// A fixed order of additions, without fused multiply-add, gives the same number on every processor.
	return float64(float64(dx*dx)+float64(dy*dy)) + float64(dz*dz)
}

func (l LngLat) valid() bool {
	return l.Lng >= -180 && l.Lng <= 180 && l.Lat >= -90 && l.Lat <= 90
}

// Cell returns the number of the grid cell that contains the position. A cell is one degree of latitude by one degree
// of longitude.
func (l LngLat) Cell() int {
	lng := (int(math.Floor(l.Lng)) + 540) % 360 // 180 degrees east is 180 degrees west
	lat := min(int(math.Floor(l.Lat)), 89) + 90
	return lat*360 + lng
}

// cellsWithin returns the numbers of the grid cells that have a point within a distance of l, ascending. It may return
// more cells, but misses none.
func cellsWithin(l LngLat, miles float64) []int {
	degrees := max(miles, 0)/earthMiles*180/math.Pi + 1e-9 // a margin for rounding errors
	// The north pole is in the cells just south of it.
	south, north := min(int(math.Floor(max(l.Lat-degrees, -90))), 89), min(int(math.Floor(min(l.Lat+degrees, 90))), 89)
	// wide is how many degrees of longitude the circle reaches to each side where it is widest; 180 if it contains
	// a pole.
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

// AddressInput is the address of a visit in a request.
type AddressInput struct {
	healthlab.Private

	// FirstLine has a street number.
	FirstLine  string  `json:"first_line"`
	SecondLine *string `json:"second_line"`
	City       string  `json:"city"`
	// State is two upper-case letters.
	State string `json:"state"`
	// ZipCode is five digits, or ZIP+4. Zip is another name of the field; a request gives one of them.
	ZipCode string  `json:"zip_code" wire:"opt"`
	Zip     *string `json:"zip,omitempty" wire:"in"`
	// Country is ignored, because all visits are in the US.
	Country     *string `json:"country,omitempty" wire:"in"`
	AccessNotes *string `json:"access_notes"`
	// Unit is deprecated; use SecondLine.
	Unit *string `json:"unit"`
}

// Check returns Invalid with every problem of the address.
func (a *AddressInput) Check() error {
	var p healthlab.Problems
	a.CheckAt(&p)
	return p.Err()
}

// CheckAt adds every problem of the address to problems. at is the path of the address in the request.
func (a *AddressInput) CheckAt(problems *healthlab.Problems, at ...any) {
	c := rules.Check{Problems: problems, At: at}
	c.Address(a.FirstLine, a.SecondLine, a.City, a.State, rules.HomeCountry)
	zip, field := a.ZipCode, "zip_code"
	if a.Zip != nil && zip == "" {
		zip, field = *a.Zip, "zip"
	}
	if c.Text(zip, field, 1, rules.MaxText) && !rules.ZipForm.MatchString(zip) {
		c.Add("zip_form", "must be five digits, or five, a hyphen and four", field)
	}
	if rules.ZipForm.MatchString(zip) && slices.Contains(rules.StatesOfUS, a.State) && rules.StateOfZip(zip[:5]) != a.State {
		c.Add("zip_state", "must be a postal code of the state that the field state names", field)
	}
	if a.Zip != nil && *a.Zip != zip {
		c.Add("conflict", "must equal zip_code if both are given", "zip")
	}
	c.Optional(a.Country, "country", rules.MaxText)
	c.Optional(a.AccessNotes, "access_notes", rules.MaxNotes)
	c.Optional(a.Unit, "unit", rules.MaxText)
}

// Address converts the request's address to the type that appointments store.
func (a *AddressInput) Address() Address {
	return Address{FirstLine: a.FirstLine, SecondLine: a.SecondLine, City: a.City, State: a.State,
		ZipCode: rules.ZipOf(a.ZipCode, a.Zip), AccessNotes: a.AccessNotes, Unit: a.Unit}
}

// HasStreetNumber reports whether the first line of an address contains a digit.
func HasStreetNumber(line string) bool { return strings.ContainsAny(line, "0123456789") }

// StateOfZip returns the two-letter state of a five-digit postal code of the US; empty if the code belongs to
// none. A code whose area crosses a state border counts as in the state of its sorting center.
func StateOfZip(code string) string { return rules.StateOfZip(code) }
