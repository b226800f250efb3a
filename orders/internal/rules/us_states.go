package rules

import (
	"slices"
	"strings"
)

// HomeCountry is the country of an address without one.
const HomeCountry = "US"

// CountryOr returns a country, or HomeCountry if it is empty.
func CountryOr(country string) string {
	if country == "" {
		return HomeCountry
	}
	return country
}

// StatesOfUS are the valid states of a US address: the states, the district, territories and associated states,
// and the military areas.
var StatesOfUS = strings.Fields(`AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ
	NM NY NC ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY DC AS GU MP PR VI UM FM MH PW AA AE AP`)

func (c Check) state(state, country string) {
	// Only for the US the valid states are known.
	if c.Text(state, "state", 1, MaxText) && country == HomeCountry && !slices.Contains(StatesOfUS, state) {
		c.Add("state_form", "must be the two upper-case letters of a state or a territory of the US", "state")
	}
}
