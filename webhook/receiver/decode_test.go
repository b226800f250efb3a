package receiver_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

var (
	team = healthlab.TeamID{UUID: uuid.MustParse("0190a000-0000-7000-8000-000000000001")}
	ann  = healthlab.UserID{UUID: uuid.MustParse("6f1c0b52-5e0c-4b1b-9d53-0e6a7f5c1a01")}
)

// render makes a body as the sender does.
func render(t testing.TB, eventType string, data any, seq int64) []byte {
	t.Helper()
	raw, err := json.Marshal(data)
	require.NoError(t, err)
	reference := "patient-77"
	body, err := webhook.Envelope{Sequence: true}.Render(healthlab.Event{
		ID: uuid.New(), Type: eventType, Team: team, User: ann, Seq: seq, Data: raw,
	}, &reference)
	require.NoError(t, err)
	return body
}

// published Go type of an event type, without its pointer.
func dataType(e healthlab.EventType) reflect.Type {
	g := reflect.TypeOf(e.Data)
	if g.Kind() == reflect.Pointer {
		return g.Elem()
	}
	return g
}

// Every event that is sent comes out as the Go value that it was made from.
func TestDecode_returnsTheValueOfEveryEventType(t *testing.T) {
	for i, e := range receiver.EventTypes() {
		t.Run(e.Name, func(t *testing.T) {
			value := (&filler{n: i}).of(dataType(e))
			if o, ok := value.(*orders.Order); ok {
				o.NextEventID = 0
			}
			got, err := receiver.Decode(render(t, e.Name, value, 7))
			require.NoError(t, err)
			require.Equal(t, e.Name, got.Type)
			require.Equal(t, team, got.Team)
			require.Equal(t, ann, got.User)
			require.Equal(t, "patient-77", got.ClientUserID)
			require.EqualValues(t, 7, got.Sequence)
			require.IsType(t, value, got.Value)
			sent, err := json.Marshal(value)
			require.NoError(t, err)
			again, err := json.Marshal(got.Value)
			require.NoError(t, err)
			require.JSONEq(t, string(sent), string(again))
			require.JSONEq(t, string(sent), string(got.Data))
		})
	}
}

func TestDecode_keepsUnknownTypesAsRawData(t *testing.T) {
	for _, name := range []string{"daily.data.hydration_level.created", "labtest.kit.lost", "something else"} {
		e, err := receiver.Decode([]byte(`{"event_type":"` + name + `","data":{"a":1},"team_id":"` + team.String() + `","user_id":null,"client_user_id":null,"new_key":[]}`))
		require.NoError(t, err)
		require.Equal(t, name, e.Type)
		require.Nil(t, e.Value)
		require.JSONEq(t, `{"a":1}`, string(e.Data))
		require.True(t, e.User.IsZero())
		require.Empty(t, e.ClientUserID)
	}
	// A list of objects is the older form of some events.
	e, err := receiver.Decode([]byte(`{"event_type":"continuous_query.result_table.changed","data":[{}],"team_id":"` + team.String() + `"}`))
	require.NoError(t, err)
	require.JSONEq(t, `[{}]`, string(e.Data))
}

func TestDecode_acceptsOlderFormsOfTheSource(t *testing.T) {
	const head = `"id":"6f1c0b52-0000-4000-8000-000000000001","user_id":"6f1c0b52-5e0c-4b1b-9d53-0e6a7f5c1a01",`
	for _, tt := range []struct {
		name, source string
		want         healthdata.Source
	}{
		{"provider only", `{"provider":"acme_ring","type":"ring"}`, healthdata.Source{Provider: "acme_ring", Slug: "acme_ring", Type: "ring"}},
		{"slug only", `{"slug":"acme_ring","name":"Acme Ring"}`, healthdata.Source{Provider: "acme_ring", Slug: "acme_ring", Name: "Acme Ring", Type: "unknown"}},
		{"both, and they differ", `{"slug":"a","provider":"b"}`, healthdata.Source{Provider: "b", Slug: "a", Type: "unknown"}},
		{"empty texts", `{"provider":"a","sport":"","app_id":"","device_id":null}`, healthdata.Source{Provider: "a", Slug: "a", Type: "unknown"}},
		{"old name", `{"provider":"a","sport":"wheelchair_push"}`, healthdata.Source{Provider: "a", Slug: "a", Type: "unknown", Sport: new("wheelchair_pushing")}},
		{"unknown type", `{"provider":"a","type":"glasses"}`, healthdata.Source{Provider: "a", Slug: "a", Type: "glasses"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := `{` + head + `"source":` + tt.source + `}`
			for _, name := range []string{"daily.data.sleep.created", "daily.data.sleep.updated", "daily.data.distance.updated", "daily.data.workout_stream.created"} {
				e, err := receiver.Decode([]byte(`{"event_type":"` + name + `","data":` + data + `,"team_id":"` + team.String() + `"}`))
				require.NoError(t, err)
				require.Equal(t, tt.want, sourceOf(t, e.Value))
			}
		})
	}
}

func TestDecode_connectionTakesItsProviderFromEitherKey(t *testing.T) {
	for _, key := range []string{"provider", "source"} {
		e, err := receiver.Decode([]byte(`{"event_type":"provider.connection.created","team_id":"` + team.String() + `","data":{"` + key + `":{"slug":"acme_ring"}}}`))
		require.NoError(t, err)
		c, ok := e.Value.(*healthdata.ConnectionCreated)
		require.True(t, ok)
		require.Equal(t, "acme_ring", c.Provider.Slug)
		require.Equal(t, "acme_ring", c.Source.Slug)
	}
}

func sourceOf(t *testing.T, value any) healthdata.Source {
	switch v := value.(type) {
	case *healthdata.Batch:
		return v.Source
	case *healthdata.StreamNotice:
		return v.Source
	case *healthdata.Sleep:
		return v.Source
	}
	require.Fail(t, "a value without a source")
	return healthdata.Source{}
}

func TestDecode_acceptsTimesWithZAndWithoutAnOffset(t *testing.T) {
	e, err := receiver.Decode([]byte(`{"event_type":"daily.data.steps.created","team_id":"` + team.String() + `","data":{
		"user_id":"` + ann.String() + `","source":{"slug":"a"},"data":[{"timestamp":"2026-03-01T07:00:00Z","timezone_offset":null,"value":1,"unit":"count"}]}}`))
	require.NoError(t, err)
	batch, ok := e.Value.(*healthdata.Batch)
	require.True(t, ok)
	require.Equal(t, "2026-03-01T07:00:00+00:00", batch.Data[0].Timestamp.String())
	require.Nil(t, batch.Data[0].TimezoneOffset)
}

func TestDecode_acceptsARetiredEventType(t *testing.T) {
	e, err := receiver.Decode([]byte(`{"event_type":"daily.timeseries.hypnogram.created","team_id":"` + team.String() + `","data":{"data":[]}}`))
	require.NoError(t, err)
	require.IsType(t, &healthdata.Batch{}, e.Value)
	require.Equal(t, "hypnogram", e.Name.Resource)
}

func TestDecode_refusesInvalidBodiesWithoutQuotingThem(t *testing.T) {
	const id = `"team_id":"0190a000-0000-7000-8000-000000000001"`
	for _, tt := range []struct{ name, body string }{
		{"nothing", ``},
		{"not JSON", `secret-77`},
		{"cut short", `{"event_type":"daily.data.sleep.created","data":{"secret-77`},
		{"a list", `["secret-77"]`},
		{"no type", `{"data":{},` + id + `}`},
		{"no team", `{"event_type":"a.b.c","data":{}}`},
		{"team is no id", `{"event_type":"a.b.c","data":{},"team_id":"secret-77"}`},
		{"no data", `{"event_type":"a.b.c",` + id + `}`},
		{"data is null", `{"event_type":"a.b.c","data":null,` + id + `}`},
		{"data is a text", `{"event_type":"a.b.c","data":"secret-77",` + id + `}`},
		{"payload of another type", `{"event_type":"daily.data.sleep.created","data":{"id":"secret-77"},` + id + `}`},
		{"payload is a list", `{"event_type":"daily.data.sleep.created","data":[{"id":"secret-77"}],` + id + `}`},
		{"bad time", `{"event_type":"daily.data.sleep.created","data":{"updated_at":"secret-77"},` + id + `}`},
		{"trailing", `{"event_type":"a.b.c","data":{},` + id + `} secret-77`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := receiver.Decode([]byte(tt.body))
			require.ErrorIs(t, err, healthlab.Invalid)
			require.NotContains(t, err.Error(), "secret-77")
			require.Zero(t, e)
		})
	}
}

func TestEvent_printsNoDataOfThePatient(t *testing.T) {
	e, err := receiver.Decode(render(t, "labtest.order.updated", object{"notes": "secret-77"}, 0))
	require.NoError(t, err)
	e.ID = "msg_1"
	var logs strings.Builder
	slog.New(slog.NewTextHandler(&logs, nil)).Info("x", "event", e)
	for _, text := range []string{logs.String(), fmt.Sprint(e), fmt.Sprintf("%v %+v %#v %s %q %d", e, e, e, e, e, e)} {
		require.Contains(t, text, "msg_1")
		require.Contains(t, text, "labtest.order.updated")
		require.NotContains(t, text, "secret-77")
		require.NotContains(t, text, "patient-77")
	}
}

type object = map[string]any

// No body makes the decoder panic; and what it has understood, written and read again,
// is the same.
func FuzzDecode(f *testing.F) {
	for i, e := range receiver.EventTypes() {
		if i%7 == 0 || !strings.Contains(e.Name, ".data.") {
			f.Add(render(f, e.Name, (&filler{n: i}).of(dataType(e)), int64(i)))
		}
	}
	f.Add([]byte(`{"event_type":"a.b.c","data":{},"team_id":"0190a000-0000-7000-8000-000000000001"}`))
	f.Add([]byte(`{"event_type":"daily.data.note.created","data":{"data":[{"value":"x","tags":[]}]},"team_id":"0190a000-0000-7000-8000-000000000001"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := receiver.Decode(body)
		if err != nil {
			require.ErrorIs(t, err, healthlab.Invalid)
			return
		}
		require.NotEmpty(t, e.Type)
		require.False(t, e.Team.IsZero())
		if e.Value == nil {
			return
		}
		first, err := json.Marshal(e.Value)
		if err != nil {
			return // a time or day that was left out has no published form
		}
		again, err := receiver.Decode([]byte(`{"event_type":"` + e.Type + `","team_id":"` + team.String() + `","data":` + string(first) + `}`))
		require.NoError(t, err)
		second, err := json.Marshal(again.Value)
		require.NoError(t, err)
		require.Equal(t, string(first), string(second))
	})
}
