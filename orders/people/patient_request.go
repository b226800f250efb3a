package people

import (
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// checkBorn adds a problem if the birth date is missing, after today or before 1900.
func checkBorn(c rules.Check, dob, today healthlab.Date) {
	switch {
	case dob.IsZero():
		c.Add("missing", "is required", "dob")
	case dob.After(today):
		c.Add("date_in_future", "must not be after today", "dob")
	case dob.Year < 1900:
		c.Add("date_too_early", "must be 1900-01-01 or later", "dob")
	}
}

// PatientDetailsInput has the patient's identity and contact data, in a request.
type PatientDetailsInput struct {
	healthlab.Private

	FirstName         string             `json:"first_name"`
	LastName          string             `json:"last_name"`
	DOB               healthlab.Date     `json:"dob"`
	Gender            Gender             `json:"gender"`
	PhoneNumber       string             `json:"phone_number"`
	Email             string             `json:"email"`
	MedicalProxy      *GuarantorInput    `json:"medical_proxy"`
	Race              *Race              `json:"race"`
	Ethnicity         *Ethnicity         `json:"ethnicity"`
	SexualOrientation *SexualOrientation `json:"sexual_orientation"`
	GenderIdentity    *GenderIdentity    `json:"gender_identity"`
	// HouseholdIncome is in USD per year; HouseholdSize is the number of persons.
	HouseholdIncome *int `json:"household_income"`
	HouseholdSize   *int `json:"household_size"`
}

// PatientAddressInput is the patient's address, in a request.
type PatientAddressInput struct {
	healthlab.Private

	ReceiverName string  `json:"receiver_name" wire:"opt"`
	FirstLine    string  `json:"first_line"`
	SecondLine   *string `json:"second_line"`
	City         string  `json:"city"`
	// State is two upper-case letters in the US.
	State string `json:"state"`
	// Zip is five digits, or ZIP+4. ZipCode is another name of the field; a request gives one of them.
	Zip         string  `json:"zip" wire:"opt"`
	ZipCode     *string `json:"zip_code,omitempty" wire:"in"`
	Country     string  `json:"country"`
	PhoneNumber *string `json:"phone_number"`
	AccessNotes *string `json:"access_notes"`
}

// ImportAddressInput is the address of an imported order's patient, in a request.
type ImportAddressInput struct {
	healthlab.Private

	ReceiverName string  `json:"receiver_name"`
	FirstLine    string  `json:"first_line"`
	SecondLine   *string `json:"second_line"`
	City         string  `json:"city"`
	// State is any text.
	State string `json:"state"`
	// Zip is any text. ZipCode is another name of the field; a request gives one of them.
	Zip         string  `json:"zip" wire:"opt"`
	ZipCode     *string `json:"zip_code,omitempty" wire:"in"`
	Country     string  `json:"country"`
	PhoneNumber *string `json:"phone_number"`
	AccessNotes *string `json:"access_notes"`
}

// ShippingDetailsInput is the shipping address of a registrable kit, in a request.
type ShippingDetailsInput struct {
	healthlab.Private

	ReceiverName string  `json:"receiver_name"`
	FirstLine    string  `json:"first_line"`
	SecondLine   *string `json:"second_line"`
	City         string  `json:"city"`
	// State is two upper-case letters in the US.
	State string `json:"state"`
	// Zip is five digits, or ZIP+4. ZipCode is another name of the field; a request gives one of them.
	Zip         string  `json:"zip" wire:"opt"`
	ZipCode     *string `json:"zip_code,omitempty" wire:"in"`
	Country     string  `json:"country"`
	PhoneNumber string  `json:"phone_number"`
}

// Check adds every problem of the patient to problems. at is the path of the patient in the request. today is
// the day in UTC.
func (p PatientDetailsInput) Check(problems *healthlab.Problems, today healthlab.Date, at ...any) {
	c := rules.Check{Problems: problems, At: at}
	c.Name(p.FirstName, "first_name")
	c.Name(p.LastName, "last_name")
	checkBorn(c, p.DOB, today)
	rules.OneOf(c.Problems, p.Gender, genders, append(slices.Clone(c.At), "gender")...)
	c.Phone(p.PhoneNumber, "phone_number")
	c.Email(p.Email, "email")
	if p.MedicalProxy != nil {
		checkGuarantor(c.Under("medical_proxy"), *p.MedicalProxy)
	}
	rules.OptionalOf(c, p.Race, races, "race")
	rules.OptionalOf(c, p.Ethnicity, ethnicities, "ethnicity")
	rules.OptionalOf(c, p.SexualOrientation, sexualOrientations, "sexual_orientation")
	rules.OptionalOf(c, p.GenderIdentity, genderIdentities, "gender_identity")
	c.Count(p.HouseholdIncome, "household_income")
	c.Count(p.HouseholdSize, "household_size")
}

// Check adds every problem of the address to problems. at is the path of the address in the request.
func (a PatientAddressInput) Check(problems *healthlab.Problems, at ...any) {
	c := rules.Check{Problems: problems, At: at}
	c.Text(a.ReceiverName, "receiver_name", 0, rules.MaxText)
	c.Address(a.FirstLine, a.SecondLine, a.City, a.State, a.Country)
	c.Zip(a.Zip, a.ZipCode)
	c.ZipOfState(a.Zip, a.ZipCode, a.State, a.Country)
	c.OptionalPhone(a.PhoneNumber, "phone_number")
	c.Optional(a.AccessNotes, "access_notes", rules.MaxNotes)
}

// Check adds every problem of the address to problems. at is the path of the address in the request.
func (s ShippingDetailsInput) Check(problems *healthlab.Problems, at ...any) {
	c := rules.Check{Problems: problems, At: at}
	c.Text(s.ReceiverName, "receiver_name", 1, rules.MaxText)
	c.Address(s.FirstLine, s.SecondLine, s.City, s.State, s.Country)
	c.Zip(s.Zip, s.ZipCode)
	c.ZipOfState(s.Zip, s.ZipCode, s.State, s.Country)
	c.Phone(s.PhoneNumber, "phone_number")
}

// Details converts the request's patient to the type that orders store.
func (p PatientDetailsInput) Details() *PatientDetails {
	return &PatientDetails{
		FirstName: &p.FirstName, LastName: &p.LastName, DOB: p.DOB, Gender: p.Gender,
		PhoneNumber: &p.PhoneNumber, Email: &p.Email, MedicalProxy: p.MedicalProxy.Details(), Race: p.Race,
		Ethnicity: p.Ethnicity, SexualOrientation: p.SexualOrientation, GenderIdentity: p.GenderIdentity,
	}
}

// Address converts the request's address to the type that orders store.
func (a PatientAddressInput) Address() *PatientAddress {
	return &PatientAddress{
		ReceiverName: a.ReceiverName, FirstLine: a.FirstLine, SecondLine: a.SecondLine, City: a.City, State: a.State,
		Zip: rules.ZipOf(a.Zip, a.ZipCode), Country: a.Country, PhoneNumber: a.PhoneNumber, AccessNotes: a.AccessNotes,
	}
}

// Details converts the request's address to the type that orders store.
func (s ShippingDetailsInput) Details() *ShippingDetails {
	return &ShippingDetails{
		ReceiverName: s.ReceiverName, FirstLine: s.FirstLine, SecondLine: s.SecondLine, City: s.City, State: s.State,
		Zip: rules.ZipOf(s.Zip, s.ZipCode), Country: s.Country, PhoneNumber: s.PhoneNumber,
	}
}

// Age returns whole years from a birth date to a day.
func Age(dob, day healthlab.Date) int {
	years := day.Year - dob.Year
	if day.Month < dob.Month || day.Month == dob.Month && day.Day < dob.Day {
		years--
	}
	return years
}
