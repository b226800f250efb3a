package main

import (
	"bytes"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
)

func TestRun_printsResultsWithTheirInterpretation(t *testing.T) {
	var out bytes.Buffer
	run(t.Context(), &out)
	require.Equal(t, `Ferritin 18 ug/L: normal
Iron 52 ug/dL: abnormal
`, out.String())
}

func TestBackend_passesTheSuite(t *testing.T) {
	orderstest.RunLabBackend(t, func(t testing.TB) orderstest.LabHarness {
		lab := newDouble()
		api := httptest.NewServer(lab)
		t.Cleanup(api.Close)
		return orderstest.LabHarness{
			Lab: NewBackend(api.URL), Method: catalogue.WalkInTest, Pass: lab.Work, Outage: lab.Fail,
			Now: func() time.Time { return lab.at },
			Report: func(_ testing.TB, s exchange.Submission, odd orderstest.OddReport) {
				lab.Report(s.Order.ID, func(r *report) any { return oddReport(r, odd) })
			},
		}
	})
}

// oddReport makes a report as laboratories send them besides good ones.
func oddReport(r *report, odd orderstest.OddReport) any {
	switch odd {
	case orderstest.BoundReport:
		r.Lines[0].Value = "<5"
	case orderstest.CommentReport:
		r.Lines[0].Value = orderstest.CommentText
	case orderstest.NoPatientReport:
		r.patient = patient{}
	case orderstest.OtherPatientReport:
		p := orderstest.OtherPatient()
		r.patient = patient{p.FirstName, p.LastName, p.DOB}
	case orderstest.UnknownStateReport:
		r.Kind = "prelim"
	case orderstest.UnreadableReport:
		return struct {
			head
			Lines string `json:"lines"`
		}{r.head, "see letter"}
	}
	return r
}

// What a laboratory sends besides numbers reaches the order as it was sent.
func TestResults_nonNumericValuesArePassedUnchanged(t *testing.T) {
	m := message(report{Kind: "final", Lines: []line{
		{Code: "FER", Name: "Ferritin", Value: "<5", Unit: "ug/L", Range: "13-150"}, {Code: "IRON", Name: "Iron", Value: "see letter"},
		{Code: "TIBC", Name: "Binding capacity", Note: "not enough blood"},
	}})
	require.Len(t, m.Results.Results, 2)
	require.Equal(t, "<5", m.Results.Results[0].Result)
	require.Nil(t, m.Results.Results[1].Unit)
	require.Equal(t, "not enough blood", *m.Results.MissingResults[0].Note)
}
