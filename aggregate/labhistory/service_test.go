package labhistory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/labhistory"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

var (
	team = healthlab.TeamID{UUID: uuid.MustParse("00000000-0000-4000-8000-000000000001")}
	user = healthlab.UserID{UUID: uuid.MustParse("00000000-0000-4000-8000-000000000002")}
)

func ptr[T any](v T) *T { return &v }

// laboratory is orders and reports of the one user.
type laboratory struct {
	orders  []orders.Order
	results map[orders.OrderID]orders.OrderResults
	jobs    []labreport.JobReview
	options *labhistory.Options
}

func (*laboratory) HasUser(_ context.Context, t healthlab.TeamID, id healthlab.UserID) (bool, error) {
	return t == team && id == user, nil
}

func (l *laboratory) List(_ context.Context, q orders.Query) (orders.Page, error) {
	from := min((q.Page-1)*q.Size, len(l.orders))
	return orders.Page{Orders: l.orders[from:min(from+q.Size, len(l.orders))], Total: len(l.orders)}, nil
}

func (l *laboratory) Results(_ context.Context, _ healthlab.TeamID, id orders.OrderID) (orders.OrderResults, error) {
	res, ok := l.results[id]
	if !ok {
		return res, healthlab.NotFound
	}
	return res, nil
}

func (l *laboratory) Jobs(_ context.Context, _ healthlab.TeamID, q labreport.JobsQuery) (page labreport.JobPage, err error) {
	at := 0
	if q.Cursor != "" {
		_, err = fmt.Sscan(q.Cursor, &at)
	}
	for ; at < len(l.jobs) && len(page.Jobs) < q.Size; at++ {
		page.Jobs = append(page.Jobs, l.jobs[at].JobSummary)
	}
	if at < len(l.jobs) {
		page.Next = fmt.Sprint(at)
	}
	return page, err
}

func (l *laboratory) JobReview(_ context.Context, _ healthlab.TeamID, id labreport.JobID) (labreport.JobReview, error) {
	for _, j := range l.jobs {
		if j.ID == id {
			return j, nil
		}
	}
	return labreport.JobReview{}, healthlab.NotFound
}

// order adds an order of a day with results.
func (l *laboratory) order(day string, results ...labresult.Result) orders.OrderID {
	id := orders.OrderID{UUID: uuid.NewSHA1(team.UUID, fmt.Append(nil, len(l.orders)))}
	l.orders = append(l.orders, orders.Order{ID: id, UserID: user, Interpretation: ptr(labresult.Normal)})
	if l.results == nil {
		l.results = map[orders.OrderID]orders.OrderResults{}
	}
	res := orders.OrderResults{}
	res.Metadata = labresult.Metadata{Status: labresult.Final, DateCollected: &day, DateReported: day, Laboratory: ptr("northlab")}
	res.Results = results
	l.results[id] = res
	return id
}

func (l *laboratory) report(reviewed bool, data *labreport.Data) {
	id := labreport.JobID{UUID: uuid.NewSHA1(user.UUID, fmt.Append(nil, len(l.jobs)))}
	l.jobs = append(l.jobs, labreport.JobReview{JobSummary: labreport.JobSummary{ID: id, UserID: user, Status: labreport.Completed, IsReviewed: reviewed}, Data: data})
}

func (l *laboratory) list(t *testing.T, q labhistory.Query) labhistory.Page {
	t.Helper()
	s, err := labhistory.New(l, l, l, l.options)
	require.NoError(t, err)
	page, err := s.List(t.Context(), team, user, q)
	require.NoError(t, err)
	return page
}

func numeric(code, value, unit string) labresult.Result {
	r := labresult.Result{Name: "analyte", Result: value, Unit: &unit, LOINC: &code}
	r.Classify()
	r.Compare()
	return r
}

// Two codes and two units of glucose have one unit, beside what the laboratory wrote.
func TestList_codesOfOneAnalyteHaveOneUnit(t *testing.T) {
	var l laboratory
	l.order("2026-03-02", numeric("2345-7", "90", "mg/dL"))
	l.order("2026-03-01", numeric("14749-6", "5.5", "mmol/L"))
	page := l.list(t, labhistory.Query{})
	require.Len(t, page.Results, 2)
	require.InDelta(t, 4.9957, *page.Results[0].Value, 1e-4)
	require.Equal(t, "90", page.Results[0].ReportedValue)
	require.Equal(t, "mg/dL", *page.Results[0].ReportedUnit)
	require.InDelta(t, 5.5, *page.Results[1].Value, 0)
	for _, r := range page.Results {
		require.Equal(t, "mmol/L", *r.Unit)
		require.Equal(t, "Glucose", *r.Analyte)
		require.Equal(t, labhistory.FromOrder, r.Source)
		require.Equal(t, "final", r.Status)
	}
}

// Creatinine in urine is another analyte than creatinine in blood.
func TestList_urineAndBloodAreDifferentAnalytes(t *testing.T) {
	var l laboratory
	l.order("2026-03-01", numeric("2161-8", "90", "mg/dL"))
	l.order("2026-03-02", numeric("2160-0", "1", "mg/dL"))
	page := l.list(t, labhistory.Query{})
	require.Equal(t, "Creatinine", *page.Results[0].Analyte)
	require.Equal(t, "Creatinine in urine", *page.Results[1].Analyte)
}

// What cannot be converted has no value, and stands as reported.
func TestList_unconvertibleResultKeepsItsReportedForm(t *testing.T) {
	for name, r := range map[string]labresult.Result{
		"unknown unit":      numeric("2345-7", "90", "drops"),
		"another quantity":  numeric("2345-7", "90", "mm/h"),
		"unknown code":      numeric("99999-9", "90", "mg/dL"),
		"no unit":           {Name: "Glucose", Result: "90", Type: labresult.Numeric, LOINC: ptr("2345-7")},
		"no code":           {Name: "Glucose", Result: "90", Type: labresult.Numeric, Unit: ptr("mg/dL")},
		"words":             {Name: "Glucose", Result: "see note", Type: labresult.Comment, LOINC: ptr("2345-7"), Unit: ptr("mg/dL")},
		"a number in words": {Name: "Glucose", Result: "90", Type: labresult.Comment, LOINC: ptr("2345-7"), Unit: ptr("mg/dL")},
	} {
		var l laboratory
		l.order("2026-03-01", r)
		got := l.list(t, labhistory.Query{}).Results[0]
		require.Nil(t, got.Value, name)
		require.Nil(t, got.Unit, name)
		require.Equal(t, r.Result, got.ReportedValue, name)
		require.Equal(t, r.Unit, got.ReportedUnit, name)
	}
}

// A bound is no value.
func TestList_resultWithAComparatorHasNoValue(t *testing.T) {
	for text, want := range map[string]string{"<36": "<", "<=36": "<=", ">36": ">", ">=36": ">="} {
		var l laboratory
		r := numeric("2345-7", text, "mg/dL")
		r.ReferenceRange = ptr("70-99")
		r.Compare()
		l.order("2026-03-01", r)
		got := l.list(t, labhistory.Query{}).Results[0]
		require.Nil(t, got.Value)
		require.Equal(t, want, *got.Comparator)
		require.InDelta(t, 1.99827, *got.Bound, 1e-5)
		require.InDelta(t, 3.8855, *got.RangeLow, 1e-4)
		require.InDelta(t, 5.4952, *got.RangeHigh, 1e-4)
		require.Equal(t, "laboratory", *got.RangeSource)
		require.Equal(t, "mmol/L", *got.Unit)
	}
}

// The time of the sample is said to the second, to the day, or not at all.
func TestList_collectionTimeHasItsPrecision(t *testing.T) {
	var l laboratory
	r := numeric("2345-7", "90", "mg/dL")
	r.SourceSampleID = ptr("1")
	id := l.order("2026-03-01", r)
	at := healthlab.At(time.Date(2026, 2, 28, 23, 30, 0, 0, time.UTC))
	for precision, want := range map[labresult.Precision]struct{ at, day bool }{
		"": {true, true}, labresult.MinutePrecision: {true, true}, labresult.DayPrecision: {false, true}, labresult.MonthPrecision: {false, false},
	} {
		res := l.results[id]
		res.SampleInformation = map[string]labresult.SampleData{"1": {
			DateCollected: &labresult.TimestampWithOffset{Timestamp: at, TimezoneOffset: 3600, Precision: precision}, SpecimenType: &labresult.Coded{Text: "Venous blood"},
		}}
		l.results[id] = res
		got := l.list(t, labhistory.Query{}).Results[0]
		require.Equal(t, want.at, got.CollectedAt != nil, precision)
		require.Equal(t, want.day, got.CollectedDate != nil, precision)
		if want.day {
			require.Equal(t, "2026-03-01", got.CollectedDate.String(), "the day of the laboratory")
		}
		require.Equal(t, "Venous blood", *got.Specimen)
	}
}

// A correction takes the place of what it corrects, under its id.
func TestList_correctionReplacesItsResult(t *testing.T) {
	var l laboratory
	id := l.order("2026-03-01", numeric("2345-7", "900", "mg/dL"), numeric("2160-0", "1", "mg/dL"))
	before := l.list(t, labhistory.Query{Codes: []string{"2345-7"}}).Results[0]
	res := l.results[id]
	res.Metadata.Status = labresult.Corrected
	res.Results, _ = labresult.MarkCorrected(res.Results, []labresult.Result{numeric("2345-7", "90", "mg/dL"), res.Results[1]}, healthlab.At(time.Unix(1e9, 0)))
	l.results[id] = res
	page := l.list(t, labhistory.Query{})
	require.Len(t, page.Results, 2)
	for _, r := range page.Results {
		if *r.LOINC == "2345-7" {
			require.Equal(t, before.ID, r.ID)
			require.Equal(t, "90", r.ReportedValue)
			require.Equal(t, "corrected", r.Status)
			require.NotNil(t, r.CorrectedAt)
		} else {
			require.Equal(t, "final", r.Status, "it was not corrected")
		}
	}
}

// Of reports only those count that a person approved, and of codes those without doubt.
func TestList_containsOnlyResultsOfApprovedReports(t *testing.T) {
	data := func(status labreport.MatchStatus) *labreport.Data {
		return &labreport.Data{Metadata: labreport.Metadata{DateCollected: ptr("2026-03-01"), LabName: ptr("northlab")}, Results: []labreport.Result{{
			TestName: "Glucose", Value: "90", Units: ptr("mg/dL"), Type: ptr(labreport.Numeric), ReferenceRange: ptr("70 - 99"),
			MinReferenceRange: ptr(json.Number("70")), MaxReferenceRange: ptr(json.Number("99")),
			LoincMatchStatus: &status, LoincMatches: []labreport.Match{{LoincCode: "2345-7"}},
		}}}
	}
	var l laboratory
	l.report(false, data(labreport.AutoMatch))
	l.report(true, data(labreport.AutoMatch))
	l.report(true, data(labreport.NeedsReview))
	page := l.list(t, labhistory.Query{Source: labhistory.FromReport})
	require.Len(t, page.Results, 2)
	coded := 0
	for _, r := range page.Results {
		require.Equal(t, labhistory.FromReport, r.Source)
		require.Equal(t, "2026-03-01", r.CollectedDate.String())
		if r.LOINC == nil {
			require.Nil(t, r.Value)
			continue
		}
		coded++
		require.InDelta(t, 4.9957, *r.Value, 1e-4)
		require.InDelta(t, 3.8855, *r.RangeLow, 1e-4)
	}
	require.Equal(t, 1, coded)
	require.Empty(t, l.list(t, labhistory.Query{Source: labhistory.FromOrder}).Results)
}

// Pages of any size make the whole, in one order, and filters leave out what they name.
func TestList_pagesContainEachResultOnceAndFiltersApply(t *testing.T) {
	var l laboratory
	for i := range 230 {
		code := []string{"2345-7", "2160-0"}[i%2]
		day := healthlab.Date{Year: 2026, Month: 1, Day: 1}.AddDays(i % 40).String()
		if i%23 == 0 {
			day = "last week" // no day
		}
		l.order(day, numeric(code, fmt.Sprint(50+i), "mg/dL"))
	}
	all := l.list(t, labhistory.Query{Size: 1000})
	require.Len(t, all.Results, 230)
	require.Empty(t, all.Next)
	for _, size := range []int{1, 7, 115, 229, 230} {
		var got []labhistory.Result
		q := labhistory.Query{Size: size}
		for {
			page := l.list(t, q)
			got = append(got, page.Results...)
			if q.Cursor = page.Next; q.Cursor == "" {
				break
			}
		}
		require.Equal(t, all.Results, got)
	}
	require.Len(t, l.list(t, labhistory.Query{Size: 1000, Codes: []string{"2345-7"}}).Results, 115)
	day := healthlab.Date{Year: 2026, Month: 1, Day: 10}
	for _, r := range l.list(t, labhistory.Query{Size: 1000, From: day, To: day}).Results {
		require.Equal(t, day, *r.CollectedDate)
	}
	require.Len(t, l.list(t, labhistory.Query{Size: 1000, From: day}).Results, len(all.Results)-len(l.list(t, labhistory.Query{Size: 1000, To: day.AddDays(-1)}).Results)-10)
}

func TestList_refusesInvalidQueries(t *testing.T) {
	var l laboratory
	s, err := labhistory.New(&l, &l, &l, nil)
	require.NoError(t, err)
	for name, q := range map[string]labhistory.Query{
		"check digit": {Codes: []string{"2345-6"}}, "source": {Source: "import"}, "cursor": {Cursor: "2026-03-01"},
	} {
		_, err := s.List(t.Context(), team, user, q)
		require.ErrorIs(t, err, healthlab.Invalid, name)
	}
	_, err = s.List(t.Context(), team, healthlab.UserID(team), labhistory.Query{})
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = labhistory.New(nil, nil, nil, nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	without, err := labhistory.New(&l, nil, nil, nil)
	require.NoError(t, err)
	page, err := without.List(t.Context(), team, user, labhistory.Query{})
	require.NoError(t, err)
	require.Empty(t, page.Results)
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %s", labhistory.Result{ReportedValue: "planted"}, labhistory.Result{ReportedValue: "planted"}, labhistory.Result{ReportedValue: "planted"}, labhistory.Result{ReportedValue: "planted"}), "planted")
}
