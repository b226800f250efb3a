package healthdata

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
)

// Names of the rules about users that a program branches on.
const (
	// RuleInvalidRequest is a request that cannot be met as things stand.
	RuleInvalidRequest = "INVALID_REQUEST"
	// RuleUserLimit says that a team has as many users as a sandbox allows.
	RuleUserLimit = "USER_LIMIT_REACHED"
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
	u, err := newUser(team, healthlab.UserID{UUID: s.opts.NewUserID()}, n, s.now())
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
// after any error. Faults as of [Service.CreateUser], but for the taken id.
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

// SearchUsers returns the live users of a team whose id or client user id begins with
// the query, whatever the case of the letters A to Z: the oldest 50, the oldest first.
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
// welcome; it only asks whether the user is there. Faults as of [Service.CreateUser],
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

// updateLive changes a user who has not been deleted.
func (s *Service) updateLive(ctx context.Context, team healthlab.TeamID, id healthlab.UserID,
	change func(*User) ([]healthlab.Event, error),
) (User, error) {
	return s.users.Update(ctx, team, id, func(u *User) ([]healthlab.Event, error) {
		if !u.Live() {
			return nil, healthlab.NotFound
		}
		return change(u)
	})
}

// present adds to a stored user what is derived: the connected sources.
func (s *Service) present(u User) User {
	u.ConnectedSources = s.connectedSources(u.Connections)
	return u
}

func (s *Service) presentAll(users []User) []User {
	out := make([]User, len(users))
	for i, u := range users {
		out[i] = s.present(u)
	}
	return slices.Clip(out)
}

// storable reports whether a store can hold the text at all. What it cannot hold,
// no user has.
func storable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }
