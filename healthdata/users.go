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
	defaultUsers = 100 // users of a page, where the query has no limit
	maxUsers     = 500 // at most
	maxFound     = 50  // users that a search finds, at most
	minQuery     = 2   // characters of a search, at least
)

// CreateUser adds a person to a team. What was wrong with the input is a
// [*healthlab.InvalidError], all of it; a client user id that a live user has is a
// [*ClientUserIDError], which says whose; a full sandbox is a [*healthlab.RuleError]
// of type [RuleUserLimit].
func (s *Service) CreateUser(ctx context.Context, team healthlab.TeamID, n NewUser) (User, error) {
	return s.CreateUserAs(ctx, team, s.NewUserID(), n)
}

// NewUserID returns an id for [Service.CreateUserAs].
func (s *Service) NewUserID() healthlab.UserID { return healthlab.UserID{UUID: s.opts.NewUserID()} }

// CreateUserAs is [Service.CreateUser] for a user with an id that was made before. A transaction that
// may run again takes one id for all its runs: the key of a new user is made between two of them.
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

// CreateOrGet adds a person, or returns the live user who has the client user id
// already, as it is: the other fields of n do not change it. So it may be called again
// after any error. Errors as of [Service.CreateUser], but for the taken id.
func (s *Service) CreateOrGet(ctx context.Context, team healthlab.TeamID, n NewUser) (u User, created bool, err error) {
	// The user in the way may be deleted between the two calls. Three times
	// in a row is no accident.
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

// User returns a live user of a team. [healthlab.NotFound] if the team has none with
// this id.
func (s *Service) User(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (User, error) {
	u, err := s.live(ctx, team, id)
	if err != nil {
		return User{}, fmt.Errorf("get user: %w", err)
	}
	return s.present(u), nil
}

// ResolveUser returns the live user of a team with exactly this client user id.
// [healthlab.NotFound] if there is none.
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

// Users returns a page of a team's live users, the oldest first, and how many there
// are in all. The limit is 1 to 500; 0 means 100. A page past the end is empty.
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

// UsersDeletedSince returns the users of a team who were deleted at an instant or after it and are not erased
// yet, the most recently deleted first. Of users who were erased nothing is known.
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

// UsersWithRemovals returns the users of a team of whom [Service.RemovedDays] has something, each once, in no order;
// users who were deleted, too.
func (s *Service) UsersWithRemovals(ctx context.Context, team healthlab.TeamID, since time.Time) ([]healthlab.UserID, error) {
	out, err := s.data.RemovedUsers(ctx, team, since)
	if err != nil {
		return nil, fmt.Errorf("list users with removed data: %w", err)
	}
	return out, nil
}

// RemovedDays returns the days of which data of a live user was removed at an instant or after it, by resource, source
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

// SearchUsers returns the live users of a team whose id or client user id begins with
// the query, both after [healthlab.FoldText]: the oldest 50, the oldest first.
// The query has at least two characters; else it is a [*healthlab.InvalidError] about
// query_id.
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

// PatchUser changes what a team says of a user. A patch that changes nothing is
// welcome; it only asks whether the user is there. Errors as of [Service.CreateUser],
// and [healthlab.NotFound].
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

// TeamMetrics counts what a team has: live users and the sources they have connected.
// Orders are not this package's; their number is left zero.
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
