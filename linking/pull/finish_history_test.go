package pull_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// An app says once for each time that its store was connected that the history is there.
func TestFinishHistory_isAcceptedOncePerConnection(t *testing.T) {
	w := newFixture(t, nil, func(p *healthdata.Provider) { p.Class, p.AuthType = "sdk_store", "sdk" })
	s := w.service(nil)
	u, err := w.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "ann"})
	require.NoError(t, err)
	done := pull.FinishedHistory{Provider: band, Resource: "heartrate", From: noon.AddDate(0, 0, -30), To: noon}
	var rule *healthlab.RuleError
	require.ErrorAs(t, s.FinishHistory(t.Context(), team, u.ID, done), &rule)
	require.Equal(t, healthdata.RuleNoConnection, rule.Type)

	_, err = w.health.Connections().Connect(t.Context(), team, u.ID, healthdata.NewConnection{Provider: band})
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, s.FinishHistory(t.Context(), team, u.ID, done))
		w.idle(s)
	}
	require.Len(t, w.said(u.ID, historyDone), 1)
	history := w.tasks(u.ID)[pull.History]
	require.Equal(t, pull.Success, history.Status)
	require.Equal(t, done.From, history.From)
	require.Empty(t, w.cloud.requests, "nobody asks a phone")

	require.NoError(t, w.health.Connections().Disconnect(t.Context(), team, u.ID, band))
	require.ErrorAs(t, s.FinishHistory(t.Context(), team, u.ID, done), &rule)
	w.wait(time.Hour)
	_, err = w.health.Connections().Connect(t.Context(), team, u.ID, healthdata.NewConnection{Provider: band})
	require.NoError(t, err)
	require.NoError(t, s.FinishHistory(t.Context(), team, u.ID, done))
	require.Len(t, w.said(u.ID, historyDone), 2, "it was connected again")

	for _, bad := range []pull.FinishedHistory{
		{Provider: "acme_ring", Resource: "heartrate", From: noon, To: noon},
		{Provider: band, Resource: "moonlight", From: noon, To: noon},
		{Provider: band, Resource: "heartrate", From: noon, To: noon.Add(-time.Second)},
		{Provider: band, Resource: "heartrate", From: noon, To: noon.AddDate(0, 0, 3)},
	} {
		require.ErrorIs(t, s.FinishHistory(t.Context(), team, u.ID, bad), healthlab.Invalid)
	}
	require.ErrorIs(t, s.FinishHistory(t.Context(), team, healthlab.UserID{UUID: uuid.New()}, done), healthlab.NotFound)
	require.ErrorIs(t, s.FinishHistory(t.Context(), healthlab.TeamID{UUID: uuid.New()}, u.ID, done), healthlab.NotFound)
}
