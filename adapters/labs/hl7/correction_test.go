package hl7_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// A correction that comes before all results is one: the order stays partial, and the result, the
// history and the event say what it replaces. With the last result, it completes and corrects.
func TestCorrection_ofAPartialOrderKeepsItPartial(t *testing.T) {
	for name, c := range map[string]struct {
		first, second []string
		status        orders.LowLevel
	}{
		"result":            {[]string{ferrF, ferritin("9.50", "L", "F")}, []string{ferrC, ferritin("95.0", "N", "C")}, orders.PartialResults},
		"test":              {[]string{ferrF, ferritin("9.50", "L", "F")}, []string{ferrC, ferritin("95.0", "N", "")}, orders.PartialResults},
		"of a preliminary":  {[]string{ferrP, ferritin("9.50", "L", "P")}, []string{ferrC, ferritin("95.0", "N", "C")}, orders.PartialResults},
		"with the last one": {[]string{ferrF, ferritin("9.50", "L", "F")}, []string{ferrC, ferritin("95.0", "N", "C"), ironF, iron}, orders.Corrected},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServiceBench(t)
			id, n := s.place(healthlab.UserID{UUID: uuid.New()}, people.PatientDetailsInput{
				FirstName: "Ana", LastName: "Roe", DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9}, Gender: people.Female,
			})
			report := func(segments ...string) {
				raw := strings.ReplaceAll(string(s.report(n, append([]string{strings.Replace(ana, ` \T\ SOHNE`, "", 1)}, segments...)...)), "|iron^", "|7573^")
				require.Equal(t, "AA", s.send([]byte(raw)))
				s.pull()
			}
			report(c.first...)
			report(c.second...)
			o, err := s.service.Get(t.Context(), s.team, id)
			require.NoError(t, err)
			require.Equal(t, c.status, o.LowLevel())
			require.Len(t, o.LastEvent.CorrectedMarkers, 1)
			require.Equal(t, "Ferritin", o.LastEvent.CorrectedMarkers[0].Name)
			results, err := s.service.Results(t.Context(), s.team, id)
			require.NoError(t, err)
			require.Equal(t, "95.0", results.Results[0].Result)
			require.Equal(t, "9.50", *results.Results[0].PreviousResult)
			require.NotNil(t, results.Results[0].CorrectedAt)
			if c.status == orders.PartialResults {
				report(ironF, iron)
			}
			results, err = s.service.Results(t.Context(), s.team, id)
			require.NoError(t, err)
			require.Len(t, results.Results, 2)
			require.Equal(t, "9.50", *results.Results[0].PreviousResult, "the mark stays")
			require.Nil(t, results.Results[1].CorrectedAt, "it is new")
		})
	}
}

// A correction names the earlier value, whatever text or code the laboratory adds with it.
func TestCorrection_namesThePreviousResult(t *testing.T) {
	const code = "ferr^Ferritin^L"
	for name, codes := range map[string]string{
		"same": code, "another text": "ferr^FERRITIN, SERUM^L", "LOINC added": code + "^2276-4^Ferritin^LN", "LOINC added before": "2276-4^Ferritin^LN^" + code,
	} {
		t.Run(name, func(t *testing.T) {
			s := newServiceBench(t)
			id, n := s.place(healthlab.UserID{UUID: uuid.New()}, people.PatientDetailsInput{
				FirstName: "Ana", LastName: "Roe", DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9}, Gender: people.Female,
			})
			for _, segments := range [][]string{
				{ferrF, "OBX|1|NM|" + code + "||9.50||||||F", strings.Replace(ironF, "|iron^", "|7573^", 1), iron},
				{strings.Replace(ferrC, "F1^LIS", "", 1), "OBX|1|NM|" + codes + "||95.0||||||C"},
			} {
				require.Equal(t, "AA", s.send(s.report(n, append([]string{strings.Replace(ana, ` \T\ SOHNE`, "", 1)}, segments...)...)))
				s.pull()
			}
			o, err := s.service.Get(t.Context(), s.team, id)
			require.NoError(t, err)
			require.Equal(t, orders.Corrected, o.LowLevel())
			require.Len(t, o.LastEvent.CorrectedMarkers, 1)
			results, err := s.service.Results(t.Context(), s.team, id)
			require.NoError(t, err)
			require.Len(t, results.Results, 2)
			require.Equal(t, "95.0", results.Results[0].Result)
			require.NotNil(t, results.Results[0].PreviousResult)
			require.Equal(t, "9.50", *results.Results[0].PreviousResult)
		})
	}
}
