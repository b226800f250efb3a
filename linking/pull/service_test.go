package pull_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

const historyDone = "historical.data.heartrate.created"

func TestPull_fetchesHistoryOnceAndThenNewData(t *testing.T) {
	w := newFixture(t, nil, nil)
	w.cloud.hourly = true
	w.cloud.page = 500
	s := w.service(nil)
	ann := w.person("ann")
	w.idle(s)

	tasks := w.tasks(ann)
	h := tasks[pull.History]
	require.Equal(t, pull.Success, h.Status)
	require.Equal(t, noon.AddDate(0, 0, -90), h.From)
	require.Equal(t, 91, h.DaysWithData(), "ninety days that begin at noon touch ninety-one")
	require.Len(t, w.stored(ann), 90*24)
	require.Len(t, w.cloud.requests, 6, "three pieces of 720 readings, in pages of 500")
	require.Zero(t, h.Sent)
	said := w.said(ann, historyDone)
	require.Len(t, said, 1)
	var done healthdata.Historical
	require.NoError(t, json.Unmarshal(said[0], &done))
	require.Equal(t, healthdata.Historical{
		UserID: ann, Provider: band, IsFinal: true, StartDate: healthlab.At(h.From), EndDate: healthlab.At(noon),
	}, done)

	w.wait(time.Hour)
	w.idle(s)
	n := w.tasks(ann)[pull.News]
	require.Equal(t, pull.Success, n.Status)
	require.EqualValues(t, 1, n.Sent)
	require.Equal(t, w.now(), n.Seen)
	require.Len(t, w.stored(ann), 90*24+1)
	require.Len(t, w.said(ann, historyDone), 1)
	require.True(t, n.Due.After(w.now()))
}

func TestHistory_withoutDataIsASuccess(t *testing.T) {
	w := newFixture(t, nil, nil)
	s := w.service(nil)
	ann := w.person("ann")
	w.idle(s)
	require.Equal(t, pull.Success, w.tasks(ann)[pull.History].Status)
	require.Len(t, w.said(ann, historyDone), 1)
}

func TestBackfill_modeDecidesWhetherHistoryIsFetched(t *testing.T) {
	for mode, want := range map[string]struct {
		events, requests int
		from             time.Time
	}{
		"push_incremental": {1, 3, noon.AddDate(0, 0, -90)},
		"none":             {0, 1, noon.Add(-24 * time.Hour)},
	} {
		t.Run(mode, func(t *testing.T) {
			w := newFixture(t, nil, func(p *healthdata.Provider) { p.Backfill.Mode = mode })
			w.cloud.hourly = true
			s := w.service(nil)
			ann := w.person("ann")
			w.idle(s)
			require.Len(t, w.said(ann, historyDone), want.events)
			require.Len(t, w.cloud.requests, want.requests)
			n := w.tasks(ann)[pull.News]
			require.Equal(t, want.from, n.From)
			require.EqualValues(t, len(w.stored(ann)), n.Sent, "it arrives as news")
			require.NotZero(t, n.Sent)
		})
	}
}

// Linking again fetches history again, but where the provider's record says that it does
// not, or it all arrives as news; and in any case if the connection was removed between.
func TestRelink_refetchesHistoryUnlessTheProviderDisablesIt(t *testing.T) {
	for _, c := range []struct {
		name, mode     string
		reruns         *bool
		relinked, anew int // how often the history was announced by then
	}{
		{name: "by default", relinked: 2, anew: 3},
		{name: "not again", reruns: new(bool), relinked: 1, anew: 2},
		{name: "as news", mode: "push_incremental", relinked: 1, anew: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFixture(t, nil, func(p *healthdata.Provider) {
				p.Backfill.Mode, p.RelinkRerunsBackfill = c.mode, c.reruns
				p.Backfill.DefaultDays = 20 // one request
			})
			w.cloud.hourly = true
			links, err := linking.New(w.store.Linking(), w.health, nil, sealer(t), &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{make([]byte, 32)}, Now: w.now})
			require.NoError(t, err)
			s := w.service(nil)
			ann := w.person("ann")
			w.idle(s)
			require.Len(t, w.said(ann, historyDone), 1)
			first := w.tasks(ann)[pull.History]
			w.wait(36 * time.Hour)
			w.link(ann)
			w.idle(s)
			require.Len(t, w.said(ann, historyDone), c.relinked)
			second := w.tasks(ann)[pull.History]
			require.Equal(t, c.relinked == 1, first.To.Equal(second.To), "the range is of the first link")
			require.True(t, w.now().Equal(w.tasks(ann)[pull.News].Seen) || c.relinked > 1, "the time between is looked at")
			require.Contains(t, w.stored(ann), noon.Add(20*time.Hour), "also by nobody else")
			w.wait(time.Hour)
			require.NoError(t, links.Disconnect(t.Context(), team, ann, band))
			w.link(ann)
			w.idle(s)
			require.Len(t, w.said(ann, historyDone), c.anew)
			require.Equal(t, w.now(), w.tasks(ann)[pull.History].To)
		})
	}
}

// A history that was interrupted goes on when its source is linked again, also where linking
// again does not begin it anew.
func TestRelink_continuesAnInterruptedHistory(t *testing.T) {
	w := newFixture(t, nil, func(p *healthdata.Provider) { p.RelinkRerunsBackfill = new(bool) })
	w.cloud.hourly = true
	s := w.service(nil)
	asked := 0
	w.cloud.answer = func(linking.PullRequest) error {
		if asked++; asked > 1 {
			return &linking.GrantError{}
		}
		return nil
	}
	ann := w.person("ann")
	w.idle(s)
	h := w.tasks(ann)[pull.History]
	require.NotEqual(t, pull.Success, h.Status)
	require.Zero(t, h.Due)
	w.cloud.answer = nil
	w.wait(time.Hour)
	w.link(ann)
	w.idle(s)
	require.Equal(t, pull.Success, w.tasks(ann)[pull.History].Status)
	require.Len(t, w.said(ann, historyDone), 1)
}

func TestIngestionWindow_limitsWhatIsPulled(t *testing.T) {
	w := newFixture(t, nil, nil)
	w.cloud.hourly = true
	s := w.service(nil)
	u, err := w.health.CreateUser(t.Context(), team, healthdata.NewUser{
		ClientUserID: "ann", IngestionStart: &healthlab.Date{Year: 2026, Month: 2, Day: 28}, IngestionEnd: &healthlab.Date{Year: 2026, Month: 3, Day: 1},
	})
	require.NoError(t, err)
	w.link(u.ID)
	w.idle(s)
	h := w.tasks(u.ID)[pull.History]
	require.Equal(t, time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC), h.From)
	require.Equal(t, time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), h.To)
	require.Len(t, w.stored(u.ID), 48)

	// The last day, and seven more for what comes late.
	w.wait(time.Date(2026, 3, 9, 0, 0, 0, 0, time.UTC).Sub(noon) - time.Microsecond)
	w.idle(s)
	status := func() healthdata.ConnectionStatus {
		list, err := w.health.Connections().List(t.Context(), team, u.ID)
		require.NoError(t, err)
		return list[0].Status
	}
	require.Equal(t, healthdata.Connected, status())
	w.wait(time.Microsecond)
	w.idle(s)
	require.Equal(t, healthdata.Paused, status())
	asked := len(w.cloud.requests)
	w.wait(24 * time.Hour)
	w.idle(s)
	require.Len(t, w.cloud.requests, asked)
	var rule *healthlab.RuleError
	_, err = s.Refresh(t.Context(), team, u.ID, pull.MinRefreshWait)
	require.ErrorAs(t, err, &rule)
	require.Equal(t, pull.RuleNoSources, rule.Type)

	// When the end is moved, the pulls go on, without a gap.
	_, err = w.health.PatchUser(t.Context(), team, u.ID, healthdata.UserPatch{IngestionEnd: healthdata.SetTo(healthlab.Date{Year: 2026, Month: 4, Day: 1})})
	require.NoError(t, err)
	require.Equal(t, healthdata.Connected, status())
	w.idle(s)
	w.wait(time.Hour)
	w.idle(s)
	require.Len(t, w.stored(u.ID), 48+8*24+1)
}

// An upload is taken at any time, if its day lies inside the ingestion window.
func TestIngestionWindow_uploadIsJudgedByTheDayOfItsData(t *testing.T) {
	for _, class := range []string{"sdk_store", "sdk_device", "manual"} {
		w := newFixture(t, nil, func(p *healthdata.Provider) { p.Class, p.AuthType = class, "sdk" })
		s, err := pull.New(w.spy, w.health, w.refresher, nil, &pull.Options{Now: w.now})
		require.NoError(t, err)
		u, err := w.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "ann", IngestionEnd: &healthlab.Date{Year: 2026, Month: 3, Day: 1}})
		require.NoError(t, err)
		_, err = w.health.Connections().ConnectLinked(t.Context(), team, u.ID, healthdata.NewConnection{Provider: band})
		require.NoError(t, err)
		for range 3 {
			w.wait(10 * 24 * time.Hour)
			w.idle(s)
			list, err := w.health.Connections().List(t.Context(), team, u.ID)
			require.NoError(t, err)
			require.Equal(t, healthdata.Connected, list[0].Status)
			got, err := w.health.IngestSamples(t.Context(), team, u.ID, "heartrate", healthdata.Upload{Provider: band}, []healthdata.Sample{
				{Timestamp: healthlab.At(w.now().AddDate(-1, 0, 0)), Unit: "bpm", Value: healthdata.Number(60)},
				{Timestamp: healthlab.At(w.now()), Unit: "bpm", Value: healthdata.Number(60)},
			})
			require.NoError(t, err)
			require.Equal(t, healthdata.Counts{New: 1, Dropped: 1}, got)
		}
	}
}

func TestHistory_ofAnEmptyRangeSucceedsWithoutARequest(t *testing.T) {
	w := newFixture(t, nil, nil)
	s := w.service(nil)
	u, err := w.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "ann", IngestionStart: &healthlab.Date{Year: 2026, Month: 4, Day: 1}})
	require.NoError(t, err)
	w.link(u.ID)
	w.idle(s)
	h := w.tasks(u.ID)[pull.History]
	require.Equal(t, pull.Success, h.Status)
	require.Zero(t, h.DaysWithData())
	require.Len(t, w.said(u.ID, historyDone), 1)
	require.Empty(t, w.cloud.requests)
}

func TestQuarantine_keepsTheValidItemsOfAnAnswer(t *testing.T) {
	w := newFixture(t, nil, nil)
	s := w.service(nil)
	ann := w.person("ann")
	w.cloud.held[ann] = []reading{
		{at: noon.Add(-time.Hour), value: 61},
		{at: noon.Add(-2 * time.Hour), value: 62, unit: "furlong"},
	}
	w.idle(s)
	require.Equal(t, map[time.Time]float64{noon.Add(-time.Hour): 61}, w.stored(ann))
	bad, err := w.spy.Quarantined(t.Context(), team, ann, 10)
	require.NoError(t, err)
	require.Len(t, bad, 1)
	require.Equal(t, "unit", bad[0].Reasons[0].Code)
	require.Equal(t, "unit", bad[0].Reasons[0].Field)
	require.Equal(t, pull.Success, w.tasks(ann)[pull.History].Status)

	for range 2 { // the second look goes back to before the link
		w.wait(time.Hour)
		w.idle(s)
	}
	again, err := w.spy.Quarantined(t.Context(), team, ann, 10)
	require.NoError(t, err)
	require.Len(t, again, 1, "the same thing is the same refusal")
	require.EqualValues(t, 2, again[0].Count)

	other := "somebody else"
	w.cloud.owner = &other
	bob := w.person("bob")
	w.cloud.held[bob] = []reading{{at: noon, value: 61}}
	w.wait(time.Hour)
	w.idle(s)
	require.Empty(t, w.stored(bob))
	bad, err = w.spy.Quarantined(t.Context(), team, bob, 10)
	require.NoError(t, err)
	require.Equal(t, "other_user", bad[0].Reasons[0].Code)
}

// Items that the connector could not read are quarantined as those that healthdata refuses
// are, with or without other data in the page.
func TestQuarantine_takesItemsThatTheConnectorCannotRead(t *testing.T) {
	w := newFixture(t, nil, nil)
	w.cloud.unparsed = []linking.UnparsedItem{
		{Item: []byte(`{"bpm":"many"}`), Problems: []healthlab.Problem{{Path: []any{"value"}, Code: "number", Msg: "not a number"}}},
		{Item: []byte("\xff"), Problems: []healthlab.Problem{{Path: []any{"timestamp"}, Code: "instant", Msg: "not an instant"}}},
	}
	s := w.service(nil)
	ann, bob := w.person("ann"), w.person("bob")
	w.cloud.held[ann] = []reading{{at: noon.Add(-time.Hour), value: 61}}
	w.idle(s)
	require.Len(t, w.stored(ann), 1)
	for _, user := range []healthlab.UserID{ann, bob} {
		bad, err := w.spy.Quarantined(t.Context(), team, user, 10)
		require.NoError(t, err)
		require.Len(t, bad, 2, "the same thing on every page is one refusal")
		require.ElementsMatch(t, []string{"value", "timestamp"}, []string{bad[0].Reasons[0].Field, bad[1].Reasons[0].Field})
	}
}

func TestPull_outageAndRateLimitRetryAndEndedGrantStops(t *testing.T) {
	w := newFixture(t, nil, nil)
	w.cloud.hourly = true
	s := w.service(nil)
	fault := errors.New("502")
	w.cloud.answer = func(linking.PullRequest) error { return fault }
	ann := w.person("ann")
	w.idle(s)
	h := w.tasks(ann)[pull.History]
	require.Equal(t, pull.Retrying, h.Status)
	require.Equal(t, pull.ProviderDown, h.Error)
	require.Equal(t, w.now().Add(15*time.Second), h.Due)

	fault = &linking.RateLimitError{Wait: 7 * time.Minute}
	w.wait(15 * time.Second)
	w.idle(s)
	h = w.tasks(ann)[pull.History]
	require.Equal(t, pull.RateLimited, h.Error)
	require.Equal(t, w.now().Add(7*time.Minute), h.Due)
	asked := len(w.cloud.requests)
	bob := w.person("bob")
	w.wait(7*time.Minute - 3*time.Second)
	w.idle(s)
	require.Len(t, w.cloud.requests, asked, "nobody asks before the time")
	require.Equal(t, pull.Scheduled, w.tasks(bob)[pull.History].Status)

	fault = nil
	w.wait(3 * time.Second)
	w.idle(s)
	require.Equal(t, pull.Success, w.tasks(ann)[pull.History].Status)
	require.Equal(t, pull.Success, w.tasks(bob)[pull.History].Status)

	fault = &linking.GrantError{Type: healthdata.FailureDeregistered}
	w.wait(time.Hour)
	w.idle(s)
	list, err := w.health.Connections().List(t.Context(), team, ann)
	require.NoError(t, err)
	require.Equal(t, healthdata.ConnectionError, list[0].Status)
	require.Equal(t, healthdata.FailureDeregistered, list[0].ErrorDetails.ErrorType)
	asked = len(w.cloud.requests)
	w.wait(time.Hour)
	w.idle(s)
	require.Len(t, w.cloud.requests, asked)

	fault = nil
	w.link(ann)
	w.idle(s)
	require.Equal(t, pull.Success, w.tasks(ann)[pull.History].Status)
	require.Len(t, w.said(ann, historyDone), 2, "linking again fetches history again")
}

func TestHistory_isGivenUpAfterManyFailures(t *testing.T) {
	w := newFixture(t, nil, nil)
	s := w.service(nil)
	w.cloud.answer = func(linking.PullRequest) error { return errors.New("502") }
	ann := w.person("ann")
	for range 70 {
		w.idle(s)
		w.wait(time.Hour)
	}
	h := w.tasks(ann)[pull.History]
	require.Equal(t, pull.Failure, h.Status)
	require.Equal(t, pull.QuotaExhausted, h.Error)
	require.Empty(t, w.said(ann, historyDone))
}

// A provider takes a hundred requests a minute, and five hundred users link at once. Without
// HEALTHLABTEST_PROVE both are a tenth, and in a plain go test a twenty-fifth.
func TestBudget_manyUsersStayWithinAndUseTheRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		users, limit := prove.Counts(20, 50, 500), prove.Counts(4, 10, 100)
		w := newFixture(t, time.Now, func(p *healthdata.Provider) {
			p.Resources = []healthdata.ProviderResource{{Resource: "activity"}, {Resource: "heartrate"}, {Resource: "steps"}}
			p.RateLimits.App = []healthdata.RateLimit{{Requests: limit, Seconds: 60}}
		})
		r := rand.New(rand.NewPCG(1, 2))
		w.cloud.perMin = limit
		var one sync.Mutex // at r: many ask at one time
		w.cloud.latency = func() time.Duration {
			one.Lock()
			defer one.Unlock()
			return 100*time.Millisecond + time.Duration(r.IntN(900))*time.Millisecond
		}
		begin := time.Now()
		for i := range users {
			w.person(fmt.Sprint("person ", i))
		}
		stop := w.run(t, 2, nil)
		const minutes = 30 // nine requests wait for each user: three resources, three pieces
		time.Sleep(minutes * time.Minute)
		stop()
		require.Zero(t, w.cloud.refused)
		require.Len(t, w.cloud.first, users)
		var last time.Time
		for _, at := range w.cloud.first {
			if at.After(last) {
				last = at
			}
		}
		ideal := time.Duration(users) * time.Minute / time.Duration(limit)
		t.Logf("%d requests in %d minutes; the last user's first data after %v, ideally %v", len(w.cloud.requests), minutes, last.Sub(begin), ideal)
		require.LessOrEqual(t, last.Sub(begin), ideal*12/10)
		require.GreaterOrEqual(t, len(w.cloud.requests), minutes*limit*95/100)
	})
}

// run starts processes; stop ends them.
func (w *fixture) run(t *testing.T, n int, edit func(*pull.Options)) (stop func()) {
	t.Helper()
	ctx, cancel := contextWithCancel(t)
	done := make(chan error, n)
	for range n {
		s := w.service(edit)
		go func() { done <- s.Run(ctx) }()
	}
	return func() {
		cancel()
		for range n {
			require.NoError(t, <-done)
		}
	}
}

func TestRefresh_listsRefreshedPendingAndFailedResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, time.Now, func(p *healthdata.Provider) {
			p.Resources = []healthdata.ProviderResource{{Resource: "body"}, {Resource: "heartrate"}, {Resource: "steps"}}
		})
		w.cloud.hourly = true
		var steps time.Duration // what an answer takes; guarded by the cloud's lock
		slow := func(d time.Duration) {
			w.cloud.mu.Lock()
			defer w.cloud.mu.Unlock()
			steps = d
		}
		w.cloud.answer = func(r linking.PullRequest) error {
			switch {
			case r.Resource == "body":
				return errors.New("502")
			case r.Resource == "steps" && steps > 0:
				d := steps
				w.cloud.mu.Unlock()
				time.Sleep(d)
				w.cloud.mu.Lock()
			}
			return nil
		}
		ann := w.person("ann")
		stop := w.run(t, 2, nil)
		defer stop()
		s := w.service(nil)
		time.Sleep(time.Hour)
		slow(20 * time.Second)

		begin := time.Now()
		got, err := s.Refresh(t.Context(), team, ann, 10*time.Second)
		require.NoError(t, err)
		require.Equal(t, pull.RefreshResult{
			Success: true, User: ann, Refreshed: []string{band + "/vitals/heartrate"},
			InProgress: []string{band + "/vitals/steps"}, Failed: []string{band + "/body"},
		}, got)
		require.Equal(t, 10*time.Second, time.Since(begin))
		tasks, err := w.spy.Tasks(t.Context(), team, ann)
		require.NoError(t, err)
		time.Sleep(15 * time.Second) // it goes on
		later, err := w.spy.Tasks(t.Context(), team, ann)
		require.NoError(t, err)
		for i, x := range later {
			if x.Resource == "steps" && x.Kind == pull.News {
				require.Equal(t, tasks[i].Ended+1, x.Ended)
			}
		}
		slow(0)
		for range 7 {
			got, err = s.Refresh(t.Context(), team, ann, time.Minute)
			require.NoError(t, err)
			require.Empty(t, got.InProgress)
		}
		var limit *pull.RefreshLimitError
		_, err = s.Refresh(t.Context(), team, ann, time.Minute)
		require.ErrorAs(t, err, &limit, "the ninth in an hour")
		time.Sleep(limit.Wait)
		_, err = s.Refresh(t.Context(), team, ann, time.Minute)
		require.NoError(t, err, "those that were refused do not count")

		for _, d := range []time.Duration{0, 5*time.Second - 1, time.Minute + 1} {
			_, err = s.Refresh(t.Context(), team, ann, d)
			require.ErrorIs(t, err, healthlab.Invalid)
		}
		_, err = s.Refresh(t.Context(), team, healthlab.UserID{}, time.Minute)
		require.ErrorIs(t, err, healthlab.NotFound)
		bob, err := w.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "bob"})
		require.NoError(t, err)
		var rule *healthlab.RuleError
		_, err = s.Refresh(t.Context(), team, bob.ID, time.Minute)
		require.ErrorAs(t, err, &rule)
		require.Equal(t, pull.RuleNoSources, rule.Type)
	})
}

// A source whose grant has ended is among those that failed, also where it is the only one.
func TestRefresh_endedGrantIsAmongTheFailedSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, time.Now, func(p *healthdata.Provider) {
			p.Resources = []healthdata.ProviderResource{{Resource: "body"}, {Resource: "heartrate"}}
		})
		w.cloud.answer = func(linking.PullRequest) error { return &linking.GrantError{} }
		ann := w.person("ann")
		stop := w.run(t, 1, nil)
		defer stop()
		for range 3 { // the first one may be what finds out
			got, err := w.service(nil).Refresh(t.Context(), team, ann, 10*time.Second)
			require.NoError(t, err)
			require.Equal(t, pull.RefreshResult{
				Success: true, User: ann, Refreshed: []string{}, InProgress: []string{}, Failed: []string{band + "/body", band + "/vitals/heartrate"},
			}, got)
			time.Sleep(time.Minute)
		}
		u, err := w.health.User(t.Context(), team, ann)
		require.NoError(t, err)
		require.Equal(t, healthdata.ConnectionError, u.Connection(band).Status)
	})
}

// A refresh at a provider that answers costs the same beside ten people of a provider, and
// of a team, that hang.
func TestRefresh_isNotDelayedByAnotherHangingProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, time.Now, func(p *healthdata.Provider) {
			p.Resources = []healthdata.ProviderResource{{Resource: "body"}, {Resource: "heartrate"}, {Resource: "steps"}}
		})
		hanging := false
		w.cloud.latency = func() time.Duration {
			w.mu.Lock()
			defer w.mu.Unlock()
			if hanging {
				return time.Hour
			}
			return 100 * time.Millisecond
		}
		quick := &cloud{now: time.Now, page: 1000, held: map[healthlab.UserID][]reading{}, first: map[healthlab.UserID]time.Time{}, hourly: true,
			latency: func() time.Duration { return 100 * time.Millisecond }}
		s, err := pull.New(w.spy, w.health, w.refresher, map[string]linking.ProviderConnector{band: {Puller: w.cloud}, watch: {Puller: quick}},
			&pull.Options{Now: time.Now, Timeout: 30 * time.Second})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		ann, err := w.health.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "ann"})
		require.NoError(t, err)
		w.linkTo(ann.ID, watch, "")
		var others []healthlab.UserID
		for i := range 10 {
			others = append(others, w.person(fmt.Sprint("person ", i)))
		}
		time.Sleep(time.Hour)
		refresh := func() time.Duration {
			begin := time.Now()
			got, err := s.Refresh(t.Context(), team, ann.ID, time.Minute)
			require.NoError(t, err)
			require.Equal(t, []string{watch + "/vitals/heartrate"}, got.Refreshed)
			return time.Since(begin)
		}
		alone := refresh()
		w.mu.Lock()
		hanging = true
		w.mu.Unlock()
		for _, user := range others {
			go func() { _, _ = s.Refresh(t.Context(), team, user, pull.MinRefreshWait) }()
		}
		time.Sleep(time.Second) // their requests are under way
		require.LessOrEqual(t, refresh(), 2*alone)
		stop()
		require.NoError(t, <-ended)
	})
}

// Two processes keep within a limit that is not configured: the provider states the remaining
// requests in every answer, and refuses none.
func TestBudget_followsTheRateLimitStatedInResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, users, window = 60, 40, time.Minute
		w := newFixture(t, time.Now, func(p *healthdata.Provider) {
			p.Resources = []healthdata.ProviderResource{{Resource: "activity"}, {Resource: "heartrate"}, {Resource: "steps"}}
		})
		begin := time.Now()
		var in struct { // the window
			sync.Mutex
			n, asked, refused int
			over              time.Time
		}
		w.cloud.latency = func() time.Duration { return 300 * time.Millisecond }
		w.cloud.answer = func(linking.PullRequest) error {
			in.Lock()
			defer in.Unlock()
			now := time.Now()
			if !now.Before(in.over) {
				in.n, in.over = 0, now.Truncate(window).Add(window)
			}
			in.asked++
			if in.n++; in.n > limit {
				in.refused++
				return &linking.RateLimitError{Wait: in.over.Sub(now)}
			}
			return nil
		}
		w.cloud.rates = func() []linking.RateLimit {
			in.Lock()
			defer in.Unlock()
			return []linking.RateLimit{{Scope: linking.RateApp, Remaining: limit - in.n, Reset: in.over}}
		}
		for i := range users {
			w.person(fmt.Sprint("person ", i))
		}
		stop := w.run(t, 2, nil)
		for {
			time.Sleep(10 * time.Second)
			done := 0
			for _, u := range w.spy.ended() {
				done += u
			}
			if done == 3*users {
				break
			}
			require.Less(t, time.Since(begin), time.Hour)
		}
		stop()
		minutes := time.Since(begin).Minutes()
		t.Logf("%d requests in %.1f minutes, %d refused", in.asked, minutes, in.refused)
		require.Zero(t, in.refused)
		require.GreaterOrEqual(t, float64(in.asked), 0.8*limit*minutes)
	})
}
