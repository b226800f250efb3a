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
//	heart_list           the list of electrocardiograms; alone in stored pages: electrocardiogram
//	                     without voltages, blood_pressure
//	heart_get            electrocardiogram, electrocardiogram_voltage (in µV, lead_1)
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
// of an electrocardiogram is read from getmeas alone, but in a stored page. A stored heart_get has
// no instant: its voltages begin at 1970-01-01T00:00:00Z. SDNN, vascular age, nerve health and
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
	"net/url"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Slug is the slug of the provider.
const Slug = "withings"

var (
	pages    = rest.More("offset", "body.offset", "body.more")
	days     = rest.Range{From: "startdateymd", To: "enddateymd", Days: true, Before: rest.Day, After: rest.Day}
	instants = rest.Range{From: "startdate", To: "enddate", Format: rest.Unix}
	oneDay   = rest.Range{From: "startdate", To: "enddate", Format: rest.Unix, Max: rest.Day}

	metrics  = []string{"user.metrics"}
	activity = []string{"user.activity"}
)

// action returns the form of a request. name is the value of the parameter action, and fields that of data_fields.
func action(name string, fields ...string) url.Values {
	q := url.Values{"action": {name}}
	if len(fields) > 0 {
		q.Set("data_fields", strings.Join(fields, ","))
	}
	return q
}

// kinds lists all collections.
var kinds = slices.Concat(measured, active, asleep, heart, hardwares)

var definition = &rest.Definition{
	Provider: healthdata.Provider{
		Slug: Slug, Name: "Withings", Group: "wearable", AuthType: "oauth", OAuthVersion: 2, Category: "device", Class: "cloud", UpdateModel: "hybrid",
		Description: "Weight, blood pressure, sleep and activity of scales, cuffs, mats and watches.",
		Backfill:    healthdata.Backfill{DefaultDays: 90, MaxDays: 365, Configurable: true, Mode: "pull"},
		RateLimits:  healthdata.RateLimits{App: []healthdata.RateLimit{{Requests: 120, Seconds: 60, Burst: 5}}},
	},
	OAuth: rest.OAuth{
		AuthorizeURL: "https://account.withings.com/oauth2_user/authorize2", TokenURL: base + "/v2/oauth2", ScopeSeparator: ",",
		TokenParams: map[string]string{"action": "requesttoken"}, TokenBody: tokenBody, TokenSeconds: 10_800,
		Minimum: []string{"user.metrics"}, Revoke: revoke, Account: account,
	},
	BaseURL:     base,
	Collections: kinds,
	Refused:     refused, Listen: listen,
}

// Record returns the provider's catalogue record. The caller may change it.
func Record() healthdata.Provider { return definition.Record() }

// New returns the connector. See [rest.New].
func New(client rest.Client, opts *rest.Options) (*rest.Connector, error) {
	return rest.New(definition, client, opts)
}

// Read decodes a stored response. kind is the name of the collection. See [rest.Definition.Read].
func Read(kind string, page []byte) (rest.Data, error) { return definition.Read(kind, page) }

// Files in the order of reading: each uses those before it.
//
//	message.go answer.go grant.go withings.go hardware.go measures.go sports.go night.go heart.go activity.go
