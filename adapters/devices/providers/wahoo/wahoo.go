// Package wahoo connects the Wahoo Cloud API v1: workouts with their recordings, and the person's
// height and weight.
//
//	connector, err := wahoo.New(rest.Client{ID: id, Secret: secret}, &rest.Options{VerifyToken: token})
//	connectors[wahoo.Slug] = connector.Flows()
//
// # What is read
//
//	workouts         workouts (kcal, m, m/s, W, bpm)
//	file             workout_stream: the FIT file of each workout of the list
//	workout_summary  workouts, of a message or of one workout; only in stored pages
//	user             profile (height, cm), weight (kg)
//
// The list has no range: it is read from the newest workout on, until one began before the range.
// Sums are texts of decimals or numbers. A workout begins at starts and lasts
// duration_total_accum; minutes is planned or rough and is not read. One without a summary is a
// plan, one without a duration is not complete: both are left out. A heart rate or power of 0
// means none. The zone is time_zone. A workout that was typed in has the source app, others watch.
// The highest heart rate is in the recording only. Work, training stress and cadence have no place
// in the catalogue. The weight stands at the instant at which the account changed.
//
// Files are read at hosts below wahooligan.com only, without the token, and need not be there when
// the workout is. A file with several sessions gives the one that begins nearest to the workout's
// start.
//
// # Messages
//
// One address for the application, for people who granted offline_data. A message is not signed:
// one is taken if its webhook_token is Options.VerifyToken, or the detail webhook_token of a
// team's own client. It brings the workout, which is stored; the file is fetched. Deletions are
// not announced.
//
// # How sure this is
//
// Documented: addresses, scopes, fields, limits and their headers, single use of refresh tokens,
// messages, the order of the list. From client code: numbers as texts, incomplete first messages,
// types of workouts, the host of files. Not tried against the service: that a file is always FIT,
// how far the list goes back, that the end of a grant is not announced. An application has at most
// 10 access tokens of a person that were not revoked; a sign-in beyond is refused, and the end of
// the grant clears them.
package wahoo

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/recording"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Slug is the slug of the provider.
const Slug = "wahoo"

const (
	base = "https://api.wahooligan.com"
	// files is the domain of the hosts from which recordings are downloaded.
	files = "wahooligan.com"
	// message is the only supported type of messages, and the name of the collection for them.
	message = "workout_summary"
)

var (
	account  = []string{"user_read"}
	workouts = []string{"workouts_read"}
	// gone lists the HTTP statuses for a file whose URL is no longer valid.
	gone = []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone}
)

var definition = &rest.Definition{
	Provider: healthdata.Provider{
		Slug: Slug, Name: "Wahoo", Group: "sport", AuthType: "oauth", OAuthVersion: 2, Category: "device", Class: "cloud", UpdateModel: "hybrid",
		Description: "Rides, runs and other workouts of bike computers, watches and trainers.",
		Backfill:    healthdata.Backfill{DefaultDays: 90, MaxDays: 365, Configurable: true, Mode: "pull"},
		RateLimits: healthdata.RateLimits{App: []healthdata.RateLimit{
			{Requests: 200, Seconds: 300, Burst: 10}, {Requests: 1000, Seconds: 3600, Burst: 50}, {Requests: 5000, Seconds: 86_400, Burst: 200},
		}},
	},
	OAuth: rest.OAuth{
		AuthorizeURL: base + "/oauth/authorize", TokenURL: base + "/oauth/token", TokenSeconds: 7200, Minimum: []string{"user_read", "offline_data"},
		Revocation: rest.Revocation{URL: base + "/v1/permissions", Method: http.MethodDelete, Token: rest.RevokeBearer},
		Account:    rest.AccountAt(base+"/v1/user", "id"),
	},
	BaseURL: base,
	Collections: []rest.Collection{
		{
			Name: "workouts", Scopes: workouts, Path: "/v1/workouts", Query: url.Values{"per_page": {"100"}}, Pages: rest.Numbered("page"), Items: "workouts",
			Time: started, Key: recorded, Keep: []string{"id", "user_id", "starts", "name", "workout_type_id", "workout_summary"},
			Resources: []string{"workouts"}, Read: rest.Each(readWorkout),
		},
		{
			Name: message, Path: "/v1/workouts/{id}/workout_summary", Messages: []string{message}, Stored: []string{"workouts"},
			Read: rest.Each(readSummary),
		},
		{
			Name: "file", Scopes: workouts, For: "workouts", File: file, Missing: gone, Messages: []string{message},
			Resources: []string{"workout_stream"}, Read: readFile,
		},
		{Name: "user", Scopes: account, Path: "/v1/user", Resources: []string{"profile", "weight"}, Read: rest.Each(readUser)},
	},
	Rates: rates, Listen: listen, MessageKey: "webhook_token",
	Wait: func(h http.Header, _ time.Time) time.Duration { return reset(h) },
}

// Record returns the provider's catalogue record. The caller may change it.
func Record() healthdata.Provider { return definition.Record() }

// New returns the connector. See [rest.New].
func New(client rest.Client, opts *rest.Options) (*rest.Connector, error) {
	return rest.New(definition, client, opts)
}

// Read decodes a stored page. kind is the name of the collection: workouts, workout_summary (also for a message), user,
// or file for a FIT file, from which Read also takes the workouts. See [rest.Definition.Read].
func Read(kind string, page []byte) (rest.Data, error) { return definition.Read(kind, page) }

// reset returns the time until an exhausted rate limit is reset, from X-RateLimit-Reset in seconds; 0 if the header is
// absent, malformed or more than a day.
func reset(h http.Header) time.Duration {
	n, err := strconv.Atoi(h.Get("X-RateLimit-Reset"))
	if err != nil || n < 0 || n > 86_400 {
		return 0
	}
	return time.Duration(n) * time.Second
}

// rates returns the exhausted rate limit with its reset or, if none is exhausted, the limit of 5 minutes. The header
// has the remaining requests of a day, an hour and 5 minutes.
func rates(h http.Header, now time.Time) []linking.RateLimit {
	left, least := 0, math.MaxInt
	texts := strings.Split(h.Get("X-RateLimit-Remaining"), ",")
	for _, text := range texts {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return nil
		}
		left, least = max(n, 0), min(least, max(n, 0))
	}
	wait := 5 * time.Minute
	if d := reset(h); least == 0 && d > 0 {
		left, wait = 0, d
	}
	return []linking.RateLimit{{Scope: linking.RateApp, Remaining: left, Reset: now.Add(wait).UTC()}}
}

type workout struct {
	ID      rest.ID      `json:"id"`
	User    rest.ID      `json:"user_id"`
	Starts  rest.Instant `json:"starts"`
	Name    *string      `json:"name"`
	Type    *rest.Float  `json:"workout_type_id"`
	Summary *summary     `json:"workout_summary"`
}

type summary struct {
	ID       rest.ID      `json:"workout_id"`
	Started  rest.Instant `json:"started_at"`
	Updated  string       `json:"updated_at"`
	Zone     string       `json:"time_zone"`
	Manual   bool         `json:"manual"`
	Total    *rest.Float  `json:"duration_total_accum"`
	Active   *rest.Float  `json:"duration_active_accum"`
	Distance *rest.Float  `json:"distance_accum"`
	KCal     *rest.Float  `json:"calories_accum"`
	Climb    *rest.Float  `json:"ascent_accum"`
	Speed    *rest.Float  `json:"speed_avg"`
	HR       *rest.Float  `json:"heart_rate_avg"`
	Watts    *rest.Float  `json:"power_avg"`
	OldWatts *rest.Float  `json:"power_bike_avg"`
	Weighted *rest.Float  `json:"power_bike_np_last"`
	File     struct {
		URL string `json:"url"`
	} `json:"file"`
	Workout *workout `json:"workout"`
}

// workout returns the workout to which a summary belongs, with v as its Summary.
func (v *summary) workout() *workout {
	w := workout{ID: v.ID}
	if v.Workout != nil {
		w = *v.Workout
	}
	w.Summary = v
	return &w
}

// started returns the start time of an item of the list of workouts; zero if it is unknown.
func started(item json.RawMessage) time.Time {
	var v struct {
		Starts rest.Instant `json:"starts"`
	}
	_ = json.Unmarshal(item, &v) // a workout without a start belongs to every range
	return v.Starts.Time.Time
}

// file returns the URL of a workout's FIT file; empty if the provider has none on its own hosts.
func file(item json.RawMessage) string {
	var v workout
	if json.Unmarshal(item, &v) != nil || v.Summary == nil {
		return ""
	}
	u, err := url.Parse(v.Summary.File.URL)
	if err != nil || u.Scheme != "https" || !strings.HasSuffix(u.Hostname(), "."+files) {
		return ""
	}
	return u.String()
}

func recorded(item json.RawMessage) string {
	if file(item) == "" {
		return ""
	}
	return rest.KeyOf("id")(item)
}

func (v *workout) source() healthdata.SourceType {
	if v.Summary.Manual {
		return healthdata.SourceApp
	}
	return healthdata.SourceWatch
}

// completed converts a completed workout; nil for a plan or an incomplete workout.
func (v *workout) completed() *healthdata.Workout {
	start := v.Starts
	if s := v.Summary; s != nil && start.IsZero() {
		start = s.Started
	}
	if v.Summary == nil || v.Summary.Total.Value() == nil || start.IsZero() {
		return nil
	}
	s := v.Summary
	w := &healthdata.Workout{
		Head: healthdata.Head{ExternalID: v.ID.String()}, Title: v.Name, TimeStart: start.Time,
		TimeEnd:    healthlab.At(start.Add(time.Duration(*s.Total.Value() * float64(time.Second)))),
		MovingTime: rest.Round(s.Active.Value()), Distance: s.Distance.Value(), Calories: s.KCal.Positive(), TotalElevationGain: s.Climb.Value(),
		AverageSpeed: s.Speed.Value(), AverageHR: rest.Round(s.HR.Positive()), WeightedAverageWatts: s.Weighted.Positive(),
		AverageWatts: cmp.Or(s.Watts.Positive(), s.OldWatts.Positive()), Sport: healthdata.SportOf(""),
	}
	if n := rest.Round(v.Type.Value()); n != nil {
		w.Sport = healthdata.SportOf(sports[*n])
	}
	return w
}

func readWorkout(v *workout, out *rest.Batch) {
	if w := v.completed(); w != nil {
		out.Owner(v.User.String())
		out.Zone(v.Summary.Zone)
		out.Summary("workouts", v.source(), w)
	}
}

// readSummary reads a summary, alone or in a message.
func readSummary(v *struct {
	summary
	Inner *summary `json:"workout_summary"`
}, out *rest.Batch,
) {
	if v.Inner == nil {
		v.Inner = &v.summary
	}
	readWorkout(v.Inner.workout(), out)
}

func readFile(item json.RawMessage, out *rest.Batch) {
	recording.Add(out, Slug, item, healthdata.SourceWatch, func() (healthdata.SourceType, *healthdata.Workout) {
		var of workout
		if json.Unmarshal(out.Joined("workouts", out.ID()), &of) != nil || of.Summary == nil {
			return "", nil
		}
		out.Owner(of.User.String())
		out.Zone(of.Summary.Zone)
		return of.source(), of.completed()
	})
}

// sexes lists the sexes in the order of the provider's numbers, from 0.
var sexes = []string{"male", "female", "other"}

func readUser(v *struct {
	ID      rest.ID         `json:"id"`
	Birth   *healthlab.Date `json:"birth"`
	Gender  *rest.Float     `json:"gender"`
	Height  *rest.Float     `json:"height"`
	Weight  *rest.Float     `json:"weight"`
	Updated rest.Instant    `json:"updated_at"`
}, out *rest.Batch,
) {
	out.Owner(v.ID.String())
	p := &healthdata.Profile{Height: rest.Round(rest.Times(v.Height.Positive(), 100)), BirthDate: v.Birth}
	if n := rest.Round(v.Gender.Value()); n != nil && *n >= 0 && int(*n) < len(sexes) {
		p.Sex = &sexes[*n]
	}
	out.Summary("profile", healthdata.SourceApp, p)
	if !v.Updated.IsZero() {
		out.Sample("weight", healthdata.SourceApp, healthdata.Sample{Timestamp: v.Updated.Time, Unit: "kg", Value: rest.Number(v.Weight.Positive())})
	}
}

// listen reads a message.
func listen(l *rest.Listening, m linking.Message) (linking.ListenResult, error) {
	var v struct {
		Event   string               `json:"event_type"`
		Token   string               `json:"webhook_token"`
		User    struct{ ID rest.ID } `json:"user"`
		Summary *summary             `json:"workout_summary"`
	}
	wrong := json.Unmarshal(m.Body, &v)
	taken := linking.ListenResult{Status: http.StatusOK}
	switch {
	case !rest.Same(v.Token, l.VerifyToken):
		return linking.ListenResult{}, rest.NotTheirs()
	case v.Event != message:
		return taken, nil // an event that is not read
	case wrong != nil || v.Summary == nil || v.User.ID == "":
		return linking.ListenResult{}, rest.NotReadable()
	}
	w := v.Summary.workout().completed()
	if w == nil {
		return taken, nil // Wahoo sends another message when the workout is complete
	}
	data, err := l.Brought(message, m.Body)
	if err != nil {
		return linking.ListenResult{}, rest.NotReadable()
	}
	n := linking.Notification{
		ID: strings.Join([]string{"workout", w.ExternalID, v.Summary.Updated}, " "), ExternalUserID: v.User.ID.String(), Data: data,
	}
	if v.Summary.File.URL != "" {
		n.Resources, n.Since = l.Announced(message), w.TimeStart.Add(-time.Minute)
	}
	taken.Notifications = []linking.Notification{n}
	return taken, nil
}
