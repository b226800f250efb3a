package appointment

import (
	"math"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Address is where a visit takes place.
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

// UnmarshalJSON reads what is published; the postal code may be called zip.
func (a *Address) UnmarshalJSON(b []byte) error {
	type plain Address
	return rules.UnmarshalZip(b, (*plain)(a), &a.ZipCode)
}

// LngLat is a place on earth, in degrees.
type LngLat struct {
	Lng float64 `json:"lng"`
	Lat float64 `json:"lat"`
}

func wholeMiles(a, b LngLat) int { return int(math.Round(a.Miles(b))) }

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

func chord2(dx, dy, dz float64) float64 {
	// One order and no fused operations give every engine the same number.
	return float64(float64(dx*dx)+float64(dy*dy)) + float64(dz*dz)
}

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

// AddressInput is where a visit is to take place, in a request.
type AddressInput struct {
	healthlab.Private

	// FirstLine has a street number.
	FirstLine  string  `json:"first_line"`
	SecondLine *string `json:"second_line"`
	City       string  `json:"city"`
	// State is two upper-case letters.
	State string `json:"state"`
	// ZipCode is five digits, or ZIP+4. Zip is another name of it; a request gives one
	// of them.
	ZipCode string  `json:"zip_code" wire:"opt"`
	Zip     *string `json:"zip,omitempty" wire:"in"`
	// Country may be said; visits are in the US, whatever it is.
	Country     *string `json:"country,omitempty" wire:"in"`
	AccessNotes *string `json:"access_notes"`
	// Unit is deprecated; use SecondLine.
	Unit *string `json:"unit"`
}

// Check returns Invalid with every problem of the address itself.
func (a *AddressInput) Check() error {
	var p healthlab.Problems
	a.CheckAt(&p)
	return p.Err()
}

// CheckAt adds every problem of the address to problems, at a path.
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
		c.Add("zip_state", "must be a postal code of the state", field)
	}
	if a.Zip != nil && *a.Zip != zip {
		c.Add("conflict", "must equal zip_code if both are given", "zip")
	}
	c.Optional(a.Country, "country", rules.MaxText)
	c.Optional(a.AccessNotes, "access_notes", rules.MaxNotes)
	c.Optional(a.Unit, "unit", rules.MaxText)
}

// Address returns the address as it is published.
func (a *AddressInput) Address() Address {
	return Address{FirstLine: a.FirstLine, SecondLine: a.SecondLine, City: a.City, State: a.State,
		ZipCode: rules.ZipOf(a.ZipCode, a.Zip), AccessNotes: a.AccessNotes, Unit: a.Unit}
}

// HasStreetNumber reports whether a line has a number in it.
func HasStreetNumber(line string) bool { return strings.ContainsAny(line, "0123456789") }

// StateOfZip returns the state that a five-digit postal code of the US belongs to, in two
// letters; empty if it belongs to none. The few codes across a border count as their
// sorting center's.
func StateOfZip(code string) string { return rules.StateOfZip(code) }
