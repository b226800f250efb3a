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
	require.NoError(t, exportSamples(t.Context(), store.Data(), u.Team, u.ID, "heartrate", &exported{to: json.NewEncoder(&out), progress: io.Discard}))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], `{"provider":"acme_band","source_type":"watch","at":"2026-03-01T07:00:00Z","value":61,`)
	require.Contains(t, lines[0], `"utc_offset":3600,"location":"wrist"`)
	require.Contains(t, lines[1], `"at":"2026-03-01T07:01:00Z","end":"2026-03-01T07:02:00Z","value":62.5,"value2":3,"utc_offset":0}`)

	require.ErrorIs(t, exportSamples(t.Context(), store.Data(), u.Team, healthlab.UserID{UUID: uuid.New()}, "heartrate", &exported{to: json.NewEncoder(&out), progress: io.Discard}), healthlab.NotFound)
}

func TestExportCommand_requiresTeamUserResourceAndStore(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"export", "-resource", "heartrate"}, io.Discard, io.Discard)
	require.ErrorContains(t, err, "needs -team, -user, -resource, and one of -data and -database-url")
}
