package healthdata_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// manyFields is a user with every part that a store keeps, in no store's form.
func manyFields() healthdata.User {
	zone := time.FixedZone("", 3600)
	at := time.Date(2026, 3, 4, 12, 0, 0, 1234, zone)
	external := "p-1"
	return healthdata.User{
		ID: healthlab.UserID{UUID: uuid.New()}, Team: team, ClientUserID: "c-1",
		CreatedOn: healthlab.Time{Time: at}, Consents: []healthdata.Consent{{Provider: "acme_band", Version: "1", GrantedAt: &healthlab.Time{Time: at}}},
		Connections: []healthdata.Connection{
			{Provider: "b", CreatedOn: at, Scopes: []string{}},
			{Provider: "a", CreatedOn: at, ExternalUserID: &external, Scopes: []string{"sleep"}, Failure: &healthdata.ConnectionFailure{Type: "x", At: at}},
		},
	}
}

func TestUserNormal_sortsConnectionsAndTrimsTimesOnACopy(t *testing.T) {
	u := manyFields()
	n, err := u.Normal()
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, []string{n.Connections[0].Provider, n.Connections[1].Provider}, "by creation, then by provider")
	require.Nil(t, n.Connections[1].Scopes)
	utc := time.Date(2026, 3, 4, 11, 0, 0, 1000, time.UTC)
	require.Equal(t, utc, n.CreatedOn.Time)
	require.Equal(t, utc, n.Consents[0].GrantedAt.Time)
	require.Equal(t, utc, n.Connections[0].Failure.At)
	again, err := n.Normal()
	require.NoError(t, err)
	require.Equal(t, n, again, "a normal user is its own normal form")

	*n.Connections[0].ExternalUserID, n.Connections[0].Scopes[0] = "other", "other"
	n.Consents[0].GrantedAt.Time = time.Time{}
	require.Equal(t, "p-1", *u.Connections[1].ExternalUserID)
	require.Equal(t, "sleep", u.Connections[1].Scopes[0])
	require.False(t, u.Consents[0].GrantedAt.IsZero())
}

func TestUserNormal_refusesDuplicateConnectionsAndBadText(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*healthdata.User)
	}{
		{"two connections of a provider", func(u *healthdata.User) { u.Connections[0].Provider = "a" }},
		{"NUL in the client user id", func(u *healthdata.User) { u.ClientUserID = "a\x00" }},
		{"NUL in a consent", func(u *healthdata.User) { u.Consents[0].Version = "1\x00" }},
		{"NUL in a failure", func(u *healthdata.User) { u.Connections[1].Failure.Details = "\x00" }},
		{"no UTF-8 in a scope", func(u *healthdata.User) { u.Connections[1].Scopes[0] = "\xff" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := manyFields()
			tt.edit(&u)
			_, err := u.Normal()
			require.ErrorIs(t, err, healthlab.Invalid)
		})
	}
}
