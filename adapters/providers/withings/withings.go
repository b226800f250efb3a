// Package withings connects the public API of Withings: weight and body composition, blood
// pressure, temperature, heart rate, blood oxygen, daily and intraday activity, workouts,
// sleep with its stages and series, electrocardiograms and devices.
//
//	connector, err := withings.New(rest.Client{ID: id, Secret: secret}, &rest.Options{
//		VerifyToken: word, MessageURL: "https://HOST/v2/link/push/withings?token=" + word,
//	})
//	connectors[withings.Slug] = connector.Flows()
//
// # What is read
//
//	getmeas              weight (kg), fat (%), lean_body_mass (kg), body, blood_pressure (mmHg),
//	                     heartrate of cuffs and scales, body_temperature (°C), blood_oxygen (%),
//	                     vo2_max (mL/kg/min)
//	height               profile (cm), the last one
//	getactivity          activity, one for each day and source; times in minutes
//	getintradayactivity  steps, distance (m), calories_active (kcal), floors_climbed, heartrate,
//	                     blood_oxygen, hrv (RMSSD, ms)
//	getworkouts          workouts (kcal, m), four zones in seconds
//	sleep_getsummary     sleep; efficiency is a ratio there and percent here
//	sleep_get            sleep_cycle, heartrate, respiratory_rate and hrv (RMSSD, ms) of each night
//	heart_list           the list of electrocardiograms
//	heart_get            electrocardiogram, electrocardiogram_voltage (mV from µV, lead_1)
//	getdevice            device
//
// Every request is a form by POST. Instants are Unix seconds; the zone is named by the answer
// (getmeas) or the item. A value of getmeas is value × 10^unit. Fat without a ratio is fat mass
// by weight; muscle, water and bone are percent of the weight of the same group. Of a measure
// that a group repeats for parts of the body, the one for the whole body is taken. Goals are
// left out, and so is a measurement that may be another person's (attrib 1) until it is
// confirmed. What was typed in (attrib 2, 4) has the source app; else the source follows from
// the model. A heart rate of 0 means none. Records are known by grpid (body), id (workouts,
// sleep) or day and source (activity), and later answers replace earlier ones. Blood pressure
// of an electrocardiogram is read from getmeas alone. SDNN, vascular age, nerve health and
// segments of the body have no place in the catalogue.
//
// Intraday activity has 24 hours a request, for each resource, and the application 120 requests
// a minute: long histories take their time.
//
// # Messages
//
// With Options.MessageURL, a person is subscribed to all categories after the sign-in. A
// subscription that is refused is left out: its data is found by asking. Messages are not signed:
// one is taken if the address has the parameter token with Options.VerifyToken. The handshake,
// a HEAD, is answered with 200. A person who ends the grant is unlinked.
//
// # How sure this is
//
// Documented: addresses, actions, fields, units, statuses, limit, messages. From client code:
// which refusals of the token URL end a grant, wait_seconds, whole body as position 7, hash_deviceid
// as the id of a device. Not tried against the service: the signed revocation, a message's
// parameters as a form, how far back answers go, that a night's stages are in its own range.
package withings

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Slug is the provider's.
const Slug = "withings"

const base = "https://wbsapi.withings.net"

var (
	pages    = rest.More("offset", "body.offset", "body.more")
	days     = rest.Range{From: "startdateymd", To: "enddateymd", Days: true, Before: rest.Day, After: rest.Day}
	instants = rest.Range{From: "startdate", To: "enddate", Format: rest.Unix}
	oneDay   = rest.Range{From: "startdate", To: "enddate", Format: rest.Unix, Max: rest.Day}

	metrics  = []string{"user.metrics"}
	activity = []string{"user.activity"}
)

// action is the form of a request.
func action(name string, fields ...string) url.Values {
	q := url.Values{"action": {name}}
	if len(fields) > 0 {
		q.Set("data_fields", strings.Join(fields, ","))
	}
	return q
}

var definition = &rest.Definition{
	Provider: healthdata.Provider{
		Slug: Slug, Name: "Withings", Group: "wearable", AuthType: "oauth", OAuthVersion: 2, SourceType: "device", Class: "cloud", UpdateModel: "hybrid",
		Description: "Weight, blood pressure, sleep and activity of scales, cuffs, mats and watches.",
		Backfill:    healthdata.Backfill{DefaultDays: 90, MaxDays: 365, Configurable: true, Mode: "pull"},
		RateLimits:  healthdata.RateLimits{App: []healthdata.RateLimit{{Requests: 120, Seconds: 60, Burst: 5}}},
	},
	OAuth: rest.OAuth{
		AuthorizeURL: "https://account.withings.com/oauth2_user/authorize2", TokenURL: base + "/v2/oauth2", ScopeSeparator: ",",
		TokenParams: map[string]string{"action": "requesttoken"}, TokenBody: tokenBody, TokenSeconds: 10_800,
		Minimum: []string{"user.metrics"}, Revoke: revoke, Account: account,
	},
	BaseURL: base,
	Kinds: []rest.Kind{
		{
			Name: "getmeas", Scopes: metrics, Method: http.MethodPost, Path: "/measure", Range: instants, Pages: pages, Items: "body.measuregrps",
			Query:     url.Values{"action": {"getmeas"}, "category": {"1"}, "meastypes": {"1,5,6,8,9,10,11,12,54,71,73,76,77,88,123,170"}},
			Resources: []string{"weight", "fat", "lean_body_mass", "body", "blood_pressure", "heartrate", "body_temperature", "blood_oxygen", "vo2_max"},
			Read:      rest.Each(readMeasures),
		},
		{
			Name: "height", Scopes: metrics, Method: http.MethodPost, Path: "/measure", Items: "body",
			Query:     url.Values{"action": {"getmeas"}, "category": {"1"}, "meastypes": {"4"}},
			Resources: []string{"profile"}, Read: rest.Each(readHeight),
		},
		{
			Name: "getactivity", Scopes: activity, Method: http.MethodPost, Path: "/v2/measure", Range: days, Pages: pages, Items: "body.activities",
			Query: action("getactivity", "steps", "distance", "elevation", "soft", "moderate", "intense", "calories", "totalcalories",
				"hr_average", "hr_min", "hr_max"),
			Resources: []string{"activity"}, Read: rest.Each(readActivity),
		},
		{
			Name: "getintradayactivity", Scopes: activity, Method: http.MethodPost, Path: "/v2/measure", Range: oneDay, Items: "body.series",
			Query:     action("getintradayactivity", "steps", "distance", "elevation", "calories", "duration", "heart_rate", "spo2_auto", "rmssd"),
			Resources: []string{"steps", "distance", "calories_active", "floors_climbed", "heartrate", "blood_oxygen", "hrv"},
			Read:      rest.Each(readIntraday),
		},
		{
			Name: "getworkouts", Scopes: activity, Method: http.MethodPost, Path: "/v2/measure", Range: days, Pages: pages, Items: "body.series",
			Query: action("getworkouts", "calories", "distance", "steps", "hr_average", "hr_max", "hr_zone_0", "hr_zone_1", "hr_zone_2", "hr_zone_3",
				"pause_duration", "manual_calories", "manual_distance"),
			Resources: []string{"workouts"}, Read: rest.Each(readWorkout),
		},
		{
			Name: "sleep_getsummary", Scopes: activity, Method: http.MethodPost, Path: "/v2/sleep", Range: days, Pages: pages, Items: "body.series",
			Query: action("getsummary", "asleepduration", "lightsleepduration", "deepsleepduration", "remsleepduration", "wakeupduration",
				"sleep_latency", "sleep_efficiency", "sleep_score", "hr_average", "hr_min", "rr_average"),
			Key: nightKey, Keep: []string{"id", "startdate", "enddate", "timezone", "model", "model_id", "hash_deviceid"},
			Resources: []string{"sleep"}, Read: rest.Each(readSleep),
		},
		{
			Name: "sleep_get", Scopes: activity, For: "sleep_getsummary", Method: http.MethodPost, Path: "/v2/sleep", Ask: askNight, Items: "body",
			Query:     action("get", "hr", "rr", "rmssd"),
			Resources: []string{"sleep_cycle", "heartrate", "respiratory_rate", "hrv"}, Read: rest.Each(readNight),
		},
		{
			Name: "heart_list", Method: http.MethodPost, Path: "/v2/heart", Range: instants, Pages: pages, Items: "body.series",
			Query: action("list"), Key: rest.KeyOf("ecg.signalid"), Keep: []string{"timestamp", "timezone", "ecg", "heart_rate", "model", "deviceid"},
			Read: func(json.RawMessage, *rest.Batch) {},
		},
		{
			Name: "heart_get", Scopes: metrics, For: "heart_list", Method: http.MethodPost, Path: "/v2/heart", Items: "body", Query: action("get"),
			Ask:       func(q url.Values, signal string) { q.Set("signalid", signal) },
			Resources: []string{"electrocardiogram", "electrocardiogram_voltage"}, Read: rest.Each(readECG),
		},
		{
			Name: "getdevice", Scopes: []string{"user.info"}, Method: http.MethodPost, Path: "/v2/user", Items: "body.devices", Query: action("getdevice"),
			Resources: []string{"device"}, Read: rest.Each(readDevice),
		},
	},
	Refused: refused, Listen: listen,
}

// Record returns the provider's record for the catalogue. It is the caller's to change.
func Record() healthdata.Provider { return definition.Record() }

// New returns the connector. See [rest.New].
func New(client rest.Client, opts *rest.Options) (*rest.Connector, error) {
	return rest.New(definition, client, opts)
}

// Read decodes a stored answer by the name of its kind. A heart_get alone has no instant and
// gives nothing. See [rest.Definition.Read].
func Read(kind string, page []byte) (rest.Data, error) { return definition.Read(kind, page) }

// The types of measures.
const (
	weight, height, fatFree, fatRatio, fatMass  = 1, 4, 5, 6, 8
	diastolic, systolic, pulse                  = 9, 10, 11
	temperature, bodyTemperature, skin          = 12, 71, 73
	spo2, muscle, water, bone, vo2Max, visceral = 54, 76, 77, 88, 123, 170
)

const (
	wholeBody = 7 // the position of a measure
	ambiguous = 1 // attrib of a measurement that may be another person's
	real      = 1 // category of a measurement; goals are 2
)

// manual reports whether an attrib says that the person typed it in.
func manual(attrib int) bool { return attrib == 2 || attrib == 4 }

// measures are what was measured at one instant.
type measures struct {
	hardware
	ID       json.Number `json:"grpid"`
	Attrib   int         `json:"attrib"`
	Date     unix        `json:"date"`
	Category *int        `json:"category"`
	Measures []struct {
		Value    float64 `json:"value"`
		Type     int     `json:"type"`
		Unit     int     `json:"unit"`
		Position *int    `json:"position"`
	} `json:"measures"`
}

// of returns the value of the first of some types that the group has; nil if it has none.
func (m *measures) of(types ...int) *float64 {
	for _, of := range types {
		var found *float64
		for _, x := range m.Measures {
			whole := x.Position == nil || *x.Position == wholeBody
			composition := of == fatFree || of == fatRatio || of == fatMass || of >= muscle && of <= bone
			if x.Type != of || x.Unit < -15 || x.Unit > 15 || found != nil && !whole || composition && !whole {
				continue
			}
			v := x.Value * math.Pow10(x.Unit)
			if x.Unit < 0 {
				v = x.Value / math.Pow10(-x.Unit) // a quotient is the nearest number, a product is not
			}
			found = &v
		}
		if found != nil {
			return found
		}
	}
	return nil
}

// percent returns a part as percent of the whole; nil if one is not there.
func percent(part, whole *float64) *float64 {
	if part == nil || whole == nil || *whole <= 0 {
		return nil
	}
	return rest.Ptr(*part / *whole * 100)
}

func readMeasures(v *measures, out *rest.Batch) {
	if v.Attrib == ambiguous || v.Category != nil && *v.Category != real {
		return
	}
	out.Zone(out.Answer("body.timezone"))
	kg, fat := v.of(weight), v.of(fatRatio)
	if fat == nil {
		fat = percent(v.of(fatMass), v.of(weight))
	}
	source := v.device(out)
	switch {
	case manual(v.Attrib):
		source = healthdata.SourceApp
	case v.of(systolic) != nil:
		source = or(source, healthdata.SourceCuff)
	case kg != nil || fat != nil:
		source = or(source, healthdata.SourceScale)
	}
	sample := func(resource, unit string, value *float64) {
		out.Sample(resource, source, healthdata.Sample{Timestamp: v.Date.time(), Unit: unit, Value: rest.Number(value)})
	}
	sample("weight", "kg", kg)
	sample("fat", "%", fat)
	sample("lean_body_mass", "kg", v.of(fatFree))
	sample("blood_oxygen", "%", v.of(spo2))
	sample("vo2_max", "mL/kg/min", v.of(vo2Max))
	if bpm := v.of(pulse); bpm != nil && *bpm > 0 {
		sample("heartrate", "bpm", bpm)
	}
	if celsius := v.of(bodyTemperature, temperature); celsius != nil {
		sample("body_temperature", "°C", celsius)
	} else if celsius = v.of(skin); celsius != nil {
		out.Sample("body_temperature", source, healthdata.Sample{
			Timestamp: v.Date.time(), Unit: "°C", Value: rest.Number(celsius), SensorLocation: rest.Ptr("skin"),
		})
	}
	if high, low := v.of(systolic), v.of(diastolic); high != nil && low != nil {
		out.Sample("blood_pressure", source, healthdata.Sample{Timestamp: v.Date.time(), Unit: "mmHg", Systolic: high, Diastolic: low})
	}
	b := &healthdata.Body{
		Head: healthdata.Head{ExternalID: v.ID.String()}, MeasuredAt: v.Date.time(), Weight: kg, Fat: fat, LeanBodyMassKilogram: v.of(fatFree),
		MuscleMassPercentage: percent(v.of(muscle), kg), WaterPercentage: percent(v.of(water), kg), BoneMassPercentage: percent(v.of(bone), kg),
		VisceralFatIndex: v.of(visceral),
	}
	if kg != nil || fat != nil || b.LeanBodyMassKilogram != nil || b.VisceralFatIndex != nil {
		out.Summary("body", source, b)
	}
}

func readHeight(v *struct {
	Groups []measures `json:"measuregrps"`
}, out *rest.Batch,
) {
	var last *measures
	for i := range v.Groups {
		if g := &v.Groups[i]; g.of(height) != nil && (last == nil || g.Date > last.Date) {
			last = g
		}
	}
	if last != nil {
		out.Summary("profile", healthdata.SourceApp, &healthdata.Profile{Height: rest.Round(rest.Times(last.of(height), 100))})
	}
}

// positive returns a number; nil for 0, which means none.
func positive(v *float64) *float64 {
	if v == nil || *v <= 0 {
		return nil
	}
	return v
}

const (
	minutes = 1.0 / 60
	foreign = 18 // brand of days that another app counted
)

func readActivity(v *struct {
	hardware
	Date     healthlab.Date `json:"date"`
	Zone     string         `json:"timezone"`
	Brand    int            `json:"brand"`
	Steps    *float64       `json:"steps"`
	Distance *float64       `json:"distance"`
	Floors   *float64       `json:"elevation"`
	Soft     *float64       `json:"soft"`
	Moderate *float64       `json:"moderate"`
	Intense  *float64       `json:"intense"`
	Active   *float64       `json:"calories"`
	Total    *float64       `json:"totalcalories"`
	HR       *float64       `json:"hr_average"`
	HRMin    *float64       `json:"hr_min"`
	HRMax    *float64       `json:"hr_max"`
}, out *rest.Batch,
) {
	out.Zone(v.Zone)
	source := v.device(out)
	if v.Brand == foreign {
		source = or(source, healthdata.SourceApp)
	}
	a := &healthdata.Activity{
		CalendarDate: v.Date, Steps: rest.Round(v.Steps), Distance: v.Distance, FloorsClimbed: rest.Round(v.Floors), CaloriesActive: v.Active,
		CaloriesTotal: v.Total, Low: rest.Times(v.Soft, minutes), Medium: rest.Times(v.Moderate, minutes), High: rest.Times(v.Intense, minutes),
	}
	if v.Zone != "" {
		a.TimeZone = &v.Zone
	}
	if hr := (healthdata.ActivityHeartRate{AvgBPM: positive(v.HR), MinBPM: positive(v.HRMin), MaxBPM: positive(v.HRMax)}); hr.AvgBPM != nil {
		a.HeartRate = &hr
	}
	out.Summary("activity", or(source, healthdata.SourceWatch), a)
}

type intraday struct {
	hardware
	Steps    *float64 `json:"steps"`
	Distance *float64 `json:"distance"`
	Floors   *float64 `json:"elevation"`
	KCal     *float64 `json:"calories"`
	Duration int64    `json:"duration"`
	HR       *float64 `json:"heart_rate"`
	SpO2     *float64 `json:"spo2_auto"`
	RMSSD    *float64 `json:"rmssd"`
}

func readIntraday(v *byTime[intraday], out *rest.Batch) {
	for _, at := range slices.Sorted(maps.Keys(*v)) {
		x := (*v)[at]
		out.Device(nil)
		source := or(x.device(out), healthdata.SourceWatch)
		start, end := at.time(), (at + unix(max(x.Duration, 0))).time()
		interval := func(resource, unit string, value *float64) {
			out.Sample(resource, source, healthdata.Sample{Timestamp: start, Start: &start, End: &end, Unit: unit, Value: rest.Number(value)})
		}
		interval("steps", "count", x.Steps)
		interval("distance", "m", x.Distance)
		interval("calories_active", "kcal", x.KCal)
		interval("floors_climbed", "count", x.Floors)
		instant := func(resource, unit string, value *float64) {
			out.Sample(resource, source, healthdata.Sample{Timestamp: start, Unit: unit, Value: rest.Number(value)})
		}
		instant("heartrate", "bpm", positive(x.HR))
		instant("blood_oxygen", "%", positive(x.SpO2))
		instant("hrv", "rmssd", positive(x.RMSSD))
	}
}

// sports are the slugs of categories; the others are other.
var sports = map[int]string{
	1: "walking", 2: "running", 3: "hiking", 4: "skating", 5: "bmx", 6: "cycling", 7: "swimming", 8: "surfing", 9: "kitesurfing",
	10: "windsurfing", 11: "bodyboarding", 12: "tennis", 13: "table_tennis", 14: "squash", 15: "badminton", 16: "strength_training",
	17: "fitness", 18: "elliptical", 19: "pilates", 20: "basketball", 21: "soccer", 22: "football", 23: "rugby", 24: "volleyball",
	25: "water_polo", 26: "horse_riding", 27: "golf", 28: "yoga", 29: "dancing", 30: "boxing", 31: "fencing", 32: "wrestling",
	33: "martial_arts", 34: "skiing", 35: "snowboarding", 187: "rowing", 188: "zumba", 191: "baseball", 192: "handball", 193: "hockey",
	194: "ice_hockey", 195: "climbing", 196: "ice_skating", 272: "multisport", 306: "indoor_walking", 307: "indoor_running",
	308: "indoor_cycling", 455: "stand_up_paddling", 456: "padel", 491: "stair_stepper", 494: "kayaking", 495: "canoeing", 496: "sailing",
	498: "trail_running", 499: "snowshoeing", 502: "scuba_diving", 521: "triathlon", 523: "mountain_biking", 524: "gravel_cycling",
	525: "e_biking", 529: "backcountry_skiing", 530: "nordic_skiing", 546: "crossfit", 547: "spinning", 550: "hiit", 551: "meditation",
	552: "stretching", 559: "dog_walking", 566: "nordic_walking",
}

func readWorkout(v *struct {
	hardware
	ID       json.Number `json:"id"`
	Category int         `json:"category"`
	Zone     string      `json:"timezone"`
	Attrib   int         `json:"attrib"`
	Start    unix        `json:"startdate"`
	End      unix        `json:"enddate"`
	Data     details[struct {
		KCal           *float64 `json:"calories"`
		Distance       *float64 `json:"distance"`
		Steps          *float64 `json:"steps"`
		HR             *float64 `json:"hr_average"`
		HRMax          *float64 `json:"hr_max"`
		Zone0          *int64   `json:"hr_zone_0"`
		Zone1          int64    `json:"hr_zone_1"`
		Zone2          int64    `json:"hr_zone_2"`
		Zone3          int64    `json:"hr_zone_3"`
		Pause          *int64   `json:"pause_duration"`
		ManualKCal     *float64 `json:"manual_calories"`
		ManualDistance *float64 `json:"manual_distance"`
	}] `json:"data"`
}, out *rest.Batch,
) {
	out.Zone(v.Zone)
	source, x := or(v.device(out), healthdata.SourceWatch), &v.Data.v
	if manual(v.Attrib) {
		source = healthdata.SourceApp
	}
	w := &healthdata.Workout{
		Head: healthdata.Head{ExternalID: v.ID.String()}, Sport: healthdata.SportOf(sports[v.Category]), TimeStart: v.Start.time(), TimeEnd: v.End.time(),
		Calories: cmp.Or(positive(x.ManualKCal), x.KCal), Distance: cmp.Or(positive(x.ManualDistance), x.Distance), Steps: rest.Round(x.Steps),
		AverageHR: rest.Round(positive(x.HR)), MaxHR: rest.Round(positive(x.HRMax)),
	}
	if x.Zone0 != nil && x.HR != nil && *x.HR > 0 {
		w.HRZones = []int64{*x.Zone0, x.Zone1, x.Zone2, x.Zone3}
	}
	if x.Pause != nil {
		w.MovingTime = rest.Ptr(max(int64(v.End-v.Start)-*x.Pause, 0))
	}
	out.Summary("workouts", source, w)
}

// night is what the summary of a night, its stages and its series have in common.
type night struct {
	hardware
	ID    json.Number `json:"id"`
	Start unix        `json:"startdate"`
	End   unix        `json:"enddate"`
	Zone  string      `json:"timezone"`
}

// nightKey is the id of a night with its start and end.
func nightKey(item json.RawMessage) string {
	var v night
	if json.Unmarshal(item, &v) != nil || v.ID == "" {
		return ""
	}
	return fmt.Sprintf("%s %d %d", v.ID, v.Start, v.End)
}

func askNight(q url.Values, key string) {
	if part := strings.Fields(key); len(part) == 3 {
		q.Set("startdate", part[1])
		q.Set("enddate", part[2])
	}
}

func readSleep(v *struct {
	night
	Completed *bool `json:"completed"`
	Data      details[struct {
		Asleep  int64    `json:"asleepduration"`
		Light   int64    `json:"lightsleepduration"`
		Deep    int64    `json:"deepsleepduration"`
		REM     int64    `json:"remsleepduration"`
		Awake   int64    `json:"wakeupduration"`
		Latency *int64   `json:"sleep_latency"`
		Ratio   *float64 `json:"sleep_efficiency"`
		Score   *float64 `json:"sleep_score"`
		HR      *float64 `json:"hr_average"`
		HRMin   *float64 `json:"hr_min"`
		Breath  *float64 `json:"rr_average"`
	}] `json:"data"`
}, out *rest.Batch,
) {
	out.Zone(v.Zone)
	x := &v.Data.v
	s := &healthdata.Sleep{
		Head: healthdata.Head{ExternalID: v.ID.String()}, BedtimeStart: v.Start.time(), BedtimeStop: v.End.time(), Total: x.Asleep, Light: x.Light,
		Deep: x.Deep, REM: x.REM, Awake: x.Awake, Latency: x.Latency, Efficiency: rest.Times(x.Ratio, 100), Score: rest.Round(positive(x.Score)),
		HRAverage: rest.Round(positive(x.HR)), HRLowest: rest.Round(positive(x.HRMin)), RespiratoryRate: positive(x.Breath),
	}
	if v.Completed != nil {
		s.State = rest.Ptr("confirmed")
		if !*v.Completed {
			s.State = rest.Ptr("tentative")
		}
	}
	out.Summary("sleep", or(v.device(out), healthdata.SourceAutomatic), s)
}

// states are the stages of segments; the others are gaps.
var states = map[int]healthdata.SleepStage{
	0: healthdata.SleepStageAwake, 1: healthdata.SleepStageLight, 2: healthdata.SleepStageDeep, 3: healthdata.SleepStageREM,
	4: healthdata.SleepStageByHand, 5: healthdata.SleepStageMissing,
}

type segment struct {
	Start unix             `json:"startdate"`
	End   unix             `json:"enddate"`
	State int              `json:"state"`
	Hash  string           `json:"hash_deviceid"`
	HR    byTime[*float64] `json:"hr"`
	Rate  byTime[*float64] `json:"rr"`
	RMSSD byTime[*float64] `json:"rmssd"`
}

// readNight reads the segments of a night, which are in no order. Of a stored page, the night
// is from the first to the last.
func readNight(v *struct {
	Series []segment `json:"series"`
}, out *rest.Batch,
) {
	slices.SortFunc(v.Series, func(a, b segment) int { return cmp.Compare(a.Start, b.Start) })
	var of night
	if json.Unmarshal(out.Joined("sleep_getsummary", out.ID()), &of) != nil {
		if len(v.Series) == 0 || !out.Stored() {
			return
		}
		of.Start = v.Series[0].Start
		for i := range v.Series {
			of.End = max(of.End, v.Series[i].End)
		}
	}
	out.Zone(of.Zone)
	source, stages := or(of.device(out), healthdata.SourceAutomatic), rest.Stages{}
	series := func(resource, unit string, values byTime[*float64]) {
		for _, at := range slices.Sorted(maps.Keys(values)) {
			out.Sample(resource, source, healthdata.Sample{Timestamp: at.time(), Unit: unit, Value: rest.Number(positive(values[at]))})
		}
	}
	for i := range v.Series {
		x := &v.Series[i]
		if x.Hash != "" && of.Hash != "" && x.Hash != of.Hash {
			continue // of another device
		}
		stage, known := states[x.State]
		if start, end := max(x.Start, of.Start), min(x.End, of.End); known && start < end {
			stages.Add(int64(start-of.Start), int64(end-of.Start), stage)
		}
		series("heartrate", "bpm", x.HR)
		series("respiratory_rate", "bpm", x.Rate)
		series("hrv", "rmssd", x.RMSSD)
	}
	if len(stages.Type) == 0 {
		return
	}
	c := &healthdata.SleepCycle{
		Head: healthdata.Head{ExternalID: of.ID.String()}, SessionStart: of.Start.time(), SessionEnd: of.End.time(),
		StageStartOffsetSecond: stages.Start, StageEndOffsetSecond: stages.End, StageType: stages.Type,
	}
	if of.Zone != "" {
		c.TimeZone = &of.Zone
	}
	out.Summary("sleep_cycle", source, c)
}

// rhythms are the classifications of an electrocardiogram.
var rhythms = []string{"sinus_rhythm", "atrial_fibrillation", "inconclusive"}

func readECG(v *struct {
	Signal []float64 `json:"signal"`
	Hz     float64   `json:"sampling_frequency"`
}, out *rest.Batch,
) {
	var of struct {
		hardware
		At   unix     `json:"timestamp"`
		Zone string   `json:"timezone"`
		HR   *float64 `json:"heart_rate"`
		ECG  struct {
			Rhythm *int `json:"afib"`
		} `json:"ecg"`
	}
	if json.Unmarshal(out.Joined("heart_list", out.ID()), &of) != nil || v.Hz <= 0 {
		return
	}
	out.Zone(of.Zone)
	source := or(of.device(out), healthdata.SourceWatch)
	at := func(i int) healthlab.Time {
		return healthlab.At(of.At.time().Add(time.Duration(float64(i) / v.Hz * float64(time.Second))))
	}
	e := &healthdata.Electrocardiogram{
		Head: healthdata.Head{ExternalID: out.ID()}, SessionStart: at(0), SessionEnd: at(len(v.Signal)), VoltageSampleCount: int64(len(v.Signal)),
		HeartRateMean: rest.Round(positive(of.HR)), SamplingFrequencyHz: &v.Hz,
	}
	if of.Zone != "" {
		e.TimeZone = &of.Zone
	}
	if r := of.ECG.Rhythm; r != nil && *r >= 0 && *r < len(rhythms) {
		e.Classification = &rhythms[*r]
	}
	out.Summary("electrocardiogram", source, e)
	for i, microvolts := range v.Signal {
		out.Sample("electrocardiogram_voltage", source, healthdata.Sample{
			Timestamp: at(i), Type: rest.Ptr("lead_1"), Unit: "mV", Value: healthdata.Number(microvolts / 1000),
		})
	}
}

// deviceTypes are how devices of a type record.
var deviceTypes = map[string]healthdata.SourceType{
	"Scale": healthdata.SourceScale, "Blood Pressure Monitor": healthdata.SourceCuff, "Activity Tracker": healthdata.SourceWatch,
	"Sleep Monitor": healthdata.SourceAutomatic,
}

func readDevice(v *struct {
	hardware
	Type     string  `json:"type"`
	Name     *string `json:"model"`
	Firmware *string `json:"fw"`
}, out *rest.Batch,
) {
	source, known := deviceTypes[v.Type]
	if !known {
		source = healthdata.SourceUnknown
	}
	d := healthdata.DeviceInfo{Manufacturer: rest.Ptr("Withings"), Model: v.Name, Version: v.Firmware}
	if id := cmp.Or(v.Hash, v.ID); id != "" {
		d.ID = &id
	}
	out.Listed(source, d)
}
