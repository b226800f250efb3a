package linking

import (
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// ScopeRequirement is the list of scopes that a team requests at one provider.
type ScopeRequirement struct {
	// MustGrant are the scopes that the person must grant.
	MustGrant []string
	// MayGrant are requested scopes that the person may refuse.
	MayGrant []string
}

// scopePlan has the scopes to request (ask), and those of them that the person must grant (must).
type scopePlan struct{ ask, must []string }

// planScopes returns the scopes to request: those of want, or all of the provider if want is nil, and always minimum.
// The person must grant minimum and want.MustGrant, or everything if the provider has AllScopesRequired. Both lists are
// sorted and without duplicates, and empty if the provider has no scopes and minimum is empty.
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

// granted returns the granted scopes, or all requested ones if the provider does not state them. It returns
// [RequiredScopesNotGranted] if a required scope is missing.
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
