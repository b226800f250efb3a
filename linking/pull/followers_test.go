package pull_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// pairs is a provider whose answers have the heart rate and the HRV of an hour.
type pairs struct {
	mu sync.Mutex
	// asked counts requests by resource, and with those that brought another along.
	asked map[string]int
	with  int
	// refuses are the resources that cannot be asked for first.
	refuses string
}

func (w *pairs) Pull(_ context.Context, r linking.PullRequest) (linking.PullPage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[r.Resource]++
	if r.Resource == w.refuses {
		return linking.PullPage{}, healthlab.Invalid
	}
	series := func(unit string) []linking.PullItem {
		at, offset := healthlab.At(r.To.Add(-time.Hour)), 0
		return []linking.PullItem{{Source: healthdata.Source{Type: healthdata.SourceWatch}, Samples: []healthdata.Sample{
			{Timestamp: at, TimezoneOffset: &offset, Unit: unit, Value: healthdata.Number(60)},
		}}}
	}
	units := map[string]string{"heartrate": "bpm", "hrv": "rmssd"}
	page := linking.PullPage{Items: series(units[r.Resource])}
	for _, other := range r.With {
		w.with++
		page.With = append(page.With, linking.ResourceData{Resource: other, Items: series(units[other])})
	}
	return page, nil
}

// together is a service that fetches pairs.
func together(t *testing.T, provider linking.Puller, edits ...func(*healthdata.Provider)) (*fixture, *pull.Service) {
	f := newFixture(t, nil, func(p *healthdata.Provider) {
		p.Resources = []healthdata.ProviderResource{{Resource: "heartrate"}, {Resource: "hrv"}}
		for _, edit := range edits {
			edit(p)
		}
	})
	s, err := pull.New(f.spy, f.health, f.refresher, map[string]linking.ProviderConnector{
		band: {Puller: provider, Together: [][]string{{"heartrate", "hrv"}}},
	}, &pull.Options{Now: f.cloud.now, Every: 24 * time.Hour})
	require.NoError(t, err)
	return f, s
}

// histories are the histories of a user by resource.
func (w *fixture) histories(user healthlab.UserID) map[string]*pull.Task {
	w.t.Helper()
	list, err := w.spy.Tasks(w.t.Context(), team, user)
	require.NoError(w.t, err)
	out := map[string]*pull.Task{}
	for _, x := range list {
		if x.Kind == pull.History {
			out[x.Resource] = &x
		}
	}
	return out
}

// Two resources of one answer take the requests of one, and both histories come to their end.
func TestSharedFetch_resourcesOfOneResponseShareRequests(t *testing.T) {
	provider := &pairs{asked: map[string]int{}}
	f, s := together(t, provider)
	ann := f.person("ann")
	f.idle(s)
	h := f.histories(ann)
	require.Equal(t, pull.Success, h["heartrate"].Status)
	require.Equal(t, pull.Success, h["hrv"].Status)
	require.Empty(t, h["hrv"].Lead)
	require.NotZero(t, h["hrv"].DaysWithData())
	require.Equal(t, h["heartrate"].DaysWithData(), h["hrv"].DaysWithData())
	require.Zero(t, provider.asked["hrv"], "news are not due, and history came along")
	require.NotZero(t, provider.with)
	for _, resource := range []string{"heartrate", "hrv"} {
		all, err := f.health.AllSamples(t.Context(), team, ann, healthdata.SampleQuery{Resource: resource, From: noon.AddDate(-1, 0, 0), To: noon})
		require.NoError(t, err)
		require.Len(t, all, provider.asked["heartrate"], resource)
		require.Len(t, f.said(ann, "historical.data."+resource+".created"), 1, resource)
	}
}

// A history whose lead is given up is fetched by itself.
func TestSharedFetch_othersAreFetchedSeparatelyIfTheFirstFails(t *testing.T) {
	provider := &pairs{asked: map[string]int{}, refuses: "heartrate"}
	f, s := together(t, provider)
	ann := f.person("ann")
	f.idle(s)
	h := f.histories(ann)
	require.Equal(t, pull.Failure, h["heartrate"].Status)
	require.Equal(t, pull.Success, h["hrv"].Status)
	require.NotZero(t, h["hrv"].DaysWithData())
	require.Zero(t, provider.with)
}

// A connection that fails stops a set, and one that is linked again goes on with it.
func TestSharedFetch_continuesAfterARelink(t *testing.T) {
	provider := &pairs{asked: map[string]int{}}
	f, s := together(t, provider)
	ann := f.person("ann")
	_, err := s.Step(t.Context()) // it is planned
	require.NoError(t, err)
	require.Equal(t, "heartrate", f.histories(ann)["hrv"].Lead)
	f.link(ann)
	f.idle(s)
	h := f.histories(ann)
	require.Equal(t, pull.Success, h["heartrate"].Status)
	require.Equal(t, pull.Success, h["hrv"].Status)
	require.Zero(t, provider.asked["hrv"])
}

// slow is a provider of pairs during whose first request something else happens.
type slow struct {
	pairs
	meanwhile func()
}

func (w *slow) Pull(ctx context.Context, r linking.PullRequest) (linking.PullPage, error) {
	if do := w.meanwhile; do != nil {
		w.meanwhile = nil
		do()
	}
	return w.pairs.Pull(ctx, r)
}

// A request of a history that was scheduled anew leaves the followers of the new run alone.
func TestSharedFetch_oldRunOfARescheduledHistoryIsIgnored(t *testing.T) {
	for name, refuses := range map[string]string{"answered": "", "refused": "heartrate"} {
		t.Run(name, func(t *testing.T) {
			provider := &slow{pairs: pairs{asked: map[string]int{}, refuses: refuses}}
			f, s := together(t, provider)
			ann := f.person("ann")
			var scheduled pull.Task
			provider.meanwhile = func() {
				f.wait(time.Hour)
				require.NoError(t, s.Refetch(t.Context(), pull.Ref{Team: team, User: ann, Provider: band}, f.now()))
				scheduled = *f.histories(ann)["hrv"]
				require.Equal(t, "heartrate", scheduled.Lead)
			}
			_, err := s.Step(t.Context())
			require.NoError(t, err)
			require.Nil(t, provider.meanwhile)
			require.Equal(t, scheduled, *f.histories(ann)["hrv"])
			provider.refuses = ""
			f.idle(s)
			require.Equal(t, pull.Success, f.histories(ann)["hrv"].Status)
		})
	}
}

// A process that stops at a write while it gives up a lead leaves no follower behind.
func TestSharedFetch_othersAreReleasedAfterACrashWhileTheFirstFails(t *testing.T) {
	for _, write := range []int{1, 2} {
		t.Run(fmt.Sprint("write ", write), func(t *testing.T) {
			provider := &pairs{asked: map[string]int{}, refuses: "heartrate"}
			f, s := together(t, provider)
			ann := f.person("ann")
			writes := 0
			f.spy.die = func(what string) error {
				if provider.asked["heartrate"] > 0 && what == "update" {
					if writes++; writes == write {
						return healthlab.Unavailable
					}
				}
				return nil
			}
			_, err := s.Step(t.Context())
			require.ErrorIs(t, err, healthlab.Unavailable)
			f.wait(time.Hour) // the lease ends
			f.idle(s)
			h := f.histories(ann)
			require.Equal(t, pull.Failure, h["heartrate"].Status)
			require.Equal(t, pull.Success, h["hrv"].Status)
		})
	}
}

// A history that has begun does not follow one of another range: its days are counted from its own
// start.
func TestSharedFetch_neverJoinsHistoriesOfDifferentRanges(t *testing.T) {
	provider := &pairs{asked: map[string]int{}}
	rerun := false
	f, s := together(t, provider, func(p *healthdata.Provider) { p.RelinkRerunsBackfill = &rerun })
	ann := f.person("ann")
	_, err := s.Step(t.Context())
	require.NoError(t, err)
	begun := f.histories(ann)["hrv"]
	require.Equal(t, pull.InProgress, begun.Status)
	require.Equal(t, "heartrate", begun.Lead)
	_, err = f.spy.Update(t.Context(), f.histories(ann)["heartrate"].Key, func(t *pull.Task) ([]healthlab.Event, error) {
		t.Status, t.Due = pull.Failure, time.Time{}
		return nil, nil
	})
	require.NoError(t, err)
	f.wait(48 * time.Hour)
	f.link(ann)
	f.idle(s)
	h := f.histories(ann)
	require.Equal(t, pull.Success, h["hrv"].Status)
	require.True(t, begun.From.Equal(h["hrv"].From))
	require.False(t, begun.From.Equal(h["heartrate"].From))
}
