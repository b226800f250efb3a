package fileimport_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// ingestion is the sink that a host has: it gives everything to a service.
type ingestion struct {
	service *healthdata.Service
	team    healthlab.TeamID
	user    healthlab.UserID
	counts  healthdata.Counts
}

func (s *ingestion) upload(source healthdata.Source) healthdata.Upload {
	return healthdata.Upload{Provider: source.Provider, Stage: healthdata.StageHistorical, Source: source}
}

func (s *ingestion) add(c healthdata.Counts, err error) error {
	s.counts.New += c.New
	s.counts.Changed += c.Changed
	s.counts.Same += c.Same
	return fileimport.Refusals(c, err)
}

func (s *ingestion) Summaries(ctx context.Context, resource string, source healthdata.Source, items []healthdata.Summary) error {
	return s.add(s.service.IngestSummaries(ctx, s.team, s.user, resource, s.upload(source), items))
}

func (s *ingestion) Samples(ctx context.Context, resource string, source healthdata.Source, samples []healthdata.Sample) error {
	return s.add(s.service.IngestSamples(ctx, s.team, s.user, resource, s.upload(source), samples))
}

func (s *ingestion) Stream(ctx context.Context, w *healthdata.Workout, stream healthdata.WorkoutStream) error {
	return s.add(s.service.IngestWorkoutStream(ctx, s.team, s.user, w.ID, s.upload(w.Source), &stream))
}

func newIngestion(t *testing.T) *ingestion {
	t.Helper()
	store := memory.New(nil)
	providers, err := healthdata.NewProviders([]healthdata.Provider{
		{Slug: healthdata.SlugManual, Name: "Own data", Category: "provider", Class: "manual"},
		{Slug: healthdata.SlugAppleHealthKit, Name: "Phone", Category: "app", Class: "sdk_store", MultiApp: true},
	})
	require.NoError(t, err)
	service, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{
		Environment: healthlab.Sandbox,
		Now:         func() time.Time { return time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC) },
	})
	require.NoError(t, err)
	team := healthlab.TeamID{UUID: uuid.MustParse("6ba7b810-9dad-41d1-80b4-00c04fd430c8")}
	u, err := service.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "importer"})
	require.NoError(t, err)
	for _, slug := range []string{healthdata.SlugManual, healthdata.SlugAppleHealthKit} {
		_, err = service.Connections().Connect(t.Context(), team, u.ID, healthdata.NewConnection{Provider: slug})
		require.NoError(t, err)
	}
	return &ingestion{service: service, team: team, user: u.ID}
}

// Whatever is handed over, a service takes: units, times, texts and lengths are such as
// it accepts. A second import of the same files changes nothing.
func TestService_acceptsEveryImportedItem(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.gpx"), []byte(smallGPX), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.xml"), []byte(smallExport), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "c.fit"), triathlon(t), 0o600))
	takesTwice(t, dir, nil)
}

func TestService_acceptsEveryItemOfRealFiles(t *testing.T) {
	for _, folder := range []string{"fit", "gpx", "health_export"} {
		takesTwice(t, realData(t, folder), nil)
	}
}

func takesTwice(t *testing.T, dir string, opts *fileimport.Options) {
	t.Helper()
	s := newIngestion(t)
	reports, err := fileimport.ImportDir(t.Context(), dir, s, opts)
	require.NoError(t, err)
	for _, r := range reports {
		if r.Format != "" && filepath.Base(r.Name)[0] != 'b' {
			require.NoError(t, r.Err, r.Name)
		}
	}
	require.NotZero(t, s.counts.New)
	require.Zero(t, s.counts.Changed)
	first := s.counts.New + s.counts.Same
	s.counts = healthdata.Counts{}
	_, err = fileimport.ImportDir(t.Context(), dir, s, opts)
	require.NoError(t, err)
	require.Zero(t, s.counts.New)
	require.Zero(t, s.counts.Changed)
	require.Equal(t, first, s.counts.Same)
}

// A workout that is imported from a recording with heart rates has heart rate zones.
func TestImportedWorkout_hasHeartRateZones(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "c.fit"), triathlon(t), 0o600))
	s := newIngestion(t)
	_, err := fileimport.ImportDir(t.Context(), dir, s, nil)
	require.NoError(t, err)
	list, err := s.service.Summaries(t.Context(), s.team, s.user, healthdata.SummaryQuery{Resource: "workouts"})
	require.NoError(t, err)
	zoned := 0
	for _, item := range list {
		w, ok := item.(*healthdata.Workout)
		require.True(t, ok)
		stream, err := s.service.WorkoutStream(t.Context(), s.team, w.ID)
		if err != nil || !slices.ContainsFunc(stream.Heartrate, func(v *int64) bool { return v != nil }) {
			continue
		}
		require.Len(t, w.HRZones, 6)
		zoned++
	}
	require.Positive(t, zoned)
}
