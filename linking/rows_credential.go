package linking

import (
	"context"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/store"
)

var errNoCredential = fmt.Errorf("%w: the user has no connection with a credential for the provider", healthlab.NotFound)

func normalCredential(c Credential) Credential {
	c.ExpiresAt, c.CreatedAt = instant(c.ExpiresAt), instant(c.CreatedAt)
	c.Lease, c.RetryAt, c.StoreTime = instant(c.Lease), instant(c.RetryAt), time.Time{}
	c.Client = ""
	return c
}

// replaceCredential stores c as the credential of its user and provider. If its Secret has no Box, it deletes the
// credential.
func replaceCredential(tx store.Tx, c Credential) error {
	old, err := credentialTable.Get(tx, credentialKey(c.Team, c.User, c.Provider), store.Held)
	switch {
	case err != nil:
		return err
	case c.Secret.Box == nil && old == nil:
		return nil
	case c.Secret.Box == nil:
		credentialTable.Delete(tx, old)
		return nil
	case old == nil:
		old = &store.Entry[Credential]{}
	}
	old.Value = normalCredential(c)
	return credentialTable.Put(tx, old)
}

// connectedCredential returns a user and the credential of the user's connection to a provider, with Client set. It
// returns errNoCredential if the user is deleted, or the connection is Deregistered or has no credential.
func (r *Rows) connectedCredential(tx store.Tx, team healthlab.TeamID, user healthlab.UserID, provider string, lock store.Lock,
) (healthdata.User, *store.Entry[Credential], error) {
	u, err := r.users.Get(tx, team, user, lock)
	if err != nil {
		return u, nil, err
	}
	to := u.Connection(provider)
	if !u.Live() || to == nil || to.Status == healthdata.Deregistered {
		return u, nil, errNoCredential
	}
	e, err := credentialTable.Get(tx, credentialKey(team, user, provider), lock)
	switch {
	case err != nil:
		return u, nil, err
	case e == nil:
		return u, nil, errNoCredential
	}
	e.Value.Client = to.Client
	return u, e, nil
}

// Credential implements [Store] and [CredentialStore].
func (r *Rows) Credential(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) (Credential, error) {
	var out Credential
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		if _, err := tx.Read( // in one round trip
			store.User(team, user), credentialTable.One(credentialKey(team, user, provider), store.Shared),
		); err != nil {
			return err
		}
		_, e, err := r.connectedCredential(tx, team, user, provider, store.Shared)
		if err != nil {
			return err
		}
		out = e.Value
		return nil
	})
	return out, err
}

// UpdateCredential implements [CredentialStore].
func (r *Rows) UpdateCredential(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string,
	change func(*Credential, *healthdata.User) ([]healthlab.Event, error),
) (Credential, error) {
	var out Credential
	err := r.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		u, e, err := r.connectedCredential(tx, team, user, provider, store.Held)
		if err != nil {
			return err
		}
		was, next := e.Value, e.Value
		next.StoreTime = tx.Now()
		events, err := change(&next, &u)
		if err != nil {
			return err
		}
		next.ID, next.Team, next.User, next.Provider, next.CreatedAt = was.ID, team, user, provider, was.CreatedAt
		if len(events) > 0 {
			if _, err := r.users.Update(ctx, tx, team, user, func(to *healthdata.User) ([]healthlab.Event, error) {
				*to = u
				return events, nil
			}); err != nil {
				return err
			}
		}
		e.Value = normalCredential(next)
		if out, err = credentialTable.Copy(&e.Value); err != nil {
			return err
		}
		out.Client = was.Client
		return credentialTable.Put(tx, e)
	})
	if err != nil {
		return Credential{}, err
	}
	return out, nil
}

// Disconnect implements [Store].
func (r *Rows) Disconnect(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string,
	change func(*healthdata.User) ([]healthlab.Event, error),
) (Credential, error) {
	var out Credential
	err := r.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		out = Credential{}
		client := ""
		if _, err := r.users.Update(ctx, tx, team, user, func(u *healthdata.User) ([]healthlab.Event, error) {
			if to := u.Connection(provider); to != nil {
				client = to.Client
			}
			return change(u)
		}); err != nil {
			return err
		}
		e, err := credentialTable.Get(tx, credentialKey(team, user, provider), store.Held)
		if err != nil || e == nil {
			return err
		}
		credentialTable.Delete(tx, e)
		out = e.Value
		out.Client = client
		return nil
	})
	if err != nil {
		return Credential{}, err
	}
	return out, nil
}
