package fhir

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
)

// vital is a kind of vital signs: a timeseries of the catalogue, with its codes.
type vital struct {
	key      string // in ids
	resource string
	profile  string
	codes    []coding
	unit     string // UCUM
	display  string // of the unit
	// parts are the fields of a sample that has several numbers; nil for one number.
	parts []vitalPart
}

type vitalPart struct {
	field string
	code  coding
}

var vitals = []vital{
	{key: "hr", resource: "heartrate", profile: usCore + "heart-rate", codes: []coding{{loinc, "8867-4", "Heart rate"}}, unit: "/min", display: "beats/minute"},
	{key: "rr", resource: "respiratory_rate", profile: usCore + "respiratory-rate", codes: []coding{{loinc, "9279-1", "Respiratory rate"}}, unit: "/min", display: "breaths/minute"},
	{key: "so", resource: "blood_oxygen", profile: usCore + "pulse-oximetry", codes: []coding{
		{loinc, "59408-5", "Oxygen saturation in Arterial blood by Pulse oximetry"}, {loinc, "2708-6", "Oxygen saturation in Arterial blood"},
	}, unit: "%", display: "%"},
	{key: "bt", resource: "body_temperature", profile: usCore + "body-temperature", codes: []coding{{loinc, "8310-5", "Body temperature"}}, unit: "Cel", display: "°C"},
	{key: "bw", resource: "weight", profile: usCore + "body-weight", codes: []coding{{loinc, "29463-7", "Body weight"}}, unit: "kg", display: "kg"},
	{key: "mi", resource: "body_mass_index", profile: usCore + "bmi", codes: []coding{{loinc, "39156-5", "Body mass index (BMI) [Ratio]"}}, unit: "kg/m2", display: "kg/m2"},
	{key: "bp", resource: "blood_pressure", profile: usCore + "blood-pressure", codes: []coding{{loinc, "85354-9", "Blood pressure panel with all children optional"}},
		unit: "mm[Hg]", display: "mmHg", parts: []vitalPart{
			{"systolic", coding{loinc, "8480-6", "Systolic blood pressure"}}, {"diastolic", coding{loinc, "8462-4", "Diastolic blood pressure"}},
		}},
}

// vitalID is what the id of a vital sign says.
type vitalID struct {
	user healthlab.UserID
	kind *vital
	day  healthlab.Date
}

// String writes the id: vs.<user>.<kind>.<day>.
func (v vitalID) String() string {
	return "vs." + hex.EncodeToString(v.user.UUID[:]) + "." + v.kind.key + "." + v.day.String()
}

func parseVitalID(id string) (vitalID, bool) {
	parts := strings.Split(id, ".")
	if len(parts) != 4 || parts[0] != "vs" || len(parts[1]) != 32 {
		return vitalID{}, false
	}
	user, err := uuid.Parse(parts[1])
	day, wrong := healthlab.ParseDate(parts[3])
	if err != nil || wrong != nil {
		return vitalID{}, false
	}
	v := vitalID{user: healthlab.UserID{UUID: user}, day: day}
	for i := range vitals {
		if vitals[i].key == parts[2] {
			v.kind = &vitals[i]
		}
	}
	return v, v.kind != nil && v.String() == id
}

// pastYears is how far back vital signs are read.
const pastYears = 10

// lastDay is the last day that anyone may have begun.
func (s *server) lastDay() healthlab.Date { return healthlab.DateOf(s.Now().UTC()).AddDays(1) }

func (s *server) readVital(ctx context.Context, by caller, v vitalID) (resource, error) {
	if _, err := s.user(ctx, by, v.user); err != nil {
		return nil, err
	}
	if v.day.After(s.lastDay()) {
		return nil, healthlab.NotFound
	}
	all, err := s.means(ctx, by.Team, v.user, []*vital{v.kind}, aggregate.Last(1, v.day))
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if m.start().ID == v.String() {
			return m.resource, nil
		}
	}
	return nil, healthlab.NotFound
}

// vitalsOf returns the vital signs that a search may find.
func (s *server) vitalsOf(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, q *query) ([]match, error) {
	var kinds []*vital
	for i := range vitals {
		if hasToken(q.code, vitals[i].codes) {
			kinds = append(kinds, &vitals[i])
		}
	}
	first, last := s.lastDay().AddDays(-pastYears*365), s.lastDay()
	for _, b := range q.date {
		from, to := healthlab.DateOf(b.from).AddDays(-1), healthlab.DateOf(b.to).AddDays(1)
		switch b.prefix {
		case "eq":
			first, last = later(first, from), earlier(last, to)
		case "gt", "ge", "sa":
			first = later(first, from)
		case "lt", "le", "eb":
			last = earlier(last, to)
		}
	}
	if len(kinds) == 0 || last.Before(first) {
		return nil, nil
	}
	days := int64(last.At(time.UTC).Sub(first.At(time.UTC))/(24*time.Hour)) + 1
	return s.means(ctx, team, user, kinds, aggregate.Last(days, last))
}

func later(a, b healthlab.Date) healthlab.Date {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b healthlab.Date) healthlab.Date {
	if a.Before(b) {
		return a
	}
	return b
}

// means asks for the means of each day.
func (s *server) means(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, kinds []*vital, over aggregate.Timeframe) ([]match, error) {
	queries := make([]aggregate.Query, len(kinds))
	for i, v := range kinds {
		fields := []aggregate.Field{aggregate.Samples(v.resource)}
		if v.parts != nil {
			fields = nil
			for _, p := range v.parts {
				fields = append(fields, aggregate.Field{Resource: v.resource, Field: p.field})
			}
		}
		for _, f := range fields {
			queries[i].Select = append(queries[i].Select, aggregate.Mean.Of(f))
		}
		queries[i].GroupBy = []aggregate.Expr{aggregate.By(aggregate.Days(1))}
	}
	res, err := s.Aggregate.Query(ctx, team, user, aggregate.Ask(over, queries...))
	if err != nil {
		return nil, fmt.Errorf("aggregate vital signs: %w", err)
	}
	var out []match
	for i, v := range kinds {
		f := &res.Frames[i]
		values := f.Columns[len(f.Columns)-len(queries[i].Select):]
		for row := range f.Len() {
			day := healthlab.DateOf(f.Columns[0].Time(row))
			if o := s.mean(v, user, day, values, row); o != nil {
				out = append(out, o.match(daySpan(day)))
			}
		}
	}
	return out, nil
}

// mean returns the observation of a row; nil if it has no number.
func (s *server) mean(v *vital, user healthlab.UserID, day healthlab.Date, values []aggregate.Column, row int) *observation {
	o := &observation{
		head:   head{ResourceType: "Observation", ID: vitalID{user, v, day}.String(), Meta: meta{Profile: []string{v.profile}}},
		Status: "final", Category: category(vitalSigns), Code: concept{Coding: v.codes, Text: v.codes[0].Display},
		Subject: personReference(user), Effective: day.String(),
		Method: &concept{Coding: []coding{{statistics, "average", "Average"}}, Text: "Mean of the day"},
	}
	// A day lasts until 12 hours after its end in UTC somewhere.
	if s.Now().Before(day.AddDays(1).At(time.UTC).Add(12 * time.Hour)) {
		o.Status = "preliminary"
	}
	measured := func(i int) *quantity {
		if values[i].Null(row) {
			return nil
		}
		return &quantity{Value: number(values[i].Float(row)), Unit: v.display, System: ucumSystem, Code: v.unit}
	}
	if v.parts == nil {
		o.ValueQuantity = measured(0)
		if o.ValueQuantity == nil {
			return nil
		}
		return o
	}
	known := false
	for i, p := range v.parts {
		c := component{Code: concept{Coding: []coding{p.code}}, ValueQuantity: measured(i)}
		if c.ValueQuantity == nil {
			c.DataAbsentReason = absence("unknown", "Unknown")
		}
		known = known || c.ValueQuantity != nil
		o.Component = append(o.Component, c)
	}
	if !known {
		return nil
	}
	return o
}

func absence(code, display string) *concept {
	c := conceptOf(absentReasons, code, display)
	return &c
}
