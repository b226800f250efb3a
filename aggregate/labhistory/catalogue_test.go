package labhistory_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/labhistory"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/refrange"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// ranges is a catalogue of expected results by marker.
type ranges struct {
	expected map[int][]catalogue.ExpectedResult
	err      error
}

func (r ranges) ExpectedResults(_ context.Context, markers []int) (map[int][]catalogue.ExpectedResult, error) {
	out := map[int][]catalogue.ExpectedResult{}
	for _, m := range markers {
		out[m] = r.expected[m]
	}
	return out, r.err
}

func expects(code, unit, text string) []catalogue.ExpectedResult {
	return []catalogue.ExpectedResult{{LOINC: &catalogue.LOINC{Code: code, Unit: &unit}, ReferenceRange: &text}}
}

// A result that brings no range has that of the catalogue, which is of the person where it is by group.
func TestRange_missingOneIsTakenFromTheCatalogue(t *testing.T) {
	const glucose, bySex = "2345-7", "Male: 72-108; Female: 54-90"
	no := false
	woman := labhistory.Facts{Sex: refrange.Female, BirthDate: women}
	for name, r := range map[string]struct {
		markers map[int][]catalogue.ExpectedResult
		facts   labhistory.Facts
		change  func(*orders.Order, *orders.OrderResults, *labresult.Result)
		source  string
		group   string
		low     float64 // in mg/dL
		open    bool    // above
	}{
		"one for all":        {markers: map[int][]catalogue.ExpectedResult{1: expects(glucose, "mg/dL", "70-99")}, source: "catalogue", low: 70},
		"a bound":            {markers: map[int][]catalogue.ExpectedResult{1: expects(glucose, "mg/dL", ">= 70")}, source: "catalogue", low: 70, open: true},
		"a decimal comma":    {markers: map[int][]catalogue.ExpectedResult{1: expects(glucose, "mg/dL", "70,5 - 99,5")}, source: "catalogue", low: 70.5},
		"in another unit":    {markers: map[int][]catalogue.ExpectedResult{1: expects(glucose, "mg/L", "700-990")}, source: "catalogue", low: 70},
		"of the second":      {markers: map[int][]catalogue.ExpectedResult{1: expects("2160-0", "mg/dL", "1-2"), 2: expects(glucose, "mg/dL", "70-99")}, source: "catalogue", low: 70},
		"the same twice":     {markers: map[int][]catalogue.ExpectedResult{1: expects(glucose, "mg/dL", "70-99"), 2: expects(glucose, "mg/dL", "70-99")}, source: "catalogue", low: 70},
		"two that differ":    {markers: map[int][]catalogue.ExpectedResult{1: expects(glucose, "mg/dL", "70-99"), 2: expects(glucose, "mg/dL", "60-99")}},
		"of another code":    {markers: map[int][]catalogue.ExpectedResult{1: expects("2160-0", "mg/dL", "1-2")}},
		"of another order":   {markers: map[int][]catalogue.ExpectedResult{3: expects(glucose, "mg/dL", "70-99")}},
		"no known unit":      {markers: map[int][]catalogue.ExpectedResult{1: expects(glucose, "widgets", "70-99")}},
		"by group, no unit":  {markers: map[int][]catalogue.ExpectedResult{1: expects(glucose, "widgets", bySex)}, facts: woman},
		"none of the marker": {markers: map[int][]catalogue.ExpectedResult{1: {{LOINC: &catalogue.LOINC{Code: glucose}}, {}}}},
		"by sex": {markers: map[int][]catalogue.ExpectedResult{1: expects(glucose, "mg/dL", bySex)}, facts: woman,
			source: "catalogue", group: "Female", low: 54},
		"sex of the order": {markers: map[int][]catalogue.ExpectedResult{1: expects(glucose, "mg/dL", bySex)}, facts: woman,
			change: func(o *orders.Order, _ *orders.OrderResults, _ *labresult.Result) {
				o.PatientDetails = &people.PatientDetails{Gender: people.Male}
			}, source: "catalogue", group: "Male", low: 72},
		"sex not known": {markers: map[int][]catalogue.ExpectedResult{1: expects(glucose, "mg/dL", bySex)}},
		"by age": {markers: map[int][]catalogue.ExpectedResult{1: expects(glucose, "mg/dL", "< 36 years: 54-90; >= 36 years: 72-108")}, facts: woman,
			source: "catalogue", group: "< 36 years", low: 54},
		"by pregnancy": {markers: map[int][]catalogue.ExpectedResult{1: expects(glucose, "mg/dL", "Female: 54-90; Pregnant: 72-108")},
			facts: labhistory.Facts{Sex: refrange.Female, Pregnant: new(true)}, source: "catalogue", group: "Pregnant", low: 72},
		"by fasting": {markers: map[int][]catalogue.ExpectedResult{1: expects(glucose, "mg/dL", "Fasting: 54-90; Random: 72-108")},
			facts: labhistory.Facts{Fasting: &no}, source: "catalogue", group: "Random", low: 72},
		"the laboratory has one": {markers: map[int][]catalogue.ExpectedResult{1: expects(glucose, "mg/dL", "70-99")},
			change: func(_ *orders.Order, _ *orders.OrderResults, r *labresult.Result) {
				r.ReferenceRange = ptr("60-99")
				r.Compare()
			}, source: "laboratory", low: 60},
		"the laboratory has words": {markers: map[int][]catalogue.ExpectedResult{1: expects(glucose, "mg/dL", "70-99")},
			change: func(_ *orders.Order, _ *orders.OrderResults, r *labresult.Result) { r.ReferenceRange = ptr("see note") }, source: "laboratory"},
		"no code": {markers: map[int][]catalogue.ExpectedResult{1: expects(glucose, "mg/dL", "70-99")},
			change: func(_ *orders.Order, _ *orders.OrderResults, r *labresult.Result) { r.LOINC = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			l := laboratory{options: &labhistory.Options{Catalogue: ranges{expected: r.markers},
				Facts: func(context.Context, healthlab.TeamID, healthlab.UserID, healthlab.Date) (labhistory.Facts, error) {
					return r.facts, nil
				}}}
			id := l.order("2026-03-01", numeric(glucose, "90", "mg/dL"))
			l.orders[0].LabTest.Markers = []catalogue.Marker{{ID: 1}, {ID: 2}}
			if r.change != nil {
				res := l.results[id]
				r.change(&l.orders[0], &res, &res.Results[0])
				l.results[id] = res
			}
			got := l.list(t, labhistory.Query{}).Results[0]
			if r.source == "catalogue" {
				require.Nil(t, got.ReferenceRange, "the laboratory wrote none")
				require.Equal(t, r.open, got.RangeHigh == nil)
			}
			require.Equal(t, r.source, value(got.RangeSource))
			require.Equal(t, r.group, value(got.RangeGroup))
			if r.low == 0 {
				require.Nil(t, got.RangeLow)
				return
			}
			low, ok := labhistory.Convert(glucose, r.low, "mg/dL")
			require.True(t, ok)
			require.InDelta(t, low, *got.RangeLow, 1e-12)
			require.Equal(t, "mmol/L", *got.Unit)
		})
	}
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// A report names no markers of a catalogue.
func TestRange_ofAReportIsNotTakenFromTheCatalogue(t *testing.T) {
	l := laboratory{options: &labhistory.Options{Catalogue: ranges{err: errors.New("no connection")}}}
	l.report(true, &labreport.Data{Results: []labreport.Result{{TestName: "Glucose", Value: "90", Units: ptr("mg/dL")}}})
	require.Nil(t, l.list(t, labhistory.Query{}).Results[0].RangeSource)
}

func TestList_failsIfTheCatalogueFails(t *testing.T) {
	broken := errors.New("no connection")
	l := laboratory{options: &labhistory.Options{Catalogue: ranges{err: broken}}}
	l.order("2026-03-01", numeric("2345-7", "90", "mg/dL"))
	l.orders[0].LabTest.Markers = []catalogue.Marker{{ID: 1}}
	s, err := labhistory.New(&l, &l, &l, l.options)
	require.NoError(t, err)
	_, err = s.List(t.Context(), team, user, labhistory.Query{})
	require.ErrorIs(t, err, broken)
}
