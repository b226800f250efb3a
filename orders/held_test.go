package orders_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/orders"
)

// Text that no store keeps is noted, and a lab's feed goes on.
func TestResultsThatCannotBeKept(t *testing.T) {
	for name, spoil := range map[string]func(*orders.Message){
		"held":          func(m *orders.Message) { nobodys(m); m.Results.Results[0].Notes = ptr("\x00") },
		"held, a name":  func(m *orders.Message) { m.SampleID, m.Patient.LastName = "", "Roe\x00" },
		"specimen":      func(m *orders.Message) { m.SampleID = "S\x00" },
		"not UTF-8":     func(m *orders.Message) { m.SampleID = "S\xff" },
		"news":          func(m *orders.Message) { m.SampleID, m.On, m.Results = "S\x00", orders.SampleRejected, nil },
		"to its order":  func(m *orders.Message) { m.Results.Results[0].Notes = ptr("\x00") },
		"a redraw":      func(m *orders.Message) { lost(m); m.Results.MissingResults[0].Note = ptr("\x00") },
		"a redraw held": func(m *orders.Message) { lost(m); nobodys(m); m.Results.MissingResults[0].Note = ptr("\x00") },
	} {
		t.Run(name, func(t *testing.T) {
			d := newReviewDesk(t, func(o *orders.Options) { o.RedrawLabs = []string{"northlab"} })
			d.settings.Redraws = true
			o := d.requisitioned("walk-in")
			require.NoError(t, d.Receive(t.Context(), d.report(o, bySample, spoil)))
			require.Equal(t, orders.RequisitionCreated, d.get(o).LowLevel())
			require.Empty(t, d.waiting())
			require.NoError(t, d.Receive(t.Context(), d.report(o)))
			require.Equal(t, orders.Completed, d.get(o).LowLevel())
		})
	}
}

// lost makes a report of one in which a result is missing through the lab's fault.
func lost(m *orders.Message) {
	m.Results.MissingResults = []orders.MissingResult{{Name: "Glucose", InferredFailureType: orders.InternalLabFailure,
		SourceMarkers: []orders.SourceMarker{{MarkerID: 11}}}}
}

func (d *desk) accepts(r orders.UnmatchedResult, req orders.AcceptRequest) orders.Order {
	d.t.Helper()
	o, err := d.AcceptUnmatched(d.t.Context(), d.team, r.ID, req)
	require.NoError(d.t, err)
	return d.get(o)
}

// A held result says what the order will.
func TestHeldResultsAreWhole(t *testing.T) {
	d := newReviewDesk(t)
	o := d.requisitioned("walk-in")
	r := d.held(d.report(o, bySample, func(m *orders.Message) {
		m.SampleID, m.Lab = "", ""
		m.Results.Results[0].Result, m.Results.Results[0].Type, m.Results.Results[0].Interpretation = "9", "", ""
		m.Results.Results[0].ReferenceRange = ptr("3-5")
	}))
	require.Equal(t, orders.Abnormal, *r.Interpretation)
	require.Equal(t, orders.MatchLab{}, r.Lab, "nothing says whose it is")
	got := d.accepts(r, orders.AcceptRequest{OrderID: &o.ID})
	require.Equal(t, r.Interpretation, got.Interpretation)
}

// A lab that does not say who it is is the order's that it names.
func TestHeldResultsOfALab(t *testing.T) {
	d := newReviewDesk(t)
	o := d.requisitioned("walk-in")
	r := d.held(d.report(o, func(m *orders.Message) {
		m.Lab, m.Patient.FirstName, m.Results.Results[0].ProviderID = "", "Anna", ptr("code-glucose")
	}))
	require.Equal(t, orders.MatchLab{ID: 1, Name: "Northlab", Slug: "northlab"}, r.Lab)
	page, err := d.UnmatchedResults(t.Context(), orders.ResultQuery{Team: d.team, LabSlug: "northlab"})
	require.NoError(t, err)
	require.Len(t, page.Results, 1)
	got := d.accepts(r, orders.AcceptRequest{UserID: &d.user})
	require.NotEqual(t, o.ID, got.ID)
	require.Equal(t, orders.Completed, got.LowLevel())
	require.Equal(t, "northlab", got.LabTest.Lab.Slug)
}
