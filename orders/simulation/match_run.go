package simulation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// MatchTestRunID identifies a test run of the queue of unmatched results.
type MatchTestRunID struct{ uuid.UUID }

// OrderSource is the origin of a test run's orders.
type OrderSource string

// Sources of orders.
const (
	// ManagedOrders: the test run creates the orders.
	ManagedOrders OrderSource = "managed"
	// ProvidedOrders: the team names its own orders.
	ProvidedOrders OrderSource = "provided"
)

// MatchTestStatus is the state of a test run.
type MatchTestStatus string

// Statuses of a test run.
const (
	MatchTestQueued    MatchTestStatus = "queued"
	MatchTestRunning   MatchTestStatus = "running"
	MatchTestSucceeded MatchTestStatus = "succeeded"
	MatchTestFailed    MatchTestStatus = "failed"
)

// MatchTestCase is a kind of test run: the reason for which the result of the run must wait for review, and the orders
// that the run needs.
type MatchTestCase struct {
	Case exchange.MatchDecision `json:"case"`
	// OrderRoles are the roles of the orders in the case.
	OrderRoles []string `json:"order_roles"`
	// RequiredStatuses are the statuses that the orders must have before the result is sent, by role.
	RequiredStatuses map[string]orders.LowLevel `json:"required_statuses"`
	// LabConstraints say in words, for people, what else the case requires of its orders, patients and laboratories.
	LabConstraints []string `json:"lab_constraints"`
}

// Roles of orders in test runs.
const (
	roleTarget = "target"
	roleFirst  = "first_patient"
	roleSecond = "second_patient"
)

// MatchTestCases returns all cases of test runs.
func MatchTestCases() []MatchTestCase {
	one := func(c exchange.MatchDecision, at orders.LowLevel, labs ...string) MatchTestCase {
		return MatchTestCase{c, []string{roleTarget}, map[string]orders.LowLevel{roleTarget: at}, rules.NonNil(labs)}
	}
	return []MatchTestCase{
		one(exchange.MatchCompleted, orders.Completed), one(exchange.MatchCancelled, orders.Cancelled),
		one(exchange.MatchWrongCollection, orders.RequisitionCreated, "the order is for at_home_phlebotomy, and provided"),
		one(exchange.MatchWrongLab, orders.RequisitionCreated, "the result comes from another lab than the order's"),
		{exchange.MatchSeveralPeople, []string{roleFirst, roleSecond},
			map[string]orders.LowLevel{roleFirst: orders.RequisitionCreated, roleSecond: orders.RequisitionCreated},
			[]string{"both patients have one name and birth date, and are different users"}},
		one(exchange.MatchSampleMismatch, orders.RequisitionCreated), one(exchange.MatchPatient, orders.RequisitionCreated),
		{exchange.MatchNone, []string{}, map[string]orders.LowLevel{}, []string{}},
	}
}

func ruleOf(c exchange.MatchDecision) (MatchTestCase, bool) {
	all := MatchTestCases()
	i := slices.IndexFunc(all, func(r MatchTestCase) bool { return r.Case == c })
	if i < 0 {
		return MatchTestCase{}, false
	}
	return all[i], true
}

// MatchTestRequest is a request for a test run.
type MatchTestRequest struct {
	Case        exchange.MatchDecision `json:"case"`
	OrderSource OrderSource            `json:"order_source"`
	// Orders are the team's own orders by the roles of the case; only with order_source provided.
	Orders map[string]orders.OrderID `json:"orders" wire:"opt,max=10"`
	// ResultStatus is final by default, Interpretation normal.
	ResultStatus   labresult.Status         `json:"result_status" wire:"opt"`
	Interpretation labresult.Interpretation `json:"interpretation" wire:"opt"`
	// LabTestID is the ordered lab test, if the test run creates the orders.
	LabTestID *catalogue.LabTestID `json:"lab_test_id"`
	// WrongLabTestID is a lab test of the lab that the result comes from; only with the case wrong_lab.
	WrongLabTestID *catalogue.LabTestID `json:"wrong_lab_test_id"`
}

// MatchTestOrder is an order of a test run.
type MatchTestOrder struct {
	OrderID            orders.OrderID       `json:"order_id"`
	UserID             healthlab.UserID     `json:"user_id"`
	OrderTransactionID orders.TransactionID `json:"order_transaction_id"`
}

// MatchTestError is the reason for which a test run failed.
type MatchTestError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// MatchTestRun is a test run: it creates the orders of a case and a result as a laboratory would report it, and
// checks whether the result waits for the team's decision.
type MatchTestRun struct {
	RunID        MatchTestRunID            `json:"run_id"`
	Status       MatchTestStatus           `json:"status"`
	Stage        string                    `json:"stage"`
	Case         exchange.MatchDecision    `json:"case"`
	OrderSource  OrderSource               `json:"order_source"`
	ResultStatus labresult.Status          `json:"result_status"`
	Orders       map[string]MatchTestOrder `json:"orders"`
	RawResultID  *exchange.RawResultID     `json:"raw_result_id"`
	Error        *MatchTestError           `json:"error"`
	CreatedAt    healthlab.Time            `json:"created_at"`
	UpdatedAt    healthlab.Time            `json:"updated_at"`
	StartedAt    *healthlab.Time           `json:"started_at"`
	CompletedAt  *healthlab.Time           `json:"completed_at"`
}

// Check returns Invalid with every problem of the request.
func (r *MatchTestRequest) Check() error {
	var p healthlab.Problems
	rule, ok := ruleOf(r.Case)
	if !ok {
		var cases []exchange.MatchDecision
		for _, r := range MatchTestCases() {
			cases = append(cases, r.Case)
		}
		rules.OneOf(&p, r.Case, cases, "case")
	}
	rules.OneOf(&p, r.OrderSource, []OrderSource{ManagedOrders, ProvidedOrders}, "order_source")
	if r.ResultStatus != "" {
		rules.OneOf(&p, r.ResultStatus, []labresult.Status{labresult.Final, labresult.Partial}, "result_status")
	}
	if r.Interpretation != "" {
		rules.OneOf(&p, r.Interpretation, labresult.Interpretations(), "interpretation")
	}
	roles := slices.Sorted(maps.Keys(r.Orders))
	switch {
	case r.OrderSource == ProvidedOrders && ok && !slices.Equal(roles, slices.Sorted(slices.Values(rule.OrderRoles))):
		p.Add("roles", "must have exactly the roles of the case: "+strings.Join(rule.OrderRoles, ", "), "orders")
	case r.OrderSource == ManagedOrders && len(roles) > 0:
		p.Add("roles", "must be left out unless order_source is provided", "orders")
	case r.OrderSource == ManagedOrders && r.Case == exchange.MatchWrongCollection:
		p.Add("source", fmt.Sprintf("must be %q for the case %s", ProvidedOrders, r.Case), "order_source")
	}
	if r.WrongLabTestID != nil && (r.Case != exchange.MatchWrongLab || r.OrderSource != ManagedOrders) {
		p.Add("case", "must be left out unless case is wrong_lab and order_source is managed", "wrong_lab_test_id")
	}
	return p.Err()
}

// testRun is a test run while it executes. The ids of its orders and results are derived from its own id, so that
// repeating a step creates nothing twice.
type testRun struct {
	*MatchTests
	kept    MatchTestRecord
	test    catalogue.LabTest
	wrong   catalogue.LabTest // lab test of the result in the case wrong_lab
	records map[string]orders.Order
}

func (r *testRun) runStages(ctx context.Context) error {
	for _, step := range []struct {
		stage string
		do    func(context.Context) error
	}{
		{"validating", r.validate}, {"selecting_configuration", r.configure}, {"creating_orders", r.create},
		{"transitioning_orders", r.transition}, {"writing_result", r.sendResult},
		{"matching_result", func(context.Context) error { return nil }}, {"verifying_review", r.verify},
	} {
		if err := r.stage(ctx, step.stage); err != nil {
			return err
		}
		if err := step.do(ctx); err != nil {
			return err
		}
	}
	return r.end(ctx, MatchTestSucceeded, nil)
}

func (r *testRun) stage(ctx context.Context, stage string) error {
	at := healthlab.At(r.now())
	kept, err := r.store.UpdateMatchTestRun(ctx, r.kept.Team, r.kept.RunID, func(t *MatchTestRecord) error {
		t.Status, t.Stage, t.UpdatedAt = MatchTestRunning, stage, at
		if t.StartedAt == nil {
			t.StartedAt = &at
		}
		return nil
	})
	r.kept = kept
	return err
}

func (r *testRun) end(ctx context.Context, status MatchTestStatus, fault *MatchTestError) error {
	at := healthlab.At(r.now())
	_, err := r.store.UpdateMatchTestRun(ctx, r.kept.Team, r.kept.RunID, func(t *MatchTestRecord) error {
		t.Status, t.Stage, t.Error, t.UpdatedAt, t.CompletedAt, t.Due = status, string(status), fault, at, &at, time.Time{}
		return nil
	})
	return err
}

func (r *testRun) rule() MatchTestCase {
	rule, _ := ruleOf(r.kept.Case)
	return rule
}

func (r *testRun) named(what string) uuid.UUID { return uuid.NewSHA1(r.kept.RunID.UUID, []byte(what)) }

// validate checks that the team's own orders have the status, patient and collection method that the case
// requires.
func (r *testRun) validate(ctx context.Context) error {
	r.records = map[string]orders.Order{}
	for role, id := range r.kept.Request.Orders {
		o, err := r.orders.Get(ctx, r.kept.Team, id)
		if err != nil {
			return err
		}
		if want := r.rule().RequiredStatuses[role]; o.LowLevel() != want && (want == orders.Completed || want == orders.Cancelled) {
			return rules.Broken(orderStatus, "orders: each must have the status that the case requires: "+string(want))
		}
		if o.PatientDetails == nil {
			return rules.Broken(orderStatus, "orders: each must have patient_details")
		}
		if r.kept.Case == exchange.MatchWrongCollection && o.Method() != catalogue.AtHomePhlebotomy {
			return rules.Broken(orderStatus, "orders: each must have the collection_method at_home_phlebotomy")
		}
		r.records[role] = o
	}
	return nil
}

// configure chooses the lab test of the run and, in the case wrong_lab, the lab test of the result.
func (r *testRun) configure(ctx context.Context) error {
	labs, err := r.orders.Catalogue().Labs(ctx)
	if err != nil {
		return err
	}
	switch id := r.kept.Request.LabTestID; {
	case r.kept.OrderSource == ProvidedOrders && len(r.records) > 0:
		for _, o := range r.records {
			r.test = o.LabTest
		}
	case id != nil:
		if r.test, err = r.orders.Catalogue().LabTest(ctx, r.kept.Team, nil, *id); err != nil {
			return err
		}
	default:
		page, err := r.orders.Catalogue().LabTests(ctx, nil, catalogue.LabTestQuery{Team: r.kept.Team, Status: catalogue.LabTestActive, Method: catalogue.WalkInTest, Limit: 1})
		if err != nil {
			return err
		}
		if len(page.Tests) == 0 {
			return rules.Broken(noLabTest, "the team has no active walk-in test")
		}
		r.test = page.Tests[0]
	}
	if r.test.Lab == nil {
		return rules.Broken(noLabTest, "lab_test_id: must be a lab test of a lab")
	}
	if r.kept.Case != exchange.MatchWrongLab {
		return nil
	}
	return r.configureWrong(ctx, labs)
}

// configureWrong chooses the lab test of the result in the case wrong_lab: the requested one, else any test or marker
// of another lab.
func (r *testRun) configureWrong(ctx context.Context, labs []catalogue.Lab) error {
	if id := r.kept.Request.WrongLabTestID; id != nil {
		other, err := r.orders.Catalogue().LabTest(ctx, r.kept.Team, nil, *id)
		if err != nil {
			return err
		}
		if r.wrong = other; r.wrong.Lab == nil || r.wrong.Lab.Slug == r.test.Lab.Slug {
			return rules.Broken(noLabTest, "wrong_lab_test_id: must be a lab test of another lab")
		}
		return nil
	}
	for _, l := range labs {
		if l.Slug == r.test.Lab.Slug {
			continue
		}
		page, err := r.orders.Catalogue().LabTests(ctx, nil, catalogue.LabTestQuery{Team: r.kept.Team, LabSlug: l.Slug, Status: catalogue.LabTestActive, Limit: 1})
		if err != nil {
			return err
		}
		if len(page.Tests) > 0 {
			r.wrong = page.Tests[0]
			return nil
		}
		markers, err := r.orders.Catalogue().Markers(ctx, r.kept.Team, nil, catalogue.MarkerQuery{LabSlug: l.Slug, Size: 1})
		if err != nil {
			return fmt.Errorf("find markers: %w", err)
		}
		if len(markers.Markers) > 0 {
			r.wrong = catalogue.LabTest{Lab: &l, Markers: []catalogue.Marker{markers.Markers[0].Marker}}
			return nil
		}
	}
	return rules.Broken(noLabTest, "the catalogue must have a second lab with a lab test or marker")
}

// create places the orders of a managed run, and stores the ids of the run's orders in the run.
func (r *testRun) create(ctx context.Context) error {
	if r.kept.OrderSource == ManagedOrders {
		for _, role := range r.rule().OrderRoles {
			if r.opts.User == nil {
				return fmt.Errorf("%w: the service cannot create users for test runs", healthlab.Unimplemented)
			}
			user, err := r.opts.User(ctx, r.kept.Team, "unmatched-test-"+r.kept.RunID.String()+"-"+role)
			if err != nil {
				return fmt.Errorf("make user: %w", err)
			}
			o, err := r.orders.PlaceAs(ctx, r.kept.Team, orders.OrderID{UUID: r.named("order " + role)}, r.request(user))
			if err != nil {
				return err
			}
			r.records[role] = o
		}
	}
	return r.note(ctx, func(t *MatchTestRecord) {
		t.Orders = map[string]MatchTestOrder{}
		for role, o := range r.records {
			t.Orders[role] = MatchTestOrder{o.ID, o.UserID, o.OrderTransaction.ID}
		}
	})
}

func (r *testRun) note(ctx context.Context, edit func(*MatchTestRecord)) error {
	kept, err := r.store.UpdateMatchTestRun(ctx, r.kept.Team, r.kept.RunID, func(t *MatchTestRecord) error {
		edit(t)
		return nil
	})
	r.kept = kept
	return err
}

// patientName returns the last name of the simulated patient, derived from the run's id.
func (r *testRun) patientName() string {
	name := []byte("Run")
	for _, b := range r.named("name") {
		name = append(name, 'a'+b%26)
	}
	return string(name)
}

// request returns a request to place an order for a simulated patient. All orders of the run have the same patient
// data.
func (r *testRun) request(user healthlab.UserID) orders.PlaceRequest {
	req := orders.PlaceRequest{
		UserID: user, OrderSet: &catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{r.test.ID}},
		Physician: &people.PhysicianInput{FirstName: "Test", LastName: "Physician", NPI: "1000000004"},
		PatientDetails: people.PatientDetailsInput{FirstName: "Test", LastName: r.patientName(), Gender: people.Female, PhoneNumber: "+15550100",
			DOB: healthlab.Date{Year: 1985, Month: 6, Day: 15}, Email: "test@example.com"},
		PatientAddress: people.PatientAddressInput{FirstLine: "1 Test Street", City: "Phoenix", State: "AZ", Zip: "85004", Country: rules.HomeCountry},
	}
	for marker, q := range r.test.Questions() {
		if !q.Required || slices.Contains(r.orders.FastingCodes(), q.Code) {
			continue
		}
		a := catalogue.AOEAnswer{MarkerID: marker, QuestionID: q.ID, Answer: "1"}
		if len(q.Answers) > 0 {
			a.Answer = q.Answers[0].Code
		}
		req.AOEAnswers = append(req.AOEAnswers, a)
	}
	return req
}

// transition simulates the orders until they have the statuses that the case requires.
func (r *testRun) transition(ctx context.Context) error {
	for role, want := range r.rule().RequiredStatuses {
		o, err := r.orders.Get(ctx, r.kept.Team, r.records[role].ID)
		if err != nil {
			return err
		}
		if o.LowLevel() != want {
			if o, err = r.labs.Simulate(ctx, r.kept.Team, o.ID, orders.StatusOf(o.Method(), want), orders.SimulationFlags{}); err != nil {
				return err
			}
		}
		r.records[role] = o
	}
	return nil
}

// sendResult passes the result of the case to exchange.Service as a message of a lab, and stores the id of the result
// in the run.
func (r *testRun) sendResult(ctx context.Context) error {
	at := healthlab.At(r.now())
	m := exchange.Message{ID: "test run " + r.kept.RunID.String(), Team: r.kept.Team, On: orders.FinalResult, At: at.Time, Lab: r.test.Lab.Slug}
	if r.kept.ResultStatus == labresult.Partial {
		m.On = orders.PartialResult
	}
	o := orders.Order{ID: orders.OrderID{UUID: r.named("result")}, LabTest: r.test}
	for _, role := range r.rule().OrderRoles {
		o = r.records[role]
	}
	of := o
	if r.kept.Case == exchange.MatchWrongLab {
		of.LabTest = r.wrong
	}
	expected, err := r.orders.Catalogue().ExpectedResults(ctx, of.LabTest.MarkerIDs())
	if err != nil {
		return fmt.Errorf("find expected results: %w", err)
	}
	results := Results(&of, expected, orders.SimulationFlags{Interpretation: r.kept.Request.Interpretation}, orders.FinalResult, at.Time)
	m.Results = &results
	m.Patient = &orders.ReportedPatient{FirstName: "Nobody", LastName: r.patientName(), DOB: healthlab.Date{Year: 1901, Month: 2, Day: 3}}
	if p := o.PatientDetails; p != nil && r.kept.Case != exchange.MatchSampleMismatch && r.kept.Case != exchange.MatchNone {
		m.Patient = &orders.ReportedPatient{DOB: p.DOB, Gender: p.Gender}
		if p.FirstName != nil {
			m.Patient.FirstName = *p.FirstName
		}
		if p.LastName != nil {
			m.Patient.LastName = *p.LastName
		}
	}
	switch r.kept.Case {
	case exchange.MatchCompleted, exchange.MatchCancelled, exchange.MatchWrongCollection, exchange.MatchSampleMismatch:
		m.Order = o.ID
		if o.SampleID != nil {
			m.SampleID = *o.SampleID
		}
	case exchange.MatchWrongLab:
		m.Lab = r.wrong.Lab.Slug
	default:
	}
	if err := r.labs.Receive(ctx, m); err != nil {
		return err
	}
	id := m.RawID()
	return r.note(ctx, func(t *MatchTestRecord) { t.RawResultID = &id })
}

// verify returns a RuleError unless the result came into review with the decision code of the case.
func (r *testRun) verify(ctx context.Context) error {
	item, err := r.labs.Reviews().Get(ctx, r.kept.Team, *r.kept.RawResultID)
	if errors.Is(err, healthlab.NotFound) {
		return rules.Broken(unexpectedDecision, "the result was matched to an order without a review")
	}
	if err != nil {
		return err
	}
	if item.DecisionCode != r.kept.Case {
		return rules.Broken(unexpectedDecision, fmt.Sprintf("the result waits for review as %s, expected %s", item.DecisionCode, r.kept.Case))
	}
	return nil
}
