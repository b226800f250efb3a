package healthdata

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
)

const (
	// eraseIdle is how often a process looks for users to erase.
	eraseIdle = 10 * time.Second
	// eraseLease is how long one erasure may take before another process tries it.
	eraseLease = 15 * time.Minute
	// eraseWorkers is how many users are erased at a time.
	eraseWorkers = 2
)

// DeletedUser names a deleted user in one of two ways: exactly one field is set.
type DeletedUser struct {
	User healthlab.UserID
	// ClientUserID means the user who had it and was deleted last.
	ClientUserID string
}

// DeleteUser deletes a user. From then on the user, its data, orders, reports and events
// are in no answer. [Options.BeforeDelete] runs first, connections are deregistered, and
// events that were not delivered are dropped. The data is erased when
// [Options.GracePeriod] is over; until then [Service.UndoDelete] brings it back.
//
// [healthlab.NotFound] if the team has no such user, or deleted it before.
func (s *Service) DeleteUser(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) error {
	if _, err := s.live(ctx, team, id); err != nil {
		return fmt.Errorf("delete user: %w", err)
	}
	for _, callOff := range s.opts.BeforeDelete {
		if err := callOff(ctx, team, id); err != nil {
			return fmt.Errorf("delete user: %w", err)
		}
	}
	at := s.now()
	_, err := s.updateLive(ctx, team, id, func(u *User) ([]healthlab.Event, error) {
		u.delete(at.Time)
		return nil, nil
	})
	if err != nil {
		return fmt.Errorf("delete user: %w", err)
	}
	return nil
}

// EraseUser deletes a user, unless that was done before, and erases what is kept about
// it before it returns, whatever the grace period. Nothing brings it back. After an error
// the user is deleted or live; the call may be repeated.
//
// [healthlab.NotFound] if the team has no such user, live or deleted.
func (s *Service) EraseUser(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) error {
	if _, err := s.users.Get(ctx, team, id); err != nil {
		return fmt.Errorf("erase user: %w", err)
	}
	if err := s.DeleteUser(ctx, team, id); err != nil && !errors.Is(err, healthlab.NotFound) {
		return err
	}
	return s.erase(ctx, UserRef{Team: team, User: id})
}

// UndoDelete brings a deleted user back, with the same id, data, orders and reports.
// Connections, undelivered events and orders that the deletion called off do not come
// back. A sandbox's limit of users does not stand in the way.
//
// [healthlab.Invalid] if not exactly one way of naming the user is used;
// [healthlab.NotFound] if there is no such user, if it was not deleted, or if its grace
// period is over; a [*healthlab.RuleError] of type [RuleInvalidRequest] if another user
// has the client user id by now.
func (s *Service) UndoDelete(ctx context.Context, team healthlab.TeamID, who DeletedUser) (User, error) {
	at := s.now()
	id, err := s.deleted(ctx, team, who)
	if err != nil {
		return User{}, fmt.Errorf("undo delete: %w", err)
	}
	u, err := s.users.Update(ctx, team, id, func(u *User) ([]healthlab.Event, error) {
		return nil, u.restore(at.Time, s.opts.GracePeriod)
	})
	var taken *ClientUserIDError
	if errors.As(err, &taken) {
		err = &healthlab.RuleError{
			Type: RuleInvalidRequest,
			Msg:  "another user has the client_user_id of the deleted one by now",
		}
	}
	if err != nil {
		return User{}, fmt.Errorf("undo delete: %w", err)
	}
	return s.present(u), nil
}

// deleted finds the user that an undo means.
func (s *Service) deleted(ctx context.Context, team healthlab.TeamID, who DeletedUser) (healthlab.UserID, error) {
	if who.User.IsZero() == (who.ClientUserID == "") {
		var p healthlab.Problems
		p.Add("exactly_one", "exactly one of user_id and client_user_id", "user_id")
		return healthlab.UserID{}, p.Err()
	}
	if !who.User.IsZero() {
		return who.User, nil
	}
	if !storable(who.ClientUserID) {
		return healthlab.UserID{}, healthlab.NotFound
	}
	page, err := s.users.List(ctx, UserQuery{
		Team: team, Deleted: true, ClientUserID: who.ClientUserID, Limit: 1,
	})
	if err != nil {
		return healthlab.UserID{}, err
	}
	if len(page.Users) == 0 {
		return healthlab.UserID{}, healthlab.NotFound
	}
	return page.Users[0].ID, nil
}

// delete starts a user's grace period.
func (u *User) delete(at time.Time) {
	u.DeletedAt = at
	for i := range u.Connections {
		u.Connections[i].deregister()
		u.Connections[i].Due = time.Time{} // nothing is left to look after
	}
}

// restore ends it, as long as it lasts.
func (u *User) restore(at time.Time, grace time.Duration) error {
	if u.Live() || !at.Before(u.DeletedAt.Add(grace)) {
		return healthlab.NotFound
	}
	u.DeletedAt = time.Time{}
	return nil
}

// Run erases the users whose grace period is over, for good, until ctx ends;
// then it lets what is running finish, and returns nil. Run it in at least one process;
// any number may. A user is erased within seconds after the last instant at which its
// deletion can be undone.
func (s *Service) Run(ctx context.Context) error { return s.erasures().Run(ctx) }

// EraseDue erases users whose grace period is over, at most 100 of them one after another,
// and returns how many it took up: for hosts that bring their own scheduler.
func (s *Service) EraseDue(ctx context.Context) (int, error) {
	const most = 100
	return s.erasures().Once(ctx, most)
}

func (s *Service) erasures() *work.Loop[UserRef] {
	return &work.Loop[UserRef]{
		Name: "erasures",
		Claim: func(ctx context.Context, n int) ([]UserRef, error) {
			due, err := s.users.ClaimErasures(ctx, s.now().Add(-s.opts.GracePeriod), n, eraseLease)
			if err != nil {
				return nil, fmt.Errorf("claim erasures: %w", err)
			}
			return due, nil
		},
		Do:      s.erase,
		Workers: eraseWorkers,
		Idle:    eraseIdle,
		Log:     s.opts.Log,
	}
}

// erase removes one user. One that is gone, or came back, needs no more of it.
func (s *Service) erase(ctx context.Context, ref UserRef) error {
	for _, forget := range s.opts.Forget {
		if err := forget(ctx, ref.Team, ref.User); err != nil {
			return fmt.Errorf("erase user: %w", err)
		}
	}
	err := s.users.Erase(ctx, ref.Team, ref.User)
	switch {
	case errors.Is(err, healthlab.NotFound), errors.Is(err, healthlab.Precondition):
		return nil
	case err != nil:
		return fmt.Errorf("erase user: %w", err)
	}
	s.opts.Log.Info("user erased", "team", ref.Team, "user", ref.User)
	return nil
}
