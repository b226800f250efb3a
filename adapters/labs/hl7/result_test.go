package hl7_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/mllp"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// Results name the laboratory of the options, and their text has no NUL.
func TestReport_namesTheLabAndReplacesNUL(t *testing.T) {
	for _, lab := range []string{"", "northlab"} {
		b := newBench(t, func(o *hl7.Options) { o.LabSlug = lab })
		n := b.submit(submission())
		require.Equal(t, "AA", b.send(b.report(n, ana, ferrF, "OBX|1|TX|2276-4^Ferritin^LN||see\\X00\\note||||||F")))
		told := b.told()
		require.Len(t, told, 1)
		require.Equal(t, lab, told[0].Lab)
		require.Equal(t, "see\ufffdnote", told[0].Results.Results[0].Result)
	}
}

// The life of a report: a part of it, all of it, a correction, and something withdrawn.
func TestReport_goesFromPartialToFinalToCorrected(t *testing.T) {
	b := newBench(t, nil)
	s := submission()
	n := b.submit(s)
	require.Equal(t, "AA", b.send(b.report(n, ana, ferrP, ferritin("9", "L", "P"))))
	require.Equal(t, "AA", b.send(b.report(n, ana, ferrF, ferritin("9.50", "L", "F"))))
	require.Equal(t, "AA", b.send(b.report(n, ana, ironF, iron)), "the other test comes alone")
	require.Equal(t, "AA", b.send(b.report(n, ana, ferrC, ferritin("95.0", "N", "C"))))
	require.Equal(t, "AA", b.send(b.report(n, ana, strings.Replace(ferrC, "20260304", "20260305", 1), ferritin("", "", "D"))))
	told := b.told()
	require.Equal(t, []orders.Trigger{orders.PartialResult, orders.PartialResult, orders.FinalResult, orders.CorrectedResult, orders.CorrectedResult}, triggers(told))
	for _, m := range told {
		require.Equal(t, s.Order.ID, m.Order)
		require.Equal(t, s.Order.TeamID, m.Team)
		require.Equal(t, "ROE & SOHNE", m.Patient.LastName, "what the laboratory reports, not what the order says")
		require.Equal(t, n, m.SampleID)
		require.Equal(t, time.Date(2026, 3, 2, 19, 0, 0, 0, time.UTC), m.CollectedAt.UTC())
	}
	require.Equal(t, map[string]string{"Ferritin": "9"}, values(told[0]))
	require.Equal(t, map[string]string{"Ferritin": "9.50"}, values(told[1]))
	require.Equal(t, map[string]string{"Ferritin": "9.50", "Iron": "90"}, values(told[2]))
	require.Equal(t, map[string]string{"Ferritin": "95.0", "Iron": "90"}, values(told[3]))
	require.Equal(t, map[string]string{"Iron": "90"}, values(told[4]))
	require.Equal(t, labresult.Partial, told[1].Results.Metadata.Status)
	require.Nil(t, told[1].Results.MissingResults)
	require.Equal(t, labresult.Final, told[2].Results.Metadata.Status)
	require.Empty(t, told[2].Results.MissingResults)
	require.NotNil(t, told[2].Results.MissingResults)

	r := told[1].Results.Results[0]
	require.Equal(t, "2276-4", *r.LOINC)
	require.Equal(t, "ferr", *r.ProviderID)
	require.Equal(t, "9.50", r.Value.String())
	require.Equal(t, "ug/L", *r.Unit)
	require.Equal(t, "13-150", *r.ReferenceRange)
	require.True(t, *r.IsBelowMinRange)
	require.False(t, *r.IsAboveMaxRange)
	require.Equal(t, labresult.Abnormal, r.Interpretation)
	require.Equal(t, "L", r.SourceInterpretation)
	require.Equal(t, []labresult.SourceMarker{{MarkerID: 11, Name: "Ferritin", Slug: "ferritin", ProviderID: ptr("4598")}}, r.SourceMarkers)
	require.Equal(t, "North Lab", *r.PerformingLaboratory)
	head := told[2].Results.Metadata
	require.Equal(t, "41 1984-05-09 ANA ROE & SOHNE F1 Jo Doe NORTH 77", strings.Join([]string{head.Age, head.DOB, head.Patient, head.SpecimenNumber, *head.Provider, *head.Laboratory, *head.PatientID}, " "))
	sample, ok := told[2].Results.SampleInformation["F1"]
	require.True(t, ok)
	require.Equal(t, "2026-03-02T19:00:00+00:00", sample.DateCollected.Timestamp.String())
	require.Equal(t, -7*3600, sample.DateCollected.TimezoneOffset)
}

// In whatever order and how often messages arrive, the end result is the same, and older data
// never replaces newer data.
func TestReports_inAnyOrderGiveTheSameEndResult(t *testing.T) {
	s := submission()
	first := newBench(t, nil)
	n := first.submit(s)
	reports := [][]byte{
		first.report(n, ana, ferrP, ferritin("9", "L", "P")), first.report(n, ana, ferrF, ferritin("9.50", "L", "F")),
		first.report(n, ana, ironF, iron), first.report(n, ana, ferrC, ferritin("95.0", "N", "C")),
	}
	chance := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		b := newBench(t, nil)
		require.Equal(t, n, b.submit(s))
		deliveries := append(append([][]byte{}, reports...), reports...)
		chance.Shuffle(len(deliveries), func(i, j int) { deliveries[i], deliveries[j] = deliveries[j], deliveries[i] })
		for _, d := range deliveries {
			require.Equal(t, "AA", b.send(d))
		}
		told := b.told()
		last := told[len(told)-1]
		require.Equal(t, map[string]string{"Ferritin": "95.0", "Iron": "90"}, values(last), "round %d", round)
		require.LessOrEqual(t, len(told), len(reports))
		final, ids := false, map[string]bool{}
		for _, m := range told {
			require.False(t, ids[m.ID])
			ids[m.ID] = true
			require.True(t, !final || m.On == orders.CorrectedResult, "after all results come corrections alone")
			final = final || m.On == orders.FinalResult || m.On == orders.CorrectedResult
		}
		require.True(t, final)
	}
}

// Of two reports of the same time, the correction counts, whichever comes first.
func TestCorrection_replacesAReportOfTheSameTime(t *testing.T) {
	for _, first := range []string{"C", "F"} {
		b := newBench(t, nil)
		n := b.submit(submission())
		report := map[string][]byte{
			"F": b.report(n, ana, ferrF, ferritin("9", "L", "F"), ironF, iron),
			"C": b.report(n, ana, strings.Replace(ferrF, "|||F", "|||C", 1), ferritin("95", "N", "C"), ironF, iron),
		}
		second := map[string]string{"F": "C", "C": "F"}[first]
		require.Equal(t, "AA", b.send(report[first]))
		require.Equal(t, "AA", b.send(report[second]))
		told := b.told()
		require.Equal(t, "95", values(told[len(told)-1])["Ferritin"], first)
	}
}

func TestReport_repeatedMessageChangesNothing(t *testing.T) {
	b := newBench(t, nil)
	n := b.submit(submission())
	raw := b.report(n, ana, ferrP, ferritin("9", "L", "P"))
	for range 3 {
		require.Equal(t, "AA", b.send(raw))
	}
	require.Len(t, b.told(), 1)
	// The same control id with other content is another message.
	require.Equal(t, "AA", b.send([]byte(strings.Replace(string(raw), "||9|", "||8|", 1))))
	require.Equal(t, map[string]string{"Ferritin": "8"}, values(b.told()[1]))
	require.Equal(t, "AA", b.send(b.report(n, ana, ferrP, ferritin("8", "L", "P"))), "under another control id")
	require.Len(t, b.told(), 2)
	require.Equal(t, "AA", b.send(b.report(n, ana, "ZZZ|1", ferrP, ferritin("8", "L", "P"))), "with something that is not for us")
	require.Len(t, b.told(), 2)
}

// A result that fits no order for certain waits for review: it is neither attached by a guess
// nor lost.
func TestReport_uncertainOrderWaitsForReview(t *testing.T) {
	b := newBench(t, nil)
	mine, other := submission(), submission()
	other.Order.PatientDetails.LastName, other.Order.PatientDetails.FirstName, other.Order.PatientDetails.DOB = ptr("Poe"), ptr("Eve"), healthlab.Date{Year: 1990, Month: 1, Day: 1}
	n := b.submit(mine)
	b.submit(other)
	for name, tt := range map[string]struct {
		number string
		pid    string
	}{
		"unknown number":   {"NOSUCHORDER", ana},
		"no number":        {"", ana},
		"a typing mistake": {n[:15] + "_", ana},
	} {
		require.Equal(t, "AA", b.send(b.report(tt.number, tt.pid, ferrF, ferritin("9", "L", "F"), "NTE|1||"+name)), name)
		list, err := b.back.Review(t.Context(), 0, 100)
		require.NoError(t, err)
		last := list[len(list)-1]
		require.Equal(t, hl7.ReviewNoMatch, last.Review, name)
		require.Contains(t, string(last.Raw), name, "kept as it came")
	}
	require.Empty(t, b.told())
	list, err := b.back.Review(t.Context(), 0, 100)
	require.NoError(t, err)
	require.Len(t, list, 3)
	some, err := b.back.Review(t.Context(), list[0].Place, 1)
	require.NoError(t, err)
	require.Equal(t, list[1:2], some)

	// A person decides.
	require.NoError(t, b.back.Attach(t.Context(), list[0].Place, mine.Order.TeamID, mine.Order.ID))
	require.Equal(t, []orders.Trigger{orders.PartialResult}, triggers(b.told()))
	require.Equal(t, mine.Order.ID, b.told()[0].Order)
	require.True(t, b.told()[0].Attached)
	require.ErrorIs(t, b.back.Attach(t.Context(), list[0].Place, mine.Order.TeamID, mine.Order.ID), healthlab.NotFound)
	require.ErrorIs(t, b.back.Attach(t.Context(), list[1].Place, healthlab.TeamID{UUID: uuid.New()}, mine.Order.ID), healthlab.NotFound)
	require.ErrorIs(t, b.back.Attach(t.Context(), list[1].Place, mine.Order.TeamID, orders.OrderID{UUID: uuid.New()}), healthlab.NotFound)
	rest, err := b.back.Review(t.Context(), 0, 100)
	require.NoError(t, err)
	require.Equal(t, list[1:], rest)
}

// Results with an order's number go to the service with what was reported of patient and
// numbers. Those that contradict the order are not mixed with those that do not.
func TestReport_resultsThatContradictTheOrderAreSentSeparately(t *testing.T) {
	b := newBench(t, nil)
	mine, other := submission(), submission()
	b.lab.answer = func(m *er7.Message) (string, error) {
		return "MSA|AA|$ID\rORC|OK|" + m.Segment("ORC").Field(2).Text() + "|LAB" + m.Segment("ORC").Field(2).Text(), nil
	}
	n, m := b.submit(mine), b.submit(other)
	tests := []struct {
		name, number, filler, pid string
		foreign                   []string
	}{
		{"another birth date", n, "F1", "PID|1||77||ROE \\T\\ SOHNE^ANA||19840510|F", nil},
		{"another patient", n, "F1", "PID|1||77||POE^EVE|||F", nil},
		{"one of the family", n, "F1", "PID|1||77||ROE \\T\\ SOHNE^EVE|||F", nil},
		{"another sex", n, "F1", "PID|1||77||ROE \\T\\ SOHNE^ANA||19840509|M", nil},
		{"in other letters", n, "F1", "PID|1||77||По^Ева|||F", nil},
		{"two numbers", n + "\rORC|RE|" + m, "F1", ana, []string{m}},
		{"an unknown number besides", n + "\rORC|RE|UNKNOWN", "F1", ana, []string{"UNKNOWN"}},
		{"the laboratory's number of another order", n, "LAB" + m, ana, []string{m}},
	}
	for _, tt := range tests {
		number, orc, _ := strings.Cut(tt.number, "\r")
		obr := strings.Replace(ferrF, "F1^LIS", tt.filler, 1)
		if orc != "" {
			obr = orc + "\r" + obr
		}
		was := len(b.told())
		require.Equal(t, "AA", b.send(b.report(number, tt.pid, obr, ferritin("9", "L", "F"))), tt.name)
		told := b.told()
		require.Len(t, told, was+1, tt.name)
		last := told[was]
		require.Equal(t, mine.Order.ID, last.Order, tt.name)
		require.False(t, last.Attached, tt.name)
		require.Equal(t, tt.foreign, last.ForeignNumbers, tt.name)
		require.Equal(t, last.Patient.Contradicts(mine.Order.PatientDetails), tt.foreign == nil, tt.name)
	}
	require.Equal(t, "AA", b.send(b.report(n, ana, ironF, iron)))
	told := b.told()
	require.Equal(t, map[string]string{"Iron": "90"}, values(told[len(told)-1]))
	// The laboratory's number alone names the order.
	require.Equal(t, "AA", b.send(b.report("", ana, strings.Replace(ferrF, "F1^LIS", "LAB"+n, 1), ferritin("8", "L", "F"))))
	told = b.told()
	require.Equal(t, map[string]string{"Iron": "90", "Ferritin": "8"}, values(told[len(told)-1]))
	require.Equal(t, orders.FinalResult, told[len(told)-1].On)
	list, err := b.back.Review(t.Context(), 0, 100)
	require.NoError(t, err)
	require.Empty(t, list)
}

// Results of a cancelled order go to the service, which holds them for review.
func TestReport_ofACancelledOrderWaitsForReview(t *testing.T) {
	b := newBench(t, nil)
	s := submission()
	n := b.submit(s)
	require.NoError(t, b.back.Cancel(t.Context(), s.Order.TeamID, s.Order.ID))
	require.Equal(t, "AA", b.send(b.report(n, ana, ferrF, ferritin("9", "L", "F"))))
	require.Equal(t, []orders.Trigger{orders.PartialResult}, triggers(b.told()))
	require.Equal(t, s.Order.ID, b.told()[0].Order)
	status := strings.Replace(string(b.report(n, ana, "ORC|SC|$|F1||IP")), "ORU^R01^ORU_R01", "ORM^O01", 1)
	require.Equal(t, "AA", b.send([]byte(status)))
	require.Len(t, b.told(), 1)
	list, err := b.back.Review(t.Context(), 0, 1)
	require.NoError(t, err)
	require.Equal(t, hl7.ReviewCancelled, list[0].Review)
}

// One message may hold tests of several orders, and some of none.
func TestReport_ofSeveralOrdersIsSplit(t *testing.T) {
	b := newBench(t, nil)
	mine, other := submission(), submission()
	n, m := b.submit(mine), b.submit(other)
	lost := strings.ReplaceAll(ferrF, "$", "GONE")
	require.Equal(t, "AA", b.send(b.report(n, ana, ferrF, ferritin("9", "L", "F"), "ORC|RE|"+m, "OBR|1||F2|iron|||20260302", iron, lost, ferritin("7", "L", "F"), ironF, iron)))
	told := b.told()
	require.Len(t, told, 2)
	got := map[orders.OrderID]map[string]string{told[0].Order: values(told[0]), told[1].Order: values(told[1])}
	require.Equal(t, map[orders.OrderID]map[string]string{mine.Order.ID: {"Ferritin": "9", "Iron": "90"}, other.Order.ID: {"Iron": "90"}}, got)
	list, err := b.back.Review(t.Context(), 0, 100)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, hl7.ReviewNoMatch, list[0].Review)
	// Attaching moves what had no order, and nothing else.
	require.NoError(t, b.back.Attach(t.Context(), list[0].Place, other.Order.TeamID, other.Order.ID))
	last := b.told()[2]
	require.Equal(t, other.Order.ID, last.Order)
	require.Equal(t, map[string]string{"Iron": "90", "Ferritin": "7"}, values(last))
}

// A message may hold several patients: segments of one patient do not apply to the next.
func TestReport_ofSeveralPatientsIsSplitByPatient(t *testing.T) {
	b := newBench(t, nil)
	mine, other := submission(), submission()
	other.Order.PatientDetails = &people.PatientDetails{FirstName: ptr("Eve"), LastName: ptr("Poe"), DOB: healthlab.Date{Year: 1990, Month: 1, Day: 1}}
	n, m := b.submit(mine), b.submit(other)
	eve := "PID|2||88||POE^EVE||19900101|F"
	bare := "OBR|1|||4598^Ferritin^L||||||||||||||||||||||F"
	require.Equal(t, "AA", b.send(b.report(n, ana, "ORC|RE|$", ferrF, ferritin("9", "L", "F"),
		eve, "OBX|1|ST|mood^Mood^L||fine||||||F", bare, ferritin("1", "L", "F"), strings.ReplaceAll(ironF, "$", m), iron,
		"PID|3||99", bare, ferritin("2", "L", "F"))))
	told := b.told()
	require.Len(t, told, 2)
	for _, message := range told {
		switch message.Order {
		case mine.Order.ID:
			require.Equal(t, map[string]string{"Ferritin": "9"}, values(message))
			require.Equal(t, "ANA ROE & SOHNE", message.Results.Metadata.Patient)
		case other.Order.ID:
			require.Equal(t, map[string]string{"Iron": "90"}, values(message))
			require.Equal(t, "EVE POE", message.Results.Metadata.Patient)
		}
	}
	list, err := b.back.Review(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Len(t, list, 1, "results without a number have no order")
}

// Results that are not verified are not shown.
func TestReport_unverifiedResultIsNotShown(t *testing.T) {
	b := newBench(t, nil)
	n := b.submit(submission())
	require.Equal(t, "AA", b.send(b.report(n, ana, ferrP, ferritin("9", "L", "R"), ironF, iron)))
	require.Equal(t, orders.PartialResult, b.told()[0].On)
	require.Equal(t, map[string]string{"Iron": "90"}, values(b.told()[0]))
}

// A laboratory that calls its tests otherwise in reports: by configuration, the order
// is final when all that was ordered is there.
func TestOptions_testsMapsReportedTestCodes(t *testing.T) {
	for name, tests := range map[string]map[string]string{"mapped": {"FE1": "4598", "FE2": "iron"}, "half": {"FE1": "4598"}, "not": nil} {
		b := newBench(t, func(o *hl7.Options) { o.Tests = tests })
		n := b.submit(submission())
		require.Equal(t, "AA", b.send(b.report(n, ana, strings.Replace(ferrF, "4598^", "FE1^", 1), ferritin("9", "L", "F"))))
		first := b.told()[0]
		require.Equal(t, "AA", b.send(b.report(n, ana, strings.Replace(ironF, "iron^", "FE2^", 1), iron)))
		told := triggers(b.told())
		switch name {
		case "mapped":
			require.Equal(t, []orders.Trigger{orders.PartialResult, orders.FinalResult}, told)
			require.Equal(t, 11, first.Results.Results[0].SourceMarkers[0].MarkerID)
		case "half":
			require.Equal(t, []orders.Trigger{orders.PartialResult, orders.PartialResult}, told, "iron has not come, for all we know")
		case "not":
			require.Equal(t, []orders.Trigger{orders.FinalResult, orders.CorrectedResult}, told, "nothing is known of its names")
			require.Nil(t, first.Results.Results[0].SourceMarkers)
		}
	}
}

func TestReport_cancelledTestsMakeResultsMissing(t *testing.T) {
	gone := strings.Replace(ferrF, "|||F", "|||X", 1)
	goneIron := strings.Replace(ironF, "|||F", "|||X", 1)
	b := newBench(t, nil)
	n := b.submit(submission())
	require.Equal(t, "AA", b.send(b.report(n, ana, gone, "NTE|1||Quantity not sufficient", goneIron)))
	require.Equal(t, []orders.Trigger{orders.SampleRejected}, triggers(b.told()))
	require.Equal(t, orders.SampleQuantityNotSufficient, b.told()[0].Detail)
	require.Empty(t, b.told()[0].Results.Results)
	require.Len(t, b.told()[0].Results.MissingResults, 2)
	require.Equal(t, "Quantity not sufficient", *b.told()[0].Results.MissingResults[0].Note)

	// The patient of a mislabelled specimen is not certain.
	b = newBench(t, nil)
	n = b.submit(submission())
	require.Equal(t, "AA", b.send(b.report(n, ana, gone, "NTE|1||Specimen mislabelled", goneIron)))
	require.Equal(t, []orders.Trigger{orders.SampleRejected}, triggers(b.told()))
	require.Empty(t, b.told()[0].Detail)

	// One of two: the rest is final, and the one is missing, with what the lab says.
	b = newBench(t, nil)
	n = b.submit(submission())
	require.Equal(t, "AA", b.send(b.report(n, ana, gone, ferritin("", "", "X"), "NTE|1||Specimen hemolyzed", ironF, iron)))
	told := b.told()
	require.Equal(t, []orders.Trigger{orders.FinalResult}, triggers(told))
	require.Equal(t, map[string]string{"Iron": "90"}, values(told[0]))
	require.Equal(t, []labresult.Missing{{Name: "Ferritin", Slug: "ferritin", InferredFailureType: labresult.CollectionProcessFailure, Note: ptr("Specimen hemolyzed"),
		LOINC: ptr("2276-4"), LOINCSlug: ptr("ferritin"), ProviderID: ptr("ferr"), SourceMarkers: []labresult.SourceMarker{{MarkerID: 11, Name: "Ferritin", Slug: "ferritin", ProviderID: ptr("4598")}}}}, told[0].Results.MissingResults)

	// A test that is cancelled without a result segment is missing too.
	b = newBench(t, nil)
	n = b.submit(submission())
	require.Equal(t, "AA", b.send(b.report(n, ana, gone, "NTE|1||duplicate", ironF, iron)))
	require.Equal(t, "4598", *b.told()[0].Results.MissingResults[0].ProviderID)
	require.Equal(t, labresult.NonFailure, b.told()[0].Results.MissingResults[0].InferredFailureType)

	// The laboratory stops the whole order.
	for method, want := range map[catalogue.CollectionMethod]orders.Trigger{catalogue.Testkit: orders.Stopped, catalogue.WalkInTest: orders.SampleRejected} {
		b = newBench(t, nil)
		s := submission()
		s.Order.Details.Type = method
		n = b.submit(s)
		raw := strings.Replace(string(b.report(n, ana, "ORC|OC|$|F1||CA")), "ORU^R01^ORU_R01", "ORM^O01", 1)
		require.Equal(t, "AA", b.send([]byte(raw)))
		require.Equal(t, []orders.Trigger{want}, triggers(b.told()))
	}
}

func TestStatusMessage_triggersTheMappedStep(t *testing.T) {
	b := newBench(t, nil)
	b.lab.answer = func(*er7.Message) (string, error) { return "MSA|CA|$ID", nil }
	n := b.submit(submission())
	late := strings.Replace(string(b.report(n, "MSA|AA|x", ana, "ORC|OK|$|LAB7", "ORC|OK|$|LAB7")), "ORU^R01^ORU_R01", "ORL^O22", 1)
	require.Equal(t, "AA", b.send([]byte(late)))
	require.Equal(t, "AA", b.send([]byte(strings.Replace(string(b.report(n, ana, "ORC|SC|$|LAB7||IP", "OBR|1|$|LAB7|4598")), "ORU^R01^ORU_R01", "ORM^O01", 1))))
	require.Equal(t, []orders.Trigger{orders.LabAccepted, orders.SampleReceived}, triggers(b.told()))
	require.Equal(t, "LAB7", b.told()[0].SampleID)
	require.Equal(t, "AA", b.send(b.report(n, ana, ferrF, ferritin("9", "L", "F"), ironF, iron)))
	require.Equal(t, orders.FinalResult, b.told()[2].On, "what it said of the order is no result that is still to come")
	require.Equal(t, "LAB7", b.told()[2].SampleID, "the number that it gave first")
}

func TestRead_eachKindOfObservationBecomesAResult(t *testing.T) {
	for name, tt := range map[string]struct {
		segment string
		want    string // name, type, result, value, unit, range, bounds, above, below, interpretation, loinc, provider
	}{
		"a number":                {"OBX|1|NM|2276-4^Ferritin^LN||11.50|ug/L|13-150|L|||F", "numeric 11.50 11.50 ug/L [13,150] false true abnormal 2276-4 2276-4"},
		"a bound":                 {"OBX|1|SN|x^X^L||<^5|mg/dL|<5||||F", "range <5 -1 mg/dL [-,5] false - normal - x"},
		"a bound that is open":    {"OBX|1|SN|x^X^L||>^2000||<=1100||||F", "range >2000 -1 - [-,1100] true - abnormal - x"},
		"a bound that is moot":    {"OBX|1|SN|x^X^L||>^500||<1100||||F", "range >500 -1 - [-,1100] - - unknown - x"},
		"an interval":             {"OBX|1|SN|x^X^L||^3^-^5||1-10||||F", "range 3-5 -1 - [1,10] false false normal - x"},
		"a number in disguise":    {"OBX|1|SN|x^X^L||=^182|mg/dl|70_105|H|||F", "numeric 182 182 mg/dl [70,105] true false abnormal - x"},
		"a titre":                 {"OBX|1|SN|x^X^L||^1^:^128|||A|||F", "comment 1:128 -1 - [-,-] - - abnormal - x"},
		"broken":                  {"OBX|1|SN|x^X^L||\"^1^/^3||||||F", "comment \"1/3 -1 - [-,-] - - unknown - x"},
		"text":                    {"OBX|1|ST|x^X^L||see below||||||F", "comment see below -1 - [-,-] - - unknown - x"},
		"text that is a number":   {"OBX|1|ST|x^X^L||4.0||>3.5||||F", "numeric 4.0 4.0 - [3.5,-] - false normal - x"},
		"text that is a bound":    {"OBX|1|ST|x^X^L||< 0.5||||||F", "range <0.5 -1 - [-,-] - - unknown - x"},
		"a number that is none":   {"OBX|1|NM|x^X^L||pending||||||F", "comment pending -1 - [-,-] - - unknown - x"},
		"an exponent":             {"OBX|1|NM|x^X^L||1E999999||||||F", "comment 1E999999 -1 - [-,-] - - unknown - x"},
		"a code":                  {"OBX|1|CWE|x^X^L||260373001^Detected^SCT^^^^^^seen|||A^Abnormal|||F", "comment seen -1 - [-,-] - - abnormal - x"},
		"several values":          {"OBX|1|NM|x^X^L||27~25||||||F", "comment 27\n25 -1 - [-,-] - - unknown - x"},
		"a day":                   {"OBX|1|DT|x^X^L||20260302||||||F", "comment 2026-03-02 -1 - [-,-] - - unknown - x"},
		"no type":                 {"OBX|1||x^X^L||7||||||F", "numeric 7 7 - [-,-] - - unknown - x"},
		"at an open upper bound":  {"OBX|1|NM|x^X^L||5||<5||||F", "numeric 5 5 - [-,5] true - abnormal - x"},
		"at a closed upper bound": {"OBX|1|NM|x^X^L||5||< OR = 5||||F", "numeric 5 5 - [-,5] false - normal - x"},
		"at an open lower bound":  {"OBX|1|NM|x^X^L||5||>5||||F", "numeric 5 5 - [5,-] - true abnormal - x"},
		"below zero":              {"OBX|1|NM|x^X^L||-2||-3--1||||F", "numeric -2 -2 - [-3,-1] false false normal - x"},
		"critical":                {"OBX|1|NM|x^X^L||5||1-3|HH~A|||F", "numeric 5 5 - [1,3] true false critical - x"},
		"the lab's own flag":      {"OBX|1|NM|x^X^L||5|||PANIC|||F", "numeric 5 5 - [-,-] - - critical - x"},
		"an unknown flag":         {"OBX|1|NM|x^X^L||5||1-9|?|||F", "numeric 5 5 - [1,9] false false unknown - x"},
		"a local code, mapped":    {"OBX|1|NM|ferr^Ferritin^L||5||||||F", "numeric 5 5 - [-,-] - - unknown 2276-4 ferr"},
		"LOINC second":            {"OBX|1|NM|x^X^L^2276-4^F^LN||5|^per litre|||||F", "numeric 5 5 per litre [-,-] - - unknown 2276-4 x"},
		"escaped text":            {`OBX|1|TX|x^X^L||a \T\ b\.br\c||||||F`, "comment a & b\nc -1 - [-,-] - - unknown - x"},
		"delimiters not escaped":  {`OBX|1|TX|x^X^L||a & b||||||F`, "comment a & b -1 - [-,-] - - unknown - x"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := er7.Parse([]byte("MSH|^~\\&|LIS|N|||20260302||ORU^R01\rOBR|1|N1||t^T\r"+tt.segment), nil)
			require.NoError(t, err)
			in, err := hl7.Read(m, &hl7.Options{LOINC: map[string]string{"ferr": "2276-4"}, Flags: map[string]labresult.Interpretation{"PANIC": labresult.Critical}})
			require.NoError(t, err)
			require.Len(t, in.Tests[0].Observations, 1)
			r := in.Tests[0].Observations[0].Result
			or := func(v any) string {
				b, err := json.Marshal(v)
				require.NoError(t, err)
				if string(b) == "null" {
					return "-"
				}
				return strings.Trim(string(b), `"`)
			}
			require.Equal(t, tt.want, fmt.Sprintf("%s %s %s %s [%s,%s] %s %s %s %s %s", r.Type, r.Result, or(r.Value), or(r.Unit),
				or(r.MinRangeValue), or(r.MaxRangeValue), or(r.IsAboveMaxRange), or(r.IsBelowMinRange), r.Interpretation, or(r.LOINC), or(r.ProviderID)))
		})
	}
}

func TestRead_textOfSeveralSegmentsIsJoined(t *testing.T) {
	m, err := er7.Parse([]byte(strings.Join([]string{
		"MSH|^~\\&|LIS|N|||20260302||ORU^R01", "PID|1", "OBX|1|NM|age||41||||||F", "NTE|1||of the patient",
		"OBR|1|N1|F1|t^T", "NTE|1||about the test~second line", "OBX|1|TX|c^Comment||line one||||||F", "OBX|2|TX|c^Comment||||||||F", "OBX|3|TX|c^Comment||line three||||||F",
		"NTE|1||remark", "NTE|2||more", "OBX|4|CWE|o^Organism||a||||||F", "OBX|5|CWE|o^Organism||b||||||F", "OBX|6|ST|q^Q||x||||||O", "OBX|7|ST|q^Q||x||||||N",
		"SPM|1|P9&x^S7&y|||||||||||||||20260301|20260302", "ZZZ|1", "NTE|1||of the specimen",
	}, "\r")), nil)
	require.NoError(t, err)
	in, err := hl7.Read(m, nil)
	require.NoError(t, err)
	require.Len(t, in.Tests, 2, "the result before the first OBR has a report of its own")
	require.Equal(t, "41", in.Tests[0].Observations[0].Result.Result)
	require.Empty(t, in.Tests[0].Numbers)
	test := in.Tests[1]
	require.Equal(t, "about the test\nsecond line", test.Notes)
	require.Equal(t, "of the specimen", test.Specimens[0].Notes)
	require.Equal(t, "S7", test.Sample)
	require.Equal(t, "2026-03-01T00:00:00+00:00", test.Collected.Timestamp.String())
	require.Len(t, test.Observations, 3)
	require.Equal(t, "line one\n\nline three", test.Observations[0].Result.Result)
	require.Equal(t, "remark\nmore", *test.Observations[0].Result.Notes)
	require.NotEqual(t, test.Observations[1].Key, test.Observations[2].Key)
}

// documentRecorder keeps documents.
type documentRecorder struct {
	docs []hl7.Document
	err  error
}

func (s *documentRecorder) Put(_ context.Context, d hl7.Document) error {
	s.docs = append(s.docs, d)
	return s.err
}

func TestDocument_isStoredAndRetriedAfterAFailure(t *testing.T) {
	kept := &documentRecorder{err: errors.New("disk full")}
	b := newBench(t, func(o *hl7.Options) { o.Documents = kept })
	s := submission()
	n := b.submit(s)
	pdf := []byte("%PDF-1.7\nmade up")
	raw := b.report(n, ana, ferrF, ferritin("9", "L", "F"), "OBX|2|ED|PDF^Report^L||LIS^AP^PDF^Base64^"+base64.StdEncoding.EncodeToString(pdf)+"||||||F", ironF, iron)
	require.Equal(t, "AE", b.send(raw), "what could not be kept is not acknowledged")
	require.Empty(t, b.told())
	kept.err = nil
	require.Equal(t, "AA", b.send(raw))
	require.Equal(t, []orders.Trigger{orders.FinalResult}, triggers(b.told()))
	require.Equal(t, kept.docs[0].ID, b.told()[0].ReportFile)
	require.Len(t, kept.docs, 2)
	require.Equal(t, kept.docs[0], kept.docs[1])
	require.Equal(t, hl7.Document{ID: kept.docs[0].ID, Team: s.Order.TeamID, Order: s.Order.ID, Title: "Report", ContentType: "application/pdf", Data: pdf}, kept.docs[0])
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", kept.docs[0], kept.docs[0], kept.docs[0]), "PDF")

	// A report may be a document and nothing else.
	b = newBench(t, nil)
	n = b.submit(submission())
	require.Equal(t, "AA", b.send(b.report(n, ana, "ORC|RE|$|||CM", ferrF, "OBX|2|ED|PDF^Report^L||LIS^AP^PDF^Base64^JVBERg==||||||F")))
	require.Equal(t, []orders.Trigger{orders.FinalResult}, triggers(b.told()))
	require.Empty(t, b.told()[0].Results.Results)
}

// A document that cannot be decoded is refused, and the rest of its message is kept.
func TestDocument_undecodableIsRefusedAndTheRestKept(t *testing.T) {
	b := newBench(t, nil)
	n := b.submit(submission())
	raw := b.report(n, ana, ferrF, ferritin("9", "L", "F"), "OBX|2|ED|PDF^Report^L||LIS^AP^PDF^Base64^not base64||||||F", ironF, iron)
	answer, err := er7.Parse(b.back.Handle(t.Context(), raw, nil), nil)
	require.NoError(t, err)
	require.Equal(t, "AE", answer.Segment("MSA").Field(1).Text())
	fault := answer.Segment("ERR")
	require.Equal(t, "OBX^5^5", fault.Field(2).Raw())
	require.Equal(t, "E", fault.Field(4).Text())
	require.Equal(t, map[string]string{"Ferritin": "9", "Iron": "90"}, values(b.told()[0]))
	require.Equal(t, orders.FinalResult, b.told()[0].On)
}

// The laboratory's own report is shown while it says all that the results say.
func TestReportFile_isShownWhileItMatchesTheResults(t *testing.T) {
	pdf := func(name string) string {
		return "OBX|9|ED|PDF^Report^L||LIS^AP^PDF^Base64^" + base64.StdEncoding.EncodeToString([]byte("%PDF-1.7\n"+name)) + "||||||F"
	}
	gone := func(segment, status string) string { return strings.TrimSuffix(segment, "F") + status }
	ferrOld := strings.Replace(ferrF, "202603031000", "202603030930", 1)
	type delivery []string
	first, second := delivery{ferrF, ferritin("9", "L", "F"), pdf("one")}, delivery{ironF, iron, pdf("two")}
	both := func(head, value, status string, more ...string) delivery {
		return append(delivery{head, ferritin(value, "L", status), ironF, iron}, more...)
	}
	for name, tt := range map[string]struct {
		come []delivery
		told int
		want string // whose report; empty for none
	}{
		"all in one":                      {[]delivery{both(ferrF, "9", "F", pdf("all"))}, 1, "all"},
		"for each test":                   {[]delivery{first, second}, 2, ""},
		"for the first test alone":        {[]delivery{first, second[:2]}, 2, ""},
		"two in one":                      {[]delivery{both(ferrF, "9", "F", pdf("one"), pdf("two"))}, 1, ""},
		"the same twice in one":           {[]delivery{both(ferrF, "9", "F", pdf("one"), pdf("one"))}, 1, "one"},
		"corrected":                       {[]delivery{both(ferrF, "9", "F", pdf("old")), both(ferrC, "95", "C", pdf("new"))}, 2, "new"},
		"corrected without":               {[]delivery{both(ferrF, "9", "F", pdf("old")), both(ferrC, "95", "C")}, 2, ""},
		"corrected in part":               {[]delivery{both(ferrF, "9", "F", pdf("old")), {ferrC, ferritin("95", "N", "C"), pdf("new")}}, 2, ""},
		"the original late":               {[]delivery{both(ferrC, "95", "C", pdf("new")), both(ferrF, "9", "F", pdf("old"))}, 1, "new"},
		"the original late, and alone":    {[]delivery{both(ferrC, "95", "C"), both(ferrF, "9", "F", pdf("old"))}, 1, ""},
		"the original brings a test":      {[]delivery{{ferrC, ferritin("95", "N", "C"), pdf("new")}, both(ferrF, "9", "F", pdf("old"))}, 2, ""},
		"after the results":               {[]delivery{both(ferrF, "9", "F"), both(ferrF, "9", "F", pdf("all"))}, 2, "all"},
		"the results again, without":      {[]delivery{both(ferrF, "9", "F", pdf("all")), both(ferrF, "9", "F", "ZZZ|1")}, 1, "all"},
		"the results of before, without":  {[]delivery{both(ferrF, "9", "F", pdf("all")), both(ferrOld, "9", "F")}, 1, "all"},
		"not verified":                    {[]delivery{both(ferrF, "9", "F", gone(pdf("all"), "R"))}, 1, ""},
		"withdrawn at once":               {[]delivery{both(ferrF, "9", "F", gone(pdf("all"), "W"))}, 1, ""},
		"deleted":                         {[]delivery{both(ferrF, "9", "F", pdf("all")), both(ferrC, "9", "C", gone(pdf("all"), "D"))}, 2, ""},
		"deleted without its content":     {[]delivery{both(ferrF, "9", "F", pdf("all")), {ferrC, "OBX|9|ED|PDF^Report^L||\"\"||||||D"}}, 2, ""},
		"wrong, and another in its place": {[]delivery{both(ferrF, "9", "F", pdf("old")), both(ferrC, "9", "C", gone(pdf("old"), "W"), pdf("new"))}, 2, "new"},
	} {
		t.Run(name, func(t *testing.T) {
			kept := &documentRecorder{}
			b := newBench(t, func(o *hl7.Options) { o.Documents = kept })
			n := b.submit(submission())
			for _, d := range tt.come {
				require.Equal(t, "AA", b.send(b.report(n, append([]string{ana}, d...)...)))
			}
			told := b.told()
			require.Len(t, told, tt.told)
			shown := ""
			for _, d := range kept.docs {
				if d.ID == told[len(told)-1].ReportFile {
					shown = strings.TrimPrefix(string(d.Data), "%PDF-1.7\n")
				}
			}
			require.Equal(t, tt.want, shown)
			require.Equal(t, tt.want == "", told[len(told)-1].ReportFile == "")
		})
	}
}

// Reports go to the service; a report that the service refuses does not stop the laboratory's
// feed.
func TestReports_refusedReportDoesNotStopTheFeed(t *testing.T) {
	var kept []string
	var fault error
	reports := hl7.Reports(func(_ context.Context, team healthlab.TeamID, order orders.OrderID, id string, pdf []byte) error {
		kept = append(kept, team.String()+order.String()+id+string(pdf))
		return fault
	})
	d := hl7.Document{ID: "R1", ContentType: "application/pdf", Data: []byte("%PDF-1.7")}
	require.NoError(t, reports.Put(t.Context(), d))
	require.Equal(t, []string{d.Team.String() + d.Order.String() + "R1%PDF-1.7"}, kept)
	require.NoError(t, reports.Put(t.Context(), hl7.Document{ID: "R2", ContentType: "text/plain", Data: []byte("hello")}))
	require.Len(t, kept, 1)
	for kind, gone := range map[healthlab.ErrorKind]bool{healthlab.NotFound: true, healthlab.Invalid: true, healthlab.Unavailable: false, healthlab.Unknown: false} {
		fault = kind
		require.Equal(t, gone, reports.Put(t.Context(), d) == nil, kind)
	}
}

func TestHandle_acknowledgesEachKindOfMessage(t *testing.T) {
	b := newBench(t, nil)
	n := b.submit(submission())
	good := string(b.report(n, ana, ferrP, ferritin("9", "L", "P")))
	for name, tt := range map[string]struct{ raw, want string }{
		"taken":                  {good, "MSA|AA|R1"},
		"enhanced":               {strings.Replace(good, "|2.5.1\r", "|2.5.1|||AL|NE\r", 1), "MSA|CA|R1"},
		"application only":       {strings.Replace(good, "|2.5.1\r", "|2.5.1|||NE|AL\r", 1), "MSA|AA|R1"},
		"malformed":              {good + "\rsecret", "MSA|AE|R1\rERR|||100^Segment sequence error^HL70357|E||||HL7 message: segment 5: must begin with a segment name: a capital letter, then two capital letters or digits"},
		"malformed field":        {good + "\rNTE|1||sec\x00ret", "MSA|AE|R1\rERR||NTE^5^3|102^Data type error^HL70357|E||||HL7 message: segment 5 (NTE-3): must be text in the character set of the message (UNICODE UTF-8), without NUL"},
		"not HL7":                {"secret", "MSA|AE\rERR|||100^Segment sequence error^HL70357|E||||HL7 message: segment 1: must be MSH, the first segment of a message"},
		"nothing":                {"", "MSA|AE\rERR|||100^Segment sequence error^HL70357|E||||HL7 message: must not be empty"},
		"another type":           {strings.Replace(good, "ORU^R01^ORU_R01", "ADT^A01", 1), "MSA|AR|R1\rERR|||200^Unsupported message type^HL70357|E"},
		"names of other letters": {strings.Replace(good, "|LIS|", "|LÍS|", 1), "MSA|AA|R1"},
	} {
		answer := string(b.back.Handle(t.Context(), []byte(tt.raw), nil))
		_, body, _ := strings.Cut(answer, "\r")
		require.Equal(t, tt.want+"\r", body, name)
		require.NotContains(t, answer, "secret")
	}
	require.Empty(t, b.back.Handle(t.Context(), []byte(strings.Replace(good, "|2.5.1\r", "|2.5.1|||NE|NE\r", 1)), nil), "it wants no answer")
	require.Empty(t, b.back.Handle(t.Context(), []byte("MSH|^~\\&|||||||ACK|1|P|2.5.1\rMSA|AA|7"), nil), "nobody acknowledges an acknowledgement")
	m, err := er7.Parse(b.back.Handle(t.Context(), nil, mllp.ErrTooLarge), nil)
	require.NoError(t, err)
	require.Equal(t, "AR", m.Segment("MSA").Field(1).Text())

	m, err = er7.Parse(b.back.Handle(t.Context(), []byte(good), nil), nil)
	require.NoError(t, err)
	require.Equal(t, "ORDERS CLINIC LIS NORTH", strings.Join([]string{m.Header().Field(3).Text(), m.Header().Field(4).Text(), m.Header().Field(5).Text(), m.Header().Field(6).Text()}, " "))
	require.Equal(t, "ACK^R01^ACK", m.Header().Field(9).Raw())

	// A journal that fails: the laboratory is to send it again.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m, err = er7.Parse(b.back.Handle(ctx, b.report(n, ana, ferrF, ferritin("1", "L", "F")), nil), nil)
	require.NoError(t, err)
	require.Equal(t, "AE", m.Segment("MSA").Field(1).Text())
	require.Equal(t, "207", m.Segment("ERR").Field(3).Text())
}

func TestPrint_containsNoPatientData(t *testing.T) {
	b := newBench(t, nil)
	n := b.submit(submission())
	m, err := er7.Parse(b.report(n, ana, ferrF, ferritin("9", "L", "F")), nil)
	require.NoError(t, err)
	in, err := hl7.Read(m, nil)
	require.NoError(t, err)
	test := in.Tests[0]
	for _, v := range []any{
		m, m.Segment("PID"), m.Segment("PID").Field(5), in, test, test.Patient, test.Observations[0],
		hl7.Insurance{PolicyNumber: "ROE"}, hl7.Document{Data: []byte("ROE")},
		labjournal.Record{Doc: []byte("ROE")}, labjournal.Delivery{Raw: m.Bytes()}, labjournal.Entry{Message: labjournal.Message{Doc: []byte("ROE")}},
	} {
		require.Equal(t, "[redacted] [redacted] [redacted]", fmt.Sprintf("%v %+v %#v", v, v, v))
		logged, ok := v.(slog.LogValuer)
		require.True(t, ok)
		require.Equal(t, "[redacted]", logged.LogValue().String())
	}
}
