package linking

import (
	"bytes"
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// ResealClients seals the clients that a team has registered at providers under the current key
// of the Sealer, and returns how many that changed. A call that was stopped goes on where it was
// when it is made again.
func (s *Service) ResealClients(ctx context.Context, team healthlab.TeamID) (changed int, err error) {
	if s.roster.clients == nil {
		return 0, nil
	}
	all, err := s.roster.clients.Clients(ctx, ClientQuery{Team: team})
	if err != nil {
		return 0, fmt.Errorf("reseal clients: %w", err)
	}
	for i := range all {
		c := &all[i]
		was := c.Box
		if c.Box, err = healthlab.Reseal(ctx, s.seal, was, clientPlace(c)); err != nil {
			return changed, fmt.Errorf("reseal clients: %w", err)
		}
		if c.Box.KeyID == was.KeyID {
			continue
		}
		if err := s.roster.clients.ReplaceBox(ctx, *c, was); err != nil {
			return changed, fmt.Errorf("reseal clients: %w", err)
		}
		changed++
	}
	return changed, nil
}

// ResealCredentials seals the credentials of a user's connections under the current key of the
// Sealer, and returns how many that changed. What another process renews meanwhile stays as that
// process wrote it.
func (k *Keeper) ResealCredentials(ctx context.Context, u healthdata.User) (changed int, err error) {
	for i := range u.Connections {
		did, err := k.resealCredential(ctx, u.Team, u.ID, u.Connections[i].Provider)
		if err != nil && healthlab.KindOf(err) != healthlab.NotFound { // without a credential, or ended meanwhile
			return changed, fmt.Errorf("reseal credential: %w", err)
		}
		if did {
			changed++
		}
	}
	return changed, nil
}

// resealCredential reports whether a credential was not under the current key.
func (k *Keeper) resealCredential(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) (bool, error) {
	was, err := k.store.Credential(ctx, team, user, provider)
	if err != nil {
		return false, err
	}
	place := grantPlace(team, user, provider)
	secret, err := healthlab.Reseal(ctx, k.seal, was.Secret, place)
	if err != nil {
		return false, err
	}
	previous, err := healthlab.Reseal(ctx, k.seal, was.Previous, place)
	if err != nil {
		return false, err
	}
	if secret.KeyID == was.Secret.KeyID && previous.KeyID == was.Previous.KeyID {
		return false, nil
	}
	_, err = k.store.UpdateCredential(ctx, team, user, provider, func(now *Credential, _ *healthdata.User) ([]healthlab.Event, error) {
		if bytes.Equal(now.Secret.Box, was.Secret.Box) {
			now.Secret = secret
		}
		if bytes.Equal(now.Previous.Box, was.Secret.Box) {
			now.Previous = secret // it was renewed meanwhile
		} else if bytes.Equal(now.Previous.Box, was.Previous.Box) {
			now.Previous = previous
		}
		return nil, nil
	})
	return err == nil, err
}
