package teamsettingstest

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

// RunStore checks the contract of [teamsettings.Store]. All cases share one store, and each has its own teams.
func RunStore(t *testing.T, store teamsettings.Store) {
	for name, run := range conformance.Sorted(teamCases) {
		t.Run(name, func(t *testing.T) { run(teamT{t, store}) })
	}
}

// teamT is one subtest.
type teamT struct {
	*testing.T
	store teamsettings.Store
}

// allChosen returns choices without a nil field.
func allChosen() teamsettings.Choices {
	return teamsettings.Choices{
		VerbMode: new(healthdata.VerbSplit), PushHistoricalData: new(true), ProviderRawData: new(false), RejectDuplicates: new(true),
		PartialWebhooks: new(true), Minors: new(false), PatientSMS: new(false), PatientEmail: new(true),
		DevicesApart: new(true), ExplicitConnect: new(true), LinkOrigins: []string{"https://app.example"}, Texts: new(true), CriticalEmail: new("on-call@example.com"), CriticalLadder: []teamsettings.LadderStep{{AfterMinutes: 5, To: "Frontdesk"}, {AfterMinutes: 60, To: "Chefärztin"}},
		Practice:      new("Riverside"),
		EventPrefixes: []string{"labtest.", "daily.data.sleep"}, Destinations: &teamsettings.Destinations{Preferred: "nats", Enabled: []string{"nats"}},
		Brand: &teamsettings.Brand{
			CompanyName: "Ünal & Söhne", LogoURL: "https://cdn.example/logo.png", Color: "#8A2be2", Website: "https://example.com",
			SupportEmail: "help@example.com", SupportContact: "+1 217 555 0100", Address: "1 Example Street",
		},
		History: map[string]healthdata.HistoryChoice{
			"acme_band": {Default: 30, Resources: map[string]int{"steps": 7, "sleep": 90}}, "acme_ring": {Default: 1},
		},
		Scopes: map[string]teamsettings.ScopeChoice{"acme_ring": {Must: []string{"sleep"}, May: []string{"move", "läuft"}}, "acme_band": {May: []string{"move"}}},
	}
}

func (t teamT) get(team healthlab.TeamID) teamsettings.Choices {
	t.Helper()
	c, err := t.store.Choices(t.Context(), team)
	require.NoError(t, err)
	return c
}

func (t teamT) set(team healthlab.TeamID, c teamsettings.Choices) teamsettings.Choices {
	t.Helper()
	got, err := t.store.UpdateChoices(t.Context(), team, func(teamsettings.Choices) (teamsettings.Choices, error) { return c, nil })
	require.NoError(t, err)
	return got
}

var teamCases = map[string]func(t teamT){
	"RoundTrip": func(t teamT) {
		one, two := conformance.NewTeam(), conformance.NewTeam()
		require.Zero(t, t.get(one))
		require.Equal(t, allChosen(), t.set(one, allChosen()))
		require.Equal(t, allChosen(), t.get(one))
		require.Zero(t, t.get(two), "another team's")
		some := teamsettings.Choices{Minors: new(false)}
		require.Equal(t, some, t.set(one, some), "what is taken away is gone")
		require.Equal(t, some, t.get(one))
		require.Zero(t, t.set(one, teamsettings.Choices{History: map[string]healthdata.HistoryChoice{}, Scopes: map[string]teamsettings.ScopeChoice{}}), "empty ones are nil")
		require.Zero(t, t.get(one))
	},
	"Refused": func(t teamT) {
		team := conformance.NewTeam()
		t.set(team, allChosen())
		_, err := t.store.UpdateChoices(t.Context(), team, func(old teamsettings.Choices) (teamsettings.Choices, error) {
			return teamsettings.Choices{}, conformance.ErrRefused
		})
		require.ErrorIs(t, err, conformance.ErrRefused)
		require.Equal(t, allChosen(), t.get(team))
		_, err = t.store.UpdateChoices(conformance.Ended(t.T), team, func(teamsettings.Choices) (teamsettings.Choices, error) { panic("called") })
		require.ErrorIs(t, err, context.Canceled)
		_, err = t.store.Choices(conformance.Ended(t.T), team)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, allChosen(), t.get(team))
	},
	"Aliasing": func(t teamT) {
		team := conformance.NewTeam()
		spoil := func(c teamsettings.Choices) {
			*c.Minors, c.Brand.Color = true, "000"
			c.EventPrefixes[0], c.Destinations.Enabled[0] = "x", "x"
			c.History["acme_band"].Resources["steps"] = 99
			delete(c.History, "acme_ring")
			c.Scopes["acme_ring"].Must[0] = "other"
			delete(c.Scopes, "acme_band")
		}
		given := allChosen()
		spoil(t.set(team, given))
		require.Equal(t, allChosen(), t.get(team), "what was returned")
		spoil(given)
		require.Equal(t, allChosen(), t.get(team), "what was given")
		spoil(t.get(team))
		require.Equal(t, allChosen(), t.get(team), "what was read")
		_, err := t.store.UpdateChoices(t.Context(), team, func(old teamsettings.Choices) (teamsettings.Choices, error) {
			spoil(old)
			return old, conformance.ErrRefused
		})
		require.ErrorIs(t, err, conformance.ErrRefused)
		require.Equal(t, allChosen(), t.get(team), "what change saw")
	},
	"NoLostUpdates": func(t teamT) {
		team := conformance.NewTeam()
		wins := conformance.Successes(conformance.Together(8, func(i int) error {
			_, err := t.store.UpdateChoices(t.Context(), team, func(old teamsettings.Choices) (teamsettings.Choices, error) {
				if old.History == nil {
					old.History = map[string]healthdata.HistoryChoice{}
				}
				old.History[fmt.Sprintf("provider_%d", i)] = healthdata.HistoryChoice{Default: i + 1}
				return old, nil
			})
			return err
		}))
		require.Positive(t, wins)
		require.Len(t, t.get(team).History, wins)
	},
}
