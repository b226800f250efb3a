package httpapi_test

import (
	"cmp"
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/labhistory"
	"github.com/healthlab-dev/healthlab/aggregate/parquet"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/privacy/personexport"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store"
)

// fixture is a service with one user who has connected manual and acme_band, and
// another team.
type fixture struct {
	*contract.Client
	t       *testing.T
	health  *healthdata.Service
	config  mount
	logs    *contract.Logs
	user    healthlab.UserID
	foreign healthlab.UserID // of the other team
	exports personexport.Store
	store   *memory.Store
}

// mount is what a test mounts: the services that are there.
type mount struct {
	httpapi.Config
	httpapi.Services
}

func (m *mount) of() httpapi.Config {
	c := m.Config
	c.Parts = m.Services.Parts()
	return c
}

func (m *mount) handler() http.Handler { return httpapi.Handler(m.of()) }

// fixtureNow is when all of this happens.
var fixtureNow = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

var otherTeam = healthlab.TeamID{UUID: uuid.MustParse("6f1c0b52-0000-4000-8000-00000000000b")}

const goodKey = "k"

func newFixture(t *testing.T, opts *healthdata.Options) *fixture {
	// opts may be nil.
	t.Helper()
	return newFixtureWithKeys(t, opts, nil)
}

// newFixtureWithKeys is newFixture over a store that encrypts.
func newFixtureWithKeys(t *testing.T, opts *healthdata.Options, keys *personkey.Keys) *fixture {
	t.Helper()
	if opts == nil {
		opts = &healthdata.Options{}
	}
	if opts.Now == nil {
		opts.Now = func() time.Time { return fixtureNow }
	}
	logo := "https://cdn.example/band.png"
	var resources []healthdata.ProviderResource
	for _, r := range healthdata.Resources() {
		resources = append(resources, healthdata.ProviderResource{Resource: r.Slug})
	}
	providers, err := healthdata.NewProviders([]healthdata.Provider{
		{Slug: "manual", Name: "Manual", Category: "app", Class: "manual", Resources: resources},
		{Slug: "acme_store", Name: "Acme Store", Category: "app", Class: "sdk_store", Resources: resources},
		{Slug: "acme_band", Name: "Acme Band", Logo: &logo, AuthType: "oauth", Category: "provider", Class: "cloud", Resources: resources},
	})
	require.NoError(t, err)
	store := memory.New(&memory.Options{Now: opts.Now, Keys: keys})
	c := &fixture{t: t, logs: &contract.Logs{}, exports: store.PersonExports(), store: store}
	opts.Log = c.logs.Logger()
	opts.Environment = cmp.Or(opts.Environment, healthlab.Sandbox)
	c.health, err = healthdata.New(store.Users(), store.Data(), providers, opts)
	require.NoError(t, err)
	for team, user := range map[healthlab.TeamID]*healthlab.UserID{team: &c.user, otherTeam: &c.foreign} {
		u, err := c.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "patient-77"})
		require.NoError(t, err)
		*user = u.ID
		for _, p := range []string{"manual", "acme_band"} {
			_, err := c.health.Connections().ConnectLinked(t.Context(), team, u.ID, healthdata.NewConnection{Provider: p})
			require.NoError(t, err)
		}
	}
	preferences, err := aggregate.NewPreferences(store.Priorities(), func(slug string) bool { return providers.Get(slug) != nil })
	require.NoError(t, err)
	questions, err := aggregate.New(c.health, &aggregate.Options{
		Priorities: preferences.Of,
		LabResults: func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]aggregate.LabResult, error) {
			return c.config.LabHistory.Rows(ctx, team, user)
		},
	})
	require.NoError(t, err)
	c.config = mount{Config: httpapi.Config{
		Authenticate: func(r *http.Request) (httpapi.Caller, error) {
			switch r.Header.Get("x-service-api-key") {
			case goodKey:
				return httpapi.Caller{Team: team}, nil
			case "other":
				return httpapi.Caller{Team: otherTeam}, nil
			}
			return httpapi.Caller{}, healthlab.Unauthenticated
		},
		Parquet:     parquet.Writer{},
		Idempotency: idempotency.New(store.OrderKeys(), nil),
		Log:         c.logs.Logger(),
		Transact:    transactIn(store),
	}, Services: httpapi.Services{
		Health:     c.health,
		Aggregate:  questions,
		Priorities: preferences,
		Apps:       newApps(t, store, c.health),
		Exports:    newExports(t, store, c.health, opts.Now),
		Linking:    newLinks(t, store, c.health, &linking.Options{Now: opts.Now, Log: opts.Log, Clients: store.TeamClients()}),
	}}
	c.makeOrders(store)
	c.config.LabHistory, err = labhistory.New(c.health, c.config.Orders, nil, nil)
	require.NoError(t, err)
	c.Client = contract.NewClient(t, c.config.handler(), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
	return c
}

func transactIn(s *memory.Store) func(context.Context, func(context.Context) error) error {
	return func(ctx context.Context, run func(context.Context) error) error {
		return s.Rows().Update(ctx, func(ctx context.Context, _ store.Tx) error { return run(ctx) })
	}
}

func keepRaw() *healthdata.Options {
	return &healthdata.Options{Settings: func(context.Context, healthlab.TeamID) (healthdata.TeamSettings, error) {
		return healthdata.TeamSettings{ProviderRawData: true}, nil
	}}
}

func (c *fixture) get(path string, status int) *contract.Reply {
	c.t.Helper()
	return c.Send(c.t, "GET", path, nil).Want(c.t, status)
}

func (c *fixture) post(path string, body any, status int) *contract.Reply {
	c.t.Helper()
	return c.Send(c.t, "POST", path, body).Want(c.t, status)
}

func (c *fixture) timeseries(rest string) string {
	return "/v2/timeseries/" + c.user.String() + "/" + rest
}

func (c *fixture) summary(resource string) string {
	return "/v2/summary/" + resource + "/" + c.user.String()
}

func ptr[T any](v T) *T { return &v }
