package pull_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// by is a person who has linked by a client of the team.
func (w *fixture) by(name, client string) healthlab.UserID {
	w.t.Helper()
	u, err := w.health.CreateUser(w.t.Context(), team, healthdata.NewUser{ClientUserID: name})
	require.NoError(w.t, err)
	w.linkBy(u.ID, client)
	return u.ID
}

// A provider counts requests by application: requests with a client of the team neither wait
// for the limit of the deployment or of another client, nor use it up.
func TestBudget_isCountedPerClientOfTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, time.Now, func(p *healthdata.Provider) {
			p.Resources = []healthdata.ProviderResource{{Resource: "heartrate"}}
			p.Backfill.DefaultDays = 1
			p.RateLimits.App = []healthdata.RateLimit{{Requests: 1, Seconds: 24 * 3600}}
		})
		ann := w.person("ann")
		bob := w.person("bob")
		stop := w.run(t, 2, nil)
		time.Sleep(time.Hour)
		first, late := ann, bob
		if w.cloud.first[ann].IsZero() {
			first, late = bob, ann
		}
		require.NotZero(t, w.cloud.first[first])
		require.Zero(t, w.cloud.first[late], "the deployment's request of the day is made")
		one, two, second := w.by("one", "client 1"), w.by("two", "client 2"), w.by("second", "client 1")
		time.Sleep(time.Hour)
		require.NotZero(t, w.cloud.first[two])
		require.NotEqual(t, w.cloud.first[one].IsZero(), w.cloud.first[second].IsZero(), "one of the two, for they share a client")
		require.Zero(t, w.cloud.first[late])
		time.Sleep(25 * time.Hour)
		stop()
		require.Len(t, w.cloud.first, 5, "a day later everybody had a turn")
	})
}

// A provider's 429 to one client delays the requests of that client only.
func TestBudget_429OfOneClientDelaysThatClientOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, time.Now, func(p *healthdata.Provider) {
			p.Resources = []healthdata.ProviderResource{{Resource: "heartrate"}}
		})
		one := w.by("one", "client 1")
		full := true
		w.cloud.answer = func(r linking.PullRequest) error {
			if full && r.User == one {
				return &linking.RateLimitError{Scope: linking.RateApp, Wait: time.Hour}
			}
			return nil
		}
		s := w.service(nil)
		w.idle(s)
		require.Equal(t, pull.RateLimited, w.tasks(one)[pull.History].Error)
		same, other, ours := w.by("same", "client 1"), w.by("other", "client 2"), w.person("ours")
		w.idle(s)
		require.NotZero(t, w.cloud.first[other])
		require.NotZero(t, w.cloud.first[ours])
		require.Zero(t, w.cloud.first[same], "the client of the same application waits")
		full = false
		time.Sleep(61 * time.Minute)
		w.idle(s)
		require.NotZero(t, w.cloud.first[same])
		require.NotZero(t, w.cloud.first[one])
	})
}
