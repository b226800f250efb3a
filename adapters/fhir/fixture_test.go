package fhir_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fhir"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/documents"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

const base = "https://api.example.com/fhir/r4"

// clinic is a service with a team of two people, and another team with one.
type clinic struct {
	t       *testing.T
	s       *service.Service
	config  fhir.Config
	handler http.Handler
	logs    *lines
	team    healthlab.TeamID
	other   healthlab.TeamID
	ann     healthlab.UserID // has vital signs and an order with results
	ben     healthlab.UserID // has vital signs
	foreign healthlab.UserID
	order   orders.OrderID
	visited orders.OrderID      // another one of ann, with a physician and an appointment
	scopes  organisation.Scopes // of the key of the team
	at      time.Time           // the clock of FHIR; zero for the real one
}

// personal are the types that are searched by person.
var personal = []string{
	"Observation", "DiagnosticReport", "ServiceRequest", "Specimen", "Appointment", "Provenance", "Coverage", "Device", "Consent", "DocumentReference",
}

// printer lays out documents as files of nothing but a title.
type printer struct{}

func (printer) Print(_ context.Context, d documents.Document) ([]byte, error) {
	return []byte("%PDF-" + d.Title), nil
}

// lines is a log that many may write to.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// days is how many days of vital signs people have, until yesterday.
const days = 3

func newClinic(t *testing.T) *clinic {
	t.Helper()
	c := &clinic{t: t, logs: &lines{}, team: healthlab.TeamID{UUID: uuid.New()}, other: healthlab.TeamID{UUID: uuid.New()}}
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual", Category: "app", Class: "manual", Resources: resources()}})
	require.NoError(t, err)
	book, err := sandbox.Catalogue()
	require.NoError(t, err)
	registry, err := sandbox.Registry()
	require.NoError(t, err)
	store := memory.New(nil)
	c.s, err = service.New(t.Context(), service.Config{
		AllowPlaintext: true, Environment: healthlab.Sandbox, URL: "https://api.example.com", Stores: store.Stores, Files: store.Blobs(),
		Secret: bytes.Repeat([]byte{7}, 32), Providers: providers, Catalogue: book, Laboratory: sandbox.NewLab(nil),
		Orders: orders.Options{Registry: registry}, Printer: printer{},
		Log: slog.New(slog.NewTextHandler(c.logs, nil)),
		HTTP: httpapi.Config{Authenticate: func(r *http.Request) (httpapi.Caller, error) {
			switch r.Header.Get("x-service-api-key") {
			case "team":
				return httpapi.Caller{Team: c.team, Scopes: c.scopes}, nil
			case "other":
				return httpapi.Caller{Team: c.other}, nil
			case "bound":
				return httpapi.Caller{Team: c.team, User: c.ben}, nil
			}
			return httpapi.Caller{}, healthlab.Unauthenticated
		}},
	})
	require.NoError(t, err)
	c.config = fhir.Config{API: c.s.API(), URL: base, Health: c.s.Health, Aggregate: c.s.Aggregate, Orders: c.s.Orders, Documents: c.s.Documents, Exports: store.Blobs(), Now: c.now}
	c.handler, err = fhir.Handler(c.config)
	require.NoError(t, err)
	c.ann, c.ben, c.foreign = c.person(c.team, "ann"), c.person(c.team, "ben"), c.person(c.other, "eve")
	c.order = c.result(c.ann)
	c.enrich(c.ann)
	return c
}

func (c *clinic) now() time.Time {
	if c.at.IsZero() {
		return time.Now()
	}
	return c.at
}

func resources() (out []healthdata.ProviderResource) {
	for _, r := range healthdata.Resources() {
		out = append(out, healthdata.ProviderResource{Resource: r.Slug})
	}
	return out
}

// person makes a user with days of every vital sign.
func (c *clinic) person(team healthlab.TeamID, name string) healthlab.UserID {
	c.t.Helper()
	ctx := c.t.Context()
	u, err := c.s.Health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: name})
	require.NoError(c.t, err)
	_, err = c.s.Health.Connections().ConnectLinked(ctx, team, u.ID, healthdata.NewConnection{Provider: "manual"})
	require.NoError(c.t, err)
	for resource, value := range map[string]float64{
		"heartrate": 61.5, "respiratory_rate": 14, "blood_oxygen": 97, "body_temperature": 36.6, "weight": 71.25, "body_mass_index": 22.4, "blood_pressure": 0,
	} {
		var list []healthdata.Sample
		for d := range days {
			at := healthlab.At(noon(d))
			x := healthdata.Sample{Timestamp: at, Unit: healthdata.ResourceBySlug(resource).Unit}
			if resource == "blood_pressure" {
				up, down := 121.0, 79.0
				x.Systolic, x.Diastolic = &up, &down
			} else {
				x.Value = &healthdata.Value{Number: value + float64(d)}
			}
			if healthdata.ResourceBySlug(resource).Shape == healthdata.Interval {
				x.Start, x.End = &at, &at
			}
			list = append(list, x)
		}
		_, err := c.s.Health.IngestSamples(ctx, team, u.ID, resource, healthdata.Upload{Provider: "manual", Stage: healthdata.StageDaily, Source: healthdata.Source{Type: "app"}}, list)
		require.NoError(c.t, err, resource)
	}
	return u.ID
}

// live stores what the sandbox's devices measure of a person in days until yesterday.
func (c *clinic) live(user healthlab.UserID, days int) {
	c.t.Helper()
	today := healthlab.DateOf(time.Now().UTC())
	for n := range days {
		day := sandbox.Provider{}.Day(user, today.AddDays(n-days), time.UTC)
		for _, resource := range []string{
			"heartrate", "respiratory_rate", "blood_oxygen", "body_temperature", "weight", "body_mass_index", "blood_pressure", "glucose",
			"hrv", "steps", "distance", "calories_active",
		} {
			source, samples := day.Samples(resource)
			if len(samples) == 0 {
				continue
			}
			_, err := c.s.Health.IngestSamples(c.t.Context(), c.team, user, resource, healthdata.Upload{Provider: "manual", Stage: healthdata.StageDaily, Source: source}, samples)
			require.NoError(c.t, err)
		}
		for _, resource := range []string{"sleep", "activity", "workouts", "body", "profile"} {
			source, summaries := day.Summaries(resource)
			if len(summaries) == 0 {
				continue
			}
			_, err := c.s.Health.IngestSummaries(c.t.Context(), c.team, user, resource, healthdata.Upload{Provider: "manual", Stage: healthdata.StageDaily, Source: source}, summaries)
			require.NoError(c.t, err)
		}
	}
}

func noon(d int) time.Time {
	return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -1-d).Add(12 * time.Hour)
}

// result is an order of a user of the team, with its results.
func (c *clinic) result(user healthlab.UserID) orders.OrderID {
	c.t.Helper()
	ctx := c.t.Context()
	var address people.UserAddressInput
	require.NoError(c.t, json.Unmarshal([]byte(`{"first_line":"1 Example Street","city":"Springfield","state":"IL","zip":"62701","country":"US"}`), &address))
	_, err := c.s.Orders.People().SetUserInfo(ctx, c.team, user, people.UserInfoRequest{
		FirstName: "Annika", LastName: "Markerson", Email: "ann@example.org", PhoneNumber: "+12175550100", Gender: "Female", DOB: healthlab.Date{Year: 1984, Month: 1, Day: 2},
		Address: address,
	})
	require.NoError(c.t, err)
	yes := true
	o, err := c.s.Exchange.Simulate(ctx, c.team, c.placed(user), orders.StatusOf(catalogue.Testkit, orders.Completed), orders.SimulationFlags{Interpretation: "abnormal", HasMissingResults: &yes})
	require.NoError(c.t, err)
	return o.ID
}

// placed is an order of a user for a kit.
func (c *clinic) placed(user healthlab.UserID) orders.OrderID {
	c.t.Helper()
	var placed struct {
		Order struct {
			ID orders.OrderID `json:"id"`
		} `json:"order"`
	}
	body := `{"user_id":"` + user.String() + `","order_set":{"lab_test_ids":["5ab0c1d2-0000-4000-8000-000000000001"]},
		"patient_details":{"first_name":"Annika","last_name":"Markerson","dob":"1984-01-02","gender":"female","phone_number":"+12175550100","email":"ann@example.org"},
		"patient_address":{"receiver_name":"Annika Markerson","phone_number":"+12175550100","first_line":"1 Example Street","city":"Springfield","state":"IL","zip":"62701","country":"US"}}`
	status, answer := c.send(c.s.Handler(), "POST", "/v3/order", "team", body)
	require.Equal(c.t, 200, status, string(answer))
	require.NoError(c.t, json.Unmarshal(answer, &placed))
	return placed.Order.ID
}

// enrich adds devices, glucose, sleep, activity, consents, insurance, and an order with an appointment.
func (c *clinic) enrich(user healthlab.UserID) {
	c.t.Helper()
	ctx := c.t.Context()
	text := func(s string) *string { return &s }
	at := func(d, hour int) healthlab.Time { return healthlab.At(noon(d).Add(time.Duration(hour-12) * time.Hour)) }
	sensor := healthdata.Upload{
		Provider: "manual", Stage: healthdata.StageDaily, Source: healthdata.Source{Type: healthdata.SourceAutomatic},
		Device: &healthdata.DeviceInfo{Manufacturer: text("Example Devices"), Model: text("Sensor 2"), Version: text("2.1"), ID: text("serial-marker")},
	}
	for kind, up := range map[healthdata.SourceType]healthdata.Upload{"automatic": sensor, "fingerprick": {Provider: "manual", Stage: healthdata.StageDaily}, "app": {Provider: "manual", Stage: healthdata.StageDaily}} {
		up.Source.Type = kind
		var list []healthdata.Sample
		for i := range 4 {
			list = append(list, healthdata.Sample{Timestamp: healthlab.At(at(0, 9).Add(time.Duration(5*i) * time.Minute)), Unit: "mmol/L", Value: &healthdata.Value{Number: 5 + float64(i)}})
		}
		_, err := c.s.Health.IngestSamples(ctx, c.team, user, "glucose", up, list)
		require.NoError(c.t, err)
	}
	var steps []healthdata.Sample
	for hour := range 3 {
		from, to := at(0, 9+hour), at(0, 10+hour)
		steps = append(steps, healthdata.Sample{Timestamp: from, Start: &from, End: &to, Unit: "count", Value: &healthdata.Value{Number: 1000}})
	}
	daily := healthdata.Upload{Provider: "manual", Stage: healthdata.StageDaily, Source: healthdata.Source{Type: healthdata.SourceWatch}}
	_, err := c.s.Health.IngestSamples(ctx, c.team, user, "steps", daily, steps)
	require.NoError(c.t, err)
	seconds := func(n int64) *int64 { return &n }
	calories, resting := 2100.5, 52.0
	_, err = c.s.Health.IngestSummaries(ctx, c.team, user, "sleep", daily, []healthdata.Summary{&healthdata.Sleep{
		Head: healthdata.Head{ExternalID: "night"}, CalendarDate: healthlab.DateOf(noon(0)), BedtimeStart: at(1, 22), BedtimeStop: at(0, 6),
		Light: seconds(14400), REM: seconds(3600), Deep: seconds(7200), Awake: seconds(3600), Total: seconds(25200),
	}})
	require.NoError(c.t, err)
	_, err = c.s.Health.IngestSummaries(ctx, c.team, user, "activity", daily, []healthdata.Summary{&healthdata.Activity{
		Head: healthdata.Head{ExternalID: "day"}, CalendarDate: healthlab.DateOf(noon(0)), CaloriesTotal: &calories, HeartRate: &healthdata.ActivityHeartRate{RestingBPM: &resting},
	}})
	require.NoError(c.t, err)
	for _, version := range []string{"1", "2"} {
		_, err = c.s.Health.Connections().RecordConsent(ctx, c.team, user, healthdata.NewConsent{Provider: "manual", Version: version, Means: healthdata.ConsentByLink})
		require.NoError(c.t, err)
	}
	address := object{"first_line": "1 Example Street", "city": "Phoenix", "state": "AZ", "zip": "85004", "country": "US"}
	for _, primary := range []bool{true, false} {
		body := object{"payor_code": "ASPEN", "member_id": "member-marker", "group_id": "G1", "relationship": "Self", "is_primary": primary,
			"insured": object{"first_name": "Annika", "last_name": "Markerson", "gender": "female", "dob": "1984-01-02", "email": "ann@example.org", "phone_number": "+12175550100", "address": address}}
		c.post("/v2/user/"+user.String()+"/insurance", body)
	}
	placed := c.post("/v3/order", object{
		"user_id": user.String(), "order_set": object{"lab_test_ids": []string{"5ab0c1d2-0000-4000-8000-000000000003"}},
		"patient_details": object{"first_name": "Annika", "last_name": "Markerson", "dob": "1984-01-02", "gender": "female", "phone_number": "+12175550100", "email": "ann@example.org"},
		"patient_address": object{"receiver_name": "Annika Markerson", "phone_number": "+12175550100", "first_line": "1 Example Street", "city": "Phoenix", "state": "AZ", "zip": "85004", "country": "US"},
		"physician":       object{"first_name": "Petra", "last_name": "Physician", "npi": "1234567893"}, "billing_type": "commercial_insurance", "icd_codes": []string{"E11.9"}, "priority": true,
	})
	id, err := uuid.Parse(placed["order"].(object)["id"].(string))
	require.NoError(c.t, err)
	c.visited = orders.OrderID{UUID: id}
	_, err = c.s.Exchange.SubmitDue(ctx)
	require.NoError(c.t, err)
	free, err := c.s.Visits.Places().HomeSlots(ctx, c.team, nil, appointment.AddressInput{FirstLine: "1 Example Street", City: "Phoenix", State: "AZ", ZipCode: "85004"})
	require.NoError(c.t, err)
	day := slices.IndexFunc(free.Slots, func(d appointment.DaySlots) bool { return len(d.Slots) > 0 }) // a day that is nearly over has none
	require.GreaterOrEqual(c.t, day, 0)
	_, err = c.s.Visits.Book(ctx, c.team, c.visited, appointment.Phlebotomy, visits.BookRequest{BookingKey: *free.Slots[day].Slots[0].BookingKey})
	require.NoError(c.t, err)
}

func (c *clinic) post(path string, body object) object {
	c.t.Helper()
	text, err := json.Marshal(body)
	require.NoError(c.t, err)
	status, answer := c.send(c.s.Handler(), "POST", path, "team", string(text))
	require.Equal(c.t, 200, status, string(answer))
	var out object
	require.NoError(c.t, json.Unmarshal(answer, &out))
	return out
}

// results are the observations of the laboratory.
func (c *clinic) results() (out []object) {
	c.t.Helper()
	for _, o := range entries(c.get("team", "/Observation?_count=500&category=laboratory&patient="+c.ann.String(), 200)) {
		if o["basedOn"] != nil {
			out = append(out, o)
		}
	}
	return out
}

func (c *clinic) send(h http.Handler, method, path, key, body string) (int, []byte) {
	c.t.Helper()
	r := httptest.NewRequestWithContext(c.t.Context(), method, path, strings.NewReader(body))
	if key != "" {
		r.Header.Set("x-service-api-key", key)
	}
	r.Header.Set("Content-Type", "application/json")
	if strings.Contains(path, "$export?") || strings.HasSuffix(path, "$export") {
		r.Header.Set("Prefer", "respond-async")
	}
	if strings.HasSuffix(path, "_search") {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	b, err := io.ReadAll(w.Body)
	require.NoError(c.t, err)
	return w.Code, b
}

type object = map[string]any

// get reads a path of FHIR with the key of a caller.
func (c *clinic) get(key, path string, status int) object {
	c.t.Helper()
	code, b := c.send(c.handler, "GET", path, key, "")
	require.Equal(c.t, status, code, "%s: %s", path, b)
	var out object
	require.NoError(c.t, json.Unmarshal(b, &out))
	return out
}

// entries are the resources of a bundle.
func entries(bundle object) (out []object) {
	list, _ := bundle["entry"].([]any)
	for _, e := range list {
		out = append(out, e.(object)["resource"].(object))
	}
	return out
}

func ids(bundle object) []string { return idsOf(entries(bundle)) }

func idsOf(all []object) (out []string) {
	for _, r := range all {
		out = append(out, r["id"].(string))
	}
	return out
}
