package people

import (
	"encoding/json"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// PatientDetails has the patient's identity and contact data. Printing or logging it shows nothing.
type PatientDetails struct {
	healthlab.Private

	FirstName *string `json:"first_name"`
	LastName  *string `json:"last_name"`
	// DOB is the birth date.
	DOB         healthlab.Date `json:"dob"`
	Gender      Gender         `json:"gender"`
	PhoneNumber *string        `json:"phone_number"`
	Email       *string        `json:"email"`
	// MedicalProxy decides for a patient who is a minor.
	MedicalProxy *GuarantorDetails `json:"medical_proxy"`
	// Race, Ethnicity, SexualOrientation and GenderIdentity are null if unknown.
	Race              *Race              `json:"race"`
	Ethnicity         *Ethnicity         `json:"ethnicity"`
	SexualOrientation *SexualOrientation `json:"sexual_orientation"`
	GenderIdentity    *GenderIdentity    `json:"gender_identity"`
}

// UnmarshalJSON reads the JSON of the HTTP API; in old payloads the birth date is a date-time.
func (p *PatientDetails) UnmarshalJSON(b []byte) error {
	type plain PatientDetails
	in := struct {
		*plain
		DOB string `json:"dob"`
	}{plain: (*plain)(p)}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	if len(in.DOB) > len(time.DateOnly) && in.DOB[len(time.DateOnly)] == 'T' {
		in.DOB = in.DOB[:len(time.DateOnly)]
	}
	var err error
	p.DOB, err = healthlab.ParseDate(in.DOB)
	return err
}

// GuarantorDetails is a parent, proxy, or person who pays.
type GuarantorDetails struct {
	healthlab.Private

	FirstName   string  `json:"first_name"`
	LastName    string  `json:"last_name"`
	Address     Address `json:"address"`
	PhoneNumber string  `json:"phone_number"`
	// HouseholdIncome is in USD per year.
	HouseholdIncome *int `json:"household_income"`
	// HouseholdSize is the number of persons.
	HouseholdSize *int    `json:"household_size"`
	Email         *string `json:"email"`
}

// Address is a postal address of a guarantor, a payor or a laboratory. JSON has the postal code as zip and as
// zip_code.
type Address struct {
	healthlab.Private

	FirstLine  string  `json:"first_line"`
	SecondLine *string `json:"second_line"`
	City       string  `json:"city"`
	State      string  `json:"state"`
	Zip        string  `json:"zip"`
	Country    string  `json:"country"`
	// AccessNotes tell a visitor how to enter the building. At most 1,000 characters.
	AccessNotes *string `json:"access_notes"`
}

// PatientAddress is the patient's address, to which a kit for a known patient is sent.
type PatientAddress struct {
	healthlab.Private

	ReceiverName string  `json:"receiver_name"`
	FirstLine    string  `json:"first_line"`
	SecondLine   *string `json:"second_line"`
	City         string  `json:"city"`
	State        string  `json:"state"`
	Zip          string  `json:"zip"`
	Country      string  `json:"country"`
	PhoneNumber  *string `json:"phone_number"`
	// AccessNotes tell a visitor how to enter the building: a gate code, where to park. At most 1,000 characters. A
	// phlebotomist gets them if the booking of the visit has no notes of its own.
	AccessNotes *string `json:"access_notes"`
}

// ShippingDetails is the shipping address of a registrable kit: one that is sent before its patient is known.
type ShippingDetails struct {
	healthlab.Private

	ReceiverName string  `json:"receiver_name"`
	FirstLine    string  `json:"first_line"`
	SecondLine   *string `json:"second_line"`
	City         string  `json:"city"`
	State        string  `json:"state"`
	Zip          string  `json:"zip"`
	Country      string  `json:"country"`
	PhoneNumber  string  `json:"phone_number"`
}

// addressJSON writes the postal code as zip and as zip_code.
type addressJSON struct {
	plainAddress
	ZipCode string `json:"zip_code"`
}

type plainAddress Address

// MarshalJSON writes the postal code as zip and as zip_code.
func (a Address) MarshalJSON() ([]byte, error) {
	return json.Marshal(addressJSON{plainAddress(a), a.Zip})
}

// UnmarshalJSON reads the JSON of the HTTP API; zip may be named zip_code.
func (a *Address) UnmarshalJSON(b []byte) error {
	return rules.UnmarshalZip(b, (*plainAddress)(a), &a.Zip)
}

// UnmarshalJSON reads the JSON of the HTTP API; zip may be named zip_code.
func (a *PatientAddress) UnmarshalJSON(b []byte) error {
	type plain PatientAddress
	return rules.UnmarshalZip(b, (*plain)(a), &a.Zip)
}

// UnmarshalJSON reads the JSON of the HTTP API; zip may be named zip_code.
func (s *ShippingDetails) UnmarshalJSON(b []byte) error {
	type plain ShippingDetails
	return rules.UnmarshalZip(b, (*plain)(s), &s.Zip)
}

// Name returns "first last", or the part that is known.
func (p *PatientDetails) Name() string {
	if p == nil {
		return ""
	}
	return rules.Join(p.FirstName, p.LastName)
}

// SortName returns "last first" after [healthlab.FoldText], or the part that is known.
func (p *PatientDetails) SortName() string {
	if p == nil {
		return ""
	}
	return healthlab.FoldText(rules.Join(p.LastName, p.FirstName))
}
