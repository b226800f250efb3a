package webhook_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab/webhook"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func hours(h float64) time.Time { return noon.Add(time.Duration(h * float64(time.Hour))) }

func TestHealth_disablesAfterFiveDaysOfFailures(t *testing.T) {
	for _, c := range []struct {
		name     string
		failures []float64 // hours
		armed    bool
		disabled bool
	}{
		{"once", []float64{0}, false, false},
		{"11 h apart", []float64{0, 11}, false, false},
		{"12 h apart", []float64{0, 12}, true, false},
		{"24 h apart", []float64{0, 24}, true, false},
		{"more than 24 h apart", []float64{0, 24.01}, false, false},
		{"the first too far back, the last not", []float64{0, 11, 26}, true, false},
		{"a new cluster", []float64{0, 11, 36, 40}, false, false},
		{"just before 120 h", []float64{0, 12, 131.9}, true, false},
		{"120 h after arming", []float64{0, 12, 132}, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h webhook.Health
			disabled := false
			for _, f := range c.failures {
				h, disabled = h.Fail(hours(f))
			}
			require.Equal(t, c.armed, !h.ArmedAt.IsZero())
			require.Equal(t, c.disabled, disabled)
			require.Equal(t, webhook.Health{}, h.Succeed(), "any success starts over")
		})
	}
}

// Health keeps two instants, and decides as the rule does with all failures since the last
// success: a failure arms if one of them is 12 to 24 hours older.
func TestHealth_twoStoredTimesDecideLikeAllFailures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h webhook.Health
		var run []time.Time
		var armed time.Time
		at := noon
		for range rapid.IntRange(1, 40).Draw(t, "n") {
			step := rapid.SampledFrom([]time.Duration{
				time.Minute, time.Hour, 5 * time.Hour, 6 * time.Hour, 11*time.Hour + 59*time.Minute,
				12 * time.Hour, 13 * time.Hour, 24 * time.Hour, 25 * time.Hour,
			}).Draw(t, "step")
			at = at.Add(step)
			if rapid.IntRange(0, 9).Draw(t, "outcome") == 0 {
				h, run, armed = h.Succeed(), nil, time.Time{}
				continue
			}
			for _, f := range run {
				if d := at.Sub(f); armed.IsZero() && d >= 12*time.Hour && d <= 24*time.Hour {
					armed = at
				}
			}
			run = append(run, at)
			var disabled bool
			h, disabled = h.Fail(at)
			if !h.ArmedAt.Equal(armed) {
				t.Fatalf("armed at %v, should be %v", h.ArmedAt, armed)
			}
			if want := !armed.IsZero() && at.Sub(armed) >= 120*time.Hour; disabled != want {
				t.Fatalf("disabled %v, should be %v", disabled, want)
			}
		}
	})
}

func TestHealth_pauseGrowsWithEachFailure(t *testing.T) {
	var h webhook.Health
	for i, want := range []time.Duration{
		5 * time.Second, 15 * time.Second, 45 * time.Second, 2 * time.Minute, 5 * time.Minute, 5 * time.Minute,
	} {
		h = h.Pause(noon)
		require.Equal(t, noon.Add(want), h.PausedUntil)
		require.Equal(t, i+1, h.PauseStep)
	}
	require.True(t, h.Paused(noon))
	require.False(t, h.Paused(noon.Add(5*time.Minute)))

	asked := webhook.Health{}.PauseFor(noon, time.Minute)
	require.Equal(t, noon.Add(time.Minute), asked.PausedUntil)
	require.Equal(t, asked, asked.PauseFor(noon, time.Second), "a shorter one changes nothing")
	require.Equal(t, noon.Add(15*time.Minute), asked.PauseFor(noon, time.Hour).PausedUntil)
	require.Equal(t, asked, asked.Succeed(), "what the receiver asked for stands")
}
