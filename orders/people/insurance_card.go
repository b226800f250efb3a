package people

import (
	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// HealthInsuranceInput is the data of a patient's insurance card. It is deprecated for placing an order: create
// the insurance record on the user instead. Kits are still registered with it.
type HealthInsuranceInput struct {
	healthlab.Private

	FrontImage            *ImageBlob `json:"front_image"`
	BackImage             *ImageBlob `json:"back_image"`
	PatientSignatureImage *ImageBlob `json:"patient_signature_image"`
	// Subjective has the symptoms and earlier treatment; AssessmentPlan has the physician's assessment.
	Subjective     *string `json:"subjective"`
	AssessmentPlan *string `json:"assessment_plan"`
	PayorCode      *string `json:"payor_code"`
	// InsuranceID is the member number on the card.
	InsuranceID *string `json:"insurance_id"`
	// ResponsibleRelationship is Self, Spouse or Other: the patient's relationship to the holder of the policy.
	ResponsibleRelationship *string            `json:"responsible_relationship"`
	ResponsibleDetails      *ResponsiblePerson `json:"responsible_details"`
	DiagnosisCodes          []string           `json:"diagnosis_codes" wire:"opt"`
}

// ResponsiblePerson is the holder of a policy.
type ResponsiblePerson struct {
	healthlab.Private

	FirstName   string       `json:"first_name"`
	LastName    string       `json:"last_name"`
	Address     AddressInput `json:"address"`
	PhoneNumber string       `json:"phone_number"`
	// PhoneType is Mobile by default.
	PhoneType string `json:"phone_type" wire:"opt"`
}

// DefaultPhoneType is the phone type of a [ResponsiblePerson] that gives none.
const DefaultPhoneType = "Mobile"

// Check adds every problem of the card to problems. at is the path of the card in the request.
func (h HealthInsuranceInput) Check(problems *healthlab.Problems, at ...any) {
	c := rules.Check{Problems: problems, At: at}
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
