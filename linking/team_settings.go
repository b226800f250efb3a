package linking

import (
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// TeamSettings are the choices of a team.
type TeamSettings struct {
	// RejectDuplicates refuses an account that another user of the team has connected.
	RejectDuplicates bool
	// Redirects says where the link pages may send a person.
	Redirects RedirectRules
	// Scopes says by provider what a person is asked for; a provider without an entry
	// is asked for all of its scopes, none of which is a must.
	Scopes map[string]ScopeRequirement
	// OwnOAuth lists the providers for which the deployment's OAuth credentials are the
	// team's own: those of team_oauth that its people can link, and all whose connections
	// can move in bulk. What a team has credentials for in [Options].Clients is added.
	OwnOAuth []string
	// Bulk enables operations on many connections at once.
	Bulk bool
	// PagesOnly refuses sign-ins at a provider's own page that do not begin on the link
	// pages, so that every callback is bound to the browser that left.
	PagesOnly bool
	// CallbackURLs says by provider which callback address the team has registered in
	// place of ours.
	CallbackURLs map[string]string
	// Practice is the only one whose patients can be connected by their address, where a
	// provider has practices; empty for any. What is connected stays.
	Practice string
	// Brand is what the link pages look like.
	Brand Brand
	// Consent is the text that people agree to; the zero value for none.
	Consent healthdata.ConsentText

	teamClients map[string]TeamClient // the current ones by provider
}

// Brand is what a person sees of the team. Empty fields are left out.
type Brand struct {
	CompanyName string `json:"company_name,omitempty"`
	LogoURL     string `json:"logo_url,omitempty"`
	Color       string `json:"brand_color,omitempty"`
	// Website is an address of http or https. SupportEmail and SupportContact are where
	// people get help, and Address is where the company is.
	Website        string `json:"company_website,omitempty"`
	SupportEmail   string `json:"support_email,omitempty"`
	SupportContact string `json:"support_contact,omitempty"`
	Address        string `json:"company_address,omitempty"`
}

// Owns reports whether the grants that a client got at a provider are the team's: those of
// every client of its own, and those of the deployment's, which has no id, where OwnOAuth
// says so.
func (t *TeamSettings) Owns(provider, client string) bool {
	return client != "" || slices.Contains(t.OwnOAuth, provider)
}

// OwnClient is the id of the client of its own by which the team's people are asked at a
// provider; empty if that is the deployment's.
func (t *TeamSettings) OwnClient(provider string) string { return t.teamClients[provider].ClientID }
