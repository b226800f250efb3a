package orders

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
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
	LabTestID        *catalogue.LabTestID        `json:"lab_test_id"`
	OrderSet         *catalogue.OrderSet         `json:"order_set"`
	CollectionMethod *catalogue.CollectionMethod `json:"collection_method"`
	Physician        *PhysicianInput             `json:"physician"`
	// HealthInsurance is deprecated; create the insurance record on the user instead.
	HealthInsurance *HealthInsuranceInput `json:"health_insurance"`
	Priority        bool                  `json:"priority" wire:"opt"`
	// BillingType is client_bill if empty.
	BillingType     catalogue.BillingType   `json:"billing_type" wire:"opt"`
	ICDCodes        []string                `json:"icd_codes" wire:"opt"`
	Consents        []Consent               `json:"consents" wire:"opt"`
	ActivateBy      *healthlab.Date         `json:"activate_by"`
	AOEAnswers      []catalogue.AOEAnswer   `json:"aoe_answers" wire:"opt"`
	Passthrough     *string                 `json:"passthrough"`
	ClinicalNotes   *string                 `json:"clinical_notes"`
	LabAccountID    *catalogue.LabAccountID `json:"lab_account_id"`
	CreatorMemberID *uuid.UUID              `json:"creator_member_id"`
	PatientDetails  PatientDetailsInput     `json:"patient_details"`
	PatientAddress  PatientAddressInput     `json:"patient_address"`
}

// TestkitRequest asks for a kit whose patient is not known yet.
type TestkitRequest struct {
	// UserID is the patient, or a stock user.
	UserID          healthlab.UserID        `json:"user_id"`
	LabTestID       catalogue.LabTestID     `json:"lab_test_id"`
	ShippingDetails ShippingDetailsInput    `json:"shipping_details"`
	Passthrough     *string                 `json:"passthrough"`
	LabAccountID    *catalogue.LabAccountID `json:"lab_account_id"`
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

func checkPatient(c rules.Check, p PatientDetailsInput, today healthlab.Date) {
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

// postal checks an address; what is known of the form is that of the US.
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

func checkPatientAddress(c rules.Check, a PatientAddressInput) {
	c.Text(a.ReceiverName, "receiver_name", 0, rules.MaxText)
	c.Address(a.FirstLine, a.SecondLine, a.City, a.State, a.Country)
	c.Zip(a.Zip, a.ZipCode)
	c.ZipOfState(a.Zip, a.ZipCode, a.State, a.Country)
	c.OptionalPhone(a.PhoneNumber, "phone_number")
	c.Optional(a.AccessNotes, "access_notes", rules.MaxNotes)
}

func checkShipping(c rules.Check, s ShippingDetailsInput) {
	c.Text(s.ReceiverName, "receiver_name", 1, rules.MaxText)
	c.Address(s.FirstLine, s.SecondLine, s.City, s.State, s.Country)
	c.Zip(s.Zip, s.ZipCode)
	c.ZipOfState(s.Zip, s.ZipCode, s.State, s.Country)
	c.Phone(s.PhoneNumber, "phone_number")
}

func checkPhysician(c rules.Check, p PhysicianInput) {
	c.Text(p.FirstName, "first_name", 1, rules.MaxText)
	c.Text(p.LastName, "last_name", 1, rules.MaxText)
	c.NPI(p.NPI, "npi")
	if p.Email != nil {
		c.Email(*p.Email, "email")
	}
	for i, s := range p.LicensedStates {
		if !slices.Contains(rules.StatesOfUS, s) {
			c.Add("state_form", "must be the two upper-case letters of a state or a territory of the US", "licensed_states", i)
		}
	}
	checkImage(c, p.SignatureImage, "signature_image")
}

func checkImage(c rules.Check, b *ImageBlob, field string) {
	if b == nil {
		return
	}
	if len(b.Content) == 0 {
		c.Add("missing", "is required", field, "content")
	}
	rules.OneOf(c.Problems, b.ContentType, []string{"image/jpeg", "image/png"}, append(slices.Clone(c.At), field, "content_type")...)
}

func checkInsurance(c rules.Check, h HealthInsuranceInput) {
	checkImage(c, h.FrontImage, "front_image")
	checkImage(c, h.BackImage, "back_image")
	checkImage(c, h.PatientSignatureImage, "patient_signature_image")
	c.Optional(h.Subjective, "subjective", 10*rules.MaxNotes)
	c.Optional(h.AssessmentPlan, "assessment_plan", 10*rules.MaxNotes)
	c.Optional(h.PayorCode, "payor_code", rules.MaxText)
	c.Optional(h.InsuranceID, "insurance_id", rules.MaxText)
	rules.OptionalOf(c, h.ResponsibleRelationship, []string{"Self", "Spouse", "Other"}, "responsible_relationship")
	if r := h.ResponsibleDetails; r != nil {
		checkGuarantor(c.Under("responsible_details"), GuarantorInput{
			FirstName: r.FirstName, LastName: r.LastName, Address: r.Address, PhoneNumber: r.PhoneNumber,
		})
		c.Under("responsible_details").Text(r.PhoneType, "phone_type", 0, rules.MaxText)
	}
	for i, code := range h.DiagnosisCodes {
		if !rules.ICDForm.MatchString(code) {
			c.Add("icd_form", "must be an ICD-10 code, such as E11.9", "diagnosis_codes", i)
		}
	}
}

// maxActivationDays is how far ahead an order can be activated.
const maxActivationDays = 366

// checkActivation refuses a day of activation that is too far ahead.
func checkActivation(p *healthlab.Problems, day, today healthlab.Date) {
	if day.After(today.AddDays(maxActivationDays)) {
		p.Add("date_too_late", "must be at most a year ahead", "activate_by")
	}
}

func checkConsents(c rules.Check, list []Consent) {
	for i, consent := range list {
		rules.OneOf(c.Problems, consent.ConsentType, consentTypes, append(slices.Clone(c.At), i, "consentType")...)
		c.Under(i).Text(consent.Version, "version", 0, rules.MaxText)
	}
}

// Check returns Invalid with every problem of the request itself, before anything is
// looked up. Today is the day in UTC.
func (r *PlaceRequest) Check(today healthlab.Date) error {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	c.User(r.UserID, "user_id")
	rules.OptionalOf(c, r.CollectionMethod, catalogue.CollectionMethods(), "collection_method")
	if r.Physician != nil {
		checkPhysician(c.Under("physician"), *r.Physician)
	}
	if r.HealthInsurance != nil {
		checkInsurance(c.Under("health_insurance"), *r.HealthInsurance)
	}
	if r.BillingType != "" {
		rules.OneOf(&p, r.BillingType, billingTypes, "billing_type")
	}
	for i, code := range r.ICDCodes {
		if r.BillingType != catalogue.CommercialInsurance && !rules.ICDForm.MatchString(code) {
			p.Add("icd_form", "must be an ICD-10 code, such as E11.9", "icd_codes", i)
		}
	}
	if set := r.OrderSet; set != nil {
		rules.Once(c, set.LabTestIDs, "order_set", "lab_test_ids")
		if add := set.AddOn; add != nil {
			rules.Once(c, add.MarkerIDs, "order_set", "add_on", "marker_ids")
			rules.Once(c, add.ProviderIDs, "order_set", "add_on", "provider_ids")
		}
	}
	if r.ActivateBy != nil {
		checkActivation(&p, *r.ActivateBy, today)
	}
	checkConsents(c.Under("consents"), r.Consents)
	for i, a := range r.AOEAnswers {
		c.Under("aoe_answers", i).Text(a.Answer, "answer", 0, rules.MaxNotes)
	}
	c.Optional(r.Passthrough, "passthrough", 10*rules.MaxNotes)
	c.Optional(r.ClinicalNotes, "clinical_notes", rules.MaxNotes)
	checkPatient(c.Under("patient_details"), r.PatientDetails, today)
	checkPatientAddress(c.Under("patient_address"), r.PatientAddress)
	return p.Err()
}

// Check returns Invalid with every problem of the request itself.
func (r *TestkitRequest) Check() error {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	c.User(r.UserID, "user_id")
	if r.LabTestID.IsZero() {
		c.Add("missing", "is required", "lab_test_id")
	}
	checkShipping(c.Under("shipping_details"), r.ShippingDetails)
	c.Optional(r.Passthrough, "passthrough", 10*rules.MaxNotes)
	return p.Err()
}

// Check returns Invalid with every problem of the request itself. Today is the day in
// UTC.
func (r *RegisterRequest) Check(today healthlab.Date) error {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	if r.UserID != nil {
		c.User(*r.UserID, "user_id")
	}
	c.Text(r.SampleID, "sample_id", 1, rules.MaxText)
	checkPatient(c.Under("patient_details"), r.PatientDetails, today)
	checkPatientAddress(c.Under("patient_address"), r.PatientAddress)
	if p := r.Physician.enrich(); p != nil {
		checkPhysician(c.Under("physician"), *p)
	}
	if r.HealthInsurance != nil {
		checkInsurance(c.Under("health_insurance"), *r.HealthInsurance)
	}
	checkConsents(c.Under("consents"), r.Consents)
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
		Zip: rules.ZipOf(a.Zip, a.ZipCode), Country: rules.CountryOr(a.Country), AccessNotes: a.AccessNotes,
	}
}

func (a PatientAddressInput) address() *PatientAddress {
	return &PatientAddress{
		ReceiverName: a.ReceiverName, FirstLine: a.FirstLine, SecondLine: a.SecondLine, City: a.City, State: a.State,
		Zip: rules.ZipOf(a.Zip, a.ZipCode), Country: a.Country, PhoneNumber: a.PhoneNumber, AccessNotes: a.AccessNotes,
	}
}

func (s ShippingDetailsInput) details() *ShippingDetails {
	return &ShippingDetails{
		ReceiverName: s.ReceiverName, FirstLine: s.FirstLine, SecondLine: s.SecondLine, City: s.City, State: s.State,
		Zip: rules.ZipOf(s.Zip, s.ZipCode), Country: s.Country, PhoneNumber: s.PhoneNumber,
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
