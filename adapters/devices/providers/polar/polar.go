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
// One webhook for the client, signed with HMAC-SHA256. The key is shown once, when the webhook
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
	"net/http"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Slug is the slug of the provider.
const Slug = "polar"

const (
	base  = "https://www.polaraccesslink.com"
	users = "/v3/users"
)

var (
	scopes  = []string{"accesslink.read_all"}
	missing = []int{http.StatusNotFound}
	// wholeDays requests at most 28 days, including the first and the last.
	wholeDays = rest.Range{From: "from", To: "to", Days: true, Max: 27 * rest.Day}
	// utcDays requests days in UTC. They can differ from the days of the person, so a day before and a day after are
	// requested too.
	utcDays = rest.Range{From: "from", To: "to", Days: true, Before: rest.Day, After: rest.Day, Max: 27 * rest.Day}
)

var definition = &rest.Definition{
	Provider: healthdata.Provider{
		Slug: Slug, Name: "Polar", Group: "wearable", AuthType: "oauth", OAuthVersion: 2, Category: "device", Class: "cloud", UpdateModel: "hybrid",
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
	BaseURL:     base,
	Collections: slices.Concat(workouts, nights, days, measurements),
	Rates:       rates, Listen: listen, MessageKey: "webhook_key",
	Wait: func(h http.Header, now time.Time) time.Duration {
		if r := rates(h, now); len(r) > 0 {
			return r[0].Reset.Sub(now)
		}
		return 0
	},
}

// Record returns the provider's catalogue record. The caller may change it.
func Record() healthdata.Provider { return definition.Record() }

// New returns the connector. See [rest.New].
func New(client rest.Client, opts *rest.Options) (*rest.Connector, error) {
	return rest.New(definition, client, opts)
}

// Read decodes a stored page. kind is the name of the collection. See [rest.Definition.Read].
func Read(kind string, page []byte) (rest.Data, error) { return definition.Read(kind, page) }

const watch = healthdata.SourceWatch
