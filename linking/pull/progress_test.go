package pull_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/linking/pull"
)

// While a history is fetched, piece by piece, the days that are there grow to all of its days, for the
// connection as for its one resource.
func TestProgress_fetchedDaysGrowToAllDays(t *testing.T) {
	w := newFixture(t, nil, nil)
	s := w.service(nil)
	ann := w.person("ann")
	last, seen := 0, map[int]bool{}
	for n := 1; n > 0; {
		p, err := s.Progress(t.Context(), team, ann, band)
		require.NoError(t, err)
		require.GreaterOrEqual(t, p.FetchedDays, last)
		last, seen[p.FetchedDays] = p.FetchedDays, true
		if p.Total > 0 {
			require.Equal(t, 90, p.Days)
			list, _, err := s.Histories(t.Context(), pull.StatusQuery{Team: team, User: ann, Limit: 1})
			require.NoError(t, err)
			one := list[0].Providers[band].Pulled["heartrate"]
			require.Equal(t, []int{p.Days, p.FetchedDays}, []int{one.RangeDays, one.FetchedDays})
		}
		n, err = s.Step(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, map[int]bool{0: true, 30: true, 60: true, 90: true}, seen)
}
