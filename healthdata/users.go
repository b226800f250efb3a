package healthdata

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
)

const (
	defaultUsers = 100 // users of a page if the query has no limit
	maxUsers     = 500 // greatest number of users of a page
	maxFound     = 50  // greatest number of users that a search returns
	minQuery     = 2   // least number of characters of a search
)

// CreateUser adds a person to a team. Invalid fields are a [*healthlab.InvalidError] with all of them. A client
// user id of a live user is a [*ClientUserIDError] with that user. A full sandbox is a [*healthlab.RuleError] of
// type [RuleUserLimit].
func (s *Service) CreateUser(ctx context.Context, team healthlab.TeamID, n NewUser) (User, error) {
	return s.CreateUserAs(ctx, team, s.NewUserID(), n)
}

// NewUserID returns an id for [Service.CreateUserAs].
func (s *Service) NewUserID() healthlab.UserID { return healthlab.UserID{UUID: s.opts.NewUserID()} }

// CreateUserAs is [Service.CreateUser] with an id that the caller made before. A transaction that may run again must
// use one id for all its runs, because the user's encryption key is created between two runs. It returns
// [healthlab.Conflict] if a user has the id.
func (s *Service) CreateUserAs(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, n NewUser) (User, error) {
	u, err := newUser(team, id, n, s.now())
	if err != nil {
		return User{}, fmt.Errorf("create user: %w", err)
	}
	limit := s.opts.MaxUsers
	err = s.users.Insert(ctx, u, limit)
	if limit > 0 && errors.Is(err, healthlab.Exhausted) {
		err = &healthlab.RuleError{
			Type: RuleUserLimit,
			Msg:  fmt.Sprintf("a team has at most %d users here; delete one first", limit),
		}
	}
	if err != nil {
		return User{}, fmt.Errorf("create user: %w", err)
	}
	u.Revision = 1
	return s.present(u), nil
}

// CreateOrGet adds a person, or returns the live user with the same client user id unchanged; the other fields
// of n are then ignored. It may be repeated after any error. The errors are those of [Service.CreateUser],
// without the taken client user id.
func (s *Service) CreateOrGet(ctx context.Context, team healthlab.TeamID, n NewUser) (u User, created bool, err error) {
	// The existing user may be deleted between the two calls. Three such failures in a row are an error.
	for range 3 {
		u, err = s.CreateUser(ctx, team, n)
		var taken *ClientUserIDError
		if !errors.As(err, &taken) {
			return u, err == nil, err
		}
		u, err = s.User(ctx, team, taken.User)
		if !errors.Is(err, healthlab.NotFound) {
			return u, false, err
		}
	}
	return User{}, false, fmt.Errorf("create or get user: %w: it comes and goes", healthlab.Unavailable)
}

// User returns a live user of a team. It returns [healthlab.NotFound] if the team has no live user with this id.
func (s *Service) User(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (User, error) {
	u, err := s.live(ctx, team, id)
	if err != nil {
		return User{}, fmt.Errorf("get user: %w", err)
	}
	return s.present(u), nil
}

// ResolveUser returns the live user of a team with exactly this client user id. It returns [healthlab.NotFound]
// if there is none.
func (s *Service) ResolveUser(ctx context.Context, team healthlab.TeamID, clientUserID string) (User, error) {
	if clientUserID == "" || !storable(clientUserID) {
		return User{}, fmt.Errorf("resolve user: %w", healthlab.NotFound)
	}
	page, err := s.users.List(ctx, UserQuery{Team: team, ClientUserID: clientUserID, Limit: 1})
	if err == nil && len(page.Users) == 0 {
		err = healthlab.NotFound
	}
	if err != nil {
		return User{}, fmt.Errorf("resolve user: %w", err)
	}
	return s.present(page.Users[0]), nil
}

// Users returns a page of a team's live users, the oldest first, and the total number. The limit is 1 to 500; 0
// means 100. A page past the end is empty.
func (s *Service) Users(ctx context.Context, team healthlab.TeamID, offset, limit int) (UserPage, error) {
	var p healthlab.Problems
	if offset < 0 {
		p.Add("too_small", "at least 0", "offset")
	}
	if limit < 0 {
		p.Add("too_small", "at least 1", "limit")
	}
	if limit > maxUsers {
		p.Add("too_large", "at most 500", "limit")
	}
	if err := p.Err(); err != nil {
		return UserPage{}, fmt.Errorf("list users: %w", err)
	}
	if limit == 0 {
		limit = defaultUsers
	}
	page, err := s.users.List(ctx, UserQuery{Team: team, Offset: offset, Limit: limit})
	if err != nil {
		return UserPage{}, fmt.Errorf("list users: %w", err)
	}
	return UserPage{Users: s.presentAll(page.Users), Total: page.Total}, nil
}

// UsersDeletedSince returns the users of a team that were deleted at or after an instant and are not erased yet,
// the most recently deleted first. Erased users are not listed.
func (s *Service) UsersDeletedSince(ctx context.Context, team healthlab.TeamID, at time.Time) ([]healthlab.UserID, error) {
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

// UsersWithRemovals returns the users of a team for whom [Service.RemovedDays] returns a day, each once, in no order.
// It includes users who have been deleted since.
func (s *Service) UsersWithRemovals(ctx context.Context, team healthlab.TeamID, since time.Time) ([]healthlab.UserID, error) {
	out, err := s.data.RemovedUsers(ctx, team, since)
	if err != nil {
		return nil, fmt.Errorf("list users with removed data: %w", err)
	}
	return out, nil
}

// RemovedDays returns the days from which data of a live user was removed at or after an instant, by resource, source
// type and day. [healthlab.NotFound] if the team has no such user.
func (s *Service) RemovedDays(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, since time.Time) ([]RemovedDay, error) {
	if _, err := s.live(ctx, team, user); err != nil {
		return nil, fmt.Errorf("read removed days: %w", err)
	}
	out, err := s.data.RemovedDays(ctx, team, user, since)
	if err != nil {
		return nil, fmt.Errorf("read removed days: %w", err)
	}
	return out, nil
}

// SearchUsers returns the live users of a team whose id or client user id begins with the query, both after
// [healthlab.FoldText]: the oldest 50, the oldest first. A query of fewer than two characters is a
// [*healthlab.InvalidError] about query_id.
func (s *Service) SearchUsers(ctx context.Context, team healthlab.TeamID, query string) ([]User, error) {
	if utf8.RuneCountInString(query) < minQuery {
		var p healthlab.Problems
		p.Add("too_short", "at least 2 characters", "query_id")
		return nil, fmt.Errorf("search users: %w", p.Err())
	}
	if !storable(query) {
		return []User{}, nil
	}
	page, err := s.users.List(ctx, UserQuery{Team: team, Prefix: query, Limit: maxFound})
	if err != nil {
		return nil, fmt.Errorf("search users: %w", err)
	}
	return s.presentAll(page.Users), nil
}

// PatchUser changes fields of a user. A patch without changes only checks that the user exists. The errors are
// those of [Service.CreateUser], and [healthlab.NotFound].
func (s *Service) PatchUser(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, p UserPatch) (User, error) {
	at := s.now()
	if p.empty() {
		u, err := s.live(ctx, team, id)
		if err != nil {
			return User{}, fmt.Errorf("patch user: %w", err)
		}
		return s.present(u), nil
	}
	u, err := s.updateLive(ctx, team, id, func(u *User) ([]healthlab.Event, error) {
		return nil, u.patch(p, at)
	})
	if err != nil {
		return User{}, fmt.Errorf("patch user: %w", err)
	}
	return s.present(u), nil
}

// TeamMetrics counts a team's live users and their connected sources. It leaves the number of orders zero,
// because this package has no orders.
func (s *Service) TeamMetrics(ctx context.Context, team healthlab.TeamID) (TeamMetrics, error) {
	m, err := s.users.Metrics(ctx, team)
	if err != nil {
		return TeamMetrics{}, fmt.Errorf("team metrics: %w", err)
	}
	m.Team = team
	if m.ConnectedSourcesByWeek == nil {
		m.ConnectedSourcesByWeek = []WeekCount{}
	}
	return m, nil
}

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

// DeleteUser deletes a user. After that no read returns the user, its data, orders, reports or events.
// [Options.BeforeDelete] runs first, connections are deregistered, and events that were not delivered are
// dropped. The data is erased when [Options.GracePeriod] is over; until then [Service.UndoDelete] restores the
// user.
//
// [healthlab.NotFound] if the team has no such user, or the user was deleted before.
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

// EraseUser deletes a user, unless the user is already deleted, and erases all of its data before it returns,
// without a grace period. It cannot be undone. After an error the user is deleted or live; the call may be
// repeated.
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

// UndoDelete restores a deleted user with the same id, data, orders and reports. Connections, undelivered events
// and cancelled orders are not restored. The user limit of a sandbox does not apply.
//
// [healthlab.Invalid] if not exactly one field of who is set; [healthlab.NotFound] if there is no such user, if
// it was not deleted, or if its grace period is over; a [*healthlab.RuleError] of type [RuleInvalidRequest] if
// another user has taken the client user id.
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

// deleted returns the deleted user that who identifies.
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

// delete marks a user as deleted, which starts its grace period.
func (u *User) delete(at time.Time) {
	u.DeletedAt = at
	for i := range u.Connections {
		u.Connections[i].deregister()
		u.Connections[i].Due = time.Time{} // a deleted user has no pulls
	}
}

// restore removes the mark of a deletion. It returns an error after the grace period.
func (u *User) restore(at time.Time, grace time.Duration) error {
	if u.Live() || !at.Before(u.DeletedAt.Add(grace)) {
		return healthlab.NotFound
	}
	u.DeletedAt = time.Time{}
	return nil
}

// Run erases the users whose grace period is over until ctx ends. Then it waits for running erasures and returns
// nil. Run it in at least one process; any number may. A user is erased within seconds after the last instant at
// which its deletion can be undone.
func (s *Service) Run(ctx context.Context) error { return s.erasures().Run(ctx) }

// EraseDue erases users whose grace period is over, at most 100, one after another. It returns how many erasures
// it started. Hosts with their own scheduler call it.
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

// erase erases one user. It does nothing if the user was erased or restored meanwhile.
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
