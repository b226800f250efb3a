package linking

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/store"
)

var errNoSession = fmt.Errorf("%w: the team has no link session with this id", healthlab.NotFound)

// InsertSession implements [Store].
func (r *Rows) InsertSession(ctx context.Context, s Session) error {
	if s.ID.UUID == uuid.Nil || s.Team.IsZero() || s.User.IsZero() {
		return fmt.Errorf("%w: link session: the id, the team and the user must be set", healthlab.Invalid)
	}
	s, err := normalSession(s)
	if err != nil {
		return err
	}
	s.Revision = 1
	err = r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		if err := lockKnownUser(tx, s.Team, s.User); err != nil {
			return err
		}
		if err := sessionTable.Insert(tx, &s); err != nil {
			return err
		}
		return prune(tx, sessionTable.Name)
	})
	return conflict(err, sessionTable.Name, "a link session with this id exists")
}

// conflict returns healthlab.Conflict with the text msg if err says that the key of a row in this table is taken, and
// otherwise err.
func conflict(err error, table, msg string) error {
	var taken *store.TakenError
	if errors.As(err, &taken) && taken.Table == table {
		return fmt.Errorf("%w: %s", healthlab.Conflict, msg)
	}
	return err
}

// normalSession returns a copy of a session in its stored form.
func normalSession(s Session) (Session, error) {
	s, err := sessionTable.Copy(&s)
	s.CreatedAt, s.ExpiresAt = instant(s.CreatedAt), instant(s.ExpiresAt)
	for i := range s.Attempts {
		s.Attempts[i].At, s.Attempts[i].Until = instant(s.Attempts[i].At), instant(s.Attempts[i].Until)
	}
	if len(s.Attempts) == 0 {
		s.Attempts = nil
	}
	return s, err
}

// Session implements [Store].
func (r *Rows) Session(ctx context.Context, team healthlab.TeamID, id SessionID) (Session, error) {
	e, err := sessionTable.LookOne(ctx, r.s, sessionKey(team, id))
	switch {
	case err != nil:
		return Session{}, err
	case e == nil:
		return Session{}, errNoSession
	}
	return e.Value, nil
}

// lockSession reads and locks a session.
func lockSession(tx store.Tx, team healthlab.TeamID, id SessionID) (*store.Entry[Session], error) {
	e, err := sessionTable.Get(tx, sessionKey(team, id), store.Held)
	if err == nil && e == nil {
		err = errNoSession
	}
	return e, err
}

// putSession writes next as the new content of the locked session e, with the next Revision and without changes of
// fixed fields. It returns the stored form.
func putSession(tx store.Tx, e *store.Entry[Session], next Session) (Session, error) {
	was := e.Value
	next.ID, next.Team, next.User, next.Token = was.ID, was.Team, was.User, was.Token
	next.CreatedAt, next.ExpiresAt, next.Revision = was.CreatedAt, was.ExpiresAt, was.Revision+1
	next, err := normalSession(next)
	if err != nil {
		return Session{}, err
	}
	e.Value = next
	return next, sessionTable.Put(tx, e)
}

// UpdateSession implements [Store].
func (r *Rows) UpdateSession(ctx context.Context, team healthlab.TeamID, id SessionID, change func(*Session) error) (Session, error) {
	var out Session
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		e, err := lockSession(tx, team, id)
		if err != nil {
			return err
		}
		next := e.Value
		if err := change(&next); err != nil {
			return err
		}
		out, err = putSession(tx, e, next)
		return err
	})
	if err != nil {
		return Session{}, err
	}
	return out, nil
}

// Complete implements [Store].
func (r *Rows) Complete(ctx context.Context, c Completion) (Session, error) {
	var out Session
	err := r.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		e, err := lockSession(tx, c.Team, c.Session)
		if err != nil {
			return err
		}
		next, grant := e.Value, c.Credential
		grant.Team, grant.User = c.Team, e.Value.User
		if err := r.WriteConnection(ctx, tx, grant, c.Sole, func(u *healthdata.User) ([]healthlab.Event, error) {
			return c.Change(&next, u)
		}); err != nil {
			return err
		}
		out, err = putSession(tx, e, next)
		return err
	})
	if err != nil {
		return Session{}, err
	}
	return out, nil
}

// WriteConnection lets change edit a user in a transaction, as [healthdata.Users].Update does, and stores grant as the
// credential of its user and provider. If the Secret of grant has no Box, the credential is deleted. sole is the
// account that no other live user may have connected, as in [Completion].
func (r *Rows) WriteConnection(ctx context.Context, tx store.Tx, grant Credential, sole *string,
	change func(*healthdata.User) ([]healthlab.Event, error),
) error {
	u, err := r.users.Update(ctx, tx, grant.Team, grant.User, func(u *healthdata.User) ([]healthlab.Event, error) {
		events, err := change(u)
		if err != nil {
			return nil, err
		}
		return events, r.checkSole(tx, grant.Team, grant.User, grant.Provider, sole)
	})
	if err != nil {
		return err
	}
	if to := u.Connection(grant.Provider); to != nil && to.Client != "" {
		// A client that is used by a connection must not be deleted, so its row is locked.
		if _, err := tx.Read(clientTable.One(clientKey(grant.Team, grant.Provider), store.Shared)); err != nil {
			return err
		}
	}
	return replaceCredential(tx, grant)
}

// checkSole returns an [*AccountTakenError] if another live user of the team has connected the account. A nil account
// skips the check.
func (r *Rows) checkSole(tx store.Tx, team healthlab.TeamID, user healthlab.UserID, provider string, account *string) error {
	if account == nil {
		return nil
	}
	others, err := r.users.WithAccount(tx, provider, *account)
	if err != nil {
		return err
	}
	for _, other := range others {
		if other.Team == team && other.User != user {
			return &AccountTakenError{}
		}
	}
	return nil
}
