package people

import (
	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// UserInfo has the identity, contact data and demographics of a user for laboratories, insurers and visitors.
// Printing or logging it shows nothing.
type UserInfo struct {
	healthlab.Private

	FirstName   string `json:"first_name"`
	LastName    string `json:"last_name"`
	Email       string `json:"email"`
	PhoneNumber string `json:"phone_number"`
	// Gender is free text. Compare it ignoring case.
	Gender string `json:"gender"`
	// DOB is the birth date.
	DOB     healthlab.Date `json:"dob"`
	Address UserAddress    `json:"address"`
	// MedicalProxy decides for a user who is a minor.
	MedicalProxy *GuarantorDetails `json:"medical_proxy"`
	// Race, Ethnicity, SexualOrientation and GenderIdentity are null if unknown.
	Race              *Race              `json:"race"`
	Ethnicity         *Ethnicity         `json:"ethnicity"`
	SexualOrientation *SexualOrientation `json:"sexual_orientation"`
	GenderIdentity    *GenderIdentity    `json:"gender_identity"`
}

// UserAddress is the user's address. JSON has the postal code as zip and as zip_code.
type UserAddress struct {
	healthlab.Private

	FirstLine  string  `json:"first_line"`
	SecondLine *string `json:"second_line"`
	City       string  `json:"city"`
	State      string  `json:"state"`
	Zip        string  `json:"zip"`
	// ZipCode equals Zip.
	ZipCode string `json:"zip_code"`
	Country string `json:"country"`
	// AccessNotes tell a visitor how to enter the building. At most 1,000 characters.
	AccessNotes *string `json:"access_notes"`
}

// UserInfoRequest is a request that replaces a user's demographics.
type UserInfoRequest struct {
	healthlab.Private

	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Email     string `json:"email"`
	// PhoneNumber has a country code after +, or is a US number.
	PhoneNumber       string             `json:"phone_number"`
	Gender            string             `json:"gender"`
	DOB               healthlab.Date     `json:"dob"`
	Address           UserAddressInput   `json:"address"`
	MedicalProxy      *GuarantorInput    `json:"medical_proxy"`
	Race              *Race              `json:"race"`
	Ethnicity         *Ethnicity         `json:"ethnicity"`
	SexualOrientation *SexualOrientation `json:"sexual_orientation"`
	GenderIdentity    *GenderIdentity    `json:"gender_identity"`
}

// UserAddressInput is the user's address, in a request.
type UserAddressInput struct {
	healthlab.Private

	AddressInput
}

// Check returns Invalid with every problem of the request. today is the day in UTC.
func (r *UserInfoRequest) Check(today healthlab.Date) error {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	c.Name(r.FirstName, "first_name")
	c.Name(r.LastName, "last_name")
	c.Email(r.Email, "email")
	c.Phone(r.PhoneNumber, "phone_number")
	c.Text(r.Gender, "gender", 1, rules.MaxText)
	checkBorn(c, r.DOB, today)
	checkPostal(c.Under("address"), r.Address.AddressInput)
	if r.MedicalProxy != nil {
		checkGuarantor(c.Under("medical_proxy"), *r.MedicalProxy)
	}
	rules.OptionalOf(c, r.Race, races, "race")
	rules.OptionalOf(c, r.Ethnicity, ethnicities, "ethnicity")
	rules.OptionalOf(c, r.SexualOrientation, sexualOrientations, "sexual_orientation")
	rules.OptionalOf(c, r.GenderIdentity, genderIdentities, "gender_identity")
	return p.Err()
}
