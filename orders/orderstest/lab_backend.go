package orderstest

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// LabHarness is a laboratory under test.
type LabHarness struct {
	Lab exchange.LabBackend
	// Method is the collection method of the orders that the suite submits. Default: testkit.
	Method catalogue.CollectionMethod
	// Pass lets time pass at the lab, so that the lab processes accepted orders. Within 50 calls, the lab must report
	// at least twice about each order: for a kit that it was shipped, for any order results. It must report nothing
	// about a cancelled order.
	Pass func()
	// Now is the lab's clock. Nil: the suite compares times of messages only with each other.
	Now func() time.Time
	// Report makes the lab send an unusual report about an accepted order. Nil if the test cannot do that.
	Report func(t testing.TB, s exchange.Submission, odd OddReport)
	// RefusesUnreadable is true if the lab learns at once that a report cannot be read, as over HTTP, so that
	// no part of an [UnreadableReport] is processed.
	RefusesUnreadable bool
	// Outage makes the lab fail every further call. Nil if the test cannot cause that.
	Outage func()
}

// OddReport is a kind of unusual report. Apart from its peculiarity it is a final report of the order's
// patient.
type OddReport string

// Unusual reports.
const (
	// BoundReport has one result: the text "<5".
	BoundReport OddReport = "bound"
	// CommentReport has one result: the text [CommentText].
	CommentReport OddReport = "comment"
	// NoPatientReport names no patient.
	NoPatientReport OddReport = "no patient"
	// OtherPatientReport names the patient [OtherPatient].
	OtherPatientReport OddReport = "other patient"
	// UnknownStateReport has a result with a state that the backend does not know.
	UnknownStateReport OddReport = "unknown state"
	// UnreadableReport cannot be parsed, except for the ids of the report and the order.
	UnreadableReport OddReport = "unreadable"
)

// CommentText is the result of a [CommentReport].
const CommentText = "specimen haemolysed, see letter"

// OtherPatient returns the patient of an [OtherPatientReport].
func OtherPatient() orders.ReportedPatient {
	return orders.ReportedPatient{FirstName: "Eve", LastName: "Poe", DOB: healthlab.Date{Year: 1961, Month: time.July, Day: 3}}
}

// RunLabBackend runs the contract tests of [exchange.LabBackend]. newLab returns a fresh laboratory that
// accepts every order of the method, and reports about each as time passes. It serves laboratories with and
// without kits. Cases that the harness does not support are skipped.
func RunLabBackend(t *testing.T, newLab func(t testing.TB) LabHarness) {
	for _, cases := range []map[string]func(*testing.T, LabHarness){labCases, labPayloadCases, labFailureCases} {
		for name, run := range conformance.Sorted(cases) {
			t.Run(name, func(t *testing.T) { run(t, newLab(t)) })
		}
	}
}

func (h LabHarness) submission() exchange.Submission {
	// Unusual names, so that no error contains them by chance.
	return h.submissionOf("Annewig", "Roebling", birthday)
}

// submissionOf returns the submission of the requisition of a new order for a patient.
func (h LabHarness) submissionOf(first, last string, born healthlab.Date) exchange.Submission {
	method := cmp.Or(h.Method, catalogue.Testkit)
	r := newRecord("a", uuid.NewString())
	r.Details = orders.NewDetails(method, uuid.New(), uuid.New(), healthlab.At(noon))
	r.PatientDetails = &people.PatientDetails{FirstName: &first, LastName: &last, DOB: born, Gender: people.Female}
	if _, err := begin(&r); err != nil {
		panic(err)
	}
	return exchange.Submission{Stage: exchange.SubmitRequisition, Order: r.Order}
}

// readFeed reads a lab's feed from the cursor to its end, at most n messages at a time. It returns the messages and the
// last cursor.
func (h LabHarness) readFeed(t *testing.T, cursor string, n int) ([]exchange.Message, string) {
	t.Helper()
	var out []exchange.Message
	read := map[string]bool{}
	for {
		b, err := h.Lab.Updates(t.Context(), cursor, n)
		require.NoError(t, err)
		require.LessOrEqual(t, len(b.Messages), n)
		if len(b.Messages) == 0 {
			return out, b.Cursor
		}
		require.False(t, read[cursor], "the cursor of an answer is behind its messages")
		read[cursor] = true
		out, cursor = append(out, b.Messages...), b.Cursor
	}
}

// wait calls Pass until the lab has at least two messages, and returns all messages.
func (h LabHarness) wait(t *testing.T) []exchange.Message {
	t.Helper()
	for range 50 {
		h.Pass()
		if got, _ := h.readFeed(t, "", 10); len(got) > 1 {
			return got
		}
	}
	require.FailNow(t, "the lab says nothing")
	return nil
}

var labCases = map[string]func(*testing.T, LabHarness){
	"Submit/Again": func(t *testing.T, h LabHarness) {
		s := h.submission()
		first, err := h.Lab.Submit(t.Context(), s)
		require.NoError(t, err)
		again, err := h.Lab.Submit(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, first, again)
		seen := map[orders.Trigger]int{}
		for range 50 {
			h.Pass()
		}
		got, _ := h.readFeed(t, "", 10)
		for _, m := range got {
			seen[m.On]++
		}
		require.NotEmpty(t, seen)
		for _, on := range []orders.Trigger{orders.KitShipped, orders.SampleReceived, orders.FinalResult} {
			require.LessOrEqual(t, seen[on], 1, "one order: %s", on)
		}
		if cmp.Or(h.Method, catalogue.Testkit) == catalogue.Testkit {
			require.Equal(t, 1, seen[orders.KitShipped], "one kit")
		}
	},
	"Submit/TwoOrders": func(t *testing.T, h LabHarness) {
		one, err := h.Lab.Submit(t.Context(), h.submission())
		require.NoError(t, err)
		two, err := h.Lab.Submit(t.Context(), h.submission())
		require.NoError(t, err)
		require.NotEqual(t, one, two)
		if one.SampleID != "" {
			require.NotEqual(t, one.SampleID, two.SampleID, "sample ids must differ between orders")
			require.Equal(t, strings.TrimSpace(one.SampleID), one.SampleID, "a sample id has no space around it")
		}
	},
	"Submit/Concurrent": func(t *testing.T, h LabHarness) {
		s := h.submission()
		var all sync.WaitGroup
		answers, errs := make([]exchange.Accepted, 4), make([]error, 4)
		for i := range answers {
			all.Go(func() { answers[i], errs[i] = h.Lab.Submit(t.Context(), s) })
		}
		all.Wait()
		for i := range answers {
			require.NoError(t, errs[i])
			require.Equal(t, answers[0], answers[i], "one order has one answer")
		}
	},
	"Submit/ContextEnded": func(t *testing.T, h LabHarness) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := h.Lab.Submit(ctx, h.submission())
		require.ErrorIs(t, err, context.Canceled)
	},
	"Updates/NameTheOrder": func(t *testing.T, h LabHarness) {
		s := h.submission()
		_, err := h.Lab.Submit(t.Context(), s)
		require.NoError(t, err)
		ids := map[string]bool{}
		var last time.Time
		for _, m := range h.wait(t) {
			require.Equal(t, s.Order.TeamID, m.Team)
			require.Equal(t, s.Order.ID, m.Order)
			require.NotEmpty(t, m.ID)
			require.False(t, ids[m.ID])
			ids[m.ID] = true
			require.False(t, m.At.Before(last))
			last = m.At
			require.Contains(t, orders.Triggers(), m.On)
		}
	},
	"Updates/NameThePatient": func(t *testing.T, h LabHarness) {
		s := h.submission()
		_, err := h.Lab.Submit(t.Context(), s)
		require.NoError(t, err)
		for range 50 {
			h.Pass()
		}
		got, _ := h.readFeed(t, "", 10)
		reports := 0
		for _, m := range got {
			if m.Results == nil {
				continue
			}
			reports++
			require.NotNil(t, m.Patient, "results name a patient")
			require.False(t, m.Patient.Contradicts(s.Order.PatientDetails), "the laboratory was sent the patient")
			require.False(t, m.Attached, "no person has decided")
			require.True(t, m.Patient.DOB == s.Order.PatientDetails.DOB || m.Patient.FirstName+m.Patient.FullName != "", "by name or birth date")
		}
		require.NotZero(t, reports, "the laboratory reports results within the calls of Pass")
	},
	"Updates/SameCursorSameMessages": func(t *testing.T, h LabHarness) {
		_, err := h.Lab.Submit(t.Context(), h.submission())
		require.NoError(t, err)
		want := h.wait(t)
		for n := 1; n <= 3; n++ {
			got, end := h.readFeed(t, "", n)
			require.Equal(t, want, got)
			b, err := h.Lab.Updates(t.Context(), end, n)
			require.NoError(t, err)
			require.Empty(t, b.Messages)
			require.Equal(t, end, b.Cursor, "nothing new, so the same cursor")
		}
	},
	"Cancel/Again": func(t *testing.T, h LabHarness) {
		s := h.submission()
		_, err := h.Lab.Submit(t.Context(), s)
		require.NoError(t, err)
		require.NoError(t, h.Lab.Cancel(t.Context(), s.Order.TeamID, s.Order.ID))
		require.NoError(t, h.Lab.Cancel(t.Context(), s.Order.TeamID, s.Order.ID))
		for range 50 {
			h.Pass()
		}
		got, _ := h.readFeed(t, "", 10)
		require.Empty(t, got, "nothing happens to a cancelled order")
	},
	"Cancel/Others": func(t *testing.T, h LabHarness) {
		one, two := h.submission(), h.submission()
		for _, s := range []exchange.Submission{one, two} {
			_, err := h.Lab.Submit(t.Context(), s)
			require.NoError(t, err)
		}
		require.NoError(t, h.Lab.Cancel(t.Context(), one.Order.TeamID, one.Order.ID))
		for range 50 {
			h.Pass()
		}
		got, _ := h.readFeed(t, "", 10)
		require.NotEmpty(t, reported(got), "the order that was not cancelled goes on")
		for _, m := range got {
			require.Equal(t, two.Order.ID, m.Order, "nothing happens to a cancelled order")
		}
	},
	"Cancel/NeverSubmitted": func(t *testing.T, h LabHarness) {
		require.NoError(t, h.Lab.Cancel(t.Context(), conformance.Team("a"), orderID(uuid.NewString())))
	},
}
