// Package strava connects the Strava API v3: workouts with their routes and streams.
//
//	connector, err := strava.New(rest.Client{ID: id, Secret: secret}, &rest.Options{VerifyToken: word})
//	connectors[strava.Slug] = connector.Flows()
//
// # What is read
//
//	activities          the list; with a stored page, workouts without calories
//	activity            workouts: each activity of the list by itself (kcal, m, m/s, W, s)
//	streams             workout_stream, after the activity (bpm, m, m/s, W, °C, degrees)
//	athlete             profile (sex)
//
// Instants are start_date, in UTC; start_date_local ends in a wrong Z and is not read. The
// end is the start plus elapsed_time. The offset is utc_offset, because the text of timezone
// has the standard time of its zone. Cadence of runs counts one leg and is doubled. An
// activity that was typed in has the source app, others watch. With its stream each has two
// requests in a history, and the application has 1,000 a day: histories take their time. In a
// stored page of streams the workout is not known, and times are seconds since its start. The
// weight of the athlete has no instant and is not read.
//
// # Messages
//
// One subscription for the application. The handshake repeats Options.VerifyToken. Messages
// were not signed for years: one is taken if its signature is right, or if the address that
// was registered has the parameter token with Options.VerifyToken. A deleted activity is
// removed, and a person who ends the grant is unlinked. A message names no time: the last 14
// days are read, and an older activity that is uploaded late is not found.
//
// # How sure this is
//
// Documented: addresses, fields, limits, subscription. From client code: the newer signature,
// empty pages as the end, the order of pages. Not tried against the service: that after
// leaves out its own second. The agreement of the API limits whom data may be shown to.
package strava

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Slug is the slug of the provider.
const Slug = "strava"

const site = "https://www.strava.com"

var (
	scopes  = []string{"activity:read_all"}
	missing = []int{http.StatusNotFound} // for an activity that was deleted or hidden, or has no recording
)

var definition = &rest.Definition{
	Provider: healthdata.Provider{
		Slug: Slug, Name: "Strava", Group: "sport", AuthType: "oauth", OAuthVersion: 2, Category: "app", Class: "cloud", UpdateModel: "hybrid",
		Description: "Runs, rides and other workouts.", AllScopesRequired: true,
		Backfill:   healthdata.Backfill{DefaultDays: 90, MaxDays: 365, Configurable: true, Mode: "pull"},
		RateLimits: healthdata.RateLimits{App: []healthdata.RateLimit{{Requests: 100, Seconds: 900, Burst: 10}, {Requests: 1000, Seconds: 86_400, Burst: 100}}},
	},
	OAuth: rest.OAuth{
		AuthorizeURL: site + "/oauth/authorize", TokenURL: site + "/api/v3/oauth/token", ScopeSeparator: ",",
		Revocation: rest.Revocation{URL: site + "/oauth/deauthorize", Token: rest.RevokeBearer}, Minimum: scopes,
		Account: rest.AccountInToken("athlete.id"),
	},
	BaseURL: site + "/api/v3",
	Collections: []rest.Collection{
		{
			Name: "activities", Path: "/athlete/activities", Query: url.Values{"per_page": {"100"}}, Pages: rest.Numbered("page"),
			Range: rest.Range{From: "after", To: "before", Format: rest.Unix, Before: time.Second},
			Key:   rest.KeyOf("id"), Keep: []string{"id"}, Stored: []string{"workouts"}, Read: rest.Each(readActivity),
		},
		{
			Name: "activity", Scopes: scopes, For: "activities", Path: "/activities/{id}", Missing: missing,
			Keep: rest.Members[activity](), Messages: []string{"activity"}, Resources: []string{"workouts"}, Read: rest.Each(readActivity),
		},
		{
			Name: "streams", Scopes: scopes, For: "activities", With: []string{"activity"}, Path: "/activities/{id}/streams", Missing: missing,
			Query:    url.Values{"keys": {"time,distance,latlng,altitude,velocity_smooth,heartrate,cadence,watts,temp"}, "key_by_type": {"true"}},
			Messages: []string{"activity"}, Resources: []string{"workout_stream"}, Read: rest.Each(readStreams),
		},
		{Name: "athlete", Scopes: scopes, Path: "/athlete", Resources: []string{"profile"}, Read: rest.Each(readAthlete)},
	},
	Rates: rates, Wait: wait, Listen: listen,
}

// Record returns the provider's catalogue record. The caller may change it.
func Record() healthdata.Provider { return definition.Record() }

// New returns the connector. See [rest.New].
func New(client rest.Client, opts *rest.Options) (*rest.Connector, error) {
	return rest.New(definition, client, opts)
}

// Read decodes a stored page. kind is the name of the collection: activities, activity, streams or athlete. See
// [rest.Definition.Read].
func Read(kind string, page []byte) (rest.Data, error) { return definition.Read(kind, page) }

// windows holds the lengths of the windows of the rate limit. Windows are aligned with midnight UTC.
var windows = []time.Duration{15 * time.Minute, rest.Day}

// rateLimits returns the remaining requests of each window, and when the window ends.
func rateLimits(h http.Header, now time.Time) (out []linking.RateLimit) {
	limit, usage := strings.Split(h.Get("X-ReadRateLimit-Limit"), ","), strings.Split(h.Get("X-ReadRateLimit-Usage"), ",")
	if len(limit) != len(windows) || len(usage) != len(windows) {
		return nil
	}
	for i, window := range windows {
		most, err := strconv.Atoi(strings.TrimSpace(limit[i]))
		used, bad := strconv.Atoi(strings.TrimSpace(usage[i]))
		if err == nil && bad == nil {
			out = append(out, linking.RateLimit{Scope: linking.RateApp, Remaining: max(most-used, 0), Reset: now.UTC().Truncate(window).Add(window)})
		}
	}
	return out
}

// rates returns the rate limit of a day if it is exhausted, else that of 15 minutes; nil if the headers are malformed.
func rates(h http.Header, now time.Time) []linking.RateLimit {
	all := rateLimits(h, now)
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Remaining == 0 || i == 0 {
			return all[i : i+1]
		}
	}
	return nil
}

func wait(h http.Header, now time.Time) time.Duration {
	if r := rates(h, now); len(r) > 0 {
		return r[0].Reset.Sub(now)
	}
	return now.UTC().Truncate(windows[0]).Add(windows[0]).Sub(now)
}

type activity struct {
	ID      rest.ID              `json:"id"`
	Athlete struct{ ID rest.ID } `json:"athlete"`
	Name    *string              `json:"name"`
	Sport   string               `json:"sport_type"`
	Start   rest.Instant         `json:"start_date"`
	Offset  *float64             `json:"utc_offset"`
	Elapsed float64              `json:"elapsed_time"`
	Moving  *float64             `json:"moving_time"`
	Manual  bool                 `json:"manual"`
	Device  *string              `json:"device_name"`
	KCal    float64              `json:"calories"`

	Distance *float64 `json:"distance"`
	Climb    *float64 `json:"total_elevation_gain"`
	High     *float64 `json:"elev_high"`
	Low      *float64 `json:"elev_low"`
	Speed    *float64 `json:"average_speed"`
	MaxSpeed *float64 `json:"max_speed"`
	HR       *float64 `json:"average_heartrate"`
	MaxHR    *float64 `json:"max_heartrate"`
	Watts    *float64 `json:"average_watts"`
	MaxWatts *float64 `json:"max_watts"`
	Weighted *float64 `json:"weighted_average_watts"`
	Map      struct {
		Polyline string `json:"polyline"`
		Summary  string `json:"summary_polyline"`
	} `json:"map"`
}

// sports maps activity types to sport slugs, for types whose slug differs from their name.
var sports = map[string]string{
	"Run": "running", "VirtualRun": "running", "TrailRun": "trail_running", "Ride": "cycling", "VirtualRide": "indoor_cycling",
	"MountainBikeRide": "mountain_biking", "GravelRide": "gravel_cycling", "EBikeRide": "e_biking", "Swim": "swimming", "Walk": "walking",
	"Hike": "hiking", "WeightTraining": "strength_training",
}

func (v *activity) source() healthdata.SourceType {
	if v.Manual {
		return healthdata.SourceApp
	}
	return healthdata.SourceWatch
}

func (v *activity) workout() *healthdata.Workout {
	sport := sports[v.Sport]
	if sport == "" {
		sport = rest.Slug(v.Sport)
	}
	w := &healthdata.Workout{
		Head: healthdata.Head{ExternalID: v.ID.String()}, Title: v.Name, Sport: healthdata.SportOf(sport),
		TimeStart: v.Start.Time, TimeEnd: healthlab.At(v.Start.Add(time.Duration(v.Elapsed * float64(time.Second)))),
		MovingTime: rest.Round(v.Moving), Distance: v.Distance, TotalElevationGain: v.Climb, ElevHigh: v.High, ElevLow: v.Low,
		AverageSpeed: v.Speed, MaxSpeed: v.MaxSpeed, AverageHR: rest.Round(v.HR), MaxHR: rest.Round(v.MaxHR),
		AverageWatts: v.Watts, MaxWatts: v.MaxWatts, WeightedAverageWatts: v.Weighted, TimezoneOffset: rest.OffsetOf(v.Offset, time.Second),
	}
	if v.KCal > 0 { // the list has 0 for unknown
		w.Calories = &v.KCal
	}
	if v.Map.Summary != "" || v.Map.Polyline != "" {
		w.Map = &healthdata.Map{SummaryPolyline: rest.Text(v.Map.Summary), Polyline: rest.Text(v.Map.Polyline)}
	}
	return w
}

func (v *activity) about(out *rest.Batch) {
	out.Owner(v.Athlete.ID.String())
	if v.Device != nil && *v.Device != "" {
		out.Device(&healthdata.DeviceInfo{Model: v.Device})
	}
}

func readActivity(v *activity, out *rest.Batch) {
	v.about(out)
	out.Summary("workouts", v.source(), v.workout())
}

// sexes maps the provider's letters for the sex of a person.
var sexes = map[string]string{"M": "male", "F": "female"}

func readAthlete(v *struct {
	ID  rest.ID `json:"id"`
	Sex string  `json:"sex"`
}, out *rest.Batch,
) {
	if sex, known := sexes[v.Sex]; known {
		out.Owner(v.ID.String())
		out.Summary("profile", healthdata.SourceApp, &healthdata.Profile{Sex: &sex})
	}
}

// streams holds the recording of an activity as parallel arrays of equal length.
type streams struct {
	Time     struct{ Data []int64 }       `json:"time"`
	Distance struct{ Data []*float64 }    `json:"distance"`
	Position struct{ Data [][2]*float64 } `json:"latlng"`
	Altitude struct{ Data []*float64 }    `json:"altitude"`
	Velocity struct{ Data []*float64 }    `json:"velocity_smooth"`
	HR       struct{ Data []*float64 }    `json:"heartrate"`
	Cadence  struct{ Data []*float64 }    `json:"cadence"`
	Watts    struct{ Data []*float64 }    `json:"watts"`
	Temp     struct{ Data []*float64 }    `json:"temp"`
}

func readStreams(v *streams, out *rest.Batch) {
	var of activity
	if json.Unmarshal(out.Joined("activity", out.ID()), &of) != nil && !out.Stored() || len(v.Time.Data) == 0 {
		return
	}
	s := &healthdata.WorkoutStream{
		Distance: v.Distance.Data, Altitude: v.Altitude.Data, VelocitySmooth: v.Velocity.Data, Cadence: v.Cadence.Data, Power: v.Watts.Data,
		Temperature: v.Temp.Data,
	}
	var w *healthdata.Workout
	start := int64(0)
	if !out.Stored() {
		w = of.workout()
		start = w.TimeStart.Unix()
	}
	for _, seconds := range v.Time.Data {
		s.Time = append(s.Time, start+seconds)
	}
	for _, p := range v.Position.Data {
		s.Lat, s.Lng = append(s.Lat, p[0]), append(s.Lng, p[1])
	}
	for _, bpm := range v.HR.Data {
		s.Heartrate = append(s.Heartrate, rest.Round(rest.Positive(bpm)))
	}
	if strings.HasSuffix(of.Sport, "Run") {
		for i, legs := range s.Cadence {
			s.Cadence[i] = rest.Times(legs, 2)
		}
	}
	of.about(out)
	out.Stream(of.source(), w, s)
}

// reach is the length of the range that is pulled after a message.
const reach = 14 * rest.Day

// signed reports whether Strava sent a message. The message needs a valid signature, or the verify token in its URL.
func signed(l *rest.Listening, m *linking.Message) bool {
	if rest.Same(rest.Query(m, "token"), l.VerifyToken) {
		return true
	}
	parts := url.Values{}
	for _, part := range strings.Split(rest.Header(m, "X-Strava-Signature"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		parts.Set(name, value)
	}
	seconds, err := strconv.ParseInt(parts.Get("t"), 10, 64)
	return err == nil && rest.Fresh(m, time.Unix(seconds, 0)) && rest.SignedHex(parts.Get("v1"), l.Client.Secret, []byte(parts.Get("t")), []byte("."), m.Body)
}

// listen responds to the handshake of a subscription, or reads a message.
func listen(l *rest.Listening, m linking.Message) (linking.ListenResult, error) {
	if m.Method == http.MethodGet {
		if !rest.Same(rest.Query(&m, "hub.verify_token"), l.VerifyToken) {
			return linking.ListenResult{}, rest.NotTheirs()
		}
		return rest.JSONReply(map[string]string{"hub.challenge": rest.Query(&m, "hub.challenge")}), nil
	}
	if !signed(l, &m) {
		return linking.ListenResult{}, rest.NotTheirs()
	}
	var v struct {
		Object  string         `json:"object_type"`
		ID      rest.ID        `json:"object_id"`
		Aspect  string         `json:"aspect_type"`
		Updates map[string]any `json:"updates"`
		Owner   rest.ID        `json:"owner_id"`
		Time    rest.ID        `json:"event_time"`
	}
	if json.Unmarshal(m.Body, &v) != nil {
		return linking.ListenResult{}, rest.NotReadable()
	}
	n := linking.Notification{
		ID: strings.Join([]string{v.Object, v.ID.String(), v.Aspect, v.Time.String()}, " "), ExternalUserID: v.Owner.String(),
		Resources: l.Announced("activity"), Since: m.At.Add(-reach),
	}
	switch {
	case v.Object == "athlete":
		if v.Updates["authorized"] != "false" && v.Updates["authorized"] != false {
			return linking.ListenResult{Status: http.StatusOK}, nil
		}
		n.Resources, n.Unlinked = nil, true
	case v.Aspect == "delete":
		n.Resources = nil
		data := linking.ResourceData{Resource: "workouts"}
		for _, source := range []healthdata.SourceType{healthdata.SourceWatch, healthdata.SourceApp} { // the message does not say which
			data.Items = append(data.Items, linking.PullItem{Source: healthdata.Source{Type: source}, Deleted: []linking.DeletedRecord{{ID: v.ID.String()}}})
		}
		n.Data = []linking.ResourceData{data}
	}
	return linking.ListenResult{Notifications: []linking.Notification{n}, Status: http.StatusOK}, nil
}
