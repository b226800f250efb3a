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
	// eraseIdle is the interval at which a process checks for users to erase.
	eraseIdle = 10 * time.Second
	// eraseLease is how long one erasure may take before another process retries it.
	eraseLease = 15 * time.Minute
	// eraseWorkers is how many users are erased at a time.
	eraseWorkers = 2
)

// DeletedUser identifies a deleted user by exactly one of its fields.
type DeletedUser struct {
	User healthlab.UserID
	// ClientUserID selects the most recently deleted user with this client user id.
	ClientUserID string
}

// Deletions deletes users, restores them during the grace period and erases them after it. [Service.Deletions] returns
// it. It is safe for concurrent use.
type Deletions struct {
	users     liveUsers
	providers *Providers
	opts      *Options
}

// Deletions returns the methods that delete, restore and erase users.
func (s *Service) Deletions() *Deletions { return &Deletions{s.users, s.providers, &s.opts} }

// Delete deletes a user. After that no read returns the user, its data, orders, reports or events.
// [Options.BeforeDelete] runs first, connections are deregistered, and events that were not delivered are
// dropped. The data is erased when [Options.GracePeriod] is over; until then [Deletions.Undo] restores the
// user.
//
// [healthlab.NotFound] if the team has no such user, or the user was deleted before.
func (s *Deletions) Delete(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) error {
	if _, err := s.users.live(ctx, team, id); err != nil {
		return fmt.Errorf("delete user: %w", err)
	}
	for _, callOff := range s.opts.BeforeDelete {
		if err := callOff(ctx, team, id); err != nil {
			return fmt.Errorf("delete user: %w", err)
		}
	}
	at := s.opts.now()
	_, err := s.users.updateLive(ctx, team, id, func(u *User) ([]healthlab.Event, error) {
		u.delete(at.Time)
		return nil, nil
	})
	if err != nil {
		return fmt.Errorf("delete user: %w", err)
	}
	return nil
}

// Erase deletes a user, unless the user is already deleted, and erases all of its data before it returns,
// without a grace period. It cannot be undone. After an error the user is deleted or live; the call may be
// repeated. [Deletions.Run] completes an erasure that failed after the user was deleted.
//
// [healthlab.NotFound] if the team has no such user, live or deleted; [healthlab.Conflict] if [Deletions.Undo] restored
// the user during the call.
func (s *Deletions) Erase(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) error {
	if _, err := s.users.Get(ctx, team, id); err != nil {
		return fmt.Errorf("erase user: %w", err)
	}
	if err := s.Delete(ctx, team, id); err != nil && !errors.Is(err, healthlab.NotFound) {
		return err
	}
	if _, err := s.users.Update(ctx, team, id, s.endGracePeriod); err != nil {
		return fmt.Errorf("erase user: %w", err)
	}
	return s.erase(ctx, UserRef{Team: team, User: id})
}

// endGracePeriod changes when a user was deleted, so that the grace period is over: [Deletions.Undo] no longer
// restores the user, and [Deletions.Run] completes the erasure if this process ends.
func (s *Deletions) endGracePeriod(u *User) ([]healthlab.Event, error) {
	if u.Live() {
		return nil, fmt.Errorf("%w: the user was restored during the erasure; retry", healthlab.Conflict)
	}
	if over := s.opts.now().Add(-s.opts.GracePeriod); u.DeletedAt.After(over) {
		u.DeletedAt = over
	}
	return nil, nil
}

// Undo restores a deleted user with the same id, data, orders and reports. Connections, undelivered events
// and cancelled orders are not restored. The user limit of a sandbox does not apply.
//
// [healthlab.Invalid] if not exactly one field of who is set; [healthlab.NotFound] if there is no such user, if
// it was not deleted, or if its grace period is over; a [*healthlab.RuleError] of type [RuleInvalidRequest] if
// another user has taken the client user id.
func (s *Deletions) Undo(ctx context.Context, team healthlab.TeamID, who DeletedUser) (User, error) {
	at := s.opts.now()
	id, err := s.deletedUserID(ctx, team, who)
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
			Msg:  "another live user has taken the client_user_id of the deleted user; change it there first",
		}
	}
	if err != nil {
		return User{}, fmt.Errorf("undo delete: %w", err)
	}
	return s.providers.present(u), nil
}

// deletedUserID returns the id of the user that who identifies. It returns [healthlab.Invalid] unless exactly one field
// of who is set. It does not check that the user of who.User exists and is deleted.
func (s *Deletions) deletedUserID(ctx context.Context, team healthlab.TeamID, who DeletedUser) (healthlab.UserID, error) {
	if who.User.IsZero() == (who.ClientUserID == "") {
		var p healthlab.Problems
		p.Add("exactly_one", "must have exactly one of user_id and client_user_id", "user_id")
		return healthlab.UserID{}, p.Err()
	}
	if !who.User.IsZero() {
		return who.User, nil
	}
	if !storable(who.ClientUserID) {
		return healthlab.UserID{}, noDeletedUser()
	}
	page, err := s.users.List(ctx, UserQuery{
		Team: team, Deleted: true, ClientUserID: who.ClientUserID, Limit: 1,
	})
	if err != nil {
		return healthlab.UserID{}, err
	}
	if len(page.Users) == 0 {
		return healthlab.UserID{}, noDeletedUser()
	}
	return page.Users[0].ID, nil
}

func noDeletedUser() error {
	return fmt.Errorf("%w: the team has no deleted user with this client_user_id", healthlab.NotFound)
}

// Since returns the users of a team that were deleted at or after an instant and are not erased yet,
// the most recently deleted first. Erased users are not listed, and users that [Deletions.Erase] is erasing may not be.
func (s *Deletions) Since(ctx context.Context, team healthlab.TeamID, at time.Time) ([]healthlab.UserID, error) {
	var out []healthlab.UserID
	for {
		page, err := s.users.List(ctx, UserQuery{Team: team, Deleted: true, Offset: len(out), Limit: maxUsers})
		if err != nil {
			return nil, fmt.Errorf("list deleted users: %w", err)
		}
		for i := range page.Users {
			if page.Users[i].DeletedAt.Before(at) {
				return out, nil
			}
			out = append(out, page.Users[i].ID)
		}
		if len(page.Users) == 0 || len(out) >= page.Total {
			return out, nil
		}
	}
}

// delete marks a user as deleted, which starts the grace period, and deregisters the user's connections.
func (u *User) delete(at time.Time) {
	u.DeletedAt = at
	for i := range u.Connections {
		u.Connections[i].deregister()
		u.Connections[i].Due = time.Time{} // a deleted user has no pulls
	}
}

// restore removes the mark of a deletion. It returns healthlab.NotFound if the user is not deleted, or if the grace
// period is over.
func (u *User) restore(at time.Time, grace time.Duration) error {
	if u.Live() || !at.Before(u.DeletedAt.Add(grace)) {
		return fmt.Errorf("%w: the user is not deleted, or the grace period is over", healthlab.NotFound)
	}
	u.DeletedAt = time.Time{}
	return nil
}

// Run erases the users whose grace period is over until ctx ends. Then it waits for running erasures and returns
// nil. Run it in at least one process; any number may. A user is erased within seconds after the last instant at
// which its deletion can be undone.
func (s *Deletions) Run(ctx context.Context) error { return s.erasures().Run(ctx) }

// EraseDue erases users whose grace period is over, at most 100, one after another. It returns how many erasures
// it started. Hosts with their own scheduler call it.
func (s *Deletions) EraseDue(ctx context.Context) (int, error) {
	const most = 100
	return s.erasures().Once(ctx, most)
}

func (s *Deletions) erasures() *work.Loop[UserRef] {
	return &work.Loop[UserRef]{
		Name: "erasures",
		Claim: func(ctx context.Context, n int) ([]UserRef, error) {
			due, err := s.users.ClaimErasures(ctx, s.opts.now().Add(-s.opts.GracePeriod), n, eraseLease)
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

// erase calls each function of Options.Forget, and then erases the user from the store. It returns nil if the store no
// longer has the user, or if the user was restored meanwhile; the functions have run even then.
func (s *Deletions) erase(ctx context.Context, ref UserRef) error {
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
