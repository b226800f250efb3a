package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
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
		contract.Pair{Schema: "UserResources", Value: pull.UserResources{}},
		contract.Pair{Schema: "PullStatistics", Value: pull.Statistics{}},
		contract.Pair{Schema: "PullAttempt", Value: pull.Attempt{}},
		contract.Pair{Schema: "RefusedItem", Value: pull.RefusedItem{}},
		contract.Pair{Schema: "RefusedReason", Value: pull.Reason{}},
		contract.Pair{Schema: "UserHistories", Value: pull.UserHistories{}},
		contract.Pair{Schema: "ProviderHistories", Value: pull.ProviderHistories{}},
		contract.Pair{Schema: "HistoryPull", Value: pull.HistoryPull{}},
		contract.Pair{Schema: "PullTimeline", Value: pull.Timeline{}},
	)
}

// newPulls makes what fetches over a store.
func newPulls(t *testing.T, store *memory.Store, health *healthdata.Service, connectors map[string]linking.ProviderConnector, opts *pull.Options) *pull.Service {
	t.Helper()
	seal, err := healthlab.NewAESSealer("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	refresher, err := linking.NewCredentialRefresher(store.Credentials(), health, connectors, seal, &linking.CredentialRefresherOptions{Now: opts.Now})
	require.NoError(t, err)
	s, err := pull.New(store.Pulls(), health, refresher, connectors, opts)
	require.NoError(t, err)
	return s
}

// Pull is a provider whose resources answer differently.
func (d *depot) Pull(ctx context.Context, r linking.PullRequest) (linking.PullPage, error) {
	d.mu.Lock()
	answer := d.answers[r.Resource]
	d.mu.Unlock()
	if answer != nil {
		return linking.PullPage{}, answer(ctx)
	}
	return linking.PullPage{Items: []linking.PullItem{{Source: healthdata.Source{Type: healthdata.SourceWatch}, Device: d.device, Samples: d.items[r.Resource]}}}, nil
}

func (d *depot) answer(resource string, fn func(context.Context) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers[resource] = fn
}

// depot is a service that fetches, over HTTP.
type depot struct {
	*contract.Client
	t       *testing.T
	store   *memory.Store
	health  *healthdata.Service
	pulls   *pull.Service
	mu      sync.Mutex
	answers map[string]func(context.Context) error // by resource, in place of items
	items   map[string][]healthdata.Sample
	device  *healthdata.DeviceInfo
	people  int
}

func newDepot(t *testing.T, now func() time.Time) *depot {
	t.Helper()
	d := &depot{
		t: t, answers: map[string]func(context.Context) error{}, items: map[string][]healthdata.Sample{}, store: memory.New(&memory.Options{Now: now}),
	}
	providers, err := healthdata.NewProviders([]healthdata.Provider{
		{
			Slug: "acme_band", Name: "Band", AuthType: "oauth", Category: "device", Class: "cloud", Demo: true,
			Resources: []healthdata.ProviderResource{
				{Resource: "body"}, {Resource: "heartrate"}, {Resource: "steps"}, {Resource: "workout_stream"},
			},
			Backfill: healthdata.Backfill{DefaultDays: 30, Mode: "pull"},
		},
		{Slug: "manual", Name: "Manual", Category: "app", Class: "manual", Resources: []healthdata.ProviderResource{{Resource: "steps"}}},
	})
	require.NoError(t, err)
	d.health, err = healthdata.New(d.store.Users(), d.store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox, Now: now})
	require.NoError(t, err)
	d.pulls = newPulls(t, d.store, d.health, map[string]linking.ProviderConnector{"acme_band": {Listener: hears{}}}, &pull.Options{Now: now, Demo: d})
	h := httpapi.Handler(httpapi.Config{Authenticate: byTeamID, Parts: (&httpapi.Services{Health: d.health, Pulls: d.pulls}).Parts()})
	d.Client = contract.NewClient(t, h, httpapi.OpenAPI()).With("x-service-api-key", team.String())
	return d
}

func (d *depot) person(name string, providers ...string) healthlab.UserID {
	d.t.Helper()
	d.people++
	u, err := d.health.CreateUser(d.t.Context(), team, healthdata.NewUser{ClientUserID: fmt.Sprint(name, d.people)})
	require.NoError(d.t, err)
	for _, p := range providers {
		_, err = d.health.Connections().ConnectLinked(d.t.Context(), team, u.ID, healthdata.NewConnection{Provider: p, Demo: p == "acme_band"})
		require.NoError(d.t, err)
	}
	return u.ID
}

func TestRefresh_answersPerSourceAndIsRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDepot(t, time.Now)
		d.answer("body", func(context.Context) error { return errors.New("502") })
		ann := d.person("ann", "acme_band")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.pulls.Run(ctx) }()
		time.Sleep(time.Hour)
		d.answer("steps", func(ctx context.Context) error {
			select {
			case <-time.After(20 * time.Second):
			case <-ctx.Done():
			}
			return nil
		})
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
		}, lists(200, "?timeout=5.5"))
		require.Equal(t, 5500*time.Millisecond, time.Since(begin))
		begin = time.Now()
		require.Empty(t, lists(200, "?timeout=60")["in_progress_sources"])
		require.Less(t, time.Since(begin), 20*time.Second, "the task that ran is joined")
		d.answer("steps", nil)
		d.answer("body", nil)
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

func TestRefresh_refusesUsersWithoutSourcesAndInvalidQueries(t *testing.T) {
	d := newDepot(t, time.Now)
	bob := d.person("bob", "manual")
	var out object
	d.Send(t, "POST", "/v2/user/refresh/"+bob.String(), nil).Want(t, 400).JSON(t, &out)
	require.NotEmpty(t, out["error"])
	delete(out, "error")
	require.Equal(t, object{"success": false, "user_id": bob.String(), "failed_sources": []any{}}, out)

	for query, loc := range map[string]string{
		"timeout=4.99": "query.timeout", "timeout=60.01": "query.timeout", "timeout=NaN": "query.timeout",
		"timeout=soon": "query.timeout", "time=10": "query.time",
	} {
		require.Equal(t, []string{loc}, d.Send(t, "POST", "/v2/user/refresh/"+bob.String()+"?"+query, nil).Want(t, 422).Locs(t), query)
	}
	require.Equal(t, []string{"path.user_id"}, d.Send(t, "POST", "/v2/user/refresh/bob", nil).Want(t, 422).Locs(t))
	foreign := d.With("x-service-api-key", otherTeam.String())
	foreign.Send(t, "POST", "/v2/user/refresh/"+bob.String(), nil).Want(t, 404)
	d.With("x-service-api-key", "nobody").Send(t, "POST", "/v2/user/refresh/"+bob.String(), nil).Want(t, 401)
}

// hears is a provider whose messages are signed with a word.
type hears struct{}

func (hears) Listen(_ context.Context, m linking.Message) (linking.ListenResult, error) {
	switch {
	case m.Method == "GET" && len(m.Query["hub.challenge"]) == 1:
		return linking.ListenResult{Reply: []byte(m.Query["hub.challenge"][0])}, nil
	case m.Method == "GET":
		return linking.ListenResult{Reply: []byte(`{"challenge":"x1"}`), ReplyType: "application/json"}, nil
	case m.Method == "HEAD":
		return linking.ListenResult{Status: 200}, nil
	case len(m.Header["Acme-Signature"]) != 1 || m.Header["Acme-Signature"][0] != "genuine":
		return linking.ListenResult{}, healthlab.Unauthenticated
	case len(m.Body) == 0:
		return linking.ListenResult{}, healthlab.Invalid
	}
	return linking.ListenResult{Notifications: []linking.Notification{{ID: string(m.Body), ExternalUserID: "ann at acme"}}}, nil
}

func TestProviderPush_startsAPullOfTheNamedAccount(t *testing.T) {
	now := fixtureNow
	d := newDepot(t, func() time.Time { return now })
	account := "ann at acme"
	u, err := d.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "ann"})
	require.NoError(t, err)
	_, err = d.health.Connections().ConnectLinked(t.Context(), team, u.ID, healthdata.NewConnection{Provider: "acme_band", Demo: true, ExternalUserID: &account})
	require.NoError(t, err)
	work := func() (n int) {
		for done := 1; done > 0; {
			done, err = d.pulls.Step(t.Context())
			require.NoError(t, err)
			n += done
		}
		return n
	}
	require.NotZero(t, work())
	now = now.Add(time.Hour)
	require.NotZero(t, work())
	now = now.Add(time.Minute)
	require.Zero(t, work())
	outside := d.With("x-service-api-key", "")
	outside.Lenient = true // what else a provider sends is its own
	push := func(provider, signature, kind, body string) *contract.Reply {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v2/link/push/"+provider+"?theirs=1", strings.NewReader(body))
		r.Header.Set("Acme-Signature", signature)
		r.Header.Set("Content-Type", kind)
		return outside.Do(t, r)
	}
	push("acme_band", "genuine", "application/x-www-form-urlencoded", "news=1").Want(t, 204)
	require.Equal(t, 3, work(), "all three are looked at")
	push("acme_band", "genuine", "application/x-www-form-urlencoded", "news=1").Want(t, 204)
	require.Zero(t, work(), "the same again")
	push("acme_band", "forged", "application/json", "{}").Want(t, 401)
	push("acme_band", "genuine", "application/json", "").Want(t, 422)
	push("manual", "genuine", "application/json", "{}").Want(t, 404)
	push("nobody", "genuine", "application/json", "{}").Want(t, 404)
	push("acme_band", "genuine", "application/json", strings.Repeat("x", 2<<20)).Want(t, 413)
	got := outside.Send(t, "GET", "/v2/link/push/acme_band?hub.challenge=x1&hub.mode=subscribe", nil).Want(t, 200)
	require.Equal(t, "x1", string(got.Body))
	require.Equal(t, "text/plain; charset=utf-8", got.Header.Get("Content-Type"))
	got = outside.Send(t, "GET", "/v2/link/push/acme_band?challenge=x1", nil).Want(t, 200)
	require.JSONEq(t, `{"challenge":"x1"}`, string(got.Body))
	require.Equal(t, "application/json", got.Header.Get("Content-Type"))
}

// The devices of a user are answered for data that is fetched as for data that is uploaded.
func TestDevices_ofPulledDataAreListed(t *testing.T) {
	now := fixtureNow
	d := newDepot(t, func() time.Time { return now })
	ann := d.person("ann", "acme_band")
	model, serial := "Band 4", "serial-1"
	d.device = &healthdata.DeviceInfo{ID: &serial, Model: &model}
	d.items["heartrate"] = []healthdata.Sample{{Timestamp: healthlab.At(now.Add(-50 * time.Hour)), Unit: "bpm", Value: healthdata.Number(61)}}
	for done := 1; done > 0; {
		var err error
		done, err = d.pulls.Step(t.Context())
		require.NoError(t, err)
	}
	var list []object
	d.Client.Send(t, "GET", "/v2/user/"+ann.String()+"/device", nil).Want(t, 200).JSON(t, &list)
	require.Len(t, list, 1)
	id := list[0]["id"].(string)
	require.Equal(t, object{
		"id": id, "user_id": ann.String(), "provider": "acme_band", "source_type": "watch", "app_id": nil,
		"device_manufacturer": nil, "device_model": "Band 4", "device_version": nil, "device_id": "serial-1",
	}, list[0])
	var one object
	d.Client.Send(t, "GET", "/v2/user/"+ann.String()+"/device/"+id, nil).Want(t, 200).JSON(t, &one)
	require.Equal(t, list[0], one)
	reply := d.Client.Send(t, "GET", "/v2/timeseries/"+ann.String()+"/heartrate/grouped?start_date=2026-01-01", nil).Want(t, 200)
	require.Contains(t, string(reply.Body), `"device_id":"`+id+`"`)
}

func TestIntrospection_listsTheStateOfResourcesAndHistoricalPulls(t *testing.T) {
	now := fixtureNow
	d := newDepot(t, func() time.Time { return now })
	ann, bob := d.person("ann", "acme_band"), d.person("bob", "manual")
	fault := errors.New("502")
	d.answer("body", func(context.Context) error { return fault })
	d.items["heartrate"] = []healthdata.Sample{
		{Timestamp: healthlab.At(now.Add(-50 * time.Hour)), Unit: "bpm", Value: healthdata.Number(61)},
		{Timestamp: healthlab.At(now.Add(-26 * time.Hour)), Unit: "bpm", Value: healthdata.Number(62)},
		{Timestamp: healthlab.At(now.Add(-25 * time.Hour)), Unit: "furlong", Value: healthdata.Number(63)},
	}
	for done := 1; done > 0; {
		var err error
		done, err = d.pulls.Step(t.Context())
		require.NoError(t, err)
	}
	var page struct {
		Data []struct {
			User     string            `json:"user_id"`
			Provider map[string]object `json:"provider"`
		} `json:"data"`
		NextCursor *string `json:"next_cursor"`
	}
	read := func(c *contract.Client, path string) {
		t.Helper()
		page.Data, page.NextCursor = nil, nil
		c.Send(t, "GET", path, nil).Want(t, 200).JSON(t, &page)
	}
	read(d.Client, "/v2/introspect/resources?user_id="+bob.String())
	require.Len(t, page.Data, 1)
	require.Equal(t, bob.String(), page.Data[0].User)
	require.Equal(t, map[string]object{"manual": {}}, page.Data[0].Provider)
	read(d.Client, "/v2/introspect/resources?provider=acme_band")
	require.Len(t, page.Data, 1)
	require.Equal(t, ann.String(), page.Data[0].User)
	heart := page.Data[0].Provider["acme_band"]["heartrate"].(object)
	bad := heart["refused"].([]any)
	require.Len(t, bad, 1)
	require.Equal(t, []any{object{"field": "unit", "code": "unit", "message": bad[0].(object)["reasons"].([]any)[0].(object)["message"]}}, bad[0].(object)["reasons"])
	delete(heart, "refused")
	require.Equal(t, object{
		"last_attempt": object{"timestamp": "2026-03-04T12:00:00+00:00", "status": "success"},
		"oldest_data":  "2026-03-02T10:00:00+00:00", "newest_data": "2026-03-03T10:00:00+00:00", "sent_count": 0.0,
		"stored_by_day": []any{map[string]any{"date": "2026-03-04", "new": 2.0}},
	}, heart)
	require.Equal(t, object{
		"last_attempt": object{"timestamp": "2026-03-04T12:00:00+00:00", "status": "failure"},
		"oldest_data":  nil, "newest_data": nil, "sent_count": 0.0, "stored_by_day": []any{}, "refused": []any{},
	}, page.Data[0].Provider["acme_band"]["body"])

	read(d.Client, "/v2/introspect/historical_pull?provider=acme_band&user_id="+ann.String())
	histories := page.Data[0].Provider["acme_band"]
	require.Equal(t, []any{"workout_stream"}, histories["not_pulled"])
	trace := histories["pulled"].(object)["heartrate"].(object)["trace_id"]
	require.Regexp(t, "^[0-9a-f]{32}$", trace)
	require.Equal(t, object{
		"status": "success", "range_start": "2026-02-02T12:00:00+00:00", "range_end": "2026-03-04T12:00:00+00:00", "days_with_data": 2.0,
		"range_days": 30.0, "fetched_days": 30.0,
		"timeline": object{
			"scheduled_at": "2026-03-04T12:00:00+00:00", "started_at": "2026-03-04T12:00:00+00:00", "ended_at": "2026-03-04T12:00:00+00:00",
		},
		"release": pull.Release, "trace_id": trace, "error_details": nil,
	}, histories["pulled"].(object)["heartrate"])
	body := histories["pulled"].(object)["body"].(object)
	require.Equal(t, "retrying", body["status"])
	require.Equal(t, "provider_unavailable", body["error_details"])
	require.Nil(t, body["timeline"].(object)["ended_at"])

	for range 3 {
		d.person("more", "manual")
	}
	var users []string
	for path := "/v2/introspect/resources?user_limit=2"; ; {
		read(d.Client, path)
		for _, u := range page.Data {
			users = append(users, u.User)
		}
		if page.NextCursor == nil {
			break
		}
		name := []string{"next_cursor", "cursor"}[len(users)/2%2]
		path = "/v2/introspect/resources?user_limit=2&" + name + "=" + *page.NextCursor
	}
	require.Len(t, users, 5)
	require.True(t, slices.IsSorted(users))

	read(d.With("x-service-api-key", otherTeam.String()), "/v2/introspect/resources?user_id="+ann.String())
	require.Empty(t, page.Data, "of another team")
	read(d.Client, "/v2/introspect/historical_pull?provider=nobody")
	require.Empty(t, page.Data)
	for query, loc := range map[string]string{
		"user_limit=0": "query.user_limit", "user_limit=501": "query.user_limit", "user_id=ann": "query.user_id", "next_cursor=x": "query.next_cursor",
		"user=1": "query.user",
	} {
		for _, path := range []string{"/v2/introspect/resources?", "/v2/introspect/historical_pull?"} {
			require.Equal(t, []string{loc}, d.Send(t, "GET", path+query, nil).Want(t, 422).Locs(t), query)
		}
	}
}
