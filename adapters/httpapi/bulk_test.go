package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

func bulkPairs() []contract.Pair {
	return append(httpapi.BulkBodies(),
		contract.Pair{Schema: "BulkPaused", Value: bulk.PauseResult{}},
		contract.Pair{Schema: "BulkExport", Value: bulk.Export{}},
		contract.Pair{Schema: "ConnectionRecipe", Value: bulk.ConnectionTokens{}},
	)
}

func newBulk(t *testing.T, store *memory.Store, links *linking.Service, pulls *pull.Service) *bulk.Service {
	t.Helper()
	seal, err := healthlab.NewAESSealer("bulk", map[string][]byte{"bulk": bytes.Repeat([]byte{3}, 32)})
	require.NoError(t, err)
	s, err := bulk.New(store.Bulk(), links, pulls, seal, nil)
	require.NoError(t, err)
	return s
}

// twoTokens is a provider whose secrets are two tokens.
type twoTokens struct{ code func(string) linking.Grant }

func (twoTokens) Authorize(_ context.Context, r linking.AuthorizeRequest) (string, error) {
	return "https://provider.example/?state=" + r.State, nil
}

func (w twoTokens) Exchange(_ context.Context, r linking.ExchangeRequest) (linking.Grant, error) {
	return w.code(r.Code), nil
}

func (twoTokens) Pull(context.Context, linking.PullRequest) (linking.PullPage, error) {
	return linking.PullPage{}, nil
}

func (twoTokens) Encode(t linking.Tokens) ([]byte, error) {
	if t.Access == "" {
		return nil, healthlab.Invalid
	}
	return []byte(t.Access + " " + t.Refresh), nil
}

func (twoTokens) Decode(secret []byte) (linking.Tokens, error) {
	access, refresh, ok := strings.Cut(string(secret), " ")
	if !ok {
		return linking.Tokens{}, healthlab.Invalid
	}
	return linking.Tokens{Access: access, Refresh: refresh}, nil
}

// removal is a team that moves away.
type removal struct {
	*contract.Client
	t        *testing.T
	settings linking.TeamSettings
	health   *healthdata.Service
	links    *linking.Service
	pulls    *pull.Service
	bulk     *bulk.Service
	store    *memory.Store
	now      time.Time

	connectors map[string]linking.ProviderConnector
	seal       healthlab.Sealer
	ids        drawn
}

var tokenEnd = time.Date(2026, 3, 4, 13, 0, 0, 0, time.UTC)

func newRemoval(t *testing.T) *removal { return newPatientRemoval(t, time.Millisecond) }

// newPatientRemoval is [newRemoval] of callers who wait for so long.
func newPatientRemoval(t *testing.T, wait time.Duration) *removal {
	t.Helper()
	m := &removal{t: t, now: tokenEnd.Add(-time.Hour), settings: linking.TeamSettings{Bulk: true, OwnOAuth: []string{"acme_band", "acme_ring", "acme_own", "acme_watch"}}}
	var list []healthdata.Provider
	for _, slug := range []string{"acme_band", "acme_ring", "acme_own", "acme_bike", "acme_watch"} {
		p := healthdata.Provider{
			Slug: slug, Name: slug, AuthType: "oauth", Category: "device", Class: "cloud", OAuthVersion: 2,
			Resources: []healthdata.ProviderResource{{Resource: "steps"}}, Backfill: healthdata.Backfill{DefaultDays: 10, Mode: "pull"},
		}
		switch slug {
		case "acme_ring":
			p.OAuthVersion = 1
		case "acme_bike":
			p.Throttle = "250_at_a_time"
		case "acme_watch":
			p.Scopes = map[string]healthdata.Scopes{"steps": {Required: []string{"sleep"}}}
		}
		list = append(list, p)
	}
	providers, err := healthdata.NewProviders(list)
	require.NoError(t, err)
	store := memory.New(&memory.Options{Now: func() time.Time { return m.now }})
	m.health, err = healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{
		Environment: healthlab.Production, Now: func() time.Time { return m.now }, NewID: m.ids.next,
	})
	require.NoError(t, err)
	seal, err := healthlab.NewAESSealer("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	port := twoTokens{func(code string) linking.Grant {
		return linking.Grant{ExternalUserID: "account " + code, Scopes: []string{"sleep"}, Secret: []byte("access-" + code + " refresh-" + code), ExpiresAt: tokenEnd}
	}}
	connectors := map[string]linking.ProviderConnector{}
	for _, p := range list {
		connectors[p.Slug] = linking.ProviderConnector{OAuth: port, TokenCodec: port, Puller: port}
	}
	connectors["acme_own"] = linking.ProviderConnector{OAuth: port} // it cannot move
	m.links, err = linking.New(store.Linking(), m.health, connectors, seal, &linking.Options{
		SigningKeys: [][]byte{bytes.Repeat([]byte{2}, 32)},
		Environment: healthlab.Sandbox,
		Now:         func() time.Time { return m.now },
		Settings:    func(context.Context, healthlab.TeamID) (linking.TeamSettings, error) { return m.settings, nil },
	})
	require.NoError(t, err)
	m.pulls = newPulls(t, store, m.health, connectors, &pull.Options{Now: func() time.Time { return m.now }})
	m.bulk, err = bulk.New(store.Bulk(), m.links, m.pulls, seal, &bulk.Options{
		Now: func() time.Time { return m.now }, Wait: wait,
	})
	require.NoError(t, err)
	m.store, m.connectors, m.seal = store, connectors, seal
	h := httpapi.Handler(httpapi.Config{Authenticate: byTeamID, Parts: (&httpapi.Services{Health: m.health, Bulk: m.bulk}).Parts()})
	m.Client = contract.NewClient(t, h, httpapi.OpenAPI()).With("x-service-api-key", team.String())
	return m
}

// person links a new user at a provider, as the code says.
func (m *removal) person(of healthlab.TeamID, provider, code string) healthlab.UserID {
	m.t.Helper()
	u, err := m.health.CreateUser(m.t.Context(), of, healthdata.NewUser{ClientUserID: provider + code})
	require.NoError(m.t, err)
	token, err := m.links.CreateToken(m.t.Context(), of, linking.NewToken{User: u.ID})
	require.NoError(m.t, err)
	away, err := m.links.Authorize(m.t.Context(), token.Token, linking.OAuthSignIn{Provider: provider})
	require.NoError(m.t, err)
	_, state, _ := strings.Cut(away.URL, "state=")
	_, err = m.links.Callback(m.t.Context(), linking.Callback{Provider: provider, State: state, Code: code})
	require.NoError(m.t, err)
	return u.ID
}

func bulkUsers(provider string, users ...healthlab.UserID) map[string]any {
	ids := []string{}
	for _, u := range users {
		ids = append(ids, u.String())
	}
	return map[string]any{"provider": provider, "user_ids": ids}
}

func (m *removal) status(of healthlab.TeamID, user healthlab.UserID, provider string) healthdata.ConnectionStatus {
	m.t.Helper()
	u, err := m.health.User(m.t.Context(), of, user)
	require.NoError(m.t, err)
	return u.Connection(provider).Status
}

func TestBulkPause_pausesConnectionsAndExportReturnsTheirTokens(t *testing.T) {
	m := newRemoval(t)
	ann, bob := m.person(team, "acme_band", "a"), m.person(team, "acme_band", "b")
	ring := m.person(team, "acme_ring", "r")
	foreign := m.person(otherTeam, "acme_band", "f")
	nobody := healthlab.UserID{UUID: uuid.New()}

	var paused bulk.PauseResult
	for range 2 { // again is the same
		m.Send(t, "POST", "/v2/link/bulk_pause", bulkUsers("acme_band", ann, nobody, ann, foreign, ring)).Want(t, 200).JSON(t, &paused)
		require.Equal(t, bulk.PauseResult{Users: []healthlab.UserID{ann}, Missing: []healthlab.UserID{nobody, foreign, ring}}, paused)
	}
	require.Equal(t, healthdata.Paused, m.status(team, ann, "acme_band"))
	require.Equal(t, healthdata.Connected, m.status(team, bob, "acme_band"))
	require.Equal(t, healthdata.Connected, m.status(otherTeam, foreign, "acme_band"))

	recipe := func(u healthlab.UserID, code string) bulk.ConnectionTokens {
		return bulk.ConnectionTokens{
			UserID: u, AccessToken: "access-" + code, RefreshToken: "refresh-" + code, ProviderID: "account " + code,
			ExpiresAt: tokenEnd.Unix(), Scopes: &[]string{"sleep"},
		}
	}
	export := func(body map[string]any) (out bulk.Export) {
		t.Helper()
		reply := m.Send(t, "POST", "/v2/link/bulk_export?team_id=infer_from_context", body).Want(t, 200)
		require.Equal(t, "no-store", reply.Header.Get("Cache-Control"))
		reply.JSON(t, &out)
		return out
	}
	want := []bulk.ConnectionTokens{recipe(ann, "a"), recipe(bob, "b")}
	slices.SortFunc(want, func(a, b bulk.ConnectionTokens) int { return slices.Compare(a.UserID.UUID[:], b.UserID.UUID[:]) })
	require.Equal(t, bulk.Export{Data: want}, export(map[string]any{"provider": "acme_band"}))
	require.Equal(t, bulk.Export{Data: want}, export(map[string]any{"provider": "acme_band", "user_ids": nil, "next_token": nil}))
	require.Equal(t, bulk.Export{Data: []bulk.ConnectionTokens{recipe(ann, "a")}}, export(bulkUsers("acme_band", foreign, ann, nobody)))
	require.Equal(t, bulk.Export{Data: []bulk.ConnectionTokens{}}, export(bulkUsers("acme_band")))
	old := recipe(ring, "r")
	old.ExpiresAt, old.Scopes = bulk.NeverExpires, nil
	require.Equal(t, bulk.Export{Data: []bulk.ConnectionTokens{old}}, export(map[string]any{"provider": "acme_ring"}))

	require.NoError(t, m.links.Disconnect(t.Context(), team, ann, "acme_band"))
	require.Equal(t, bulk.Export{Data: []bulk.ConnectionTokens{recipe(bob, "b")}}, export(map[string]any{"provider": "acme_band"}))
}

func TestBulkExport_pagesContainEveryConnectionOnce(t *testing.T) {
	m := newRemoval(t)
	all := map[healthlab.UserID]bool{}
	for i := range 205 {
		all[m.person(team, "acme_band", fmt.Sprint(i))] = true
	}
	body := map[string]any{"provider": "acme_band"}
	var sizes []int
	var page bulk.Export
	for {
		page = bulk.Export{}
		m.Send(t, "POST", "/v2/link/bulk_export", body).Want(t, 200).JSON(t, &page)
		sizes = append(sizes, len(page.Data))
		for _, r := range page.Data {
			require.True(t, all[r.UserID], "each once")
			delete(all, r.UserID)
		}
		if page.Next == nil {
			break
		}
		body["next_token"] = *page.Next
	}
	require.Equal(t, []int{100, 100, 5}, sizes)
	require.Empty(t, all)
	for _, other := range []map[string]any{
		{"provider": "acme_ring", "next_token": body["next_token"]},
		{"provider": "acme_band", "user_ids": []string{}, "next_token": body["next_token"]},
		{"provider": "acme_band", "next_token": "nonsense"},
	} {
		require.Equal(t, []string{"body.next_token"}, m.Send(t, "POST", "/v2/link/bulk_export", other).Want(t, 422).Locs(t))
	}
	m.With("x-service-api-key", otherTeam.String()).Send(t, "POST", "/v2/link/bulk_export", body).Want(t, 422)
}

func TestBulk_refusesOtherTeamsUnknownProvidersAndBadBodies(t *testing.T) {
	m := newRemoval(t)
	ann := m.person(team, "acme_band", "a")
	for _, path := range []string{"/v2/link/bulk_pause", "/v2/link/bulk_export"} {
		good := bulkUsers("acme_band", ann)
		m.Send(t, "POST", path+"?team_id="+otherTeam.String(), good).Want(t, 404)
		require.Equal(t, []string{"query.team_id"}, m.Send(t, "POST", path+"?team_id=mine", good).Want(t, 422).Locs(t))
		m.Send(t, "POST", path+"?team_id="+team.String(), bulkUsers("acme_band")).Want(t, 200)
		require.Equal(t, []string{"body.provider"}, m.Send(t, "POST", path, bulkUsers("nothing", ann)).Want(t, 422).Locs(t))
		m.Send(t, "POST", path, map[string]any{"provider": "acme_band", "user_ids": []string{"x"}}).Want(t, 422)
		m.settings.Bulk = false
		require.Equal(t, bulk.RuleNotEnabled, m.Send(t, "POST", path, good).Want(t, 403).ErrorType(t))
		m.settings.Bulk = true
	}
	for _, provider := range []string{"acme_bike", "acme_own"} { // of others' credentials, and of none that move
		require.Equal(t, bulk.RuleOtherCredentials, m.Send(t, "POST", "/v2/link/bulk_export", bulkUsers(provider, ann)).Want(t, 400).ErrorType(t))
	}
	require.Equal(t, healthdata.Connected, m.status(team, ann, "acme_band"))
}

// histories are how often a user's history was scheduled, by when.
func (m *removal) scheduled(user healthlab.UserID, provider string) (at time.Time) {
	m.t.Helper()
	tasks, err := m.store.Pulls().Tasks(m.t.Context(), team, user)
	require.NoError(m.t, err)
	for _, k := range tasks {
		if k.Provider == provider && k.Kind == pull.History {
			return k.ScheduledAt
		}
	}
	return at
}

// pull fetches what is due.
func (m *removal) pull() {
	m.t.Helper()
	for n := 1; n > 0; {
		var err error
		n, err = m.pulls.Step(m.t.Context())
		require.NoError(m.t, err)
	}
}

func (m *removal) step() {
	m.t.Helper()
	_, err := m.bulk.Step(m.t.Context())
	require.NoError(m.t, err)
}

func (m *removal) ops(path string) (out httpapi.BulkOps) {
	m.t.Helper()
	m.Send(m.t, "GET", path, nil).Want(m.t, 200).JSON(m.t, &out)
	return out
}

func TestBulkTrigger_schedulesHistoricalPullsOfTheNamedUsers(t *testing.T) {
	m := newRemoval(t)
	const path = "/v2/link/bulk_trigger_historical_pull"
	ann, nobody := m.person(team, "acme_band", "a"), healthlab.UserID{UUID: uuid.New()}
	m.pull() // the history of linking
	first := m.now
	require.Equal(t, first, m.scheduled(ann, "acme_band"))

	m.now = first.Add(24 * time.Hour)
	require.Empty(t, m.Send(t, "POST", path, bulkUsers("acme_band", ann, nobody)).Want(t, 202).Body)
	list := m.ops("/v2/link/bulk_op")
	require.Len(t, list.Data, 1)
	require.Equal(t, bulk.InProgress, list.Data[0].Status)
	require.Equal(t, 2, list.Data[0].Pending)
	require.Nil(t, list.Data[0].EndedAt)
	require.Equal(t, first, m.scheduled(ann, "acme_band"), "it is done in the background")
	m.step()
	require.Equal(t, m.now, m.scheduled(ann, "acme_band"))
	list = m.ops("/v2/link/bulk_op")
	require.Equal(t, bulk.Failure, list.Data[0].Status, "somebody is not there")
	require.Equal(t, 0, list.Data[0].Pending)
	require.Equal(t, 2, list.Data[0].Processed)
	require.Equal(t, m.now, list.Data[0].EndedAt.Time)

	body := bulkUsers("acme_band", ann)
	body["wait_for_completion"] = true
	m.Send(t, "POST", path, body).Want(t, 202) // no worker runs
	page := m.ops("/v2/link/bulk_op?page_size=1")
	require.Equal(t, bulk.InProgress, page.Data[0].Status)
	require.NotNil(t, page.Next)
	page = m.ops("/v2/link/bulk_op?page_size=1&next_cursor=" + *page.Next)
	require.Equal(t, list.Data, page.Data)
	require.Nil(t, page.Next)
	m.Send(t, "GET", "/v2/link/bulk_op?next_cursor=x", nil).Want(t, 422)
	m.Send(t, "GET", "/v2/link/bulk_op?page_size=51", nil).Want(t, 422)
	require.Empty(t, m.ops("/v2/link/bulk_op?page_size=0").Data)

	m.settings.Bulk = false
	m.Send(t, "POST", path, body).Want(t, 403)
	m.Send(t, "GET", "/v2/link/bulk_op", nil).Want(t, 403)
	m.step()
	m.settings.Bulk = true
	require.Equal(t, bulk.Aborted, m.ops("/v2/link/bulk_op").Data[0].Status)
	m.Send(t, "POST", path, bulkUsers("nothing", ann)).Want(t, 422)
	m.Send(t, "POST", path+"?team_id="+otherTeam.String(), body).Want(t, 404)
}

func TestBulkTrigger_startsAtMostEightPullsAMinute(t *testing.T) {
	m := newRemoval(t)
	var users []healthlab.UserID
	for i := range 20 {
		users = append(users, m.person(team, "acme_band", fmt.Sprint(i)))
	}
	m.pull()
	m.now = m.now.Add(time.Hour)
	start := m.now
	m.Send(t, "POST", "/v2/link/bulk_trigger_historical_pull", bulkUsers("acme_band", users...)).Want(t, 202)
	for m.ops("/v2/link/bulk_op").Data[0].Status == bulk.InProgress {
		m.step()
		m.now = m.now.Add(time.Second)
		require.Less(t, m.now.Sub(start), 5*time.Minute)
	}
	minutes := map[time.Duration]int{}
	for _, u := range users {
		minutes[m.scheduled(u, "acme_band").Sub(start).Truncate(time.Minute)]++
	}
	require.Equal(t, map[time.Duration]int{0: 8, time.Minute: 8, 2 * time.Minute: 4}, minutes, "8 in a minute")
}

// With a limit on concurrent histories, the next users start when histories have ended.
// Histories that will never end do not block them.
func TestBulkTrigger_waitsWhileTooManyHistoricalPullsRun(t *testing.T) {
	m := newRemoval(t)
	var users []healthlab.UserID
	for i := range 252 {
		users = append(users, m.person(team, "acme_bike", fmt.Sprint(i)))
	}
	m.pull()
	m.now = m.now.Add(time.Hour)
	start := m.now
	m.Send(t, "POST", "/v2/link/bulk_trigger_historical_pull", bulkUsers("acme_bike", users...)).Want(t, 202)
	turns := func(pending, processed int) {
		t.Helper()
		m.now = m.now.Add(5 * time.Second)
		for range 7 {
			m.step()
		}
		op := m.ops("/v2/link/bulk_op").Data[0]
		require.Equal(t, []int{pending, processed}, []int{op.Pending, op.Processed})
	}
	turns(252, 0)
	require.True(t, m.scheduled(users[250], "acme_bike").Before(start), "250 at a time")
	require.NoError(t, m.links.Disconnect(t.Context(), team, users[0], "acme_bike"))
	turns(251, 1)
	require.True(t, m.scheduled(users[251], "acme_bike").Before(start))
	require.NoError(t, m.health.Connections().Pause(t.Context(), team, users[1], "acme_bike"))
	turns(250, 2)
	require.False(t, m.scheduled(users[251], "acme_bike").Before(start))
	m.pull()
	turns(0, 252)
	require.Equal(t, bulk.Success, m.ops("/v2/link/bulk_op").Data[0].Status)
}

func TestBulkTrigger_waitForCompletionAnswersWhenDone(t *testing.T) {
	m := newPatientRemoval(t, time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.bulk.Run(ctx) }()
	ann := m.person(team, "acme_band", "a")
	body := bulkUsers("acme_band", ann)
	body["wait_for_completion"] = true
	require.Empty(t, m.Send(t, "POST", "/v2/link/bulk_trigger_historical_pull", body).Want(t, 200).Body)
	stop()
	require.NoError(t, <-done)
	require.Equal(t, bulk.Success, m.ops("/v2/link/bulk_op").Data[0].Status)
}
