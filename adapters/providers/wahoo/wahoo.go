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
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fileimport"
	"github.com/healthlab-dev/healthlab/adapters/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Slug is the provider's.
const Slug = "wahoo"

const (
	base = "https://api.wahooligan.com"
	// files is the domain of the hosts of recordings.
	files = "wahooligan.com"
)

var (
	account  = []string{"user_read"}
	workouts = []string{"workouts_read"}
	// gone are the statuses of a file whose link does not work.
	gone = []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone}
)

var definition = &rest.Definition{
	Provider: healthdata.Provider{
		Slug: Slug, Name: "Wahoo", Group: "sport", AuthType: "oauth", OAuthVersion: 2, SourceType: "device", Class: "cloud", UpdateModel: "hybrid",
		Description: "Rides, runs and other workouts of bike computers, watches and trainers.",
		Backfill:    healthdata.Backfill{DefaultDays: 90, MaxDays: 365, Configurable: true, Mode: "pull"},
		RateLimits: healthdata.RateLimits{App: []healthdata.RateLimit{
			{Requests: 200, Seconds: 300, Burst: 10}, {Requests: 1000, Seconds: 3600, Burst: 50}, {Requests: 5000, Seconds: 86_400, Burst: 200},
		}},
	},
	OAuth: rest.OAuth{
		AuthorizeURL: base + "/oauth/authorize", TokenURL: base + "/oauth/token", TokenSeconds: 7200, Minimum: []string{"user_read", "offline_data"},
		Revocation: rest.Revocation{URL: base + "/v1/permissions", Method: http.MethodDelete, Token: rest.RevokeBearer},
		Account: func(ctx context.Context, s *rest.SignedIn) (string, error) {
			a, err := s.Do(ctx, http.MethodGet, base+"/v1/user", nil)
			if err != nil {
				return "", err
			}
			return rest.AccountIn(a.Body, "id")
		},
	},
	BaseURL: base,
	Kinds: []rest.Kind{
		{
			Name: "workouts", Scopes: workouts, Path: "/v1/workouts", Query: url.Values{"per_page": {"100"}}, Pages: rest.Numbered("page"), Items: "workouts",
			Time: started, Key: recorded, Keep: []string{"id", "starts", "workout_type_id", "workout_summary"},
			Resources: []string{"workouts"}, Read: rest.Each(readWorkout),
		},
		{
			Name: "file", Scopes: workouts, For: "workouts", File: file, Missing: gone, Resources: []string{"workout_stream"}, Read: readFile,
		},
		{Name: "workout_summary", Path: "/v1/workouts/{id}/workout_summary", Read: rest.Each(readSummary)},
		{Name: "user", Scopes: account, Path: "/v1/user", Resources: []string{"profile", "weight"}, Read: rest.Each(readUser)},
	},
	Rates: rates, Listen: listen, MessageKey: "webhook_token",
	Wait: func(h http.Header, _ time.Time) time.Duration { return reset(h) },
}

// Record returns the provider's record for the catalogue. It is the caller's to change.
func Record() healthdata.Provider { return definition.Record() }

// New returns the connector. See [rest.New].
func New(client rest.Client, opts *rest.Options) (*rest.Connector, error) {
	return rest.New(definition, client, opts)
}

// Read decodes a stored page of workouts, a workout_summary, a message, a user or a FIT file, whose
// workouts are those of the file. See [rest.Definition.Read].
func Read(kind string, page []byte) (rest.Data, error) { return definition.Read(kind, page) }

// reset is how long a limit that is used up lasts; 0 if there is room.
func reset(h http.Header) time.Duration {
	n, err := strconv.Atoi(h.Get("X-RateLimit-Reset"))
	if err != nil || n < 0 || n > 86_400 {
		return 0
	}
	return time.Duration(n) * time.Second
}

// rates reads what is left in a day, an hour and 5 minutes. Where one is used up, the reset is its;
// else the shortest window ends in at most 5 minutes.
func rates(h http.Header, now time.Time) []linking.Rate {
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
	return []linking.Rate{{Scope: linking.RateApp, Remaining: left, Reset: now.Add(wait).UTC()}}
}

// figure is a number, or a text that holds one.
type figure float64

// UnmarshalJSON reads a number or a text. A text that holds none is not a number.
func (f *figure) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if err != nil {
		v = math.NaN()
	}
	*f = figure(v)
	return nil
}

// value returns a number; nil for none.
func (f *figure) value() *float64 {
	if f == nil || math.IsNaN(float64(*f)) || math.IsInf(float64(*f), 0) {
		return nil
	}
	return rest.Ptr(float64(*f))
}

// positive returns a number above 0; nil for others.
func (f *figure) positive() *float64 {
	if v := f.value(); v != nil && *v > 0 {
		return v
	}
	return nil
}

type workout struct {
	ID      json.Number  `json:"id"`
	User    json.Number  `json:"user_id"`
	Starts  rest.Instant `json:"starts"`
	Name    *string      `json:"name"`
	Type    *int         `json:"workout_type_id"`
	Summary *summary     `json:"workout_summary"`
}

type summary struct {
	ID       json.Number  `json:"workout_id"`
	Started  rest.Instant `json:"started_at"`
	Updated  string       `json:"updated_at"`
	Zone     string       `json:"time_zone"`
	Manual   bool         `json:"manual"`
	Total    *figure      `json:"duration_total_accum"`
	Active   *figure      `json:"duration_active_accum"`
	Distance *figure      `json:"distance_accum"`
	KCal     *figure      `json:"calories_accum"`
	Climb    *figure      `json:"ascent_accum"`
	Speed    *figure      `json:"speed_avg"`
	HR       *figure      `json:"heart_rate_avg"`
	Watts    *figure      `json:"power_avg"`
	OldWatts *figure      `json:"power_bike_avg"`
	Weighted *figure      `json:"power_bike_np_last"`
	File     struct {
		URL string `json:"url"`
	} `json:"file"`
	Workout *workout `json:"workout"`
}

// workout is the workout of a summary that holds it.
func (v *summary) workout() *workout {
	w := workout{ID: v.ID}
	if v.Workout != nil {
		w = *v.Workout
	}
	w.Summary = v
	return &w
}

// started is when a workout of the list began.
func started(item json.RawMessage) time.Time {
	var v struct {
		Starts rest.Instant `json:"starts"`
	}
	_ = json.Unmarshal(item, &v) // one without is in every range
	return v.Starts.Time.Time
}

// file is the address of a workout's recording; empty if there is none, or none at the provider's.
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

// recorded is the id of a workout that has a recording.
func recorded(item json.RawMessage) string {
	if file(item) == "" {
		return ""
	}
	return rest.KeyOf("id")(item)
}

// sports are the numbers of types.
var sports = map[int]string{
	0: "cycling", 1: "running", 3: "track_running", 4: "trail_running", 5: "treadmill_running", 6: "walking", 7: "speed_walking", 8: "nordic_walking",
	9: "hiking", 10: "mountaineering", 11: "cyclocross", 12: "indoor_cycling", 13: "mountain_biking", 14: "recumbent_cycling", 15: "road_biking",
	16: "track_cycling", 17: "motorcycling", 20: "elliptical", 22: "indoor_rowing", 23: "stair_climbing", 25: "swimming", 26: "open_water_swimming",
	27: "snowboarding", 28: "skiing", 29: "downhill_skiing", 30: "cross_country_skiing", 31: "skating", 32: "ice_skating", 33: "inline_skating",
	34: "longboarding", 35: "sailing", 36: "windsurfing", 37: "canoeing", 38: "kayaking", 39: "rowing", 40: "kiteboarding",
	41: "stand_up_paddling", 43: "cardio", 44: "stair_climbing", 45: "wheelchair", 46: "golf", 49: "indoor_cycling", 56: "treadmill_walking",
	61: "indoor_cycling", 62: "multisport", 63: "transition", 64: "e_biking", 66: "yoga", 67: "running", 68: "indoor_cycling", 69: "mental_strength",
	70: "handcycling", 71: "indoor_running",
}

// source is how a workout was recorded.
func (v *workout) source() healthdata.SourceType {
	if v.Summary.Manual {
		return healthdata.SourceApp
	}
	return healthdata.SourceWatch
}

// ridden returns a workout that took place; nil for a plan, and for one that is not complete.
func (v *workout) ridden() *healthdata.Workout {
	start := v.Starts
	if s := v.Summary; s != nil && start.IsZero() {
		start = s.Started
	}
	if v.Summary == nil || v.Summary.Total.value() == nil || start.IsZero() {
		return nil
	}
	s := v.Summary
	w := &healthdata.Workout{
		Head: healthdata.Head{ExternalID: v.ID.String()}, Title: v.Name, TimeStart: start.Time,
		TimeEnd:    healthlab.At(start.Add(time.Duration(*s.Total.value() * float64(time.Second)))),
		MovingTime: rest.Round(s.Active.value()), Distance: s.Distance.value(), Calories: s.KCal.positive(), TotalElevationGain: s.Climb.value(),
		AverageSpeed: s.Speed.value(), AverageHR: rest.Round(s.HR.positive()), WeightedAverageWatts: s.Weighted.positive(),
		AverageWatts: cmp.Or(s.Watts.positive(), s.OldWatts.positive()), Sport: healthdata.SportOf(""),
	}
	if v.Type != nil {
		w.Sport = healthdata.SportOf(sports[*v.Type])
	}
	return w
}

func readWorkout(v *workout, out *rest.Batch) {
	if w := v.ridden(); w != nil {
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

// recording keeps what a file holds of workouts.
type recording struct {
	workouts []*healthdata.Workout
	streams  []healthdata.WorkoutStream
}

// Summaries takes workouts, which come with their streams. See [fileimport.Sink].
func (*recording) Summaries(context.Context, string, healthdata.Source, []healthdata.Summary) error {
	return nil
}

// Samples takes samples, which are in the streams.
func (*recording) Samples(context.Context, string, healthdata.Source, []healthdata.Sample) error {
	return nil
}

// Stream takes a recording.
func (r *recording) Stream(_ context.Context, w *healthdata.Workout, s healthdata.WorkoutStream) error {
	r.workouts, r.streams = append(r.workouts, w), append(r.streams, s)
	return nil
}

func readFile(item json.RawMessage, out *rest.Batch) {
	var r recording
	if _, err := fileimport.Import(context.Background(), bytes.NewReader(item), &r, &fileimport.Options{Provider: Slug}); err != nil {
		out.Problem("file", "must be a FIT file that can be read", "file")
		return
	}
	if out.Stored() {
		for i, w := range r.workouts {
			out.Stream(healthdata.SourceWatch, w, &r.streams[i])
		}
		return
	}
	var of workout
	if json.Unmarshal(out.Joined("workouts", out.ID()), &of) != nil || len(r.workouts) == 0 {
		return
	}
	w := of.ridden()
	if w == nil {
		return
	}
	nearest := slices.MinFunc(r.workouts, func(a, b *healthdata.Workout) int {
		return cmp.Compare(a.TimeStart.Sub(w.TimeStart.Time).Abs(), b.TimeStart.Sub(w.TimeStart.Time).Abs())
	})
	out.Zone(of.Summary.Zone)
	out.Stream(of.source(), w, &r.streams[slices.Index(r.workouts, nearest)])
}

// sexes are the numbers of gender.
var sexes = []string{"male", "female", "other"}

func readUser(v *struct {
	ID      json.Number     `json:"id"`
	Birth   *healthlab.Date `json:"birth"`
	Gender  *int            `json:"gender"`
	Height  *figure         `json:"height"`
	Weight  *figure         `json:"weight"`
	Updated rest.Instant    `json:"updated_at"`
}, out *rest.Batch,
) {
	out.Owner(v.ID.String())
	p := &healthdata.Profile{Height: rest.Round(rest.Times(v.Height.positive(), 100)), BirthDate: v.Birth}
	if v.Gender != nil && *v.Gender >= 0 && *v.Gender < len(sexes) {
		p.Sex = &sexes[*v.Gender]
	}
	out.Summary("profile", healthdata.SourceApp, p)
	if !v.Updated.IsZero() {
		out.Sample("weight", healthdata.SourceApp, healthdata.Sample{Timestamp: v.Updated.Time, Unit: "kg", Value: rest.Number(v.Weight.positive())})
	}
}

// listen reads a message.
func listen(l *rest.Listening, m linking.Message) (linking.Heard, error) {
	var v struct {
		Event   string                   `json:"event_type"`
		Token   string                   `json:"webhook_token"`
		User    struct{ ID json.Number } `json:"user"`
		Summary *summary                 `json:"workout_summary"`
	}
	wrong := json.Unmarshal(m.Body, &v)
	taken := linking.Heard{Status: http.StatusOK}
	switch {
	case !rest.Same(v.Token, l.VerifyToken):
		return linking.Heard{}, rest.NotTheirs()
	case v.Event != "workout_summary":
		return taken, nil // an event that is not read
	case wrong != nil || v.Summary == nil || v.User.ID == "":
		return linking.Heard{}, rest.NotReadable()
	}
	w := v.Summary.workout().ridden()
	if w == nil {
		return taken, nil // another message follows when it is complete
	}
	data, err := l.Read("workout_summary", m.Body)
	if err != nil {
		return linking.Heard{}, rest.NotReadable()
	}
	n := linking.Announced{
		ID: strings.Join([]string{"workout", w.ExternalID, v.Summary.Updated}, " "), ExternalUserID: v.User.ID.String(), Data: data,
	}
	if v.Summary.File.URL != "" {
		n.Resources, n.Since = []string{"workout_stream"}, w.TimeStart.Add(-time.Minute)
	}
	taken.News = []linking.Announced{n}
	return taken, nil
}
