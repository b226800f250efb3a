package exportfiles_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/google/uuid"
	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/exportfiles"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/privacy/personexport"
)

var began = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// person is a user with a service in memory.
type person struct {
	t      *testing.T
	health *healthdata.Service
	team   healthlab.TeamID
	user   healthlab.UserID
}

func newPerson(t *testing.T) *person {
	t.Helper()
	var resources []healthdata.ProviderResource
	for _, r := range healthdata.Resources() {
		resources = append(resources, healthdata.ProviderResource{Resource: r.Slug})
	}
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", Category: "app", Class: "manual", Resources: resources}})
	require.NoError(t, err)
	store := memory.New(nil)
	health, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{
		Environment: healthlab.Sandbox, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return began.AddDate(1, 0, 0) },
	})
	require.NoError(t, err)
	p := &person{t: t, health: health, team: healthlab.TeamID{UUID: uuid.New()}}
	u, err := health.CreateUser(t.Context(), p.team, healthdata.NewUser{ClientUserID: "one"})
	require.NoError(t, err)
	p.user = u.ID
	_, err = health.Connections().Connect(t.Context(), p.team, p.user, healthdata.NewConnection{Provider: "manual"})
	require.NoError(t, err)
	return p
}

// upload adds n samples of one a second, in batches.
func (p *person) upload(resource, unit string, n int) {
	p.t.Helper()
	const batch = 20_000
	up := healthdata.Upload{Provider: "manual", Source: healthdata.Source{Type: healthdata.SourceWatch}}
	for from := 0; from < n; from += batch {
		var samples []healthdata.Sample
		for i := from; i < min(n, from+batch); i++ {
			samples = append(samples, healthdata.Sample{
				Timestamp: healthlab.At(began.Add(time.Duration(i) * time.Second)), Unit: unit, Value: healthdata.Number(float64(50 + i%70)),
			})
		}
		_, err := p.health.IngestSamples(p.t.Context(), p.team, p.user, resource, up, samples)
		require.NoError(p.t, err)
	}
}

func (p *person) source(folder string) personexport.Source {
	return exportfiles.Sources(exportfiles.Services{Health: p.health})[folder]
}

func (p *person) write(folder, name string, w io.Writer) {
	p.t.Helper()
	require.NoError(p.t, p.source(folder).Write(p.t.Context(), p.team, p.user, name, w))
}

// The Parquet file has the samples of the NDJSON file, and both have all of them.
func TestSamples_parquetAndNDJSONContainTheSameSamples(t *testing.T) {
	p := newPerson(t)
	p.upload("heartrate", "bpm", 30_000)
	p.upload("glucose", "mmol/L", 3)
	names, err := p.source("samples").Files(t.Context(), p.team, p.user)
	require.NoError(t, err)
	require.Equal(t, []string{"heartrate.ndjson", "heartrate.parquet", "glucose.ndjson", "glucose.parquet"}, names)
	var text, table bytes.Buffer
	p.write("samples", "heartrate.ndjson", &text)
	p.write("samples", "heartrate.parquet", &table)
	rows, err := pq.Read[exportfiles.Sample](bytes.NewReader(table.Bytes()), int64(table.Len()))
	require.NoError(t, err)
	require.Len(t, rows, 30_000)
	lines := bufio.NewScanner(&text)
	for i := range rows {
		require.True(t, lines.Scan())
		var line exportfiles.Sample
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		rows[i].At = rows[i].At.UTC()
		require.Equal(t, rows[i], line)
		require.Equal(t, began.Add(time.Duration(i)*time.Second), line.At)
		require.InDelta(t, float64(50+i%70), line.Value, 0)
		require.Equal(t, "bpm", line.Unit)
	}
	require.False(t, lines.Scan())
}

// An interval has its end, in both files.
func TestSamples_intervalsKeepTheirEnd(t *testing.T) {
	p := newPerson(t)
	end := healthlab.At(began.Add(time.Hour))
	_, err := p.health.IngestSamples(t.Context(), p.team, p.user, "steps", healthdata.Upload{Provider: "manual", Source: healthdata.Source{Type: healthdata.SourceWatch}},
		[]healthdata.Sample{{Timestamp: healthlab.At(began), End: &end, Unit: "count", Value: healthdata.Number(700)}})
	require.NoError(t, err)
	var text, table bytes.Buffer
	p.write("samples", "steps.ndjson", &text)
	require.Contains(t, text.String(), `"end":"2026-03-01T01:00:00Z","value":700`)
	p.write("samples", "steps.parquet", &table)
	rows, err := pq.Read[exportfiles.Sample](bytes.NewReader(table.Bytes()), int64(table.Len()))
	require.NoError(t, err)
	require.Equal(t, end.Time, rows[0].End.UTC())
}

// Summaries of every age are in their file, each once, and a resource without any has none.
func TestSummaries_ofAnyDateAreWrittenOnce(t *testing.T) {
	p := newPerson(t)
	up := healthdata.Upload{Provider: "manual", Source: healthdata.Source{Type: healthdata.SourceWatch}}
	days := []healthlab.Date{{Year: 1990, Month: 5, Day: 1}, {Year: 1999, Month: 12, Day: 31}, {Year: 2000, Month: 1, Day: 1}, {Year: 2025, Month: 12, Day: 31}, {Year: 2026, Month: 1, Day: 1}}
	for _, day := range days {
		_, err := p.health.IngestSummaries(t.Context(), p.team, p.user, "activity", up, []healthdata.Summary{&healthdata.Activity{CalendarDate: day, Steps: new(int64(900))}})
		require.NoError(t, err)
	}
	var text bytes.Buffer
	p.write("summaries", "activity.ndjson", &text)
	lines := bytes.Split(bytes.TrimSpace(text.Bytes()), []byte("\n"))
	require.Len(t, lines, len(days))
	for i, line := range lines {
		require.Contains(t, string(line), `"index":"`+days[i].String())
		require.Contains(t, string(line), `"steps":900`)
	}
	require.ErrorIs(t, p.source("summaries").Write(t.Context(), p.team, p.user, "sleep.ndjson", io.Discard), healthlab.NotFound)
	require.ErrorIs(t, p.source("summaries").Write(t.Context(), p.team, p.user, "../user", io.Discard), healthlab.NotFound)
}

// Memory does not grow with the number of samples: with all of them in one file, a fraction of
// what they take as JSON is in memory.
func TestSamples_areWrittenInBoundedMemory(t *testing.T) {
	p := newPerson(t)
	p.upload("heartrate", "bpm", prove.Count(200_000, 1_000_000))
	for _, name := range []string{"heartrate.ndjson", "heartrate.parquet"} {
		runtime.GC()
		var before, now runtime.MemStats
		runtime.ReadMemStats(&before)
		var peak, written uint64
		p.write("samples", name, writerFunc(func(b []byte) (int, error) {
			if written/(1<<20) != (written+uint64(len(b)))/(1<<20) { // once a megabyte
				runtime.GC()
				runtime.ReadMemStats(&now)
				peak = max(peak, now.HeapAlloc)
			}
			written += uint64(len(b))
			return len(b), nil
		}))
		grown := int64(peak) - int64(before.HeapAlloc)
		t.Logf("%s: %d bytes, at most %d of memory", name, written, grown)
		require.Less(t, grown, int64(64<<20))
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
