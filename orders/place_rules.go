package orders

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// ordering checks who orders: a physician of the team where the account says so, else
// the service's network, which needs the patient's consents.
func ordering(a *catalogue.LabAccount, physician *people.PhysicianInput, consents []people.Consent, required []people.ConsentType) error {
	if physician != nil {
		return nil
	}
	if catalogue.Delegated(a) {
		return rules.Broken(PhysicianRequired, "the lab account needs the team's own physician")
	}
	for _, c := range required {
		if !slices.ContainsFunc(consents, func(have people.Consent) bool { return have.ConsentType == c }) {
			return rules.Broken(ConsentRequired, "the patient has not given the consent "+string(c))
		}
	}
	return nil
}

// adult is the age, in years, from which a patient orders alone.
const adult = 18

// ofAge checks that a patient may order: 18 on the day, or a minor with a medical
// proxy in a team that has switched minors on.
func ofAge(p people.PatientDetailsInput, proxy *people.GuarantorDetails, day healthlab.Date, minors bool) error {
	switch {
	case people.Age(p.DOB, day) >= adult:
		return nil
	case !minors:
		return rules.Broken(MinorNotAllowed, "the patient is under 18")
	case proxy == nil:
		return rules.Broken(MedicalProxyRequired, "a patient under 18 needs a medical proxy")
	}
	return nil
}

// comment is what the requisition says: the order's comment, then the account's.
func comment(order, account *string) string {
	var parts []string
	for _, s := range []*string{order, account} {
		if s != nil && *s != "" {
			parts = append(parts, *s)
		}
	}
	return strings.Join(parts, "\n")
}

// notBefore checks a day of activation.
func notBefore(day *healthlab.Date, at time.Time) error {
	if day != nil && day.Before(today(at)) {
		return rules.Broken(ActivateByInPast, "the day of activation is today or later")
	}
	return nil
}

// allowed checks that the team has something switched on.
func (s *Service) allowed(ctx context.Context, team healthlab.TeamID, on func(Settings) bool) error {
	settings, err := s.opts.Settings(ctx, team)
	if err != nil {
		return fmt.Errorf("team settings: %w", err)
	}
	if !on(settings) {
		return rules.FeatureOff()
	}
	return nil
}
