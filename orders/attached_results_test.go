package orders_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// walkInMarkers are the ordered markers of the walk-in test by name.
var walkInMarkers = map[string]int{"glucose": 11, "urea": 12, "untimed": 16}

// reports returns the whole report of a laboratory: results as "glucose 151 HH", each final.
func reports(results ...string) func(*exchange.Message) {
	return func(m *exchange.Message) {
		m.ID, m.On, m.Results = uuid.NewString(), orders.PartialResult, &labresult.Report{}
		m.Awaited = []int{}
		for _, name := range []string{"glucose", "urea", "untimed"} {
			if !slices.ContainsFunc(results, func(r string) bool { return strings.HasPrefix(r, name) }) {
				m.Awaited = append(m.Awaited, walkInMarkers[name])
			}
		}
		for _, text := range results {
			f := strings.Fields(text)
			r := labresult.Result{Name: f[0], Result: f[1], Type: labresult.Numeric, Interpretation: labresult.Normal, ProviderID: ptr("code-" + f[0])}
			if len(f) > 2 {
				r.Interpretation = labresult.Critical
			}
			m.Results.Results = append(m.Results.Results, r)
		}
		if len(m.Awaited) == 0 {
			m.On, m.Awaited = orders.FinalResult, nil
		}
	}
}

func misspelt(m *exchange.Message) { m.Patient.LastName += "x" }

func unnumbered(m *exchange.Message) {
	m.Order, m.SampleID, m.On, m.Awaited = orders.OrderID{}, "", orders.PartialResult, []int{}
}

// preliminary sets the results of markers to preliminary ones.
func preliminary(names ...string) func(*exchange.Message) {
	return func(m *exchange.Message) {
		m.On = orders.PartialResult
		for _, n := range names {
			m.Awaited = append(m.Awaited, walkInMarkers[n])
		}
	}
}

// Accepted results and the laboratory's own reports are joined, whichever came first, and no result of either is lost.
func TestAccept_keepsTheOtherResultsOfTheOrder(t *testing.T) {
	type step struct {
		accept bool
		edit   []func(*exchange.Message)
		want   string // the results, sorted
		status orders.LowLevel
	}
	lab := func(want string, status orders.LowLevel, edit ...func(*exchange.Message)) step {
		return step{false, edit, want, status}
	}
	accepted := func(want string, status orders.LowLevel, edit ...func(*exchange.Message)) step {
		return step{true, edit, want, status}
	}
	const part, done, corrected = orders.PartialResults, orders.Completed, orders.Corrected
	all := reports("glucose 90", "untimed 3", "urea 2")
	for name, steps := range map[string][]step{
		"the first result, misspelt": {
			accepted("glucose 151 critical", part, reports("glucose 151 HH"), misspelt),
			lab("glucose 151 critical, urea 2", part, reports("urea 2")),
			lab("glucose 151 critical, untimed 3, urea 2", done, reports("urea 2", "untimed 3")),
			lab("glucose 151 critical, untimed 4, urea 2", corrected, reports("urea 2", "untimed 4")),
		},
		"the last result, misspelt": {
			lab("untimed 3, urea 2", part, reports("urea 2", "untimed 3")),
			accepted("glucose 151 critical, untimed 3, urea 2", done, reports("glucose 151 HH"), misspelt),
			lab("glucose 151 critical, untimed 3, urea 5", corrected, reports("urea 5", "untimed 3")),
			lab("glucose 90, untimed 3, urea 5", corrected, reports("glucose 90", "urea 5", "untimed 3")),
		},
		"without a number": {
			lab("untimed 3", part, reports("untimed 3")),
			accepted("glucose 151, untimed 3", part, reports("glucose 151"), unnumbered),
			accepted("glucose 151, untimed 3, urea 2", done, reports("urea 2"), unnumbered),
		},
		"everything misspelt, then a correction": {
			accepted("glucose 151, untimed 3, urea 2", done, reports("glucose 151", "urea 2", "untimed 3"), misspelt),
			lab("glucose 95, untimed 3, urea 2", corrected, reports("glucose 95")),
			accepted("glucose 95, untimed 7, urea 2", corrected, reports("untimed 7"), misspelt),
		},
		"another test for a completed order": {
			lab("glucose 90, untimed 3, urea 2", done, all),
			accepted("ferritin 5, glucose 90, untimed 3, urea 2", corrected, reports("ferritin 5"), unnumbered),
			lab("ferritin 5, glucose 91, untimed 3, urea 2", corrected, reports("glucose 91", "untimed 3", "urea 2"), func(m *exchange.Message) { m.On = orders.CorrectedResult }),
		},
		"a correction, which the laboratory does not repeat": {
			lab("glucose 90, urea 2", part, reports("glucose 90", "urea 2")),
			accepted("glucose 151, urea 2", part, reports("glucose 151"), misspelt),
			lab("glucose 151, untimed 3, urea 2", done, all),
			lab("glucose 80, untimed 3, urea 2", corrected, reports("glucose 80", "untimed 3", "urea 2"), func(m *exchange.Message) { m.On = orders.CorrectedResult }),
		},
		"a preliminary result of the laboratory": {
			accepted("glucose 151", part, reports("glucose 151"), misspelt),
			lab("glucose 151, untimed 3, urea 2", done, reports("glucose 140", "untimed 3", "urea 2"), preliminary("glucose")),
			lab("glucose 140, untimed 3, urea 2", corrected, reports("glucose 140", "untimed 3", "urea 2")),
		},
		"a preliminary result accepted": {
			accepted("glucose 151", part, reports("glucose 151"), misspelt, preliminary("glucose")),
			lab("glucose 151, untimed 3, urea 2", part, reports("untimed 3", "urea 2")),
			lab("glucose 90, untimed 3, urea 2", done, all),
		},
		"what is awaited is unknown": {
			lab("untimed 3, urea 2", part, reports("untimed 3", "urea 2"), func(m *exchange.Message) { m.Awaited = nil }),
			accepted("glucose 151, untimed 3, urea 2", part, reports("glucose 151"), misspelt),
			lab("glucose 90, untimed 3, urea 2", done, all),
		},
		"the laboratory withdraws the test": {
			lab("glucose 90, urea 2", part, reports("glucose 90", "urea 2")),
			accepted("glucose 151, urea 2", part, reports("glucose 151"), misspelt),
			lab("urea 2", part, reports("urea 2")),
		},
		"the laboratory says that the test is missing": {
			accepted("glucose 151", part, reports("glucose 151"), misspelt),
			lab("untimed 3, urea 2", done, reports("untimed 3", "urea 2"), func(m *exchange.Message) {
				m.On, m.Awaited = orders.FinalResult, nil
				m.Results.MissingResults = []labresult.Missing{{Name: "glucose", ProviderID: ptr("code-glucose"), InferredFailureType: labresult.CollectionProcessFailure}}
			}),
		},
		"the laboratory rejects the rest": {
			accepted("glucose 151", part, reports("glucose 151"), misspelt),
			lab("glucose 151", done, reports(), func(m *exchange.Message) {
				m.On, m.Awaited = orders.SampleRejected, nil
				m.Results.MissingResults = []labresult.Missing{{Name: "urea", ProviderID: ptr("code-urea"), InferredFailureType: labresult.CollectionProcessFailure}}
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newReviewFixture(t)
			o := d.requisitioned("walk-in", withOutcome("never_again"))
			for n, step := range steps {
				m := d.report(d.get(o), step.edit...)
				if step.accept {
					d.accepts(d.held(m), exchange.AcceptRequest{OrderID: &o.ID})
				} else {
					require.NoError(t, d.Receive(t.Context(), m))
				}
				require.Empty(t, d.waiting(), "step %d", n+1)
				require.Equal(t, step.status, d.get(o).LowLevel(), "step %d", n+1)
				got, err := d.Results(t.Context(), d.team, o.ID)
				require.NoError(t, err)
				var texts []string
				for _, r := range got.Results {
					text := r.Name + " " + r.Result
					if r.Interpretation == labresult.Critical {
						text += " critical"
					}
					texts = append(texts, text)
				}
				slices.Sort(texts)
				require.Equal(t, step.want, strings.Join(texts, ", "), "step %d", n+1)
				require.Equal(t, labresult.Worst(got.Results), *d.get(o).Interpretation)
			}
		})
	}
}

// An accepted result that differs from the order's result of the test is its correction.
func TestAccept_marksTheResultsThatItCorrects(t *testing.T) {
	d := newReviewFixture(t)
	o := d.requisitioned("walk-in", withOutcome("never_again"))
	require.NoError(t, d.Receive(t.Context(), d.report(o, reports("glucose 90", "urea 2"))))
	got := d.accepts(d.held(d.report(o, reports("glucose 151", "urea 2"), misspelt)), exchange.AcceptRequest{OrderID: &o.ID})
	require.Len(t, got.LastEvent.CorrectedMarkers, 1)
	require.Equal(t, "glucose", got.LastEvent.CorrectedMarkers[0].Name)
	results, err := d.Results(t.Context(), d.team, o.ID)
	require.NoError(t, err)
	require.Equal(t, "90", *results.Results[0].PreviousResult)
	require.Nil(t, results.Results[1].CorrectedAt)
	require.Equal(t, labresult.Partial, results.Metadata.Status)
	require.Nil(t, results.MissingResults)
	require.Equal(t, "Roe", results.ReportedPatient.LastName, "the patient of the laboratory's report")
}
