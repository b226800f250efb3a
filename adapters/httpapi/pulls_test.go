package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// pullPairs are the published types of pulls.
func pullPairs() []contract.Pair {
	return append(httpapi.PullBodies(),
		contract.Pair{Schema: "RefreshResult", Value: pull.RefreshResult{}},
	)
}

// newPulls makes what fetches over a store.
func newPulls(t *testing.T, store *memory.Store, health *healthdata.Service, connectors map[string]linking.ProviderConnector, opts *pull.Options) *pull.Service {
	t.Helper()
	seal, err := healthlab.NewAESSealer("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	keeper, err := linking.NewKeeper(store.Grants(), health, connectors, seal, &linking.KeeperOptions{Now: opts.Now})
	require.NoError(t, err)
	s, err := pull.New(store.Pulls(), health, keeper, connectors, opts)
	require.NoError(t, err)
	return s
}

// moody is a provider whose resources answer differently.
type moody map[string]func(ctx context.Context) error

func (m moody) Pull(ctx context.Context, r linking.PullRequest) (linking.PullPage, error) {
	if answer := m[r.Resource]; answer != nil {
		return linking.PullPage{}, answer(ctx)
	}
	return linking.PullPage{}, nil
}

// depot is a service that fetches, over HTTP.
type depot struct {
	*contract.Client
	t      *testing.T
	store  *memory.Store
	health *healthdata.Service
	pulls  *pull.Service
	moods  moody
}

func newDepot(t *testing.T, now func() time.Time) *depot {
	t.Helper()
	d := &depot{t: t, moods: moody{}, store: memory.New(&memory.Options{Now: now})}
	providers, err := healthdata.NewProviders([]healthdata.Provider{
		{
			Slug: "acme_band", Name: "Band", AuthType: "oauth", SourceType: "device", Class: "cloud", Demo: true,
			Resources: []healthdata.ProviderResource{{Resource: "body"}, {Resource: "heartrate"}, {Resource: "steps"}},
			Backfill:  healthdata.Backfill{DefaultDays: 30, Mode: "pull"},
		},
		{Slug: "manual", Name: "Manual", SourceType: "app", Class: "manual", Resources: []healthdata.ProviderResource{{Resource: "steps"}}},
	})
	require.NoError(t, err)
	d.health, err = healthdata.New(d.store.Users(), d.store.Data(), providers, &healthdata.Options{Now: now})
	require.NoError(t, err)
	d.pulls = newPulls(t, d.store, d.health, nil, &pull.Options{Now: now, Demo: d.moods})
	h := httpapi.Handler(httpapi.Config{Authenticate: byTeamID, Health: d.health, Pulls: d.pulls})
	d.Client = contract.NewClient(t, h, httpapi.OpenAPI()).With("x-service-api-key", team.String())
	return d
}

func (d *depot) person(name string, providers ...string) healthlab.UserID {
	d.t.Helper()
	u, err := d.health.CreateUser(d.t.Context(), team, healthdata.NewUser{ClientUserID: name})
	require.NoError(d.t, err)
	for _, p := range providers {
		_, err = d.health.Establish(d.t.Context(), team, u.ID, healthdata.NewConnection{Provider: p, Demo: p == "acme_band"})
		require.NoError(d.t, err)
	}
	return u.ID
}

func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDepot(t, time.Now)
		d.moods["body"] = func(context.Context) error { return errors.New("502") }
		ann := d.person("ann", "acme_band")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.pulls.Run(ctx) }()
		time.Sleep(time.Hour)
		d.moods["steps"] = func(ctx context.Context) error {
			select {
			case <-time.After(20 * time.Second):
			case <-ctx.Done():
			}
			return nil
		}
		path := "/v2/user/refresh/" + ann.String()
		lists := func(status int, query string) object {
			var out object
			d.Send(t, "POST", path+query, nil).Want(t, status).JSON(t, &out)
			return out
		}
		begin := time.Now()
		require.Equal(t, object{
			"success": true, "user_id": ann.String(), "refreshed_sources": []any{"acme_band/vitals/heartrate"},
			"in_progress_sources": []any{"acme_band/vitals/steps"}, "failed_sources": []any{"acme_band/body"},
		}, lists(202, "?timeout=5.5"))
		require.Equal(t, 5500*time.Millisecond, time.Since(begin))
		begin = time.Now()
		require.Empty(t, lists(200, "?timeout=60")["in_progress_sources"])
		require.Less(t, time.Since(begin), 20*time.Second, "the task that ran is joined")
		delete(d.moods, "steps")
		delete(d.moods, "body")
		for range 6 {
			out := lists(200, "")
			require.Empty(t, out["failed_sources"])
			require.Len(t, out["refreshed_sources"], 3)
		}
		late := d.Send(t, "POST", path, nil).Want(t, 429)
		require.Equal(t, "RATE_LIMITED", late.ErrorType(t))
		wait, err := time.ParseDuration(late.Header.Get("Retry-After") + "s")
		require.NoError(t, err)
		time.Sleep(wait)
		lists(200, "")
		stop()
		require.NoError(t, <-ended)
	})
}

func TestRefreshIsRefused(t *testing.T) {
	d := newDepot(t, time.Now)
	bob := d.person("bob", "manual")
	var out object
	d.Send(t, "POST", "/v2/user/refresh/"+bob.String(), nil).Want(t, 400).JSON(t, &out)
	require.NotEmpty(t, out["error"])
	delete(out, "error")
	require.Equal(t, object{"success": false, "user_id": bob.String(), "failed_sources": []any{}}, out)

	for query, loc := range map[string]string{
		"timeout=4.99": "query.timeout", "timeout=60.01": "query.timeout", "timeout=NaN": "query.timeout", "timeout=": "query.timeout",
		"timeout=soon": "query.timeout", "time=10": "query.time",
	} {
		require.Equal(t, []string{loc}, d.Send(t, "POST", "/v2/user/refresh/"+bob.String()+"?"+query, nil).Want(t, 422).Locs(t), query)
	}
	require.Equal(t, []string{"path.user_id"}, d.Send(t, "POST", "/v2/user/refresh/bob", nil).Want(t, 422).Locs(t))
	foreign := d.With("x-service-api-key", otherTeam.String())
	foreign.Send(t, "POST", "/v2/user/refresh/"+bob.String(), nil).Want(t, 404)
	d.With("x-service-api-key", "nobody").Send(t, "POST", "/v2/user/refresh/"+bob.String(), nil).Want(t, 401)
}
