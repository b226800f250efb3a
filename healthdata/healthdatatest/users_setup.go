package healthdatatest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// AddUser adds a live user. Suites of other packages use it for stores whose rows are erased with the user.
func AddUser(t testing.TB, users healthdata.Users, team healthlab.TeamID, id healthlab.UserID) {
	t.Helper()
	u := person(team, id.String())
	u.ID = id
	require.NoError(t, users.Insert(t.Context(), u, 0))
}

// DeleteUser starts the grace period of a live user.
func DeleteUser(t testing.TB, users healthdata.Users, team healthlab.TeamID, id healthlab.UserID) {
	t.Helper()
	setDeleted(t, users, team, id, noon.Time)
}

// RestoreUser ends the grace period of a deleted user.
func RestoreUser(t testing.TB, users healthdata.Users, team healthlab.TeamID, id healthlab.UserID) {
	t.Helper()
	setDeleted(t, users, team, id, time.Time{})
}

// EraseUser deletes a live user and erases it.
func EraseUser(t testing.TB, users healthdata.Users, team healthlab.TeamID, id healthlab.UserID) {
	t.Helper()
	DeleteUser(t, users, team, id)
	require.NoError(t, users.Erase(t.Context(), team, id))
}

// AddErasedUser adds a user, deletes it and erases it.
func AddErasedUser(t testing.TB, users healthdata.Users, team healthlab.TeamID, id healthlab.UserID) {
	t.Helper()
	AddUser(t, users, team, id)
	EraseUser(t, users, team, id)
}

func setDeleted(t testing.TB, users healthdata.Users, team healthlab.TeamID, id healthlab.UserID, at time.Time) {
	t.Helper()
	_, err := users.Update(t.Context(), team, id, func(u *healthdata.User) ([]healthlab.Event, error) {
		u.DeletedAt = at
		return nil, nil
	})
	require.NoError(t, err)
}
