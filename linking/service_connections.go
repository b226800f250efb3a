package linking

import (
	"context"
	"errors"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/work"
)

// ConnectDemo connects a provider with generated data, in a sandbox. It returns Invalid if the provider is not
// configured, and NotFound if there is no such user. It returns a [*healthlab.RuleError] if the service is not a
// sandbox, the provider has no demo data, or the user has a real connection.
func (s *Service) ConnectDemo(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) error {
	_, err := s.users.Connections().ConnectLinked(ctx, team, user, healthdata.NewConnection{Provider: provider, Demo: true})
	if err != nil {
		return fmt.Errorf("connect demo: %w", err)
	}
	return nil
}

// Disconnect removes a connection and its credential, sends an event, and then revokes the grant at the provider. A
// failure to revoke is only logged. The stored data stays. The errors are those of healthdata.Connections.Disconnect.
func (s *Service) Disconnect(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) error {
	change, err := s.users.Connections().Disconnecting(provider)
	if err != nil {
		return err
	}
	return s.removeCredential(ctx, team, user, provider, change)
}

// WithdrawConsent ends the consent of a person for a provider: it removes the connection and its credential, as
// [Service.Disconnect] does, and refuses data of the provider until there is a new consent. Stored data stays.
// Events are sent for both. The errors are those of healthdata.Connections.WithdrawConsent.
func (s *Service) WithdrawConsent(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) error {
	change, err := s.users.Connections().WithdrawingConsent(provider)
	if err != nil {
		return err
	}
	return s.removeCredential(ctx, team, user, provider, change)
}

// removeCredential lets change edit the user, deletes the credential of the user's connection, and revokes its grant.
func (s *Service) removeCredential(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string, change func(*healthdata.User) ([]healthlab.Event, error)) error {
	c, err := s.store.Disconnect(ctx, team, user, provider, change)
	if err != nil {
		return fmt.Errorf("disconnect: %w", err)
	}
	if s.connectors.byProvider[provider].Revoker == nil || c.Secret.Box == nil {
		return nil
	}
	revoking, stop := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Timeout)
	defer stop()
	if err := s.revoke(revoking, &c); err != nil {
		s.opts.Log.WarnContext(ctx, "grant not revoked", "user", user, "provider", provider, "kind", healthlab.KindOf(err).Error(), "cause", work.Cause(err))
	}
	return nil
}

// revoke revokes the grant of c at the provider, through the OAuth client that obtained it.
func (s *Service) revoke(ctx context.Context, c *Credential) error {
	conn, err := s.connectors.forClient(ctx, c.Team, c.Provider, c.Client)
	if err != nil || conn.Revoker == nil {
		return err
	}
	secret, err := s.seal.Open(ctx, c.Secret, grantPlace(c.Team, c.User, c.Provider))
	if err != nil {
		return err
	}
	_, err = callConnector(ctx, s.opts.Timeout, func(ctx context.Context) (struct{}, error) { return struct{}{}, conn.Revoker.Revoke(ctx, secret) })
	if c.Client != "" { // this may have been the last connection of a replaced client
		_, gone := s.connectors.clients.ForgetClients(ctx, c.Team, "", s.now().Add(-clientLinger))
		err = errors.Join(err, gone)
	}
	return err
}

// OpenCredential decrypts the secret of a stored credential, to move its connection to another service.
func (s *Service) OpenCredential(ctx context.Context, c Credential) ([]byte, error) {
	secret, err := s.seal.Open(ctx, c.Secret, grantPlace(c.Team, c.User, c.Provider))
	if err != nil {
		return nil, fmt.Errorf("open credential: %w", err)
	}
	return secret, nil
}

// Secret returns the decrypted secret of a connection, which its connector can read. It returns NotFound if there is
// none, or if the connection was removed.
func (s *Service) Secret(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) ([]byte, error) {
	c, err := s.store.Credential(ctx, team, user, provider)
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	secret, err := s.seal.Open(ctx, c.Secret, grantPlace(team, user, provider))
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	return secret, nil
}
