package orderstest_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// oddly returns the suite over backends that change the messages of some reports.
func oddly(pick func(scriptReport) bool, edit func(r scriptReport, m *exchange.Message)) func(*testing.T) {
	return messages(func(r scriptReport, m *exchange.Message) {
		if pick(r) {
			edit(r, m)
		}
	})
}

// Further laboratories that are broken in one way.
func TestBrokenScriptedLabs_eachFailsTheSuite(t *testing.T) {
	n := 0
	isBound := func(r scriptReport) bool { return r.value == "<5" }
	isComment := func(r scriptReport) bool { return strings.HasPrefix(r.value, "specimen") }
	isUnknown := func(r scriptReport) bool { return r.kind == "prelim" }
	isUnreadable := func(r scriptReport) bool { return r.unreadable }
	noPatient := func(r scriptReport) bool { return r.patient == nil }
	final := func(r scriptReport) bool { return r.kind == "final" }
	text := func(to string) func(r scriptReport, m *exchange.Message) {
		return func(_ scriptReport, m *exchange.Message) { m.Results.Results[0].Result = to }
	}
	conformance.RunBroken(t, []conformance.Broken{
		{Name: "reports a repeated order as a conflict", Subtest: "Submit/Again", Suite: worksBadly(func(l *brokenLab) {
			seen := map[orders.OrderID]bool{}
			l.submit = func(ctx context.Context, s exchange.Submission) (exchange.Accepted, error) {
				if seen[s.Order.ID] {
					return exchange.Accepted{}, healthlab.Conflict
				}
				seen[s.Order.ID] = true
				return l.LabBackend.Submit(ctx, s)
			}
		})},
		{Name: "gives sample ids of 10,000 characters", Subtest: "Updates/SampleIDs", Suite: scripts(func(l *scriptLab) {
			l.accepted = func(k int, _ exchange.Submission) exchange.Accepted {
				return exchange.Accepted{SampleID: fmt.Sprint(strings.Repeat("9", 10_000), k)}
			}
		})},
		{Name: "gives sample ids with a control character", Subtest: "Updates/SampleIDs", Suite: scripts(func(l *scriptLab) {
			l.accepted = func(k int, _ exchange.Submission) exchange.Accepted {
				return exchange.Accepted{SampleID: fmt.Sprintf("S\x00%d", k)}
			}
		})},
		{Name: "reports without an id", Subtest: "Updates/NameTheOrder", Suite: messages(func(_ scriptReport, m *exchange.Message) { m.ID = "" })},
		{Name: "gives a report another id each time", Subtest: "Updates/SameCursorSameMessages", Suite: messages(func(_ scriptReport, m *exchange.Message) { m.ID = uuid.NewString() })},
		{Name: "names no team", Subtest: "Updates/NameTheOrder", Suite: messages(func(_ scriptReport, m *exchange.Message) { m.Team = healthlab.TeamID{} })},
		{Name: "reports the time of the call", Subtest: "Updates/SameCursorSameMessages", Suite: messages(func(_ scriptReport, m *exchange.Message) { n++; m.At = m.At.Add(-time.Duration(n) * time.Second) })},
		{Name: "reports a blank result", Subtest: "Updates/Results", Suite: results(func(r *labresult.Result) { r.Result = " " })},
		{Name: "reports a decimal comma as a number", Subtest: "Updates/Results", Suite: results(func(r *labresult.Result) { r.Type = labresult.Numeric; r.Result = "1,8" })},
		{Name: "reports all results as abnormal", Subtest: "Updates/Results", Suite: results(func(r *labresult.Result) { r.Interpretation = labresult.Abnormal })},
		{Name: "reports a result of two days later", Subtest: "Updates/Results", Suite: messages(func(_ scriptReport, m *exchange.Message) {
			if m.Results != nil {
				at := healthlab.At(m.At.AddDate(0, 0, 2))
				m.Results.Results[0].Timestamp = &at
			}
		})},
		{Name: "reports a LOINC code with a wrong check digit", Subtest: "Updates/Results", Suite: results(func(r *labresult.Result) { r.LOINC = new("2276-5") })},
		{Name: "gives the first page for ever", Subtest: "Cancel/Others", Suite: worksBadly(func(l *brokenLab) {
			l.updates = func(ctx context.Context, c string, k int) (exchange.Batch, error) {
				b, err := l.LabBackend.Updates(ctx, "", k)
				return b, err
			}
		})},
		{Name: "reports the end of the feed as an error", Subtest: "Cancel/Again", Suite: worksBadly(func(l *brokenLab) {
			l.updates = func(ctx context.Context, c string, k int) (exchange.Batch, error) {
				b, err := l.LabBackend.Updates(ctx, c, k)
				if err == nil && len(b.Messages) == 0 {
					err = io.EOF
				}
				return b, err
			}
		})},
		{Name: "loses the first message of each page", Subtest: "Updates/AsTimePasses", Suite: worksBadly(func(l *brokenLab) {
			l.updates = func(ctx context.Context, c string, k int) (exchange.Batch, error) {
				b, err := l.LabBackend.Updates(ctx, c, k)
				if c != "" && len(b.Messages) > 1 {
					b.Messages = b.Messages[1:]
				}
				return b, err
			}
		})},
		{Name: "begins anew after each page", Subtest: "Cancel/Others", Suite: worksBadly(func(l *brokenLab) {
			l.updates = func(ctx context.Context, c string, k int) (exchange.Batch, error) {
				b, err := l.LabBackend.Updates(ctx, c, k)
				b.Cursor = ""
				return b, err
			}
		})},
		{Name: "gives no page of one message", Subtest: "Updates/SameCursorSameMessages", Suite: worksBadly(func(l *brokenLab) {
			l.updates = func(ctx context.Context, c string, k int) (exchange.Batch, error) {
				if k == 1 {
					return exchange.Batch{Cursor: c}, nil
				}
				return l.LabBackend.Updates(ctx, c, k)
			}
		})},
		{Name: "reports the final result before the partial one", Subtest: "Updates/States", Suite: messages(func(r scriptReport, m *exchange.Message) {
			if r.kind == "partial" {
				m.On, m.Results.Metadata.Status = orders.FinalResult, labresult.Final
			} else if r.kind == "final" {
				m.On, m.Results.Metadata.Status = orders.PartialResult, labresult.Partial
			}
		})},
		{Name: "cancels all orders at once", Subtest: "Cancel/Others", Suite: worksBadly(func(l *brokenLab) {
			known := map[orders.OrderID]bool{}
			l.submit = func(ctx context.Context, s exchange.Submission) (exchange.Accepted, error) {
				known[s.Order.ID] = true
				return l.LabBackend.Submit(ctx, s)
			}
			l.cancel = func(ctx context.Context, team healthlab.TeamID, _ orders.OrderID) error {
				for id := range known {
					if err := l.LabBackend.Cancel(ctx, team, id); err != nil {
						return err
					}
				}
				return nil
			}
		})},
		{Name: "reports of the first order alone", Subtest: "Cancel/Others", Suite: scripts(func(l *scriptLab) {
			l.read = func(r scriptReport) (exchange.Message, bool) {
				m, ok := readScript(r)
				return m, ok && r.job.number == 1
			}
		})},
		{Name: "names the patient by the family name alone", Subtest: "Updates/NameThePatient", Suite: messages(func(_ scriptReport, m *exchange.Message) {
			if m.Patient != nil {
				m.Patient = &orders.ReportedPatient{LastName: m.Patient.LastName}
			}
		})},
		{Name: "reports a birth date that is a day off", Subtest: "Updates/NameThePatient", Suite: messages(func(_ scriptReport, m *exchange.Message) {
			if m.Patient != nil {
				p := *m.Patient
				p.DOB = p.DOB.AddDays(-1)
				m.Patient = &p
			}
		})},
		{Name: "reports the other sex", Subtest: "Updates/NameThePatient", Suite: messages(func(_ scriptReport, m *exchange.Message) {
			if m.Patient != nil {
				p := *m.Patient
				p.Gender = people.Male
				m.Patient = &p
			}
		})},
		{Name: "reports a partial result with the status final", Subtest: "Updates/Results", Suite: messages(func(r scriptReport, m *exchange.Message) {
			if r.kind == "partial" {
				m.Results.Metadata.Status = labresult.Final
			}
		})},
		{Name: "reports that a sample was taken in 1900", Subtest: "Updates/Times", Suite: messages(func(_ scriptReport, m *exchange.Message) { m.CollectedAt = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC) })},
		{Name: "reports that a sample was taken after its result", Subtest: "Updates/Times", Suite: oddly(final, func(_ scriptReport, m *exchange.Message) { m.CollectedAt = m.At.AddDate(0, 0, 1) })},
		{Name: "leaves out the sign of a bound", Subtest: "Report/Bound", Suite: oddly(isBound, text("5"))},
		{Name: "reads a bound as zero", Subtest: "Report/Bound", Suite: oddly(isBound, text("0"))},
		{Name: "reports a bound in HTML", Subtest: "Report/Bound", Suite: oddly(isBound, text("&lt;5"))},
		{Name: "reports a comment in capitals", Subtest: "Report/Comment", Suite: oddly(isComment, func(_ scriptReport, m *exchange.Message) {
			m.Results.Results[0].Result = strings.ToUpper(m.Results.Results[0].Result)
		})},
		{Name: "reports a comment with the type of a number", Subtest: "Report/Comment", Suite: oddly(isComment, func(_ scriptReport, m *exchange.Message) { m.Results.Results[0].Type = labresult.Numeric })},
		{Name: "attaches a report without a patient", Subtest: "Report/NoPatient", Suite: oddly(noPatient, func(_ scriptReport, m *exchange.Message) { m.Attached = true })},
		{Name: "reports another patient as none", Subtest: "Report/OtherPatient", Suite: messages(func(r scriptReport, m *exchange.Message) {
			if m.Patient != nil && m.Patient.FirstName == "Eve" {
				m.Patient = nil
			}
		})},
		{Name: "takes an unknown state as a rejection", Subtest: "Report/UnknownState", Suite: oddly(isUnknown, func(_ scriptReport, m *exchange.Message) { m.On, m.Results.Metadata.Status = orders.SampleRejected, "" })},
		{Name: "takes an unknown state as a correction", Subtest: "Report/UnknownState", Suite: oddly(isUnknown, func(_ scriptReport, m *exchange.Message) {
			m.On, m.Results.Metadata.Status = orders.CorrectedResult, ""
		})},
		{Name: "leaves out a report that cannot be read", Subtest: "Report/Unreadable", Suite: scripts(func(l *scriptLab) {
			l.read = func(r scriptReport) (exchange.Message, bool) {
				m, ok := readScript(r)
				return m, ok && !r.unreadable
			}
		})},
		{Name: "names the patient of a report that cannot be read", Subtest: "Report/Unreadable", Suite: oddly(isUnreadable, func(r scriptReport, m *exchange.Message) { m.Patient = orders.ReportedAs(r.job.Order.PatientDetails) })},
		{Name: "takes an order in an outage", Subtest: "Outage/Submit", Suite: scripts(func(l *scriptLab) { l.outage = func(exchange.Submission) error { return nil } })},
		{Name: "shows the given name in an outage", Subtest: "Outage/Submit", Suite: scripts(func(l *scriptLab) {
			l.outage = func(s exchange.Submission) error {
				return fmt.Errorf("%w: order of %s", healthlab.Unavailable, *s.Order.PatientDetails.FirstName)
			}
		})},
		{Name: "reports an outage as a conflict", Subtest: "Outage/Submit", Suite: scripts(func(l *scriptLab) { l.outage = func(exchange.Submission) error { return healthlab.Conflict } })},
		{Name: "reports a result as there and missing", Subtest: "Updates/Results", Suite: messages(func(_ scriptReport, m *exchange.Message) {
			if m.Results != nil {
				m.Results.MissingResults = []labresult.Missing{{Name: "Ferritin", Slug: "ferritin", InferredFailureType: labresult.UnknownFailure}}
			}
		})},
		{Name: "reports other bounds than the text of the range", Subtest: "Updates/Results", Suite: results(func(r *labresult.Result) { r.MinRangeValue = new(parse("130")) })},
		{Name: "exchanges every two messages", Subtest: "Updates/NameTheOrder", Suite: scripts(func(l *scriptLab) {
			l.batch = func(list []exchange.Message) ([]exchange.Message, error) {
				for i := 1; i < len(list); i += 2 {
					list[i], list[i-1] = list[i-1], list[i]
				}
				return list, nil
			}
		})},
	})
}
