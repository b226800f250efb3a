package hl7_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// A cancelled test withdraws its results: each marker is either a result or missing, however the laboratory writes the
// cancellation and in whatever order the messages come.
func TestReport_cancelledTestWithdrawsItsResults(t *testing.T) {
	obr := func(head, at, status string) string {
		return strings.Replace(strings.TrimSuffix(head, "F"), "202603031000", "2026030"+at, 1) + status
	}
	ferr := func(at, status, value, result string) string {
		return obr(ferrF, at, status) + "\r" + ferritin(value, "HH", result)
	}
	rest := obr(ironF, "31000", "F") + "\r" + iron
	cancel := obr(ferrF, "51000", "X") + "\rNTE|1||Specimen contaminated"
	for name, tt := range map[string]struct {
		come []string
		want []string
		on   orders.Trigger
	}{
		"final, then cancelled":         {[]string{ferr("31000", "F", "400", "F"), rest, cancel}, []string{"90", "missing Ferritin"}, orders.CorrectedResult},
		"final, then with a result":     {[]string{ferr("31000", "F", "400", "F"), rest, cancel + "\r" + ferritin("", "", "X")}, []string{"90", "missing Ferritin"}, orders.CorrectedResult},
		"partial, then cancelled":       {[]string{ferr("31000", "P", "400", "P"), cancel, rest}, []string{"90", "missing Ferritin"}, orders.FinalResult},
		"partial, cancelled at the end": {[]string{ferr("31000", "P", "400", "P"), rest, cancel}, []string{"90", "missing Ferritin"}, orders.FinalResult},
		"of the same time":              {[]string{ferr("31000", "F", "400", "F"), rest, obr(ferrF, "31000", "X")}, []string{"90", "missing Ferritin"}, orders.CorrectedResult},
		"final comes late":              {[]string{cancel, rest, ferr("31000", "F", "400", "F")}, []string{"90", "missing Ferritin"}, orders.CorrectedResult},
		"partial comes late":            {[]string{cancel, rest, ferr("31000", "P", "400", "P")}, []string{"90", "missing Ferritin"}, orders.CorrectedResult},
		"partial in the cancellation":   {[]string{rest, cancel + "\r" + ferritin("400", "HH", "P")}, []string{"90", "missing Ferritin"}, orders.FinalResult},
		"final in the cancellation":     {[]string{rest, cancel + "\r" + ferritin("400", "HH", "F")}, []string{"400", "90"}, orders.FinalResult},
		"and the test reported again":   {[]string{ferr("31000", "F", "400", "F"), rest, cancel, ferr("61000", "F", "41", "F")}, []string{"41", "90"}, orders.CorrectedResult},
		"both":                          {[]string{ferr("31000", "F", "400", "F"), rest, cancel, obr(ironF, "51000", "X")}, []string{"missing Ferritin", "missing Iron"}, orders.CorrectedResult},
		"both, before they are final":   {[]string{ferr("31000", "P", "400", "P"), cancel, obr(ironF, "51000", "X")}, []string{"missing Ferritin", "missing Iron"}, orders.SampleRejected},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			n := b.submit(submission())
			for _, segments := range tt.come {
				require.Equal(t, "AA", b.send(b.report(n, ana, segments)))
			}
			require.ElementsMatch(t, tt.want, held(b))
			told := b.told()
			require.Equal(t, tt.on, told[len(told)-1].On)
			for _, m := range told[len(told)-1].Results.MissingResults {
				if m.Name == "Ferritin" && name != "of the same time" && name != "partial in the cancellation" {
					require.Equal(t, "Specimen contaminated", *m.Note)
					require.Equal(t, "2276-4", *m.LOINC)
				}
			}
		})
	}
}

// The interpretation of an order does not count withdrawn results.
func TestReport_withdrawnResultsAreNotInterpreted(t *testing.T) {
	s := newServiceBench(t)
	id, n := s.place(healthlab.UserID{UUID: uuid.New()}, people.PatientDetailsInput{
		FirstName: "Ana", LastName: "Roe", DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9}, Gender: people.Female,
	})
	report := func(segments ...string) labresult.Interpretation {
		raw := strings.ReplaceAll(string(s.report(n, append([]string{strings.Replace(ana, ` \T\ SOHNE`, "", 1)}, segments...)...)), "|iron^", "|7573^")
		require.Equal(t, "AA", s.send([]byte(raw)))
		s.pull()
		o, err := s.service.Get(t.Context(), s.team, id)
		require.NoError(t, err)
		require.NotNil(t, o.Interpretation)
		return *o.Interpretation
	}
	require.Equal(t, labresult.Critical, report(ferrF, ferritin("400", "HH", "F"), ironF, iron))
	cancelled := func(head string) string {
		return strings.Replace(strings.TrimSuffix(head, "F"), "20260303", "20260305", 1) + "X"
	}
	require.Equal(t, labresult.UnknownInterpretation, report(cancelled(ferrF), "NTE|1||MISLABELED SPECIMEN", cancelled(ironF)))
	results, err := s.service.Results(t.Context(), s.team, id)
	require.NoError(t, err)
	require.Empty(t, results.Results)
	require.Len(t, results.MissingResults, 2)
}
