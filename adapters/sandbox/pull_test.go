package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// band makes up what [watch] fetches.
var band = sandbox.Provider{Slug: "acme_band"}

// watch is a user who links sources of the sandbox, and a service that fetches their data.
type watch struct {
	t         *testing.T
	team      healthlab.TeamID
	user      healthlab.UserID
	now       time.Time
	health    *healthdata.Service
	links     *linking.Service
	refresher *linking.CredentialRefresher
	pulls     *pull.Service
	store     *memory.Store
	band      *sandbox.Connector
	ids       []uuid.UUID // of events, among others
}

func newWatch(t *testing.T, slugs ...string) *watch {
	t.Helper()
	resources := []healthdata.ProviderResource{{Resource: "sleep"}, {Resource: "steps"}}
	if len(slugs) > 0 {
		resources = nil
	}
	for _, slug := range slugs {
		resources = append(resources, healthdata.ProviderResource{Resource: slug})
	}
	w := &watch{t: t, team: healthlab.TeamID{UUID: uuid.New()}, now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return w.now }
	providers, err := healthdata.NewProviders([]healthdata.Provider{{
		Slug: "acme_band", Name: "Band", AuthType: "oauth", Category: "device", Class: "cloud",
		Resources: resources,
		Backfill:  healthdata.Backfill{DefaultDays: 25, Mode: "pull"},
	}})
	require.NoError(t, err)
	w.store = memory.New(&memory.Options{Now: clock})
	w.health, err = healthdata.New(w.store.Users(), w.store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox, Now: clock, NewID: func() uuid.UUID {
		w.ids = append(w.ids, uuid.New())
		return w.ids[len(w.ids)-1]
	}})
	require.NoError(t, err)
	seal, err := healthlab.NewAESSealer("k", map[string][]byte{"k": bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	w.band = sandbox.NewConnector("acme_band", &sandbox.ConnectorOptions{Now: clock, PushKey: []byte("key")})
	flows := map[string]linking.ProviderConnector{"acme_band": w.band.Flows()}
	w.links, err = linking.New(w.store.Linking(), w.health, flows, seal, &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{bytes.Repeat([]byte{2}, 32)}, Now: clock})
	require.NoError(t, err)
	w.refresher, err = linking.NewCredentialRefresher(w.store.Credentials(), w.health, flows, seal, &linking.CredentialRefresherOptions{Now: clock})
	require.NoError(t, err)
	w.pulls, err = pull.New(w.store.Pulls(), w.health, w.refresher, flows, &pull.Options{
		Now: clock, Timeout: 10 * time.Millisecond,
	})
	require.NoError(t, err)
	u, err := w.health.CreateUser(t.Context(), w.team, healthdata.NewUser{ClientUserID: "ann"})
	require.NoError(t, err)
	w.user = u.ID
	return w
}

// busyWatch is newWatch with a user who has recorded a resource in the last days: some users
// never record some resources.
func busyWatch(t *testing.T, resource string, slugs ...string) *watch {
	t.Helper()
	for {
		w := newWatch(t, slugs...)
		for day := healthlab.DateOf(w.now).AddDays(-15); day.Before(healthlab.DateOf(w.now).AddDays(-2)); day = day.AddDays(1) {
			if _, samples := band.Samples(w.user, resource, day, time.UTC); len(samples) > 0 {
				return w
			}
		}
	}
}

// link signs in under a name.
func (w *watch) link(name string) {
	w.t.Helper()
	issued, err := w.links.CreateToken(w.t.Context(), w.team, linking.NewToken{User: w.user})
	require.NoError(w.t, err)
	page, err := w.links.Authorize(w.t.Context(), issued.Token, linking.OAuthSignIn{Provider: "acme_band"})
	require.NoError(w.t, err)
	back, err := w.band.Approve(page.URL, name)
	require.NoError(w.t, err)
	q := queryOf(w.t, back)
	r, err := w.links.Callback(w.t.Context(), linking.Callback{Provider: "acme_band", State: q.Get("state"), Code: q.Get("code")})
	require.NoError(w.t, err)
	require.Equal(w.t, linking.ResultSuccess, r.State)
}

// pass lets time go by, in steps, and does what is due in them.
func (w *watch) pass(d, step time.Duration) {
	w.t.Helper()
	for end := w.now.Add(d); ; w.now = w.now.Add(step) {
		for n := 1; n > 0; {
			var err error
			n, err = w.pulls.Step(w.t.Context())
			require.NoError(w.t, err)
		}
		if !w.now.Before(end) {
			return
		}
	}
}

func (w *watch) connection() healthdata.ConnectionView {
	w.t.Helper()
	list, err := w.health.Connections().List(w.t.Context(), w.team, w.user)
	require.NoError(w.t, err)
	require.Len(w.t, list, 1)
	return list[0]
}

// steps reads what is stored of a day, in the order of time.
func (w *watch) steps(from, to time.Time) []healthdata.Sample {
	w.t.Helper()
	list, err := w.health.AllSamples(w.t.Context(), w.team, w.user, healthdata.SampleQuery{
		Resource: "steps", From: from, To: to.Add(-time.Microsecond), // a query has both ends
	})
	require.NoError(w.t, err)
	return list
}

// truth is what the provider holds of a stretch of time, at home.
func (w *watch) truth(from, to time.Time) (out []string) {
	for day := healthlab.DateOf(from).AddDays(-1); !day.After(healthlab.DateOf(to)); day = day.AddDays(1) {
		_, samples := band.Samples(w.user, "steps", day, time.UTC)
		for _, s := range samples {
			if !s.Timestamp.Before(from) && s.Timestamp.Before(to) {
				out = append(out, fmt.Sprint(s.Timestamp, s.Value.Number))
			}
		}
	}
	return out
}

func (w *watch) stored(from, to time.Time) (out []string) {
	for _, s := range w.steps(from, to) {
		out = append(out, fmt.Sprint(s.Timestamp, s.Value.Number))
	}
	return out
}

// Despite all failures of a provider, everything it holds is stored in the end, once.
func TestPull_storesEverythingOnceDespiteFailures(t *testing.T) {
	for _, behaviour := range []string{
		"", sandbox.BehaviourFlaky, sandbox.BehaviourHanging, sandbox.BehaviourLimited, sandbox.BehaviourCrowded, sandbox.BehaviourGarbled,
		sandbox.BehaviourLate, sandbox.BehaviourResent,
	} {
		t.Run(behaviour, func(t *testing.T) {
			w := newWatch(t)
			begin := w.now
			w.link("ann+" + behaviour)
			w.pass(time.Hour, time.Minute)
			done, err := w.pulls.Progress(t.Context(), w.team, w.user, "acme_band")
			require.NoError(t, err)
			require.Equal(t, []int{2, 2, 0}, []int{done.Total, done.Done, done.Failed})
			w.pass(60*time.Hour, 10*time.Minute) // a grant lives for an hour
			until := begin.Add(20 * time.Hour)   // the last hours may be late, or incomplete
			require.Equal(t, w.truth(begin.AddDate(0, 0, -25), until), w.stored(begin.AddDate(0, 0, -25), until))
			require.Equal(t, healthdata.Connected, w.connection().Status)
			sleep, err := w.health.Summaries(t.Context(), w.team, w.user, healthdata.SummaryQuery{
				Resource: "sleep", From: begin.AddDate(0, 0, -24), To: begin,
			})
			require.NoError(t, err)
			require.Len(t, sleep, 24)
		})
	}
}

func TestPull_travellingUserHasSeveralOffsets(t *testing.T) {
	w := newWatch(t)
	w.link("ann+" + sandbox.BehaviourTravelling)
	w.pass(time.Hour, time.Minute)
	offsets := map[int]bool{}
	for _, s := range w.steps(w.now.AddDate(0, 0, -20), w.now) {
		offsets[*s.TimezoneOffset] = true
	}
	require.Len(t, offsets, 4)
}

func TestPull_invalidDataIsQuarantinedWithReasons(t *testing.T) {
	w := newWatch(t)
	begin := w.now
	w.link("ann+" + sandbox.BehaviourStrange)
	w.pass(time.Hour, time.Minute)
	require.Equal(t, w.truth(begin.AddDate(0, 0, -25), begin), w.stored(begin.AddDate(0, 0, -25), begin))
	bad, err := w.store.Pulls().Quarantined(t.Context(), w.team, w.user, 100)
	require.NoError(t, err)
	codes := map[string]bool{}
	for _, r := range bad {
		codes[r.Reasons[0].Code] = true
	}
	require.Equal(t, map[string]bool{"other_user": true, "unit": true, "future": true, "duplicate": true}, codes)
}

func TestPull_endedGrantFailsTheConnection(t *testing.T) {
	for behaviour, want := range map[string]string{
		sandbox.BehaviourEnded:     healthdata.FailureTokenRefresh,
		sandbox.BehaviourWithdrawn: healthdata.FailureDeregistered,
	} {
		w := newWatch(t)
		w.link("ann+" + behaviour)
		first := w.connection()
		w.pass(time.Minute, time.Minute)
		c := w.connection()
		require.Equal(t, healthdata.ConnectionError, c.Status)
		require.Equal(t, want, c.ErrorDetails.ErrorType)

		w.link("ann")
		w.pass(time.Minute, time.Minute)
		c = w.connection()
		require.Equal(t, healthdata.Connected, c.Status)
		require.Equal(t, first.CreatedOn, c.CreatedOn, "it is the same connection")
		require.NotZero(t, len(w.steps(w.now.AddDate(0, 0, -20), w.now)))
		w.band.Withdraw("ann")
		w.pass(20*time.Minute, time.Minute)
		require.Equal(t, healthdata.ConnectionError, w.connection().Status)
		require.NotZero(t, len(w.steps(w.now.AddDate(0, 0, -20), w.now)), "data is kept")
	}
}

func TestRefresh_outageKeepsTheConnection(t *testing.T) {
	w := newWatch(t)
	w.link("ann+" + sandbox.BehaviourStuck)
	w.pass(3*time.Hour, time.Minute)
	require.Equal(t, healthdata.Connected, w.connection().Status)
	require.Zero(t, len(w.steps(w.now.AddDate(0, 0, -20), w.now)))
}

func TestRefresh_rotatesTheSecretAndInvalidatesUsedOnes(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	c := sandbox.NewConnector("acme_band", &sandbox.ConnectorOptions{Now: func() time.Time { return now }})
	signed, err := c.SignIn(t.Context(), linking.PasswordRequest{Username: "ann"})
	require.NoError(t, err)
	secrets := [][]byte{signed.Grant.Secret}
	next := func(s []byte) error {
		r, err := c.Refresh(t.Context(), s)
		if err == nil {
			secrets = append(secrets, r.Secret)
			require.Equal(t, now.Add(time.Hour), r.ExpiresAt)
		}
		return err
	}
	require.NoError(t, next(secrets[0]))
	require.NoError(t, next(secrets[1]))
	require.NoError(t, next(secrets[1]), "the one before works")
	var over *linking.GrantError
	require.ErrorAs(t, next(secrets[0]), &over)
	ask := func(s []byte) error {
		_, err := c.Pull(t.Context(), linking.PullRequest{Secret: s, User: healthlab.UserID{UUID: uuid.New()}, Resource: "steps", From: now.Add(-time.Hour), To: now})
		return err
	}
	require.NoError(t, ask(secrets[len(secrets)-1]))
	now = now.Add(time.Hour)
	require.ErrorIs(t, ask(secrets[len(secrets)-1]), healthlab.Unauthenticated)
	require.ErrorIs(t, ask([]byte("nobody's")), healthlab.Unauthenticated)
	other := sandbox.NewConnector("acme_band", nil) // of another process, which has seen nothing
	_, err = other.Refresh(t.Context(), secrets[len(secrets)-1])
	require.NoError(t, err)
}

// A message makes the service fetch what it announces; a message of another sender does not.
func TestPush_startsAPullOnlyIfItsSenderIsVerified(t *testing.T) {
	w := newWatch(t)
	w.link("ann")
	w.pass(20*time.Minute, time.Minute)
	from := w.now
	w.now = w.now.Add(8 * time.Minute)
	send := func(h http.Header, body []byte) error {
		_, err := w.pulls.Listen(t.Context(), "acme_band", linking.Message{Method: "POST", Header: h, Body: body})
		if err == nil {
			w.pass(0, time.Minute)
		}
		return err
	}
	tries := func() (at time.Time) {
		list, err := w.store.Pulls().Tasks(t.Context(), w.team, w.user)
		require.NoError(t, err)
		for _, k := range list {
			if k.Kind == pull.News && k.Resource == "steps" {
				at = k.LastTry
			}
		}
		return at
	}
	require.False(t, tries().After(from))
	h, body := w.band.Push("1", "ann", w.now, "steps")
	for name, bad := range map[string]func(http.Header) []byte{
		"body":      func(http.Header) []byte { return append([]byte(" "), body...) },
		"signature": func(h http.Header) []byte { h.Set(sandbox.PushSignature, "00"); return body },
		"time":      func(h http.Header) []byte { h.Set(sandbox.PushTime, "1"); return body },
		"none":      func(h http.Header) []byte { h.Del(sandbox.PushSignature); return body },
	} {
		own := h.Clone()
		require.ErrorIs(t, send(own, bad(own)), healthlab.Unauthenticated, name)
	}
	other := sandbox.NewConnector("acme_band", &sandbox.ConnectorOptions{PushKey: []byte("other"), Now: func() time.Time { return w.now }})
	require.ErrorIs(t, send(other.Push("2", "ann", time.Time{})), healthlab.Unauthenticated)
	require.False(t, tries().After(from))
	require.NoError(t, send(h, body))
	require.Equal(t, w.now, tries())
	w.now = w.now.Add(5*time.Minute + time.Second)
	require.ErrorIs(t, send(h, body), healthlab.Unauthenticated, "too old")

	ask := func(query string) (linking.ListenResult, error) {
		q, err := url.ParseQuery(query)
		require.NoError(t, err)
		return w.pulls.Listen(t.Context(), "acme_band", linking.Message{Method: "GET", Query: q})
	}
	heard, err := ask(w.band.Verify("abc"))
	require.NoError(t, err)
	require.Equal(t, "abc", string(heard.Reply))
	_, err = ask(other.Verify("abc"))
	require.ErrorIs(t, err, healthlab.Unauthenticated)
	_, err = ask(w.band.Verify("%3Cscript%3E"))
	require.ErrorIs(t, err, healthlab.Invalid)
}

// A summary of a provider has the provider's own payload, for teams that keep payloads;
// generated summaries have none.
func TestPull_storesTheProvidersPayloadIfTheTeamKeepsPayloads(t *testing.T) {
	c := sandbox.NewConnector("acme_band", nil)
	in, err := c.SignIn(t.Context(), linking.PasswordRequest{Username: "ann", Password: "x"})
	require.NoError(t, err)
	to := time.Now()
	r := linking.PullRequest{Secret: in.Grant.Secret, User: healthlab.UserID{UUID: uuid.New()}, Resource: "sleep", From: to.AddDate(0, 0, -5), To: to}
	page, err := c.Pull(t.Context(), r)
	require.NoError(t, err)
	require.NotEmpty(t, page.Items)
	for _, item := range page.Items {
		for _, s := range item.Summaries {
			raw := string(healthdata.HeadOf(s).Raw)
			require.Contains(t, raw, `"kind":"sleep"`)
			require.NotContains(t, raw, `"user_id"`)
		}
	}
	page, err = sandbox.Demo{}.Pull(t.Context(), r)
	require.NoError(t, err)
	require.NotEmpty(t, page.Items)
	for _, item := range page.Items {
		for _, s := range item.Summaries {
			require.Nil(t, healthdata.HeadOf(s).Raw)
		}
	}
}

func TestDemo_returnsInventedDataForTheRange(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	d := sandbox.Demo{Now: func() time.Time { return now }}
	r := linking.PullRequest{User: healthlab.UserID{UUID: uuid.New()}, Resource: "steps", From: now.AddDate(0, 0, -30), To: now.AddDate(0, 0, 1)}
	seen := map[time.Time]bool{}
	for pages := 1; ; pages++ {
		page, err := d.Pull(t.Context(), r)
		require.NoError(t, err)
		for _, item := range page.Items {
			for _, s := range item.Samples {
				require.False(t, seen[s.Timestamp.Time])
				require.False(t, s.Timestamp.After(now) || s.Timestamp.Before(r.From))
				seen[s.Timestamp.Time] = true
			}
		}
		if r.Cursor = page.Next; r.Cursor == "" {
			require.Equal(t, 4, pages)
			break
		}
	}
	require.NotEmpty(t, seen)
	r.Cursor = "x"
	_, err := d.Pull(t.Context(), r)
	require.ErrorIs(t, err, healthlab.Invalid)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err = d.Pull(ctx, r)
	require.ErrorIs(t, err, context.Canceled)
}

// The devices of fetched data are stored as those of uploaded data are: each device once, and
// the data names it.
func TestPull_storesEachDeviceOnce(t *testing.T) {
	w := newWatch(t, "steps", "sleep", "weight", "water")
	w.link("ann")
	w.pass(30*time.Hour, 10*time.Minute)
	list, err := w.health.Devices(t.Context(), w.team, w.user)
	require.NoError(t, err)
	require.Len(t, list, 2)
	ids := map[healthdata.SourceType]*uuid.UUID{}
	for _, d := range list {
		want := band.Device(w.user, d.SourceType)
		require.Equal(t, healthdata.Device{
			ID: d.ID, UserID: w.user, Provider: "acme_band", SourceType: d.SourceType, Manufacturer: want.Manufacturer, Model: want.Model,
			Version: want.Version, DeviceID: want.ID,
		}, d)
		ids[d.SourceType] = &d.ID
	}
	for resource, source := range map[string]healthdata.SourceType{
		"steps": healthdata.SourceWatch, "weight": healthdata.SourceScale, "water": healthdata.SourceApp,
	} {
		page, err := w.health.Samples(t.Context(), w.team, w.user, healthdata.SampleQuery{Resource: resource})
		require.NoError(t, err)
		require.NotEmpty(t, page.Groups, resource)
		for _, g := range page.Groups {
			require.Equal(t, source, g.Source.Type)
			require.Equal(t, ids[source], g.Source.DeviceID, resource)
		}
	}
	nights, err := w.health.Summaries(t.Context(), w.team, w.user, healthdata.SummaryQuery{Resource: "sleep", From: w.now.AddDate(0, 0, -10)})
	require.NoError(t, err)
	for _, n := range nights {
		require.Equal(t, ids[healthdata.SourceWatch], healthdata.HeadOf(n).Source.DeviceID)
	}
	told := map[string]int{}
	for _, id := range w.ids {
		if m, err := w.store.WebhookLog().Message(t.Context(), w.team, id); err == nil {
			told[m.Type]++
		}
	}
	require.Equal(t, []int{2, 0}, []int{told[healthdata.EventDeviceCreated], told[healthdata.EventDeviceUpdated]})
}

// A diary whose entries have only the hour loses none: the entries of one hour become one
// sample.
func TestPull_hourlyDiaryEntriesBecomeOneSample(t *testing.T) {
	for _, resource := range []string{"carbohydrates", "insulin_injection", "note"} {
		t.Run(resource, func(t *testing.T) {
			w := busyWatch(t, resource, resource)
			begin := w.now
			w.link("ann+" + sandbox.BehaviourHourly)
			w.pass(50*time.Hour, 10*time.Minute)
			type hour struct {
				at   time.Time
				kind string
			}
			sums, texts := map[hour]float64{}, map[hour]int{}
			for day := healthlab.DateOf(begin).AddDays(-20); !day.After(healthlab.DateOf(w.now)); day = day.AddDays(1) {
				_, samples := band.Samples(w.user, resource, day, time.UTC)
				for _, s := range samples {
					if s.Timestamp.After(w.now) {
						continue
					}
					k := hour{s.Timestamp.Truncate(time.Hour).UTC(), ""}
					if s.Type != nil {
						k.kind = *s.Type
					}
					sums[k] += s.Value.Number
					texts[k] += 2
				}
			}
			require.NotEmpty(t, sums)
			got, err := w.health.AllSamples(t.Context(), w.team, w.user, healthdata.SampleQuery{
				Resource: resource, From: begin.AddDate(0, 0, -20).Truncate(24 * time.Hour), To: w.now,
			})
			require.NoError(t, err)
			require.Len(t, got, len(sums))
			for _, s := range got {
				k := hour{s.Timestamp.UTC(), ""}
				if s.Type != nil {
					k.kind = *s.Type
				}
				require.InDelta(t, sums[k], s.Value.Number, 1e-9, k)
				if s.Value.IsText {
					require.Len(t, strings.Split(s.Value.Text, "\n"), texts[k])
				}
			}
		})
	}
}

// What belongs to a workout is found from the workout: its recording, and its samples, which
// name it.
func TestPull_recordingAndSamplesNameTheirWorkout(t *testing.T) {
	w := busyWatch(t, "workout_distance", "workouts", "workout_stream", "workout_distance")
	w.link("ann")
	w.pass(50*time.Hour, 10*time.Minute)
	list, err := w.health.Summaries(t.Context(), w.team, w.user, healthdata.SummaryQuery{Resource: "workouts", From: w.now.AddDate(0, 0, -60)})
	require.NoError(t, err)
	require.NotEmpty(t, list)
	known := map[uuid.UUID]*healthdata.Workout{}
	for _, s := range list {
		workout := s.(*healthdata.Workout)
		known[workout.ID] = workout
		stream, err := w.health.WorkoutStream(t.Context(), w.team, workout.ID)
		require.NoError(t, err)
		measured := band.WorkoutStream(w.user, workout.CalendarDate, time.UTC).Distance
		// Strength and yoga cover no distance; a stored recording has all its columns.
		require.Equal(t, append([]*float64{}, measured...), stream.Distance)
	}
	page, err := w.health.Samples(t.Context(), w.team, w.user, healthdata.SampleQuery{Resource: "workout_distance", From: w.now.AddDate(0, 0, -20)})
	require.NoError(t, err)
	require.NotEmpty(t, page.Groups)
	for _, g := range page.Groups {
		workout := known[*g.Source.WorkoutID]
		require.NotNil(t, workout, "its samples name a workout that is there")
		require.Equal(t, workout.Sport.Slug, *g.Source.Sport)
		for s := range g.All() {
			at := s.Timestamp
			require.False(t, at.Before(workout.TimeStart.Time) || at.After(workout.TimeEnd.Time))
		}
	}
	told := map[string]int{}
	for _, id := range w.ids {
		if m, err := w.store.WebhookLog().Message(t.Context(), w.team, id); err == nil {
			told[m.Type]++
		}
	}
	require.Equal(t, 1, told["historical.data.workout_stream.created"])
	require.Equal(t, 1, told["historical.data.workouts.created"])
	require.Len(t, list, told["daily.data.workout_stream.created"], "each stream is announced once, those of the history too")
	require.Less(t, told["daily.data.workouts.created"], len(list), "the history of workouts has one event")
}
