package orderstest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// passes is the number of times that the suite calls Pass so that the lab reports.
const passes = 50

// submitAll submits orders, calls Pass many times, and returns all messages of the lab.
func (h LabHarness) submitAll(t *testing.T, submissions ...exchange.Submission) []exchange.Message {
	t.Helper()
	for _, s := range submissions {
		_, err := h.Lab.Submit(t.Context(), s)
		require.NoError(t, err)
	}
	for range passes {
		h.Pass()
	}
	got, _ := h.readFeed(t, "", 10)
	require.NotEmpty(t, got, "the lab says nothing")
	return got
}

func reported(list []exchange.Message) []exchange.Message {
	return slices.DeleteFunc(slices.Clone(list), func(m exchange.Message) bool { return m.Results == nil })
}

// someTime is a time that every message's time must be after.
var someTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// resultTriggers are the triggers of messages with results, each with the valid statuses of its report.
var resultTriggers = map[orders.Trigger][]labresult.Status{
	orders.PartialResult: {labresult.Partial}, orders.FinalResult: {labresult.Final},
	orders.CorrectedResult: {labresult.Corrected}, orders.SampleRejected: {labresult.Final, labresult.Partial, labresult.Corrected},
}

var (
	loincForm       = regexp.MustCompile(`^[0-9]{1,7}-[0-9]$`)
	resultTypes     = []labresult.Type{"", labresult.Numeric, labresult.Range, labresult.Comment, labresult.CodedValue}
	interpretations = append(labresult.Interpretations(), "")
	failureTypes    = []labresult.FailureType{
		"", labresult.QuantityNotSufficientFailure, labresult.CollectionProcessFailure, labresult.DropOffFailure, labresult.InternalLabFailure,
		labresult.OrderEntryFailure, labresult.NonFailure, labresult.UnknownFailure, labresult.PatientConditionFailure,
		labresult.MissingResultCalcFailure, labresult.MissingDemoAOECalcFailure, labresult.InsufficientVolume,
	}
)

// checkResult fails the test if the fields of a result contradict each other.
func checkResult(t *testing.T, r labresult.Result) {
	t.Helper()
	require.NotEmpty(t, strings.TrimSpace(r.Name+r.Slug), "a result says what was measured")
	require.NotEmpty(t, strings.TrimSpace(r.Result), "a result has its text, whatever its type")
	require.Contains(t, resultTypes, r.Type)
	require.Contains(t, interpretations, r.Interpretation)
	if r.LOINC != nil && *r.LOINC != "" {
		require.Regexp(t, loincForm, *r.LOINC, "the form of a LOINC code")
		require.True(t, checksOut(*r.LOINC), "the check digit of a LOINC code")
	}
	number, err := catalogue.ParseNumber(r.Result)
	if r.Type == labresult.Numeric {
		require.NoError(t, err, "the text of a numeric result is a number; others have another type, or none")
	}
	if r.Value != nil && (r.Type == labresult.Numeric || r.Type == "") {
		require.True(t, err == nil && r.Value.Equal(number.Decimal), "the value is the number of the text")
	}
	if r.MinRangeValue != nil && r.MaxRangeValue != nil {
		require.False(t, r.MinRangeValue.GreaterThan(r.MaxRangeValue.Decimal), "a range begins before it ends")
	}
	if err == nil {
		read := labresult.Result{Result: r.Result, Type: labresult.Numeric, ReferenceRange: r.ReferenceRange, MinRangeValue: r.MinRangeValue, MaxRangeValue: r.MaxRangeValue}
		read.Compare()
		out := read.IsAboveMaxRange != nil && *read.IsAboveMaxRange || read.IsBelowMinRange != nil && *read.IsBelowMinRange
		require.False(t, out && r.Interpretation == labresult.Normal, "a result outside of its range is not normal: leave the interpretation empty if the laboratory gives none")
		require.False(t, read.Interpretation == labresult.Normal && r.Interpretation == labresult.Abnormal, "a result inside of its range is not abnormal: leave the interpretation empty if the laboratory gives none")
	}
	printed := labresult.Result{Result: r.Result, ReferenceRange: r.ReferenceRange}
	printed.Compare()
	for _, b := range [][2]*catalogue.Number{{printed.MinRangeValue, r.MinRangeValue}, {printed.MaxRangeValue, r.MaxRangeValue}} {
		require.True(t, b[0] == nil || b[1] == nil || b[0].Equal(b[1].Decimal), "the bounds of a range are those of its text")
	}
	if r.Timestamp != nil {
		require.True(t, r.Timestamp.After(someTime), "the time of a result; nil if it is not known")
	}
}

// checksOut reports whether the check digit of a LOINC code is correct (Luhn).
func checksOut(code string) bool {
	sum, digits := 0, strings.ReplaceAll(code, "-", "")
	for i := range digits {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			d = 2*d%10 + d/5
		}
		sum += d
	}
	return sum%10 == 0
}

// checkReport fails the test if a report contradicts the message that it is in.
func checkReport(t *testing.T, m exchange.Message) {
	t.Helper()
	statuses, ok := resultTriggers[m.On]
	require.True(t, ok, "results come with partial_result, final_result, corrected_result or sample_rejected")
	require.Contains(t, append(slices.Clone(statuses), ""), m.Results.Metadata.Status, "the status of a report is that of its trigger")
	require.NotZero(t, len(m.Results.Results)+len(m.Results.MissingResults), "a report has results, or says which are missing")
	seen := map[string]bool{}
	for _, r := range m.Results.Results {
		checkResult(t, r)
		require.False(t, r.Timestamp != nil && r.Timestamp.After(m.At.Add(24*time.Hour)), "a result is there before its report; a date without a zone is a day off at most")
		key := fmt.Sprintf("%s|%s|%s|%s|%s", r.Name, r.Slug, text(r.ProviderID), text(r.SourceSampleID), r.Group)
		require.False(t, seen[key], "a report has a result once")
		seen[key] = true
	}
	for _, missing := range m.Results.MissingResults {
		require.False(t, slices.ContainsFunc(m.Results.Results, func(r labresult.Result) bool { return r.Name == missing.Name && r.Slug == missing.Slug }), "a result that is there is not missing")
		require.NotEmpty(t, strings.TrimSpace(missing.Name+missing.Slug), "a missing result says what was to be measured")
		require.Contains(t, failureTypes, missing.InferredFailureType)
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// labPayloadCases are tests of the content of a lab's messages.
var labPayloadCases = map[string]func(*testing.T, LabHarness){
	"Updates/Times": func(t *testing.T, h LabHarness) {
		_, err := h.Lab.Submit(t.Context(), h.submission())
		require.NoError(t, err)
		cursor := ""
		for range passes {
			h.Pass()
			var got []exchange.Message
			got, cursor = h.readFeed(t, cursor, 10)
			for _, m := range got {
				require.True(t, m.At.After(someTime), "a message says when it happened")
				require.True(t, m.CollectedAt.IsZero() || m.CollectedAt.After(someTime), "the time of collection; zero if it is not known")
				require.False(t, m.CollectedAt.After(m.At), "a sample was taken before there is news of it")
				require.False(t, h.Now != nil && m.At.After(h.Now()), "what is reported has happened")
			}
		}
	},
	"Updates/States": func(t *testing.T, h LabHarness) {
		final := false
		for _, m := range h.submitAll(t, h.submission()) {
			require.False(t, final && m.On == orders.PartialResult, "no partial result follows the final one")
			final = final || m.On == orders.FinalResult
			if m.Visit != nil {
				require.Empty(t, m.On, "a message about an appointment has no trigger")
				continue
			}
			require.Contains(t, orders.Triggers(), m.On)
			if _, ok := resultTriggers[m.On]; ok && m.On != orders.SampleRejected {
				require.NotNil(t, m.Results, "%s comes with results", m.On)
			}
			require.True(t, m.Tracking == nil || *m.Tracking != exchange.Tracking{}, "news of a parcel says something")
		}
	},
	"Updates/Results": func(t *testing.T, h LabHarness) {
		got := reported(h.submitAll(t, h.submission()))
		require.NotEmpty(t, got, "the laboratory reports results within the calls of Pass")
		for _, m := range got {
			checkReport(t, m)
		}
	},
	"Updates/TwoPatients": func(t *testing.T, h LabHarness) {
		one, two := h.submissionOf("Ana", "Roe", birthday), h.submissionOf("Ben", "Poe", healthlab.Date{Year: 1969, Month: time.May, Day: 21})
		of := map[orders.OrderID]exchange.Submission{one.Order.ID: one, two.Order.ID: two}
		found := map[orders.OrderID]bool{}
		for _, m := range reported(h.submitAll(t, one, two)) {
			s, ok := of[m.Order]
			require.True(t, ok, "a result names an order that was submitted")
			require.NotNil(t, m.Patient, "results name a patient")
			require.True(t, m.Patient.Matches(s.Order.PatientDetails), "the patient of a result is that of its order: the laboratory was sent it")
			require.NotContains(t, m.ForeignNumbers, m.Order.String(), "foreign numbers are not the order's")
			found[m.Order] = true
		}
		require.Len(t, found, 2, "there are results of both orders")
	},
	"Updates/SampleIDs": func(t *testing.T, h LabHarness) {
		one, two := h.submission(), h.submission()
		ids := map[orders.OrderID]string{}
		for _, s := range []exchange.Submission{one, two} {
			a, err := h.Lab.Submit(t.Context(), s)
			require.NoError(t, err)
			ids[s.Order.ID] = a.SampleID
		}
		for _, m := range h.submitAll(t, one, two) {
			if m.SampleID == "" {
				continue
			}
			if ids[m.Order] == "" {
				ids[m.Order] = m.SampleID
			}
			require.Equal(t, ids[m.Order], m.SampleID, "an order has one sample id")
		}
		require.False(t, ids[one.Order.ID] != "" && ids[one.Order.ID] == ids[two.Order.ID], "sample ids must differ between orders")
	},
	"Updates/AsTimePasses": func(t *testing.T, h LabHarness) {
		var got []exchange.Message
		cursor := ""
		for i := range passes {
			if i < 3 {
				_, err := h.Lab.Submit(t.Context(), h.submission())
				require.NoError(t, err)
			}
			h.Pass()
			var more []exchange.Message
			more, cursor = h.readFeed(t, cursor, 2)
			got = append(got, more...)
		}
		want, _ := h.readFeed(t, "", 10)
		require.Equal(t, want, got, "who reads from cursor to cursor misses nothing, and reads nothing twice")
	},
}

func patientTexts(s exchange.Submission) []string {
	p := s.Order.PatientDetails
	return []string{*p.FirstName, *p.LastName, p.DOB.String()}
}

// requireOutageError fails the test unless err is the error of a lab that cannot be reached. The error must not say
// that the lab refused the submission s, and must not contain the patient's data.
func requireOutageError(t *testing.T, err error, s exchange.Submission) {
	t.Helper()
	require.Error(t, err, "a lab that is away has done nothing")
	require.NotErrorIs(t, err, healthlab.Invalid, "the lab did not refuse the order")
	require.NotErrorIs(t, err, healthlab.Precondition, "the lab did not say that it is too late")
	require.Contains(t, []healthlab.ErrorKind{healthlab.Unavailable, healthlab.Unknown}, healthlab.KindOf(err), "an outage is Unavailable, or has no kind")
	for _, text := range patientTexts(s) {
		require.False(t, strings.Contains(fmt.Sprintf("%v %+v", err, err), text), "an error shows nothing of the patient")
	}
}

// sendOddReport makes the lab send an unusual report about an order. It requires that the lab still reports about
// another order afterwards, and returns the first submission and all messages about its order.
func (h LabHarness) sendOddReport(t *testing.T, kind OddReport) (exchange.Submission, []exchange.Message) {
	t.Helper()
	if h.Report == nil {
		t.Skip("LabHarness.Report is nil")
	}
	s, next := h.submission(), h.submission()
	_, err := h.Lab.Submit(t.Context(), s)
	require.NoError(t, err)
	h.Report(t, s, kind)
	before, _ := h.readFeed(t, "", 1)
	var of []exchange.Message
	seen := map[string]bool{}
	for _, m := range before {
		if m.Order == s.Order.ID {
			of = append(of, m)
			seen[m.ID] = true
		}
	}
	after := 0
	for _, m := range h.submitAll(t, next) {
		if m.Order == next.Order.ID && m.Results != nil {
			after++
		}
	}
	require.Positive(t, after, "one odd report does not stop the feed")
	return s, of
}

// oddReport makes the lab send an unusual report, and returns the submission and the message with the report. It fails
// the test if there is none.
func (h LabHarness) oddReport(t *testing.T, kind OddReport) (exchange.Submission, exchange.Message) {
	t.Helper()
	s, list := h.sendOddReport(t, kind)
	list = reported(list)
	require.NotEmpty(t, list, "the report is passed on: the service decides what becomes of it")
	m := list[len(list)-1]
	require.NotEmpty(t, m.ID)
	require.True(t, m.At.After(someTime), "a message says when it happened")
	require.False(t, m.Attached, "no person has decided")
	checkReport(t, m)
	return s, m
}

// labFailureCases are tests of unusual reports, outages and ended contexts.
var labFailureCases = map[string]func(*testing.T, LabHarness){
	"Report/Bound": func(t *testing.T, h LabHarness) {
		_, m := h.oddReport(t, BoundReport)
		require.True(t, slices.ContainsFunc(m.Results.Results, func(r labresult.Result) bool {
			return strings.ReplaceAll(r.Result, " ", "") == "<5" && r.Type != labresult.Numeric && r.Type != labresult.Comment && r.Interpretation != labresult.Normal
		}), "<5 stays the text of a result, of type range or none, which nothing calls normal")
	},
	"Report/Comment": func(t *testing.T, h LabHarness) {
		_, m := h.oddReport(t, CommentReport)
		require.True(t, slices.ContainsFunc(m.Results.Results, func(r labresult.Result) bool {
			return r.Result == CommentText && (r.Type == labresult.Comment || r.Type == "") && r.Interpretation != labresult.Normal
		}), "a comment is a result, which nothing calls normal")
	},
	"Report/NoPatient": func(t *testing.T, h LabHarness) {
		s, m := h.oddReport(t, NoPatientReport)
		require.False(t, m.Patient != nil && m.Patient.Matches(s.Order.PatientDetails), "the patient is what the laboratory says, never what the order says")
	},
	"Report/OtherPatient": func(t *testing.T, h LabHarness) {
		s, m := h.oddReport(t, OtherPatientReport)
		require.NotNil(t, m.Patient, "the patient is what the laboratory says")
		require.True(t, m.Patient.Contradicts(s.Order.PatientDetails), "the patient is what the laboratory says, never what the order says")
	},
	"Report/UnknownState": func(t *testing.T, h LabHarness) {
		_, m := h.oddReport(t, UnknownStateReport)
		require.Equal(t, orders.PartialResult, m.On, "an unknown state completes, rejects and corrects nothing")
	},
	"Report/Unreadable": func(t *testing.T, h LabHarness) {
		_, list := h.sendOddReport(t, UnreadableReport)
		list = reported(list)
		if h.RefusesUnreadable {
			require.Empty(t, list, "a report that was refused is not passed on")
			return
		}
		require.NotEmpty(t, list, "a report that cannot be read is passed on as a comment, for review")
		for _, m := range list {
			require.Equal(t, orders.PartialResult, m.On, "a report that cannot be read does not complete an order")
			require.Nil(t, m.Patient, "the patient of a report that cannot be read is not known")
		}
	},
	"Outage/Submit": func(t *testing.T, h LabHarness) {
		h.needsOutage(t)
		h.Outage()
		s := h.submission()
		_, err := h.Lab.Submit(t.Context(), s)
		requireOutageError(t, err, s)
	},
	"Outage/Cancel": func(t *testing.T, h LabHarness) {
		h.needsOutage(t)
		s := h.submission()
		_, err := h.Lab.Submit(t.Context(), s)
		require.NoError(t, err)
		h.Outage()
		requireOutageError(t, h.Lab.Cancel(t.Context(), s.Order.TeamID, s.Order.ID), s)
	},
	"Outage/Updates": func(t *testing.T, h LabHarness) {
		h.needsOutage(t)
		s := h.submission()
		h.submitAll(t, s)
		h.Outage()
		_, err := h.Lab.Updates(t.Context(), "", 10)
		requireOutageError(t, err, s)
	},
	"Cancel/ContextEnded": func(t *testing.T, h LabHarness) {
		s := h.submission()
		_, err := h.Lab.Submit(t.Context(), s)
		require.NoError(t, err)
		require.ErrorIs(t, h.Lab.Cancel(ended(t), s.Order.TeamID, s.Order.ID), context.Canceled)
	},
	"Updates/ContextEnded": func(t *testing.T, h LabHarness) {
		h.submitAll(t, h.submission())
		_, err := h.Lab.Updates(ended(t), "", 10)
		require.True(t, errors.Is(err, context.Canceled), "the feed is read until its context ends")
	},
}

func (h LabHarness) needsOutage(t *testing.T) {
	t.Helper()
	if h.Outage == nil {
		t.Skip("LabHarness.Outage is nil")
	}
}

func ended(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
