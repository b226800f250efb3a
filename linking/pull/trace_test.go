package pull_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// requestTraces counts requests by their trace.
type requestTraces struct {
	mu   sync.Mutex
	runs map[string]int
}

func (h *requestTraces) answer(r linking.PullRequest) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runs[r.Trace]++
	return nil
}

func (h *requestTraces) take() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.runs
	h.runs = map[string]int{}
	return out
}

// All requests of a history have the name that introspection shows, in every process, and so
// has what is logged; a history that is fetched again has another one, and each look for news
// its own.
func TestTrace_isTheSameInStatusRequestsAndLogs(t *testing.T) {
	w := newFixture(t, nil, nil)
	var log bytes.Buffer
	logged := func(o *pull.Options) { o.Log = slog.New(slog.NewJSONHandler(&log, nil)) }
	one, two := w.service(logged), w.service(logged)
	h := &requestTraces{runs: map[string]int{}}
	w.cloud.answer, w.cloud.page = h.answer, 10
	ann := w.person("ann")
	for i := range 35 {
		w.cloud.held[ann] = append(w.cloud.held[ann], reading{at: noon.Add(-time.Duration(i+1) * time.Hour), value: 60})
	}
	w.cloud.held[ann] = append(w.cloud.held[ann], reading{at: noon.Add(-time.Minute), value: 60, unit: "furlong"})
	shown := func() string {
		list, _, err := one.Histories(t.Context(), pull.StatusQuery{Team: team, User: ann, Limit: 10})
		require.NoError(t, err)
		require.Len(t, list, 1)
		return *list[0].Providers[band].Pulled["heartrate"].Trace
	}
	for _, s := range []*pull.Service{one, two, one, two} { // page by page, wherever
		_, err := s.Step(t.Context())
		require.NoError(t, err)
	}
	before := shown()
	w.idle(one)
	first := shown()
	require.Equal(t, before, first, "it is known from the beginning")
	runs := h.take()
	require.Len(t, runs, 1)
	require.Greater(t, runs[first], 3)

	said := map[string]string{}
	for line := range bytes.Lines(log.Bytes()) {
		var x struct{ Msg, Trace string }
		require.NoError(t, json.Unmarshal(line, &x))
		said[x.Msg] = x.Trace
	}
	require.Equal(t, map[string]string{"items of a provider refused": first, "history fetched": first}, said)

	w.wait(time.Hour)
	require.NoError(t, one.Refetch(t.Context(), pull.Ref{Team: team, User: ann, Provider: band}, w.now()))
	second := shown()
	require.NotEqual(t, first, second)
	w.idle(two)
	runs = h.take()
	require.Contains(t, runs, second)
	require.NotContains(t, runs, first)
	for range 2 {
		w.wait(time.Hour)
		w.idle(one)
		news := h.take()
		require.Len(t, news, 1)
		for run := range news {
			require.NotContains(t, runs, run, "another look for news")
			runs[run]++
		}
	}
}

// The history that an app walks itself makes no request of ours, so it has no trace.
func TestTrace_isAbsentForHistoriesThatAppsFetch(t *testing.T) {
	w := newFixture(t, nil, func(p *healthdata.Provider) { p.Class, p.AuthType = "sdk_store", "sdk" })
	s := w.service(nil)
	u, err := w.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "ann"})
	require.NoError(t, err)
	_, err = w.health.Connections().ConnectLinked(t.Context(), team, u.ID, healthdata.NewConnection{Provider: band})
	require.NoError(t, err)
	require.NoError(t, s.FinishHistory(t.Context(), team, u.ID, pull.FinishedHistory{Provider: band, Resource: "heartrate", From: noon.Add(-time.Hour), To: noon}))
	list, _, err := s.Histories(t.Context(), pull.StatusQuery{Team: team, Limit: 10})
	require.NoError(t, err)
	require.Nil(t, list[0].Providers[band].Pulled["heartrate"].Trace)
	require.Equal(t, pull.Success, list[0].Providers[band].Pulled["heartrate"].Status)
}
