package linking

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Adoption is a connection that is about to be made of a grant, for a store that writes
// all of it in one step with something of its own.
type Adoption struct {
	// Credential replaces that of the user and provider. Without a Box, it only says whose
	// and which provider's is removed.
	Credential Credential
	// Sole is as in [Completion].
	Sole *string
	// Change edits the user and returns the events, as
	// healthdata.Service.Establishing says.
	Change func(*healthdata.User) ([]healthlab.Event, error)

	externalUserID *string
}

// Adopt prepares a connection of a grant that no sign-in of ours led to, as one that moves
// here from another service. g.Client says whose the grant is. It writes nothing. The
// provider is not asked.
//
// Errors: Invalid (the provider is not configured); an [*Error] of type
// [RequiredScopesNotGranted], or of type [ProviderAPIError] if the grant cannot be kept.
func (s *Service) Adopt(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string, g Grant) (Adoption, error) {
	settings, err := s.settings(ctx, team)
	if err != nil {
		return Adoption{}, fmt.Errorf("adopt: %w", err)
	}
	p := s.users.Providers().Get(provider)
	if p == nil {
		return Adoption{}, fmt.Errorf("adopt: %w: the provider is not configured", healthlab.Invalid)
	}
	t := step{at: s.now(), session: Session{Team: team, User: user}, provider: p, settings: &settings, conn: s.roster.connectors[provider]}
	out, err := s.adopt(ctx, &t, g, healthdata.NewConnection{})
	if err != nil {
		return Adoption{}, fmt.Errorf("adopt: %w", err)
	}
	return out, nil
}

// adopt makes a connection of what a provider gave. Of n, Demo and Consent count.
func (s *Service) adopt(ctx context.Context, t *step, g Grant, n healthdata.NewConnection) (Adoption, error) {
	if !g.sound() {
		return Adoption{}, fail(ProviderAPIError)
	}
	scopes, err := s.plan(t).granted(g.Scopes)
	if err != nil {
		return Adoption{}, err
	}
	team, user, slug := t.session.Team, t.session.User, t.provider.Slug
	n.Provider, n.Scopes, n.Client = slug, scopes, g.Client
	if g.ExternalUserID != "" {
		n.ExternalUserID = &g.ExternalUserID
	}
	out := Adoption{
		Credential:     Credential{ID: s.opts.NewID(), Team: team, User: user, Provider: slug, CreatedAt: t.at, ExpiresAt: g.ExpiresAt},
		externalUserID: n.ExternalUserID,
	}
	if out.Change, err = s.users.Establishing(n); err != nil {
		return Adoption{}, err
	}
	if t.settings.RejectDuplicates {
		out.Sole = n.ExternalUserID
	}
	if g.Secret != nil {
		if out.Credential.Secret, err = s.seal.Seal(ctx, g.Secret, grantPlace(team, user, slug)); err != nil {
			return Adoption{}, err
		}
	}
	return out, nil
}
