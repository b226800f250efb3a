// Package suunto connects the Suunto Cloud API: workouts with their recordings, sleep, heart
// rate and steps of the day, and daily activity.
//
//	connector, err := suunto.New(rest.Client{ID: id, Secret: secret, Key: subscriptionKey}, &rest.Options{VerifyToken: notificationSecret})
//	connectors[suunto.Slug] = connector.Flows()
//
// # What is read
//
//	sleep                      sleep; a revision replaces the one before
//	activity                   every 10 minutes: heartrate (bpm or Hz), steps, calories_active
//	                           (J), blood_oxygen (share or %), hrv (RMSSD, ms)
//	daily_activity_statistics  activity of each day (steps, active kcal)
//	workouts                   workouts (m, m/s, kcal)
//	workout                    workout_stream of each workout (bpm, m, m/s, W, °C, degrees)
//
// Instants of sleep and activity have the local offset; those of workouts are milliseconds with
// an offset in minutes. Daily sums are of 24 hours each, from a midnight in the person's zone
// on; of several watches the one with the most counts. A sleep is known by SleepId, or its start; the
// time awake is what is left of the session. A workout is known by workoutKey and ends at
// stopTime; totalTime leaves out pauses and is the moving time. A heart rate below 15 is in Hz. The
// energy of a workout is in kcal, and above 10,000 in joules. Recovery (balance and stress state) has
// no place in the catalogue, and cadence has no known unit.
//
// # Messages
//
// One address for the application. The signature is HMAC-SHA256 with the notification secret,
// which is Options.VerifyToken. Sleep and activity come with the message and are stored; a
// workout is shortened there and is fetched. Deletions are not announced, and a message that was
// not taken does not come again.
//
// # How sure this is
//
// Documented: addresses, the daily sums, messages and their signature. From client code: the
// account in the claim user, all other shapes, units, the ends of workouts, RMSSD, the end of a
// grant. Not tried against the service: that energy of the day is the active one (in the official
// example it is 153 kcal for 4,617 steps), the limit (only the developer portal has it), a
// rotating refresh token.
package suunto

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Slug is the slug of the provider.
const Slug = "suunto"

const (
	sign = "https://cloudapi-oauth.suunto.com/oauth/"
	base = "https://cloudapi.suunto.com"
	// size is the largest number of workouts of a page.
	size = 100
)

var (
	// samples requests ranges of at most 28 days.
	samples = rest.Range{From: "from", To: "to", Format: rest.UnixMilli, Before: rest.Day, Max: 28 * rest.Day}
	// days requests at most 28 days, including the first and last.
	days = rest.Range{From: "startdate", To: "enddate", Format: rest.Zoneless, Days: true, Max: 26 * rest.Day}
)

var definition = &rest.Definition{
	Provider: healthdata.Provider{
		Slug: Slug, Name: "Suunto", Group: "wearable", AuthType: "oauth", OAuthVersion: 2, Category: "device", Class: "cloud", UpdateModel: "hybrid",
		Description: "Workouts, sleep and activity of sports watches.",
		Backfill:    healthdata.Backfill{DefaultDays: 90, MaxDays: 365, Configurable: true, Mode: "pull"},
		RateLimits:  healthdata.RateLimits{App: []healthdata.RateLimit{{Requests: 60, Seconds: 60, Burst: 5}}},
	},
	OAuth: rest.OAuth{
		AuthorizeURL: sign + "authorize", TokenURL: sign + "token", ClientAuth: rest.ClientBasic, TokenSeconds: 86_400,
		Account: func(_ context.Context, s *rest.SignedIn) (string, error) { return account(s.Access) },
		Revoke: func(ctx context.Context, s *rest.SignedIn) error {
			_, err := s.Do(ctx, http.MethodGet, sign+"deauthorize?"+url.Values{"client_id": {s.Client.ID}}.Encode(), nil)
			return err
		},
	},
	BaseURL:   base,
	KeyHeader: "Ocp-Apim-Subscription-Key", MessageKey: "notification_secret",
	Collections: []rest.Collection{
		{
			Name: "sleep", Path: "/247samples/sleep", Range: samples, Key: sleepKey, Revised: true,
			Messages: []string{"SUUNTO_247_SLEEP_CREATED"}, Resources: []string{"sleep"}, Read: rest.Each(readSleep),
		},
		{
			Name: "activity", Path: "/247samples/activity", Range: samples, Messages: []string{"SUUNTO_247_ACTIVITY_CREATED"},
			Resources: []string{"heartrate", "steps", "calories_active", "blood_oxygen", "hrv"}, Read: rest.Each(readActivity),
		},
		{
			Name: "daily_activity_statistics", Path: "/247/daily-activity-statistics", Range: days, Whole: true,
			Resources: []string{"activity"}, Read: rest.Each(readDays),
		},
		{
			Name: "workouts", Path: "/v3/workouts/", Query: url.Values{"limit": {fmt.Sprint(size)}, "filter-by-modification-time": {"false"}},
			Range: rest.Range{From: "since", To: "until", Format: rest.UnixMilli}, Pages: rest.Offset("offset", size), Items: "payload",
			Key: rest.KeyOf("workoutKey"), Keep: []string{"workoutKey"},
			Messages: []string{"WORKOUT_CREATED"}, Resources: []string{"workouts"}, Read: rest.Each(readWorkout),
		},
		{
			Name: "workout", For: "workouts", Path: "/v3/workouts/{id}", Missing: []int{http.StatusNotFound}, Items: "payload",
			Query:    url.Values{"extensions": {strings.Join(slices.Sorted(maps.Keys(extensions)), ",")}},
			Messages: []string{"WORKOUT_CREATED"}, Resources: []string{"workout_stream"}, Read: rest.Each(readRecording),
		},
	},
	Listen: listen,
}

// Record returns the provider's catalogue record. The caller may change it.
func Record() healthdata.Provider { return definition.Record() }

// New returns the connector. See [rest.New].
func New(client rest.Client, opts *rest.Options) (*rest.Connector, error) {
	return rest.New(definition, client, opts)
}

// Read decodes a stored page. kind is the name of the collection. See [rest.Definition.Read].
func Read(kind string, page []byte) (rest.Data, error) { return definition.Read(kind, page) }

// account returns the claim user of an access token (JWT). Messages use it as the name of the person.
func account(token string) (string, error) {
	part := strings.Split(token, ".")
	if len(part) == 3 {
		if claims, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(part[1], "=")); err == nil {
			return rest.AccountIn(claims, "user")
		}
	}
	return "", rest.Unavailable("answers with an access token that has no readable claim user", 0)
}

const (
	watch   = healthdata.SourceWatch
	joules  = 1.0 / 4184 // kcal in a joule
	maxKCal = 10_000     // largest plausible energy of a workout; a larger one is in joules, not kcal
	maxHz   = 15         // lowest plausible heart rate per minute; a lower one is in Hz
	step    = 10 * time.Minute
)

func rateUnit(v *float64) string {
	if v != nil && *v < maxHz {
		return "Hz"
	}
	return "bpm"
}

func bpm(v *float64) *float64 {
	if v = rest.Positive(v); rateUnit(v) == "Hz" {
		return rest.Times(v, 60)
	}
	return v
}

func shareUnit(v *float64) string {
	if v != nil && *v <= 1 { // a share of 1; some answers have percent
		return "fraction"
	}
	return "%"
}

func sleepKey(item json.RawMessage) string {
	// One answer contains all revisions of a night; they have the same SleepId, and the last one is read.
	if id := rest.KeyOf("entryData.SleepId")(item); id != "" {
		return id
	}
	return rest.KeyOf("entryData.BedtimeStart")(item)
}

func readSleep(v *struct {
	Entry struct {
		ID       rest.ID      `json:"SleepId"`
		Start    rest.Instant `json:"BedtimeStart"`
		End      rest.Instant `json:"BedtimeEnd"`
		Duration float64      `json:"Duration"`
		Deep     *float64     `json:"DeepSleepDuration"`
		Light    *float64     `json:"LightSleepDuration"`
		REM      *float64     `json:"REMSleepDuration"`
		Latency  *float64     `json:"SleepOnsetLatencyDuration"`
		HR       *float64     `json:"HRAvg"`
		HRMin    *float64     `json:"HRMin"`
		HRV      *float64     `json:"AvgHRV"`
		Score    *float64     `json:"SleepQualityScore"`
		Nap      bool         `json:"IsNap"`
	} `json:"entryData"`
}, out *rest.Batch,
) {
	x := &v.Entry
	if x.End.IsZero() {
		x.End = rest.Instant{Time: healthlab.At(x.Start.Add(time.Duration(x.Duration * float64(time.Second)))), Offset: x.Start.Offset}
	}
	if x.Start.IsZero() || !x.End.After(x.Start.Time.Time) {
		out.Problem("missing", "must be set, and BedtimeEnd must be after it; without BedtimeEnd, Duration must be positive", "entryData", "BedtimeStart")
		return
	}
	s := &healthdata.Sleep{
		Head: healthdata.Head{ExternalID: x.ID.String()}, BedtimeStart: x.Start.Time, BedtimeStop: x.End.Time, TimezoneOffset: x.End.Offset,
		SessionOffsets: rest.SessionOffsets(x.Start, x.End),
		Deep:           rest.Round(x.Deep), Light: rest.Round(x.Light), REM: rest.Round(x.REM), Latency: rest.Round(x.Latency), HRAverage: rest.Round(bpm(x.HR)),
		HRLowest: rest.Round(bpm(x.HRMin)), AverageHRV: rest.Positive(x.HRV), Score: rest.Round(rest.Positive(x.Score)),
	}
	if x.Nap {
		s.Type = healthdata.SleepNap
	}
	if asleep := seconds(s.Deep) + seconds(s.Light) + seconds(s.REM); asleep > 0 {
		s.Awake = rest.Ptr(max(rest.Whole(x.End.Sub(x.Start.Time.Time))-asleep, 0))
	}
	out.Summary("sleep", watch, s)
}

func seconds(stage *int64) int64 {
	if stage == nil {
		return 0
	}
	return *stage
}

func readActivity(v *struct {
	At    rest.Instant `json:"timestamp"`
	Entry struct {
		HR     *float64 `json:"HR"`
		Steps  *float64 `json:"StepCount"`
		Energy *float64 `json:"EnergyConsumption"`
		SpO2   *float64 `json:"SpO2"`
		HRV    *float64 `json:"HRV"`
	} `json:"entryData"`
}, out *rest.Batch,
) {
	if v.At.IsZero() {
		out.Problem("missing", "a sample must have a time", "timestamp")
		return
	}
	end := healthlab.At(v.At.Add(step))
	sample := func(resource, unit string, value *float64) {
		out.Sample(resource, watch, healthdata.Sample{Timestamp: v.At.Time, TimezoneOffset: v.At.Offset, Unit: unit, Value: rest.Number(value)})
	}
	interval := func(resource, unit string, value *float64) {
		out.Sample(resource, watch, healthdata.Sample{
			Timestamp: v.At.Time, Start: &v.At.Time, End: &end, TimezoneOffset: v.At.Offset, Unit: unit, Value: rest.Number(value),
		})
	}
	sample("heartrate", rateUnit(v.Entry.HR), rest.Positive(v.Entry.HR))
	interval("steps", "count", v.Entry.Steps)
	interval("calories_active", "J", v.Entry.Energy)
	sample("blood_oxygen", shareUnit(v.Entry.SpO2), rest.Positive(v.Entry.SpO2))
	sample("hrv", "rmssd", rest.Positive(v.Entry.HRV))
}

// daySums holds the sums of one quantity for each 24 hours, for each watch.
type daySums struct {
	Name    string
	Sources rest.List[struct {
		Samples rest.List[struct {
			At    rest.Instant `json:"TimeISO8601"`
			Value *float64
		}]
	}]
}

func readDays(v *rest.List[daySums], out *rest.Batch) {
	sums := map[string]map[healthlab.Date]*float64{}
	for i, of := range v.In(out) {
		if sums[of.Name] == nil {
			sums[of.Name] = map[healthlab.Date]*float64{}
		}
		for j, source := range of.Sources.In(out, i, "Sources") {
			for _, x := range source.Samples.In(out, i, "Sources", j, "Samples") {
				if x.At.IsZero() || rest.Round(x.Value) == nil {
					continue
				}
				day := out.LocalDay(healthlab.At(x.At.Add(rest.Day / 2)))
				if most := sums[of.Name][day]; most == nil || *x.Value > *most {
					sums[of.Name][day] = x.Value
				}
			}
		}
	}
	steps, energy := sums["stepcount"], sums["energyconsumption"]
	all := slices.Concat(slices.Collect(maps.Keys(steps)), slices.Collect(maps.Keys(energy)))
	slices.SortFunc(all, healthlab.Date.Compare)
	for _, day := range slices.Compact(all) {
		out.Summary("activity", watch, &healthdata.Activity{
			CalendarDate: day, Steps: rest.Round(steps[day]), CaloriesActive: rest.Times(energy[day], joules),
		})
	}
}

// sports maps activity ids to sport slugs. The sport of an unknown id is other.
var sports = map[int]string{
	0: "walking", 1: "running", 2: "cycling", 3: "cross_country_skiing", 10: "mountain_biking", 11: "hiking", 12: "inline_skating",
	13: "alpine_skiing", 14: "paddling", 15: "rowing", 16: "golf", 21: "swimming", 22: "trail_running", 23: "strength_training",
	24: "nordic_walking", 25: "horse_riding", 27: "skateboarding", 29: "climbing", 30: "snowboarding", 31: "ski_touring", 33: "soccer",
	34: "tennis", 35: "basketball", 36: "badminton", 37: "baseball", 38: "volleyball", 39: "american_football", 40: "table_tennis",
	42: "squash", 43: "floorball", 44: "handball", 48: "rugby", 49: "ice_skating", 50: "ice_hockey", 51: "yoga", 52: "indoor_cycling",
	53: "treadmill_running", 54: "crossfit", 55: "elliptical", 56: "roller_skiing", 57: "indoor_rowing", 58: "stretching", 60: "orienteering",
	61: "stand_up_paddling", 62: "martial_arts", 64: "dancing", 65: "snowshoeing", 68: "multisport", 69: "aerobics", 70: "trekking",
	71: "sailing", 72: "kayaking", 73: "circuit_training", 74: "triathlon", 75: "padel", 77: "boxing", 78: "scuba_diving", 79: "freediving",
	82: "canoeing", 83: "mountaineering", 85: "open_water_swimming", 86: "windsurfing", 87: "kitesurfing", 91: "surfing", 92: "swimrun",
	93: "duathlon", 99: "gravel_cycling", 103: "track_running", 104: "calisthenics", 105: "e_biking", 107: "backcountry_skiing",
	111: "biathlon", 114: "cyclocross", 120: "pilates", 121: "yoga",
}

// milli is an instant in milliseconds since 1970.
type milli float64

func (t milli) time() healthlab.Time { return healthlab.At(time.UnixMilli(int64(t))) }

func (t milli) second() int64 { return t.time().Round(time.Second).Unix() }

// workout is a workout of the list, or a single workout with its recording.
type workout struct {
	Key      string   `json:"workoutKey"`
	Name     *string  `json:"workoutName"`
	Activity *int     `json:"activityId"`
	Start    milli    `json:"startTime"`
	Stop     milli    `json:"stopTime"`
	Total    *float64 `json:"totalTime"`
	Distance *float64 `json:"totalDistance"`
	Climb    *float64 `json:"totalAscent"`
	Energy   *float64 `json:"energyConsumption"`
	Steps    *float64 `json:"stepCount"`
	Speed    *float64 `json:"avgSpeed"`
	MaxSpeed *float64 `json:"maxSpeed"`
	Offset   *float64 `json:"timeOffsetInMinutes"`
	Manual   bool     `json:"isManuallyAdded"`
	Polyline string   `json:"polyline"`
	HR       struct {
		Average *float64 `json:"workoutAvgHR"`
		Max     *float64 `json:"workoutMaxHR"`
		Avg     *float64 `json:"avg"`
		Highest *float64 `json:"max"`
	} `json:"hrdata"`
	Gear *struct {
		Manufacturer *string `json:"manufacturer"`
		Name         *string `json:"name"`
		Display      *string `json:"displayName"`
		Serial       *string `json:"serialNumber"`
		Version      *string `json:"softwareVersion"`
	} `json:"gear"`
	Extensions rest.List[extension] `json:"extensions"`
}

func (v *workout) source() healthdata.SourceType {
	if v.Manual {
		return healthdata.SourceApp
	}
	return watch
}

func (v *workout) summary(out *rest.Batch) *healthdata.Workout {
	sport := ""
	if v.Activity != nil {
		sport = sports[*v.Activity]
	}
	w := &healthdata.Workout{
		Head: healthdata.Head{ExternalID: v.Key}, Title: v.Name, Sport: healthdata.SportOf(sport), TimeStart: v.Start.time(), TimeEnd: v.Stop.time(),
		MovingTime: rest.Round(v.Total), Distance: rest.Positive(v.Distance), TotalElevationGain: v.Climb, Calories: rest.Positive(v.Energy),
		Steps: rest.Round(rest.Positive(v.Steps)), AverageSpeed: rest.Positive(v.Speed), MaxSpeed: rest.Positive(v.MaxSpeed),
		TimezoneOffset: rest.OffsetOf(v.Offset, time.Minute), AverageHR: rest.Round(cmp.Or(bpm(v.HR.Average), bpm(v.HR.Avg))), MaxHR: rest.Round(cmp.Or(bpm(v.HR.Max), bpm(v.HR.Highest))),
	}
	if v.Stop <= v.Start && v.Total != nil {
		w.TimeEnd = healthlab.At(v.Start.time().Add(time.Duration(*v.Total * float64(time.Second))))
	}
	if w.Calories != nil && *w.Calories > maxKCal {
		w.Calories = rest.Times(w.Calories, joules)
	}
	if v.Polyline != "" {
		w.Map = &healthdata.Map{SummaryPolyline: &v.Polyline}
	}
	if g := v.Gear; g != nil {
		out.Device(&healthdata.DeviceInfo{ID: g.Serial, Manufacturer: g.Manufacturer, Model: cmp.Or(g.Display, g.Name), Version: g.Version})
	}
	return w
}

func readWorkout(v *workout, out *rest.Batch) { out.Summary("workouts", v.source(), v.summary(out)) }

// extension is one part of a recording: positions, or the values of one quantity.
type extension struct {
	Type   string
	Points rest.List[struct {
		At    milli    `json:"timestamp"`
		Value *float64 `json:"value"`
	}] `json:"points"`
	Locations rest.List[struct {
		At  milli    `json:"timestamp"`
		Lat *float64 `json:"latitude"`
		Lng *float64 `json:"longitude"`
	}] `json:"locationPoints"`
}

// extensions maps the types of extensions to columns of a recording. The column is empty for locations, which set two.
var extensions = map[string]rest.Column{
	"LocationStreamExtension": "", "HeartrateStreamExtension": rest.ColumnHeartrate, "AltitudeStreamExtension": rest.ColumnAltitude,
	"SpeedStreamExtension": rest.ColumnSpeed, "PowerStreamExtension": rest.ColumnPower, "TemperatureStreamExtension": rest.ColumnTemperature,
}

// readRecording merges the extensions of a workout by second, and adds them as a recording.
func readRecording(v *workout, out *rest.Batch) {
	var track rest.Track
	for i, x := range v.Extensions.In(out, "extensions") {
		column, known := extensions[x.Type]
		if !known {
			continue
		}
		for _, p := range x.Points.In(out, "extensions", i, "points") {
			if column == rest.ColumnHeartrate {
				p.Value = bpm(p.Value)
			}
			if column != "" {
				track.Put(column, p.At.second(), p.Value)
			}
		}
		for _, p := range x.Locations.In(out, "extensions", i, "locationPoints") {
			track.Put(rest.ColumnLat, p.At.second(), p.Lat)
			track.Put(rest.ColumnLng, p.At.second(), p.Lng)
		}
	}
	out.Stream(v.source(), v.summary(out), track.Stream())
}

// listen reads a message.
func listen(l *rest.Listening, m linking.Message) (linking.ListenResult, error) {
	signature := rest.Header(&m, "X-HMAC-SHA256-Signature")
	if !rest.SignedHex(signature, l.VerifyToken, m.Body) && !rest.SignedBase64(signature, l.VerifyToken, m.Body) {
		return linking.ListenResult{}, rest.NotTheirs()
	}
	result := linking.ListenResult{Status: http.StatusOK}
	var v struct {
		Type    string          `json:"type"`
		User    string          `json:"username"`
		Samples json.RawMessage `json:"samples"`
		Workout struct {
			Start milli `json:"startTime"`
		} `json:"workout"`
	}
	if json.Unmarshal(m.Body, &v) != nil || v.User == "" {
		return linking.ListenResult{}, rest.NotReadable()
	}
	n := linking.Notification{ExternalUserID: v.User}
	if n.Resources = l.Announced(v.Type); n.Resources == nil {
		return result, nil // a message type that is not read
	}
	if len(v.Samples) > 0 {
		data, err := l.Brought(v.Type, v.Samples)
		if err != nil {
			return linking.ListenResult{}, rest.NotReadable()
		}
		n.Resources, n.Data = nil, data
	} else if v.Workout.Start > 0 {
		n.Since = v.Workout.Start.time().Add(-time.Hour)
	}
	result.Notifications = []linking.Notification{n}
	return result, nil
}
