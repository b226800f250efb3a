package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

func (v linkStore) InsertApp(ctx context.Context, a linking.AppSession) error {
	if a.ID == uuid.Nil || a.Team.IsZero() || a.User.IsZero() {
		return fmt.Errorf("%w: the session of an app needs an id, a team and a user", healthlab.Invalid)
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	t := v.linking
	t.sweep(v.clock())
	if !v.users.isLive(a.Team, a.User) {
		return fmt.Errorf("%w: the team has no such user", healthlab.NotFound)
	}
	if _, taken := t.apps[a.ID]; taken {
		return fmt.Errorf("%w: the id of the app's session is taken", healthlab.Conflict)
	}
	t.apps[a.ID] = normalApp(a)
	return nil
}

func (v linkStore) App(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (linking.AppSession, error) {
	if err := v.lock(ctx); err != nil {
		return linking.AppSession{}, err
	}
	defer v.mu.Unlock()
	return v.app(team, id)
}

// app returns a session of a live user; the lock is held.
func (v linkStore) app(team healthlab.TeamID, id uuid.UUID) (linking.AppSession, error) {
	a, ok := v.linking.apps[id]
	if !ok || a.Team != team || !v.users.isLive(team, a.User) {
		return linking.AppSession{}, fmt.Errorf("%w: no such app is signed in", healthlab.NotFound)
	}
	return normalApp(a), nil
}

func (v linkStore) UpdateApp(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change func(*linking.AppSession) error) (linking.AppSession, error) {
	if err := v.lock(ctx); err != nil {
		return linking.AppSession{}, err
	}
	defer v.mu.Unlock()
	old, err := v.app(team, id)
	if err != nil {
		return linking.AppSession{}, err
	}
	next := normalApp(old)
	if err := change(&next); err != nil {
		return linking.AppSession{}, err
	}
	next.ID, next.Team, next.User, next.CreatedAt = old.ID, old.Team, old.User, old.CreatedAt
	v.linking.apps[id] = normalApp(next)
	return normalApp(next), nil
}

func (v linkStore) DeleteApps(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id uuid.UUID) (int, error) {
	if err := v.lock(ctx); err != nil {
		return 0, err
	}
	defer v.mu.Unlock()
	n := 0
	for k, a := range v.linking.apps {
		if a.Team == team && a.User == user && (id == uuid.Nil || id == k) {
			delete(v.linking.apps, k)
			n++
		}
	}
	return n, nil
}

// normalApp returns a copy of a session in the form in which it is kept.
func normalApp(a linking.AppSession) linking.AppSession {
	a.CreatedAt, a.ExpiresAt, a.RotatedAt = instant(a.CreatedAt), instant(a.ExpiresAt), instant(a.RotatedAt)
	a.Access = slices.Clone(a.Access)
	for i := range a.Access {
		a.Access[i].ExpiresAt = instant(a.Access[i].ExpiresAt)
	}
	if len(a.Access) == 0 {
		a.Access = nil
	}
	return a
}
