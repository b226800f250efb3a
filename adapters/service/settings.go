package service

import (
	"cmp"
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/webhook"
)

// OrderSettings returns a team's own choices for lab orders, with all other features enabled. It is the
// default of orders.Options.Settings. A host's function may call it and disable features.
func (s *Service) OrderSettings(ctx context.Context, team healthlab.TeamID) (orders.Settings, error) {
	c, err := s.Teams.Of(ctx, team)
	if err != nil {
		return orders.Settings{}, err
	}
	return orders.Settings{
		PartialWebhooks: *c.PartialWebhooks, Minors: *c.Minors, SMSOff: !*c.PatientSMS, EmailOff: !*c.PatientEmail,
		Reminders: *c.Texts, CriticalEmail: orEmpty(c.CriticalEmail),
		Redraws: true, OnSiteCollection: true, OrderImport: true, InsuranceRead: true, OwnPayors: true,
		PSCScheduling: true, PreRequisitionBooking: true, CachedAvailability: true, BookingIdempotency: true, AsyncConfirmation: true,
		UnmatchedResults: true, UnmatchedTestRuns: true, CompendiumTools: true,
	}, nil
}

// criticalLadder returns a team's escalation steps for critical results; nil means the default steps.
func (s *Service) criticalLadder(ctx context.Context, team healthlab.TeamID) ([]critical.Step, error) {
	c, err := s.Teams.Of(ctx, team)
	if err != nil {
		return nil, err
	}
	var ladder []critical.Step
	for _, step := range c.CriticalLadder {
		ladder = append(ladder, critical.Step{After: time.Duration(step.AfterMinutes) * time.Minute, To: step.To})
	}
	return ladder, nil
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// LinkSettings returns a team's own choices for linking, with bulk operations enabled. It is the default
// of linking.Options.Settings. A host's function may call it and change the result.
func (s *Service) LinkSettings(ctx context.Context, team healthlab.TeamID) (linking.TeamSettings, error) {
	c, err := s.Teams.Of(ctx, team)
	if err != nil {
		return linking.TeamSettings{}, err
	}
	brand := c.Brand
	if brand == nil {
		b, err := s.brandOf(ctx, team)
		if err != nil {
			return linking.TeamSettings{}, err
		}
		brand = &b
	}
	scopes := make(map[string]linking.ScopeRequirement, len(c.Scopes))
	for slug, x := range c.Scopes {
		scopes[slug] = linking.ScopeRequirement{MustGrant: x.Must, MayGrant: x.May}
	}
	consent := cmp.Or(c.Consent, &healthdata.ConsentText{})
	return linking.TeamSettings{
		RejectDuplicates: *c.RejectDuplicates, Bulk: true, Scopes: scopes, Practice: orEmpty(c.Practice),
		Consent: *consent,
		Brand: linking.Brand{
			CompanyName: brand.CompanyName, LogoURL: brand.LogoURL, Color: brand.Color, Website: brand.Website,
			SupportEmail: brand.SupportEmail, SupportContact: brand.SupportContact, Address: brand.Address,
		},
	}, nil
}

// brandOf returns the branding of a team that has chosen none: that of Config.Brand, or by default the team's name.
func (s *Service) brandOf(ctx context.Context, team healthlab.TeamID) (teamsettings.Brand, error) {
	if s.config.Brand != nil {
		return s.config.Brand(ctx, team)
	}
	t, err := s.Organisations.Find(ctx, team)
	return teamsettings.Brand{CompanyName: t.Name}, err
}

// eventSettings returns a team's settings for events.
func (s *Service) eventSettings(ctx context.Context, team healthlab.TeamID) (webhook.TeamSettings, error) {
	c, err := s.Teams.Of(ctx, team)
	if err != nil {
		return webhook.TeamSettings{}, err
	}
	out := webhook.TeamSettings{Prefixes: c.EventPrefixes}
	if c.EventBodyDays != nil {
		out.BodyRetention = time.Duration(*c.EventBodyDays) * 24 * time.Hour
	}
	if c.Destinations != nil {
		out.Kinds = c.Destinations.Enabled
	}
	return out, nil
}

// pullSettings returns a team's settings for historical pulls.
func (s *Service) pullSettings(ctx context.Context, team healthlab.TeamID) (pull.TeamSettings, error) {
	c, err := s.Teams.Of(ctx, team)
	if err != nil {
		return pull.TeamSettings{}, err
	}
	out := pull.TeamSettings{HistoryDays: make(map[string]pull.HistoryDays, len(c.History))}
	for slug, h := range c.History {
		out.HistoryDays[slug] = pull.HistoryDays(h)
	}
	return out, nil
}
