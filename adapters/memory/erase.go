package memory

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab"
)

// users is the userStore with the erasure of a user, which goes through all tables.
type users struct {
	userStore
	all *tables
}

func (v users) Erase(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	t := v.all
	row := t.users.find(team, user)
	switch {
	case row == nil:
		return noUser()
	case row.user.Live():
		return fmt.Errorf("%w: a live user is deleted first", healthlab.Precondition)
	}
	if err := t.reports.erase(ctx, team, user); err != nil {
		return err
	}
	t.users.erase(row)
	t.data.erase(team, user)
	t.linking.erase(team, user)
	t.pulls.erase(team, user)
	t.bulk.erase(user)
	t.orders.erase(team, user)
	t.persons.erase(team, user)
	t.reviews.erase(team, user)
	t.labs.erase(team, user)
	t.continuous.erase(team, user)
	t.exports.erase(team, user)
	t.outbox.erase(team, user)
	return nil
}
