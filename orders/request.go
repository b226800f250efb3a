package orders

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// PatientDetailsInput says who the patient is, in a request.
type PatientDetailsInput struct {
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
	// HouseholdIncome is in USD per year; HouseholdSize counts persons.
	HouseholdIncome *int `json:"household_income"`
	HouseholdSize   *int `json:"household_size"`
}

// GuarantorInput is a parent, proxy, or person who pays, in a request.
type GuarantorInput struct {
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
	FirstLine string `json:"first_line"`
	// SecondLine is empty if it is not given; null stays null.
	SecondLine Line   `json:"second_line" wire:"opt"`
	City       string `json:"city"`
	// State is two upper-case letters in the US.
	State string `json:"state"`
	// Zip is five digits, or ZIP+4, in the US. ZipCode is another name of it; a request
	// gives one of them.
	Zip     string  `json:"zip" wire:"opt"`
	ZipCode *string `json:"zip_code,omitempty" wire:"in"`
	// Country is US if it is not given.
	Country string `json:"country" wire:"opt"`
	// AccessNotes help a visitor in. At most 1,000 characters.
	AccessNotes *string `json:"access_notes"`
}

// Line is a line of text that may be null. The zero value is the empty line.
type Line struct {
	Text string
	Null bool
}

// UnmarshalJSON reads text or null.
func (l *Line) UnmarshalJSON(b []byte) error {
	*l = Line{Null: string(b) == "null"}
	return json.Unmarshal(b, &l.Text)
}

// MarshalJSON writes text or null.
func (l Line) MarshalJSON() ([]byte, error) { return json.Marshal(l.ptr()) }

func (l Line) ptr() *string {
	if l.Null {
		return nil
	}
	return &l.Text
}

// PatientAddressInput is where the patient lives, in a request.
type PatientAddressInput struct {
	ReceiverName string  `json:"receiver_name" wire:"opt"`
	FirstLine    string  `json:"first_line"`
	SecondLine   *string `json:"second_line"`
	City         string  `json:"city"`
	// State is two upper-case letters in the US.
	State string `json:"state"`
	// Zip is five digits, or ZIP+4. ZipCode is another name of it; a request gives one
	// of them.
	Zip         string  `json:"zip" wire:"opt"`
	ZipCode     *string `json:"zip_code,omitempty" wire:"in"`
	Country     string  `json:"country"`
	PhoneNumber *string `json:"phone_number"`
	AccessNotes *string `json:"access_notes"`
}

// ImportAddressInput is where the patient of an imported order lives, in a request.
type ImportAddressInput struct {
	ReceiverName string  `json:"receiver_name"`
	FirstLine    string  `json:"first_line"`
	SecondLine   *string `json:"second_line"`
	City         string  `json:"city"`
	// State is any text.
	State string `json:"state"`
	// Zip is any text. ZipCode is another name of it; a request gives one of them.
	Zip         string  `json:"zip" wire:"opt"`
	ZipCode     *string `json:"zip_code,omitempty" wire:"in"`
	Country     string  `json:"country"`
	PhoneNumber *string `json:"phone_number"`
	AccessNotes *string `json:"access_notes"`
}

// ShippingDetailsInput is where a registrable kit goes, in a request.
type ShippingDetailsInput struct {
	ReceiverName string  `json:"receiver_name"`
	FirstLine    string  `json:"first_line"`
	SecondLine   *string `json:"second_line"`
	City         string  `json:"city"`
	// State is two upper-case letters in the US.
	State string `json:"state"`
	// Zip is five digits, or ZIP+4. ZipCode is another name of it; a request gives one
	// of them.
	Zip         string  `json:"zip" wire:"opt"`
	ZipCode     *string `json:"zip_code,omitempty" wire:"in"`
	Country     string  `json:"country"`
	PhoneNumber string  `json:"phone_number"`
}

// PhysicianInput is a team's own physician.
type PhysicianInput struct {
	FirstName string  `json:"first_name"`
	LastName  string  `json:"last_name"`
	Email     *string `json:"email"`
	// NPI is the national provider identifier. Its form is not checked.
	NPI            string   `json:"npi"`
	LicensedStates []string `json:"licensed_states" wire:"opt"`
	// SignatureImage is for bills to insurers.
	SignatureImage *ImageBlob `json:"signature_image"`
}

// PhysicianInputBase is a team's own physician who signs nothing.
type PhysicianInputBase struct {
	FirstName string  `json:"first_name"`
	LastName  string  `json:"last_name"`
	Email     *string `json:"email"`
	// NPI is the national provider identifier. Its form is not checked.
	NPI            string   `json:"npi"`
	LicensedStates []string `json:"licensed_states" wire:"opt"`
}

// enrich returns the physician without a signature; nil for none.
func (p *PhysicianInputBase) enrich() *PhysicianInput {
	if p == nil {
		return nil
	}
	return &PhysicianInput{FirstName: p.FirstName, LastName: p.LastName, Email: p.Email, NPI: p.NPI, LicensedStates: p.LicensedStates}
}

// HealthInsuranceInput is what a patient's insurance card says. Deprecated where an
// order is placed: create the insurance record on the user instead. Kits are still
// registered with it.
type HealthInsuranceInput struct {
	FrontImage            *ImageBlob `json:"front_image"`
	BackImage             *ImageBlob `json:"back_image"`
	PatientSignatureImage *ImageBlob `json:"patient_signature_image"`
	// Subjective is symptoms and what was tried; AssessmentPlan the physician's view.
	Subjective     *string `json:"subjective"`
	AssessmentPlan *string `json:"assessment_plan"`
	PayorCode      *string `json:"payor_code"`
	// InsuranceID is the member number on the card.
	InsuranceID *string `json:"insurance_id"`
	// ResponsibleRelationship is Self, Spouse or Other: what the patient is to the
	// holder of the policy.
	ResponsibleRelationship *string            `json:"responsible_relationship"`
	ResponsibleDetails      *ResponsiblePerson `json:"responsible_details"`
	DiagnosisCodes          []string           `json:"diagnosis_codes" wire:"opt"`
}

// ResponsiblePerson is the holder of a policy.
type ResponsiblePerson struct {
	FirstName   string       `json:"first_name"`
	LastName    string       `json:"last_name"`
	Address     AddressInput `json:"address"`
	PhoneNumber string       `json:"phone_number"`
	// PhoneType is Mobile if it is not given.
	PhoneType string `json:"phone_type" wire:"opt"`
}

// usualPhone is what a phone is of which nothing was said.
const usualPhone = "Mobile"

// ImageBlob is a picture; base64 in JSON.
type ImageBlob struct {
	Content []byte `json:"content"`
	// ContentType is image/jpeg or image/png.
	ContentType string `json:"content_type"`
}

// PlaceRequest asks for an order of a patient who is known.
type PlaceRequest struct {
	UserID healthlab.UserID `json:"user_id"`
	// LabTestID is deprecated; use OrderSet.
	LabTestID        *LabTestID        `json:"lab_test_id"`
	OrderSet         *OrderSet         `json:"order_set"`
	CollectionMethod *CollectionMethod `json:"collection_method"`
	Physician        *PhysicianInput   `json:"physician"`
	// HealthInsurance is deprecated; create the insurance record on the user instead.
	HealthInsurance *HealthInsuranceInput `json:"health_insurance"`
	Priority        bool                  `json:"priority" wire:"opt"`
	// BillingType is client_bill if empty.
	BillingType     BillingType         `json:"billing_type" wire:"opt"`
	ICDCodes        []string            `json:"icd_codes" wire:"opt"`
	Consents        []Consent           `json:"consents" wire:"opt"`
	ActivateBy      *healthlab.Date     `json:"activate_by"`
	AOEAnswers      []AOEAnswer         `json:"aoe_answers" wire:"opt"`
	Passthrough     *string             `json:"passthrough"`
	ClinicalNotes   *string             `json:"clinical_notes"`
	LabAccountID    *LabAccountID       `json:"lab_account_id"`
	CreatorMemberID *uuid.UUID          `json:"creator_member_id"`
	PatientDetails  PatientDetailsInput `json:"patient_details"`
	PatientAddress  PatientAddressInput `json:"patient_address"`
}

// TestkitRequest asks for a kit whose patient is not known yet.
type TestkitRequest struct {
	// UserID is the patient, or a stock user.
	UserID          healthlab.UserID     `json:"user_id"`
	LabTestID       LabTestID            `json:"lab_test_id"`
	ShippingDetails ShippingDetailsInput `json:"shipping_details"`
	Passthrough     *string              `json:"passthrough"`
	LabAccountID    *LabAccountID        `json:"lab_account_id"`
}

// RegisterRequest binds a kit to its patient.
type RegisterRequest struct {
	// UserID is the patient, if not the user of the order.
	UserID *healthlab.UserID `json:"user_id"`
	// SampleID is printed on the kit.
	SampleID        string                `json:"sample_id"`
	PatientDetails  PatientDetailsInput   `json:"patient_details"`
	PatientAddress  PatientAddressInput   `json:"patient_address"`
	Physician       *PhysicianInputBase   `json:"physician"`
	HealthInsurance *HealthInsuranceInput `json:"health_insurance"`
	Consents        []Consent             `json:"consents" wire:"opt"`
}

func checkPatient(c check, p PatientDetailsInput, today healthlab.Date) {
	c.name(p.FirstName, "first_name")
	c.name(p.LastName, "last_name")
	checkBorn(c, p.DOB, today)
	oneOf(c.problems, p.Gender, genders, append(slices.Clone(c.at), "gender")...)
	c.text(p.PhoneNumber, "phone_number", 1, maxText)
	c.email(p.Email, "email")
	if p.MedicalProxy != nil {
		checkGuarantor(c.under("medical_proxy"), *p.MedicalProxy)
	}
	optionalOf(c, p.Race, races, "race")
	optionalOf(c, p.Ethnicity, ethnicities, "ethnicity")
	optionalOf(c, p.SexualOrientation, sexualOrientations, "sexual_orientation")
	optionalOf(c, p.GenderIdentity, genderIdentities, "gender_identity")
	c.count(p.HouseholdIncome, "household_income")
	c.count(p.HouseholdSize, "household_size")
}

func checkGuarantor(c check, g GuarantorInput) {
	c.name(g.FirstName, "first_name")
	c.name(g.LastName, "last_name")
	c.text(g.PhoneNumber, "phone_number", 1, maxText)
	if g.Email != nil {
		c.email(*g.Email, "email")
	}
	c.count(g.HouseholdIncome, "household_income")
	c.count(g.HouseholdSize, "household_size")
	checkPostal(c.under("address"), g.Address)
}

// postal checks an address; what is known of the form is that of the US.
func checkPostal(c check, a AddressInput) {
	c.address(a.FirstLine, a.SecondLine.ptr(), a.City, a.State, homeOr(a.Country))
	c.optional(a.AccessNotes, "access_notes", maxNotes)
	if homeOr(a.Country) != home {
		c.text(zipOf(a.Zip, a.ZipCode), "zip", 1, maxText)
		c.oneZip(zipOf(a.Zip, a.ZipCode), a.ZipCode)
		return
	}
	c.zip(a.Zip, a.ZipCode)
}

func checkPatientAddress(c check, a PatientAddressInput) {
	c.text(a.ReceiverName, "receiver_name", 0, maxText)
	c.address(a.FirstLine, a.SecondLine, a.City, a.State, a.Country)
	c.zip(a.Zip, a.ZipCode)
	c.optional(a.PhoneNumber, "phone_number", maxText)
	c.optional(a.AccessNotes, "access_notes", maxNotes)
}

func checkShipping(c check, s ShippingDetailsInput) {
	c.text(s.ReceiverName, "receiver_name", 1, maxText)
	c.address(s.FirstLine, s.SecondLine, s.City, s.State, s.Country)
	c.zip(s.Zip, s.ZipCode)
	c.text(s.PhoneNumber, "phone_number", 1, maxText)
}

func checkPhysician(c check, p PhysicianInput) {
	c.text(p.FirstName, "first_name", 1, maxText)
	c.text(p.LastName, "last_name", 1, maxText)
	c.text(p.NPI, "npi", 1, maxText)
	if p.Email != nil {
		c.email(*p.Email, "email")
	}
	for i, s := range p.LicensedStates {
		c.under("licensed_states").text(s, i, 1, maxText)
	}
	checkImage(c, p.SignatureImage, "signature_image")
}

func checkImage(c check, b *ImageBlob, field string) {
	if b == nil {
		return
	}
	if len(b.Content) == 0 {
		c.add("missing", "is required", field, "content")
	}
	oneOf(c.problems, b.ContentType, []string{"image/jpeg", "image/png"}, append(slices.Clone(c.at), field, "content_type")...)
}

func checkInsurance(c check, h HealthInsuranceInput) {
	checkImage(c, h.FrontImage, "front_image")
	checkImage(c, h.BackImage, "back_image")
	checkImage(c, h.PatientSignatureImage, "patient_signature_image")
	c.optional(h.Subjective, "subjective", 10*maxNotes)
	c.optional(h.AssessmentPlan, "assessment_plan", 10*maxNotes)
	c.optional(h.PayorCode, "payor_code", maxText)
	c.optional(h.InsuranceID, "insurance_id", maxText)
	optionalOf(c, h.ResponsibleRelationship, []string{"Self", "Spouse", "Other"}, "responsible_relationship")
	if r := h.ResponsibleDetails; r != nil {
		checkGuarantor(c.under("responsible_details"), GuarantorInput{
			FirstName: r.FirstName, LastName: r.LastName, Address: r.Address, PhoneNumber: r.PhoneNumber,
		})
		c.under("responsible_details").text(r.PhoneType, "phone_type", 0, maxText)
	}
	for i, code := range h.DiagnosisCodes {
		if !icdForm.MatchString(code) {
			c.add("icd_form", "is an ICD-10 code", "diagnosis_codes", i)
		}
	}
}

func checkConsents(c check, list []Consent) {
	for i, consent := range list {
		oneOf(c.problems, consent.ConsentType, consentTypes, append(slices.Clone(c.at), i, "consentType")...)
		c.under(i).text(consent.Version, "version", 0, maxText)
	}
}

// Check returns Invalid with every problem of the request itself, before anything is
// looked up. Today is the day in UTC.
func (r *PlaceRequest) Check(today healthlab.Date) error {
	var p healthlab.Problems
	c := check{problems: &p}
	c.user(r.UserID, "user_id")
	optionalOf(c, r.CollectionMethod, CollectionMethods(), "collection_method")
	if r.Physician != nil {
		checkPhysician(c.under("physician"), *r.Physician)
	}
	if r.HealthInsurance != nil {
		checkInsurance(c.under("health_insurance"), *r.HealthInsurance)
	}
	if r.BillingType != "" {
		oneOf(&p, r.BillingType, billingTypes, "billing_type")
	}
	for i, code := range r.ICDCodes {
		if r.BillingType != CommercialInsurance && !icdForm.MatchString(code) {
			p.Add("icd_form", "is an ICD-10 code", "icd_codes", i)
		}
	}
	checkConsents(c.under("consents"), r.Consents)
	for i, a := range r.AOEAnswers {
		c.under("aoe_answers", i).text(a.Answer, "answer", 0, maxNotes)
	}
	c.optional(r.Passthrough, "passthrough", 10*maxNotes)
	c.optional(r.ClinicalNotes, "clinical_notes", maxNotes)
	checkPatient(c.under("patient_details"), r.PatientDetails, today)
	checkPatientAddress(c.under("patient_address"), r.PatientAddress)
	return p.Err()
}

// Check returns Invalid with every problem of the request itself.
func (r *TestkitRequest) Check() error {
	var p healthlab.Problems
	c := check{problems: &p}
	c.user(r.UserID, "user_id")
	if r.LabTestID.IsZero() {
		c.add("missing", "is required", "lab_test_id")
	}
	checkShipping(c.under("shipping_details"), r.ShippingDetails)
	c.optional(r.Passthrough, "passthrough", 10*maxNotes)
	return p.Err()
}

// Check returns Invalid with every problem of the request itself. Today is the day in
// UTC.
func (r *RegisterRequest) Check(today healthlab.Date) error {
	var p healthlab.Problems
	c := check{problems: &p}
	if r.UserID != nil {
		c.user(*r.UserID, "user_id")
	}
	c.text(r.SampleID, "sample_id", 1, maxText)
	checkPatient(c.under("patient_details"), r.PatientDetails, today)
	checkPatientAddress(c.under("patient_address"), r.PatientAddress)
	if p := r.Physician.enrich(); p != nil {
		checkPhysician(c.under("physician"), *p)
	}
	if r.HealthInsurance != nil {
		checkInsurance(c.under("health_insurance"), *r.HealthInsurance)
	}
	checkConsents(c.under("consents"), r.Consents)
	return p.Err()
}

func (p PatientDetailsInput) details() *PatientDetails {
	return &PatientDetails{
		FirstName: &p.FirstName, LastName: &p.LastName, DOB: p.DOB, Gender: p.Gender,
		PhoneNumber: &p.PhoneNumber, Email: &p.Email, MedicalProxy: p.MedicalProxy.guarantor(), Race: p.Race,
		Ethnicity: p.Ethnicity, SexualOrientation: p.SexualOrientation, GenderIdentity: p.GenderIdentity,
	}
}

func (g *GuarantorInput) guarantor() *GuarantorDetails {
	if g == nil {
		return nil
	}
	return &GuarantorDetails{
		FirstName: g.FirstName, LastName: g.LastName, Address: g.Address.address(), PhoneNumber: g.PhoneNumber,
		HouseholdIncome: g.HouseholdIncome, HouseholdSize: g.HouseholdSize, Email: g.Email,
	}
}

func (a AddressInput) address() Address {
	return Address{
		FirstLine: a.FirstLine, SecondLine: a.SecondLine.ptr(), City: a.City, State: a.State,
		Zip: zipOf(a.Zip, a.ZipCode), Country: homeOr(a.Country), AccessNotes: a.AccessNotes,
	}
}

func (a PatientAddressInput) address() *PatientAddress {
	return &PatientAddress{
		ReceiverName: a.ReceiverName, FirstLine: a.FirstLine, SecondLine: a.SecondLine, City: a.City, State: a.State,
		Zip: zipOf(a.Zip, a.ZipCode), Country: a.Country, PhoneNumber: a.PhoneNumber, AccessNotes: a.AccessNotes,
	}
}

func (s ShippingDetailsInput) details() *ShippingDetails {
	return &ShippingDetails{
		ReceiverName: s.ReceiverName, FirstLine: s.FirstLine, SecondLine: s.SecondLine, City: s.City, State: s.State,
		Zip: zipOf(s.Zip, s.ZipCode), Country: s.Country, PhoneNumber: s.PhoneNumber,
	}
}

func (p *PhysicianInput) physician() *Physician {
	if p == nil {
		return nil
	}
	return &Physician{FirstName: p.FirstName, LastName: p.LastName, NPI: p.NPI}
}

// given fills in what a consent leaves out.
func given(list []Consent, at time.Time) []Consent {
	out := slices.Clone(list)
	for i := range out {
		if out[i].Version == "" {
			out[i].Version = "1.0"
		}
		if out[i].TimeOfConsent == nil {
			t := healthlab.At(at)
			out[i].TimeOfConsent = &t
		}
	}
	return out
}

// ageOn returns whole years from a birth date to a day.
func ageOn(dob, day healthlab.Date) int {
	years := day.Year - dob.Year
	if day.Month < dob.Month || day.Month == dob.Month && day.Day < dob.Day {
		years--
	}
	return years
}
