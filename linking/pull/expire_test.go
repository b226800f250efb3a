package pull_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// A user with a demo connection is deleted a week after it was made, even if it has ended
// since.
func TestDemoUser_isDeletedAWeekAfterLinking(t *testing.T) {
	for name, then := range map[string]func(*testing.T, *fixture, healthlab.UserID){
		"connected": func(*testing.T, *fixture, healthlab.UserID) {},
		"disconnected": func(t *testing.T, w *fixture, user healthlab.UserID) {
			require.NoError(t, w.health.Connections().Disconnect(t.Context(), team, user, band))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, nil, nil)
			providers, err := healthdata.NewProviders([]healthdata.Provider{bandOf(nil)})
			require.NoError(t, err)
			w.health, err = healthdata.New(w.store.Users(), w.store.Data(), providers, &healthdata.Options{Now: w.now, Environment: healthlab.Sandbox})
			require.NoError(t, err)
			s, err := pull.New(w.spy, w.health, w.refresher, nil, &pull.Options{Now: w.now, Demo: w.cloud})
			require.NoError(t, err)
			made, err := w.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "made up"})
			require.NoError(t, err)
			_, err = w.health.Connections().ConnectLinked(t.Context(), team, made.ID, healthdata.NewConnection{Provider: band, Demo: true})
			require.NoError(t, err)
			linked, err := w.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "linked"})
			require.NoError(t, err)
			_, err = w.health.Connections().ConnectLinked(t.Context(), team, linked.ID, healthdata.NewConnection{Provider: band})
			require.NoError(t, err)

			w.wait(time.Hour)
			w.idle(s)
			then(t, w, made.ID)
			w.wait(healthdata.DemoLife - time.Hour - time.Microsecond)
			w.idle(s)
			_, err = w.health.User(t.Context(), team, made.ID)
			require.NoError(t, err)
			w.wait(time.Microsecond)
			w.idle(s)
			_, err = w.health.User(t.Context(), team, made.ID)
			require.ErrorIs(t, err, healthlab.NotFound)
			_, err = w.health.User(t.Context(), team, linked.ID)
			require.NoError(t, err)
			w.wait(24 * time.Hour)
			w.idle(s) // no task is left
		})
	}
}
