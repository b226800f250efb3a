package orders_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// The report of a transaction is headed by the order of the newest results, and says that it
// is corrected if any of its results were.
func TestReport_ofATransactionIsHeadedByTheOrderWithNewestResults(t *testing.T) {
	a := newArchive(t, func(o *options) { o.RedrawLabs = []string{"northlab"} })
	a.settings.Redraws = true
	ctx := t.Context()
	first := a.placed("walk-in", withOutcome("missing"))
	a.advance(day)
	first = a.get(first)
	require.Equal(t, orders.RedrawAvailable, first.LowLevel())
	redraw := a.get(orders.Order{ID: first.OrderTransaction.Orders[1].ID})
	file, err := a.docs().TransactionReport(ctx, a.team, first.OrderTransaction.ID)
	require.NoError(t, err)
	require.Contains(t, string(file), first.ID.String())
	require.NotContains(t, string(file), redraw.ID.String(), "it has no result yet")
	a.advance(day)
	file, err = a.docs().TransactionReport(ctx, a.team, first.OrderTransaction.ID)
	require.NoError(t, err)
	require.Contains(t, string(file), redraw.ID.String())
	require.Contains(t, string(file), "FINAL REPORT")
}

func TestReport_ofACorrectedTransactionIsMarkedCorrected(t *testing.T) {
	a := newArchive(t)
	a.settings.UnmatchedResults = true
	a.everywhere()
	ctx := t.Context()
	// A completed order, corrected, and one more that takes its place at another lab.
	o := a.requisitioned("walk-in")
	require.NoError(t, a.Receive(ctx, a.report(o)))
	require.NoError(t, a.Receive(ctx, a.report(o, func(m *exchange.Message) { m.On = orders.CorrectedResult })))
	require.Equal(t, orders.Corrected, a.get(o).LowLevel())
	held := a.held(a.report(o, func(m *exchange.Message) { m.Lab, m.Results.Results[0].ProviderID = "eastlab", ptr("code-iron") }))
	next, err := a.Reviews().Accept(ctx, a.team, held.ID, exchange.AcceptRequest{OrderID: &o.ID})
	require.NoError(t, err)
	require.Equal(t, orders.Completed, next.LowLevel())
	require.Equal(t, o.OrderTransaction.ID, next.OrderTransaction.ID)
	file, err := a.docs().TransactionReport(ctx, a.team, o.OrderTransaction.ID)
	require.NoError(t, err)
	require.Contains(t, string(file), next.ID.String())
	require.Contains(t, string(file), "CORRECTED REPORT")
}

// A report prints isolates with their susceptibilities, samples and notes.
func TestReport_printsIsolatesWithSusceptibilitiesAndNotes(t *testing.T) {
	a := newArchive(t)
	o := a.requisitioned("walk-in")
	susceptible := func(group, of string) labresult.Result {
		return labresult.Result{Name: "Ampicillin", LOINC: ptr("18864-9"), Group: group, Result: "R", Methods: []labresult.Coded{{Text: "MIC"}},
			Parent: &labresult.ParentResult{Group: group, Value: of}}
	}
	midnight := healthlab.At(time.Date(2026, 3, 2, 7, 0, 0, 0, time.UTC)) // at -0700
	require.NoError(t, a.Receive(t.Context(), a.report(o, func(m *exchange.Message) {
		m.Results = &labresult.Report{
			Metadata: labresult.Metadata{Notes: ptr("took antibiotics")},
			Results: []labresult.Result{susceptible("1", "Escherichia coli"), susceptible("2", "Klebsiella pneumoniae"), {Name: "Colour", Result: "red", Group: "1",
				Equipment: []labresult.Coded{{Text: "AU-12"}}, Timestamp: &midnight, TimestampPrecision: labresult.DayPrecision, TimestampOffset: ptr(-7 * 3600)}},
			SampleInformation: map[string]labresult.SampleData{"S1": {SpecimenType: &labresult.Coded{Text: "Urine"}, TypeModifiers: []labresult.Coded{{Text: "midstream"}},
				SpecimenSite: &labresult.Coded{Text: "Bladder"}, Conditions: []labresult.Coded{{Text: "Autolyzed"}}, RejectReasons: []labresult.Coded{{Text: "Clotted"}},
				Additives: []labresult.Coded{{Text: "EDTA"}}, ContainerType: &labresult.Coded{Text: "Cup"}, Description: "pale yellow", ClinicalInformation: &labresult.ClinicalInformation{TotalVolume: ptr("40 mL")},
				DateCollected: &labresult.TimestampWithOffset{Timestamp: midnight, TimezoneOffset: -7 * 3600, Precision: labresult.DayPrecision},
				DateReceived:  &labresult.TimestampWithOffset{Timestamp: midnight, TimezoneOffset: -7 * 3600, Precision: labresult.MonthPrecision}}},
		}
	})))
	file, err := a.docs().Report(t.Context(), a.team, o.ID)
	require.NoError(t, err)
	for _, want := range []string{"took antibiotics", "Of Escherichia coli, Group 1", "Of Klebsiella pneumoniae, Group 2", "Method: MIC", "Urine, midstream", "Bladder", "Autolyzed", "Clotted",
		"AU-12", "EDTA", "Cup", "pale yellow", "40 mL", "At 2026-03-02", "2026-03"} {
		require.Contains(t, string(file), want)
	}
	require.NotContains(t, string(file), "2026-03-02 00:00", "the laboratory said no time")
}

// A report without results has no heading over them.
func TestReport_withoutResultsHasNoResultsHeading(t *testing.T) {
	a := newArchive(t)
	o := a.requisitioned("walk-in")
	require.NoError(t, a.Receive(t.Context(), a.report(o, func(m *exchange.Message) {
		m.Results = &labresult.Report{MissingResults: []labresult.Missing{{Name: "Iron", Note: ptr("clotted")}}}
	})))
	file, err := a.docs().Report(t.Context(), a.team, o.ID)
	require.NoError(t, err)
	require.Contains(t, string(file), `"Heading":"Not reported"`)
	require.NotContains(t, string(file), "Reference range")
	require.NotContains(t, string(file), `"Heading":"Results"`)
}

// A report that came with results under review belongs to no order yet: it is not shown, and it
// is moved or deleted together with the results.
func TestReport_ofResultsUnderReviewIsNotShown(t *testing.T) {
	ben := []byte("%PDF-1.7 of Ben Roe")
	hold := func(t *testing.T) (*archive, orders.Order, orders.Order, exchange.UnmatchedResult) {
		a := newArchive(t)
		a.settings.UnmatchedResults = true
		mine, his := a.requisitioned("walk-in"), a.requisitioned("walk-in", as("patient", func(p *people.PatientDetailsInput) { p.FirstName = "Ben" }))
		require.NoError(t, a.Receive(t.Context(), a.report(mine, func(m *exchange.Message) { m.On = orders.PartialResult })))
		require.NoError(t, a.Files().StoreReport(t.Context(), a.team, mine.ID, "BEN", ben))
		held := a.held(a.report(mine, func(m *exchange.Message) { m.Patient.FirstName, m.ReportFile = "Ben", "BEN" }))
		file, err := a.docs().Report(t.Context(), a.team, mine.ID)
		require.NoError(t, err)
		require.Contains(t, string(file), "PARTIAL REPORT")
		require.Equal(t, 1, a.files.left(t))
		return a, mine, his, held
	}
	t.Run("rejected", func(t *testing.T) {
		a, mine, _, held := hold(t)
		_, err := a.Reviews().Resolve(t.Context(), a.team, held.ID, exchange.ResolveRequest{Action: exchange.ReviewUnsure})
		require.NoError(t, err)
		require.Equal(t, 1, a.files.left(t))
		_, err = a.Reviews().Return(t.Context(), a.team, held.ID, nil)
		require.NoError(t, err)
		_, err = a.Reviews().Resolve(t.Context(), a.team, held.ID, exchange.ResolveRequest{Action: exchange.ReviewReject})
		require.NoError(t, err)
		require.Zero(t, a.files.left(t))
		r, err := a.store.Orders().Get(t.Context(), a.team, mine.ID)
		require.NoError(t, err)
		require.Empty(t, r.Files)
	})
	for name, req := range map[string]func(his orders.Order) exchange.AcceptRequest{
		"accepted":  func(his orders.Order) exchange.AcceptRequest { return exchange.AcceptRequest{OrderID: &his.ID} },
		"new order": func(his orders.Order) exchange.AcceptRequest { return exchange.AcceptRequest{UserID: &his.UserID} },
	} {
		t.Run(name, func(t *testing.T) {
			a, mine, his, held := hold(t)
			o, err := a.Reviews().Accept(t.Context(), a.team, held.ID, req(his))
			require.NoError(t, err)
			file, err := a.docs().Report(t.Context(), a.team, o.ID)
			require.NoError(t, err)
			require.Equal(t, ben, file)
			require.Equal(t, 1, a.files.left(t))
			require.NoError(t, a.Files().Forget(t.Context(), a.team, mine.UserID))
			require.Equal(t, 1, a.files.left(t), "it is not Ana's any more")
			require.NoError(t, a.Files().Forget(t.Context(), a.team, his.UserID))
			require.Zero(t, a.files.left(t))
		})
	}
	t.Run("accepted where it lies", func(t *testing.T) {
		a, mine, _, held := hold(t)
		_, err := a.Reviews().Accept(t.Context(), a.team, held.ID, exchange.AcceptRequest{OrderID: &mine.ID})
		require.NoError(t, err)
		file, err := a.docs().Report(t.Context(), a.team, mine.ID)
		require.NoError(t, err)
		require.Equal(t, ben, file)
		require.Equal(t, 1, a.files.left(t))
	})
	// A disk that fails decides nothing, and can be asked again.
	t.Run("disk", func(t *testing.T) {
		a, _, his, held := hold(t)
		a.files.fails = true
		_, err := a.Reviews().Accept(t.Context(), a.team, held.ID, exchange.AcceptRequest{OrderID: &his.ID})
		require.Equal(t, healthlab.Unavailable, healthlab.KindOf(err))
		a.files.fails = false
		_, err = a.Reviews().Accept(t.Context(), a.team, held.ID, exchange.AcceptRequest{OrderID: &his.ID})
		require.NoError(t, err)
		file, err := a.docs().Report(t.Context(), a.team, his.ID)
		require.NoError(t, err)
		require.Equal(t, ben, file)
	})
}
