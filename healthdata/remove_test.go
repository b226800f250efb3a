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
