package people

import (
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Consent is a patient's consent. Its JSON names are in camel case.
type Consent struct {
	ConsentType ConsentType `json:"consentType"`
	// Version is the version of the consent's text; 1.0 if not given.
	Version string `json:"version" wire:"opt"`
	// TimeOfConsent is the time of the consent; by default the time of the request.
	TimeOfConsent *healthlab.Time `json:"timeOfConsent"`
}

// ConsentType is the subject of a patient's consent.
type ConsentType string

// Consent types.
const (
	TermsOfUse                ConsentType = "terms-of-use"
	TelehealthInformedConsent ConsentType = "telehealth-informed-consent"
	MobileTermsAndConditions  ConsentType = "mobile-terms-and-conditions"
	NoticeOfPrivacyPractices  ConsentType = "notice-of-privacy-practices"
	PrivacyPolicy             ConsentType = "privacy-policy"
	HIPAAAuthorization        ConsentType = "hipaa-authorization"
)

// CheckConsents adds every problem of the consents to problems. at is the path of the list in the request.
func CheckConsents(problems *healthlab.Problems, list []Consent, at ...any) {
	c := rules.Check{Problems: problems, At: at}
	for i, consent := range list {
		rules.OneOf(c.Problems, consent.ConsentType, consentTypes, append(slices.Clone(c.At), i, "consentType")...)
		c.Under(i).Text(consent.Version, "version", 0, rules.MaxText)
	}
}

// FillConsents returns a copy of the consents: an empty version becomes 1.0, and a missing time becomes at.
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
