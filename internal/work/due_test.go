package work_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab/internal/work"
)

// Due agrees with a look at all keys.
func TestDue_agreesWithALinearSearch(t *testing.T) {
	begin := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		var due work.Due[int]
		truth := map[int]time.Time{}
		for range rapid.IntRange(1, 60).Draw(t, "changes") {
			key, minutes := rapid.IntRange(1, 12).Draw(t, "key"), rapid.IntRange(0, 9).Draw(t, "minutes")
			at := begin.Add(time.Duration(minutes) * time.Minute)
			if minutes == 0 {
				at = time.Time{}
				delete(truth, key)
			} else {
				truth[key] = at
			}
			due.Set(key, at)

			now := begin.Add(time.Duration(rapid.IntRange(0, 10).Draw(t, "now")) * time.Minute)
			want := []int{}
			first := time.Time{}
			for k, at := range truth {
				if !at.After(now) {
					want = append(want, k)
				}
				if first.IsZero() || at.Before(first) {
					first = at
				}
			}
			require.ElementsMatch(t, want, due.Until(now))
			k, at, ok := due.First()
			require.Equal(t, len(truth) > 0, ok)
			require.Equal(t, first, at)
			require.Equal(t, truth[k], at)
		}
	})
}

func TestDue_keysDueAtOneTimeAreReturnedInInsertionOrder(t *testing.T) {
	var due work.Due[string]
	at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, key := range []string{"b", "a", "c"} {
		due.Set(key, at)
	}
	for _, want := range []string{"b", "a", "c"} {
		key, _, _ := due.First()
		require.Equal(t, want, key)
		due.Set(key, time.Time{})
	}
}
