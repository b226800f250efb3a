package pull_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// hears is a provider whose messages say what they say.
type hears func(m linking.Message) (linking.ListenResult, error)

func (f hears) Listen(_ context.Context, m linking.Message) (linking.ListenResult, error) {
	return f(m)
}

// listening is a service that fetches from the cloud, and is told.
func (w *fixture) listening(listen func(m linking.Message) (linking.ListenResult, error)) *pull.Service {
	w.t.Helper()
	s, err := pull.New(w.spy, w.health, w.refresher, map[string]linking.ProviderConnector{
		band: {Puller: w.cloud, Listener: hears(listen)},
	}, &pull.Options{Now: w.cloud.now})
	require.NoError(w.t, err)
	return s
}

func (w *fixture) announce(s *pull.Service, id string) {
	w.t.Helper()
	_, err := s.Listen(w.t.Context(), band, linking.Message{Method: "POST", Body: []byte(id)})
	require.NoError(w.t, err)
}

func TestNotification_startsAFetchImmediately(t *testing.T) {
	w := newFixture(t, nil, nil)
	ann := w.person("ann")
	var since time.Time
	s := w.listening(func(m linking.Message) (linking.ListenResult, error) {
		require.Equal(t, w.now(), m.At)
		return linking.ListenResult{Notifications: []linking.Notification{{ID: string(m.Body), ExternalUserID: "account of " + ann.String(), Since: since}}}, nil
	})
	w.idle(s)
	w.wait(time.Hour)
	w.idle(s)
	w.wait(time.Minute)
	w.idle(s)
	asked := len(w.cloud.requests)
	hold := func(at time.Time) {
		w.cloud.held[ann] = append(w.cloud.held[ann], reading{at: at, value: 61})
	}
	hold(w.now().Add(-time.Second))
	w.announce(s, "1")
	w.idle(s)
	require.Len(t, w.cloud.requests, asked+1)
	require.Len(t, w.stored(ann), 1)
	w.announce(s, "1")
	w.idle(s)
	require.Len(t, w.cloud.requests, asked+1, "the same message again")

	// As far back as the provider says, and no further the next time.
	hold(w.now().AddDate(0, 0, -40))
	since = w.now().AddDate(0, 0, -41)
	w.announce(s, "2")
	w.idle(s)
	require.Len(t, w.stored(ann), 2)
	require.Zero(t, w.tasks(ann)[pull.News].Reach)
	require.Len(t, w.cloud.requests, asked+3, "two pieces")
	since = time.Time{}
	w.announce(s, "3")
	w.idle(s)
	require.Len(t, w.cloud.requests, asked+4)
	since = w.now().AddDate(-9, 0, 0)
	w.announce(s, "4")
	w.idle(s)
	require.Equal(t, w.now().AddDate(0, 0, -90), w.tasks(ann)[pull.News].From, "not for ever")
}

// A message that arrives while news is being fetched makes a new fetch after that one.
func TestNotification_duringAFetchCausesAnotherFetch(t *testing.T) {
	w := newFixture(t, nil, nil)
	ann := w.person("ann")
	n := 0
	s := w.listening(func(linking.Message) (linking.ListenResult, error) {
		n++
		return linking.ListenResult{Notifications: []linking.Notification{{ID: strconv.Itoa(n), ExternalUserID: "account of " + ann.String()}}}, nil
	})
	w.idle(s)
	w.wait(time.Hour)
	at := w.now().Add(-time.Second)
	asked := len(w.cloud.requests)
	w.cloud.answer = func(linking.PullRequest) error {
		if len(w.cloud.requests) > asked+1 {
			w.cloud.held[ann] = []reading{{at: at, value: 61}} // not before the second time
			return nil
		}
		w.wait(time.Second) // it comes later than the run began
		w.announce(s, "")
		return nil
	}
	w.idle(s)
	require.Len(t, w.cloud.requests, asked+2)
	require.Len(t, w.stored(ann), 1)
}

// Before the history has ended, a message makes news be fetched, and no data of the history
// is counted as news.
func TestNotification_duringHistoryFetchesOnlyNewData(t *testing.T) {
	w := newFixture(t, nil, nil)
	w.cloud.hourly = true
	ann := w.person("ann")
	s := w.listening(func(linking.Message) (linking.ListenResult, error) {
		return linking.ListenResult{Notifications: []linking.Notification{{
			ID: "1", ExternalUserID: "account of " + ann.String(), Since: noon.AddDate(0, 0, -30),
		}}}, nil
	})
	history := true // fails for now
	w.cloud.answer = func(r linking.PullRequest) error {
		if history && r.From.Before(noon) {
			return healthlab.Unavailable
		}
		return nil
	}
	w.idle(s)
	w.wait(2 * time.Hour)
	w.announce(s, "")
	w.idle(s)
	n := w.tasks(ann)[pull.News]
	require.EqualValues(t, 2, n.Sent)
	require.Equal(t, noon.AddDate(0, 0, -30), n.Reach, "not looked for yet")
	history = false
	w.wait(time.Hour)
	w.idle(s)
	w.wait(time.Hour)
	w.idle(s)
	require.Zero(t, w.tasks(ann)[pull.News].Reach)
	require.EqualValues(t, 4, w.tasks(ann)[pull.News].Sent)
	require.Len(t, w.stored(ann), 90*24+4)
}

func TestNotification_invalidOrUnknownMessageFetchesNothing(t *testing.T) {
	w := newFixture(t, nil, nil)
	ann := w.person("ann")
	var fault error
	var result linking.ListenResult
	s := w.listening(func(linking.Message) (linking.ListenResult, error) { return result, fault })
	w.idle(s)
	listen := func(provider string) (linking.ListenResult, error) {
		return s.Listen(t.Context(), provider, linking.Message{Body: []byte("marker")})
	}
	for cause, want := range map[error]healthlab.ErrorKind{
		healthlab.Unauthenticated: healthlab.Unauthenticated, healthlab.Invalid: healthlab.Invalid,
		healthlab.NotFound: healthlab.Unavailable, context.DeadlineExceeded: healthlab.Unavailable,
	} {
		fault = cause
		_, err := listen(band)
		require.ErrorIs(t, err, want)
		require.NotContains(t, err.Error(), "marker")
	}
	fault = nil
	_, err := listen("nobody")
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = w.service(nil).Listen(t.Context(), band, linking.Message{})
	require.ErrorIs(t, err, healthlab.NotFound, "it sends nothing")

	asked := len(w.cloud.requests)
	for _, account := range []string{"", "nobody", "a\x00b"} {
		result.Notifications = []linking.Notification{{ExternalUserID: account}}
		_, err = listen(band)
		require.NoError(t, err)
	}
	w.idle(s)
	require.Len(t, w.cloud.requests, asked)

	// Without an id, the message itself is the name.
	result = linking.ListenResult{Reply: []byte("hello"), Notifications: []linking.Notification{{ExternalUserID: "account of " + ann.String()}}}
	for range 2 {
		got, err := s.Listen(t.Context(), band, linking.Message{Body: []byte("other")})
		require.NoError(t, err)
		require.Equal(t, "hello", string(got.Reply))
		w.wait(time.Minute)
		w.idle(s)
	}
	require.Len(t, w.cloud.requests, asked+1)
}

// A message about a revoked consent makes a fetch; the provider's answer to that fetch
// decides.
func TestNotification_ofARevocationIsConfirmedByAFetch(t *testing.T) {
	w := newFixture(t, nil, nil)
	ann := w.person("ann")
	s := w.listening(func(linking.Message) (linking.ListenResult, error) {
		return linking.ListenResult{Notifications: []linking.Notification{{ID: "gone", ExternalUserID: "account of " + ann.String()}}}, nil
	})
	w.idle(s)
	w.cloud.answer = func(linking.PullRequest) error { return &linking.GrantError{Type: healthdata.FailureDeregistered} }
	w.wait(time.Minute)
	w.announce(s, "")
	w.idle(s)
	list, err := w.health.Connections().List(t.Context(), team, ann)
	require.NoError(t, err)
	require.Equal(t, healthdata.ConnectionError, list[0].Status)
	require.Len(t, w.said(ann, historyDone), 1)
}

// Late data is found: within two days by every fetch, within two weeks by the daily one, and
// after an outage of any length by the first fetch.
func TestPull_refetchesRecentDaysToFindLateData(t *testing.T) {
	w := newFixture(t, nil, nil)
	s := w.service(nil)
	ann := w.person("ann")
	pass := func(d time.Duration) {
		for end := w.now().Add(d); w.now().Before(end); {
			w.wait(15 * time.Minute)
			w.idle(s)
		}
	}
	pass(20 * 24 * time.Hour)
	hold := func(ago time.Duration) {
		w.cloud.held[ann] = append(w.cloud.held[ann], reading{at: w.now().Add(-ago), value: 61})
	}
	hold(47 * time.Hour)
	pass(time.Hour)
	require.Len(t, w.stored(ann), 1)
	hold(12 * 24 * time.Hour)
	pass(25 * time.Hour)
	require.Len(t, w.stored(ann), 2)
	hold(16 * 24 * time.Hour)
	pass(49 * time.Hour)
	require.Len(t, w.stored(ann), 2, "nobody looks back for ever")

	w.cloud.answer = func(linking.PullRequest) error { return healthlab.Unavailable }
	for range 40 { // days on which the provider is down
		hold(0)
		pass(24 * time.Hour)
	}
	require.Len(t, w.stored(ann), 2)
	w.cloud.answer = nil
	pass(2 * time.Hour)
	require.Len(t, w.stored(ann), 42)
}

// A message may itself carry data, deletions and the end of a grant.
func TestNotification_mayCarryDataDeletionsOrRevocation(t *testing.T) {
	w := newFixture(t, nil, func(p *healthdata.Provider) {
		p.Resources = append(p.Resources, healthdata.ProviderResource{Resource: "workouts"})
	})
	ann := w.person("ann")
	item := func() linking.Notification { return linking.Notification{} }
	s := w.listening(func(linking.Message) (linking.ListenResult, error) {
		a := item()
		a.ExternalUserID = "account of " + ann.String()
		return linking.ListenResult{Notifications: []linking.Notification{a}}, nil
	})
	w.idle(s)
	w.wait(time.Minute)
	asked := len(w.cloud.requests)
	workouts := func() int {
		all, err := w.health.Summaries(t.Context(), team, ann, healthdata.SummaryQuery{Resource: "workouts", From: noon.AddDate(0, 0, -9), To: noon.AddDate(0, 0, 9)})
		require.NoError(t, err)
		return len(all)
	}
	watch := healthdata.Source{Type: healthdata.SourceWatch}
	at := healthlab.At(noon.Add(-time.Hour))
	item = func() linking.Notification {
		return linking.Notification{Data: []linking.ResourceData{
			{Resource: "heartrate", Items: []linking.PullItem{{Source: watch, Samples: []healthdata.Sample{{Timestamp: at, Unit: "bpm", Value: healthdata.Number(61)}}}}},
			{Resource: "workouts", Items: []linking.PullItem{{Source: watch, Summaries: []healthdata.Summary{
				&healthdata.Workout{Head: healthdata.Head{ExternalID: "w1"}, TimeStart: at, TimeEnd: healthlab.At(noon)},
			}}}},
		}}
	}
	for range 2 {
		w.wait(time.Second)
		w.announce(s, "1")
		require.Len(t, w.stored(ann), 1)
		require.Equal(t, 1, workouts())
	}
	item = func() linking.Notification {
		return linking.Notification{Data: []linking.ResourceData{
			{Resource: "heartrate", Items: []linking.PullItem{{Source: watch, Deleted: []linking.DeletedRecord{{At: at}}}}},
			{Resource: "workouts", Items: []linking.PullItem{{Source: watch, Deleted: []linking.DeletedRecord{{ID: "w1"}}}}},
		}}
	}
	for range 2 {
		w.wait(time.Second)
		w.announce(s, "2")
		require.Empty(t, w.stored(ann))
		require.Zero(t, workouts())
	}
	w.idle(s)
	require.Len(t, w.cloud.requests, asked, "nothing is fetched")

	status := func() any {
		u, err := w.health.User(t.Context(), team, ann)
		require.NoError(t, err)
		return u.Connection(band).Status
	}
	require.Equal(t, healthdata.Connected, status())
	item = func() linking.Notification { return linking.Notification{Unlinked: true} }
	for range 2 {
		w.announce(s, "3")
		require.NotEqual(t, healthdata.Connected, status())
	}
}
