package pull_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// A provider whose record says nothing of history, as that of the guide, has its history fetched
// when a person links it.
func TestBackfill_providerWithoutAPlanHasItsHistoryFetched(t *testing.T) {
	for name, plan := range map[string]healthdata.Backfill{
		"nothing":      {},
		"a mode alone": {Mode: "pull"},
		"configurable": {Configurable: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, nil, func(p *healthdata.Provider) { p.Backfill = plan })
			w.cloud.hourly = true
			ann := w.person("ann")
			s := w.service(nil)
			w.idle(s)
			h := w.tasks(ann)[pull.History]
			require.Equal(t, pull.Success, h.Status)
			require.Equal(t, noon.AddDate(0, 0, -healthdata.DefaultHistoryDays), h.From)
			require.NotEmpty(t, w.cloud.requests, "before the provider was asked, nothing is done")
			require.Len(t, w.stored(ann), healthdata.DefaultHistoryDays*24)
			require.Len(t, w.said(ann, historyDone), 1)
		})
	}
}
