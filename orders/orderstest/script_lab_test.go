package orderstest_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
)

// scriptLab is a laboratory and its backend in one. Each hour it makes a step for each order: the
// sample is received, a partial report, a final one. The fields break it.
type scriptLab struct {
	mu    sync.Mutex
	at    time.Time
	taken []*scriptJob
	feed  []scriptReport
	down  bool

	accepted  func(number int, s exchange.Submission) exchange.Accepted
	read      func(r scriptReport) (exchange.Message, bool) // false: it is left out
	batch     func(list []exchange.Message) ([]exchange.Message, error)
	outage    func(s exchange.Submission) error
	cancelled error // in an outage
	updates   error // in an outage
	deaf      bool  // to the end of a context
	racy      bool  // an order that comes twice at once is taken twice
}

type scriptJob struct {
	exchange.Submission
	number    int
	steps     int
	cancelled bool
}

// scriptReport is news as the laboratory sends it.
type scriptReport struct {
	id      string
	job     *scriptJob
	kind    string
	at      time.Time
	patient *orders.ReportedPatient
	value   string
	// unreadable: but for id and order, it cannot be read.
	unreadable bool
}

func (l *scriptLab) Submit(ctx context.Context, s exchange.Submission) (exchange.Accepted, error) {
	if err := ctx.Err(); err != nil && !l.deaf {
		return exchange.Accepted{}, err
	}
	j, err := l.take(s)
	if err != nil {
		return exchange.Accepted{}, err
	}
	return l.accepted(j.number, s), nil
}

func (l *scriptLab) find(id orders.OrderID) *scriptJob {
	i := slices.IndexFunc(l.taken, func(j *scriptJob) bool { return j.Order.ID == id })
	if i < 0 {
		return nil
	}
	return l.taken[i]
}

func (l *scriptLab) take(s exchange.Submission) (*scriptJob, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, l.outage(s)
	}
	j := l.find(s.Order.ID)
	if l.racy {
		l.mu.Unlock()
		conformance.Pause()
		l.mu.Lock()
	}
	if j == nil {
		j = &scriptJob{Submission: s, number: len(l.taken) + 1}
		l.taken = append(l.taken, j)
	}
	return j, nil
}

func (l *scriptLab) Cancel(ctx context.Context, _ healthlab.TeamID, id orders.OrderID) error {
	if err := ctx.Err(); err != nil && !l.deaf {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return l.cancelled
	}
	if j := l.find(id); j != nil {
		j.cancelled = true
	}
	return nil
}

func (l *scriptLab) Updates(ctx context.Context, cursor string, n int) (exchange.Batch, error) {
	if err := ctx.Err(); err != nil && !l.deaf {
		return exchange.Batch{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return exchange.Batch{Cursor: cursor}, l.updates
	}
	var all []exchange.Message
	for _, r := range l.feed {
		if m, ok := l.read(r); ok {
			all = append(all, m)
		}
	}
	all, err := l.batch(all)
	if err != nil {
		return exchange.Batch{}, err
	}
	first, _ := strconv.Atoi(cursor)
	first = min(first, len(all))
	out := all[first:min(first+n, len(all))]
	if len(out) == 0 {
		return exchange.Batch{Cursor: cursor}, nil
	}
	return exchange.Batch{Messages: out, Cursor: strconv.Itoa(first + len(out))}, nil
}

func (l *scriptLab) report(j *scriptJob, kind string) *scriptReport {
	l.feed = append(l.feed, scriptReport{
		id: fmt.Sprint("news ", len(l.feed)), job: j, kind: kind, at: l.at, patient: orders.ReportedAs(j.Order.PatientDetails), value: "18",
	})
	return &l.feed[len(l.feed)-1]
}

func (l *scriptLab) pass() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = l.at.Add(time.Hour)
	kinds := []string{"received", "partial", "final"}
	for _, j := range l.taken {
		if !j.cancelled && j.steps < len(kinds) {
			l.report(j, kinds[j.steps])
			j.steps++
		}
	}
}

func (l *scriptLab) odd(s exchange.Submission, odd orderstest.OddReport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.report(l.find(s.Order.ID), "final")
	switch odd {
	case orderstest.BoundReport:
		r.value = "<5"
	case orderstest.CommentReport:
		r.value = orderstest.CommentText
	case orderstest.NoPatientReport:
		r.patient = nil
	case orderstest.OtherPatientReport:
		r.patient = new(orderstest.OtherPatient())
	case orderstest.UnknownStateReport:
		r.kind = "prelim"
	case orderstest.UnreadableReport:
		r.unreadable = true
	}
}

// readScript is how a report is to be read.
func readScript(r scriptReport) (exchange.Message, bool) {
	m := exchange.Message{
		ID: r.id, Team: r.job.Order.TeamID, Order: r.job.Order.ID, SampleID: fmt.Sprint("S", r.job.number), At: r.at, Lab: "northlab", Patient: r.patient,
	}
	result := labresult.Result{Name: "Ferritin", Slug: "ferritin", Result: r.value, Unit: new("ug/L"), ReferenceRange: new("13-150"), LOINC: new("2276-4"), ProviderID: new("FER")}
	if r.unreadable {
		m.Patient, result = nil, labresult.Result{Name: "Report", Result: "cannot be read"}
	}
	switch {
	case r.kind == "received":
		m.On, m.CollectedAt = orders.SampleReceived, r.at.Add(-time.Hour)
		return m, true
	case r.kind == "final" && !r.unreadable:
		m.On, m.Results = orders.FinalResult, &labresult.Report{Metadata: labresult.Metadata{Status: labresult.Final}}
	default:
		m.On, m.Results = orders.PartialResult, &labresult.Report{Metadata: labresult.Metadata{Status: labresult.Partial}}
	}
	m.Results.Results = []labresult.Result{result}
	return m, true
}

// scripts returns the suite over scripted laboratories that are broken in one way.
func scripts(broken func(*scriptLab)) func(*testing.T) {
	return func(t *testing.T) {
		orderstest.RunLabBackend(t, func(testing.TB) orderstest.LabHarness {
			l := &scriptLab{
				at: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC),
				accepted: func(number int, _ exchange.Submission) exchange.Accepted {
					return exchange.Accepted{SampleID: fmt.Sprint("S", number)}
				},
				read:      readScript,
				batch:     func(list []exchange.Message) ([]exchange.Message, error) { return list, nil },
				outage:    func(exchange.Submission) error { return healthlab.Unavailable },
				cancelled: healthlab.Unavailable, updates: healthlab.Unavailable,
			}
			broken(l)
			return orderstest.LabHarness{
				Lab: l, Method: catalogue.WalkInTest, Pass: l.pass, Now: func() time.Time { return l.at },
				Report: func(_ testing.TB, s exchange.Submission, odd orderstest.OddReport) { l.odd(s, odd) },
				Outage: func() { l.down = true },
			}
		})
	}
}

// The scripted laboratory passes the suite.
func TestScriptedLab_passesTheSuite(t *testing.T) { scripts(func(*scriptLab) {})(t) }

// messages returns the suite over backends that change what they read.
func messages(edit func(r scriptReport, m *exchange.Message)) func(*testing.T) {
	return scripts(func(l *scriptLab) {
		l.read = func(r scriptReport) (exchange.Message, bool) {
			m, ok := readScript(r)
			edit(r, &m)
			return m, ok
		}
	})
}

// results returns the suite over backends that change the results they read.
func results(edit func(r *labresult.Result)) func(*testing.T) {
	return messages(func(_ scriptReport, m *exchange.Message) {
		if m.Results != nil {
			edit(&m.Results.Results[0])
		}
	})
}

var scriptedLabs = []conformance.Broken{
	{Name: "takes an order twice that comes twice at once", Subtest: "Submit/Concurrent", Suite: scripts(func(l *scriptLab) { l.racy = true })},
	{Name: "puts space around sample ids", Subtest: "Submit/TwoOrders", Suite: scripts(func(l *scriptLab) {
		l.accepted = func(number int, _ exchange.Submission) exchange.Accepted {
			return exchange.Accepted{SampleID: fmt.Sprintf("S%d ", number)}
		}
	})},
	{Name: "names the person by the sample id", Subtest: "Submit/TwoOrders", Suite: scripts(func(l *scriptLab) {
		l.accepted = func(_ int, s exchange.Submission) exchange.Accepted {
			return exchange.Accepted{SampleID: s.Order.UserID.String()}
		}
	})},
	{Name: "reports another sample id than it accepted", Subtest: "Updates/SampleIDs", Suite: messages(func(_ scriptReport, m *exchange.Message) { m.SampleID += "-1" })},
	{Name: "reports a new sample id each time", Subtest: "Updates/SampleIDs", Suite: scripts(func(l *scriptLab) {
		l.accepted = func(int, exchange.Submission) exchange.Accepted { return exchange.Accepted{} }
		l.read = func(r scriptReport) (exchange.Message, bool) {
			m, ok := readScript(r)
			m.SampleID += r.kind
			return m, ok
		}
	})},
	{Name: "reports one sample id for all orders", Subtest: "Updates/SampleIDs", Suite: scripts(func(l *scriptLab) {
		l.accepted = func(int, exchange.Submission) exchange.Accepted { return exchange.Accepted{} }
		l.read = func(r scriptReport) (exchange.Message, bool) {
			m, ok := readScript(r)
			m.SampleID = "S1"
			return m, ok
		}
	})},
	{Name: "reports results at time zero", Subtest: "Updates/Times", Suite: messages(func(_ scriptReport, m *exchange.Message) { m.At = time.Time{} })},
	{Name: "reports results of 1970", Subtest: "Updates/Times", Suite: messages(func(_ scriptReport, m *exchange.Message) { m.At = time.Unix(0, 0) })},
	{Name: "reports results of tomorrow", Subtest: "Updates/Times", Suite: messages(func(_ scriptReport, m *exchange.Message) { m.At = m.At.AddDate(0, 0, 1) })},
	{Name: "reports local time as UTC", Subtest: "Updates/Times", Suite: messages(func(_ scriptReport, m *exchange.Message) { m.At = m.At.Add(2 * time.Hour) })},
	{Name: "reports that a sample was taken after it was received", Subtest: "Updates/Times", Suite: messages(func(r scriptReport, m *exchange.Message) {
		if r.kind == "received" {
			m.CollectedAt = m.At.Add(time.Minute)
		}
	})},
	{Name: "reports that a sample was taken in 1970", Subtest: "Updates/Times", Suite: messages(func(_ scriptReport, m *exchange.Message) { m.CollectedAt = time.Unix(0, 0) })},
	{Name: "reports a state that is none", Subtest: "Updates/States", Suite: messages(func(r scriptReport, m *exchange.Message) {
		if r.kind == "received" {
			m.On = "in_process"
		}
	})},
	{Name: "reports nothing that happened", Subtest: "Updates/States", Suite: messages(func(r scriptReport, m *exchange.Message) {
		if r.kind == "received" {
			m.On = ""
		}
	})},
	{Name: "reports an empty parcel", Subtest: "Updates/States", Suite: messages(func(_ scriptReport, m *exchange.Message) { m.Tracking = &exchange.Tracking{} })},
	{Name: "reports a final result without results", Subtest: "Updates/States", Suite: messages(func(r scriptReport, m *exchange.Message) {
		if r.kind == "final" {
			m.Results = nil
		}
	})},
	{Name: "reports results with a step of the sample", Subtest: "Updates/Results", Suite: messages(func(r scriptReport, m *exchange.Message) {
		if m.Results != nil {
			m.On = orders.SampleReceived
		}
	})},
	{Name: "reports a final report that is empty", Subtest: "Updates/Results", Suite: messages(func(_ scriptReport, m *exchange.Message) {
		if m.Results != nil {
			m.Results.Results = nil
		}
	})},
	{Name: "reports partial results as final", Subtest: "Updates/Results", Suite: messages(func(r scriptReport, m *exchange.Message) {
		if r.kind == "partial" {
			m.On = orders.FinalResult
		}
	})},
	{Name: "reports a status that is none", Subtest: "Updates/Results", Suite: messages(func(_ scriptReport, m *exchange.Message) {
		if m.Results != nil {
			m.Results.Metadata.Status = "F"
		}
	})},
	{Name: "reports a result twice in one report", Subtest: "Updates/Results", Suite: messages(func(_ scriptReport, m *exchange.Message) {
		if m.Results != nil {
			m.Results.Results = append(m.Results.Results, m.Results.Results...)
		}
	})},
	{Name: "reports a missing result without its name", Subtest: "Updates/Results", Suite: messages(func(_ scriptReport, m *exchange.Message) {
		if m.Results != nil {
			m.Results.MissingResults = []labresult.Missing{{}}
		}
	})},
	{Name: "reports a failure that is none", Subtest: "Updates/Results", Suite: messages(func(_ scriptReport, m *exchange.Message) {
		if m.Results != nil {
			m.Results.MissingResults = []labresult.Missing{{Name: "Iron", InferredFailureType: "lost"}}
		}
	})},
	{Name: "reports results of nothing", Subtest: "Updates/Results", Suite: results(func(r *labresult.Result) { r.Name, r.Slug = "", " " })},
	{Name: "reports a number without its text", Subtest: "Updates/Results", Suite: results(func(r *labresult.Result) { r.Value, r.Result = new(parse("18")), "" })},
	{Name: "reports another number than the text", Subtest: "Updates/Results", Suite: results(func(r *labresult.Result) { r.Value = new(parse("1.8")) })},
	{Name: "reports a comment as a number", Subtest: "Updates/Results", Suite: results(func(r *labresult.Result) { r.Type, r.Result = labresult.Numeric, "see letter" })},
	{Name: "reports a type that is none", Subtest: "Updates/Results", Suite: results(func(r *labresult.Result) { r.Type = "NM" })},
	{Name: "reports the laboratory's flag as the interpretation", Subtest: "Updates/Results", Suite: results(func(r *labresult.Result) { r.Interpretation = "L" })},
	{Name: "reports all results as normal", Subtest: "Updates/Results", Suite: results(func(r *labresult.Result) { r.Result, r.Interpretation = "9", labresult.Normal })},
	{Name: "reports a range that ends before it begins", Subtest: "Updates/Results", Suite: results(func(r *labresult.Result) {
		r.MinRangeValue, r.MaxRangeValue = new(parse("150")), new(parse("13"))
	})},
	{Name: "reports its own code as LOINC", Subtest: "Updates/Results", Suite: results(func(r *labresult.Result) { r.LOINC = new("FER") })},
	{Name: "reports results at their time zero", Subtest: "Updates/Results", Suite: results(func(r *labresult.Result) { r.Timestamp = &healthlab.Time{} })},
	{Name: "reports the results of one patient for all", Subtest: "Updates/TwoPatients", Suite: scripts(func(l *scriptLab) {
		l.read = func(r scriptReport) (exchange.Message, bool) {
			m, ok := readScript(r)
			m.Patient = orders.ReportedAs(l.taken[0].Order.PatientDetails)
			return m, ok
		}
	})},
	{Name: "reports the results of one order for all", Subtest: "Updates/TwoPatients", Suite: scripts(func(l *scriptLab) {
		l.read = func(r scriptReport) (exchange.Message, bool) {
			m, ok := readScript(r)
			m.Order = l.taken[0].Order.ID
			return m, ok
		}
	})},
	{Name: "reports day and month of a birth date exchanged", Subtest: "Updates/NameThePatient", Suite: messages(func(_ scriptReport, m *exchange.Message) {
		if m.Patient != nil {
			p := *m.Patient
			p.DOB.Day = 1 + p.DOB.Day%28
			m.Patient = &p
		}
	})},
	{Name: "reports given and family name exchanged", Subtest: "Updates/NameThePatient", Suite: messages(func(_ scriptReport, m *exchange.Message) {
		if m.Patient != nil {
			p := *m.Patient
			p.FirstName, p.LastName = p.LastName, p.FirstName
			m.Patient = &p
		}
	})},
	{Name: "reports results without a patient", Subtest: "Updates/NameThePatient", Suite: messages(func(_ scriptReport, m *exchange.Message) { m.Patient = &orders.ReportedPatient{} })},
	{Name: "reports the order's own number as foreign", Subtest: "Updates/TwoPatients", Suite: messages(func(_ scriptReport, m *exchange.Message) { m.ForeignNumbers = []string{m.Order.String()} })},
	{Name: "sorts what comes late before what was read", Subtest: "Updates/AsTimePasses", Suite: scripts(func(l *scriptLab) {
		l.batch = func(list []exchange.Message) ([]exchange.Message, error) {
			slices.SortStableFunc(list, func(a, b exchange.Message) int { return strings.Compare(b.SampleID, a.SampleID) })
			return list, nil
		}
	})},
	{Name: "shows the newest four alone", Subtest: "Updates/AsTimePasses", Suite: scripts(func(l *scriptLab) {
		l.batch = func(list []exchange.Message) ([]exchange.Message, error) { return list[max(0, len(list)-4):], nil }
	})},
	{Name: "stops at a bound", Subtest: "Report/Bound", Suite: stopsAt(func(r scriptReport) bool { return r.value == "<5" })},
	{Name: "reads a bound as a number", Subtest: "Report/Bound", Suite: results(func(r *labresult.Result) {
		if r.Result == "<5" {
			r.Result, r.Type = "5", labresult.Numeric
		}
	})},
	{Name: "reads a bound as a comment", Subtest: "Report/Bound", Suite: results(func(r *labresult.Result) {
		if r.Result == "<5" {
			r.Type = labresult.Comment
		}
	})},
	{Name: "calls a bound normal", Subtest: "Report/Bound", Suite: results(func(r *labresult.Result) {
		if r.Result == "<5" {
			r.Interpretation = labresult.Normal
		}
	})},
	{Name: "leaves out bounds", Subtest: "Report/Bound", Suite: leavesOut(func(r scriptReport) bool { return r.value == "<5" })},
	{Name: "stops at a comment", Subtest: "Report/Comment", Suite: stopsAt(func(r scriptReport) bool { return r.value == orderstest.CommentText })},
	{Name: "cuts comments", Subtest: "Report/Comment", Suite: results(func(r *labresult.Result) { r.Result = r.Result[:min(len(r.Result), 20)] })},
	{Name: "calls a comment normal", Subtest: "Report/Comment", Suite: results(func(r *labresult.Result) {
		if r.Result == orderstest.CommentText {
			r.Interpretation = labresult.Normal
		}
	})},
	{Name: "fills in the patient of the order", Subtest: "Report/NoPatient", Suite: messages(func(r scriptReport, m *exchange.Message) {
		m.Patient = orders.ReportedAs(r.job.Order.PatientDetails)
	})},
	{Name: "replaces the patient by that of the order", Subtest: "Report/OtherPatient", Suite: messages(func(r scriptReport, m *exchange.Message) {
		if m.Patient != nil {
			m.Patient = orders.ReportedAs(r.job.Order.PatientDetails)
		}
	})},
	{Name: "leaves out results of another patient", Subtest: "Report/OtherPatient", Suite: leavesOut(func(r scriptReport) bool {
		return r.patient != nil && r.patient.LastName == orderstest.OtherPatient().LastName
	})},
	{Name: "leaves out results without a patient", Subtest: "Report/NoPatient", Suite: leavesOut(func(r scriptReport) bool { return r.patient == nil })},
	{Name: "stops at an unknown state", Subtest: "Report/UnknownState", Suite: stopsAt(func(r scriptReport) bool { return r.kind == "prelim" })},
	{Name: "passes an unknown state on", Subtest: "Report/UnknownState", Suite: messages(func(r scriptReport, m *exchange.Message) {
		if r.kind == "prelim" {
			m.On = "prelim"
		}
	})},
	{Name: "takes an unknown state as final", Subtest: "Report/UnknownState", Suite: scripts(func(l *scriptLab) {
		l.read = func(r scriptReport) (exchange.Message, bool) {
			if r.kind == "prelim" {
				r.kind = "final"
			}
			return readScript(r)
		}
	})},
	{Name: "leaves out results of an unknown state", Subtest: "Report/UnknownState", Suite: leavesOut(func(r scriptReport) bool { return r.kind == "prelim" })},
	{Name: "stops at a report that cannot be read", Subtest: "Report/Unreadable", Suite: stopsAt(func(r scriptReport) bool { return r.unreadable })},
	{Name: "completes the order with a report that cannot be read", Subtest: "Report/Unreadable", Suite: messages(func(r scriptReport, m *exchange.Message) {
		if r.unreadable {
			m.On = orders.FinalResult
		}
	})},
	{Name: "reports an outage as a refusal", Subtest: "Outage/Submit", Suite: scripts(func(l *scriptLab) { l.outage = func(exchange.Submission) error { return healthlab.Invalid } })},
	{Name: "shows the patient in an outage", Subtest: "Outage/Submit", Suite: scripts(func(l *scriptLab) {
		l.outage = func(s exchange.Submission) error {
			return fmt.Errorf("%w: order of %s", healthlab.Unavailable, *s.Order.PatientDetails.LastName)
		}
	})},
	{Name: "shows the birth date in an outage", Subtest: "Outage/Submit", Suite: scripts(func(l *scriptLab) {
		l.outage = func(s exchange.Submission) error {
			return fmt.Errorf("%w: born %s", healthlab.Unavailable, s.Order.PatientDetails.DOB)
		}
	})},
	{Name: "cancels in an outage", Subtest: "Outage/Cancel", Suite: scripts(func(l *scriptLab) { l.cancelled = nil })},
	{Name: "says in an outage that it is too late", Subtest: "Outage/Cancel", Suite: scripts(func(l *scriptLab) { l.cancelled = healthlab.Precondition })},
	{Name: "reports nothing in an outage", Subtest: "Outage/Updates", Suite: scripts(func(l *scriptLab) { l.updates = nil })},
	{Name: "reports an outage of the feed as a bad cursor", Subtest: "Outage/Updates", Suite: scripts(func(l *scriptLab) { l.updates = healthlab.Invalid })},
	{Name: "cancels after the context ended", Subtest: "Cancel/ContextEnded", Suite: scripts(func(l *scriptLab) { l.deaf = true })},
	{Name: "reads after the context ended", Subtest: "Updates/ContextEnded", Suite: scripts(func(l *scriptLab) { l.deaf = true })},
}

// stopsAt returns the suite over backends whose feed ends at some reports.
func stopsAt(odd func(scriptReport) bool) func(*testing.T) {
	return scripts(func(l *scriptLab) {
		l.batch = func(list []exchange.Message) ([]exchange.Message, error) {
			if slices.ContainsFunc(l.feed, odd) {
				return nil, healthlab.Invalid
			}
			return list, nil
		}
	})
}

// leavesOut returns the suite over backends that drop some reports.
func leavesOut(odd func(scriptReport) bool) func(*testing.T) {
	return scripts(func(l *scriptLab) {
		l.read = func(r scriptReport) (exchange.Message, bool) {
			m, _ := readScript(r)
			return m, !odd(r)
		}
	})
}

func parse(text string) catalogue.Number {
	n, err := catalogue.ParseNumber(text)
	if err != nil {
		panic(err)
	}
	return n
}
