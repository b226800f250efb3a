package webhook_test

import (
	"crypto/sha256"
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

var (
	team = healthlab.TeamID{UUID: uuid.MustParse("0190a000-0000-7000-8000-000000000001")}
	user = healthlab.UserID{UUID: uuid.MustParse("1f0c2b7e-93f4-4c5e-a8e0-2a3f9d0b6c11")}
)

func TestRender_writesTheEnvelopeAsJSON(t *testing.T) {
	ref := "north <7> & \"co\""
	event := healthlab.Event{Type: "daily.data.sleep.created", Team: team, User: user, Seq: 3, Data: json.RawMessage(`{"b": 1,"a":2.50}`)}
	nobody := event
	nobody.User = healthlab.UserID{}
	for _, c := range []struct {
		name     string
		envelope webhook.Envelope
		event    healthlab.Event
		ref      *string
		want     string
	}{
		{"with a reference", webhook.Envelope{}, event, &ref,
			`{"event_type":"daily.data.sleep.created","data":{"b": 1,"a":2.50},"team_id":"0190a000-0000-7000-8000-000000000001",` +
				`"user_id":"1f0c2b7e-93f4-4c5e-a8e0-2a3f9d0b6c11","client_user_id":"north <7> & \"co\""}`},
		{"without a reference", webhook.Envelope{}, event, nil,
			`{"event_type":"daily.data.sleep.created","data":{"b": 1,"a":2.50},"team_id":"0190a000-0000-7000-8000-000000000001",` +
				`"user_id":"1f0c2b7e-93f4-4c5e-a8e0-2a3f9d0b6c11","client_user_id":null}`},
		{"about nobody", webhook.Envelope{}, nobody, &ref,
			`{"event_type":"daily.data.sleep.created","data":{"b": 1,"a":2.50},"team_id":"0190a000-0000-7000-8000-000000000001",` +
				`"user_id":null,"client_user_id":null}`},
		{"with the sequence", webhook.Envelope{Sequence: true}, nobody, nil,
			`{"event_type":"daily.data.sleep.created","data":{"b": 1,"a":2.50},"team_id":"0190a000-0000-7000-8000-000000000001",` +
				`"user_id":null,"client_user_id":null,"sequence":3}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.envelope.Render(c.event, c.ref)
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
			require.True(t, json.Valid(got))
		})
	}
}

func TestRender_refusesIncompleteEvents(t *testing.T) {
	good := healthlab.Event{Type: "a.b.c", Team: team, Data: json.RawMessage(`{}`)}
	for _, c := range []struct {
		name   string
		change func(*healthlab.Event)
	}{
		{"bad type", func(e *healthlab.Event) { e.Type = `a.b.c","x":"` }},
		{"no team", func(e *healthlab.Event) { e.Team = healthlab.TeamID{} }},
		{"no data", func(e *healthlab.Event) { e.Data = nil }},
		{"array", func(e *healthlab.Event) { e.Data = json.RawMessage(`[]`) }},
		{"null", func(e *healthlab.Event) { e.Data = json.RawMessage(`null`) }},
		{"two objects", func(e *healthlab.Event) { e.Data = json.RawMessage(`{}{}`) }},
		{"cut short", func(e *healthlab.Event) { e.Data = json.RawMessage(`{"a":`) }},
		{"too large", func(e *healthlab.Event) {
			e.Data = json.RawMessage(`{"a":"` + strings.Repeat("x", webhook.MaxBody) + `"}`)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := good
			c.change(&e)
			_, err := webhook.Envelope{}.Render(e, nil)
			require.ErrorIs(t, err, healthlab.Invalid)
		})
	}
	_, err := webhook.Envelope{}.Render(good, nil)
	require.NoError(t, err)
}

func TestCatalogue_findsTypesAndRefusesBadOrRepeatedNames(t *testing.T) {
	c, err := webhook.NewCatalogue(
		[]healthlab.EventType{{Name: "daily.data.sleep.created", Mode: healthlab.Latest}, {Name: "labtest.order.updated", Mode: healthlab.Ordered}},
		webhook.EventTypes(),
	)
	require.NoError(t, err)
	found, ok := c.Lookup("daily.data.sleep.created")
	require.True(t, ok)
	require.Equal(t, healthlab.Latest, found.Mode)
	_, ok = c.Lookup("daily.data.sleep.updated")
	require.False(t, ok)
	require.Equal(t, []string{"daily.data.sleep.created", "endpoint.disabled", "labtest.order.updated", "message.attempt.exhausted"}, c.Names())
	require.Equal(t, healthlab.Independent, c.Modes()["endpoint.disabled"])
	require.Len(t, c.Types(), 4)

	_, err = webhook.NewCatalogue([]healthlab.EventType{{Name: "a.b.c"}, {Name: "Bad"}}, []healthlab.EventType{{Name: "a.b.c"}})
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, 2, "a bad name and a repeated one")
}

func TestValidType_acceptsOnlyKnownFormsOfNames(t *testing.T) {
	for _, c := range []struct {
		name string
		ok   bool
	}{
		{"daily.data.heart_rate.created", true},
		{"daily.data.vo2_max.updated", true},
		{"historical.data.sleep.created", true},
		{"historical.data.sleep.updated", false},
		{"labtest.order.created", true},
		{"weekly.data.sleep.created", false},
		{"daily.data.sleep.deleted", true},
		{"historical.data.sleep.deleted", false},
		{"labtest.order", false},
		{"Labtest.order.created", false},
		{"labtest.order.created ", false},
		{"labtest.order.created\n", false},
		{"labtest..created", false},
		{"1abtest.order.created", false},
		{"", false},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.ok, webhook.ValidType(c.name)) })
	}
}

func TestMessageID_isTheEventIDInBase62(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		sum := sha256.Sum256(id[:])
		want := new(big.Int).SetBytes(append(id[:], sum[:4]...))
		digits, ok := strings.CutPrefix(webhook.MessageID(id), "msg_")
		require.True(t, ok)
		require.Len(t, digits, 27)
		got := new(big.Int)
		for _, d := range digits {
			i := strings.IndexRune("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", d)
			got.Add(got.Mul(got, big.NewInt(62)), big.NewInt(int64(i)))
		}
		require.Zero(t, want.Cmp(got))
	})
}
