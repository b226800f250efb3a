package healthdata

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
)

const (
	defaultUsers = 100 // users of a page if the query has no limit
	maxUsers     = 500 // greatest number of users of a page
	maxFound     = 50  // greatest number of users that a search returns
	minQuery     = 2   // least number of characters of a search
)

// CreateUser adds a person to a team. It returns a [*healthlab.InvalidError] with every invalid field, a
// [*ClientUserIDError] with the live user who has the client user id, and a [*healthlab.RuleError] of type
// [RuleUserLimit] if the team has [Options].MaxUsers users.
func (s *Service) CreateUser(ctx context.Context, team healthlab.TeamID, n NewUser) (User, error) {
	return s.CreateUserAs(ctx, team, s.NewUserID(), n)
}

// NewUserID returns an id for [Service.CreateUserAs].
func (s *Service) NewUserID() healthlab.UserID { return healthlab.UserID{UUID: s.opts.NewUserID()} }

// CreateUserAs is [Service.CreateUser] with an id that the caller made before. A transaction that may run again must
// use one id for all its runs, because the user's encryption key is created between two runs. It returns
// [healthlab.Conflict] if a user has the id.
func (s *Service) CreateUserAs(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, n NewUser) (User, error) {
	u, err := newUser(team, id, n, s.opts.now())
	if err != nil {
		return User{}, fmt.Errorf("create user: %w", err)
	}
	limit := s.opts.MaxUsers
	err = s.users.Insert(ctx, u, limit)
	if limit > 0 && errors.Is(err, healthlab.Exhausted) {
		err = &healthlab.RuleError{
			Type: RuleUserLimit,
			Msg:  fmt.Sprintf("a team has at most %d users; delete one first", limit),
		}
	}
	if err != nil {
		return User{}, fmt.Errorf("create user: %w", err)
	}
	u.Revision = 1
	return s.providers.present(u), nil
}

// CreateOrGet adds a person, or returns the live user with the same client user id unchanged; the other fields of n are
// then ignored. It may be repeated after any error. The errors are those of [Service.CreateUser], except
// [*ClientUserIDError]. It returns [healthlab.Unavailable] if such a user is found and deleted meanwhile three times.
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
	return User{}, false, fmt.Errorf("create or get user: %w: a user with this client_user_id was created and deleted several times meanwhile; try again", healthlab.Unavailable)
}

// User returns a live user of a team. It returns [healthlab.NotFound] if the team has no live user with this id.
func (s *Service) User(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (User, error) {
	u, err := s.users.live(ctx, team, id)
	if err != nil {
		return User{}, fmt.Errorf("get user: %w", err)
	}
	return s.providers.present(u), nil
}

// ResolveUser returns the live user of a team with exactly this client user id. It returns [healthlab.NotFound]
// if there is none.
func (s *Service) ResolveUser(ctx context.Context, team healthlab.TeamID, clientUserID string) (User, error) {
	if clientUserID == "" || !storable(clientUserID) {
		return User{}, fmt.Errorf("resolve user: %w", noClientUserID())
	}
	page, err := s.users.List(ctx, UserQuery{Team: team, ClientUserID: clientUserID, Limit: 1})
	if err == nil && len(page.Users) == 0 {
		err = noClientUserID()
	}
	if err != nil {
		return User{}, fmt.Errorf("resolve user: %w", err)
	}
	return s.providers.present(page.Users[0]), nil
}

func noClientUserID() error {
	return fmt.Errorf("%w: the team has no live user with this client_user_id", healthlab.NotFound)
}

// Users returns a page of a team's live users, the oldest first, and the total number. The limit is 1 to 500; 0
// means 100. A page past the end is empty.
func (s *Service) Users(ctx context.Context, team healthlab.TeamID, offset, limit int) (UserPage, error) {
	var p healthlab.Problems
	if offset < 0 {
		p.Add("too_small", "must be 0 or more", "offset")
	}
	if limit < 0 {
		p.Add("too_small", "must be from 1 to 500", "limit")
	}
	if limit > maxUsers {
		p.Add("too_large", "must be from 1 to 500", "limit")
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
	return UserPage{Users: s.providers.presentAll(page.Users), Total: page.Total}, nil
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
// type and day. It returns [healthlab.NotFound] if the team has no such user.
func (s *Service) RemovedDays(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, since time.Time) ([]RemovedDay, error) {
	if _, err := s.users.live(ctx, team, user); err != nil {
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
		p.Add("too_short", "must have at least 2 characters", "query_id")
		return nil, fmt.Errorf("search users: %w", p.Err())
	}
	if !storable(query) {
		return []User{}, nil
	}
	page, err := s.users.List(ctx, UserQuery{Team: team, Prefix: query, Limit: maxFound})
	if err != nil {
		return nil, fmt.Errorf("search users: %w", err)
	}
	return s.providers.presentAll(page.Users), nil
}

// PatchUser changes fields of a user. A patch without changes only checks that the user exists. The errors are
// those of [Service.CreateUser], and [healthlab.NotFound].
func (s *Service) PatchUser(ctx context.Context, team healthlab.TeamID, id healthlab.UserID, p UserPatch) (User, error) {
	at := s.opts.now()
	if p.empty() {
		u, err := s.users.live(ctx, team, id)
		if err != nil {
			return User{}, fmt.Errorf("patch user: %w", err)
		}
		return s.providers.present(u), nil
	}
	u, err := s.users.updateLive(ctx, team, id, func(u *User) ([]healthlab.Event, error) {
		return nil, u.patch(p, at)
	})
	if err != nil {
		return User{}, fmt.Errorf("patch user: %w", err)
	}
	return s.providers.present(u), nil
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
