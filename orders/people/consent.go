package people

import (
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Consent is something that a patient has agreed to. Its names on the wire are in
// camel case.
type Consent struct {
	ConsentType ConsentType `json:"consentType"`
	// Version of the text; 1.0 if not given.
	Version string `json:"version" wire:"opt"`
	// TimeOfConsent is when it was given; the time of the request if not given.
	TimeOfConsent *healthlab.Time `json:"timeOfConsent"`
}

// ConsentType names what a patient has agreed to.
type ConsentType string

// The consent types.
const (
	TermsOfUse                ConsentType = "terms-of-use"
	TelehealthInformedConsent ConsentType = "telehealth-informed-consent"
	MobileTermsAndConditions  ConsentType = "mobile-terms-and-conditions"
	NoticeOfPrivacyPractices  ConsentType = "notice-of-privacy-practices"
	PrivacyPolicy             ConsentType = "privacy-policy"
	HIPAAAuthorization        ConsentType = "hipaa-authorization"
)

// CheckConsents adds every problem of the consents to problems, at the path of the list.
func CheckConsents(problems *healthlab.Problems, list []Consent, at ...any) {
	c := rules.Check{Problems: problems, At: at}
	for i, consent := range list {
		rules.OneOf(c.Problems, consent.ConsentType, consentTypes, append(slices.Clone(c.At), i, "consentType")...)
		c.Under(i).Text(consent.Version, "version", 0, rules.MaxText)
	}
}

// FillConsents returns the consents with their version and time, where they leave them out:
// 1.0, and the instant.
func FillConsents(list []Consent, at time.Time) []Consent {
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

var consentTypes = []ConsentType{TermsOfUse, TelehealthInformedConsent, MobileTermsAndConditions,
	NoticeOfPrivacyPractices, PrivacyPolicy, HIPAAAuthorization}
