// Package googlehealth connects the Google Health API v4: steps, heart rate and other
// measurements, daily activity, exercises with their tracks, sleep with its stages, food,
// electrocardiograms and devices.
//
//	connector, err := googlehealth.New(rest.Client{ID: id, Secret: secret}, &rest.Options{VerifyToken: authorization})
//	connectors[googlehealth.Slug] = connector.Flows()
//
// # What is read
//
//	steps, distance, floors, active-energy-burned, basal-energy-burned, hydration-log
//	                        steps, distance (mm), floors_climbed, calories_active and
//	                        calories_basal (kcal), water (ml)
//	heart-rate, heart-rate-variability, oxygen-saturation, core-body-temperature,
//	blood-glucose, weight, body-fat, vo2-max, run-vo2-max, respiratory-rate-sleep-summary
//	                        heartrate (bpm), hrv (RMSSD, ms), blood_oxygen (%), body_temperature
//	                        (°C), glucose (mg/dL), weight (g), fat (%), vo2_max (mL/kg/min),
//	                        respiratory_rate (per minute)
//	daily-vo2-max           vo2_max at noon of the day
//	height                  profile (cm), the last one
//	daily total-calories    activity of each day, joined with the days of steps, distance, floors,
//	                        active energy and the resting heart rate
//	exercise                workouts (m, m/s, kcal), four zones in seconds
//	exercise-tcx            workout_stream: the TCX file of each exercise
//	sleep                   sleep, sleep_cycle; joined with the HRV (RMSSD, ms), breathing and
//	                        temperature of its day
//	daily-sleep-temperature-derivations
//	                        body_temperature_delta (°C) of the day's sleep: night minus baseline
//	nutrition-log           meal (kcal, g), one for each food
//	electrocardiogram       electrocardiogram, electrocardiogram_voltage (mV, lead_1)
//	irregular-rhythm-notification
//	                        heart_rate_alert of the type irregular_rhythm
//	pairedDevices           device
//
// Instants are UTC with an offset in seconds; numbers may be texts, and durations are texts such
// as 90s. Lists have the points of each device and app side by side: the source and the device of
// each are kept, and the library merges them where it adds up. Days are those of the person's
// clock. Exercises and sleep are known by their name, and later answers replace earlier ones; a
// sleep that still runs is left out, and one that is not processed is tentative. A nap takes no
// values of its day. In a stored page the sleep is not known: values of a day stand at noon UTC,
// and sums of a day make an activity of their own. Active minutes, zones of a day and altitude
// have no place in the catalogue.
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
// roll-ups, of values of a day, of food, electrocardiograms, notifications and devices,
// physicalTimeInterval in messages. Not tried against the service: the filters of hydration-log
// and nutrition-log, PKCE with a secret, that renewals give no refresh token, the revocation,
// identity of points without a name.
package googlehealth

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Slug is the slug of the provider.
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
	place    = scope + "location.readonly"
	settings = scope + "settings.readonly"
	ecg      = scope + "ecg.readonly"
	rhythm   = scope + "irn.readonly"
)

// list returns a collection that lists the points of the data type name. field is the time field in such a point that
// the filter compares, size the page size, and r the rest of the range.
func list(name, scope, field, size string, r rest.Range, read func(json.RawMessage, *rest.Batch), resources ...string) rest.Collection {
	field = strings.ReplaceAll(name, "-", "_") + "." + field
	r.From, r.Filter = "filter", field+` >= "{from}" AND `+field+` < "{to}"`
	return rest.Collection{
		Name: name, Scopes: []string{scope}, Path: types + name + "/dataPoints", Query: url.Values{"pageSize": {size}}, Range: r,
		Pages: rest.Cursor("pageToken", "nextPageToken"), Items: "dataPoints", Messages: []string{name}, Resources: resources, Read: read,
	}
}

var definition = &rest.Definition{
	Provider: healthdata.Provider{
		Slug: Slug, Name: "Google Health", Group: "wearable", AuthType: "oauth", OAuthVersion: 2, Category: "device", Class: "cloud", UpdateModel: "hybrid",
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
		Account: rest.AccountAt(identity, "healthUserId"),
	},
	BaseURL:     base,
	Collections: slices.Concat(points, days, sessions),
	Listen:      listen,
}

// Record returns the provider's catalogue record. The caller may change it.
func Record() healthdata.Provider { return definition.Record() }

// New returns the connector. See [rest.New].
func New(client rest.Client, opts *rest.Options) (*rest.Connector, error) {
	return rest.New(definition, client, opts)
}

// Read decodes a stored page. kind is the name of the collection, which for most is the data type. See
// [rest.Definition.Read].
func Read(kind string, page []byte) (rest.Data, error) { return definition.Read(kind, page) }

// seconds is a duration that is written as a text such as 90s or -3600s.
type seconds float64

// UnmarshalJSON reads a duration. Null leaves the value unchanged.
func (s *seconds) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	v, err := strconv.ParseFloat(strings.TrimSuffix(strings.Trim(string(b), `"`), "s"), 64)
	if err != nil {
		return &json.UnmarshalTypeError{Value: "string"}
	}
	*s = seconds(v)
	return nil
}

// wholeSeconds returns the duration rounded to whole seconds; 0 for nil and for a malformed duration.
func (s *seconds) wholeSeconds() int64 {
	n := rest.Round((*float64)(s))
	if n == nil {
		return 0
	}
	return *n
}

func (s *seconds) offset() *int {
	if s == nil {
		return nil
	}
	return rest.Ptr(int(s.wholeSeconds()))
}

type interval struct {
	Start       rest.Instant `json:"startTime"`
	End         rest.Instant `json:"endTime"`
	StartOffset *seconds     `json:"startUtcOffset"`
	EndOffset   *seconds     `json:"endUtcOffset"`
}

func (i *interval) offsets() healthdata.SessionOffsets {
	return healthdata.SessionOffsets{StartTimezoneOffset: i.StartOffset.offset(), EndTimezoneOffset: i.EndOffset.offset()}
}

type civil struct {
	Year  int `json:"year"`
	Month int `json:"month"`
	Day   int `json:"day"`
}

// date returns the day; zero if a part is missing or there is no such day.
func (c civil) date() healthlab.Date {
	d := healthlab.Date{Year: c.Year, Month: time.Month(c.Month), Day: c.Day}
	if c.Year < 1 || healthlab.DateOf(d.At(time.UTC)) != d {
		return healthlab.Date{}
	}
	return d
}

// point holds the fields that points of all data types have.
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

// forms maps the form of a device to a source type.
var forms = map[string]healthdata.SourceType{
	"WATCH": healthdata.SourceWatch, "FITNESS_BAND": healthdata.SourceWatch, "RING": healthdata.SourceRing, "PHONE": healthdata.SourcePhone,
	"SCALE": healthdata.SourceScale, "CHEST_STRAP": healthdata.SourceChestStrap,
}

// source sets the device of a point, and returns its source type.
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

func (p *point) id() string { return p.Name[strings.LastIndexByte(p.Name, '/')+1:] }

// camel converts a data type such as heart-rate to the name of its member in a point, heartRate.
func camel(name string) string {
	words := strings.Split(name, "-")
	for i := range words[1:] {
		words[i+1] = strings.ToUpper(words[i+1][:1]) + words[i+1][1:]
	}
	return strings.Join(words, "")
}

// listen responds to the verification request of a subscription, or reads messages.
func listen(l *rest.Listening, m linking.Message) (linking.ListenResult, error) {
	if !rest.Same(rest.Header(&m, "Authorization"), l.VerifyToken) {
		return linking.ListenResult{}, rest.NotTheirs()
	}
	var hello struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(m.Body, &hello) == nil && hello.Type == "verification" {
		return linking.ListenResult{Status: http.StatusCreated}, nil
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
		return linking.ListenResult{}, rest.NotReadable()
	}
	result := linking.ListenResult{Status: http.StatusNoContent}
	for i := range all {
		x := &all[i].Data
		if x.User == "" {
			return linking.ListenResult{}, rest.NotReadable()
		}
		n := linking.Notification{ExternalUserID: x.User, Resources: l.Announced(x.Type)}
		if n.Resources == nil {
			continue // a data type that is not read
		}
		// A value that changes again is announced by an equal message, so the time distinguishes them.
		n.ID = fmt.Sprintf("%d %d %s", i, m.At.Truncate(time.Minute).Unix(), m.Body)
		for _, of := range x.Intervals {
			if at := of.Physical.Start.Time; !at.IsZero() && (n.Since.IsZero() || at.Before(n.Since)) {
				n.Since = at.UTC()
			}
		}
		result.Notifications = append(result.Notifications, n)
	}
	return result, nil
}
