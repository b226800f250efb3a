package linking

import (
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// ScopeRequirement says what a team asks of a person at one provider.
type ScopeRequirement struct {
	// MustGrant are the scopes without which there is no connection.
	MustGrant []string
	// MayGrant are asked for, and may be refused.
	MayGrant []string
}

// scopePlan is what is asked for and what is needed.
type scopePlan struct{ ask, must []string }

// planScopes says what to ask of a person: what the team wants or else every scope of the
// provider, and always the minimum. Sorted, each once; empty for a provider without
// scopes.
func planScopes(p *healthdata.Provider, minimum []string, want *ScopeRequirement) scopePlan {
	var plan scopePlan
	if len(p.Scopes) == 0 && len(minimum) == 0 {
		return plan
	}
	plan.must = slices.Clone(minimum)
	if want != nil {
		plan.must = append(plan.must, want.MustGrant...)
		plan.ask = append(slices.Clone(plan.must), want.MayGrant...)
	} else {
		plan.ask = slices.Clone(minimum)
		for _, s := range p.Scopes {
			plan.ask = append(append(plan.ask, s.Required...), s.Optional...)
		}
	}
	if p.AllScopesRequired {
		plan.must = slices.Clone(plan.ask)
	}
	slices.Sort(plan.ask)
	slices.Sort(plan.must)
	plan.ask, plan.must = slices.Compact(plan.ask), slices.Compact(plan.must)
	return plan
}

// granted returns what a person granted; all that was asked for where the provider does
// not say. [RequiredScopesNotGranted] if something needed is not among it.
func (p scopePlan) granted(scopes []string) ([]string, error) {
	if scopes == nil {
		return p.ask, nil
	}
	for _, s := range p.must {
		if !slices.Contains(scopes, s) {
			return nil, fail(RequiredScopesNotGranted)
		}
	}
	return scopes, nil
}
