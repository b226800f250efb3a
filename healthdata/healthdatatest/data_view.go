package healthdatatest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

func viewError(t dataT) {
	u := t.user()
	err := t.Data.View(t.Context(), u.Team, u.ID, func(healthdata.View) error { return conformance.ErrRefused })
	require.Equal(t, conformance.ErrRefused, err, "unchanged")
}

func seriesRanges(t dataT) {
	u := t.user()
	t.merge(u, Steps, Sample(0, 1), Sample(1, 2))
	t0 := Sample(0, 0).Time
	t.view(u, func(v healthdata.View) {
		for name, c := range conformance.Sorted(map[string]struct {
			from, to int64
			want     int
		}{
			"all":       {0, 0, 1},
			"around":    {t0 - 1, t0 + 1, 1},
			"from":      {t0, t0 + 1, 1},
			"before":    {t0 - 10, t0, 0},
			"last":      {Sample(1, 0).Time, series.MaxTime, 1},
			"after all": {Sample(1, 0).Time + 1, series.MaxTime, 0},
		}) {
			t.Run(name, func(sub *testing.T) {
				t := t.on(sub)
				all, err := v.Series(t.Context(), healthdata.SeriesQuery{Resources: []string{"steps"}, From: c.from, To: c.to})
				require.NoError(t, err)
				require.Len(t, all, c.want)
				for _, s := range all {
					for _, chunk := range s.Chunks {
						require.Nil(t, chunk.Data, "headers only")
					}
				}
			})
		}
	})
}

func loadNotFound(t dataT) {
	u := t.user()
	t.merge(u, Steps, Sample(0, 1))
	t.view(u, func(v healthdata.View) {
		_, err := v.Load(t.Context(), Steps, []int64{1})
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = v.Load(t.Context(), healthdata.SeriesKey{Resource: "glucose"}, []int64{1})
		require.ErrorIs(t, err, healthlab.NotFound)
	})
}
