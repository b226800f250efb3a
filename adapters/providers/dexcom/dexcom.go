// Package dexcom connects the Dexcom Web API v3: glucose of a sensor, glucose by hand,
// carbohydrates and insulin.
//
//	connector, err := dexcom.New(dexcom.Europe, rest.Client{ID: id, Secret: secret}, nil)
//	connectors[dexcom.Europe.Slug()] = connector.Flows()
//
// An account belongs to one of three hosts, and no call says which: each [Region] is a
// provider of its own.
//
// # What is read
//
//	egvs          glucose, source automatic, at systemTime, in the unit of the record
//	calibrations  glucose, source fingerprick
//	events        carbohydrates (g), insulin_injection (units), glucose by finger; source app
//
// Instants are systemTime, the device's clock in UTC. The offset is that of displayTime; for
// receivers, whose texts have none, it is displayTime minus systemTime to the quarter of an
// hour. Values outside of 40 to 400 mg/dL arrive as the limit with a status low or high and
// are kept as they come. A record without a value or with an unknown unit is left out. An
// event that was deleted removes its sample; other records replace those of their instant.
//
// # How sure this is
//
// Documented: paths, fields, the 30 days of a request, the limit of 60,000 requests an hour.
// From client code: renewal rotates the refresh token; data of phones arrives one to three
// hours late. Not tried against the service: times without a zone in a query, sub types of
// events, the addresses below /v2/oauth2 as those of v3, a renewal without redirect_uri.
// There is no message and no way to revoke a grant.
package dexcom

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab/adapters/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Region is a host of Dexcom.
type Region string

// The regions.
const (
	// UnitedStates is for accounts of the United States.
	UnitedStates Region = "us"
	// Europe is for accounts outside of the United States and Japan.
	Europe Region = "eu"
	// Japan is for accounts of Japan.
	Japan Region = "jp"
	// Sandbox has fixed test people who sign in without a password.
	Sandbox Region = "sandbox"
)

var hosts = map[Region]string{
	UnitedStates: "https://api.dexcom.com", Europe: "https://api.dexcom.eu", Japan: "https://api.dexcom.jp",
	Sandbox: "https://sandbox-api.dexcom.com",
}

// Slug is the provider's slug: dexcom for the United States, else with the region behind.
func (r Region) Slug() string {
	if r == UnitedStates {
		return "dexcom"
	}
	return "dexcom_" + string(r)
}

// window asks for what systemTime says: from the start, to before the end, at most 30 days.
var window = rest.Range{From: "startDate", To: "endDate", Format: rest.Zoneless, Max: 29 * rest.Day}

var kinds = []rest.Kind{
	{Name: "egvs", Path: "/v3/users/self/egvs", Range: window, Items: "records", Resources: []string{"glucose"}, Read: rest.Each(readEGV)},
	{Name: "calibrations", Path: "/v3/users/self/calibrations", Range: window, Items: "records", Resources: []string{"glucose"}, Read: rest.Each(readCalibration)},
	{
		Name: "events", Path: "/v3/users/self/events", Range: window, Items: "records",
		Resources: []string{"carbohydrates", "insulin_injection", "glucose"}, Read: rest.Each(readEvent),
	},
}

// define returns the definition of a region. An unknown region has the hosts of Europe.
func define(r Region) *rest.Definition {
	host := hosts[r]
	if host == "" {
		r, host = Europe, hosts[Europe]
	}
	scopes := []string{"offline_access"}
	d := &rest.Definition{
		Provider: healthdata.Provider{
			Slug: r.Slug(), Name: "Dexcom (" + string(r) + ")", Group: "cgm", AuthType: "oauth", OAuthVersion: 2, SourceType: "device", Class: "cloud",
			UpdateModel: "poll", Description: "Continuous glucose monitors.",
			Backfill:   healthdata.Backfill{DefaultDays: 90, MaxDays: 365, Configurable: true, Mode: "pull"},
			RateLimits: healthdata.RateLimits{App: []healthdata.RateLimit{{Requests: 60_000, Seconds: 3600, Burst: 100}}},
		},
		OAuth: rest.OAuth{
			AuthorizeURL: host + "/v2/oauth2/login", TokenURL: host + "/v2/oauth2/token", Minimum: scopes,
			Account: func(ctx context.Context, s *rest.SignedIn) (string, error) {
				a, err := s.Do(ctx, http.MethodGet, host+"/v3/users/self/dataRange", nil)
				if err != nil {
					return "", err
				}
				return rest.AccountIn(a.Body, "userId")
			},
		},
		BaseURL: host, Kinds: append([]rest.Kind(nil), kinds...),
	}
	for i := range d.Kinds {
		d.Kinds[i].Scopes = scopes
	}
	return d
}

// Record returns the region's record for the catalogue. It is the caller's to change.
func Record(r Region) healthdata.Provider { return define(r).Record() }

// New returns the connector of a region. See [rest.New].
func New(r Region, client rest.Client, opts *rest.Options) (*rest.Connector, error) {
	return rest.New(define(r), client, opts)
}

// Read decodes a stored page of egvs, calibrations or events. See [rest.Definition.Read].
func Read(kind string, page []byte) (rest.Data, error) { return define(Europe).Read(kind, page) }

// record is what all records have in common.
type record struct {
	SystemTime            rest.Instant `json:"systemTime"`
	DisplayTime           rest.Instant `json:"displayTime"`
	Value                 *figure      `json:"value"`
	Unit                  string       `json:"unit"`
	TransmitterID         *string      `json:"transmitterId"`
	TransmitterGeneration string       `json:"transmitterGeneration"`
}

// figure is a number; events write it as a text. Not a number is a text that holds none.
type figure float64

// UnmarshalJSON reads a number or a text that holds one.
func (f *figure) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if err != nil {
		v = math.NaN()
	}
	*f = figure(v)
	return nil
}

var manufacturer = "Dexcom"

// sample is the record's sample. ok is false if it has no value.
func (r *record) sample(out *rest.Batch, unit string) (s healthdata.Sample, ok bool) {
	if r.SystemTime.IsZero() {
		out.Problem("missing", "a record needs its systemTime", "systemTime")
		return s, false
	}
	if r.Value != nil && math.IsNaN(float64(*r.Value)) {
		out.Problem("number", "must be a number", "value")
		return s, false
	}
	if r.Value == nil || unit == "" || unit == "unknown" {
		return s, false
	}
	s = healthdata.Sample{Timestamp: r.SystemTime.Time, TimezoneOffset: r.offset(), Unit: unit, Value: healthdata.Number(float64(*r.Value))}
	if g := r.TransmitterGeneration; g != "" && g != "unknown" {
		out.Device(&healthdata.DeviceInfo{Manufacturer: &manufacturer, Model: &g, ID: r.TransmitterID})
	}
	return s, true
}

// offset is seconds east of UTC; nil if the record does not say.
func (r *record) offset() *int {
	switch d := r.DisplayTime.Sub(r.SystemTime.Time.Time).Round(15 * time.Minute); {
	case r.DisplayTime.IsZero():
		return nil
	case r.DisplayTime.Offset != nil:
		return r.DisplayTime.Offset
	case d > 14*time.Hour || d < -14*time.Hour:
		return nil
	default:
		return rest.Ptr(int(d / time.Second))
	}
}

func readEGV(r *record, out *rest.Batch) {
	if s, ok := r.sample(out, r.Unit); ok {
		out.Sample("glucose", healthdata.SourceAutomatic, s)
	}
}

func readCalibration(r *record, out *rest.Batch) {
	r.TransmitterGeneration = "" // the value is of a finger, not of the sensor
	if s, ok := r.sample(out, r.Unit); ok {
		out.Sample("glucose", healthdata.SourceFingerprick, s)
	}
}

type event struct {
	record
	Status  string  `json:"eventStatus"`
	Type    string  `json:"eventType"`
	SubType *string `json:"eventSubType"`
}

// insulins are the sub types of insulin, as types of the catalogue and how they are given.
var insulins = map[string][2]string{"fastActing": {"rapid_acting", "bolus"}, "longActing": {"long_acting", "basal"}}

func readEvent(e *event, out *rest.Batch) {
	var resource string
	unit, insulin := e.Unit, [2]string{}
	switch e.Type {
	case "carbs":
		resource, unit = "carbohydrates", "g"
	case "insulin":
		if e.SubType != nil {
			insulin = insulins[*e.SubType]
		}
		if insulin[0] == "" {
			return
		}
		resource, unit = "insulin_injection", "unit"
	case "bloodGlucose":
		resource = "glucose"
	default:
		return // exercise, health and notes have no amount that the catalogue has
	}
	e.TransmitterGeneration = ""
	if e.Status == "deleted" {
		out.Delete(resource, healthdata.SourceApp, linking.Deleted{At: e.SystemTime.Time, Type: insulin[0]})
		return
	}
	s, ok := e.sample(out, unit)
	if !ok {
		return
	}
	if resource == "insulin_injection" {
		s.Type, s.DeliveryMode, s.DeliveryForm, s.BolusPurpose = rest.Ptr(insulin[0]), rest.Ptr(insulin[1]), rest.Ptr("standard"), nil
	}
	out.Sample(resource, healthdata.SourceApp, s)
}
