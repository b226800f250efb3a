package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Events of an erased user are not sent any more, routed or not; events of other users are.
func TestOutbox_eventsOfAnErasedUserAreNotSent(t *testing.T) {
	ctx := t.Context()
	store := newStore()
	team := healthlab.TeamID{UUID: uuid.New()}
	endpoint := webhook.EndpointID{UUID: uuid.New()}
	require.NoError(t, store.Endpoints().Insert(ctx, webhook.Endpoint{ID: endpoint, Team: team, URL: "https://example.com"}, 1))

	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	tell := func(u healthdata.User, key string, deleted time.Time) uuid.UUID {
		t.Helper()
		e := healthlab.Event{
			ID: uuid.New(), Type: healthdata.EventConnectionCreated, Team: team, User: u.ID,
			Key: key, At: at, Data: []byte(`{}`),
		}
		_, err := store.Users().Update(ctx, team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
			u.DeletedAt = deleted
			return []healthlab.Event{e}, nil
		})
		require.NoError(t, err)
		return e.ID
	}
	route := func() int {
		t.Helper()
		routed, err := store.Deliveries().Route(ctx, map[string]healthlab.Mode{
			healthdata.EventConnectionCreated: healthlab.Independent,
		}, 100)
		require.NoError(t, err)
		return routed.Events
	}
	add := func(name string) healthdata.User {
		t.Helper()
		u := healthdata.User{ID: healthlab.UserID{UUID: uuid.New()}, Team: team, ClientUserID: name, CreatedOn: healthlab.At(at)}
		require.NoError(t, store.Users().Insert(ctx, u, 0))
		return u
	}
	ann, bob := add("ann"), add("bob")
	tell(ann, "ann", time.Time{})
	tell(ann, "shared", time.Time{})
	first := tell(bob, "shared", time.Time{})
	require.Equal(t, 3, route())
	tell(ann, "ann", at)
	second := tell(bob, "shared", time.Time{})

	require.NoError(t, store.Users().Erase(ctx, team, ann.ID))
	require.Equal(t, 1, route())
	claimed, err := store.Deliveries().Claim(ctx, webhook.Claim{
		Quotas: []webhook.Quota{{Endpoint: endpoint, Max: 100}}, Lease: time.Hour,
	})
	require.NoError(t, err)
	var got []uuid.UUID
	for _, d := range claimed.Deliveries {
		got = append(got, d.Event)
	}
	require.ElementsMatch(t, []uuid.UUID{first, second}, got)
	m, err := store.WebhookLog().Message(ctx, team, second)
	require.NoError(t, err)
	require.EqualValues(t, 3, m.Seq, "the numbers of a shared key go on")
	third := tell(bob, "shared", time.Time{})
	m, err = store.WebhookLog().Message(ctx, team, third)
	require.NoError(t, err)
	require.EqualValues(t, 4, m.Seq)
}

// One store stands behind all services, and what one of them writes, another sees.
func Example() {
	store := newStore()
	providers, _ := healthdata.NewProviders([]healthdata.Provider{
		{Slug: "manual", Name: "Manual", Category: "app", Class: "manual"},
	})
	eventID := uuid.New()
	health, _ := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{
		Environment: healthlab.Sandbox,
		NewID:       func() uuid.UUID { return eventID },
	})

	// A person connects a source …
	team := healthlab.TeamID{UUID: uuid.New()}
	ann, _ := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "patient-17"})
	_, _ = health.Connections().Connect(ctx, team, ann.ID, healthdata.NewConnection{Provider: "manual"})

	// … and the event of it is there, in the same commit, to be delivered.
	message, _ := store.WebhookLog().Message(ctx, team, eventID)
	fmt.Println(message.Type, message.Seq)
	// Output: provider.connection.created 1
}
