// Package whoop connects the WHOOP API v2: sleep with recovery, workouts, cycles as daily
// activity, and the body.
//
//	connector, err := whoop.New(rest.Client{ID: id, Secret: secret}, nil)
//	connectors[whoop.Slug] = connector.Flows()
//
// # What is read
//
//	sleep     sleep; joined with the recovery of the same sleep_id
//	recovery  hrv (RMSSD, ms), blood_oxygen (%), body_temperature (skin at the wrist, °C)
//	cycle     activity (kcal = kJ / 4.184, heart rate)
//	workout   workouts (kcal = kJ / 4.184, metres, six zones in seconds)
//	body      profile (height, cm)
//
// Instants are UTC with an offset field. Durations arrive in milliseconds and are kept in
// seconds. A sleep is known by its id; a score that is pending makes it tentative, and the
// next answer replaces it. A recovery has no time of its own: its samples are at the end of
// its sleep, and at created_at in a stored page, where the sleep is not known. A cycle runs
// from sleep to sleep: its day is the local day of its start plus 12 hours. There are no
// stages in time, no heart rate series, no steps. Strain has no place in the catalogue, and
// the weight has no time.
//
// # Messages
//
// One address for the application; the signature is HMAC-SHA256 with the client secret.
// workout, sleep and recovery are announced; what is deleted is removed. Cycles and the body
// are found by asking.
//
// # How sure this is
//
// Documented: paths, fields, units, limits, revocation, messages. From client code: scope
// offline at a renewal, the wait of X-RateLimit-Reset at a 429, rotation at once. Not tried
// against the service: how far back answers go, the day of a cycle, that a recovery list is
// filtered by a time near its sleep's end (a day more is asked for on both sides).
package whoop

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
const Slug = "whoop"

const base = "https://api.prod.whoop.com"

// Paging and range of lists: at most 25 items a page; start is inclusive, end exclusive.
var (
	pages  = rest.Cursor("nextToken", "next_token")
	size   = url.Values{"limit": {"25"}}
	window = rest.Range{From: "start", To: "end"}
	wide   = rest.Range{From: "start", To: "end", Before: rest.Day, After: rest.Day}
)

var definition = &rest.Definition{
	Provider: healthdata.Provider{
		Slug: Slug, Name: "WHOOP", Group: "wearable", AuthType: "oauth", OAuthVersion: 2, Category: "device", Class: "cloud", UpdateModel: "hybrid",
		Description: "Sleep, recovery and workouts of a strap.",
		Backfill:    healthdata.Backfill{DefaultDays: 90, MaxDays: 365, Configurable: true, Mode: "pull"},
		RateLimits:  healthdata.RateLimits{App: []healthdata.RateLimit{{Requests: 100, Seconds: 60, Burst: 5}, {Requests: 10_000, Seconds: 86_400, Burst: 500}}},
	},
	OAuth: rest.OAuth{
		AuthorizeURL: base + "/oauth/oauth2/auth", TokenURL: base + "/oauth/oauth2/token",
		RefreshParams: map[string]string{"scope": "offline"}, Minimum: []string{"offline", "read:profile"},
		Revocation: rest.Revocation{URL: base + "/developer/v2/user/access", Method: http.MethodDelete, Token: rest.RevokeBearer},
		Account:    rest.AccountAt(base+"/developer/v2/user/profile/basic", "user_id"),
	},
	BaseURL: base + "/developer",
	Collections: []rest.Collection{
		{
			Name: "sleep", Scopes: []string{"read:sleep", "read:recovery"}, Path: "/v2/activity/sleep", Query: size, Range: window, Pages: pages,
			Items: "records", Key: rest.KeyOf("id"), Keep: []string{"end", "timezone_offset"}, Join: []string{"recovery"},
			Messages: []string{"sleep", "recovery"}, Resources: []string{"sleep"}, Read: rest.Each(readSleep),
		},
		{
			Name: "recovery", Scopes: []string{"read:recovery", "read:sleep"}, Path: "/v2/recovery", Query: size, Range: wide, Pages: pages,
			Items: "records", Key: rest.KeyOf("sleep_id"), Keep: []string{"score_state", "score"}, Join: []string{"sleep"},
			Messages: []string{"sleep", "recovery"}, Resources: []string{"hrv", "blood_oxygen", "body_temperature"}, Read: rest.Each(readRecovery),
		},
		{
			Name: "cycle", Scopes: []string{"read:cycles"}, Path: "/v2/cycle", Query: size, Range: wide, Pages: pages, Items: "records",
			Resources: []string{"activity"}, Read: rest.Each(readCycle),
		},
		{
			Name: "workout", Scopes: []string{"read:workout"}, Path: "/v2/activity/workout", Query: size, Range: window, Pages: pages, Items: "records",
			Messages: []string{"workout"}, Resources: []string{"workouts"}, Read: rest.Each(readWorkout),
		},
		{
			Name: "body", Scopes: []string{"read:body_measurement"}, Path: "/v2/user/measurement/body", Missing: []int{http.StatusNotFound},
			Resources: []string{"profile"}, Read: rest.Each(readBody),
		},
	},
	Rates:  rates,
	Wait:   func(h http.Header, _ time.Time) time.Duration { return seconds(h.Get("X-RateLimit-Reset")) },
	Listen: listen,
}

// Record returns the provider's catalogue record. The caller may change it.
func Record() healthdata.Provider { return definition.Record() }

// New returns the connector. See [rest.New].
func New(client rest.Client, opts *rest.Options) (*rest.Connector, error) {
	return rest.New(definition, client, opts)
}

// Read decodes a stored page. kind is the name of the collection: sleep, recovery, cycle, workout or body. See
// [rest.Definition.Read].
func Read(kind string, page []byte) (rest.Data, error) { return definition.Read(kind, page) }

func seconds(s string) time.Duration {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 86_400 {
		return 0
	}
	return time.Duration(n) * time.Second
}

// rates returns the rate limit that is nearest to exhaustion: its remaining requests, and when it is reset. It returns
// nil if the headers are malformed.
func rates(h http.Header, now time.Time) []linking.RateLimit {
	left, err := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	reset := seconds(h.Get("X-RateLimit-Reset"))
	if err != nil || left < 0 || reset == 0 {
		return nil
	}
	return []linking.RateLimit{{Scope: linking.RateApp, Remaining: left, Reset: now.Add(reset).UTC()}}
}

// strap is the source type of all data of the provider, whose only device is a strap.
const strap = healthdata.SourceWatch

// record holds the fields of all records.
type record struct {
	ID     string       `json:"id"`
	User   rest.ID      `json:"user_id"`
	Start  rest.Instant `json:"start"`
	End    rest.Instant `json:"end"`
	Offset string       `json:"timezone_offset"`
	State  string       `json:"score_state"`
}

const (
	scored  = "SCORED"
	pending = "PENDING_SCORE"
)

type sleep struct {
	record
	Nap   bool `json:"nap"`
	Score struct {
		Stages struct {
			Awake *float64 `json:"total_awake_time_milli"`
			Light *float64 `json:"total_light_sleep_time_milli"`
			Deep  *float64 `json:"total_slow_wave_sleep_time_milli"`
			REM   *float64 `json:"total_rem_sleep_time_milli"`
		} `json:"stage_summary"`
		RespiratoryRate *float64 `json:"respiratory_rate"`
		Performance     *float64 `json:"sleep_performance_percentage"`
		Efficiency      *float64 `json:"sleep_efficiency_percentage"`
	} `json:"score"`
}

func readSleep(v *sleep, out *rest.Batch) {
	out.Owner(v.User.String())
	s := &healthdata.Sleep{
		Head: healthdata.Head{ExternalID: v.ID}, BedtimeStart: v.Start.Time, BedtimeStop: v.End.Time, TimezoneOffset: rest.ParseOffset(v.Offset),
		Awake: rest.Seconds(v.Score.Stages.Awake), Light: rest.Seconds(v.Score.Stages.Light),
		Deep: rest.Seconds(v.Score.Stages.Deep), REM: rest.Seconds(v.Score.Stages.REM),
		Efficiency: v.Score.Efficiency, RespiratoryRate: v.Score.RespiratoryRate, Score: rest.Round(v.Score.Performance),
	}
	if v.Nap {
		s.Type = healthdata.SleepNap
	}
	switch v.State {
	case scored:
		s.State = rest.Ptr("confirmed")
	case pending:
		s.State = rest.Ptr("tentative")
	}
	var r recovery
	if json.Unmarshal(out.Joined("recovery", v.ID), &r) == nil && r.State == scored {
		s.RecoveryReadinessScore, s.HRResting = rest.Round(r.Score.Recovery), rest.Round(r.Score.RestingHR)
		s.AverageHRV, s.SkinTemperature = r.Score.HRV, r.Score.SkinTemperature
	}
	out.Summary("sleep", strap, s)
}

type recovery struct {
	User      rest.ID      `json:"user_id"`
	SleepID   string       `json:"sleep_id"`
	CreatedAt rest.Instant `json:"created_at"`
	State     string       `json:"score_state"`
	Score     struct {
		Recovery        *float64 `json:"recovery_score"`
		RestingHR       *float64 `json:"resting_heart_rate"`
		HRV             *float64 `json:"hrv_rmssd_milli"`
		SpO2            *float64 `json:"spo2_percentage"`
		SkinTemperature *float64 `json:"skin_temp_celsius"`
	} `json:"score"`
}

func readRecovery(v *recovery, out *rest.Batch) {
	out.Owner(v.User.String())
	at := record{End: v.CreatedAt}
	if !out.Stored() && json.Unmarshal(out.Joined("sleep", v.SleepID), &at) != nil || v.State != scored {
		return // the sleep is in another request, or the recovery has no score
	}
	s := healthdata.Sample{Timestamp: at.End.Time, TimezoneOffset: rest.ParseOffset(at.Offset)}
	for _, m := range []struct {
		resource, unit string
		value          *float64
		place          *string
	}{
		{"hrv", "rmssd", v.Score.HRV, nil},
		{"blood_oxygen", "%", v.Score.SpO2, nil},
		{"body_temperature", "°C", v.Score.SkinTemperature, rest.Ptr("wrist")},
	} {
		s.Unit, s.Value, s.SensorLocation = m.unit, rest.Number(m.value), m.place
		out.Sample(m.resource, strap, s)
	}
}

// joulesPerCalorie is the number of kilojoules in a kilocalorie.
const joulesPerCalorie = 4.184

type cycle struct {
	record
	ID    rest.ID `json:"id"`
	Score *struct {
		Kilojoule *float64 `json:"kilojoule"`
		AverageHR *float64 `json:"average_heart_rate"`
		MaxHR     *float64 `json:"max_heart_rate"`
	} `json:"score"`
}

func readCycle(v *cycle, out *rest.Batch) {
	out.Owner(v.User.String())
	if v.Score == nil {
		return
	}
	offset := rest.ParseOffset(v.Offset)
	a := &healthdata.Activity{
		CalendarDate: rest.LocalDay(healthlab.At(v.Start.Add(12*time.Hour)), offset), TimezoneOffset: offset,
		CaloriesTotal: rest.Times(v.Score.Kilojoule, 1/joulesPerCalorie),
	}
	if hr := (healthdata.ActivityHeartRate{AvgBPM: v.Score.AverageHR, MaxBPM: v.Score.MaxHR}); hr != (healthdata.ActivityHeartRate{}) {
		a.HeartRate = &hr
	}
	out.Summary("activity", strap, a)
}

type workout struct {
	record
	Sport string `json:"sport_name"`
	Score struct {
		AverageHR *float64 `json:"average_heart_rate"`
		MaxHR     *float64 `json:"max_heart_rate"`
		Kilojoule *float64 `json:"kilojoule"`
		Distance  *float64 `json:"distance_meter"`
		Climb     *float64 `json:"altitude_gain_meter"`
		Zones     *struct {
			Zero  *float64 `json:"zone_zero_milli"`
			One   *float64 `json:"zone_one_milli"`
			Two   *float64 `json:"zone_two_milli"`
			Three *float64 `json:"zone_three_milli"`
			Four  *float64 `json:"zone_four_milli"`
			Five  *float64 `json:"zone_five_milli"`
		} `json:"zone_durations"`
	} `json:"score"`
}

func readWorkout(v *workout, out *rest.Batch) {
	out.Owner(v.User.String())
	w := &healthdata.Workout{
		Head: healthdata.Head{ExternalID: v.ID}, TimeStart: v.Start.Time, TimeEnd: v.End.Time, TimezoneOffset: rest.ParseOffset(v.Offset),
		Sport: healthdata.SportOf(rest.Slug(v.Sport)), AverageHR: rest.Round(v.Score.AverageHR), MaxHR: rest.Round(v.Score.MaxHR),
		Calories: rest.Times(v.Score.Kilojoule, 1/joulesPerCalorie), Distance: v.Score.Distance, TotalElevationGain: v.Score.Climb,
	}
	if z := v.Score.Zones; z != nil {
		for _, ms := range []*float64{z.Zero, z.One, z.Two, z.Three, z.Four, z.Five} {
			in := rest.Seconds(ms)
			if in == nil {
				in = new(int64) // the zone has no duration
			}
			w.HRZones = append(w.HRZones, *in)
		}
	}
	out.Summary("workouts", strap, w)
}

type body struct {
	Height *float64 `json:"height_meter"`
}

func readBody(v *body, out *rest.Batch) {
	if v.Height != nil {
		out.Summary("profile", healthdata.SourceApp, &healthdata.Profile{Height: rest.Round(rest.Times(v.Height, 100))})
	}
}

// reach is the length of the range that is pulled after a message, because a message does not name the time of the
// changed record.
const reach = 7 * rest.Day

// listen reads a message. A message names a recovery by the id of its sleep, so a deleted recovery is not passed on as
// a deletion: its resources are pulled again. If the provider deletes a sleep, it deletes the recovery too.
func listen(l *rest.Listening, m linking.Message) (linking.ListenResult, error) {
	stamp := rest.Header(&m, "X-WHOOP-Signature-Timestamp")
	ms, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || !rest.SignedBase64(rest.Header(&m, "X-WHOOP-Signature"), l.Client.Secret, []byte(stamp), m.Body) ||
		!rest.Fresh(&m, time.UnixMilli(ms)) {
		return linking.ListenResult{}, rest.NotTheirs()
	}
	var v struct {
		User  rest.ID `json:"user_id"`
		ID    string  `json:"id"`
		Type  string  `json:"type"`
		Trace string  `json:"trace_id"`
	}
	if json.Unmarshal(m.Body, &v) != nil {
		return linking.ListenResult{}, rest.NotReadable()
	}
	subject, what, _ := strings.Cut(v.Type, ".")
	resources := l.Announced(subject)
	if resources == nil {
		return linking.ListenResult{}, nil // an unknown message type
	}
	n := linking.Notification{ID: v.Trace, ExternalUserID: v.User.String(), Resources: resources, Since: m.At.Add(-reach)}
	if what == "deleted" && subject != "recovery" {
		n.Resources = nil
		n.Data = []linking.ResourceData{{Resource: resources[0], Items: []linking.PullItem{{
			Source: healthdata.Source{Type: strap}, Deleted: []linking.DeletedRecord{{ID: v.ID}},
		}}}}
	}
	return linking.ListenResult{Notifications: []linking.Notification{n}}, nil
}
