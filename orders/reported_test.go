package orders_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

func organism(name string, read labresult.Interpretation) labresult.Result {
	return labresult.Result{Name: name, Slug: "culture", LOINC: ptr("600-7"), Result: name, Type: labresult.Comment, Interpretation: read}
}

// Results of one report that belong together, such as isolates, stay together when reports
// are merged.
func TestMerge_keepsIsolatesOfAReportTogether(t *testing.T) {
	merge := func(parts ...labresult.Report) labresult.Report {
		return labresult.Merge(labresult.Final, parts)
	}
	texts := func(r labresult.Report) (out []string) {
		for _, one := range r.Results {
			out = append(out, one.Result)
		}
		return out
	}
	first := labresult.Report{
		Results:        []labresult.Result{organism("E. coli", labresult.Critical), {Name: "Colour", Result: "red"}, organism("K. oxytoca", labresult.Normal), {Name: "Smell", Result: "none"}},
		MissingResults: []labresult.Missing{{Name: "Iron", Slug: "iron"}, {Name: "Iron", Slug: "iron", Note: ptr("second tube")}},
	}
	got := merge(first)
	require.Equal(t, []string{"E. coli", "red", "K. oxytoca", "none"}, texts(got))
	require.Equal(t, labresult.Critical, *got.Metadata.Interpretation)
	require.Len(t, got.MissingResults, 2)
	got = merge(first, labresult.Report{Results: []labresult.Result{{Name: "Smell", Result: "sweet"}, {Name: "Taste", Result: "not asked"},
		organism("P. mirabilis", labresult.Normal), organism("E. faecalis", labresult.Normal)}})
	require.Equal(t, []string{"P. mirabilis", "E. faecalis", "red", "sweet", "not asked"}, texts(got))
	require.Equal(t, labresult.UnknownInterpretation, labresult.Worst(first.Results[1:2]))
	require.Equal(t, labresult.UnknownInterpretation, *got.Metadata.Interpretation, "the colour has none")
	first.Metadata.Notes = ptr("took antibiotics")
	got = merge(first, labresult.Report{Metadata: labresult.Metadata{Notes: ptr("fasting")}}, first)
	require.Equal(t, "took antibiotics\nfasting", *got.Metadata.Notes)
}

// Results that the lab withdraws with the sample are neither returned nor announced.
func TestSampleRejection_withdrawsResults(t *testing.T) {
	d := newFixture(t)
	o := d.requisitioned("walk-in")
	require.NoError(t, d.Receive(t.Context(), d.report(o, func(m *exchange.Message) {
		m.On, m.Results.Results[0].Interpretation = orders.PartialResult, labresult.Abnormal
	})))
	require.Equal(t, labresult.Abnormal, *d.get(o).Interpretation)
	require.NoError(t, d.Receive(t.Context(), d.report(o, func(m *exchange.Message) { m.On, m.Results = orders.SampleRejected, nil })))
	got := d.get(o)
	require.Equal(t, orders.SampleError, got.LowLevel())
	require.Nil(t, got.Interpretation)
	require.Nil(t, got.HasMissingResults)
	_, err := d.Results(t.Context(), d.team, o.ID)
	requireRule(t, err, orders.ResultNotFound, healthlab.NotFound)
	_, err = d.TransactionResults(t.Context(), d.team, o.OrderTransaction.ID)
	requireRule(t, err, orders.ResultNotFound, healthlab.NotFound)
	var last struct {
		Data orders.Order `json:"data"`
	}
	messages := d.messages(o)
	require.NoError(t, json.Unmarshal(messages[len(messages)-1].Body, &last))
	require.Equal(t, orders.SampleError, last.Data.LowLevel())
	require.Nil(t, last.Data.Interpretation)
}

// A correction after a partial report is a correction, with and without a final report before
// it. Without one, the order is completed and corrected.
func TestCorrection_ofAPartialReportCompletesAndCorrectsTheOrder(t *testing.T) {
	for _, name := range []string{"walk-in", "kit", "on site"} {
		for _, final := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, final %t", name, final), func(t *testing.T) {
				d := newReviewFixture(t)
				d.settings.OnSiteCollection = true
				o := d.requisitioned(name)
				report := func(on orders.Trigger, value string) {
					require.NoError(t, d.Receive(t.Context(), d.report(o, func(m *exchange.Message) { m.On, m.Results.Results[0].Result = on, value })))
				}
				report(orders.PartialResult, "1")
				if final {
					report(orders.FinalResult, "1")
				}
				report(orders.CorrectedResult, "2")
				require.Empty(t, d.waiting())
				got := d.get(o)
				require.Equal(t, orders.Corrected, got.LowLevel())
				require.Equal(t, orders.Completed, got.Events[len(got.Events)-2].Status.LowLevel())
				require.Equal(t, "Iron", got.LastEvent.CorrectedMarkers[0].Name)
				results, err := d.Results(t.Context(), d.team, o.ID)
				require.NoError(t, err)
				require.Equal(t, labresult.Corrected, results.Metadata.Status)
				require.Equal(t, "2", results.Results[0].Result)
				require.Equal(t, "1", *results.Results[0].PreviousResult)
				require.NotNil(t, results.Results[0].CorrectedAt)
				var told []orders.LowLevel
				for _, m := range d.messages(o) {
					var event struct {
						Data orders.Order `json:"data"`
					}
					require.NoError(t, json.Unmarshal(m.Body, &event))
					told = append(told, event.Data.LowLevel())
				}
				require.Equal(t, []orders.LowLevel{orders.Completed, orders.Corrected}, told[len(told)-2:])
				report(orders.CorrectedResult, "3")
				results, err = d.Results(t.Context(), d.team, o.ID)
				require.NoError(t, err)
				require.Equal(t, "2", *results.Results[0].PreviousResult)
			})
		}
	}
}

// A laboratory may correct a result while others are to come: the result is marked, the markers are
// in the history, an event is sent whatever the team's settings are, and the order stays open.
func TestCorrection_beforeTheFinalReportKeepsTheOrderOpen(t *testing.T) {
	for _, name := range []string{"walk-in", "kit", "on site"} {
		for _, end := range []orders.Trigger{orders.FinalResult, orders.CorrectedResult} {
			t.Run(name+", "+string(end), func(t *testing.T) {
				d := newReviewFixture(t)
				d.settings.OnSiteCollection = true
				o := d.requisitioned(name)
				report := func(on orders.Trigger, results ...labresult.Result) []labresult.Result {
					require.NoError(t, d.Receive(t.Context(), d.report(o, func(m *exchange.Message) { m.On, m.Results.Results = on, results })))
					out, err := d.Results(t.Context(), d.team, o.ID)
					require.NoError(t, err)
					return out.Results
				}
				found := func(name, text string) labresult.Result {
					return labresult.Result{Name: name, Slug: strings.ToLower(name), Result: text}
				}
				corrected := func(name, text string) labresult.Result {
					r := found(name, text)
					r.CorrectedAt = new(healthlab.At(d.now()))
					return r
				}
				report(orders.PartialResult, found("Iron", "1"), found("Ferritin", "5"))
				sent, before := len(d.messages(o)), d.get(o)
				got := report(orders.PartialResult, corrected("Iron", "2"), found("Ferritin", "6"), found("Zinc", "7"))
				require.Equal(t, before.LowLevel(), d.get(o).LowLevel())
				require.Len(t, d.messages(o), sent+1)
				require.Equal(t, "1", *got[0].PreviousResult)
				require.NotNil(t, got[0].CorrectedAt)
				for _, r := range got[1:] {
					require.Nil(t, r.CorrectedAt, "the laboratory did not correct it")
					require.Nil(t, r.PreviousResult)
				}
				if name != "kit" { // kits have no status for partial results
					markers := d.get(o).LastEvent.CorrectedMarkers
					require.Len(t, markers, 1)
					require.Equal(t, "Iron", markers[0].Name)
				}
				// A repeat changes nothing, and later reports keep the marks.
				got = report(orders.PartialResult, corrected("Iron", "2"), found("Ferritin", "6"), found("Zinc", "7"))
				require.Equal(t, "1", *got[0].PreviousResult)
				require.Empty(t, d.get(o).LastEvent.CorrectedMarkers)
				got = report(end, found("Iron", "2"), corrected("Ferritin", "8"), found("Zinc", "7"), found("Copper", "9"))
				require.Equal(t, "1", *got[0].PreviousResult)
				require.Equal(t, "6", *got[1].PreviousResult)
				require.Nil(t, got[2].CorrectedAt)
				require.Nil(t, got[3].CorrectedAt, "it is no correction")
				require.Equal(t, "Ferritin", d.get(o).LastEvent.CorrectedMarkers[0].Name)
				require.Len(t, d.get(o).LastEvent.CorrectedMarkers, 1)
				require.Empty(t, d.waiting())
			})
		}
	}
}

// A correction of results that never came waits for review.
func TestCorrection_withoutAnEarlierReportWaitsForReview(t *testing.T) {
	d := newReviewFixture(t)
	o := d.requisitioned("walk-in")
	held := d.held(d.report(o, func(m *exchange.Message) { m.On = orders.CorrectedResult }))
	require.Equal(t, exchange.MatchWrongCollection, held.DecisionCode)
}

// Susceptibilities of two isolates have the same codes: a correction changes those of its
// group only, and a new critical result of the other isolate is announced.
func TestCorrection_changesTheResultsOfItsIsolateOnly(t *testing.T) {
	d := newFixture(t)
	o := d.requisitioned("walk-in")
	susceptible := func(group, result string, flag labresult.Interpretation) labresult.Result {
		return labresult.Result{Name: "Ampicillin", Slug: "ampicillin", LOINC: ptr("18864-9"), Group: group, Result: result, Interpretation: flag}
	}
	report := func(id string, on orders.Trigger, results ...labresult.Result) {
		require.NoError(t, d.Receive(t.Context(), d.report(o, func(m *exchange.Message) {
			m.ID, m.On, m.Results = id, on, &labresult.Report{Results: results}
		})))
	}
	report("1", orders.FinalResult, susceptible("1", "R", labresult.Abnormal), susceptible("2", "S", labresult.Critical))
	report("2", orders.CorrectedResult, susceptible("2", "R", labresult.Critical))
	results, err := d.Results(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Equal(t, "S", *results.Results[0].PreviousResult)
	report("3", orders.CorrectedResult, susceptible("1", "R", labresult.Abnormal), susceptible("2", "R", labresult.Critical))
	results, err = d.Results(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Nil(t, results.Results[0].PreviousResult, "it was not there before")
	require.Equal(t, "S", *results.Results[1].PreviousResult)
}

// A laboratory that rejects a sample says why, for each result that is missing.
func TestSampleRejection_notesTheReasonOfEachMissingResult(t *testing.T) {
	d := newFixture(t)
	o := d.requisitioned("walk-in")
	require.NoError(t, d.Receive(t.Context(), d.report(o, func(m *exchange.Message) { m.On = orders.PartialResult })))
	require.NoError(t, d.Receive(t.Context(), d.report(o, func(m *exchange.Message) {
		m.On, m.Detail, m.Results = orders.SampleRejected, orders.SampleStabilityExceeded, &labresult.Report{
			Metadata: labresult.Metadata{Notes: ptr("SAMPLE REJECTED: shipped frozen")}, MissingResults: []labresult.Missing{{Name: "Iron", Note: ptr("frozen")}},
		}
	})))
	got := d.get(o)
	require.Equal(t, orders.SampleError, got.LowLevel())
	require.Nil(t, got.Interpretation)
	require.True(t, *got.HasMissingResults)
	results, err := d.Results(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Empty(t, results.Results)
	require.Equal(t, "SAMPLE REJECTED: shipped frozen", *results.Metadata.Notes)
	require.Equal(t, "frozen", *results.MissingResults[0].Note)
}

// Each critical result is announced to the team once, with the time of the first results.
func TestCriticalResults_eachSendsOneEventWithTheFirstTime(t *testing.T) {
	d := newFixture(t)
	o := d.requisitioned("walk-in")
	began := d.now()
	iron := labresult.Result{Name: "Iron", Slug: "iron", Result: "1", Interpretation: labresult.Normal}
	zinc := labresult.Result{Name: "Zinc", Slug: "zinc", Result: "9", Interpretation: labresult.Critical}
	critical := iron
	critical.Interpretation = labresult.Critical
	report := func(on orders.Trigger, results ...labresult.Result) {
		d.advance(time.Hour)
		require.NoError(t, d.Receive(t.Context(), d.report(o, func(m *exchange.Message) { m.On, m.Results.Results = on, results })))
	}
	report(orders.PartialResult, iron)
	report(orders.PartialResult, iron, zinc)
	report(orders.PartialResult, iron, zinc)
	report(orders.FinalResult, critical, zinc)
	report(orders.CorrectedResult, critical)
	told := d.critical(o)
	require.Len(t, told, 2)
	require.Equal(t, labresult.Partial, told[0].Status)
	require.Equal(t, labresult.Final, told[1].Status)
	for i, hours := range []int{2, 4} {
		require.Equal(t, began.Add(time.Hour), told[i].CreatedAt.Time)
		require.Equal(t, began.Add(time.Duration(hours)*time.Hour), told[i].UpdatedAt.Time)
	}
}

// critical is what the team was told of critical results of an order.
func (d *fixture) critical(o orders.Order) (told []critical.Notice) {
	d.t.Helper()
	for _, m := range d.messages(o) {
		var notice struct {
			Data critical.Notice `json:"data"`
		}
		if m.Type == critical.EventCritical {
			require.NoError(d.t, json.Unmarshal(m.Body, &notice))
			told = append(told, notice.Data)
		}
	}
	return told
}

// A missing result has the code of its marker, so the result of the redraw replaces it.
func TestMissingResult_isReplacedByTheRedraw(t *testing.T) {
	d := newFixture(t, func(o *options) { o.RedrawLabs = []string{"northlab"} })
	d.settings.Redraws = true
	o := d.requisitioned("coded")
	require.NoError(t, d.Receive(t.Context(), d.report(o, func(m *exchange.Message) {
		m.Results.Results = nil
		m.Results.MissingResults = []labresult.Missing{{Name: "Sodium", ProviderID: ptr("N001-1"), InferredFailureType: labresult.InternalLabFailure}}
	})))
	got, err := d.Results(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Equal(t, "2951-2", *got.MissingResults[0].LOINC)
	require.Equal(t, "sodium-serum", *got.MissingResults[0].LOINCSlug)
	require.Equal(t, "sodium", got.MissingResults[0].Slug)
	require.Len(t, got.MissingResults, 1)
	again := d.get(orders.Order{ID: d.get(o).OrderTransaction.Orders[1].ID})
	d.work()
	require.NoError(t, d.Receive(t.Context(), d.report(again, func(m *exchange.Message) {
		m.Results.Results = []labresult.Result{{Name: "Sodium", ProviderID: ptr("N001-1"), Result: "140"}}
	})))
	got, err = d.TransactionResults(t.Context(), d.team, o.OrderTransaction.ID)
	require.NoError(t, err)
	require.Empty(t, got.MissingResults)
	require.Len(t, got.Results, 1)
}

// The type of a result without one is inferred from its text.
func TestResults_withoutATypeGetItFromTheirText(t *testing.T) {
	d := newFixture(t)
	o := d.requisitioned("walk-in")
	texts := []string{"< 5", "> OR = 3", "1.5 - 2", "-2 - 3", "7", "clotted"}
	require.NoError(t, d.Receive(t.Context(), d.report(o, func(m *exchange.Message) {
		m.Results.Results = nil
		for _, text := range texts {
			m.Results.Results = append(m.Results.Results, labresult.Result{Name: text, Result: text})
		}
	})))
	got, err := d.Results(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	want := []struct {
		text string
		kind labresult.Type
	}{{"<5", labresult.Range}, {">=3", labresult.Range}, {"1.5-2", labresult.Range}, {"-2 - 3", labresult.Comment}, {"7", labresult.Numeric}, {"clotted", labresult.Comment}}
	for i, w := range want {
		r := got.Results[i]
		require.Equal(t, w.text, r.Result)
		require.Equal(t, w.kind, r.Type)
		if w.kind == labresult.Numeric {
			require.Nil(t, r.Notes)
		} else {
			require.Equal(t, texts[i], *r.Notes)
		}
	}
}

// Bounds are read from the text of the range, or are the lab's own.
func TestResults_areComparedWithTheBoundsOfTheRange(t *testing.T) {
	number := func(s string) *catalogue.Number {
		n, err := catalogue.ParseNumber(s)
		require.NoError(t, err)
		return &n
	}
	yes, no := ptr(true), ptr(false)
	for _, tc := range []struct {
		value, text, low, high string
		above, below           *bool
	}{
		{value: "5", text: "<5", above: yes},
		{value: "5", text: "<=5", above: no},
		{value: "5", text: "> OR = 5", below: no},
		{value: "5", text: ">5", below: yes},
		{value: "5", text: "3-5", above: no, below: no},
		{value: "9", low: "3", high: "5", above: yes, below: no},
		{value: "5", low: "3", high: "5", above: no, below: no},
		{value: "0", text: "<5", low: "0", above: no, below: no},
		{value: "9", text: ">3", high: "9", above: no, below: no},
		{value: "9", text: "adults: below 5"},
	} {
		r := labresult.Result{Type: labresult.Numeric, Result: tc.value, Value: number(tc.value)}
		if tc.text != "" {
			r.ReferenceRange = &tc.text
		}
		if tc.low != "" {
			r.MinRangeValue = number(tc.low)
		}
		if tc.high != "" {
			r.MaxRangeValue = number(tc.high)
		}
		r.Compare()
		require.Equal(t, tc.above, r.IsAboveMaxRange, "%+v", tc)
		require.Equal(t, tc.below, r.IsBelowMinRange, "%+v", tc)
	}
}
