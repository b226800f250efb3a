package linking

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Classes of providers without a sign-in, by the names in a provider's record.
const (
	classCloud  = "cloud"
	classStore  = "sdk_store"
	classManual = "manual"
)

func onDevice(p *healthdata.Provider) bool { return p.Class == classStore }

// offeredWithoutConnector returns a provider of a class that needs no connector.
func (s *Service) offeredWithoutConnector(ctx context.Context, team healthlab.TeamID, slug string, ok func(*healthdata.Provider) bool) (
	*healthdata.Provider, *TeamSettings, error,
) {
	p := s.users.Providers().Get(slug)
	if p == nil || !ok(p) {
		return nil, nil, errProvider()
	}
	settings, err := s.opts.Settings(ctx, team)
	if err != nil {
		return nil, nil, fmt.Errorf("settings: %w", err)
	}
	return p, &settings, nil
}

// Kinds of sign-in, by the names in a provider's record.
const (
	authOAuth     = "oauth"
	authTeamOAuth = "team_oauth"
	authPassword  = "password"
	authEmail     = "email"
)

// linkable reports whether a team's people can link a provider: a cloud provider with a connector for its flow
// and, if the team must have its own credentials, with those.
func (s *Service) linkable(p *healthdata.Provider, settings *TeamSettings) bool {
	if p == nil || p.Class != classCloud {
		return false
	}
	c := s.connectors.byProvider[p.Slug]
	switch p.AuthType {
	case authOAuth:
		return c.OAuth != nil
	case authTeamOAuth:
		return c.OAuth != nil && (settings.OwnClient(p.Slug) != "" || slices.Contains(settings.OwnOAuth, p.Slug))
	case authPassword:
		return c.Password != nil
	case authEmail:
		return c.Email != nil
	default:
		return false
	}
}

// offered returns a provider that the team's people can link by one of the flows; no flow means any.
func (s *Service) offered(ctx context.Context, team healthlab.TeamID, slug string, flows ...string) (*healthdata.Provider, *TeamSettings, error) {
	settings, err := s.settings(ctx, team)
	if err != nil {
		return nil, nil, err
	}
	p := s.users.Providers().Get(slug)
	if !s.linkable(p, &settings) || (len(flows) > 0 && !slices.Contains(flows, p.AuthType)) {
		return nil, nil, errProvider()
	}
	return p, &settings, nil
}

// Providers returns the providers that the team's people can link, by name, without the filter of the token. The
// errors are those of [Service.Open].
func (s *Service) Providers(ctx context.Context, token string) ([]healthdata.Provider, error) {
	x, err := s.open(ctx, token, s.now())
	if err != nil {
		return nil, fmt.Errorf("linkable providers: %w", err)
	}
	settings, err := s.settings(ctx, x.Team)
	if err != nil {
		return nil, fmt.Errorf("linkable providers: %w", err)
	}
	return slices.DeleteFunc(s.users.Providers().List(""), func(p healthdata.Provider) bool {
		return !s.linkable(&p, &settings)
	}), nil
}

// Regions returns the regions that a person can choose at a provider, the default first; empty if there is no
// choice.
func (s *Service) Regions(p *healthdata.Provider) []string { return p.Regions[s.opts.Region] }

// Page is the first content of the link pages.
type Page struct {
	Session Session
	Brand   Brand
	// Consent is the text that the person agrees to; the zero value for none.
	Consent healthdata.ConsentText
	// Providers are the offered providers: the linkable ones, filtered by the token.
	Providers []healthdata.Provider
	// OnDevice are on-device stores, which a companion app connects with a code. Manual are providers for data
	// that a person enters. Both are filtered by the token. Pages may offer them.
	OnDevice, Manual []healthdata.Provider
}

// Page returns the first content of the link pages. The errors are those of [Service.Open].
func (s *Service) Page(ctx context.Context, token string) (Page, error) {
	x, err := s.open(ctx, token, s.now())
	if err != nil {
		return Page{}, fmt.Errorf("link page: %w", err)
	}
	settings, err := s.settings(ctx, x.Team)
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
		case s.linkable(&p, &settings):
			page.Providers = append(page.Providers, p)
		case p.Class == classStore:
			page.OnDevice = append(page.OnDevice, p)
		case p.Class == classManual:
			page.Manual = append(page.Manual, p)
		}
	}
	return page, nil
}

// callbackURL returns the callback URL of a provider.
func (s *Service) callbackURL(settings *TeamSettings, provider string) string {
	if own, ok := settings.teamClients[provider]; ok && own.RedirectURL != "" {
		return own.RedirectURL
	} else if u := settings.CallbackURLs[provider]; u != "" && !ok {
		return u
	}
	return s.ourCallback(provider)
}

func (s *Service) ourCallback(provider string) string {
	return s.opts.BaseURL + "/v2/link/connect/" + url.PathEscape(provider)
}
