package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

func TestExportCommand_writesSamplesAsJSONLines(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	store := rowsOf(t, pool)
	at := time.Date(2026, 3, 1, 7, 0, 0, 0, time.UTC)
	u := healthdata.User{
		ID: healthlab.UserID{UUID: uuid.New()}, Team: healthlab.TeamID{UUID: uuid.New()}, ClientUserID: "export", CreatedOn: healthlab.At(at),
		FallbackTimeZone: healthdata.FallbackTimeZone{ID: "UTC", SourceSlug: "default", UpdatedAt: healthlab.At(at)},
	}
	require.NoError(t, store.Users().Insert(t.Context(), u, 0))
	b := new(series.Block)
	b.Append(series.Sample{Time: at.UnixMicro(), Value: 61, Attrs: series.Attrs{Offset: 3600, Location: "wrist"}})
	b.Append(series.Sample{Time: at.Add(time.Minute).UnixMicro(), End: at.Add(2 * time.Minute).UnixMicro(), Value: 62.5, Value2: 3})
	key := healthdata.SeriesKey{Resource: "heartrate", Provider: "acme_band", SourceType: "watch"}
	require.NoError(t, store.Data().MergeSamples(t.Context(), u.Team, u.ID, []healthdata.SampleBatch{{Key: key, Samples: b, Span: series.PerMinute}}, nil))

	var out bytes.Buffer
	require.NoError(t, exportSamples(t.Context(), store.Data(), u.Team, u.ID, healthdata.ResourceBySlug("heartrate"), &exported{to: json.NewEncoder(&out), progress: io.Discard}))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], `{"provider":"acme_band","source_type":"watch","at":"2026-03-01T07:00:00Z","value":61,`)
	require.Contains(t, lines[0], `"utc_offset":3600,"location":"wrist"`)
	require.Contains(t, lines[1], `"at":"2026-03-01T07:01:00Z","end":"2026-03-01T07:02:00Z","value":62.5,"value2":3,"unit":"bpm","utc_offset":0}`)

	require.ErrorIs(t, exportSamples(t.Context(), store.Data(), u.Team, healthlab.UserID{UUID: uuid.New()}, healthdata.ResourceBySlug("heartrate"), &exported{to: json.NewEncoder(&out), progress: io.Discard}), healthlab.NotFound)
}

// A value is in the unit of the resource. What the source sent has the names of the HTTP API.
func TestExportCommand_valuesHaveTheUnitOfTheResourceAndTheSentOnesTheirOwn(t *testing.T) {
	t.Parallel()
	at := healthlab.At(time.Date(2026, 3, 1, 7, 0, 0, 0, time.UTC))
	for _, c := range []struct {
		resource, unit string
		sent           float64
		want           string
	}{
		{"weight", "kg", 81.5, `"value":81.5,"unit":"kg","utc_offset":0}`},
		{"weight", "lb", 180, `"value":81.6466266,"unit":"kg","source_unit":"lb","source_value":180,"utc_offset":0}`},
		{"glucose", "mg/dL", 90, `"unit":"mmol/L","source_unit":"mg/dL","source_value":90,"utc_offset":0}`},
		{"body_temperature", "degF", 98.6, `"unit":"°C","source_unit":"degF","source_value":98.6,"utc_offset":0}`},
		{"distance", "mi", 2, `"value":3218.688,"unit":"m","source_unit":"mi","source_value":2,"utc_offset":0}`},
		{"blood_pressure", "kPa", 16, `"unit":"mmHg","source_unit":"kPa","source_systolic":16,"source_diastolic":10.7,"utc_offset":0}`},
	} {
		t.Run(c.resource+" in "+c.unit, func(t *testing.T) {
			t.Parallel()
			store := memory.New(nil)
			providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: healthdata.SlugManual, Name: "Own data", Category: "provider", Class: "manual"}})
			require.NoError(t, err)
			service, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
			require.NoError(t, err)
			team := healthlab.TeamID{UUID: uuid.New()}
			u, err := service.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "export"})
			require.NoError(t, err)
			_, err = service.Connections().Connect(t.Context(), team, u.ID, healthdata.NewConnection{Provider: healthdata.SlugManual})
			require.NoError(t, err)
			s := healthdata.Sample{Timestamp: at, Unit: c.unit, Value: healthdata.Number(c.sent)}
			switch c.resource {
			case "body_temperature":
				s.End = &s.Timestamp
			case "blood_pressure":
				s.Value, s.Systolic, s.Diastolic = nil, &c.sent, new(10.7)
			case "distance":
				s.End = new(healthlab.At(at.Add(time.Hour)))
			}
			_, err = service.IngestSamples(t.Context(), team, u.ID, c.resource, healthdata.Upload{Provider: healthdata.SlugManual}, []healthdata.Sample{s})
			require.NoError(t, err)

			var out bytes.Buffer
			require.NoError(t, exportSamples(t.Context(), store.Data(), team, u.ID, healthdata.ResourceBySlug(c.resource), &exported{to: json.NewEncoder(&out), progress: io.Discard}))
			require.Contains(t, out.String(), c.want)
		})
	}
}

func TestExportCommand_refusesAResourceThatIsNoTimeseries(t *testing.T) {
	t.Parallel()
	for resource, near := range map[string]string{"nonsense": "", "sleep": "steps", "body_weight": "weight", "Heartrate": "heartrate"} {
		dir := t.TempDir()
		err := run(t.Context(), []string{"export", "-data", dir, "-team", uuid.NewString(), "-user", uuid.NewString(), "-resource", resource}, io.Discard, io.Discard)
		require.ErrorContains(t, err, "-resource: must be one of ", resource)
		require.ErrorContains(t, err, near)
		require.NotContains(t, err.Error(), `"`+resource+`"`)
	}
}

func TestExportCommand_requiresTeamUserResourceAndStore(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"export", "-resource", "heartrate"}, io.Discard, io.Discard)
	require.ErrorContains(t, err, "needs -team, -user, -resource, and one of -data and -database-url")
}
