package linking

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// NewAppSessions returns the AppSessions of a store whose tables include [Tables] and those of the users.
func NewAppSessions(s store.Store) AppSessions { return appRows{s} }

type appRows struct{ s store.Store }

var errNoApp = fmt.Errorf("%w: the team has no app session with this id", healthlab.NotFound)

// InsertApp implements [AppSessions].
func (r appRows) InsertApp(ctx context.Context, a AppSession) error {
	if a.ID == uuid.Nil || a.Team.IsZero() || a.User.IsZero() {
		return fmt.Errorf("%w: app session: the id, the team and the user must be set", healthlab.Invalid)
	}
	a = normalApp(a)
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		u, err := store.LockUser(tx, a.Team, a.User)
		switch {
		case err != nil:
			return err
		case !u.Live:
			return fmt.Errorf("%w: the team has no such user", healthlab.NotFound)
		}
		if err := appTable.Insert(tx, &a); err != nil {
			return err
		}
		return prune(tx, appTable.Name)
	})
	return conflict(err, appTable.Name, "an app session with this id exists")
}

// normalApp returns a copy of a session in its stored form.
func normalApp(a AppSession) AppSession {
	a.CreatedAt, a.ExpiresAt, a.RotatedAt = instant(a.CreatedAt), instant(a.ExpiresAt), instant(a.RotatedAt)
	access := a.Access
	a.Access = nil
	for _, t := range access {
		a.Access = append(a.Access, AppAccessToken{Sum: t.Sum, ExpiresAt: instant(t.ExpiresAt)})
	}
	return a
}

// App implements [AppSessions].
func (r appRows) App(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (AppSession, error) {
	e, err := appTable.LookOne(ctx, r.s, appKey(team, id))
	if err != nil {
		return AppSession{}, err
	}
	if e == nil {
		return AppSession{}, errNoApp
	}
	user := store.User(team, e.Value.User)
	user.Bare = true
	got, err := r.s.Read(ctx, user)
	switch {
	case err != nil:
		return AppSession{}, err
	case !store.StateOf(got[0]).Live:
		return AppSession{}, errNoApp
	}
	return e.Value, nil
}

// UpdateApp implements [AppSessions].
func (r appRows) UpdateApp(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change func(*AppSession) error) (AppSession, error) {
	var out AppSession
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		e, err := appTable.Get(tx, appKey(team, id), store.Held)
		if err != nil {
			return err
		}
		if e == nil {
			return errNoApp
		}
		u, err := store.LockUser(tx, team, e.Value.User)
		switch {
		case err != nil:
			return err
		case !u.Live:
			return errNoApp
		}
		was, next := e.Value, e.Value
		if err := change(&next); err != nil {
			return err
		}
		next.ID, next.Team, next.User, next.CreatedAt = was.ID, was.Team, was.User, was.CreatedAt
		out = normalApp(next)
		e.Value = out
		return appTable.Put(tx, e)
	})
	if err != nil {
		return AppSession{}, err
	}
	return out, nil
}

// DeleteApps implements [AppSessions].
func (r appRows) DeleteApps(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id uuid.UUID) (int, error) {
	n := 0
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		n = 0
		q := store.Query{Key: store.Key{Table: appTable.Name, User: user}, By: store.ByUser, Lock: store.Held, Bare: true}
		if id != uuid.Nil {
			q = q.Equal(store.UUID(id))
		}
		got, err := tx.Read(q)
		if err != nil {
			return err
		}
		for _, row := range got[0] {
			if row.Team == team {
				tx.Delete(row.Key)
				n++
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
