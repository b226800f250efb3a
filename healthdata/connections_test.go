package healthdata_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/webhook"
)

// ids hands out ids and remembers them, so that a test can ask for the events.
type ids struct{ given []uuid.UUID }

func (i *ids) next() uuid.UUID {
	i.given = append(i.given, uuid.New())
	return i.given[len(i.given)-1]
}

// written returns the events that were written, oldest first.
func (w *fixture) written(i *ids) []webhook.Message {
	w.Helper()
	var out []webhook.Message
	for _, id := range i.given {
		if m, err := w.store.WebhookLog().Message(w.Context(), team, id); err == nil {
			out = append(out, m)
		}
	}
	return out
}

func TestConnect_connectsAPushedProviderOnceAndSendsEvents(t *testing.T) {
	var i ids
	w := newFixture(t, healthdata.Options{NewID: i.next})
	u := w.create("ann")
	first := w.at()
	connect := func(provider string) healthdata.User {
		t.Helper()
		got, err := w.Connections().Connect(t.Context(), team, u.ID, healthdata.NewConnection{Provider: provider})
		require.NoError(t, err)
		return got
	}
	health := healthdata.ProviderName{Logo: "https://example.com/ahk.png", Name: "Apple HealthKit", Slug: "apple_health_kit"}
	manual := healthdata.ProviderName{Name: "Manual", Slug: "manual"}

	got := connect("manual")
	require.Equal(t, []healthdata.ConnectedSource{{CreatedOn: first, Source: manual, Provider: manual}}, got.ConnectedSources)
	w.pass(time.Hour)
	got = connect("apple_health_kit")
	require.Equal(t, []healthdata.ConnectedSource{
		{CreatedOn: first, Source: manual, Provider: manual},
		{CreatedOn: w.at(), Source: health, Provider: health},
	}, got.ConnectedSources)
	require.Len(t, w.written(&i), 2)

	w.pass(time.Hour)
	require.Equal(t, got, connect("apple_health_kit"), "what is connected stays as it is")
	require.Len(t, w.written(&i), 2, "and nobody is told")

	require.NoError(t, w.Connections().Disconnect(t.Context(), team, u.ID, "apple_health_kit"))
	without, err := w.User(t.Context(), team, u.ID)
	require.NoError(t, err)
	require.Equal(t, []healthdata.ConnectedSource{{CreatedOn: first, Source: manual, Provider: manual}}, without.ConnectedSources)
	removed := w.written(&i)
	require.Len(t, removed, 3)
	require.EqualValues(t, 2, removed[2].Seq)
	require.JSONEq(t, `{
		"event_type": "provider.connection.deleted",
		"team_id": "`+team.String()+`", "user_id": "`+u.ID.String()+`", "client_user_id": "ann",
		"data": {
			"user_id": "`+u.ID.String()+`",
			"provider": {"name": "Apple HealthKit", "slug": "apple_health_kit", "logo": "https://example.com/ahk.png"},
			"source": {"name": "Apple HealthKit", "slug": "apple_health_kit", "logo": "https://example.com/ahk.png"}
		}}`, string(removed[2].Body))
	require.ErrorIs(t, w.Connections().Disconnect(t.Context(), team, u.ID, "apple_health_kit"), healthlab.NotFound)

	got = connect("apple_health_kit") // the app syncs again
	require.Equal(t, w.at(), got.ConnectedSources[1].CreatedOn)
	messages := w.written(&i)
	require.Len(t, messages, 4)
	require.EqualValues(t, 3, messages[3].Seq)
	require.Equal(t, messages[1].Key, messages[3].Key)
	require.NotEqual(t, messages[0].Key, messages[1].Key)
	require.JSONEq(t, `{
		"event_type": "provider.connection.created",
		"team_id": "`+team.String()+`", "user_id": "`+u.ID.String()+`", "client_user_id": "ann",
		"data": {
			"user_id": "`+u.ID.String()+`",
			"provider": {"name": "Apple HealthKit", "slug": "apple_health_kit", "logo": "https://example.com/ahk.png"},
			"source": {"name": "Apple HealthKit", "slug": "apple_health_kit", "logo": "https://example.com/ahk.png"},
			"external_user_id": null,
			"resource_availability": {
				"steps": {"status": "available", "scope_requirements": null},
				"sleep": {"status": "available", "scope_requirements": null}
			}
		}
	}`, string(messages[3].Body))
}

func TestConnect_reconnectsAPausedOrFailedConnection(t *testing.T) {
	for _, status := range []healthdata.ConnectionStatus{healthdata.ConnectionError, healthdata.Paused} {
		t.Run(string(status), func(t *testing.T) {
			var i ids
			w := newFixture(t, healthdata.Options{NewID: i.next})
			u := w.create("ann")
			_, err := w.Connections().Connect(t.Context(), team, u.ID, healthdata.NewConnection{Provider: "manual"})
			require.NoError(t, err)
			_, err = w.store.Users().Update(t.Context(), team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
				u.Connections[0].Status = status
				return nil, nil
			})
			require.NoError(t, err)
			seen, err := w.User(t.Context(), team, u.ID)
			require.NoError(t, err)
			require.Len(t, seen.ConnectedSources, 1, "it is there to be seen")
			got, err := w.Connections().Connect(t.Context(), team, u.ID, healthdata.NewConnection{Provider: "manual"})
			require.NoError(t, err)
			require.Equal(t, healthdata.Connected, got.Connection("manual").Status)
			require.Len(t, w.written(&i), 2)
		})
	}
}

func TestConnect_refusesUnknownOrPulledProvidersAndUnknownUsers(t *testing.T) {
	w := newFixture(t, healthdata.Options{})
	u := w.create("ann")
	for _, tt := range []struct{ provider, code string }{
		{"acme_nothing", "provider:unknown_provider"},
		{"", "provider:unknown_provider"},
		{"acme_ring", "provider:not_pushed"},
	} {
		_, err := w.Connections().Connect(t.Context(), team, u.ID, healthdata.NewConnection{Provider: tt.provider})
		require.Equal(t, []string{tt.code}, codes(t, err))
	}
	require.Equal(t, []string{"provider:unknown_provider"}, codes(t, w.Connections().Disconnect(t.Context(), team, u.ID, "acme_nothing")))
	require.ErrorIs(t, w.Connections().Disconnect(t.Context(), team, u.ID, "manual"), healthlab.NotFound)
	stranger := healthlab.UserID{UUID: uuid.New()}
	require.ErrorIs(t, w.Connections().Disconnect(t.Context(), team, stranger, "manual"), healthlab.NotFound)
	_, err := w.Connections().Connect(t.Context(), team, stranger, healthdata.NewConnection{Provider: "manual"})
	require.ErrorIs(t, err, healthlab.NotFound)
}

func TestConnectLinked_storesScopesAndUpdatesThemWhenLinkedAgain(t *testing.T) {
	var i ids
	w := newFixture(t, healthdata.Options{NewID: i.next})
	u := w.create("ann")
	n := healthdata.NewConnection{Provider: "acme_ring", ExternalUserID: new("r-1"), Scopes: []string{"sleep.read"}}
	first, err := w.Connections().ConnectLinked(t.Context(), team, u.ID, n)
	require.NoError(t, err)
	w.pass(time.Hour)
	n.Scopes = append(n.Scopes, "move.read")
	again, err := w.Connections().ConnectLinked(t.Context(), team, u.ID, n)
	require.NoError(t, err)
	require.Equal(t, first.ConnectedSources, again.ConnectedSources, "a relink is the same connection")
	require.Equal(t, []string{"sleep.read", "move.read"}, again.Connection("acme_ring").Scopes)

	messages := w.written(&i)
	require.Len(t, messages, 2, "and is announced again")
	status := func(m webhook.Message) map[string]string {
		var body struct{ Data healthdata.ConnectionCreated }
		require.NoError(t, json.Unmarshal(m.Body, &body))
		require.Equal(t, "r-1", *body.Data.ExternalUserID)
		out := map[string]string{}
		for resource, a := range body.Data.ResourceAvailability {
			out[resource] = a.Status
		}
		return out
	}
	require.Equal(t, map[string]string{"sleep": "available", "activity": "unavailable"}, status(messages[0]))
	require.Equal(t, map[string]string{"sleep": "available", "activity": "available"}, status(messages[1]))

	require.NoError(t, w.Connections().Disconnect(t.Context(), team, u.ID, "acme_ring"))
	stored, err := w.store.Users().Get(t.Context(), team, u.ID)
	require.NoError(t, err)
	require.Nil(t, stored.Connections[0].Scopes, "grants do not outlive the connection")
}

func TestConnectLinked_demoRequiresASandboxAndADemoProvider(t *testing.T) {
	for _, tt := range []struct {
		name, provider string
		env            healthlab.Environment
		ok             bool
	}{
		{"sandbox", "acme_ring", healthlab.Sandbox, true},
		{"production", "acme_ring", healthlab.Production, false},
		{"provider without", "manual", healthlab.Sandbox, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newFixture(t, healthdata.Options{Environment: tt.env})
			u := w.create("ann")
			_, err := w.Connections().ConnectLinked(t.Context(), team, u.ID, healthdata.NewConnection{Provider: tt.provider, Demo: true})
			require.Equal(t, tt.ok, err == nil)
			require.Equal(t, !tt.ok, healthlab.KindOf(err) == healthlab.Precondition)
		})
	}
}

func TestDeleteUser_deregistersItsConnections(t *testing.T) {
	w := newFixture(t, healthdata.Options{})
	u := w.create("ann")
	for _, p := range []string{"manual", "apple_health_kit", "acme_ring"} {
		_, err := w.Connections().ConnectLinked(t.Context(), team, u.ID, healthdata.NewConnection{Provider: p})
		require.NoError(t, err)
	}
	w.delete(u)
	stored, err := w.store.Users().Get(t.Context(), team, u.ID)
	require.NoError(t, err)
	require.Len(t, stored.Connections, 3)
	for _, c := range stored.Connections {
		require.Equal(t, healthdata.Deregistered, c.Status)
	}
}

func TestAvailability_dependsOnTheGrantedScopes(t *testing.T) {
	p := &healthdata.Provider{
		Resources: []healthdata.ProviderResource{{Resource: "sleep"}, {Resource: "steps"}},
		Scopes: map[string]healthdata.Scopes{
			"sleep": {Required: []string{"a", "b"}, Optional: []string{"c"}},
		},
	}
	type scopes = healthdata.Scopes
	none := []string{}
	for _, tt := range []struct {
		name    string
		granted []string
		status  string
		given   scopes
		denied  scopes
	}{
		{"nothing", nil, "unavailable", scopes{none, none}, scopes{[]string{"a", "b"}, []string{"c"}}},
		{"one required", []string{"b"}, "unavailable", scopes{[]string{"b"}, none}, scopes{[]string{"a"}, []string{"c"}}},
		{"all required", []string{"b", "a", "x"}, "available", scopes{[]string{"a", "b"}, none}, scopes{none, []string{"c"}}},
		{"everything", []string{"a", "b", "c"}, "available", scopes{[]string{"a", "b"}, []string{"c"}}, scopes{none, none}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			empty := &healthdata.ScopeRequirements{UserGranted: scopes{none, none}, UserDenied: scopes{none, none}}
			require.Equal(t, map[string]healthdata.Availability{
				"sleep": {Status: tt.status, ScopeRequirements: &healthdata.ScopeRequirements{UserGranted: tt.given, UserDenied: tt.denied}},
				"steps": {Status: "available", ScopeRequirements: empty},
			}, p.Availability(tt.granted))
		})
	}
}

func TestConnectionEvents_areOrderedAndHaveAStructAsData(t *testing.T) {
	found := 0
	for _, e := range healthdata.EventTypes() {
		if e.Name == healthdata.EventConnectionCreated || e.Name == healthdata.EventConnectionError {
			found++
			require.Equal(t, healthlab.Ordered, e.Mode)
			require.Equal(t, reflect.Struct, reflect.TypeOf(e.Data).Kind())
		}
	}
	require.Equal(t, 2, found)
}

func TestLogs_containNoExternalIDScopeOrClientUserID(t *testing.T) {
	w := newFixture(t, healthdata.Options{})
	const secret = "ann@example.com"
	n := healthdata.NewConnection{Provider: "acme_ring", ExternalUserID: new(secret), Scopes: []string{secret}}
	u, err := w.Connections().ConnectLinked(t.Context(), team, w.create("very-private").ID, n)
	require.NoError(t, err)
	var logs bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&logs, nil))
	log.Info("x", "new", n, "connection", u.Connections[0], "user", u)
	require.NotContains(t, logs.String(), secret)
	require.NotContains(t, logs.String(), "very-private")
	require.Contains(t, logs.String(), u.ID.String())
}

// A source to which data is sent stays connected when the ingestion window ends.
func TestConnection_staysConnectedAfterTheIngestionEnd(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	store := healthdata.NewConnection{Provider: "acme_store"}
	status := func() healthdata.ConnectionStatus {
		list, err := s.Connections().List(t.Context(), s.team, s.user)
		require.NoError(t, err)
		i := slices.IndexFunc(list, func(c healthdata.ConnectionView) bool { return c.Slug == "acme_store" })
		return list[i].Status
	}
	_, err := s.Connections().Connect(t.Context(), s.team, s.user, store)
	require.NoError(t, err)
	_, err = s.PatchUser(t.Context(), s.team, s.user, healthdata.UserPatch{IngestionEnd: healthdata.SetTo(healthlab.DateOf(s.now).AddDays(-8))})
	require.NoError(t, err)
	require.Equal(t, healthdata.Connected, status())
	require.NoError(t, s.Connections().Pause(t.Context(), s.team, s.user, "acme_store"))
	require.Equal(t, healthdata.Paused, status())
	_, err = s.Connections().Connect(t.Context(), s.team, s.user, store)
	require.NoError(t, err)
	require.Equal(t, healthdata.Connected, status())
}

func TestFailConnection_marksItFailedUntilItIsLinkedAgain(t *testing.T) {
	var i ids
	w := newFixture(t, healthdata.Options{NewID: i.next})
	u := w.create("ann")
	failure := healthdata.ConnectionFailure{Type: healthdata.FailureTokenRefresh, Message: "link again", Details: "refused"}
	fails := func() error { return w.Connections().Fail(t.Context(), team, u.ID, "acme_ring", failure) }
	require.ErrorIs(t, fails(), healthlab.NotFound, "not connected")
	_, err := w.Connections().ConnectLinked(t.Context(), team, u.ID, healthdata.NewConnection{Provider: "acme_ring"})
	require.NoError(t, err)

	w.pass(time.Hour)
	for range 2 { // announced once
		require.NoError(t, fails())
	}
	events := w.written(&i)
	require.Len(t, events, 2)
	require.Equal(t, healthdata.EventConnectionError, events[1].Type)
	require.EqualValues(t, 2, events[1].Seq)
	var body struct{ Data healthdata.ConnectionFailed }
	require.NoError(t, json.Unmarshal(events[1].Body, &body))
	require.Equal(t, healthdata.ConnectionFailed{
		UserID: u.ID, Provider: "acme_ring", ErrorType: "token_refresh_failed", Message: "link again", ErrorDetails: "refused",
	}, body.Data)
	list, err := w.Connections().List(t.Context(), team, u.ID)
	require.NoError(t, err)
	require.Equal(t, healthdata.ConnectionError, list[0].Status)

	// Linking again makes it good.
	_, err = w.Connections().ConnectLinked(t.Context(), team, u.ID, healthdata.NewConnection{Provider: "acme_ring"})
	require.NoError(t, err)
	list, err = w.Connections().List(t.Context(), team, u.ID)
	require.NoError(t, err)
	require.Equal(t, healthdata.Connected, list[0].Status)
	require.ErrorIs(t, w.Connections().Fail(t.Context(), team, u.ID, "nobody", failure), healthlab.Invalid)
}
