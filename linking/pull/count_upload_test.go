package pull_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// Uploaded data is counted beside fetched data, and the counts survive a new plan.
func TestCountUpload_addsUploadsToTheCountsOfPulls(t *testing.T) {
	w := newFixture(t, nil, nil)
	w.cloud.hourly = true
	s := w.service(nil)
	health, err := healthdata.New(w.store.Users(), w.store.Data(), w.health.Providers(), &healthdata.Options{Environment: healthlab.Sandbox, Now: w.now, Uploaded: s.CountUpload})
	require.NoError(t, err)
	ann := w.person("ann")
	due := func() time.Time {
		u, err := w.store.Users().Get(t.Context(), team, ann)
		require.NoError(t, err)
		return u.Connections[0].Due
	}
	before := due()
	upload := func(at time.Time, stage healthdata.Stage) {
		_, err := health.IngestSamples(t.Context(), team, ann, "heartrate", healthdata.Upload{
			Provider: band, Stage: stage, Source: healthdata.Source{Type: healthdata.SourcePhone},
		}, []healthdata.Sample{{Timestamp: healthlab.At(at), Unit: "bpm", Value: healthdata.Number(61)}})
		require.NoError(t, err)
	}
	upload(noon.Add(-200*24*time.Hour), healthdata.StageHistorical)
	upload(noon.Add(-time.Hour), healthdata.StageDaily)
	require.Equal(t, before, due(), "the plan still waits")
	look := func() pull.Statistics {
		list, next, err := s.Resources(t.Context(), pull.StatusQuery{Team: team, Limit: 9})
		require.NoError(t, err)
		require.Empty(t, next)
		require.Len(t, list, 1)
		return list[0].Providers[band]["heartrate"]
	}
	oldest, newest := healthlab.At(noon.Add(-200*24*time.Hour)), healthlab.At(noon.Add(-time.Hour))
	want := pull.Statistics{
		LastAttempt: &pull.Attempt{At: healthlab.At(noon), Status: pull.Success}, Oldest: &oldest, Newest: &newest, Sent: 1,
		Stored: []pull.DayCount{{Day: healthlab.DateOf(noon), New: 2}}, Refused: []pull.RefusedItem{},
	}
	require.Equal(t, want, look())
	w.idle(s)
	want.Stored[0].New += 90 * 24
	require.Equal(t, want, look(), "the history is older, and is no news")
	w.link(ann)
	w.idle(s)
	w.wait(time.Hour)
	w.idle(s)
	require.EqualValues(t, 2, look().Sent)

	require.ErrorIs(t, s.CountUpload(t.Context(), team, healthlab.UserID{}, band, "heartrate", healthdata.Received{}), healthlab.NotFound)
}
