package people

import (
	"encoding/json"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// GuarantorInput is a parent, a medical proxy, or a person who pays, in a request.
type GuarantorInput struct {
	healthlab.Private

	FirstName   string       `json:"first_name"`
	LastName    string       `json:"last_name"`
	Address     AddressInput `json:"address"`
	PhoneNumber string       `json:"phone_number"`
	// HouseholdIncome is in USD per year; HouseholdSize counts persons.
	HouseholdIncome *int    `json:"household_income"`
	HouseholdSize   *int    `json:"household_size"`
	Email           *string `json:"email"`
}

// AddressInput is a postal address, in a request.
type AddressInput struct {
	healthlab.Private

	FirstLine string `json:"first_line"`
	// SecondLine is empty if it is not given; null stays null.
	SecondLine Line   `json:"second_line" wire:"opt"`
	City       string `json:"city"`
	// State is two upper-case letters in the US.
	State string `json:"state"`
	// Zip is five digits, or ZIP+4, in the US. ZipCode is another name of the field; a request gives one of
	// them.
	Zip     string  `json:"zip" wire:"opt"`
	ZipCode *string `json:"zip_code,omitempty" wire:"in"`
	// Country is US by default.
	Country string `json:"country" wire:"opt"`
	// AccessNotes tell a visitor how to enter the building. At most 1,000 characters.
	AccessNotes *string `json:"access_notes"`
}

// Line is a line of text that may be null. The zero value is the empty line.
type Line struct {
	healthlab.Private

	Text string
	Null bool
}

// UnmarshalJSON reads text or null.
func (l *Line) UnmarshalJSON(b []byte) error {
	*l = Line{Null: string(b) == "null"}
	if json.Unmarshal(b, &l.Text) != nil {
		var p healthlab.Problems
		p.Add("wrong_type", "must be a text or null")
		return p.Err()
	}
	return nil
}

// MarshalJSON writes text or null.
func (l Line) MarshalJSON() ([]byte, error) { return json.Marshal(l.ptr()) }

func (l Line) ptr() *string {
	if l.Null {
		return nil
	}
	return &l.Text
}

func checkGuarantor(c rules.Check, g GuarantorInput) {
	c.Name(g.FirstName, "first_name")
	c.Name(g.LastName, "last_name")
	c.Phone(g.PhoneNumber, "phone_number")
	if g.Email != nil {
		c.Email(*g.Email, "email")
	}
	c.Count(g.HouseholdIncome, "household_income")
	c.Count(g.HouseholdSize, "household_size")
	checkPostal(c.Under("address"), g.Address)
}

// checkPostal adds the problems of a postal address, including access notes. A US address must have a valid postal code
// of its state.
func checkPostal(c rules.Check, a AddressInput) {
	c.Address(a.FirstLine, a.SecondLine.ptr(), a.City, a.State, rules.CountryOr(a.Country))
	c.Optional(a.AccessNotes, "access_notes", rules.MaxNotes)
	if rules.CountryOr(a.Country) != rules.HomeCountry {
		c.Text(rules.ZipOf(a.Zip, a.ZipCode), "zip", 1, rules.MaxText)
		c.OneZip(rules.ZipOf(a.Zip, a.ZipCode), a.ZipCode)
		return
	}
	c.Zip(a.Zip, a.ZipCode)
	c.ZipOfState(a.Zip, a.ZipCode, a.State, rules.CountryOr(a.Country))
}

// Details converts the input to the type that is stored and returned; nil for nil.
func (g *GuarantorInput) Details() *GuarantorDetails {
	if g == nil {
		return nil
	}
	return &GuarantorDetails{
		FirstName: g.FirstName, LastName: g.LastName, Address: g.Address.Address(), PhoneNumber: g.PhoneNumber,
		HouseholdIncome: g.HouseholdIncome, HouseholdSize: g.HouseholdSize, Email: g.Email,
	}
}

// Address converts the input to the type that is stored and returned. Country is US by default.
func (a AddressInput) Address() Address {
	return Address{
		FirstLine: a.FirstLine, SecondLine: a.SecondLine.ptr(), City: a.City, State: a.State,
		Zip: rules.ZipOf(a.Zip, a.ZipCode), Country: rules.CountryOr(a.Country), AccessNotes: a.AccessNotes,
	}
}
