package linking

import (
	"net/url"
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// TeamSettings are the settings of a team.
type TeamSettings struct {
	// RejectDuplicates refuses an account that another user of the team has connected.
	RejectDuplicates bool
	// Redirects are the allowed redirect URLs of the link pages.
	Redirects RedirectRules
	// Scopes are the requested scopes by provider. A provider without an entry requests all of its scopes, and
	// none is required.
	Scopes map[string]ScopeRequirement
	// OwnOAuth lists the providers at which the deployment's OAuth client belongs to the team. The team's people can
	// link team_oauth providers only if they are listed, and bulk moves connections only of listed providers. A
	// provider for which the team has a client in [Options].Clients need not be listed.
	OwnOAuth []string
	// Bulk enables operations on many connections at once.
	Bulk bool
	// PagesOnly refuses sign-ins at a provider's own page that do not begin on the link pages, so that the callback
	// must come in the browser in which the person left.
	PagesOnly bool
	// CallbackURLs are the callback URLs that the team has registered by provider, in place of the service's
	// own.
	CallbackURLs map[string]string
	// Practice is the only practice whose patients can be connected by their e-mail address; empty for any. Existing
	// connections stay.
	Practice string
	// Brand is the look of the link pages.
	Brand Brand
	// Consent is the text that people agree to before they link; zero if there is none.
	Consent healthdata.ConsentText

	teamClients map[string]TeamClient // the current clients by provider
}

// Brand is the name and look of a team on pages for people. Empty fields are left out.
type Brand struct {
	CompanyName string `json:"company_name,omitempty"`
	LogoURL     string `json:"logo_url,omitempty"`
	Color       string `json:"brand_color,omitempty"`
	// Website is an http or https address. SupportEmail and SupportContact are for people who need help. Address
	// is that of the company.
	Website        string `json:"company_website,omitempty"`
	SupportEmail   string `json:"support_email,omitempty"`
	SupportContact string `json:"support_contact,omitempty"`
	Address        string `json:"company_address,omitempty"`
}

// Owns reports whether the grants of an OAuth client at a provider belong to the team. client is the id of a client of
// the team, for which the result is true, or empty for the deployment's client, for which OwnOAuth must list the
// provider.
func (t *TeamSettings) Owns(provider, client string) bool {
	return client != "" || slices.Contains(t.OwnOAuth, provider)
}

// OwnClient returns the id of the team's own client for sign-ins at a provider; empty if the deployment's client
// is used.
func (t *TeamSettings) OwnClient(provider string) string { return t.teamClients[provider].ClientID }

// callbackURL returns the callback URL of sign-ins at a provider: that of the team, or ours, the service's own.
func (t *TeamSettings) callbackURL(provider, ours string) string {
	if own, ok := t.teamClients[provider]; ok && own.RedirectURL != "" {
		return own.RedirectURL
	} else if u := t.CallbackURLs[provider]; u != "" && !ok {
		return u
	}
	return ours
}

func serviceCallback(baseURL, provider string) string {
	return baseURL + "/v2/link/connect/" + url.PathEscape(provider)
}
