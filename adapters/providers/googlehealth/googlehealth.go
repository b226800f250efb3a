// Package googlehealth connects the Google Health API v4: steps, heart rate and other
// measurements, daily activity, exercises, and sleep with its stages.
//
//	connector, err := googlehealth.New(rest.Client{ID: id, Secret: secret}, &rest.Options{VerifyToken: authorization})
//	connectors[googlehealth.Slug] = connector.Flows()
//
// # What is read
//
//	steps, distance, floors, active-energy-burned, basal-energy-burned, hydration-log
//	                        steps, distance (m), floors_climbed, calories_active and
//	                        calories_basal (kcal), water (ml)
//	heart-rate, heart-rate-variability, oxygen-saturation, core-body-temperature,
//	blood-glucose, weight, body-fat, run-vo2-max
//	                        heartrate (bpm), hrv (RMSSD, ms), blood_oxygen (%), body_temperature
//	                        (°C), glucose (mg/dL), weight (kg), fat (%), vo2_max (mL/kg/min)
//	height                  profile (cm), the last one
//	daily total-calories    activity of each day, joined with the days of steps, distance, floors,
//	                        active energy and the resting heart rate
//	exercise                workouts (m, m/s, kcal), four zones in seconds
//	sleep                   sleep, sleep_cycle
//
// Instants are UTC with an offset in seconds; numbers may be texts, and durations are texts such
// as 90s. Lists have the points of each device and app side by side: the source and the device of
// each are kept, and the library merges them where it adds up. Days are those of the person's
// clock. Exercises and sleep are known by their name, and later answers replace earlier ones; a
// sleep that still runs is left out, and one that is not processed is tentative. Daily summaries
// of HRV, breathing and temperature have no instant and are not read, nor are tracks.
//
// # Messages
//
// One subscriber for the project. Options.VerifyToken is the whole value of the Authorization
// header that it was made with; a message without it is refused, as the handshake asks. What
// changed is fetched. A deletion names a range and no record: what it deletes stays.
//
// # How sure this is
//
// Documented: addresses, filters, fields, limits, messages. From client code: members of
// roll-ups, physicalTimeInterval in messages. Not tried against the service: PKCE with a secret,
// that renewals give no refresh token, the revocation, identity of points without a name.
package googlehealth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Slug is the provider's.
const Slug = "google_health"

const (
	base     = "https://health.googleapis.com"
	types    = "/v4/users/me/dataTypes/"
	identity = base + "/v4/users/me/identity"

	scope    = "https://www.googleapis.com/auth/googlehealth."
	activity = scope + "activity_and_fitness.readonly"
	metrics  = scope + "health_metrics_and_measurements.readonly"
	asleep   = scope + "sleep.readonly"
	eaten    = scope + "nutrition.readonly"
)

// list is a kind that lists the points of a type. field is what its filter compares.
func list(name, scope, field, size string, r rest.Range, read func(json.RawMessage, *rest.Batch), resources ...string) rest.Kind {
	field = strings.ReplaceAll(name, "-", "_") + "." + field
	r.From, r.Filter = "filter", field+` >= "{from}" AND `+field+` < "{to}"`
	return rest.Kind{
		Name: name, Scopes: []string{scope}, Path: types + name + "/dataPoints", Query: url.Values{"pageSize": {size}}, Range: r,
		Pages: rest.Cursor("pageToken", "nextPageToken"), Items: "dataPoints", Resources: resources, Read: read,
	}
}

// intervals and samples list points that are one value each.
func intervals(name, scope, resource, unit, member string, divisor float64) rest.Kind {
	return list(name, scope, "interval.start_time", "5000", rest.Range{}, value(name, resource, unit, member, divisor), resource)
}

func samples(name, scope, resource, unit, member string, divisor float64) rest.Kind {
	return list(name, scope, "sample_time.physical_time", "5000", rest.Range{}, value(name, resource, unit, member, divisor), resource)
}

// rollUp is a kind with the sums of days, for a join by day. The sum is at member.
func rollUp(name string) rest.Kind {
	type date struct {
		Year  int `json:"year"`
		Month int `json:"month"`
		Day   int `json:"day"`
	}
	civil := func(d healthlab.Date) any {
		return map[string]date{"date": {d.Year, int(d.Month), d.Day}}
	}
	return rest.Kind{
		Name: "daily " + name, Path: types + name + "/dataPoints:dailyRollUp", Range: rest.Range{Max: 12 * rest.Day}, Items: "rollupDataPoints",
		Body: func(first, last healthlab.Date) any {
			return map[string]any{"range": map[string]any{"start": civil(first), "end": civil(last.AddDays(1))}, "windowSizeDays": 1}
		},
		Key: dayKey, Read: func(json.RawMessage, *rest.Batch) {},
	}
}

// total is the kind that the other sums of a day are joined to.
func total() rest.Kind {
	k := rollUp("total-calories")
	k.Scopes, k.Resources, k.Read = []string{activity, metrics}, []string{"activity"}, rest.Each(readDay)
	k.Join = []string{"daily steps", "daily distance", "daily floors", "daily active-energy-burned", "daily-resting-heart-rate"}
	return k
}

// resting lists the resting heart rates of days.
func resting() rest.Kind {
	k := list("daily-resting-heart-rate", metrics, "date", "1000", rest.Range{Days: true, After: rest.Day}, func(json.RawMessage, *rest.Batch) {})
	k.Key = dayKey
	return k
}

var definition = &rest.Definition{
	Provider: healthdata.Provider{
		Slug: Slug, Name: "Google Health", Group: "wearable", AuthType: "oauth", OAuthVersion: 2, SourceType: "device", Class: "cloud", UpdateModel: "hybrid",
		Description: "Activity, sleep and measurements of watches, bands and phones.",
		Backfill:    healthdata.Backfill{DefaultDays: 90, MaxDays: 365, Configurable: true, Mode: "pull"},
		RateLimits: healthdata.RateLimits{
			App:  []healthdata.RateLimit{{Requests: 120_000, Seconds: 60, Burst: 500}},
			User: []healthdata.RateLimit{{Requests: 300, Seconds: 60, Burst: 5}},
		},
	},
	OAuth: rest.OAuth{
		AuthorizeURL: "https://accounts.google.com/o/oauth2/v2/auth", TokenURL: "https://oauth2.googleapis.com/token", PKCE: true,
		AuthorizeParams: map[string]string{"access_type": "offline", "prompt": "consent", "include_granted_scopes": "true"},
		Revocation:      rest.Revocation{URL: "https://oauth2.googleapis.com/revoke"}, Minimum: []string{activity},
		Account: func(ctx context.Context, s *rest.SignedIn) (string, error) {
			a, err := s.Do(ctx, http.MethodGet, identity, nil)
			if err != nil {
				return "", err
			}
			return rest.AccountIn(a.Body, "healthUserId")
		},
	},
	BaseURL: base,
	Kinds: []rest.Kind{
		intervals("steps", activity, "steps", "count", "count", 1),
		intervals("distance", activity, "distance", "m", "millimeters", 1000),
		intervals("floors", activity, "floors_climbed", "count", "count", 1),
		intervals("active-energy-burned", activity, "calories_active", "kcal", "kcal", 1),
		intervals("basal-energy-burned", activity, "calories_basal", "kcal", "kcal", 1),
		intervals("hydration-log", eaten, "water", "ml", "amountConsumed.milliliters", 1),
		samples("heart-rate", metrics, "heartrate", "bpm", "beatsPerMinute", 1),
		samples("heart-rate-variability", metrics, "hrv", "rmssd", "rootMeanSquareOfSuccessiveDifferencesMilliseconds", 1),
		samples("oxygen-saturation", metrics, "blood_oxygen", "%", "percentage", 1),
		samples("core-body-temperature", metrics, "body_temperature", "°C", "temperatureCelsius", 1),
		samples("blood-glucose", metrics, "glucose", "mg/dL", "bloodGlucoseMilligramsPerDeciliter", 1),
		samples("weight", metrics, "weight", "kg", "weightGrams", 1000),
		samples("body-fat", metrics, "fat", "%", "percentage", 1),
		samples("run-vo2-max", activity, "vo2_max", "mL/kg/min", "runVo2Max", 1),
		{
			Name: "height", Scopes: []string{metrics}, Path: types + "height/dataPoints", Query: url.Values{"pageSize": {"1000"}}, Whole: true,
			Items: "dataPoints", Resources: []string{"profile"}, Read: rest.Each(readHeight),
		},
		total(), rollUp("steps"), rollUp("distance"), rollUp("floors"), rollUp("active-energy-burned"), resting(),
		list("exercise", activity, "interval.civil_start_time", "25", rest.Range{Format: rest.Zoneless, Before: rest.Day, After: rest.Day},
			rest.Each(readExercise), "workouts"),
		list("sleep", asleep, "interval.end_time", "25", rest.Range{}, rest.Each(readSleep), "sleep", "sleep_cycle"),
	},
	Listen: listen,
}

// Record returns the provider's record for the catalogue. It is the caller's to change.
func Record() healthdata.Provider { return definition.Record() }

// New returns the connector. See [rest.New].
func New(client rest.Client, opts *rest.Options) (*rest.Connector, error) {
	return rest.New(definition, client, opts)
}

// Read decodes a stored page by the data type. See [rest.Definition.Read].
func Read(kind string, page []byte) (rest.Data, error) { return definition.Read(kind, page) }

// number is a number that may be written as a text.
type number float64

// UnmarshalJSON reads a number.
func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if err != nil {
		return &json.UnmarshalTypeError{Value: "string"}
	}
	*n = number(v)
	return nil
}

// over is a number divided by another, which is exacter than times its inverse; nil for nil.
func (n *number) over(divisor float64) *float64 {
	if n == nil {
		return nil
	}
	return rest.Ptr(float64(*n) / divisor)
}

// seconds is a duration such as 90s or -3600s.
type seconds float64

// UnmarshalJSON reads a duration.
func (s *seconds) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(strings.TrimSuffix(strings.Trim(string(b), `"`), "s"), 64)
	if err != nil {
		return &json.UnmarshalTypeError{Value: "string"}
	}
	*s = seconds(v)
	return nil
}

// offset is a duration as seconds east of UTC; nil for nil.
func (s *seconds) offset() *int {
	if s == nil {
		return nil
	}
	return rest.Ptr(int(*s))
}

type interval struct {
	Start       rest.Instant `json:"startTime"`
	End         rest.Instant `json:"endTime"`
	StartOffset *seconds     `json:"startUtcOffset"`
	EndOffset   *seconds     `json:"endUtcOffset"`
}

type civil struct {
	Year  int `json:"year"`
	Month int `json:"month"`
	Day   int `json:"day"`
}

func (c civil) date() healthlab.Date {
	return healthlab.Date{Year: c.Year, Month: time.Month(c.Month), Day: c.Day}
}

// point is what all points have.
type point struct {
	Name   string `json:"name"`
	Source struct {
		Recording string `json:"recordingMethod"`
		Platform  string `json:"platform"`
		Device    *struct {
			Form         string  `json:"formFactor"`
			Name         *string `json:"displayName"`
			Manufacturer *string `json:"manufacturer"`
		} `json:"device"`
	} `json:"dataSource"`
}

// forms are how devices of a form record.
var forms = map[string]healthdata.SourceType{
	"WATCH": healthdata.SourceWatch, "FITNESS_BAND": healthdata.SourceWatch, "RING": healthdata.SourceRing, "PHONE": healthdata.SourcePhone,
	"SCALE": healthdata.SourceScale, "CHEST_STRAP": healthdata.SourceChestStrap,
}

// source says what recorded a point.
func (p *point) source(out *rest.Batch) healthdata.SourceType {
	source := healthdata.SourceUnknown
	if d := p.Source.Device; d != nil {
		if known, ok := forms[d.Form]; ok {
			source = known
		}
		if d.Name != nil {
			out.Device(&healthdata.DeviceInfo{Manufacturer: d.Manufacturer, Model: d.Name})
		}
	}
	if p.Source.Recording == "MANUAL" {
		return healthdata.SourceApp
	}
	return source
}

// id is the last part of a name.
func (p *point) id() string { return p.Name[strings.LastIndexByte(p.Name, '/')+1:] }

// camel writes a type as the member of a point.
func camel(name string) string {
	words := strings.Split(name, "-")
	for i := range words[1:] {
		words[i+1] = strings.ToUpper(words[i+1][:1]) + words[i+1][1:]
	}
	return strings.Join(words, "")
}

// value reads points with one value. A member of zero may be absent.
func value(name, resource, unit, member string, divisor float64) func(json.RawMessage, *rest.Batch) {
	return func(item json.RawMessage, out *rest.Batch) {
		var (
			p       point
			members map[string]json.RawMessage
			v       struct {
				Interval *interval `json:"interval"`
				At       struct {
					Time   rest.Instant `json:"physicalTime"`
					Offset *seconds     `json:"utcOffset"`
				} `json:"sampleTime"`
			}
			n number
		)
		err := errors.Join(json.Unmarshal(item, &p), json.Unmarshal(item, &members))
		doc := members[camel(name)]
		err = errors.Join(err, json.Unmarshal(doc, &v))
		text, absent := rest.AccountIn(doc, member)
		if absent == nil {
			err = errors.Join(err, n.UnmarshalJSON([]byte(text)))
		}
		s := healthdata.Sample{Timestamp: v.At.Time.Time, TimezoneOffset: v.At.Offset.offset(), Unit: unit, Value: rest.Number(n.over(divisor))}
		if x := v.Interval; x != nil {
			s.Timestamp, s.Start, s.End, s.TimezoneOffset = x.Start.Time, &x.Start.Time, &x.End.Time, x.StartOffset.offset()
		} else if absent != nil {
			s.Value = nil
		}
		if err != nil || s.Timestamp.IsZero() {
			out.Problem("shape", "the item is not of the documented shape", camel(name))
			return
		}
		out.Sample(resource, p.source(out), s)
	}
}

func readHeight(v *[]struct {
	Height struct {
		At struct {
			Time rest.Instant `json:"physicalTime"`
		} `json:"sampleTime"`
		Millimeters *number `json:"heightMillimeters"`
	} `json:"height"`
}, out *rest.Batch,
) {
	var last *number
	at := time.Time{}
	for _, p := range *v {
		if t := p.Height.At.Time.Time.Time; p.Height.Millimeters != nil && !t.Before(at) {
			last, at = p.Height.Millimeters, t
		}
	}
	if last != nil {
		out.Summary("profile", healthdata.SourceApp, &healthdata.Profile{Height: rest.Round(last.over(10))})
	}
}

// dayPoint is a sum of a day, or its resting heart rate.
type dayPoint struct {
	Start struct {
		Date civil `json:"date"`
	} `json:"civilStartTime"`
	Steps struct {
		Sum *number `json:"countSum"`
	} `json:"steps"`
	Floors struct {
		Sum *number `json:"countSum"`
	} `json:"floors"`
	Distance struct {
		Sum *number `json:"millimetersSum"`
	} `json:"distance"`
	Active struct {
		Sum *number `json:"kcalSum"`
	} `json:"activeEnergyBurned"`
	Total struct {
		Sum *number `json:"kcalSum"`
	} `json:"totalCalories"`
	Resting struct {
		Date civil   `json:"date"`
		BPM  *number `json:"beatsPerMinute"`
	} `json:"dailyRestingHeartRate"`
}

// dayKey is the day of a sum or of a resting heart rate.
func dayKey(item json.RawMessage) string {
	var v dayPoint
	if json.Unmarshal(item, &v) != nil {
		return ""
	}
	day := v.Start.Date.date()
	if day.IsZero() {
		day = v.Resting.Date.date()
	}
	return day.String()
}

func readDay(v *dayPoint, out *rest.Batch) {
	day := v.Start.Date.date()
	joined := func(kind string) (x dayPoint) {
		_ = json.Unmarshal(out.Joined(kind, day.String()), &x) // without it, there is none
		return x
	}
	steps, floors := joined("daily steps").Steps.Sum, joined("daily floors").Floors.Sum
	a := &healthdata.Activity{
		CalendarDate: day, Steps: rest.Round(steps.over(1)), FloorsClimbed: rest.Round(floors.over(1)),
		Distance: joined("daily distance").Distance.Sum.over(1000), CaloriesActive: joined("daily active-energy-burned").Active.Sum.over(1),
		CaloriesTotal: v.Total.Sum.over(1),
	}
	if bpm := joined("daily-resting-heart-rate").Resting.BPM; bpm != nil {
		a.HeartRate = &healthdata.ActivityHeartRate{RestingBPM: bpm.over(1)}
	}
	out.Summary("activity", healthdata.SourceMultiple, a)
}

// sports are the types whose slug is not their own name.
var sports = map[string]string{"BIKING": "cycling", "WEIGHTLIFTING": "strength_training", "OTHER": "", "EXERCISE_TYPE_UNSPECIFIED": ""}

func readExercise(v *struct {
	point
	Exercise struct {
		Interval interval `json:"interval"`
		Type     string   `json:"exerciseType"`
		Title    *string  `json:"displayName"`
		Active   *seconds `json:"activeDuration"`
		Metrics  struct {
			KCal     *number `json:"caloriesKcal"`
			Distance *number `json:"distanceMillimeters"`
			Steps    *number `json:"steps"`
			HR       *number `json:"averageHeartRateBeatsPerMinute"`
			Climb    *number `json:"elevationGainMillimeters"`
			Speed    *number `json:"averageSpeedMillimetersPerSecond"`
			Zones    *struct {
				Light    seconds `json:"lightTime"`
				Moderate seconds `json:"moderateTime"`
				Vigorous seconds `json:"vigorousTime"`
				Peak     seconds `json:"peakTime"`
			} `json:"heartRateZoneDurations"`
		} `json:"metricsSummary"`
	} `json:"exercise"`
}, out *rest.Batch,
) {
	x := &v.Exercise
	sport, known := sports[x.Type]
	if !known {
		sport = strings.ToLower(x.Type)
	}
	w := &healthdata.Workout{
		Head: healthdata.Head{ExternalID: v.id()}, Title: x.Title, Sport: healthdata.SportOf(sport), TimeStart: x.Interval.Start.Time,
		TimeEnd: x.Interval.End.Time, TimezoneOffset: x.Interval.StartOffset.offset(), Calories: x.Metrics.KCal.over(1),
		Distance: x.Metrics.Distance.over(1000), Steps: rest.Round(x.Metrics.Steps.over(1)), AverageHR: rest.Round(x.Metrics.HR.over(1)),
		TotalElevationGain: x.Metrics.Climb.over(1000), AverageSpeed: x.Metrics.Speed.over(1000),
	}
	if x.Active != nil {
		w.MovingTime = rest.Ptr(int64(*x.Active))
	}
	if z := x.Metrics.Zones; z != nil {
		w.HRZones = []int64{int64(z.Light), int64(z.Moderate), int64(z.Vigorous), int64(z.Peak)}
	}
	out.Summary("workouts", v.source(out), w)
}

// stages are the stages of a sleep; the others are gaps.
var stages = map[string]healthdata.SleepStage{
	"AWAKE": healthdata.SleepStageAwake, "LIGHT": healthdata.SleepStageLight, "DEEP": healthdata.SleepStageDeep, "REM": healthdata.SleepStageREM,
	"RESTLESS": healthdata.SleepStageAwake, "ASLEEP": healthdata.SleepStageMissing,
}

func readSleep(v *struct {
	point
	Sleep struct {
		Interval interval `json:"interval"`
		Stages   []struct {
			Start rest.Instant `json:"startTime"`
			End   rest.Instant `json:"endTime"`
			Type  string       `json:"type"`
		} `json:"stages"`
		Summary struct {
			Asleep  *number `json:"minutesAsleep"`
			Awake   *number `json:"minutesAwake"`
			Latency *number `json:"minutesToFallAsleep"`
			Stages  []struct {
				Type    string `json:"type"`
				Minutes number `json:"minutes"`
			} `json:"stagesSummary"`
		} `json:"summary"`
		Metadata struct {
			Nap       bool  `json:"nap"`
			Processed *bool `json:"processed"`
		} `json:"metadata"`
	} `json:"sleep"`
}, out *rest.Batch,
) {
	x := &v.Sleep
	if x.Interval.End.IsZero() {
		return // it still runs
	}
	minutes := func(n *number) *int64 { return rest.Round(rest.Times(n.over(1), 60)) }
	lasted := func(n *number) int64 {
		if seconds := minutes(n); seconds != nil {
			return *seconds
		}
		return 0
	}
	s := &healthdata.Sleep{
		Head: healthdata.Head{ExternalID: v.id()}, BedtimeStart: x.Interval.Start.Time, BedtimeStop: x.Interval.End.Time,
		TimezoneOffset: x.Interval.EndOffset.offset(), Latency: minutes(x.Summary.Latency), Total: lasted(x.Summary.Asleep), Awake: lasted(x.Summary.Awake),
	}
	for i := range x.Summary.Stages {
		of := &x.Summary.Stages[i]
		switch of.Type {
		case "LIGHT":
			s.Light = lasted(&of.Minutes)
		case "DEEP":
			s.Deep = lasted(&of.Minutes)
		case "REM":
			s.REM = lasted(&of.Minutes)
		}
	}
	if x.Metadata.Nap {
		s.Type = healthdata.SleepNap
	}
	if x.Metadata.Processed != nil {
		s.State = rest.Ptr("confirmed")
		if !*x.Metadata.Processed {
			s.State = rest.Ptr("tentative")
		}
	}
	source := v.source(out)
	out.Summary("sleep", source, s)
	of := rest.Stages{}
	for _, part := range x.Stages {
		if stage, known := stages[part.Type]; known {
			of.Add(int64(part.Start.Sub(s.BedtimeStart.Time)/time.Second), int64(part.End.Sub(s.BedtimeStart.Time)/time.Second), stage)
		}
	}
	if len(of.Type) > 0 {
		out.Summary("sleep_cycle", source, &healthdata.SleepCycle{
			Head: healthdata.Head{ExternalID: v.id()}, SessionStart: s.BedtimeStart, SessionEnd: s.BedtimeStop,
			StageStartOffsetSecond: of.Start, StageEndOffsetSecond: of.End, StageType: of.Type,
		})
	}
}

// messages are the resources of a data type.
var messages = map[string][]string{
	"steps": {"steps", "activity"}, "distance": {"distance", "activity"}, "floors": {"floors_climbed", "activity"},
	"active-energy-burned": {"calories_active", "activity"}, "basal-energy-burned": {"calories_basal"}, "total-calories": {"activity"},
	"daily-resting-heart-rate": {"activity"}, "hydration-log": {"water"}, "heart-rate": {"heartrate"}, "heart-rate-variability": {"hrv"},
	"oxygen-saturation": {"blood_oxygen"}, "core-body-temperature": {"body_temperature"}, "blood-glucose": {"glucose"}, "weight": {"weight"},
	"body-fat": {"fat"}, "run-vo2-max": {"vo2_max"}, "height": {"profile"}, "exercise": {"workouts"}, "sleep": {"sleep", "sleep_cycle"},
}

// listen answers the handshake, or reads messages.
func listen(l *rest.Listening, m linking.Message) (linking.Heard, error) {
	if !rest.Same(rest.Header(&m, "Authorization"), l.VerifyToken) {
		return linking.Heard{}, rest.NotTheirs()
	}
	var hello struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(m.Body, &hello) == nil && hello.Type == "verification" {
		return linking.Heard{Status: http.StatusCreated}, nil
	}
	type message struct {
		Data struct {
			User      string `json:"healthUserId"`
			Type      string `json:"dataType"`
			Intervals []struct {
				Physical struct {
					Start rest.Instant `json:"startTime"`
				} `json:"physicalTimeInterval"`
			} `json:"intervals"`
		} `json:"data"`
	}
	all := make([]message, 1)
	if json.Unmarshal(m.Body, &all[0]) != nil && json.Unmarshal(m.Body, &all) != nil {
		return linking.Heard{}, rest.NotReadable()
	}
	heard := linking.Heard{Status: http.StatusNoContent}
	for i := range all {
		x := &all[i].Data
		if x.User == "" {
			return linking.Heard{}, rest.NotReadable()
		}
		n := linking.Announced{ExternalUserID: x.User, Resources: messages[x.Type]}
		if n.Resources == nil {
			continue // a type that is not read
		}
		// Values that change again are announced by equal messages.
		n.ID = fmt.Sprintf("%d %d %s", i, m.At.Truncate(time.Minute).Unix(), m.Body)
		for _, of := range x.Intervals {
			if at := of.Physical.Start.Time; !at.IsZero() && (n.Since.IsZero() || at.Before(n.Since)) {
				n.Since = at.UTC()
			}
		}
		heard.News = append(heard.News, n)
	}
	return heard, nil
}
