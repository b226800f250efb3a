package healthdata_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// A view is of a live user of the team; what read returns comes back as it is.
func TestView_unknownOrDeletedUserIsNotFound(t *testing.T) {
	store := memory.New(nil)
	providers, err := healthdata.NewProviders(nil)
	require.NoError(t, err)
	s, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	require.NoError(t, err)
	owner := healthlab.TeamID{UUID: uuid.UUID{7}}
	u, err := s.CreateUser(t.Context(), owner, healthdata.NewUser{ClientUserID: "patient-12"})
	require.NoError(t, err)

	looked := false
	require.NoError(t, s.View(t.Context(), owner, u.ID, func(healthdata.View) error { looked = true; return nil }))
	require.True(t, looked)
	require.Equal(t, healthlab.Conflict, s.View(t.Context(), owner, u.ID, func(healthdata.View) error { return healthlab.Conflict }))

	never := func(healthdata.View) error { t.Fatal("nobody to look at"); return nil }
	require.ErrorIs(t, s.View(t.Context(), healthlab.TeamID{UUID: uuid.UUID{8}}, u.ID, never), healthlab.NotFound)
	require.NoError(t, s.Deletions().Delete(t.Context(), owner, u.ID))
	require.ErrorIs(t, s.View(t.Context(), owner, u.ID, never), healthlab.NotFound)
}
