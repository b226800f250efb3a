// Package dexcom connects the Dexcom Web API v3: glucose of a sensor, glucose by hand,
// carbohydrates, insulin, exercise and notes.
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
//	events        carbohydrates (g), insulin_injection (units), workout_duration (min),
//	              note (notes, and what is said of the health), glucose by finger; source app
//	devices       device
//
// Instants are systemTime, the device's clock in UTC. The offset is that of displayTime; for
// receivers, whose texts have none, it is displayTime minus systemTime to the quarter of an
// hour. Values outside of 40 to 400 mg/dL arrive as the limit with a status low or high and
// are kept as they come. A record without a value or with an unknown unit is left out. Exercise
// that is light, medium or heavy has the intensity low, medium or high. An event that was deleted
// removes its sample; other records replace those of their instant. Alerts have no place in the
// catalogue.
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
	"math"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Region is a host of Dexcom.
type Region string

// Regions of accounts.
const (
	// UnitedStates is for accounts of the United States.
	UnitedStates Region = "us"
	// Europe is for accounts outside of the United States and Japan.
	Europe Region = "eu"
	// Japan is for accounts of Japan.
	Japan Region = "jp"
	// Sandbox has fixed test users who sign in without a password.
	Sandbox Region = "sandbox"
)

var hosts = map[Region]string{
	UnitedStates: "https://api.dexcom.com", Europe: "https://api.dexcom.eu", Japan: "https://api.dexcom.jp",
	Sandbox: "https://sandbox-api.dexcom.com",
}

// Slug returns the slug of the provider: dexcom for the United States, otherwise dexcom_ and the region.
func (r Region) Slug() string {
	if r == UnitedStates {
		return "dexcom"
	}
	return "dexcom_" + string(r)
}

// window requests at most 29 days of systemTime, including the start and excluding the end. The API allows 30 days.
var window = rest.Range{From: "startDate", To: "endDate", Format: rest.Zoneless, Max: 29 * rest.Day}

var kinds = []rest.Collection{
	{Name: "egvs", Path: "/v3/users/self/egvs", Range: window, Items: "records", Resources: []string{"glucose"}, Read: rest.Each(readEGV)},
	{Name: "calibrations", Path: "/v3/users/self/calibrations", Range: window, Items: "records", Resources: []string{"glucose"}, Read: rest.Each(readCalibration)},
	{
		Name: "events", Path: "/v3/users/self/events", Range: window, Items: "records",
		Resources: []string{"carbohydrates", "insulin_injection", "workout_duration", "note", "glucose"}, Read: rest.Each(readEvent),
	},
	{Name: "devices", Path: "/v3/users/self/devices", Items: "records", Resources: []string{"device"}, Read: rest.Each(readDevice)},
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
			Slug: r.Slug(), Name: "Dexcom (" + string(r) + ")", Group: "cgm", AuthType: "oauth", OAuthVersion: 2, Category: "device", Class: "cloud",
			UpdateModel: "poll", Description: "Continuous glucose monitors.",
			Backfill:   healthdata.Backfill{DefaultDays: 90, MaxDays: 365, Configurable: true, Mode: "pull"},
			RateLimits: healthdata.RateLimits{App: []healthdata.RateLimit{{Requests: 60_000, Seconds: 3600, Burst: 100}}},
		},
		OAuth: rest.OAuth{
			AuthorizeURL: host + "/v2/oauth2/login", TokenURL: host + "/v2/oauth2/token", Minimum: scopes,
			Account: rest.AccountAt(host+"/v3/users/self/dataRange", "userId"),
		},
		BaseURL: host, Collections: append([]rest.Collection(nil), kinds...),
	}
	for i := range d.Collections {
		d.Collections[i].Scopes = scopes
	}
	return d
}

// Record returns the region's catalogue record. The caller may change it.
func Record(r Region) healthdata.Provider { return define(r).Record() }

// New returns the connector of a region. See [rest.New].
func New(r Region, client rest.Client, opts *rest.Options) (*rest.Connector, error) {
	return rest.New(define(r), client, opts)
}

// Read decodes a stored page of the collection kind: egvs, calibrations, events or devices. See [rest.Definition.Read].
func Read(kind string, page []byte) (rest.Data, error) { return define(Europe).Read(kind, page) }

// record holds the fields of all records.
type record struct {
	SystemTime            rest.Instant `json:"systemTime"`
	DisplayTime           rest.Instant `json:"displayTime"`
	Value                 *rest.Float  `json:"value"`
	Unit                  string       `json:"unit"`
	TransmitterID         *string      `json:"transmitterId"`
	TransmitterGeneration string       `json:"transmitterGeneration"`
}

// device returns the transmitter; nil if it is unknown.
func (r *record) device() *healthdata.DeviceInfo {
	g := r.TransmitterGeneration
	if g == "" || g == "unknown" {
		return nil
	}
	return &healthdata.DeviceInfo{Manufacturer: rest.Ptr("Dexcom"), Model: &g, ID: r.TransmitterID}
}

// sample returns the sample of a record. unit is the unit of the value. ok is false if the record has no value or no
// known unit. It is also false if the record has no time or an unreadable value, which is reported to out.
func (r *record) sample(out *rest.Batch, unit string) (s healthdata.Sample, ok bool) {
	v := r.Value.Value()
	switch {
	case r.SystemTime.IsZero():
		out.Problem("missing", "must be set", "systemTime")
		return s, false
	case r.Value != nil && v == nil:
		out.Problem("number", "must be a number", "value")
		return s, false
	case v == nil || unit == "" || unit == "unknown":
		return s, false
	}
	return healthdata.Sample{Timestamp: r.SystemTime.Time, TimezoneOffset: r.offset(), Unit: unit, Value: healthdata.Number(*v)}, true
}

// offset returns the UTC offset of displayTime in seconds east. If displayTime has no offset, it is the difference
// between displayTime and systemTime, to the quarter of an hour; nil if that is more than 14 hours or displayTime is
// absent.
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
		out.Device(r.device())
		out.Sample("glucose", healthdata.SourceAutomatic, s)
	}
}

func readCalibration(r *record, out *rest.Batch) {
	if s, ok := r.sample(out, r.Unit); ok {
		out.Sample("glucose", healthdata.SourceFingerprick, s)
	}
}

func readDevice(r *record, out *rest.Batch) {
	if d := r.device(); d != nil {
		out.Listed(healthdata.SourceAutomatic, *d)
	}
}

type event struct {
	record
	Value   rest.ID `json:"value"` // a number or, for notes, a text
	Status  string  `json:"eventStatus"`
	Type    string  `json:"eventType"`
	SubType string  `json:"eventSubType"`
}

// events maps types of events to resources and units. An empty unit means the unit of the record.
var events = map[string]struct{ resource, unit string }{
	"carbs": {"carbohydrates", "g"}, "insulin": {"insulin_injection", "unit"}, "exercise": {"workout_duration", "min"},
	"bloodGlucose": {"glucose", ""}, "health": {"note", "text"}, "notes": {"note", "text"}, "note": {"note", "text"},
}

// insulins maps the insulin subtypes to insulin types and delivery modes.
var insulins = map[string]struct{ kind, mode string }{"fastActing": {"rapid_acting", "bolus"}, "longActing": {"long_acting", "basal"}}

// intensities maps the subtypes of exercise to intensities.
var intensities = map[string]string{"light": "low", "medium": "medium", "heavy": "high"}

func readEvent(e *event, out *rest.Batch) {
	of, known := events[e.Type]
	if !known {
		return // the catalogue has no resource for this type
	}
	out.About(of.resource)
	insulin, injected := insulins[e.SubType]
	switch {
	case of.resource == "insulin_injection" && !injected:
		out.Problem("enum", "must be fastActing or longActing", "eventSubType")
		return
	case e.Status == "deleted":
		d := linking.DeletedRecord{At: e.SystemTime.Time}
		if of.resource == "insulin_injection" {
			d.Type = insulin.kind
		}
		out.Delete(of.resource, healthdata.SourceApp, d)
		return
	case of.resource == "note":
		e.note(out)
		return
	}
	if e.Value != "" {
		v := rest.Float(math.NaN())
		_ = v.UnmarshalJSON([]byte(e.Value)) // a text without a number leaves NaN
		e.record.Value = &v
	}
	if of.unit == "" {
		of.unit = e.Unit
	}
	s, ok := e.sample(out, of.unit)
	if !ok {
		return
	}
	switch of.resource {
	case "insulin_injection":
		s.Type, s.DeliveryMode, s.DeliveryForm = &insulin.kind, &insulin.mode, rest.Ptr("standard")
	case "workout_duration":
		end := healthlab.At(s.Timestamp.Add(time.Duration(s.Value.Number * float64(time.Minute))))
		s.Start, s.End = &s.Timestamp, &end
		if intensity, ok := intensities[e.SubType]; ok {
			s.Intensity = &intensity
		}
	}
	out.Sample(of.resource, healthdata.SourceApp, s)
}

// note adds the note of a notes or health event as a sample.
func (e *event) note(out *rest.Batch) {
	text := strings.TrimSpace(e.Value.String())
	if text == "" || e.Type == "health" {
		text = rest.Slug(e.SubType)
	}
	if text == "" || e.SystemTime.IsZero() {
		return
	}
	out.Sample("note", healthdata.SourceApp, healthdata.Sample{
		Timestamp: e.SystemTime.Time, TimezoneOffset: e.offset(), Unit: "text", Value: healthdata.Text(text), Tags: []string{"unspecified"},
	})
}
