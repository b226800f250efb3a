package linking

import (
	"context"
	"fmt"
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// Providers returns the providers that the team's people can link, by name. It does not apply the token's Provider and
// FilterOnProviders. The errors are those of [Service.Open].
func (s *Service) Providers(ctx context.Context, token string) ([]healthdata.Provider, error) {
	x, err := s.open(ctx, token, s.now())
	if err != nil {
		return nil, fmt.Errorf("linkable providers: %w", err)
	}
	settings, err := s.offers.teamSettings(ctx, x.Team)
	if err != nil {
		return nil, fmt.Errorf("linkable providers: %w", err)
	}
	return slices.DeleteFunc(s.users.Providers().List(""), func(p healthdata.Provider) bool {
		return !s.offers.linkable(&p, &settings)
	}), nil
}

// Regions returns the regions that a person can choose at a provider, the default first; empty if there is no
// choice.
func (s *Service) Regions(p *healthdata.Provider) []string { return p.Regions[s.opts.Region] }

// Page has what the link pages show first.
type Page struct {
	Session Session
	Brand   Brand
	// Consent is the text that the person agrees to; the zero value for none.
	Consent healthdata.ConsentText
	// Providers are the providers to choose from: the linkable ones that the token's Provider and FilterOnProviders
	// allow.
	Providers []healthdata.Provider
	// OnDevice are on-device stores, which a companion app connects with a code. Manual are providers for data that a
	// person enters. The token's Provider and FilterOnProviders allow both. Pages need not offer them.
	OnDevice, Manual []healthdata.Provider
}

// Page returns what the link pages show first. The errors are those of [Service.Open].
func (s *Service) Page(ctx context.Context, token string) (Page, error) {
	x, err := s.open(ctx, token, s.now())
	if err != nil {
		return Page{}, fmt.Errorf("link page: %w", err)
	}
	settings, err := s.offers.teamSettings(ctx, x.Team)
	if err != nil {
		return Page{}, fmt.Errorf("link page: %w", err)
	}
	page := Page{Session: x, Brand: settings.Brand, Consent: settings.Consent}
	o := x.Options
	for _, p := range s.users.Providers().List("") {
		if o.Provider != "" && p.Slug != o.Provider || o.FilterOnProviders != nil && !slices.Contains(o.FilterOnProviders, p.Slug) {
			continue
		}
		switch {
		case s.offers.linkable(&p, &settings):
			page.Providers = append(page.Providers, p)
		case p.Class == classStore:
			page.OnDevice = append(page.OnDevice, p)
		case p.Class == classManual:
			page.Manual = append(page.Manual, p)
		}
	}
	return page, nil
}
