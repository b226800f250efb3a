package healthdata_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// night is a night of sleep, by the source's own id.
func night(id string) *healthdata.Sleep {
	n := &healthdata.Sleep{BedtimeStart: ago(9 * time.Hour), BedtimeStop: ago(time.Hour)}
	n.ExternalID = id
	return n
}

func stages(id string) *healthdata.SleepCycle {
	c := &healthdata.SleepCycle{SessionStart: ago(9 * time.Hour), SessionEnd: ago(time.Hour)}
	c.ExternalID = id
	return c
}

func TestRemovedNightsTakeTheirStagesAlong(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	app := band
	app.Source.AppID = ptr("com.acme.sleep")
	for name, up := range map[string]healthdata.Upload{"a band": band, "an app": app} {
		t.Run(name, func(t *testing.T) {
			removed := func(want int, ids ...string) {
				t.Helper()
				n, err := s.RemoveSummaries(t.Context(), s.team, s.user, "sleep", up, ids)
				require.NoError(t, err)
				require.Equal(t, want, n, "nights are counted, and not their stages")
			}
			kept := night("n-3")
			s.summaries("sleep", up, night("n-1"), kept)
			s.summaries("sleep_cycle", up, stages("n-1"), stages("n-3"))
			removed(1, "n-1", "n-2")
			require.Equal(t, kept.ID, only[*healthdata.SleepCycle](s, "sleep_cycle").SleepID)

			// Stages without an id of their own say which night is theirs.
			named := stages("")
			named.SleepID = kept.ID
			s.summaries("sleep_cycle", up, named)
			require.Len(t, s.list("sleep_cycle"), 2)
			removed(1, "n-3")
			require.Empty(t, s.list("sleep_cycle"))

			// Stages whose night is gone already go, too.
			s.summaries("sleep_cycle", up, stages("n-1"))
			removed(0, "n-1")
			require.Empty(t, s.list("sleep_cycle"))
		})
	}
}

func TestRemovedWorkoutsTakeTheirStreamsAlong(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	id, stream := s.run()
	_, err := s.IngestWorkoutStream(t.Context(), s.team, s.user, id, band, stream)
	require.NoError(t, err)
	n, err := s.RemoveSummaries(t.Context(), s.team, s.user, "workouts", band, []string{"w-1"})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = s.WorkoutStream(t.Context(), s.team, id)
	require.ErrorIs(t, err, healthlab.NotFound)
}

func TestAnAppsRemovalLeavesTheSamplesOfOthers(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	by := func(app string) healthdata.Upload {
		up := band
		if app != "" {
			up.Source.AppID = &app
		}
		return up
	}
	pulse := func(up healthdata.Upload, at healthlab.Time, v float64) {
		s.samples("heartrate", up, healthdata.Sample{Timestamp: at, Unit: "bpm", Value: healthdata.Number(v)})
	}
	removed := func(want int, up healthdata.Upload, at ...healthlab.Time) {
		t.Helper()
		n, err := s.RemoveSamples(t.Context(), s.team, s.user, "heartrate", up, "", at)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	ten, eleven, twelve := ago(3*time.Hour), ago(2*time.Hour), ago(time.Hour)
	pulse(by("com.acme.a"), ten, 60)
	pulse(by("com.acme.a"), eleven, 61)
	pulse(by("com.acme.b"), ten, 70) // readers see it in place of the other one
	pulse(by("com.acme.b"), twelve, 72)
	removed(2, by("com.acme.a"), ten, eleven, twelve)
	removed(0, by("com.acme.a"), ten, eleven, twelve)
	require.Len(t, s.read("heartrate"), 2)
	removed(1, by("com.acme.b"), ten)
	require.Len(t, s.read("heartrate"), 1, "the sample of the other app was removed before")
	removed(1, by(""), twelve)

	// As with apps, so with devices.
	worn := band
	worn.Device = &healthdata.DeviceInfo{ID: ptr("serial-1")}
	other := band
	other.Device = &healthdata.DeviceInfo{ID: ptr("serial-2")}
	pulse(worn, ten, 60)
	removed(0, other, ten)
	removed(1, worn, ten)
}
