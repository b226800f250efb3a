package double_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/dexcom"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/double"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/googlehealth"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/oura"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/polar"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/strava"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/suunto"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/wahoo"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/whoop"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/withings"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/webhook"
)

var (
	noon   = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	team   = healthlab.TeamID{UUID: uuid.MustParse("8f14e45f-ceea-467f-9b1c-3d4a0a1b2c3d")}
	client = rest.Client{ID: "id", Secret: "secret"}
)

// provider is a connector and its double.
type provider struct {
	record healthdata.Provider
	make   func(*rest.Options) (*rest.Connector, error)
	double func(double.Options) (*double.Server, func(*double.Person) double.Truth)
	limits []double.Limit
	// permanent says that tokens are not renewed: an answer of 401 ends the connection.
	permanent bool
}

func (p *provider) streams() bool {
	return slices.ContainsFunc(p.record.Resources, func(r healthdata.ProviderResource) bool { return r.Resource == "workout_stream" })
}

var providers = map[string]provider{
	"dexcom": {
		record: dexcom.Record(dexcom.Europe), double: double.Dexcom, limits: []double.Limit{{Requests: 60_000, Per: time.Hour}},
		make: func(o *rest.Options) (*rest.Connector, error) { return dexcom.New(dexcom.Europe, client, o) },
	},
	"wahoo": {
		record: wahoo.Record(), double: double.Wahoo, limits: []double.Limit{{Requests: 200, Per: 5 * time.Minute}, {Requests: 1000, Per: time.Hour}, {Requests: 5000, Per: 24 * time.Hour}},
		make: func(o *rest.Options) (*rest.Connector, error) { return wahoo.New(client, o) },
	},
	"whoop": {
		record: whoop.Record(), double: double.Whoop, limits: []double.Limit{{Requests: 100, Per: time.Minute}, {Requests: 10_000, Per: 24 * time.Hour}},
		make: func(o *rest.Options) (*rest.Connector, error) { return whoop.New(client, o) },
	},
	"oura": {
		record: oura.Record(), double: double.Oura, limits: []double.Limit{{Requests: 5000, Per: 5 * time.Minute}},
		make: func(o *rest.Options) (*rest.Connector, error) { return oura.New(client, o) },
	},
	"polar": {
		record: polar.Record(), limits: []double.Limit{{Requests: 540, Per: 15 * time.Minute}, {Requests: 5400, Per: 24 * time.Hour}}, permanent: true,
		double: func(o double.Options) (*double.Server, func(*double.Person) double.Truth) {
			s, truth := double.Polar(o)
			return s.Server, truth
		},
		make: func(o *rest.Options) (*rest.Connector, error) { return polar.New(client, o) },
	},
	"strava": {
		record: strava.Record(), double: double.Strava, limits: []double.Limit{{Requests: 100, Per: 15 * time.Minute, Aligned: true}, {Requests: 1000, Per: 24 * time.Hour, Aligned: true}},
		make: func(o *rest.Options) (*rest.Connector, error) { return strava.New(client, o) },
	},
	"google_health": {
		record: googlehealth.Record(), double: double.GoogleHealth, limits: []double.Limit{{Requests: 120_000, Per: time.Minute}},
		make: func(o *rest.Options) (*rest.Connector, error) { return googlehealth.New(client, o) },
	},
	"suunto": {
		record: suunto.Record(), double: double.Suunto, limits: []double.Limit{{Requests: 60, Per: time.Minute}},
		make: func(o *rest.Options) (*rest.Connector, error) {
			return suunto.New(rest.Client{ID: client.ID, Secret: client.Secret, Key: double.SuuntoKey}, o)
		},
	},
	"withings": {
		record: withings.Record(), limits: []double.Limit{{Requests: 120, Per: time.Minute}},
		double: func(o double.Options) (*double.Server, func(*double.Person) double.Truth) {
			s, truth := double.Withings(o)
			return s.Server, truth
		},
		make: func(o *rest.Options) (*rest.Connector, error) { return withings.New(client, o) },
	},
}

// deployment is a service that fetches from a double.
type deployment struct {
	t         *testing.T
	provider  provider
	store     *memory.Store
	health    *healthdata.Service
	refresher *linking.CredentialRefresher
	pulls     *pull.Service
	connector *rest.Connector
	double    *double.Server
	truth     func(*double.Person) double.Truth
	url       string
	history   int // days

	mu sync.Mutex
	at time.Time
}

func (d *deployment) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at
}

func (d *deployment) wait(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = d.at.Add(by)
}

func options(url string, now func() time.Time) *rest.Options {
	return &rest.Options{Origin: url, Now: now, Guard: &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, VerifyToken: "verify"}
}

func seal(t *testing.T) healthlab.Sealer {
	s, err := healthlab.NewAESSealer("k", map[string][]byte{"k": make([]byte, 32)})
	require.NoError(t, err)
	return s
}

func deploy(t *testing.T, p provider, o double.Options) *deployment {
	t.Helper()
	d := &deployment{t: t, provider: p, at: noon.Add(250 * time.Millisecond), history: 365} // clocks have fractions of a second
	o.Now = d.now
	d.double, d.truth = p.double(o)
	server := httptest.NewServer(d.double)
	t.Cleanup(server.Close)
	d.url = server.URL
	var err error
	d.connector, err = p.make(options(d.url, d.now))
	require.NoError(t, err)
	d.store = memory.New(&memory.Options{Now: d.now})
	list, err := healthdata.NewProviders([]healthdata.Provider{p.record})
	require.NoError(t, err)
	d.health, err = healthdata.New(d.store.Users(), d.store.Data(), list, &healthdata.Options{Now: d.now, Environment: healthlab.Production})
	require.NoError(t, err)
	connectors := map[string]linking.ProviderConnector{p.record.Slug: d.connector.Flows()}
	d.refresher, err = linking.NewCredentialRefresher(d.store.Credentials(), d.health, connectors, seal(t), &linking.CredentialRefresherOptions{Now: d.now})
	require.NoError(t, err)
	d.pulls, err = pull.New(d.store.Pulls(), d.health, d.refresher, connectors, &pull.Options{
		Now: d.now, Workers: 1, Ahead: time.Nanosecond, Every: 24 * time.Hour, // more looks take the limit from histories
		Settings: func(context.Context, healthlab.TeamID) (pull.TeamSettings, error) {
			return pull.TeamSettings{HistoryDays: map[string]pull.HistoryDays{p.record.Slug: {Default: d.history}}}, nil
		},
	})
	require.NoError(t, err)
	return d
}

// signIn signs a person in at the double's page.
func (d *deployment) signIn(p *double.Person) linking.Grant {
	d.t.Helper()
	const back, verifier = "https://app.example/callback", "a verifier of at least forty-three characters."
	page, err := d.connector.Authorize(d.t.Context(), linking.AuthorizeRequest{State: "state-1234", RedirectURL: back, Scopes: d.connector.OAuth.Minimum})
	require.NoError(d.t, err)
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.Get(page + "&person=" + p.ID)
	require.NoError(d.t, err)
	require.NoError(d.t, resp.Body.Close())
	require.Equal(d.t, http.StatusSeeOther, resp.StatusCode)
	to, err := url.Parse(resp.Header.Get("Location"))
	require.NoError(d.t, err)
	require.Equal(d.t, "state-1234", to.Query().Get("state"))
	for range 20 { // the double makes errors
		var g linking.Grant
		g, err = d.connector.Exchange(d.t.Context(), linking.ExchangeRequest{Code: to.Query().Get("code"), RedirectURL: back, Verifier: verifier})
		if err == nil {
			require.Equal(d.t, p.ID, g.ExternalUserID)
			return g
		}
		resp, err = browser.Get(page + "&person=" + p.ID)
		require.NoError(d.t, err)
		require.NoError(d.t, resp.Body.Close())
		to, err = url.Parse(resp.Header.Get("Location"))
		require.NoError(d.t, err)
	}
	d.t.Fatal("no sign-in succeeded")
	return linking.Grant{}
}

// link connects a person.
func (d *deployment) link(p *double.Person) healthlab.UserID {
	d.t.Helper()
	u, err := d.health.CreateUser(d.t.Context(), team, healthdata.NewUser{ClientUserID: p.ID, FallbackTimeZone: rest.Ptr("Africa/Lagos")}) // the person's offset
	require.NoError(d.t, err)
	g := d.signIn(p)
	x := linking.Session{
		ID: linking.SessionID{UUID: uuid.New()}, Team: team, User: u.ID, State: linking.StateStarted,
		CreatedAt: d.now(), ExpiresAt: d.now().Add(time.Hour),
	}
	require.NoError(d.t, d.store.Linking().InsertSession(d.t.Context(), x))
	slug := d.provider.record.Slug
	box, err := seal(d.t).Seal(d.t.Context(), g.Secret, fmt.Appendf(nil, "grant %s %s %s", team, u.ID, slug))
	require.NoError(d.t, err)
	var scopes []string
	for _, s := range d.provider.record.Scopes {
		scopes = append(scopes, s.Required...)
	}
	establish, err := d.health.Connections().ConnectingLinked(healthdata.NewConnection{Provider: slug, ExternalUserID: &g.ExternalUserID, Scopes: scopes})
	require.NoError(d.t, err)
	_, err = d.store.Linking().Complete(d.t.Context(), linking.Completion{
		Team: team, Session: x.ID,
		Credential: linking.Credential{ID: uuid.New(), Team: team, User: u.ID, Provider: slug, Secret: box, CreatedAt: d.now(), ExpiresAt: g.ExpiresAt},
		Change: func(x *linking.Session, u *healthdata.User) ([]healthlab.Event, error) {
			x.State = linking.StateConnected
			return establish(u)
		},
	})
	require.NoError(d.t, err)
	return u.ID
}

// fetch fetches until the history of all people is there. Each wait in which nothing became due
// doubles the next.
func (d *deployment) fetch(users []healthlab.UserID) {
	d.t.Helper()
	const steps, longest = 2_000_000, 64
	idle := 1
	for range steps {
		n, err := d.pulls.Step(d.t.Context())
		require.NoError(d.t, err)
		if n > 0 {
			idle = 1
			continue
		}
		for len(users) > 0 && d.fetched(users[0]) {
			users = users[1:]
		}
		if len(users) == 0 {
			return
		}
		d.wait(time.Duration(idle) * max(200*time.Millisecond, d.provider.limits[0].Per/500))
		idle = min(2*idle, longest)
	}
	d.t.Fatal("the history does not come to an end")
}

// fetched reports whether the history of a user is there.
func (d *deployment) fetched(u healthlab.UserID) bool {
	d.t.Helper()
	tasks, err := d.store.Pulls().Tasks(d.t.Context(), team, u)
	require.NoError(d.t, err)
	done := len(tasks) > 0
	for _, x := range tasks {
		require.NotEqual(d.t, pull.Failure, x.Status, "%s: %s", x.Resource, x.Error)
		done = done && (x.Kind != pull.History || x.Status == pull.Success)
	}
	return done
}

// stored is what is stored of a user, as a Truth.
func (d *deployment) stored(u healthlab.UserID) double.Truth {
	d.t.Helper()
	out := double.Truth{}
	for _, r := range d.provider.record.Resources {
		of := healthdata.ResourceBySlug(r.Resource)
		values := map[string]float64{}
		from, to := noon.AddDate(-2, 0, 0), noon.AddDate(0, 0, 9)
		switch of.Class {
		case healthdata.ClassTimeseries:
			all, err := d.health.AllSamples(d.t.Context(), team, u, healthdata.SampleQuery{Resource: r.Resource, From: from, To: to})
			require.NoError(d.t, err)
			for _, s := range all {
				key := s.Timestamp.UTC().Format(time.RFC3339Nano)
				if s.Value == nil {
					values[key+" systolic"], values[key+" diastolic"] = *s.Systolic, *s.Diastolic
					continue
				}
				if s.Type != nil {
					key += " " + *s.Type
				}
				_, twice := values[key]
				require.False(d.t, twice, key)
				values[key] = s.Value.Number
			}
		case healthdata.ClassStream:
			all, err := d.health.Summaries(d.t.Context(), team, u, healthdata.SummaryQuery{Resource: "workouts", From: from, To: to})
			require.NoError(d.t, err)
			for _, w := range all {
				stream, err := d.health.WorkoutStream(d.t.Context(), team, healthdata.HeadOf(w).ID)
				if errors.Is(err, healthlab.NotFound) {
					continue
				}
				require.NoError(d.t, err)
				for i, at := range stream.Time {
					values[time.Unix(at, 0).UTC().Format(time.RFC3339)] = float64(*stream.Heartrate[i])
				}
			}
		case healthdata.ClassSummary:
			if r.Resource == "profile" { // it has no day
				from, to = time.Time{}, time.Time{}
			}
			all, err := d.health.Summaries(d.t.Context(), team, u, healthdata.SummaryQuery{Resource: r.Resource, From: from, To: to})
			require.NoError(d.t, err)
			for _, s := range all {
				if w, ok := s.(*healthdata.Workout); ok && d.provider.streams() && len(w.HRZones) == 6 {
					w.HRZones = nil // made of the stream, not the provider's
				}
				members(values, s)
			}
		}
		if len(values) > 0 {
			out[r.Resource] = values
		}
	}
	return out
}

// members writes the numbers of a summary, by its first instant or day.
func members(out map[string]float64, s healthdata.Summary) {
	key := ""
	put := func(name string, v float64) { out[key+"."+name] = v }
	whole := func(name string, v *int64) {
		if v != nil {
			put(name, float64(*v))
		}
	}
	real := func(name string, v *float64) {
		if v != nil {
			put(name, *v)
		}
	}
	switch v := s.(type) {
	case *healthdata.Sleep:
		key = v.BedtimeStart.UTC().Format(time.RFC3339)
		put("end", float64(v.BedtimeStop.Unix()))
		put("offset", float64(*v.TimezoneOffset))
		for name, n := range map[string]*int64{"awake": v.Awake, "light": v.Light, "rem": v.REM, "deep": v.Deep} {
			whole(name, n)
		}
		whole("score", v.Score)
		whole("recovery", v.RecoveryReadinessScore)
		whole("resting", v.HRResting)
		real("hrv", v.AverageHRV)
		real("breath", v.RespiratoryRate)
	case *healthdata.SleepCycle:
		key = v.SessionStart.UTC().Format(time.RFC3339)
		for i, stage := range v.StageType {
			put(fmt.Sprint(v.StageStartOffsetSecond[i], "-", v.StageEndOffsetSecond[i]), float64(stage))
		}
	case *healthdata.Workout:
		key = v.TimeStart.UTC().Format(time.RFC3339)
		put("end", float64(v.TimeEnd.Unix()))
		real("kcal", v.Calories)
		real("distance", v.Distance)
		whole("average", v.AverageHR)
		whole("max", v.MaxHR)
		for i, seconds := range v.HRZones {
			put(fmt.Sprint("zone", i), float64(seconds))
		}
	case *healthdata.Activity:
		key = v.CalendarDate.String()
		real("total", v.CaloriesTotal)
		real("active", v.CaloriesActive)
		whole("steps", v.Steps)
		real("low", v.Low)
		real("medium", v.Medium)
		real("high", v.High)
		if v.HeartRate != nil {
			real("resting", v.HeartRate.RestingBPM)
		}
	case *healthdata.Body:
		key = v.CalendarDate.String()
		real("weight", v.Weight)
		real("fat", v.Fat)
		real("lean", v.LeanBodyMassKilogram)
		real("muscle", v.MuscleMassPercentage)
		real("water", v.WaterPercentage)
		real("bone", v.BoneMassPercentage)
		real("visceral", v.VisceralFatIndex)
	case *healthdata.Meal:
		key = v.Timestamp.UTC().Format(time.RFC3339)
		put("kcal", v.Energy.Value)
		real("protein", v.Macros.Protein)
	case *healthdata.Electrocardiogram:
		key = v.SessionStart.UTC().Format(time.RFC3339)
		put("end", float64(v.SessionEnd.Unix()))
		put("count", float64(v.VoltageSampleCount))
		whole("mean", v.HeartRateMean)
		real("hz", v.SamplingFrequencyHz)
	case *healthdata.Profile:
		key = "profile"
		whole("height", v.Height)
		if v.Sex != nil && *v.Sex == "female" {
			put("female", 1)
		}
	}
}

// What a provider has of people is stored as it was recorded, with errors, tokens that end early and
// the provider's limit: 18 days of two people, in CI 90, and 360 days of 50 people under make prove.
func TestPull_storesWhatWasRecordedDespiteErrorsAndLimits(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		t.Run(name, func(t *testing.T) {
			p := providers[name]
			days := max(10, prove.Sequential(18, 90, 360)) // an electrocardiogram is not recorded every week
			var people []*double.Person
			for i := range prove.Count(2, 50) {
				people = append(people, double.NewPerson(i, noon, days))
			}
			faults := double.Faults{Every: 7, Reject: 11}
			if p.permanent {
				faults.Reject = 0
			}
			d := deploy(t, p, double.Options{People: people, TokenLife: 5 * time.Minute, Limits: p.limits, Faults: faults})
			d.history = days + 5
			var users []healthlab.UserID
			for _, one := range people {
				users = append(users, d.link(one))
			}
			d.fetch(users)
			for i, one := range people {
				refused, err := d.store.Pulls().Quarantined(t.Context(), team, users[i], 9)
				require.NoError(t, err)
				require.Empty(t, refused)
				want, got := d.truth(one), d.stored(users[i])
				require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
				for resource, values := range want {
					for key, v := range values {
						stored, ok := got[resource][key]
						require.True(t, ok, "%s %s is missing", resource, key)
						require.InDelta(t, v, stored, 1e-4, "%s %s", resource, key)
					}
					require.Len(t, got[resource], len(values), resource)
				}
			}
			require.Zero(t, d.double.Exceeded(), "requests beyond the limit")
			require.Equal(t, p.permanent, d.double.Exchanges() == 0)
		})
	}
}

// Two processes that need one secret at the same time renew it once.
func TestRefresh_twoProcessesRenewASecretOnce(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		t.Run(name, func(t *testing.T) {
			one := double.NewPerson(1, noon, 1)
			d := deploy(t, providers[name], double.Options{People: []*double.Person{one}, TokenLife: 5 * time.Minute})
			user := d.link(one)
			second, err := linking.NewCredentialRefresher(d.store.Credentials(), d.health, map[string]linking.ProviderConnector{
				d.provider.record.Slug: d.connector.Flows(),
			}, seal(t), &linking.CredentialRefresherOptions{Now: d.now})
			require.NoError(t, err)
			d.wait(time.Hour)
			var group sync.WaitGroup
			for i := range 1000 {
				group.Go(func() {
					k := d.refresher
					if i%2 == 0 {
						k = second
					}
					_, err := k.Secret(t.Context(), team, user, d.provider.record.Slug)
					require.NoError(t, err)
				})
			}
			group.Wait()
			if d.provider.permanent {
				require.Zero(t, d.double.Exchanges())
				return
			}
			require.Equal(t, 1, d.double.Exchanges())
		})
	}
}
