package people

import (
	"context"
	"errors"

	"github.com/healthlab-dev/healthlab"
)

// Users looks up users of a team.
//
// HasUser reports whether the team has this user and the user is not deleted. Implementations must be safe for
// concurrent use.
type Users interface {
	HasUser(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (bool, error)
}

// UsersFunc adapts a function to [Users]. The function returns nil if the team has the user, and an error that
// is NotFound if it does not.
//
//	people.UsersFunc(func(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) error {
//		_, err := health.User(ctx, team, id)
//		return err
//	})
type UsersFunc func(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) error

// HasUser implements [Users].
func (f UsersFunc) HasUser(ctx context.Context, team healthlab.TeamID, id healthlab.UserID) (bool, error) {
	err := f(ctx, team, id)
	if errors.Is(err, healthlab.NotFound) {
		return false, nil
	}
	return err == nil, err
}
