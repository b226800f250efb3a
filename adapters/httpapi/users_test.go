package httpapi_test

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
)

func userPairs() []contract.Pair {
	// Bodies and envelopes are checked by the client.
	return []contract.Pair{
		{Schema: "User", Value: healthdata.User{}},
		{Schema: "TeamMetrics", Value: healthdata.TeamMetrics{}},
	}
}

// office is a service over HTTP, with a clock of its own.
type office struct {
	*contract.Client
	t      *testing.T
	health *healthdata.Service
	now    time.Time
}

// newOffice serves the providers of the example.
func newOffice(t *testing.T) *office {
	t.Helper()
	c := &office{t: t, now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)}
	f, err := os.Open("../../examples/server/providers.json")
	require.NoError(t, err)
	defer f.Close()
	providers, err := healthdata.ReadProviders(f)
	require.NoError(t, err)
	providers = providers.WithLogos(func(slug string) string { return "https://static.example.com/providers/" + slug + ".svg" })
	clock := func() time.Time { return c.now }
	store := memory.New(&memory.Options{Now: clock})
	c.health, err = healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox, Now: clock})
	require.NoError(t, err)
	h := httpapi.Handler(httpapi.Config{
		Authenticate: byTeamID,
		Parts:        (&httpapi.Services{Health: c.health}).Parts(),
	})
	c.Client = contract.NewClient(t, h, httpapi.OpenAPI()).With("x-service-api-key", team.String())
	return c
}

// byTeamID takes the id of a team for its key.
func byTeamID(r *http.Request) (httpapi.Caller, error) {
	id, err := uuid.Parse(r.Header.Get("x-service-api-key"))
	if err != nil {
		return httpapi.Caller{}, healthlab.Unauthenticated
	}
	return httpapi.Caller{Team: healthlab.TeamID{UUID: id}}, nil
}

type object = map[string]any

// create adds a user and returns its id.
func (c *office) create(name string) string {
	c.t.Helper()
	var u struct {
		ID string `json:"user_id"`
	}
	c.Send(c.t, "POST", "/v2/user/", object{"client_user_id": name}).Want(c.t, 200).JSON(c.t, &u)
	return u.ID
}

func (c *office) get(path string) object {
	c.t.Helper()
	var out object
	c.Send(c.t, "GET", path, nil).Want(c.t, 200).JSON(c.t, &out)
	return out
}

func TestCreateUser_returnsTheUserThatReadsReturn(t *testing.T) {
	c := newOffice(t)
	got := c.Send(t, "POST", "/v2/user/", object{
		"client_user_id": "ann", "fallback_time_zone": "Europe/London", "fallback_birth_date": "1980-03-13",
		"ingestion_start": "2026-01-01", "ingestion_end": nil,
	}).Want(t, 200)
	var u object
	got.JSON(t, &u)
	require.Equal(t, object{
		"user_id": u["user_id"], "team_id": team.String(), "client_user_id": "ann", "created_on": "2026-03-04T12:00:00+00:00",
		"connected_sources":   []any{},
		"fallback_time_zone":  object{"id": "Europe/London", "source_slug": "manual", "updated_at": "2026-03-04T12:00:00+00:00"},
		"fallback_birth_date": object{"value": "1980-03-13", "source_slug": "manual", "updated_at": "2026-03-04T12:00:00+00:00"},
		"ingestion_start":     "2026-01-01", "ingestion_end": nil,
	}, u)
	for _, path := range []string{"/v2/user/" + u["user_id"].(string), "/v2/user/resolve/ann", "/v2/user/resolve/ann/"} {
		require.Equal(t, u, c.get(path), path)
	}
	c.Send(t, "POST", "/v2/user", object{"client_user_id": "no slash"}).Want(t, 200)
}

func TestCreateUser_takenClientUserIDNamesTheExistingUser(t *testing.T) {
	c := newOffice(t)
	id := c.create("ann")
	c.now = c.now.Add(time.Hour)
	for _, call := range []func() *contract.Reply{
		func() *contract.Reply { return c.Send(t, "POST", "/v2/user/", object{"client_user_id": "ann"}) },
		func() *contract.Reply {
			return c.Send(t, "PATCH", "/v2/user/"+c.create("bob"), object{"client_user_id": "ann"})
		},
	} {
		var body struct{ Detail object }
		call().Want(t, 400).JSON(t, &body)
		delete(body.Detail, "error_message")
		require.Equal(t, object{"error_type": "INVALID_REQUEST", "user_id": id, "created_on": "2026-03-04T12:00:00+00:00"}, body.Detail)
	}
}

func TestCreateUser_invalidFieldsAreReportedByPath(t *testing.T) {
	c := newOffice(t)
	for _, tt := range []struct {
		name string
		body any
		locs []string
	}{
		{"no body", nil, []string{"body"}},
		{"nothing", object{}, []string{"body.client_user_id"}},
		{"null", object{"client_user_id": nil}, []string{"body.client_user_id"}},
		{"an address", object{"client_user_id": "ann@example.com"}, []string{"body.client_user_id"}},
		{"an unknown key", object{"client_user_id": "a", "fallback_timezone": "UTC"}, []string{"body.fallback_timezone"}},
		{"a wrong type", object{"client_user_id": 7}, []string{"body.client_user_id"}},
		{"a wrong date", object{"client_user_id": "a", "fallback_birth_date": "1980-02-30"}, []string{"body.fallback_birth_date"}},
		{"all at once", object{
			"client_user_id": "", "fallback_time_zone": "Mars/Olympus", "fallback_birth_date": "2100-01-01",
			"ingestion_start": "2026-01-02", "ingestion_end": "2026-01-01",
		}, []string{"body.client_user_id", "body.fallback_time_zone", "body.fallback_birth_date", "body.ingestion_end"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.locs, c.Send(t, "POST", "/v2/user/", tt.body).Want(t, 422).Locs(t))
		})
	}
	require.EqualValues(t, 0, c.get("/v2/user/")["total"])
}

func TestCreateUser_sandboxHasAUserLimit(t *testing.T) {
	c := newOffice(t)
	for i := range healthdata.SandboxUsers {
		c.create(fmt.Sprint(i))
	}
	got := c.Send(t, "POST", "/v2/user/", object{"client_user_id": "one_more"}).Want(t, 400)
	require.Equal(t, "USER_LIMIT_REACHED", got.ErrorType(t))
}

func TestListUsers_isPaged(t *testing.T) {
	c := newOffice(t)
	for _, name := range []string{"a", "b", "c"} {
		c.create(name)
		c.now = c.now.Add(time.Second)
	}
	names := func(page object) (out []string) {
		for _, u := range page["users"].([]any) {
			out = append(out, u.(object)["client_user_id"].(string))
		}
		return out
	}
	for _, tt := range []struct {
		query  string
		names  []string
		offset int
		limit  int
	}{
		{"", []string{"a", "b", "c"}, 0, 100},
		{"?limit=500", []string{"a", "b", "c"}, 0, 500},
		{"?limit=1&offset=1", []string{"b"}, 1, 1},
		{"?offset=3", nil, 3, 100},
	} {
		page := c.get("/v2/user/" + tt.query)
		require.Equal(t, tt.names, names(page), tt.query)
		require.EqualValues(t, 3, page["total"])
		require.EqualValues(t, tt.offset, page["offset"])
		require.EqualValues(t, tt.limit, page["limit"])
	}
	for query, loc := range map[string]string{
		"?limit=501": "query.limit", "?limit=0": "query.limit", "?offset=-1": "query.offset", "?limit=x": "query.limit", "?page=1": "query.page",
	} {
		require.Equal(t, []string{loc}, c.Send(t, "GET", "/v2/user/"+query, nil).Want(t, 422).Locs(t), query)
	}
}

func TestResolveUser_findsByExactClientUserID(t *testing.T) {
	c := newOffice(t)
	for _, name := range []string{"ann", "a/b", "metrics", "100% ü?#", ".."} {
		id := c.create(name)
		require.Equal(t, id, c.get("/v2/user/resolve/" + url.PathEscape(name))["user_id"], name)
	}
	for _, name := range []string{"Ann", "a", "x%20y"} {
		c.Send(t, "GET", "/v2/user/resolve/"+name, nil).Want(t, 404)
	}
}

func TestReadUser_findsOnlyUsersOfTheTeam(t *testing.T) {
	c := newOffice(t)
	id := c.create("ann")
	require.Equal(t, id, c.get("/v2/user/" + id)["user_id"])
	c.Send(t, "GET", "/v2/user/"+uuid.NewString(), nil).Want(t, 404)
	require.Equal(t, []string{"path.user_id"}, c.Send(t, "GET", "/v2/user/ann", nil).Want(t, 422).Locs(t))
	other := c.With("x-service-api-key", uuid.NewString())
	other.Send(t, "GET", "/v2/user/"+id, nil).Want(t, 404)
	other.Send(t, "DELETE", "/v2/user/"+id, nil).Want(t, 404)
	c.With("x-service-api-key", "").Send(t, "GET", "/v2/user/"+id, nil).Want(t, 401)
}

func TestPatchUser_changesOnlyTheGivenFields(t *testing.T) {
	c := newOffice(t)
	id := c.create("ann")
	c.now = c.now.Add(time.Hour)
	before := c.get("/v2/user/" + id)
	patch := func(body any) object {
		t.Helper()
		require.Empty(t, c.Send(t, "PATCH", "/v2/user/"+id, body).Want(t, 204).Body)
		return c.get("/v2/user/" + id)
	}
	require.Equal(t, before, patch(nil))
	require.Equal(t, before, patch(object{}))
	require.Equal(t, before, patch(object{"client_user_id": nil}))

	after := patch(object{"fallback_time_zone": "Asia/Tokyo", "fallback_birth_date": "1980-03-13", "ingestion_start": "2026-01-01", "ingestion_end": "2026-12-31"})
	require.Equal(t, object{"id": "Asia/Tokyo", "source_slug": "manual", "updated_at": "2026-03-04T13:00:00+00:00"}, after["fallback_time_zone"])
	require.Equal(t, "2026-12-31", after["ingestion_end"])
	require.Equal(t, before, patch(object{"fallback_time_zone": nil, "fallback_birth_date": nil, "ingestion_start": nil, "ingestion_end": nil}))

	patch(object{"ingestion_end": "2026-06-30"})
	got := c.Send(t, "PATCH", "/v2/user/"+id, object{"ingestion_start": "2026-07-01"}).Want(t, 422)
	require.Equal(t, []string{"body.ingestion_end"}, got.Locs(t))
	c.Send(t, "PATCH", "/v2/user/"+uuid.NewString(), object{}).Want(t, 404)
}

func TestDeleteUser_canBeUndone(t *testing.T) {
	c := newOffice(t)
	undo := func(query string, body any) *contract.Reply {
		return c.Send(t, "POST", "/v2/user/undo_delete"+query, body)
	}
	id := c.create("ann")
	remove := func() {
		t.Helper()
		require.JSONEq(t, `{"success":true}`, string(c.Send(t, "DELETE", "/v2/user/"+id, nil).Want(t, 200).Body))
	}
	for _, tt := range []struct {
		query string
		body  any
	}{
		{"?user_id=" + id, nil},
		{"?client_user_id=ann", nil},
		{"", object{"user_id": id}},
		{"", object{"client_user_id": "ann", "user_id": nil}},
		{"?user_id=" + id, object{"client_user_id": "bob"}}, // the query wins
	} {
		remove()
		c.Send(t, "GET", "/v2/user/"+id, nil).Want(t, 404)
		c.Send(t, "DELETE", "/v2/user/"+id, nil).Want(t, 404)
		require.JSONEq(t, `{"success":true}`, string(undo(tt.query, tt.body).Want(t, 200).Body))
		require.Equal(t, []any{}, c.get("/v2/user/" + id)["connected_sources"])
	}
	undo("?user_id="+id, nil).Want(t, 404)
	undo("", nil).Want(t, 422)
	undo("", object{}).Want(t, 422)
	undo("?client_user_id=", nil).Want(t, 422)
	undo("?client_user_id=ann&user_id="+id, nil).Want(t, 422)

	remove()
	c.create("ann")
	require.Equal(t, "INVALID_REQUEST", undo("?user_id="+id, nil).Want(t, 400).ErrorType(t))
}

func TestSearchUsers_findsByPartOfTheClientUserIDOrByID(t *testing.T) {
	c := newOffice(t)
	id := c.create("Ann")
	search := func(query string) (out []object) {
		t.Helper()
		c.Send(t, "GET", "/v2/team/users/search?query_id="+query, nil).Want(t, 200).JSON(t, &out)
		return out
	}
	require.Equal(t, id, search("an")[0]["user_id"])
	require.Equal(t, id, search(id)[0]["user_id"])
	require.Equal(t, []object{}, search("%25%25"))
	for _, query := range []string{"", "?query_id=", "?query_id=a"} {
		require.Equal(t, []string{"query.query_id"}, c.Send(t, "GET", "/v2/team/users/search"+query, nil).Want(t, 422).Locs(t))
	}
}

func TestUserSources_areListedAndDisconnected(t *testing.T) {
	c := newOffice(t)
	id := c.create("ann")
	connect := func() {
		_, err := c.health.Connections().Connect(t.Context(), team, healthlab.UserID{UUID: uuid.MustParse(id)}, healthdata.NewConnection{Provider: "apple_health_kit"})
		require.NoError(t, err)
	}
	connect()
	name := object{"name": "Apple HealthKit", "slug": "apple_health_kit", "logo": "https://static.example.com/providers/apple_health_kit.svg"}
	connected := []any{object{"created_on": "2026-03-04T12:00:00+00:00", "source": name, "provider": name}}
	require.Equal(t, connected, c.get("/v2/user/" + id)["connected_sources"])
	require.Equal(t, object{
		"team_id": team.String(), "number_of_users": 1.0, "number_of_connected_sources": 1.0, "number_of_errored_connected_sources": 0.0,
		"number_of_connected_sources_by_week": []any{object{"date": "2026-03-02", "value": 1.0, "all": 1.0}},
		"number_of_ordered_tests":             0.0,
	}, c.get("/v2/user/metrics"))

	path := "/v2/user/" + id + "/"
	require.JSONEq(t, `{"success":true}`, string(c.Send(t, "DELETE", path+"apple_health_kit", nil).Want(t, 200).Body))
	require.Equal(t, []any{}, c.get("/v2/user/" + id)["connected_sources"])
	c.Send(t, "DELETE", path+"apple_health_kit", nil).Want(t, 404)
	require.Equal(t, []string{"path.provider"}, c.Send(t, "DELETE", path+"acme_nothing", nil).Want(t, 422).Locs(t))
	connect() // the app's next sync
	require.Equal(t, connected, c.get("/v2/user/" + id)["connected_sources"])
}

func TestListProviders_filtersBySourceTypeAndDemo(t *testing.T) {
	c := newOffice(t)
	list := func(query string) (out []object) {
		t.Helper()
		c.Send(t, "GET", "/v2/providers"+query, nil).Want(t, 200).JSON(t, &out)
		return out
	}
	require.Len(t, list(""), 40)
	require.Equal(t, []object{{
		"name": "Birch Lab", "slug": "birch_lab", "description": "Results of a laboratory.",
		"logo": "https://static.example.com/providers/birch_lab.svg", "auth_type": "password",
		"supported_resources": []any{"cholesterol", "ige", "igg"},
	}}, list("?source_type=lab"))
	var demos []any
	for _, p := range list("?demo=true") {
		demos = append(demos, p["slug"])
	}
	require.Equal(t, []any{"acme_band", "acme_ring", "acme_watch", "osprey_ring"}, demos)
	require.Len(t, list("?demo=false"), 36)
	require.Equal(t, []string{"query.demo"}, c.Send(t, "GET", "/v2/providers?demo=x", nil).Want(t, 422).Locs(t))
	require.Equal(t, []string{"query.source_type"}, c.Send(t, "GET", "/v2/providers?source_type=x", nil).Want(t, 422).Locs(t))
}

// Every provider has a logo: its own, or one that the service draws without a key.
func TestProviderLogo_isConfiguredOrDrawn(t *testing.T) {
	c := newFixture(t, nil)
	providers := c.health.Providers().WithLogos(func(slug string) string { return httpapi.LogoURL("https://api.example/", slug) })
	require.Equal(t, "https://api.example/v2/providers/manual/logo.svg", *providers.Get("manual").Logo)
	require.Equal(t, "https://cdn.example/band.png", *providers.Get("acme_band").Logo)
	for _, p := range providers.List("") {
		require.NotEmpty(t, *p.Logo)
	}
	require.Nil(t, c.health.Providers().Get("manual").Logo, "the list itself stays")
	reply := c.app().Send(t, "GET", "/v2/providers/acme_band/logo.svg", nil).Want(t, 200)
	require.Equal(t, "image/svg+xml", reply.Header.Get("Content-Type"))
	require.Contains(t, string(reply.Body), ">AB</text>")
	require.NoError(t, xml.Unmarshal(reply.Body, new(struct{})))
	c.app().Send(t, "GET", "/v2/providers/nosuch/logo.svg", nil).Want(t, 404)
}
