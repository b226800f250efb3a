// Package oura connects the Oura API v2: sleep with its stages and series, daily activity,
// heart rate, workouts, sessions, blood oxygen, VO2 max, the profile, tags and rings.
//
//	connector, err := oura.New(rest.Client{ID: id, Secret: secret}, &rest.Options{VerifyToken: word})
//	connectors[oura.Slug] = connector.Flows()
//
// # What is read
//
//	sleep               sleep (score joined from daily_sleep of the same day), sleep_cycle,
//	                    heartrate and hrv (RMSSD, ms) of the night, body_temperature_delta (°C)
//	daily_readiness     readiness and temperature of a sleep that has none of its own; of a day
//	                    without a long sleep, and in stored pages: body_temperature_delta at noon
//	daily_activity      activity; times in minutes, daily_movement in metres of walking
//	heartrate           heartrate (bpm)
//	workout             workouts (kcal, metres)
//	daily_spo2          blood_oxygen (%) at the end of the day's long sleep
//	vo2_max             vo2_max (mL/kg/min)
//	session             mindfulness_minutes of breathing and meditation
//	session_series      heartrate and hrv of the same sessions, whatever their type
//	personal_info       profile (height, cm)
//	enhanced_tag        note: the comment, else the name, else the code of the tag
//	ring_configuration  device
//
// Instants carry the local offset. An offset of +00:00 is taken as unknown, because several
// collections write UTC so. Days are the person's. A sleep is known by its id, a daily
// document by its day, and later answers replace earlier ones. Sleeps of type rest and
// deleted are removed. The stages are those of 30 seconds, else of 5 minutes. A lowest heart
// rate of 255 means none. Stress, resilience, cardiovascular age and beat intervals have no place
// in the catalogue; of cycle phases, pregnancy and blood glucose, which messages name, no fields
// are documented.
//
// Ranges of days begin a day early and end a day late: a day alone as the end is read as its
// midnight, and the day itself as the start was seen to leave sleep out.
//
// # Messages
//
// One subscription for the application, data type and operation. The handshake repeats
// Options.VerifyToken; the signature is HMAC-SHA256 with the client secret. A deleted sleep
// or workout is removed. Heart rate is found by asking.
//
// # How sure this is
//
// Documented: addresses, fields, limits of a token, messages. From client code: RMSSD, the
// revocation, the ends of ranges, 255. Not tried against the service: the unit of
// x-oura-timestamp (a message is checked for its age only if it is a number of seconds or
// milliseconds), scopes of vo2_max and ring_configuration (none is asked for, and a refusal
// means no data), the longest range of a request.
package oura

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Slug is the slug of the provider.
const Slug = "oura"

const (
	base       = "https://api.ouraring.com"
	collection = "/v2/usercollection/"
)

var (
	pages    = rest.Cursor("next_token", "next_token")
	days     = rest.Range{From: "start_date", To: "end_date", Days: true, Before: rest.Day, After: rest.Day}
	instants = rest.Range{From: "start_datetime", To: "end_datetime"}
	// refused lists the statuses of a collection whose scope was not granted or cannot be requested.
	refused = []int{http.StatusForbidden, http.StatusNotFound}
)

var definition = &rest.Definition{
	Provider: healthdata.Provider{
		Slug: Slug, Name: "Oura", Group: "wearable", AuthType: "oauth", OAuthVersion: 2, Category: "device", Class: "cloud", UpdateModel: "hybrid",
		Description: "Sleep, activity and heart rate of a ring.",
		Backfill:    healthdata.Backfill{DefaultDays: 90, MaxDays: 365, Configurable: true, Mode: "pull"},
		RateLimits:  healthdata.RateLimits{User: []healthdata.RateLimit{{Requests: 5000, Seconds: 300, Burst: 20}}},
	},
	OAuth: rest.OAuth{
		AuthorizeURL: "https://cloud.ouraring.com/oauth/authorize", TokenURL: base + "/oauth/token",
		Revocation: rest.Revocation{URL: base + "/oauth/revoke", Token: rest.RevokeQuery},
		Account:    rest.AccountAt(base+collection+"personal_info", "id"),
	},
	BaseURL: base,
	Collections: []rest.Collection{
		{
			Name: "sleep", Scopes: []string{"daily"}, Path: collection + "sleep", Range: days, Pages: pages, Items: "data",
			Key: longSleepDay, Keep: []string{"bedtime_end"}, Join: []string{"daily_sleep", "daily_readiness"},
			JoinFor: []string{"sleep", "body_temperature_delta"}, Messages: []string{"sleep", "daily_sleep", "daily_readiness"},
			Resources: []string{"sleep", "sleep_cycle", "heartrate", "hrv", "body_temperature_delta"}, Read: rest.Each(readSleep),
		},
		{
			Name: "daily_sleep", Path: collection + "daily_sleep", Range: days, Pages: pages, Items: "data", Key: rest.KeyOf("day"),
			Keep: []string{"score"}, Read: func(json.RawMessage, *rest.Batch) {},
		},
		{
			Name: "daily_readiness", Scopes: []string{"daily"}, Path: collection + "daily_readiness", Range: days, Pages: pages, Items: "data",
			Key: rest.KeyOf("day"), Keep: []string{"score", "temperature_deviation"}, Join: []string{"sleep"}, Messages: []string{"daily_readiness"},
			Resources: []string{"body_temperature_delta"}, Read: rest.Each(readReadiness),
		},
		{
			Name: "daily_activity", Scopes: []string{"daily"}, Path: collection + "daily_activity", Range: days, Pages: pages, Items: "data",
			Messages: []string{"daily_activity"}, Resources: []string{"activity"}, Read: rest.Each(readActivity),
		},
		{
			Name: "heartrate", Scopes: []string{"heartrate"}, Path: collection + "heartrate", Range: instants, Pages: pages, Items: "data",
			Resources: []string{"heartrate"}, Read: rest.Each(readHeartrate),
		},
		{
			Name: "workout", Scopes: []string{"workout"}, Path: collection + "workout", Range: days, Pages: pages, Items: "data",
			Messages: []string{"workout"}, Resources: []string{"workouts"}, Read: rest.Each(readWorkout),
		},
		{
			Name: "daily_spo2", Scopes: []string{"spo2", "daily"}, Path: collection + "daily_spo2", Range: days, Pages: pages, Items: "data",
			Join: []string{"sleep"}, Messages: []string{"daily_spo2", "sleep"}, Resources: []string{"blood_oxygen"}, Read: rest.Each(readSpO2),
		},
		{
			Name: "vo2_max", Path: collection + "vO2_max", Range: days, Pages: pages, Items: "data", Missing: refused,
			Messages: []string{"vo2_max"}, Resources: []string{"vo2_max"}, Read: rest.Each(readVO2Max),
		},
		{
			Name: "session", Scopes: []string{"session"}, Path: collection + "session", Range: days, Pages: pages, Items: "data",
			Messages: []string{"session"}, Resources: []string{"mindfulness_minutes"}, Stored: []string{"heartrate", "hrv"}, Read: rest.Each(readSession),
		},
		{
			Name: "session_series", Scopes: []string{"session"}, Path: collection + "session", Range: days, Pages: pages, Items: "data", Missing: refused,
			Messages: []string{"session"}, Resources: []string{"heartrate", "hrv"}, Read: rest.Each(readSession),
		},
		{Name: "personal_info", Scopes: []string{"personal"}, Path: collection + "personal_info", Resources: []string{"profile"}, Read: rest.Each(readProfile)},
		{
			Name: "enhanced_tag", Scopes: []string{"tag"}, Path: collection + "enhanced_tag", Range: days, Pages: pages, Items: "data",
			Messages: []string{"enhanced_tag"}, Resources: []string{"note"}, Read: rest.Each(readTag),
		},
		{
			Name: "ring_configuration", Path: collection + "ring_configuration", Pages: pages, Items: "data", Missing: refused,
			Messages: []string{"ring_configuration"}, Resources: []string{"device"}, Read: rest.Each(readRing),
		},
	},
	Wait:   wait,
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

// wait returns the time from now until X-RateLimit-Reset, which is in Unix seconds; 0 if the header is absent,
// malformed or past, or an hour or more away.
func wait(h http.Header, now time.Time) time.Duration {
	at, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64)
	if d := time.Unix(at, 0).Sub(now); err == nil && d > 0 && d < time.Hour {
		return d
	}
	return 0
}

const ring = healthdata.SourceRing

// series is an array of values that starts at an instant, with a fixed interval in seconds.
type series struct {
	Interval  float64      `json:"interval"`
	Timestamp rest.Instant `json:"timestamp"`
	Items     []*float64   `json:"items"`
}

// samples adds the values of a series to out. A nil series has no values.
func (s *series) samples(resource, unit string, out *rest.Batch) {
	if s == nil || s.Interval < 1 || s.Timestamp.IsZero() {
		return
	}
	rest.Series(s.Timestamp.Time, time.Duration(s.Interval*float64(time.Second)), s.Items, func(at healthlab.Time, v float64) {
		out.Sample(resource, ring, healthdata.Sample{Timestamp: at, TimezoneOffset: s.Timestamp.Offset, Unit: unit, Value: healthdata.Number(v)})
	})
}

type sleep struct {
	ID         string         `json:"id"`
	Day        healthlab.Date `json:"day"`
	Start      rest.Instant   `json:"bedtime_start"`
	End        rest.Instant   `json:"bedtime_end"`
	Type       string         `json:"type"`
	Awake      *float64       `json:"awake_time"`
	Light      *float64       `json:"light_sleep_duration"`
	REM        *float64       `json:"rem_sleep_duration"`
	Deep       *float64       `json:"deep_sleep_duration"`
	Latency    *float64       `json:"latency"`
	Efficiency *float64       `json:"efficiency"`
	AverageHR  *float64       `json:"average_heart_rate"`
	LowestHR   *float64       `json:"lowest_heart_rate"`
	HRV        *float64       `json:"average_hrv"`
	Breath     *float64       `json:"average_breath"`
	HeartRate  *series        `json:"heart_rate"`
	HRVs       *series        `json:"hrv"`
	Phases5    string         `json:"sleep_phase_5_min"`
	Phases30   string         `json:"sleep_phase_30_sec"`
	Readiness  *readiness     `json:"readiness"`
}

// readiness is the readiness of a sleep, or of the day on which the sleep ended.
type readiness struct {
	Day   healthlab.Date `json:"day"`
	Score *float64       `json:"score"`
	Delta *float64       `json:"temperature_deviation"`
}

// sleepTypes maps the provider's types of sleep to ours. A sleep of another type, such as rest and deleted, is deleted.
var sleepTypes = map[string]healthdata.SleepType{
	"long_sleep": healthdata.SleepLong, "sleep": healthdata.SleepNap, "late_nap": healthdata.SleepNap, "": "",
}

// phases maps the digits of a hypnogram to sleep stages.
var phases = map[byte]healthdata.SleepStage{
	'1': healthdata.SleepStageDeep, '2': healthdata.SleepStageLight, '3': healthdata.SleepStageREM, '4': healthdata.SleepStageAwake,
}

// none is the lowest heart rate of a sleep in which none was measured.
const none = 255

// longSleepDay returns the day of a long sleep, as YYYY-MM-DD; empty for other sleeps.
func longSleepDay(item json.RawMessage) string {
	var v sleep
	if json.Unmarshal(item, &v) != nil || v.Type != "long_sleep" {
		return ""
	}
	return v.Day.String()
}

func readSleep(v *sleep, out *rest.Batch) {
	kind, known := sleepTypes[v.Type]
	if !known {
		out.Delete("sleep", ring, linking.DeletedRecord{ID: v.ID})
		return
	}
	s := &healthdata.Sleep{
		Head: healthdata.Head{ExternalID: v.ID}, CalendarDate: v.Day, BedtimeStart: v.Start.Time, BedtimeStop: v.End.Time,
		SessionOffsets: rest.SessionOffsets(v.Start, v.End),
		TimezoneOffset: v.End.Offset, Type: kind, Awake: rest.Round(v.Awake), Light: rest.Round(v.Light), REM: rest.Round(v.REM), Deep: rest.Round(v.Deep), Latency: rest.Round(v.Latency),
		Efficiency: v.Efficiency, HRAverage: rest.Round(v.AverageHR), AverageHRV: v.HRV, RespiratoryRate: v.Breath,
	}
	if v.LowestHR != nil && *v.LowestHR != none {
		s.HRLowest = rest.Round(v.LowestHR)
	}
	r := v.Readiness
	if r == nil {
		r = &readiness{}
		if v.Type == "long_sleep" {
			_ = json.Unmarshal(out.Joined("daily_readiness", v.Day.String()), r) // an absent document leaves r empty
		}
	}
	s.RecoveryReadinessScore, s.TemperatureDelta = rest.Round(r.Score), r.Delta
	if v.Type == "long_sleep" {
		var daily struct {
			Score *float64 `json:"score"`
		}
		if json.Unmarshal(out.Joined("daily_sleep", v.Day.String()), &daily) == nil {
			s.Score = rest.Round(daily.Score)
		}
		out.Sample("body_temperature_delta", ring, healthdata.Sample{
			Timestamp: v.Start.Time, Start: &v.Start.Time, End: &v.End.Time, TimezoneOffset: v.Start.Offset, Unit: "°C",
			Value: rest.Number(r.Delta), SensorLocation: rest.Ptr("finger"),
		})
	}
	out.Summary("sleep", ring, s)
	stages := rest.StagesOf(v.Phases30, 30*time.Second, phases)
	if v.Phases30 == "" {
		stages = rest.StagesOf(v.Phases5, 5*time.Minute, phases)
	}
	out.Cycle(ring, v.ID, v.Start.Time, v.End.Time, &stages)
	v.HeartRate.samples("heartrate", "bpm", out)
	v.HRVs.samples("hrv", "rmssd", out)
}

// readReadiness reads the temperature deviation of a day as a sample at noon. If the day has a long sleep, the
// deviation belongs to that sleep, and readReadiness deletes the sample at noon. On a stored page the sleeps are
// unknown.
func readReadiness(v *readiness, out *rest.Batch) {
	if out.Joined("sleep", v.Day.String()) != nil {
		out.Delete("body_temperature_delta", ring, linking.DeletedRecord{At: out.Noon(v.Day)})
		return
	}
	out.Sample("body_temperature_delta", ring, healthdata.Sample{
		Timestamp: out.Noon(v.Day), Unit: "°C", Value: rest.Number(v.Delta), SensorLocation: rest.Ptr("finger"),
	})
}

func readActivity(v *struct {
	Day       healthlab.Date `json:"day"`
	Timestamp rest.Instant   `json:"timestamp"`
	Active    *float64       `json:"active_calories"`
	Total     *float64       `json:"total_calories"`
	Steps     *float64       `json:"steps"`
	Walking   *float64       `json:"equivalent_walking_distance"`
	Low       *float64       `json:"low_activity_time"`
	Medium    *float64       `json:"medium_activity_time"`
	High      *float64       `json:"high_activity_time"`
}, out *rest.Batch,
) {
	out.Summary("activity", ring, &healthdata.Activity{
		CalendarDate: v.Day, TimezoneOffset: v.Timestamp.Offset, CaloriesTotal: v.Total, CaloriesActive: v.Active, Steps: rest.Round(v.Steps),
		DailyMovement: v.Walking, Low: rest.Times(v.Low, 1.0/60), Medium: rest.Times(v.Medium, 1.0/60), High: rest.Times(v.High, 1.0/60),
	})
}

func readHeartrate(v *struct {
	Timestamp rest.Instant `json:"timestamp"`
	BPM       *float64     `json:"bpm"`
}, out *rest.Batch,
) {
	out.Sample("heartrate", ring, healthdata.Sample{Timestamp: v.Timestamp.Time, TimezoneOffset: v.Timestamp.Offset, Unit: "bpm", Value: rest.Number(v.BPM)})
}

func readWorkout(v *struct {
	ID       string       `json:"id"`
	Activity string       `json:"activity"`
	Start    rest.Instant `json:"start_datetime"`
	End      rest.Instant `json:"end_datetime"`
	KCal     *float64     `json:"calories"`
	Distance *float64     `json:"distance"`
	Label    *string      `json:"label"`
	Source   string       `json:"source"`
}, out *rest.Batch,
) {
	source := ring
	if v.Source == "manual" {
		source = healthdata.SourceApp
	}
	out.Summary("workouts", source, &healthdata.Workout{
		Head: healthdata.Head{ExternalID: v.ID}, Title: v.Label, TimeStart: v.Start.Time, TimeEnd: v.End.Time, TimezoneOffset: v.Start.Offset,
		SessionOffsets: rest.SessionOffsets(v.Start, v.End),
		Sport:          healthdata.SportOf(rest.Slug(v.Activity)), Calories: v.KCal, Distance: v.Distance,
	})
}

func readSpO2(v *struct {
	Day healthlab.Date `json:"day"`
	Of  *struct {
		Average *float64 `json:"average"`
	} `json:"spo2_percentage"`
}, out *rest.Batch,
) {
	at := sleep{End: rest.Instant{Time: out.Noon(v.Day)}} // noon, if the sleep is unknown, as on a stored page
	if v.Of == nil || !out.Stored() && json.Unmarshal(out.Joined("sleep", v.Day.String()), &at) != nil {
		return
	}
	out.Sample("blood_oxygen", ring, healthdata.Sample{Timestamp: at.End.Time, TimezoneOffset: at.End.Offset, Unit: "%", Value: rest.Number(v.Of.Average)})
}

func readVO2Max(v *struct {
	Day       healthlab.Date `json:"day"`
	Timestamp rest.Instant   `json:"timestamp"`
	VO2Max    *float64       `json:"vo2_max"`
}, out *rest.Batch,
) {
	if v.Timestamp.IsZero() && !v.Day.IsZero() {
		v.Timestamp.Time = out.Noon(v.Day)
	}
	out.Sample("vo2_max", ring, healthdata.Sample{Timestamp: v.Timestamp.Time, TimezoneOffset: v.Timestamp.Offset, Unit: "mL/kg/min", Value: rest.Number(v.VO2Max)})
}

func readSession(v *struct {
	Start     rest.Instant `json:"start_datetime"`
	End       rest.Instant `json:"end_datetime"`
	Type      string       `json:"type"`
	HeartRate *series      `json:"heart_rate"`
	HRVs      *series      `json:"heart_rate_variability"`
}, out *rest.Batch,
) {
	v.HeartRate.samples("heartrate", "bpm", out)
	v.HRVs.samples("hrv", "rmssd", out)
	if v.Type != "breathing" && v.Type != "meditation" {
		return
	}
	out.Sample("mindfulness_minutes", ring, healthdata.Sample{
		Timestamp: v.Start.Time, Start: &v.Start.Time, End: &v.End.Time, TimezoneOffset: v.Start.Offset, Unit: "min",
		Value: healthdata.Number(v.End.Sub(v.Start.Time.Time).Minutes()),
	})
}

func readProfile(v *struct {
	Height *float64 `json:"height"`
	Sex    *string  `json:"biological_sex"`
}, out *rest.Batch,
) {
	out.Summary("profile", healthdata.SourceApp, &healthdata.Profile{Height: rest.Round(rest.Times(v.Height, 100)), Sex: v.Sex})
}

func readTag(v *struct {
	Start   rest.Instant  `json:"start_time"`
	End     *rest.Instant `json:"end_time"`
	Comment string        `json:"comment"`
	Custom  string        `json:"custom_name"`
	Code    string        `json:"tag_type_code"`
}, out *rest.Batch,
) {
	text := cmp.Or(v.Comment, v.Custom, v.Code)
	if text == "" {
		return
	}
	s := healthdata.Sample{
		Timestamp: v.Start.Time, Start: &v.Start.Time, End: &v.Start.Time, TimezoneOffset: v.Start.Offset, Unit: "text",
		Value: healthdata.Text(text), Tags: []string{"unspecified"},
	}
	if v.End != nil && v.End.After(v.Start.Time.Time) {
		s.End = &v.End.Time
	}
	out.Sample("note", healthdata.SourceApp, s)
}

func readRing(v *struct {
	ID       string  `json:"id"`
	Hardware *string `json:"hardware_type"`
	Firmware *string `json:"firmware_version"`
}, out *rest.Batch,
) {
	out.Listed(ring, healthdata.DeviceInfo{ID: &v.ID, Manufacturer: rest.Ptr("Oura"), Model: v.Hardware, Version: v.Firmware})
}

// reach is the length of the range that is pulled after a message, because a message does not name the day of the
// changed document.
const reach = 7 * rest.Day

// listen responds to the handshake of a subscription, or reads a message.
func listen(l *rest.Listening, m linking.Message) (linking.ListenResult, error) {
	if m.Method == http.MethodGet {
		if !rest.Same(rest.Query(&m, "verification_token"), l.VerifyToken) {
			return linking.ListenResult{}, rest.NotTheirs()
		}
		return rest.JSONReply(map[string]string{"challenge": rest.Query(&m, "challenge")}), nil
	}
	stamp := rest.Header(&m, "X-Oura-Timestamp")
	if !rest.SignedHex(rest.Header(&m, "X-Oura-Signature"), l.Client.Secret, []byte(stamp), m.Body) || !isFresh(&m, stamp) {
		return linking.ListenResult{}, rest.NotTheirs()
	}
	var v struct {
		Event string `json:"event_type"`
		Type  string `json:"data_type"`
		ID    string `json:"object_id"`
		Time  string `json:"event_time"`
		User  string `json:"user_id"`
	}
	if json.Unmarshal(m.Body, &v) != nil {
		return linking.ListenResult{}, rest.NotReadable()
	}
	resources := l.Announced(v.Type)
	if resources == nil {
		return linking.ListenResult{}, nil // a data type that is not read
	}
	n := linking.Notification{ID: v.ID + " " + v.Event + " " + v.Time, ExternalUserID: v.User, Resources: resources, Since: m.At.Add(-reach)}
	if v.Event == "delete" && (v.Type == "sleep" || v.Type == "workout") {
		n.Resources = nil
		data := linking.ResourceData{Resource: resources[0]}
		for _, source := range []healthdata.SourceType{ring, healthdata.SourceApp} { // the message does not say which source
			data.Items = append(data.Items, linking.PullItem{Source: healthdata.Source{Type: source}, Deleted: []linking.DeletedRecord{{ID: v.ID}}})
		}
		n.Data = []linking.ResourceData{data}
	}
	return linking.ListenResult{Notifications: []linking.Notification{n}}, nil
}

func isFresh(m *linking.Message, stamp string) bool {
	n, err := strconv.ParseInt(stamp, 10, 64)
	return err != nil || rest.Fresh(m, time.Unix(n, 0)) || rest.Fresh(m, time.UnixMilli(n))
}
