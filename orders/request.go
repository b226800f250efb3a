package orders

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// PlaceRequest is a request to place an order for a known patient.
type PlaceRequest struct {
	healthlab.Private

	UserID healthlab.UserID `json:"user_id"`
	// LabTestID is deprecated; use OrderSet.
	LabTestID        *catalogue.LabTestID        `json:"lab_test_id"`
	OrderSet         *catalogue.OrderSet         `json:"order_set"`
	CollectionMethod *catalogue.CollectionMethod `json:"collection_method"`
	Physician        *people.PhysicianInput      `json:"physician"`
	// HealthInsurance is deprecated; create the insurance record on the user instead.
	HealthInsurance *people.HealthInsuranceInput `json:"health_insurance"`
	Priority        bool                         `json:"priority" wire:"opt"`
	// BillingType is client_bill by default.
	BillingType     catalogue.BillingType      `json:"billing_type" wire:"opt"`
	ICDCodes        []string                   `json:"icd_codes" wire:"opt"`
	Consents        []people.Consent           `json:"consents" wire:"opt"`
	ActivateBy      *healthlab.Date            `json:"activate_by"`
	AOEAnswers      []catalogue.AOEAnswer      `json:"aoe_answers" wire:"opt"`
	Passthrough     *string                    `json:"passthrough"`
	ClinicalNotes   *string                    `json:"clinical_notes"`
	LabAccountID    *catalogue.LabAccountID    `json:"lab_account_id"`
	CreatorMemberID *uuid.UUID                 `json:"creator_member_id"`
	PatientDetails  people.PatientDetailsInput `json:"patient_details"`
	PatientAddress  people.PatientAddressInput `json:"patient_address"`
}

// TestkitRequest is a request for a kit whose patient is not known yet.
type TestkitRequest struct {
	healthlab.Private

	// UserID is the patient, or a stock user.
	UserID          healthlab.UserID            `json:"user_id"`
	LabTestID       catalogue.LabTestID         `json:"lab_test_id"`
	ShippingDetails people.ShippingDetailsInput `json:"shipping_details"`
	Passthrough     *string                     `json:"passthrough"`
	LabAccountID    *catalogue.LabAccountID     `json:"lab_account_id"`
}

// RegisterRequest is a request to register a kit for its patient.
type RegisterRequest struct {
	healthlab.Private

	// UserID is the patient; nil means the user of the order.
	UserID *healthlab.UserID `json:"user_id"`
	// Owner limits the request to kits that were ordered for one user; zero means no limit. It is not in the
	// JSON.
	Owner healthlab.UserID `json:"-"`
	// SampleID is printed on the kit.
	SampleID        string                       `json:"sample_id"`
	PatientDetails  people.PatientDetailsInput   `json:"patient_details"`
	PatientAddress  people.PatientAddressInput   `json:"patient_address"`
	Physician       *people.PhysicianInputBase   `json:"physician"`
	HealthInsurance *people.HealthInsuranceInput `json:"health_insurance"`
	Consents        []people.Consent             `json:"consents" wire:"opt"`
}

// maxActivationDays is the highest number of days until the activation of an order.
const maxActivationDays = 366

func checkActivation(p *healthlab.Problems, day, today healthlab.Date) {
	if day.After(today.AddDays(maxActivationDays)) {
		p.Add("date_too_late", fmt.Sprintf("must be at most %d days after today", maxActivationDays), "activate_by")
	}
}

// Check returns Invalid with every problem of the request, without reading any data. today is the day in UTC.
func (r *PlaceRequest) Check(today healthlab.Date) error {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	c.User(r.UserID, "user_id")
	rules.OptionalOf(c, r.CollectionMethod, catalogue.CollectionMethods(), "collection_method")
	if r.Physician != nil {
		r.Physician.Check(&p, "physician")
	}
	if r.HealthInsurance != nil {
		r.HealthInsurance.Check(&p, "health_insurance")
	}
	if r.BillingType != "" {
		rules.OneOf(&p, r.BillingType, catalogue.BillingTypes(), "billing_type")
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
	people.CheckConsents(&p, r.Consents, "consents")
	for i, a := range r.AOEAnswers {
		c.Under("aoe_answers", i).Text(a.Answer, "answer", 0, rules.MaxNotes)
	}
	c.Optional(r.Passthrough, "passthrough", 10*rules.MaxNotes)
	c.Optional(r.ClinicalNotes, "clinical_notes", rules.MaxNotes)
	r.PatientDetails.Check(&p, today, "patient_details")
	r.PatientAddress.Check(&p, "patient_address")
	return p.Err()
}

// Check returns Invalid with every problem of the request.
func (r *TestkitRequest) Check() error {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	c.User(r.UserID, "user_id")
	if r.LabTestID.IsZero() {
		c.Add("missing", "is required", "lab_test_id")
	}
	r.ShippingDetails.Check(&p, "shipping_details")
	c.Optional(r.Passthrough, "passthrough", 10*rules.MaxNotes)
	return p.Err()
}

// Check returns Invalid with every problem of the request. today is the day in UTC.
func (r *RegisterRequest) Check(today healthlab.Date) error {
	var p healthlab.Problems
	c := rules.Check{Problems: &p}
	if r.UserID != nil {
		c.User(*r.UserID, "user_id")
	}
	c.Text(r.SampleID, "sample_id", 1, rules.MaxText)
	r.PatientDetails.Check(&p, today, "patient_details")
	r.PatientAddress.Check(&p, "patient_address")
	if physician := r.Physician.Input(); physician != nil {
		physician.Check(&p, "physician")
	}
	if r.HealthInsurance != nil {
		r.HealthInsurance.Check(&p, "health_insurance")
	}
	people.CheckConsents(&p, r.Consents, "consents")
	return p.Err()
}

// checkOrderingPhysician returns the error of a request without the ordering physician that its account requires.
// Without a physician of the team, a physician of the service's network orders, and the patient must have given the
// required consents.
func checkOrderingPhysician(a *catalogue.LabAccount, physician *people.PhysicianInput, consents []people.Consent, required []people.ConsentType) error {
	if physician != nil {
		return nil
	}
	if catalogue.Delegated(a) {
		return rules.Broken(PhysicianRequired, "physician is required, because the lab account orders with the team's own physician")
	}
	for _, c := range required {
		if !slices.ContainsFunc(consents, func(have people.Consent) bool { return have.ConsentType == c }) {
			return rules.Broken(ConsentRequired, "consents: must have the patient's consent "+string(c))
		}
	}
	return nil
}

// adult is the age in years from which a patient needs no medical proxy.
const adult = 18

// checkAge returns an error if the patient is under 18 on the given day, unless the team has minors enabled (minors)
// and the patient has a medical proxy.
func checkAge(p people.PatientDetailsInput, proxy *people.GuarantorDetails, day healthlab.Date, minors bool) error {
	switch {
	case people.Age(p.DOB, day) >= adult:
		return nil
	case !minors:
		return rules.Broken(MinorNotAllowed, "patient_details.dob: the patient must be 18 or older")
	case proxy == nil:
		return rules.Broken(MedicalProxyRequired, "patient_details.medical_proxy is required for a patient under 18")
	}
	return nil
}

// comment returns the comment on the requisition: the order's notes, then the lab account's default notes.
func comment(order, account *string) string {
	var parts []string
	for _, s := range []*string{order, account} {
		if s != nil && *s != "" {
			parts = append(parts, *s)
		}
	}
	return strings.Join(parts, "\n")
}

func notBefore(day *healthlab.Date, at time.Time) error {
	if day != nil && day.Before(rules.UTCDay(at)) {
		return rules.Broken(ActivateByInPast, "activate_by must be today or later")
	}
	return nil
}
