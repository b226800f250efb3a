package double_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/double"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/wahoo"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/withings"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// days is how long a person of these tests has had devices.
const days = 8

func (d *deployment) counted(u healthlab.UserID, resource string) int {
	d.t.Helper()
	all, err := d.health.Summaries(d.t.Context(), team, u, healthdata.SummaryQuery{Resource: resource, From: noon.AddDate(0, 0, -99), To: noon.AddDate(0, 0, 9)})
	require.NoError(d.t, err)
	return len(all)
}

// linked is a deployment with one person whose history is stored.
func linked(t *testing.T, name string) (*deployment, *double.Person, healthlab.UserID) {
	one := double.NewPerson(3, noon, days)
	d := deploy(t, providers[name], double.Options{People: []*double.Person{one}})
	d.history = days + 5
	u := d.link(one)
	d.fetch([]healthlab.UserID{u})
	return d, one, u
}

// steps lets a number of seconds pass, with a step in each.
func (d *deployment) steps(seconds int) {
	d.t.Helper()
	for range seconds {
		_, err := d.pulls.Step(d.t.Context())
		require.NoError(d.t, err)
		d.wait(time.Second)
	}
}

func TestWhoopMessage_updatesOrDeletesTheNamedItem(t *testing.T) {
	d, one, u := linked(t, "whoop")
	nights, workouts := d.counted(u, "sleep"), d.counted(u, "workouts")
	require.Equal(t, days, nights)
	send := func(kind, id, secret string, at time.Time) error {
		body, header := double.WhoopMessage(one, kind, id, kind+id, secret, at)
		_, err := d.pulls.Listen(t.Context(), "whoop", linking.Message{Method: "POST", Header: header, Body: body})
		return err
	}
	require.ErrorIs(t, send("sleep.deleted", one.Nights[3].ID, "another secret", d.now()), healthlab.Unauthenticated)
	require.ErrorIs(t, send("sleep.deleted", one.Nights[3].ID, "secret", d.now().Add(-time.Hour)), healthlab.Unauthenticated)
	require.Equal(t, nights, d.counted(u, "sleep"))
	require.NoError(t, send("sleep.deleted", one.Nights[3].ID, "secret", d.now()))
	require.NoError(t, send("workout.deleted", one.Workouts[0].ID, "secret", d.now()))
	require.Equal(t, nights-1, d.counted(u, "sleep"))
	require.Equal(t, workouts-1, d.counted(u, "workouts"))

	// A changed score arrives with the next request.
	for n := 1; n > 0; {
		var err error
		n, err = d.pulls.Step(t.Context())
		require.NoError(t, err)
	}
	last := &one.Nights[len(one.Nights)-1]
	last.Score = 7
	require.NoError(t, send("sleep.updated", last.ID, "secret", d.now()))
	d.steps(100)
	require.InDelta(t, 7, d.stored(u)["sleep"][last.Start.UTC().Format(time.RFC3339)+".score"], 0)
}

func TestOuraMessage_deletesTheNamedNight(t *testing.T) {
	d, one, u := linked(t, "oura")
	nights := d.counted(u, "sleep")
	require.Equal(t, days, nights)
	listen := d.connector.Flows().Listener
	hear := func(m linking.Message) (linking.ListenResult, error) {
		m.At = d.now()
		return listen.Listen(t.Context(), m)
	}
	got, err := hear(linking.Message{Method: http.MethodGet, Query: map[string][]string{"verification_token": {"verify"}, "challenge": {"c1"}}})
	require.NoError(t, err)
	require.Equal(t, "application/json", got.ReplyType)
	require.JSONEq(t, `{"challenge": "c1"}`, string(got.Reply))
	_, err = hear(linking.Message{Method: http.MethodGet, Query: map[string][]string{"verification_token": {"guess"}, "challenge": {"c1"}}})
	require.ErrorIs(t, err, healthlab.Unauthenticated)

	body, header := double.OuraMessage(one, "delete", "sleep", one.Nights[2].ID, "secret", d.now())
	_, err = d.pulls.Listen(t.Context(), "oura", linking.Message{Method: "POST", Header: header, Body: body})
	require.NoError(t, err)
	require.Equal(t, nights-1, d.counted(u, "sleep"))
	require.Equal(t, nights-1, d.counted(u, "sleep_cycle"), "the stages go with the night")
	header.Set("X-Oura-Signature", "00")
	_, err = d.pulls.Listen(t.Context(), "oura", linking.Message{Method: "POST", Header: header, Body: body})
	require.ErrorIs(t, err, healthlab.Unauthenticated)
}

func TestSuuntoMessage_storesTheNightAndPullsTheWorkout(t *testing.T) {
	d, one, u := linked(t, "suunto")
	nights := d.counted(u, "sleep")
	require.Equal(t, days, nights)
	send := func(doc map[string]any, secret string) error {
		body, header := double.SuuntoMessage(doc, secret)
		_, err := d.pulls.Listen(t.Context(), "suunto", linking.Message{Method: http.MethodPost, Header: header, Body: body})
		return err
	}

	// A night that comes with the message is stored at once, and replaces the one before.
	last := one.Nights[len(one.Nights)-1]
	last.Score = 7
	require.ErrorIs(t, send(double.SuuntoSleep(one, &last), "guess"), healthlab.Unauthenticated)
	require.NoError(t, send(double.SuuntoSleep(one, &last), "verify"))
	require.Equal(t, nights, d.counted(u, "sleep"))
	require.InDelta(t, 7, d.stored(u)["sleep"][last.Start.UTC().Format(time.RFC3339)+".score"], 0)

	// A workout that was changed is fetched.
	workout := &one.Workouts[len(one.Workouts)-1]
	workout.AverageHR++
	require.NoError(t, send(double.SuuntoWorkout(one, workout), "verify"))
	d.steps(100)
	require.InDelta(t, workout.AverageHR, d.stored(u)["workouts"][workout.Start.UTC().Format(time.RFC3339)+".average"], 0)
}

func TestGoogleHealthMessage_pullsTheChangedRange(t *testing.T) {
	d, one, u := linked(t, "google_health")
	workout := &one.Workouts[len(one.Workouts)-1]
	workout.AverageHR++
	body := double.GoogleHealthMessage(one, "exercise", workout.Start, workout.End)
	send := func(authorization string) error {
		_, err := d.pulls.Listen(t.Context(), "google_health", linking.Message{
			Method: http.MethodPost, Header: http.Header{"Authorization": {authorization}}, Body: body,
		})
		return err
	}
	require.ErrorIs(t, send("guess"), healthlab.Unauthenticated)
	require.NoError(t, send("verify"))
	d.steps(100)
	require.InDelta(t, workout.AverageHR, d.stored(u)["workouts"][workout.Start.UTC().Format(time.RFC3339)+".average"], 0)
}

func TestWithingsMessage_pullsChangesAndUnlinkDisconnects(t *testing.T) {
	p, one := providers["withings"], double.NewPerson(3, noon, days)
	var theirs *double.WithingsServer
	p.double = func(o double.Options) (*double.Server, func(*double.Person) double.Truth) {
		s, truth := double.Withings(o)
		theirs = s
		return s.Server, truth
	}
	d := deploy(t, p, double.Options{People: []*double.Person{one}})
	d.history = days + 5
	inlet := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard, err := d.pulls.Listen(t.Context(), "withings", linking.Message{Method: r.Method, Query: r.URL.Query()})
		if err != nil {
			heard.Status = http.StatusUnauthorized
		}
		w.WriteHeader(heard.Status)
	}))
	t.Cleanup(inlet.Close)
	o := options(d.url, d.now)
	o.MessageURL = inlet.URL + "/v2/link/push/withings?token=verify"
	var err error
	d.connector, err = withings.New(client, o)
	require.NoError(t, err)
	u := d.link(one)
	require.Len(t, theirs.Subscriptions(), 8)
	require.Contains(t, theirs.Subscriptions(), one.ID+" 44 "+o.MessageURL)
	d.fetch([]healthlab.UserID{u})

	// A changed score arrives with the next request.
	last := &one.Nights[len(one.Nights)-1]
	last.Score = 7
	body := double.WithingsMessage(one, 44, last.Start, last.End)
	send := func(body []byte, token string) error {
		_, err := d.pulls.Listen(t.Context(), "withings", linking.Message{Method: http.MethodPost, Body: body, Query: map[string][]string{"token": {token}}})
		return err
	}
	require.ErrorIs(t, send(body, "guess"), healthlab.Unauthenticated)
	require.NoError(t, send(body, "verify"))
	d.steps(100)
	require.InDelta(t, 7, d.stored(u)["sleep"][last.Start.UTC().Format(time.RFC3339)+".score"], 0)

	require.NoError(t, send(double.WithingsUnlink(one), "verify"))
	user, err := d.health.User(t.Context(), team, u)
	require.NoError(t, err)
	require.Equal(t, healthdata.ConnectionError, user.Connection("withings").Status)
}

func TestPolarMessage_pullsTheChangedNightAndRevokeUnregisters(t *testing.T) {
	p, one := providers["polar"], double.NewPerson(3, noon, days)
	var theirs *double.PolarServer
	p.double = func(o double.Options) (*double.Server, func(*double.Person) double.Truth) {
		s, truth := double.Polar(o)
		theirs = s
		return s.Server, truth
	}
	d := deploy(t, p, double.Options{People: []*double.Person{one}})
	d.history = days + 5
	u := d.link(one)
	require.True(t, theirs.Registered(one))
	d.fetch([]healthlab.UserID{u})
	d.steps(300)
	last := &one.Nights[len(one.Nights)-1]
	require.InDelta(t, last.Score, d.stored(u)["sleep"][last.Start.UTC().Format(time.RFC3339)+".score"], 0)

	// A changed score arrives with the next request.
	last.Score = 7
	send := func(key string) error {
		body, header := double.PolarMessage(one, "SLEEP", key, last.End)
		_, err := d.pulls.Listen(t.Context(), "polar", linking.Message{Method: http.MethodPost, Header: header, Body: body})
		return err
	}
	require.ErrorIs(t, send("guess"), healthlab.Unauthenticated)
	require.NoError(t, send("verify"))
	d.steps(300)
	require.InDelta(t, 7, d.stored(u)["sleep"][last.Start.UTC().Format(time.RFC3339)+".score"], 0)

	// A person who is registered may sign in again, and the end of the grant ends both.
	g := d.signIn(one)
	require.True(t, g.ExpiresAt.After(noon.AddDate(9, 0, 0)))
	pull := func(secret []byte) error {
		_, err := d.connector.Pull(t.Context(), linking.PullRequest{Secret: secret, Resource: "profile", From: noon.AddDate(0, 0, -1), To: noon})
		return err
	}
	require.NoError(t, pull(g.Secret))
	imported, err := d.connector.Encode(linking.Tokens{Access: "access"})
	require.NoError(t, err)
	err = d.connector.Revoke(t.Context(), imported)
	require.ErrorIs(t, err, healthlab.Invalid, "its account is not known")
	require.ErrorContains(t, err, "imported tokens have no account id")
	require.NoError(t, d.connector.Revoke(t.Context(), g.Secret))
	require.False(t, theirs.Registered(one))
	require.ErrorIs(t, pull(g.Secret), healthlab.Unauthenticated)
	require.NoError(t, d.connector.Revoke(t.Context(), g.Secret), "the grant has ended")
}

func TestWahooMessage_storesItsWorkoutWithoutARequest(t *testing.T) {
	p, one := providers["wahoo"], double.NewPerson(3, noon, days)
	d := deploy(t, p, double.Options{People: []*double.Person{one}})
	d.history = days + 5
	u := d.link(one)
	d.fetch([]healthlab.UserID{u})
	d.steps(300)
	i := len(one.Workouts) - 1
	w := &one.Workouts[i]
	w.KCal++
	send := func(token string) error {
		_, err := d.pulls.Listen(t.Context(), "wahoo", linking.Message{Method: http.MethodPost, Body: double.WahooMessage(one, i, token)})
		return err
	}
	require.ErrorIs(t, send("guess"), healthlab.Unauthenticated)
	key := w.Start.UTC().Format(time.RFC3339) + ".kcal"
	require.InDelta(t, w.KCal-1, d.stored(u)["workouts"][key], 0)
	asked := d.double.Requests()
	require.NoError(t, send("verify"))
	require.InDelta(t, w.KCal, d.stored(u)["workouts"][key], 0, "the message brings the workout")
	require.Equal(t, asked, d.double.Requests())
	require.Len(t, d.stored(u)["workouts"], len(d.truth(one)["workouts"]))

	// A stored file is read without its workout.
	i = slices.IndexFunc(one.Workouts, func(w double.Workout) bool { return w.Distance > 0 })
	resp, err := http.Get(fmt.Sprintf("%s/files/%s/%d.fit", d.url, one.ID, i))
	require.NoError(t, err)
	file, err := io.ReadAll(resp.Body)
	require.NoError(t, errors.Join(err, resp.Body.Close()))
	data, err := wahoo.Read("file", file)
	require.NoError(t, err)
	require.Len(t, data["workout_stream"], 1)
	require.Equal(t, one.Workouts[i].Start.Unix(), data["workout_stream"][0].Stream.Time[0])
}

// A grant that is revoked cannot be renewed.
func TestRevoke_revokedGrantCannotBeRefreshed(t *testing.T) {
	for _, name := range []string{"whoop", "oura", "strava", "wahoo", "suunto", "withings", "google_health"} {
		t.Run(name, func(t *testing.T) {
			one := double.NewPerson(1, noon, 1)
			d := deploy(t, providers[name], double.Options{People: []*double.Person{one}})
			g := d.signIn(one)
			require.NoError(t, d.connector.Flows().Revoker.Revoke(t.Context(), g.Secret))
			_, err := d.connector.Refresh(t.Context(), g.Secret)
			var over *linking.GrantError
			require.ErrorAs(t, err, &over)
		})
	}
}
