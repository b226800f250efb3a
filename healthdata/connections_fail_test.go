package healthdata_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

func TestFailConnection(t *testing.T) {
	var i ids
	w := newFixture(t, healthdata.Options{NewID: i.next})
	u := w.create("ann")
	failure := healthdata.ConnectionFailure{Type: healthdata.FailureTokenRefresh, Message: "link again", Details: "refused"}
	fails := func() error { return w.FailConnection(t.Context(), team, u.ID, "acme_ring", failure) }
	require.ErrorIs(t, fails(), healthlab.NotFound, "not connected")
	_, err := w.Establish(t.Context(), team, u.ID, healthdata.NewConnection{Provider: "acme_ring"})
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
	list, err := w.Connections(t.Context(), team, u.ID)
	require.NoError(t, err)
	require.Equal(t, healthdata.ConnectionError, list[0].Status)

	// Linking again makes it good.
	_, err = w.Establish(t.Context(), team, u.ID, healthdata.NewConnection{Provider: "acme_ring"})
	require.NoError(t, err)
	list, err = w.Connections(t.Context(), team, u.ID)
	require.NoError(t, err)
	require.Equal(t, healthdata.Connected, list[0].Status)
	require.ErrorIs(t, w.FailConnection(t.Context(), team, u.ID, "nobody", failure), healthlab.Invalid)
}
