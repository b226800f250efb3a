package linking

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Classes of providers that people do not sign in at, as a provider's record names them.
const (
	classCloud  = "cloud"
	classStore  = "sdk_store"
	classManual = "manual"
)

func onDevice(p *healthdata.Provider) bool { return p.Class == classStore }

// offeredWithoutConnector returns a provider of one kind, which needs no connector.
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

// flows of sign-in, as a provider's record names them.
const (
	authOAuth     = "oauth"
	authTeamOAuth = "team_oauth"
	authPassword  = "password"
	authEmail     = "email"
)

// linkable reports whether a team's people can link a provider: it is in the cloud, there
// is a connector for its flow, and where the team must have its own credentials, it has.
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

// offered returns a provider that the team's people can link by one of the flows; any if
// none is named.
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

// Providers returns what the team's people can link, by name. It is the same whatever
// the token filters. Errors as of [Service.Open].
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

// Regions returns what a person can choose as region at a provider, the default first;
// empty if there is nothing to choose.
func (s *Service) Regions(p *healthdata.Provider) []string { return p.Regions[s.opts.Region] }

// Page is what the link pages begin with.
type Page struct {
	Session Session
	Brand   Brand
	// Consent is the text that the person agrees to; the zero value for none.
	Consent healthdata.ConsentText
	// Providers are those that the pages offer: what is linkable, narrowed by what the
	// token says.
	Providers []healthdata.Provider
	// OnDevice are the on-device stores, which a companion app connects with a code, and
	// Manual what a person enters; both narrowed in the same way. Pages may offer them.
	OnDevice, Manual []healthdata.Provider
}

// Page returns what the link pages begin with. Errors as of [Service.Open].
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

// callbackURL is where a provider sends the person back to.
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
