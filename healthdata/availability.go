package healthdata

import "slices"

// Values of Availability.Status. The list is open.
const (
	Available   = "available"
	Unavailable = "unavailable"
)

// Availability says whether data of one resource will come through a connection.
type Availability struct {
	// Status is [Available] or [Unavailable] (open).
	Status string `json:"status"`
	// ScopeRequirements is null for a provider without scopes.
	ScopeRequirements *ScopeRequirements `json:"scope_requirements"`
}

// ScopeRequirements says which of the grants that a resource needs the person gave.
type ScopeRequirements struct {
	UserGranted Scopes `json:"user_granted"`
	UserDenied  Scopes `json:"user_denied"`
}

// Availability returns, by resource, whether data will come from this provider for a
// person who granted these scopes. A resource is available if no scope that it requires
// was denied; a denied optional scope may cost it some fields. Everything that a
// provider without scopes supports is available. The map is the caller's and never nil.
func (p *Provider) Availability(granted []string) map[string]Availability {
	out := make(map[string]Availability, len(p.Resources))
	for _, r := range p.Resources {
		a := Availability{Status: Available}
		if len(p.Scopes) > 0 {
			need := p.Scopes[r.Resource]
			var req ScopeRequirements
			req.UserGranted.Required, req.UserDenied.Required = split(need.Required, granted)
			req.UserGranted.Optional, req.UserDenied.Optional = split(need.Optional, granted)
			if len(req.UserDenied.Required) > 0 {
				a.Status = Unavailable
			}
			a.ScopeRequirements = &req
		}
		out[r.Resource] = a
	}
	return out
}

// split divides scopes into those that were granted and the others. Neither is nil.
func split(scopes, granted []string) (in, out []string) {
	in, out = []string{}, []string{}
	for _, s := range scopes {
		if slices.Contains(granted, s) {
			in = append(in, s)
		} else {
			out = append(out, s)
		}
	}
	return in, out
}
