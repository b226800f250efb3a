package healthdata_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

func TestConsent_withdrawnBlocksConnectingUntilGivenAgain(t *testing.T) {
	var i ids
	w := newFixture(t, healthdata.Options{NewID: i.next})
	u := w.create("ann")
	connect := func() error {
		_, err := w.Connections().Connect(t.Context(), team, u.ID, healthdata.NewConnection{Provider: "apple_health_kit"})
		return err
	}
	require.NoError(t, connect())
	c, err := w.Connections().RecordConsent(t.Context(), team, u.ID, healthdata.NewConsent{Provider: "apple_health_kit", Version: "2", Means: healthdata.ConsentInWriting})
	require.NoError(t, err)
	granted := w.at()
	require.Equal(t, healthdata.Consent{Provider: "apple_health_kit", Version: "2", Means: healthdata.ConsentInWriting, GrantedAt: &granted}, c)

	w.pass(time.Hour)
	require.NoError(t, w.Connections().WithdrawConsent(t.Context(), team, u.ID, "apple_health_kit"))
	withdrawn := w.at()
	events := w.written(&i)
	require.Equal(t, healthdata.EventConsentWithdrawn, events[len(events)-1].Type)
	require.Equal(t, healthdata.EventConnectionDeleted, events[len(events)-2].Type)
	list, err := w.Connections().Consents(t.Context(), team, u.ID)
	require.NoError(t, err)
	c.WithdrawnAt = &withdrawn
	require.Equal(t, []healthdata.Consent{c}, list)

	w.pass(time.Hour)
	n := len(events)
	require.NoError(t, w.Connections().WithdrawConsent(t.Context(), team, u.ID, "apple_health_kit"))
	require.Len(t, w.written(&i), n, "a second withdrawal has no event")
	list, err = w.Connections().Consents(t.Context(), team, u.ID)
	require.NoError(t, err)
	require.Equal(t, []healthdata.Consent{c}, list)

	var rule *healthlab.RuleError
	require.ErrorAs(t, connect(), &rule)
	require.Equal(t, healthdata.RuleConsentWithdrawn, rule.Type)
	_, err = w.Connections().RecordConsent(t.Context(), team, u.ID, healthdata.NewConsent{Provider: "apple_health_kit", Version: "3", Means: healthdata.ConsentByApp})
	require.NoError(t, err)
	require.NoError(t, connect())
}

func TestConnectLinked_recordsTheConsentThatItReceives(t *testing.T) {
	w := newFixture(t, healthdata.Options{})
	u := w.create("ann")
	require.NoError(t, w.Connections().WithdrawConsent(t.Context(), team, u.ID, "manual"))
	at := w.at()
	_, err := w.Connections().ConnectLinked(t.Context(), team, u.ID, healthdata.NewConnection{
		Provider: "manual", Consent: &healthdata.Consent{Version: "7", Means: healthdata.ConsentByLink},
	})
	require.NoError(t, err)
	list, err := w.Connections().Consents(t.Context(), team, u.ID)
	require.NoError(t, err)
	require.Equal(t, []healthdata.Consent{
		{Provider: "manual", Means: healthdata.ConsentUnknown, WithdrawnAt: &at},
		{Provider: "manual", Version: "7", Means: healthdata.ConsentByLink, GrantedAt: &at},
	}, list)
}

func TestConsents_keepTheNewest50OfAProvider(t *testing.T) {
	w := newFixture(t, healthdata.Options{})
	u := w.create("ann")
	for range 60 {
		w.pass(time.Minute)
		_, err := w.Connections().RecordConsent(t.Context(), team, u.ID, healthdata.NewConsent{Provider: "manual", Means: healthdata.ConsentByApp})
		require.NoError(t, err)
	}
	_, err := w.Connections().RecordConsent(t.Context(), team, u.ID, healthdata.NewConsent{Provider: "apple_health_kit", Means: healthdata.ConsentByApp})
	require.NoError(t, err)
	list, err := w.Connections().Consents(t.Context(), team, u.ID)
	require.NoError(t, err)
	require.Len(t, list, 51)
	require.Equal(t, w.at(), *list[49].GrantedAt, "the newest stay")
}

func TestConsent_refusesInvalidFieldsAndUnknownUsers(t *testing.T) {
	w := newFixture(t, healthdata.Options{})
	u := w.create("ann")
	good := healthdata.NewConsent{Provider: "manual", Version: "1", Means: healthdata.ConsentByApp}
	for name, edit := range map[string]func(*healthdata.NewConsent){
		"provider":          func(n *healthdata.NewConsent) { n.Provider = "none_such" },
		"means":             func(n *healthdata.NewConsent) { n.Means = "by_pigeon" },
		"unknown means":     func(n *healthdata.NewConsent) { n.Means = healthdata.ConsentUnknown },
		"long version":      func(n *healthdata.NewConsent) { n.Version = strings.Repeat("x", 65) },
		"control character": func(n *healthdata.NewConsent) { n.Version = "a\x00" },
		"encoding":          func(n *healthdata.NewConsent) { n.Version = "\xff" },
	} {
		t.Run(name, func(t *testing.T) {
			n := good
			edit(&n)
			_, err := w.Connections().RecordConsent(t.Context(), team, u.ID, n)
			require.ErrorIs(t, err, healthlab.Invalid)
		})
	}
	_, err := w.Connections().RecordConsent(t.Context(), healthlab.TeamID{UUID: uuid.New()}, u.ID, good)
	require.ErrorIs(t, err, healthlab.NotFound)
	require.ErrorIs(t, w.Connections().WithdrawConsent(t.Context(), healthlab.TeamID{UUID: uuid.New()}, u.ID, "manual"), healthlab.NotFound)
	require.ErrorIs(t, w.Connections().WithdrawConsent(t.Context(), team, u.ID, "none_such"), healthlab.Invalid)
	list, err := w.Connections().Consents(t.Context(), team, u.ID)
	require.NoError(t, err)
	require.Empty(t, list)
}
