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
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

func grouped(text string) labresult.Result {
	r := numeric("2345-7", "90", "mg/dL")
	r.ReferenceRange = &text
	r.Compare()
	return r
}

var women = healthlab.Date{Year: 1990, Month: 5, Day: 1}

// The order, the report and the host tell sex and birth date, and each of them chooses the range.
func TestRange_isChosenBySexAndBirthDate(t *testing.T) {
	const bySex = "Male: 72-108; Female: 54-90"
	of := func(f labhistory.Facts) *labhistory.Options {
		return &labhistory.Options{Facts: func(context.Context, healthlab.TeamID, healthlab.UserID, healthlab.Date) (labhistory.Facts, error) {
			return f, nil
		}}
	}
	for name, r := range map[string]struct {
		text    string
		prepare func(*orders.Order, *orders.OrderResults)
		options *labhistory.Options
		group   string
		low     float64
	}{
		"order": {text: bySex, prepare: func(o *orders.Order, _ *orders.OrderResults) {
			o.PatientDetails = &people.PatientDetails{Gender: people.Female, DOB: women}
		}, options: of(labhistory.Facts{Sex: refrange.Male}), group: "Female", low: 54},
		"reported patient": {text: bySex, prepare: func(_ *orders.Order, res *orders.OrderResults) {
			res.ReportedPatient = &orders.ReportedPatient{Gender: people.Male}
		}, group: "Male", low: 72},
		"host":   {text: bySex, options: of(labhistory.Facts{Sex: refrange.Male}), group: "Male", low: 72},
		"nobody": {text: bySex},
		"unit":   {text: "Male: 0.72-1.08 g/L; Female: 0.54-0.90 g/L", options: of(labhistory.Facts{Sex: refrange.Male}), group: "Male", low: 72},
		"neither": {text: bySex, prepare: func(o *orders.Order, _ *orders.OrderResults) {
			o.PatientDetails = &people.PatientDetails{Gender: people.OtherGender}
		}},
		"age on the day":    {text: "< 36 years: 54-90; >= 36 years: 72-108", options: of(labhistory.Facts{BirthDate: healthlab.Date{Year: 1990, Month: 3, Day: 2}}), group: "< 36 years", low: 54},
		"a birthday":        {text: "< 36 years: 54-90; >= 36 years: 72-108", options: of(labhistory.Facts{BirthDate: healthlab.Date{Year: 1990, Month: 3, Day: 1}}), group: ">= 36 years", low: 72},
		"printed birthdate": {text: "Adults: 54-90; Children: 72-108", prepare: func(_ *orders.Order, res *orders.OrderResults) { res.Metadata.DOB = "2020-01-01" }, group: "Children", low: 72},
		"fasting": {text: "Fasting: 54-90; Random: 72-108", prepare: func(_ *orders.Order, res *orders.OrderResults) {
			res.SampleInformation = map[string]labresult.SampleData{"1": {ClinicalInformation: &labresult.ClinicalInformation{Fasting: true}}}
		}, group: "Fasting", low: 54},
		"perhaps fasting": {text: "Fasting: 54-90; Random: 72-108", prepare: func(_ *orders.Order, res *orders.OrderResults) {
			res.SampleInformation = map[string]labresult.SampleData{"1": {ClinicalInformation: &labresult.ClinicalInformation{}}}
		}},
		"pregnant": {text: "Female: 54-90; Pregnant: 72-108", options: of(labhistory.Facts{Sex: refrange.Female, Pregnant: new(true)}), group: "Pregnant", low: 72},
	} {
		t.Run(name, func(t *testing.T) {
			l := laboratory{options: r.options}
			id := l.order("2026-03-01", grouped(r.text))
			if r.prepare != nil {
				res := l.results[id]
				r.prepare(&l.orders[0], &res)
				l.results[id] = res
			}
			got := l.list(t, labhistory.Query{}).Results[0]
			require.Equal(t, "laboratory", *got.RangeSource)
			require.Equal(t, r.text, *got.ReferenceRange)
			if r.group == "" {
				require.Nil(t, got.RangeGroup)
				require.Nil(t, got.RangeLow)
				return
			}
			require.Equal(t, r.group, *got.RangeGroup)
			low, ok := labhistory.Convert("2345-7", r.low, "mg/dL")
			require.True(t, ok)
			require.InDelta(t, low, *got.RangeLow, 1e-12)
			require.Equal(t, "mmol/L", *got.Unit)
		})
	}
}

// A report says whose it is, too; a range with ends of its own has no group.
func TestRange_ofAReportIsChosenBySexAndAgeOfItsPatient(t *testing.T) {
	var l laboratory
	l.report(true, &labreport.Data{
		Metadata: labreport.Metadata{DateCollected: ptr("2026-03-01"), Gender: "male", DOB: ptr("1960-02-03")},
		Results: []labreport.Result{
			{TestName: "Hemoglobin", Value: "14", Units: ptr("g/dL"), ReferenceRange: ptr("Male 18-60 years: 13-17; Male >60 years: 12-16; Female: 11-15")},
			{TestName: "Glucose", Value: "90", Units: ptr("mg/dL"), ReferenceRange: ptr("70-99")},
		},
	})
	l.order("2026-02-01", func() labresult.Result {
		r := grouped("Male: 72-108; Female: 54-90")
		r.MinRangeValue = nil
		return r
	}())
	l.orders[0].PatientDetails = &people.PatientDetails{Gender: people.Male}
	for _, r := range l.list(t, labhistory.Query{}).Results {
		switch r.Name {
		case "Hemoglobin":
			require.Equal(t, "Male >60 years", *r.RangeGroup)
			require.Nil(t, r.RangeLow, "without a code there is no unit")
		case "Glucose":
			require.Nil(t, r.RangeGroup)
		default:
			require.Equal(t, "Male", *r.RangeGroup)
		}
	}
}

func TestList_returnsTheErrorOfTheFactsOption(t *testing.T) {
	broken := errors.New("no connection")
	l := laboratory{options: &labhistory.Options{Facts: func(context.Context, healthlab.TeamID, healthlab.UserID, healthlab.Date) (labhistory.Facts, error) {
		return labhistory.Facts{}, broken
	}}}
	l.order("2026-03-01", grouped("Male: 72-108; Female: 54-90"))
	s, err := labhistory.New(&l, &l, &l, l.options)
	require.NoError(t, err)
	_, err = s.List(t.Context(), team, user, labhistory.Query{})
	require.ErrorIs(t, err, broken)
}
