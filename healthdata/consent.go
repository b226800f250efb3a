package healthdata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// EventConsentWithdrawn is the event type that is sent when a person withdraws a consent.
const EventConsentWithdrawn = "provider.consent.withdrawn"

// consentMeans are the ways to give a consent that a caller may record.
var consentMeans = []ConsentMeans{ConsentByLink, ConsentByApp, ConsentInWriting, ConsentSpoken}

// NewConsent is the consent that [Connections.RecordConsent] records.
type NewConsent struct {
	Provider string
	// Version names the text that the person agreed to: 1 to 64 printable characters, or empty for none.
	Version string
	// Means is how the person agreed: any value but ConsentUnknown.
	Means ConsentMeans
}

// ConsentWithdrawn is the payload of [EventConsentWithdrawn].
type ConsentWithdrawn struct {
	UserID   healthlab.UserID `json:"user_id"`
	Provider ProviderName     `json:"provider"`
	Consent  Consent          `json:"consent"`
}

func consentEventType() healthlab.EventType {
	// The key is that of the connection, so that all events about one connection are delivered in order.
	return healthlab.EventType{
		Name: EventConsentWithdrawn, Mode: healthlab.Ordered, Data: ConsentWithdrawn{},
		Doc: "A person has withdrawn the consent for a provider. The connection has ended, and data of the provider is refused.",
	}
}

// maxConsentVersion is the greatest length of the version of a consent text, in characters.
const maxConsentVersion = 64

func checkConsentVersion(p *healthlab.Problems, version string, path ...any) {
	if version != "" && !check.Line(version, maxConsentVersion) {
		p.Add("consent_version", check.LineText(maxConsentVersion), path...)
	}
}

// ConsentText names the text that people agree to when they connect a source.
type ConsentText struct {
	// Version is recorded with each consent: 1 to 64 characters.
	Version string `json:"version"`
	// URL is an https address of the text that the link pages show as a link; empty for none.
	URL string `json:"url,omitempty"`
}

// Problems returns the invalid fields of the text by their JSON names.
func (t ConsentText) Problems() healthlab.Problems {
	var p healthlab.Problems
	if t.Version == "" {
		p.Add("missing", "must be 1 to 64 characters", "version")
	}
	checkConsentVersion(&p, t.Version, "version")
	if t.URL != "" && !isPageURL(t.URL) {
		p.Add("url", "must be an https address of at most 2048 bytes", "url")
	}
	return p
}

func isPageURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && len(s) <= 2048
}

// Consents returns the consents of a user, oldest first, with the withdrawn ones. It returns
// [healthlab.NotFound] if the team has no such user.
func (s *Connections) Consents(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) ([]Consent, error) {
	u, err := s.users.live(ctx, team, id)
	if err != nil {
		return nil, fmt.Errorf("consents: %w", err)
	}
	return u.Consents, nil
}

// RecordConsent records that a person agreed to the collection of a provider's data. It ends an earlier
// withdrawal. It connects no source and sends no event.
//
// [healthlab.Invalid] if the provider is not configured, or the version or the means is
// wrong; [healthlab.NotFound] if the team has no such user.
func (s *Connections) RecordConsent(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, n NewConsent) (Consent, error) {
	var p healthlab.Problems
	if s.providers.Get(n.Provider) == nil {
		p.Add("unknown_provider", s.providers.Expected(n.Provider), "provider")
	}
	checkConsentVersion(&p, n.Version, "version")
	oneOf(&p, n.Means, consentMeans, "means")
	if err := p.Err(); err != nil {
		return Consent{}, fmt.Errorf("record consent: %w", err)
	}
	at := s.opts.now()
	c := Consent{Provider: n.Provider, Version: n.Version, Means: n.Means, GrantedAt: &at}
	_, err := s.users.updateLive(ctx, team, id, func(u *User) ([]healthlab.Event, error) {
		u.grant(c)
		return nil, nil
	})
	if err != nil {
		return Consent{}, fmt.Errorf("record consent: %w", err)
	}
	return c, nil
}

// WithdrawConsent ends the consent of a person for a provider, and removes the connection. Stored data stays; later
// data is refused with [RuleConsentWithdrawn]. If the consent is already withdrawn, WithdrawConsent changes nothing and
// sends no event.
//
// [healthlab.Invalid] if the provider is not configured; [healthlab.NotFound] if the team has no such user. Where
// providers are linked, call linking.Service.WithdrawConsent, which also removes the credential.
func (s *Connections) WithdrawConsent(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, provider string) error {
	change, err := s.WithdrawingConsent(provider)
	if err != nil {
		return err
	}
	_, err = s.users.Update(ctx, team, id, change)
	if err != nil {
		return fmt.Errorf("withdraw consent: %w", err)
	}
	return nil
}

// WithdrawingConsent returns the function that changes a user as [Connections.WithdrawConsent] does, for callers that
// write the user and their own rows in one transaction. The transaction may run the function again for the same user.
// WithdrawingConsent returns [healthlab.Invalid] if the provider is not configured; the function returns
// [healthlab.NotFound] for a deleted user.
func (s *Connections) WithdrawingConsent(provider string) (func(*User) ([]healthlab.Event, error), error) {
	p, err := s.providers.configured(provider)
	if err != nil {
		return nil, fmt.Errorf("withdraw consent: %w", err)
	}
	disconnect, err := s.Disconnecting(provider)
	if err != nil {
		return nil, err
	}
	e := s.connectionEvent(EventConsentWithdrawn)
	at := healthlab.At(e.At)
	return func(u *User) ([]healthlab.Event, error) {
		if !u.Live() {
			return nil, noUser()
		}
		gone, err := disconnect(u)
		if err != nil && !errors.Is(err, healthlab.NotFound) {
			return nil, err
		}
		c := u.Consent(provider)
		switch {
		case c == nil:
			u.grant(Consent{Provider: provider, Means: ConsentUnknown, WithdrawnAt: &at})
			c = u.Consent(provider)
		case c.WithdrawnAt == nil:
			c.WithdrawnAt = &at
		default:
			return gone, nil
		}
		data, err := json.Marshal(ConsentWithdrawn{UserID: u.ID, Provider: p.display(), Consent: *c})
		if err != nil {
			return nil, fmt.Errorf("encode event: %w", err)
		}
		e.Team, e.User, e.Key, e.Data = u.Team, u.ID, ConnectionKey(u.ID, provider), data
		return append(gone, e), nil
	}, nil
}
