// Package polar connects Polar AccessLink v3: workouts with their streams and routes, sleep
// with its stages, nightly recharge, daily activity, heart rate, temperatures, blood oxygen,
// electrocardiograms and the body.
//
//	connector, err := polar.New(rest.Client{ID: id, Secret: secret}, &rest.Options{VerifyToken: key})
//	connectors[polar.Slug] = connector.Flows()
//
// # Version 3
//
// AccessLink has two versions. Version 3 is described by an official OpenAPI document, has
// messages and daily sums. The fields of version 4, the Dynamic API, are known from client code
// only; its daily activity is one list for each device, which nothing adds up, and no message
// is documented. Version 4 would add refresh tokens, and perhaps the history before the
// sign-in.
//
// A person is registered after the sign-in (POST /v3/users): before it every request is
// refused. The member-id is Polar's own id of the person. Tokens work for years and are not
// renewed: a connection ends with the first answer of 401. The service has only what is
// uploaded after the registration.
//
// # What is read
//
//	exercises         workouts (kcal, m, bpm), zones in seconds; uploads of the last 30 days
//	exercise          workout_stream: each of the list by itself (bpm, m, m/s, W, °C, degrees)
//	sleep             sleep, sleep_cycle; the last 28 days; joined with nightly_recharge and
//	                  skintemperature of the same date
//	nightly_recharge  hrv (RMSSD, ms) and respiratory_rate of the first hours of a night
//	activities        activity (kcal, m), steps
//	heart_rate        heartrate (bpm), those of nights too
//	bodytemperature   body_temperature (°C)
//	skintemperature   body_temperature_delta (°C) of a night; the last 28 days
//	spo2              blood_oxygen (%) of tests that passed
//	ecg               electrocardiogram, electrocardiogram_voltage (mV, lead_1)
//	physical_info     profile (height, cm), weight (kg) that was measured, vo2_max
//
// The start of a workout is a local clock with an offset in minutes, its end the start plus the
// duration. Samples of a workout are texts of numbers, one every recording rate; those of other
// rates stand at their own seconds. Cadence of runs counts one foot and is doubled. Times of
// beats, air pressure and indices of power have no place in the catalogue. A night is known by
// its date. Its stages and series are keyed by local clock times, which pass midnight. Its heart
// rates give the lowest of the night; those of heart_rate have them, too, and a stored page of
// sleep alone has them as heartrate. In a stored page the night is not known: clock times of
// nightly_recharge from 15:00 on are of the day before, and skintemperature stands at noon UTC.
// A temperature that is not of the core has the location skin. Scores of nightly recharge, cardio load
// and continuity have no place in the catalogue.
//
// Steps and heart rate are floating: clock times without a zone. Equal neighbours of steps are
// left out by the service: each count is repeated up to the next. Counts of 0 are left out.
// Weight and VO2 max stand at the instant at which the physical information changed.
//
// # Messages
//
// One webhook for the client, signed with HMAC-SHA256. The key is told once, when the webhook
// is made, and is Options.VerifyToken, or the detail webhook_key of a team's own client. The
// ping that tests the address is not signed and is answered. There is no message for nightly
// recharge, temperatures, blood oxygen and electrocardiograms: they are looked for with the
// message of a sleep. Deleted exercises are not announced and stay.
//
// # How sure this is
//
// Documented: addresses, fields, units, ranges of 28 days, the registration, messages and their
// signature. From client code: no refresh token, x_user_id, that the ping is not signed, the
// list of heart rates of a range. Not tried against the service: the headers of the limit and
// that a reset is in seconds, the numbers of sample types, that activity is in local time (the
// document says UTC), that test_time is the start of an electrocardiogram, whether an upload is
// late when the device was.
package polar

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Slug is the provider's.
const Slug = "polar"

const (
	base  = "https://www.polaraccesslink.com"
	users = "/v3/users"
)

var (
	scopes  = []string{"accesslink.read_all"}
	missing = []int{http.StatusNotFound}
	// days are whole days, both inclusive, at most 28 a request.
	days = rest.Range{From: "from", To: "to", Days: true, Max: 27 * rest.Day}
	// utcDays are days of UTC, which begin and end beside the person's.
	utcDays = rest.Range{From: "from", To: "to", Days: true, Before: rest.Day, After: rest.Day, Max: 27 * rest.Day}
)

var definition = &rest.Definition{
	Provider: healthdata.Provider{
		Slug: Slug, Name: "Polar", Group: "wearable", AuthType: "oauth", OAuthVersion: 2, SourceType: "device", Class: "cloud", UpdateModel: "hybrid",
		Description: "Workouts, sleep, activity and heart rate of watches and bands.",
		Resources: []healthdata.ProviderResource{
			{Resource: "heartrate", Affinity: healthdata.AffinityFloating}, {Resource: "steps", Affinity: healthdata.AffinityFloating},
		},
		Backfill: healthdata.Backfill{
			DefaultDays: 30, MaxDays: 364, Configurable: true, Mode: "pull", Days: map[string]int{
				"workouts": 30, "workout_stream": 30, "sleep": 28, "sleep_cycle": 28, "hrv": 28, "respiratory_rate": 28, "body_temperature_delta": 28,
			},
		},
		RateLimits: healthdata.RateLimits{App: []healthdata.RateLimit{{Requests: 500, Seconds: 900, Burst: 20}, {Requests: 5000, Seconds: 86_400, Burst: 200}}},
	},
	OAuth: rest.OAuth{
		AuthorizeURL: "https://flow.polar.com/oauth2/authorization", TokenURL: "https://polarremote.com/v2/oauth2/token",
		ClientAuth: rest.ClientBasic, Minimum: scopes, Account: register,
		Revocation: rest.Revocation{URL: base + users + "/{account}", Method: http.MethodDelete, Token: rest.RevokeBearer},
	},
	BaseURL: base,
	Kinds: []rest.Kind{
		{
			Name: "exercises", Scopes: scopes, Path: "/v3/exercises", Query: url.Values{"zones": {"true"}}, Time: uploaded,
			Key: rest.KeyOf("id"), Keep: []string{"id"}, Messages: []string{"EXERCISE"}, Resources: []string{"workouts"}, Read: rest.Each(readExercise),
		},
		{
			Name: "exercise", Scopes: scopes, For: "exercises", Path: "/v3/exercises/{id}", Missing: missing,
			Query:    url.Values{"samples": {"true"}, "route": {"true"}},
			Messages: []string{"EXERCISE"}, Resources: []string{"workout_stream"}, Read: rest.Each(readStream),
		},
		{
			Name: "sleep", Scopes: scopes, Path: users + "/sleep", Items: "nights", Key: rest.KeyOf("date"),
			Keep: []string{"sleep_start_time", "sleep_end_time"}, Join: []string{"nightly_recharge", "skintemperature"}, JoinFor: []string{"sleep"},
			Messages: []string{"SLEEP"}, Resources: []string{"sleep", "sleep_cycle"}, Read: rest.Each(readSleep),
		},
		{
			Name: "nightly_recharge", Scopes: scopes, Path: users + "/nightly-recharge", Items: "recharges", Key: rest.KeyOf("date"),
			Keep: []string{"heart_rate_avg", "heart_rate_variability_avg", "breathing_rate_avg"}, Join: []string{"sleep"},
			Messages: []string{"SLEEP"}, Resources: []string{"hrv", "respiratory_rate"}, Read: rest.Each(readRecharge),
		},
		{
			Name: "activities", Scopes: scopes, Path: users + "/activities", Query: url.Values{"steps": {"true"}}, Range: days, Missing: missing,
			Messages: []string{"ACTIVITY_SUMMARY"}, Resources: []string{"activity", "steps"}, Read: rest.Each(readActivity),
		},
		{
			Name: "heart_rate", Scopes: scopes, Path: users + "/continuous-heart-rate", Range: days, Missing: missing,
			Messages: []string{"CONTINUOUS_HEART_RATE"}, Resources: []string{"heartrate"}, Read: rest.Each(readHeartRate),
		},
		{
			Name: "bodytemperature", Scopes: scopes, Path: users + "/biosensing/bodytemperature", Range: utcDays, Missing: missing,
			Messages: []string{"SLEEP"}, Resources: []string{"body_temperature"}, Read: rest.Each(readTemperature),
		},
		{
			Name: "skintemperature", Scopes: scopes, Path: users + "/biosensing/skintemperature", Key: rest.KeyOf("sleep_date"), Missing: missing,
			Join: []string{"sleep"}, Messages: []string{"SLEEP"}, Resources: []string{"body_temperature_delta"}, Read: rest.Each(readSkin),
		},
		{
			Name: "spo2", Scopes: scopes, Path: users + "/biosensing/spo2", Range: utcDays, Missing: missing,
			Messages: []string{"SLEEP"}, Resources: []string{"blood_oxygen"}, Read: rest.Each(readSpO2),
		},
		{
			Name: "ecg", Scopes: scopes, Path: users + "/biosensing/ecg", Range: utcDays, Missing: missing,
			Messages: []string{"SLEEP"}, Resources: []string{"electrocardiogram", "electrocardiogram_voltage"}, Read: rest.Each(readECG),
		},
		{
			Name: "physical_info", Scopes: scopes, Path: users + "/physical-info", Missing: missing,
			Messages: []string{"PHYSICAL_INFORMATION"}, Resources: []string{"profile", "weight", "vo2_max"}, Read: rest.Each(readBody),
		},
	},
	Rates: rates, Listen: listen, MessageKey: "webhook_key",
	Wait: func(h http.Header, now time.Time) time.Duration {
		if r := rates(h, now); len(r) > 0 {
			return r[0].Reset.Sub(now)
		}
		return 0
	},
}

// Record returns the provider's record for the catalogue. It is the caller's to change.
func Record() healthdata.Provider { return definition.Record() }

// New returns the connector. See [rest.New].
func New(client rest.Client, opts *rest.Options) (*rest.Connector, error) {
	return rest.New(definition, client, opts)
}

// Read decodes a stored page by the name of its kind. See [rest.Definition.Read].
func Read(kind string, page []byte) (rest.Data, error) { return definition.Read(kind, page) }

const watch = healthdata.SourceWatch

// uploaded is when an exercise was uploaded.
func uploaded(item json.RawMessage) time.Time {
	var v struct {
		At clock `json:"upload_time"`
	}
	_ = json.Unmarshal(item, &v) // one without is in every range
	return v.At.Time.Time
}

type exercise struct {
	ID       string   `json:"id"`
	Device   string   `json:"device"`
	DeviceID string   `json:"device_id"`
	Start    clock    `json:"start_time"`
	Minutes  *float64 `json:"start_time_utc_offset"`
	Duration string   `json:"duration"`
	KCal     *float64 `json:"calories"`
	Distance *float64 `json:"distance"`
	HR       struct {
		Average *float64 `json:"average"`
		Maximum *float64 `json:"maximum"`
	} `json:"heart_rate"`
	Sport    string `json:"sport"`
	Detailed string `json:"detailed_sport_info"`
	Zones    []zone `json:"heart_rate_zones"`
	Samples  []struct {
		Rate *float64 `json:"recording-rate"`
		Type rest.ID  `json:"sample-type"`
		Data string   `json:"data"`
	} `json:"samples"`
	Route []struct {
		Latitude  *float64 `json:"latitude"`
		Longitude *float64 `json:"longitude"`
		Time      string   `json:"time"`
	} `json:"route"`
}

// zone is a range of heart rates, and how long the person was in it.
type zone struct {
	Index int    `json:"index"`
	In    string `json:"in-zone"`
}

// workout returns the workout; nil if it has no duration.
func (v *exercise) workout(out *rest.Batch) *healthdata.Workout {
	length := rest.Duration(v.Duration)
	if length == nil || v.Start.IsZero() {
		out.Problem("missing", "an exercise needs a start_time and a duration in ISO 8601", "duration")
		return nil
	}
	start, offset := v.Start.Time.Time, seconds(v.Minutes)
	if offset != nil {
		start = start.Add(-time.Duration(*offset) * time.Second)
	}
	w := &healthdata.Workout{
		Head: healthdata.Head{ExternalID: v.ID}, TimeStart: healthlab.At(start), TimeEnd: healthlab.At(start.Add(*length)), TimezoneOffset: offset,
		Sport: healthdata.SportOf(rest.Slug(cmp.Or(v.Detailed, v.Sport))), Calories: v.KCal, Distance: v.Distance,
		AverageHR: rest.Round(v.HR.Average), MaxHR: rest.Round(v.HR.Maximum),
	}
	slices.SortFunc(v.Zones, func(a, b zone) int { return cmp.Compare(a.Index, b.Index) })
	for _, z := range v.Zones {
		in := int64(0)
		if d := rest.Duration(z.In); d != nil {
			in = int64(d.Round(time.Second) / time.Second)
		}
		w.HRZones = append(w.HRZones, in)
	}
	return w
}

func readExercise(v *exercise, out *rest.Batch) {
	w := v.workout(out)
	if w == nil {
		return
	}
	if v.Device != "" || v.DeviceID != "" {
		d := &healthdata.DeviceInfo{Manufacturer: rest.Ptr("Polar")}
		if v.Device != "" {
			d.Model = &v.Device
		}
		if v.DeviceID != "" {
			d.ID = &v.DeviceID
		}
		out.Device(d)
	}
	out.Summary("workouts", watch, w)
}

// samples are the types of samples that are read: their columns, and what turns them into the
// units of a stream.
var samples = map[rest.ID]struct {
	column rest.Column
	factor float64
}{
	"0": {rest.ColumnHeartrate, 1}, "1": {rest.ColumnSpeed, 1 / 3.6}, "2": {rest.ColumnCadence, 1}, "3": {rest.ColumnAltitude, 1},
	"4": {rest.ColumnPower, 1}, "8": {rest.ColumnCadence, 2}, "9": {rest.ColumnTemperature, 1}, "10": {rest.ColumnDistance, 1},
}

func readStream(v *exercise, out *rest.Batch) {
	w := v.workout(out)
	if w == nil {
		return
	}
	var track rest.Track
	second := func(at float64) int64 { return w.TimeStart.Unix() + int64(math.Round(at)) }
	for _, s := range v.Samples {
		of, known := samples[s.Type]
		if !known || s.Rate == nil || *s.Rate <= 0 {
			continue // beats have no rate
		}
		for i, text := range strings.Split(s.Data, ",") {
			var value *float64
			if n, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil && !math.IsNaN(n) {
				value = rest.Ptr(n * of.factor)
			}
			track.Put(of.column, second(float64(i)**s.Rate), value)
		}
	}
	for _, p := range v.Route {
		if at := rest.Duration(p.Time); at != nil {
			track.Put(rest.ColumnLat, second(at.Seconds()), p.Latitude)
			track.Put(rest.ColumnLng, second(at.Seconds()), p.Longitude)
		}
	}
	out.Stream(watch, w, track.Stream())
}

// stages are the numbers of a hypnogram.
var stages = map[float64]healthdata.SleepStage{
	0: healthdata.SleepStageAwake, 1: healthdata.SleepStageREM, 2: healthdata.SleepStageLight, 3: healthdata.SleepStageLight, 4: healthdata.SleepStageDeep,
}

func readSleep(v *struct {
	span
	Date      healthlab.Date `json:"date"`
	Awake     float64        `json:"total_interruption_duration"`
	Light     float64        `json:"light_sleep"`
	REM       float64        `json:"rem_sleep"`
	Deep      float64        `json:"deep_sleep"`
	Score     *float64       `json:"sleep_score"`
	Hypnogram clocks         `json:"hypnogram"`
	HR        clocks         `json:"heart_rate_samples"`
}, out *rest.Batch,
) {
	s := &healthdata.Sleep{
		Head: healthdata.Head{ExternalID: v.Date.String()}, CalendarDate: v.Date, BedtimeStart: v.Start.Time, BedtimeStop: v.End.Time,
		TimezoneOffset: v.End.Offset, Awake: int64(v.Awake), Light: int64(v.Light), REM: int64(v.REM), Deep: int64(v.Deep), Score: rest.Round(v.Score),
	}
	var r recharge
	if json.Unmarshal(out.Joined("nightly_recharge", v.Date.String()), &r) == nil {
		s.HRAverage, s.AverageHRV, s.RespiratoryRate = rest.Round(r.HR), r.HRV, r.Breath
	}
	var t skin
	if json.Unmarshal(out.Joined("skintemperature", v.Date.String()), &t) == nil {
		s.SkinTemperature, s.TemperatureDelta = t.Temperature, t.Delta
	}
	for _, m := range v.HR.of(v.Start) {
		if bpm := rest.Round(rest.Positive(&m.value)); bpm != nil && (s.HRLowest == nil || *bpm < *s.HRLowest) {
			s.HRLowest = bpm
		}
		if out.Stored() {
			out.Sample("heartrate", watch, healthdata.Sample{Timestamp: m.at, TimezoneOffset: v.Start.Offset, Unit: "bpm", Value: healthdata.Number(m.value)})
		}
	}
	out.Summary("sleep", watch, s)
	length := int64(v.End.Sub(v.Start.Time.Time) / time.Second)
	at := func(m moment) int64 { return min(max(int64(m.at.Sub(v.Start.Time.Time)/time.Second), 0), length) }
	var found rest.Stages
	list := v.Hypnogram.of(v.Start)
	for i, m := range list {
		end := length
		if i+1 < len(list) {
			end = at(list[i+1])
		}
		stage, known := stages[m.value]
		if !known {
			stage = healthdata.SleepStageMissing
		}
		if at(m) < end {
			found.Add(at(m), end, stage)
		}
	}
	out.Cycle(watch, v.Date.String(), v.Start.Time, v.End.Time, &found)
}

type recharge struct {
	Date    healthlab.Date `json:"date"`
	HR      *float64       `json:"heart_rate_avg"`
	HRV     *float64       `json:"heart_rate_variability_avg"`
	Breath  *float64       `json:"breathing_rate_avg"`
	HRVs    clocks         `json:"hrv_samples"`
	Breaths clocks         `json:"breathing_samples"`
}

// night returns when a night began; ok is false if the person has no sleep of its date. In a
// stored page, the clock is without a zone and the night begins at 15:00 of the day before.
func night(date healthlab.Date, out *rest.Batch) (of span, ok bool) {
	if out.Stored() {
		of.Start.Time = healthlab.At(date.At(time.UTC).Add(-9 * time.Hour))
		return of, true
	}
	return of, json.Unmarshal(out.Joined("sleep", date.String()), &of) == nil && !of.Start.IsZero()
}

func readRecharge(v *recharge, out *rest.Batch) {
	of, ok := night(v.Date, out)
	if !ok {
		return
	}
	for _, series := range []struct {
		resource, unit string
		values         clocks
	}{{"hrv", "rmssd", v.HRVs}, {"respiratory_rate", "bpm", v.Breaths}} {
		for _, m := range series.values.of(of.Start) {
			out.Sample(series.resource, watch, healthdata.Sample{
				Timestamp: m.at, TimezoneOffset: of.Start.Offset, Unit: series.unit, Value: healthdata.Number(m.value),
			})
		}
	}
}

type skin struct {
	Date        healthlab.Date `json:"sleep_date"`
	Temperature *float64       `json:"sleep_time_skin_temperature_celsius"`
	Delta       *float64       `json:"deviation_from_baseline_celsius"`
}

func readSkin(v *skin, out *rest.Batch) {
	of, ok := night(v.Date, out)
	if !ok {
		return
	}
	if out.Stored() {
		of.Start.Time = out.Noon(v.Date)
	}
	s := healthdata.Sample{
		Timestamp: of.Start.Time, TimezoneOffset: of.Start.Offset, Unit: "°C", Value: rest.Number(v.Delta), SensorLocation: rest.Ptr("wrist"),
	}
	if !of.End.IsZero() {
		s.Start, s.End = &of.Start.Time, &of.End.Time
	}
	out.Sample("body_temperature_delta", watch, s)
}

func readActivity(v *struct {
	Start    clock    `json:"start_time"`
	KCal     *float64 `json:"calories"`
	Active   *float64 `json:"active_calories"`
	Steps    *float64 `json:"steps"`
	Distance *float64 `json:"distance_from_steps"`
	Samples  struct {
		Date  healthlab.Date `json:"date"`
		Steps struct {
			Interval float64 `json:"interval_ms"`
			Samples  []struct {
				Steps float64 `json:"steps"`
				At    clock   `json:"timestamp"`
			} `json:"samples"`
		} `json:"steps"`
	} `json:"samples"`
}, out *rest.Batch,
) {
	date := v.Samples.Date
	if date.IsZero() {
		date = healthlab.DateOf(v.Start.Time.Time)
	}
	out.Summary("activity", watch, &healthdata.Activity{
		CalendarDate: date, CaloriesTotal: v.KCal, CaloriesActive: v.Active, Steps: rest.Round(v.Steps), Distance: v.Distance,
	})
	interval := time.Duration(v.Samples.Steps.Interval) * time.Millisecond
	if interval < time.Second {
		return
	}
	list := v.Samples.Steps.Samples
	for i, s := range list {
		until := s.At.Add(interval)
		if i+1 < len(list) {
			until = list[i+1].At.Time.Time
		}
		if s.Steps <= 0 || until.Sub(s.At.Time.Time) > rest.Day {
			continue
		}
		for at := s.At.Time.Time; at.Before(until); at = at.Add(interval) {
			start, end := healthlab.At(at), healthlab.At(at.Add(interval))
			out.Sample("steps", watch, healthdata.Sample{Timestamp: start, Start: &start, End: &end, Unit: "count", Value: healthdata.Number(s.Steps)})
		}
	}
}

// heartRates are the heart rates of a day.
type heartRates struct {
	Date    healthlab.Date `json:"date"`
	Samples []struct {
		BPM *float64 `json:"heart_rate"`
		At  string   `json:"sample_time"`
	} `json:"heart_rate_samples"`
}

// readHeartRate reads a day, or an object with a list of them.
func readHeartRate(v *struct {
	heartRates
	Days []heartRates `json:"heart_rates"`
}, out *rest.Batch,
) {
	for _, of := range append(v.Days, v.heartRates) {
		for _, s := range of.Samples {
			at, err := time.Parse("15:04:05", s.At)
			if err != nil || of.Date.IsZero() {
				out.Problem("time", "must be a time of day", "heart_rate_samples", "sample_time")
				continue
			}
			h, m, sec := at.Clock()
			clock := of.Date.At(time.UTC).Add(time.Duration(h*3600+m*60+sec) * time.Second)
			out.Sample("heartrate", watch, healthdata.Sample{Timestamp: healthlab.At(clock), Unit: "bpm", Value: rest.Number(s.BPM)})
		}
	}
}

func readTemperature(v *struct {
	Type    string `json:"measurement_type"`
	Start   clock  `json:"start_time"`
	Samples []struct {
		Celsius *float64 `json:"temperature_celsius"`
		Delta   float64  `json:"recording_time_delta_milliseconds"`
	} `json:"samples"`
}, out *rest.Batch,
) {
	var place *string
	if strings.HasPrefix(v.Type, "TM_SKIN") {
		place = rest.Ptr("skin")
	}
	for _, s := range v.Samples {
		out.Sample("body_temperature", watch, healthdata.Sample{
			Timestamp: v.Start.plus(s.Delta), Unit: "°C", Value: rest.Number(s.Celsius), SensorLocation: place,
		})
	}
}

func readSpO2(v *struct {
	unix
	Status  string   `json:"test_status"`
	Percent *float64 `json:"blood_oxygen_percent"`
}, out *rest.Batch,
) {
	if v.Status == "SPO2_TEST_PASSED" {
		out.Sample("blood_oxygen", watch, healthdata.Sample{Timestamp: v.at().Time, TimezoneOffset: v.offset(), Unit: "%", Value: rest.Number(v.Percent)})
	}
}

func readECG(v *struct {
	unix
	HR      *float64 `json:"average_heart_rate_bpm"`
	Samples []struct {
		Delta float64  `json:"recording_time_delta_ms"`
		MV    *float64 `json:"amplitude_mv"`
	} `json:"samples"`
}, out *rest.Batch,
) {
	n := len(v.Samples)
	if n == 0 {
		return
	}
	first, last := v.Samples[0].Delta, v.Samples[n-1].Delta
	e := &healthdata.Electrocardiogram{
		Head: healthdata.Head{ExternalID: strconv.FormatInt(v.Time, 10)}, SessionStart: v.at().plus(first), SessionEnd: v.at().plus(last),
		VoltageSampleCount: int64(n), HeartRateMean: rest.Round(v.HR),
	}
	if last > first {
		e.SamplingFrequencyHz = rest.Ptr(math.Round(float64(n-1) / (last - first) * 1000))
	}
	out.Summary("electrocardiogram", watch, e)
	for _, s := range v.Samples {
		out.Sample("electrocardiogram_voltage", watch, healthdata.Sample{
			Timestamp: v.at().plus(s.Delta), TimezoneOffset: v.offset(), Type: rest.Ptr("lead_1"), Unit: "mV", Value: rest.Number(s.MV),
		})
	}
}

func readBody(v *struct {
	Height   *float64        `json:"height"`
	Birthday *healthlab.Date `json:"birthday"`
	Gender   string          `json:"gender"`
	Weight   *float64        `json:"weight"`
	Source   string          `json:"weight_source"`
	VO2Max   *float64        `json:"vo2_max"`
	Modified clock           `json:"modified"`
}, out *rest.Batch,
) {
	p := &healthdata.Profile{Height: rest.Round(v.Height), BirthDate: v.Birthday}
	if v.Gender != "" {
		p.Sex = rest.Ptr(strings.ToLower(v.Gender))
	}
	out.Summary("profile", healthdata.SourceApp, p)
	if v.Modified.IsZero() {
		return
	}
	if v.Source == "SOURCE_MEASURED" {
		out.Sample("weight", healthdata.SourceScale, healthdata.Sample{Timestamp: v.Modified.Time, Unit: "kg", Value: rest.Number(v.Weight)})
	}
	out.Sample("vo2_max", watch, healthdata.Sample{Timestamp: v.Modified.Time, Unit: "mL/kg/min", Value: rest.Number(v.VO2Max)})
}
