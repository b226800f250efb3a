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
