package fhir

import (
	"context"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab/healthdata"
)

type consent struct {
	head
	Status     string     `json:"status"`
	Scope      concept    `json:"scope"`
	Category   []concept  `json:"category"`
	Patient    reference  `json:"patient"`
	DateTime   string     `json:"dateTime,omitempty"`
	PolicyRule concept    `json:"policyRule"`
	Provision  *provision `json:"provision,omitempty"`
}

type provision struct {
	Type   string           `json:"type"`
	Period *period          `json:"period,omitempty"`
	Actor  []provisionActor `json:"actor"`
}

type provisionActor struct {
	Role      concept   `json:"role"`
	Reference reference `json:"reference"`
}

// consents calls use with a user's Consents: each allows the team to collect data of one provider, or did so until it
// was withdrawn.
func (s *server) consents(_ context.Context, u *healthdata.User, _ *query, use func([]match) error) error {
	out := make([]match, len(u.Consents))
	seen := map[string]int{}
	for i := range u.Consents {
		c := &u.Consents[i]
		var granted, withdrawn, updated time.Time
		if c.GrantedAt != nil {
			granted, updated = c.GrantedAt.Time, c.GrantedAt.Time
		}
		if c.WithdrawnAt != nil {
			withdrawn, updated = c.WithdrawnAt.Time, c.WithdrawnAt.Time
		}
		key := c.Provider + " " + c.Version + " " + instant(granted)
		seen[key]++
		x := &consent{
			head:   head{ResourceType: "Consent", ID: ofUserID(u.ID, "consent", key, strconv.Itoa(seen[key]))},
			Status: "active", Scope: conceptOf("http://terminology.hl7.org/CodeSystem/consentscope", "patient-privacy", "Privacy Consent"),
			Category: []concept{conceptOf(loinc, "59284-0", "Consent Document")}, Patient: personReference(u.ID),
			PolicyRule: conceptOf("http://terminology.hl7.org/CodeSystem/v3-ActCode", "OPTIN", "opt-in"),
		}
		if c.Version != "" {
			x.PolicyRule.Text = "Version " + c.Version
		}
		role := conceptOf("http://terminology.hl7.org/CodeSystem/v3-ParticipationType", "INF", "informant")
		x.Provision = &provision{Type: "permit", Actor: []provisionActor{{role, reference{
			Identifier: &identifier{System: s.URL + "/NamingSystem/provider", Value: c.Provider}, Display: c.Provider,
		}}}}
		var p period
		var when span
		if !granted.IsZero() {
			x.DateTime, p.Start, when = instant(granted), instant(granted), span{granted, granted}
		}
		if !withdrawn.IsZero() {
			x.Status, p.End = "inactive", instant(withdrawn)
		}
		if p != (period{}) {
			x.Provision.Period = &p
		}
		if !updated.IsZero() {
			x.Meta.LastUpdated = instant(updated)
		}
		out[i] = match{resource: x, status: x.Status, when: when, updated: updated}
	}
	return use(out)
}
