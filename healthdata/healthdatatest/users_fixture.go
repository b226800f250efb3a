package healthdatatest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/webhook"
)

// UsersHarness is a fresh, empty store for the suite of users.
type UsersHarness struct {
	// Users is the tested interface.
	Users healthdata.Users
	// Messages reads the events that Users wrote. It uses the same store.
	Messages Messages
	// Data is used to check that Erase removes health data. It uses the same store.
	Data healthdata.Data
}

// usersT is one subtest with its store and helpers.
type usersT struct {
	*testing.T
	UsersHarness
}

func (t usersT) on(sub *testing.T) usersT { return usersT{sub, t.UsersHarness} }

// noon is about the time of all calls in these suites.
var noon = healthlab.At(time.Date(2026, 3, 4, 12, 0, 0, 123_456_000, time.UTC))

// person returns a live user with the given client user id. All other fields are set, except ConnectedSources, which
// stores ignore.
func person(team healthlab.TeamID, name string) healthdata.User {
	return healthdata.User{
		ID: conformance.NewUser(), Team: team, ClientUserID: name, CreatedOn: noon,
		FallbackTimeZone: healthdata.FallbackTimeZone{
			ID: "Pacific/Chatham", SourceSlug: "acme_band", UpdatedAt: healthlab.At(noon.Add(time.Hour)),
		},
		FallbackBirthDate: &healthdata.FallbackBirthDate{
			Value: healthlab.Date{Year: 1904, Month: 2, Day: 29}, SourceSlug: "acme_scale",
			UpdatedAt: healthlab.At(noon.Add(2 * time.Hour)),
		},
		IngestionStart: &healthlab.Date{Year: 1, Month: 1, Day: 1},
		IngestionEnd:   &healthlab.Date{Year: 9999, Month: 12, Day: 31},
		Consents: []healthdata.Consent{
			{Provider: "acme_band", Version: "räv 2", Means: healthdata.ConsentByLink, GrantedAt: new(healthlab.At(noon.Add(time.Hour))), WithdrawnAt: new(healthlab.At(noon.Add(2 * time.Hour)))},
			{Provider: "acme_ring", Means: healthdata.ConsentUnknown},
		},
		Connections: []healthdata.Connection{
			{
				Provider: "acme_band", Status: healthdata.Paused, CreatedOn: noon.Add(3 * time.Hour),
				ExternalUserID: new("räv 🦊"), Scopes: []string{"sleep", "steps"}, Demo: true, Client: "client räv",
				LinkedAt: noon.Add(5 * time.Hour), Due: noon.Add(6 * time.Hour),
				Failure: &healthdata.ConnectionFailure{Type: "unknown", Message: "for people", Details: "also", At: noon.Add(7 * time.Hour)},
			},
			{Provider: "acme_ring", Status: healthdata.ConnectionError, CreatedOn: noon.Add(4 * time.Hour)},
		},
		Revision: 1,
	}
}

// LiveUser returns a user with the given client user id and only the required fields.
func LiveUser(team healthlab.TeamID, name string) healthdata.User {
	return healthdata.User{
		ID: conformance.NewUser(), Team: team, ClientUserID: name, CreatedOn: noon,
		FallbackTimeZone: healthdata.FallbackTimeZone{ID: "UTC", SourceSlug: "default", UpdatedAt: noon},
		Revision:         1,
	}
}

// Event returns an event about u with the given Key and with n in its payload.
func Event(u healthdata.User, key string, n int) healthlab.Event {
	return healthlab.Event{
		ID: uuid.New(), Type: healthdata.EventConnectionCreated, Team: u.Team, User: u.ID,
		Key: key, At: noon.Time, Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)),
	}
}

func (t usersT) insert(u healthdata.User) healthdata.User {
	t.Helper()
	require.NoError(t, t.Users.Insert(t.Context(), u, 0))
	return u
}

func (t usersT) add(team healthlab.TeamID, name string) healthdata.User {
	t.Helper()
	return t.insert(LiveUser(team, name))
}

func (t usersT) get(u healthdata.User) healthdata.User {
	t.Helper()
	got, err := t.Users.Get(t.Context(), u.Team, u.ID)
	require.NoError(t, err)
	return got
}

func (t usersT) update(u healthdata.User, change func(*healthdata.User)) healthdata.User {
	t.Helper()
	got, err := t.tryUpdate(u, change)
	require.NoError(t, err)
	return got
}

func (t usersT) tryUpdate(u healthdata.User, change func(*healthdata.User)) (healthdata.User, error) {
	return t.Users.Update(t.Context(), u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
		change(u)
		return nil, nil
	})
}

func (t usersT) remove(u healthdata.User, at time.Time) healthdata.User {
	t.Helper()
	return t.update(u, func(u *healthdata.User) { u.DeletedAt = at })
}

func (t usersT) list(q healthdata.UserQuery) healthdata.UserPage {
	t.Helper()
	page, err := t.Users.List(t.Context(), q)
	require.NoError(t, err)
	return page
}

// names returns the client user ids of the page that List returns for q.
func (t usersT) names(q healthdata.UserQuery) []string {
	t.Helper()
	out := []string{}
	for _, u := range t.list(q).Users {
		out = append(out, u.ClientUserID)
	}
	return out
}

func (t usersT) written(e healthlab.Event) webhook.Message {
	t.Helper()
	m, err := t.Messages.Message(t.Context(), e.Team, e.ID)
	require.NoError(t, err)
	return m
}

func (t usersT) unwritten(e healthlab.Event) {
	t.Helper()
	_, err := t.Messages.Message(t.Context(), e.Team, e.ID)
	require.ErrorIs(t, err, healthlab.NotFound)
}
