package healthdata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Why a connection failed for good. The list is open.
const (
	FailureTokenRefresh    = "token_refresh_failed"
	FailureWebhook         = "webhook_registration_failed"
	FailureUserNotFound    = "user_not_found"
	FailureDeregistered    = "deregistered_per_provider"
	FailureScopes          = "required_scopes_not_granted"
	FailureCredential      = "provider_credential_error"
	FailurePasswordExpired = "provider_password_expired"
	FailureUnknown         = "unknown"
)

// ConnectionFailure says why a connection failed for good.
type ConnectionFailure struct {
	// Type is one of the Failure names; empty is [FailureUnknown].
	Type string
	// Message and Details are for people. They never hold what a provider said of a
	// person.
	Message, Details string
	// At is when it failed. Reports of a failure leave it out.
	At time.Time
}

// FailConnection records that a provider refuses us for good: the connection stays, in
// [ConnectionError], until the person links again, and that is announced once. One that
// is not [Connected] is left as it is, without an event.
//
// [healthlab.Invalid] if the provider is not configured; [healthlab.NotFound] if the team
// has no such user, or the user has not connected the provider.
func (s *Service) FailConnection(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, provider string, f ConnectionFailure) error {
	change, err := s.Failing(provider, f)
	if err != nil {
		return fmt.Errorf("fail connection: %w", err)
	}
	_, err = s.users.Update(ctx, team, id, func(u *User) ([]healthlab.Event, error) {
		events, err := change(u)
		if err == nil && events == nil {
			err = errUnchanged
		}
		return events, err
	})
	if err != nil && !errors.Is(err, errUnchanged) {
		return fmt.Errorf("fail connection: %w", err)
	}
	return nil
}

// Failing is [Service.FailConnection] as a change of a user, for a caller whose store
// writes it in one step with something of its own. It has no events if it changed
// nothing. Faults as of FailConnection, those about the user from the change itself.
func (s *Service) Failing(provider string, f ConnectionFailure) (func(*User) ([]healthlab.Event, error), error) {
	if _, err := s.provider(provider); err != nil {
		return nil, err
	}
	if f.Type == "" {
		f.Type = FailureUnknown
	}
	e := s.connectionEvent(EventConnectionError)
	f.At = e.At
	return func(u *User) ([]healthlab.Event, error) {
		c := u.Connection(provider)
		switch {
		case !u.Live() || c == nil || c.Status == Deregistered:
			return nil, healthlab.NotFound
		case c.Status != Connected:
			return nil, nil
		}
		why := f
		c.Status, c.Failure, c.Due = ConnectionError, &why, time.Time{}
		data, err := json.Marshal(ConnectionFailed{
			UserID: u.ID, Provider: provider, ErrorType: f.Type, Message: f.Message, ErrorDetails: f.Details,
		})
		if err != nil {
			return nil, fmt.Errorf("encode event: %w", err)
		}
		e := e
		e.Team, e.User, e.Key, e.Data = u.Team, u.ID, ConnectionKey(u.ID, provider), data
		return []healthlab.Event{e}, nil
	}, nil
}
