package linking

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

func (t *linkAttempt) connect(ctx context.Context, g Grant) (Result, error) {
	return t.establish(ctx, g, false)
}

// establish writes the connection for a grant and ends the session, in one transaction. demo connects generated data.
func (t *linkAttempt) establish(ctx context.Context, g Grant, demo bool) (Result, error) {
	consent := healthdata.Consent{Version: t.settings.Consent.Version, Means: healthdata.ConsentByLink}
	n, err := t.prepare(ctx, g, healthdata.NewConnection{Demo: demo, Consent: &consent})
	if _, ok := typeOf(err); ok {
		return t.failed(ctx, err)
	}
	if err != nil {
		return Result{}, fmt.Errorf("link: %w", err)
	}
	c := Completion{
		Team: t.session.Team, Session: t.session.ID, Credential: n.Credential, Sole: n.Sole,
		Change: func(x *Session, u *healthdata.User) ([]healthlab.Event, error) {
			if err := x.recordConnection(t.provider.Slug, t.at); err != nil {
				return nil, err
			}
			return n.Change(u)
		},
	}
	done, err := t.service.store.Complete(ctx, c)
	if err == nil {
		out := Result{
			State: ResultSuccess, Provider: t.provider.Slug, RedirectURL: done.Options.RedirectURL,
			ExternalUserID: n.externalUserID,
		}
		out.Location = done.location(t.settings.Redirects, Outcome{Provider: t.provider.Slug})
		return out, nil
	}
	var taken *AccountTakenError
	switch {
	case errors.As(err, &taken):
		err = fail(DuplicateConnection)
	case errors.Is(err, healthlab.NotFound):
		err = fail(InvalidToken)
	}
	return t.failed(ctx, err)
}

func (g *Grant) storable() bool {
	return validTexts(g.ExternalUserID) && validTexts(g.Scopes...) && len(g.Scopes) <= 200 && len(g.Secret) <= maxSecret
}

func validTexts(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(s string) bool {
		return len(s) > 512 || !utf8.ValidString(s) || strings.Contains(s, "\x00")
	})
}

// PreparedConnection is a connection that is ready to be written, for a store that writes it in one transaction
// with other rows.
type PreparedConnection struct {
	// Credential replaces the credential of the user and provider. If its Secret has no Box, it removes that
	// credential.
	Credential Credential
	// Sole is the account that no other live user may have connected, as in [Completion].
	Sole *string
	// Change edits the user and returns the events, as the function of healthdata.Connections.ConnectingLinked does.
	Change func(*healthdata.User) ([]healthlab.Event, error)

	externalUserID *string
}

// PrepareConnection prepares a connection from a grant that was made in another service. g.Client is the OAuth client
// of the grant. It writes nothing and does not call the provider.
//
// Errors: Invalid (the provider is not configured); an [*Error] of type [RequiredScopesNotGranted], or of type
// [ProviderAPIError] if the grant cannot be stored.
func (s *Service) PrepareConnection(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string, g Grant) (PreparedConnection, error) {
	settings, err := s.offers.teamSettings(ctx, team)
	if err != nil {
		return PreparedConnection{}, fmt.Errorf("prepare connection: %w", err)
	}
	p := s.users.Providers().Get(provider)
	if p == nil {
		return PreparedConnection{}, fmt.Errorf("prepare connection: %w: provider: %s", healthlab.Invalid, s.users.Providers().Expected(provider))
	}
	t := linkAttempt{service: s, at: s.now(), session: Session{Team: team, User: user}, provider: p, settings: &settings, conn: s.connectors.byProvider[provider]}
	out, err := t.prepare(ctx, g, healthdata.NewConnection{})
	if err != nil {
		return PreparedConnection{}, fmt.Errorf("prepare connection: %w", err)
	}
	return out, nil
}

// prepare prepares the connection of a grant. Of n, it uses only Demo and Consent.
func (t *linkAttempt) prepare(ctx context.Context, g Grant, n healthdata.NewConnection) (PreparedConnection, error) {
	s := t.service
	if !g.storable() {
		return PreparedConnection{}, fail(ProviderAPIError)
	}
	scopes, err := t.scopes().granted(g.Scopes)
	if err != nil {
		return PreparedConnection{}, err
	}
	team, user, slug := t.session.Team, t.session.User, t.provider.Slug
	n.Provider, n.Scopes, n.Client = slug, scopes, g.Client
	if g.ExternalUserID != "" {
		n.ExternalUserID = &g.ExternalUserID
	}
	out := PreparedConnection{
		Credential:     Credential{ID: s.opts.NewID(), Team: team, User: user, Provider: slug, CreatedAt: t.at, ExpiresAt: g.ExpiresAt},
		externalUserID: n.ExternalUserID,
	}
	if out.Change, err = s.users.Connections().ConnectingLinked(n); err != nil {
		return PreparedConnection{}, err
	}
	if t.settings.RejectDuplicates {
		out.Sole = n.ExternalUserID
	}
	if g.Secret != nil {
		if out.Credential.Secret, err = s.seal.Seal(ctx, g.Secret, grantPlace(team, user, slug)); err != nil {
			return PreparedConnection{}, err
		}
	}
	return out, nil
}
