package main

import (
	"context"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/labs/pdfdoc"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/operations/mcp"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/labhistory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// apiKey is the API key of this program. It need not be secret, because the person is invented.
const apiKey = "sk_questions"

// person is an invented person with three months of invented data, and the services that answer questions about
// this data.
type person struct {
	team      healthlab.TeamID
	user      healthlab.UserID
	health    *healthdata.Service
	questions *aggregate.Service
	labs      *labhistory.Service
	handler   http.Handler // the HTTP API, and the Model Context Protocol at /mcp
}

func newPerson(ctx context.Context) (*person, error) {
	p := &person{team: healthlab.TeamID{UUID: uuid.New()}}
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual entry", Class: "manual", Category: "app"}})
	if err != nil {
		return nil, err
	}
	store := memory.New(nil)
	if p.health, err = healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox}); err != nil {
		return nil, err
	}
	user, err := p.health.CreateUser(ctx, p.team, healthdata.NewUser{ClientUserID: "member-42"})
	if err != nil {
		return nil, err
	}
	p.user = user.ID
	if _, err := p.health.Connections().Connect(ctx, p.team, p.user, healthdata.NewConnection{Provider: "manual"}); err != nil {
		return nil, err
	}
	if p.labs, err = labhistory.New(p.health, laboratory{p}, nil, nil); err != nil {
		return nil, err
	}
	if p.questions, err = aggregate.New(p.health, &aggregate.Options{LabResults: p.labs.Rows}); err != nil {
		return nil, err
	}
	if err := p.measure(ctx); err != nil {
		return nil, err
	}
	return p, p.serve()
}

// serve builds the HTTP handler of -serve.
func (p *person) serve() error {
	known := func(r *http.Request) bool {
		key := r.Header.Get("x-service-api-key")
		if key == "" {
			key = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		}
		return subtle.ConstantTimeCompare([]byte(key), []byte(apiKey)) == 1
	}
	printer, err := pdfdoc.New(nil)
	if err != nil {
		return err
	}
	assistants, err := mcp.New(mcp.Services{Health: p.health, Aggregate: p.questions, Labs: p.labs}, mcp.Options{
		Authenticate: func(r *http.Request) (mcp.Caller, error) {
			if !known(r) {
				return mcp.Caller{}, healthlab.Unauthenticated
			}
			return mcp.Caller{Team: p.team}, nil
		},
	})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", assistants.Handler())
	mux.Handle("/", httpapi.Handler(httpapi.Config{
		Authenticate: func(r *http.Request) (httpapi.Caller, error) {
			if !known(r) {
				return httpapi.Caller{}, healthlab.Unauthenticated
			}
			return httpapi.Caller{Team: p.team}, nil
		},
		Parts:           []httpapi.Part{httpapi.HealthData(p.health), httpapi.Queries(p.questions), httpapi.LabHistory(p.labs)},
		GlucoseProfiles: printer,
	}))
	p.handler = mux
	return nil
}

// measure stores the person's invented data: days and nights of three months, and glucose of two weeks. There are
// no weights.
func (p *person) measure(ctx context.Context) error {
	from := healthdata.Upload{Provider: "manual", Source: healthdata.Source{Type: healthdata.SourceWatch}}
	first := healthlab.Date{Year: 2026, Month: 1, Day: 1}
	var days, nights []healthdata.Summary
	var glucose []healthdata.Sample
	for i := range 90 {
		day := first.AddDays(i)
		steps := map[time.Month]int64{time.January: 4000, time.February: 9000, time.March: 9500}[day.Month]
		days = append(days, &healthdata.Activity{CalendarDate: day, Steps: &steps})
		resting := int64(64 - 3*(int(day.Month)-1) + i%2)
		woke := day.At(time.UTC).Add(6 * time.Hour)
		nights = append(nights, &healthdata.Sleep{
			BedtimeStart: healthlab.At(woke.Add(-7 * time.Hour)), BedtimeStop: healthlab.At(woke), CalendarDate: day,
			Type: healthdata.SleepLong, Duration: 7 * 3600, HRResting: &resting,
		})
	}
	for i := range 14 * 288 {
		at := healthlab.Date{Year: 2026, Month: 3, Day: 2}.At(time.UTC).Add(time.Duration(i) * 5 * time.Minute)
		value := 6 + float64(i/2016) + 5*float64(i%288/72)/3 // glucose rises over each day in four steps
		glucose = append(glucose, healthdata.Sample{Timestamp: healthlab.At(at), Unit: "mmol/L", Value: healthdata.Number(value)})
	}
	if _, err := p.health.IngestSummaries(ctx, p.team, p.user, "activity", from, days); err != nil {
		return err
	}
	if _, err := p.health.IngestSummaries(ctx, p.team, p.user, "sleep", from, nights); err != nil {
		return err
	}
	_, err := p.health.IngestSamples(ctx, p.team, p.user, "glucose", from, glucose)
	return err
}

// laboratory returns two invented, finished orders, in place of the orders.Service of a real host.
type laboratory struct{ p *person }

var labIDs = []orders.OrderID{{UUID: uuid.MustParse("0199a000-0000-7000-8000-000000000001")}, {UUID: uuid.MustParse("0199a000-0000-7000-8000-000000000002")}}

// List returns the two orders.
func (l laboratory) List(context.Context, orders.Query) (page orders.Page, err error) {
	known := labresult.Normal
	for _, id := range labIDs {
		page.Orders = append(page.Orders, orders.Order{
			ID: id, TeamID: l.p.team, UserID: l.p.user, Interpretation: &known,
			PatientDetails: &people.PatientDetails{DOB: healthlab.Date{Year: 1985, Month: 4, Day: 12}, Gender: people.Female},
		})
	}
	return page, nil
}

// Results returns the results of an order: the winter's in mg/dL, the spring's in mmol/L.
func (laboratory) Results(_ context.Context, _ healthlab.TeamID, id orders.OrderID) (out orders.OrderResults, err error) {
	day, ldl := "2025-12-10", numeric("LDL cholesterol", "2089-1", "160", "mg/dL", "<130")
	if id == labIDs[1] {
		day, ldl = "2026-02-27", numeric("LDL-C", "2089-1", "3.10", "mmol/L", "<3.4")
	}
	out.Metadata = labresult.Metadata{Status: labresult.Final, DateCollected: &day, DateReported: day}
	out.Results = []labresult.Result{ldl, numeric("Hemoglobin", "718-7", "12.9", "g/dL", "Male: 13.5-17.5; Female: 12.0-15.5")}
	return out, nil
}

func numeric(name, code, value, unit, printed string) labresult.Result {
	r := labresult.Result{Name: name, LOINC: &code, Result: value, Unit: &unit, ReferenceRange: &printed}
	r.Classify()
	r.Compare()
	return r
}
