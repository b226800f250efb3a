package pull_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// A pull whose items are all refused has failed, and says why: in its status, in the list of what
// was refused, and in the log. One of which something was kept has not (an item costs itself alone).
func TestPull_failsOnlyIfEveryItemIsRefused(t *testing.T) {
	day := func(n int) time.Time { return noon.AddDate(0, 0, -n) }
	bad := func(n int) reading { return reading{at: day(n), value: 60, unit: "furlongs"} }
	good := func(n int) reading { return reading{at: day(n), value: 60} }
	for name, c := range map[string]struct {
		held   []reading
		page   int
		status pull.Status
		events int
	}{
		"nothing came":                      {nil, 10, pull.Success, 1},
		"every item of one page":            {[]reading{bad(3), bad(2)}, 10, pull.Failure, 0},
		"every item of several pages":       {[]reading{bad(4), bad(3), bad(2)}, 1, pull.Failure, 0},
		"every item of several ranges":      {[]reading{bad(80), bad(45), bad(2)}, 10, pull.Failure, 0},
		"one of a page":                     {[]reading{bad(3), good(2)}, 10, pull.Success, 1},
		"the last page":                     {[]reading{good(3), bad(2)}, 1, pull.Success, 1},
		"the first page":                    {[]reading{bad(3), good(2)}, 1, pull.Success, 1},
		"the first range, and nothing else": {[]reading{bad(2)}, 10, pull.Failure, 0},
		"the last range, and nothing else":  {[]reading{bad(88)}, 10, pull.Failure, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, nil, nil)
			w.cloud.page = c.page
			var log bytes.Buffer
			s := w.service(func(o *pull.Options) {
				o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			})
			ann := w.person("ann")
			w.cloud.held[ann] = c.held
			w.idle(s)

			h := w.tasks(ann)[pull.History]
			require.Equal(t, c.status, h.Status)
			require.False(t, h.EndedAt.IsZero(), "all of its range was asked for")
			require.Len(t, w.said(ann, historyDone), c.events, "an event says that a history is there")
			p, err := s.Progress(t.Context(), team, ann, band)
			require.NoError(t, err)
			list, _, err := s.Histories(t.Context(), pull.StatusQuery{Team: team, User: ann, Limit: 1})
			require.NoError(t, err)
			history := list[0].Providers[band].Pulled["heartrate"]
			if c.status == pull.Success {
				require.Equal(t, pull.Progress{Total: 1, Done: 1, Days: 90, FetchedDays: 90}, p)
				require.Nil(t, history.Error)
				return
			}
			require.Equal(t, pull.Progress{Total: 1, Done: 1, Failed: 1, Days: 90, FetchedDays: 90}, p)
			require.Equal(t, pull.NonRetriable, *history.Error)
			require.Contains(t, log.String(), "unit: must be bpm or a unit that is converted to it, such as 1/min")
			require.Contains(t, log.String(), "provider="+band)
			require.NotContains(t, log.String(), "furlongs")
		})
	}
}

// The last attempt of a resource says whether what came could be kept.
func TestResources_lastAttemptFailsIfEveryItemWasRefused(t *testing.T) {
	w := newFixture(t, nil, nil)
	s := w.service(nil)
	ann := w.person("ann")
	w.idle(s)
	last := func() pull.Status {
		list, _, err := s.Resources(t.Context(), pull.StatusQuery{Team: team, User: ann, Limit: 1})
		require.NoError(t, err)
		return list[0].Providers[band]["heartrate"].LastAttempt.Status
	}
	w.cloud.held[ann] = []reading{{at: noon.Add(time.Minute), value: 60, unit: "furlongs"}}
	w.wait(time.Hour)
	w.idle(s)
	require.Equal(t, pull.Failure, last())
	news := w.tasks(ann)[pull.News]
	require.Equal(t, pull.Failure, news.Status)
	require.Equal(t, pull.NonRetriable, news.Error)
	require.False(t, news.Due.IsZero(), "it is looked for again")

	w.cloud.held[ann] = []reading{{at: noon.Add(2 * time.Hour), value: 61}}
	w.wait(2 * time.Hour)
	w.idle(s)
	require.Equal(t, pull.Success, last())
	require.Equal(t, pull.Success, w.tasks(ann)[pull.News].Status)
	require.Empty(t, w.tasks(ann)[pull.News].Error)
	require.Len(t, w.stored(ann), 1)
}

// twoOfOne gives hourly heart rates, and with them steps that cannot be kept.
type twoOfOne struct{ *cloud }

func (c twoOfOne) Pull(ctx context.Context, r linking.PullRequest) (linking.PullPage, error) {
	if r.Resource == "steps" {
		return linking.PullPage{Items: refusedSteps()}, nil
	}
	page, err := c.cloud.Pull(ctx, r)
	for _, other := range r.With {
		page.With = append(page.With, linking.ResourceData{Resource: other, Items: refusedSteps()})
	}
	return page, err
}

func refusedSteps() []linking.PullItem {
	return []linking.PullItem{{Source: healthdata.Source{Type: healthdata.SourceWatch}, Samples: []healthdata.Sample{{
		Timestamp: healthlab.At(noon.Add(-time.Hour)), Unit: "count", Value: healthdata.Number(7),
	}}}}
}

// A resource that comes along with another one fails by itself.
func TestSharedFetch_failedResourceDoesNotFailTheOther(t *testing.T) {
	w := newFixture(t, nil, func(p *healthdata.Provider) {
		p.Resources = append(p.Resources, healthdata.ProviderResource{Resource: "steps"})
	})
	w.cloud.hourly = true
	s, err := pull.New(w.spy, w.health, w.refresher, map[string]linking.ProviderConnector{
		band: {Puller: twoOfOne{w.cloud}, Together: [][]string{{"heartrate", "steps"}}},
	}, &pull.Options{Now: w.now})
	require.NoError(t, err)
	ann := w.person("ann")
	w.idle(s)
	p, err := s.Progress(t.Context(), team, ann, band)
	require.NoError(t, err)
	require.Equal(t, pull.Progress{Total: 2, Done: 2, Failed: 1, Days: 90, FetchedDays: 90}, p)
	require.Len(t, w.said(ann, historyDone), 1)
	require.Empty(t, w.said(ann, "historical.data.steps.created"))
}

// After the connector was mended, a history that failed is fetched when the person links again.
func TestHistory_failedOneIsRefetchedAfterARelink(t *testing.T) {
	w := newFixture(t, nil, func(p *healthdata.Provider) { p.RelinkRerunsBackfill = new(bool) })
	s := w.service(nil)
	ann := w.person("ann")
	w.cloud.held[ann] = []reading{{at: noon.AddDate(0, 0, -3), value: 60, unit: "furlongs"}}
	w.idle(s)
	require.Equal(t, pull.Failure, w.tasks(ann)[pull.History].Status)
	w.cloud.held[ann] = []reading{{at: noon.AddDate(0, 0, -3), value: 60}}
	w.wait(time.Hour)
	w.link(ann)
	w.idle(s)
	require.Equal(t, pull.Success, w.tasks(ann)[pull.History].Status)
	require.Len(t, w.said(ann, historyDone), 1)
}

// The first failure of a kind at a provider is logged at WARN, with the provider, the resource, the
// user and the chain of the error; those of the next hour are below it.
func TestPull_firstFailureOfAKindIsLoggedAtWarn(t *testing.T) {
	w := newFixture(t, nil, nil)
	var log bytes.Buffer
	s := w.service(func(o *pull.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	down := fmt.Errorf("read page: %w: the provider's answer cannot be read", healthlab.Unavailable)
	w.cloud.answer = func(linking.PullRequest) error { return down }
	ann := w.person("ann")
	fail := func(after time.Duration) string {
		log.Reset()
		w.wait(after)
		w.idle(s)
		return log.String()
	}
	got := fail(0)
	require.Equal(t, 1, strings.Count(got, `level=WARN msg="pull failed"`))
	require.Contains(t, got, "task.user="+ann.String()+" task.provider="+band+" task.resource=heartrate task.kind=history")
	require.Contains(t, got, `class=provider_unavailable kind=unavailable cause="read page: unavailable: the provider's answer cannot be read"`)
	got = fail(30 * time.Second)
	require.Contains(t, got, `level=INFO msg="pull failed"`)
	require.NotContains(t, got, "level=WARN")
	down = fmt.Errorf("read page: %w", healthlab.Invalid)
	require.Contains(t, fail(5*time.Minute), `level=WARN msg="pull failed"`, "of another kind")
}
