package healthdatatest

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Messages reads the events that a store wrote, with their Seq. A [webhook.Log] has this method. Message returns
// [healthlab.NotFound] for an event that was not written, or that belongs to another team.
type Messages interface {
	Message(ctx context.Context, team healthlab.TeamID, event uuid.UUID) (webhook.Message, error)
}

// UsersAloneHarness is a fresh, empty store of users; health data is in another store.
type UsersAloneHarness struct {
	// Users is the tested interface.
	Users healthdata.Users
	// Messages reads the events that Users wrote.
	Messages Messages
}

// RunUsersAlone checks the contract of [healthdata.Users], except the erasure of health data in
// [healthdata.Data]. newStore returns a fresh, empty store and registers its own cleanup on t.
func RunUsersAlone(t *testing.T, newStore func(t testing.TB) UsersAloneHarness) {
	runUsers(func(name string, test func(t usersT)) {
		t.Run(name, func(t *testing.T) {
			h := newStore(t)
			test(usersT{t, UsersHarness{Users: h.Users, Messages: h.Messages}})
		})
	})
}

// DataAloneHarness is a fresh, empty store of health data; the users are in another store.
type DataAloneHarness struct {
	// Data is the tested interface.
	Data healthdata.Data
	// Add makes u known to Data as a live user, and Delete as a deleted one. The suite calls Add once for each user,
	// before it writes data of the user.
	Add, Delete func(ctx context.Context, u healthdata.User) error
	// Messages reads the events that Data wrote.
	Messages Messages
}

// RunDataAlone checks the contract of [healthdata.Data] on a store of health data whose users are in another store.
// newStore returns a fresh, empty store and registers its own cleanup on t.
func RunDataAlone(t *testing.T, newStore func(t testing.TB) DataAloneHarness) {
	runData(func(name string, test func(t dataT)) {
		t.Run(name, func(t *testing.T) { test(dataT{t, newStore(t)}) })
	})
}

// alone returns a DataAloneHarness whose Add and Delete change the users of h.Users.
func (h DataHarness) alone() DataAloneHarness {
	return DataAloneHarness{
		Data: h.Data, Messages: h.Messages,
		Add: func(ctx context.Context, u healthdata.User) error { return h.Users.Insert(ctx, u, 0) },
		Delete: func(ctx context.Context, u healthdata.User) error {
			_, err := h.Users.Update(ctx, u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
				u.DeletedAt = noon.Time
				return nil, nil
			})
			return err
		},
	}
}
