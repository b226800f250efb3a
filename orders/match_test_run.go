package orders

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// MatchTestRunID names a test run of the queue of unmatched results.
type MatchTestRunID struct{ uuid.UUID }

// MatchTestRunCase is what a test run makes happen: the decision that it ends with.
type MatchTestRunCase = MatchDecision

// MatchTestRunSource says whose orders a test run uses.
type MatchTestRunSource string

// The sources.
const (
	// MatchTestRunManaged orders are made by the run.
	MatchTestRunManaged MatchTestRunSource = "managed"
	// MatchTestRunProvided orders are the team's own.
	MatchTestRunProvided MatchTestRunSource = "provided"
)

// MatchTestRunStatus is where a test run stands.
type MatchTestRunStatus string

// The statuses of a test run.
const (
	MatchTestRunQueued    MatchTestRunStatus = "queued"
	MatchTestRunRunning   MatchTestRunStatus = "running"
	MatchTestRunSucceeded MatchTestRunStatus = "succeeded"
	MatchTestRunFailed    MatchTestRunStatus = "failed"
)

// MatchTestRunStage is what a test run is doing.
type MatchTestRunStage string

// MatchTestRunRule is what a case of test runs needs.
type MatchTestRunRule struct {
	Case MatchTestRunCase `json:"case"`
	// OrderRoles are the orders that take part.
	OrderRoles []string `json:"order_roles"`
	// RequiredStatuses are where they stand when the result comes, by role.
	RequiredStatuses map[string]LowLevel `json:"required_statuses"`
	// LabConstraints say in words which labs fit.
	LabConstraints []string `json:"lab_constraints"`
}

// The roles of orders in test runs.
const (
	trialTarget = "target"
	trialFirst  = "first_patient"
	trialSecond = "second_patient"
)

// MatchTestRunRules returns the cases of test runs.
func MatchTestRunRules() []MatchTestRunRule {
	one := func(c MatchTestRunCase, at LowLevel, labs ...string) MatchTestRunRule {
		return MatchTestRunRule{c, []string{trialTarget}, map[string]LowLevel{trialTarget: at}, rules.NonNil(labs)}
	}
	return []MatchTestRunRule{
		one(MatchCompleted, Completed), one(MatchCancelled, Cancelled),
		one(MatchWrongCollection, RequisitionCreated, "the order is for at_home_phlebotomy, and provided"),
		one(MatchWrongLab, RequisitionCreated, "the result comes from another lab than the order's"),
		{MatchSeveralPeople, []string{trialFirst, trialSecond},
			map[string]LowLevel{trialFirst: RequisitionCreated, trialSecond: RequisitionCreated},
			[]string{"both patients have one name and birth date, and are different users"}},
		one(MatchSampleMismatch, RequisitionCreated), one(MatchPatient, RequisitionCreated),
		{MatchNone, []string{}, map[string]LowLevel{}, []string{}},
	}
}

func trialRule(c MatchTestRunCase) (MatchTestRunRule, bool) {
	all := MatchTestRunRules()
	i := slices.IndexFunc(all, func(r MatchTestRunRule) bool { return r.Case == c })
	if i < 0 {
		return MatchTestRunRule{}, false
	}
	return all[i], true
}

// MatchTestRunRequest asks for a test run.
type MatchTestRunRequest struct {
	Case        MatchTestRunCase   `json:"case"`
	OrderSource MatchTestRunSource `json:"order_source"`
	// Orders are the team's own, by the roles of the case; only with provided.
	Orders map[string]OrderID `json:"orders" wire:"opt,max=10"`
	// ResultStatus is final if empty, Interpretation normal.
	ResultStatus   ResultStatus   `json:"result_status" wire:"opt"`
	Interpretation Interpretation `json:"interpretation" wire:"opt"`
	// LabTestID is what is ordered, where the run makes orders.
	LabTestID *catalogue.LabTestID `json:"lab_test_id"`
	// WrongLabTestID is of the lab that the result comes from; only with wrong_lab.
	WrongLabTestID *catalogue.LabTestID `json:"wrong_lab_test_id"`
}

// MatchTestRunOrder is an order that takes part in a test run.
type MatchTestRunOrder struct {
	OrderID            OrderID          `json:"order_id"`
	UserID             healthlab.UserID `json:"user_id"`
	OrderTransactionID TransactionID    `json:"order_transaction_id"`
}

// MatchTestRunFault is why a test run failed.
type MatchTestRunFault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// MatchTestRun is a test run.
type MatchTestRun struct {
	RunID        MatchTestRunID               `json:"run_id"`
	Status       MatchTestRunStatus           `json:"status"`
	Stage        MatchTestRunStage            `json:"stage"`
	Case         MatchTestRunCase             `json:"case"`
	OrderSource  MatchTestRunSource           `json:"order_source"`
	ResultStatus ResultStatus                 `json:"result_status"`
	Orders       map[string]MatchTestRunOrder `json:"orders"`
	RawResultID  *RawResultID                 `json:"raw_result_id"`
	Error        *MatchTestRunFault           `json:"error"`
	CreatedAt    healthlab.Time               `json:"created_at"`
	UpdatedAt    healthlab.Time               `json:"updated_at"`
	StartedAt    *healthlab.Time              `json:"started_at"`
	CompletedAt  *healthlab.Time              `json:"completed_at"`
}

// MatchTestRunRecord is a test run as it is kept.
type MatchTestRunRecord struct {
	MatchTestRun
	Team healthlab.TeamID
	// Key is the team's, and Fingerprint the request's that came with it.
	Key, Fingerprint string
	Request          MatchTestRunRequest
	// Due is when it is to be worked on; zero once it has ended.
	Due time.Time
}

// MatchTestRunStore keeps test runs. All methods are safe for concurrent use and atomic. Times
// are kept in UTC to the microsecond; what a method hands out is the caller's to edit.
// Once ctx has ended, a call returns its error and writes nothing.
type MatchTestRunStore interface {
	// StartMatchTestRun adds a run, unless the team has one with its key: then it returns
	// that one, and false.
	StartMatchTestRun(ctx context.Context, t MatchTestRunRecord) (MatchTestRunRecord, bool, error)
	// MatchTestRun returns a run; NotFound if the team has none of this id.
	MatchTestRun(ctx context.Context, team healthlab.TeamID, id MatchTestRunID) (MatchTestRunRecord, error)
	// UpdateMatchTestRun lets change edit a run. An error of change is returned unchanged and
	// nothing is written. NotFound as in MatchTestRun.
	UpdateMatchTestRun(ctx context.Context, team healthlab.TeamID, id MatchTestRunID, change func(*MatchTestRunRecord) error) (MatchTestRunRecord, error)
	// ClaimMatchTestRuns takes up to n runs of any team whose Due is set and not after now,
	// the longest due first, and sets their Due to until. Two claims that run at the
	// same time never return the same run.
	ClaimMatchTestRuns(ctx context.Context, n int, now, until time.Time) ([]MatchTestRunRecord, error)
}

// Names of the rules about test runs.
const (
	MatchTestRunNotFound = "TEST_RUN_NOT_FOUND"
	// These end a run.
	MatchTestRunOrderStatus  = "ORDER_STATUS"
	MatchTestRunNoTest       = "NO_LAB_TEST"
	MatchTestRunOtherOutcome = "UNEXPECTED_DECISION"
	MatchTestRunBroken       = "RUN_BROKEN"
)

// Check returns Invalid with every problem of the request itself.
func (r *MatchTestRunRequest) Check() error {
	var p healthlab.Problems
	rule, ok := trialRule(r.Case)
	if !ok {
		p.Add("enum", "is not one of the known values", "case")
	}
	rules.OneOf(&p, r.OrderSource, []MatchTestRunSource{MatchTestRunManaged, MatchTestRunProvided}, "order_source")
	if r.ResultStatus != "" {
		rules.OneOf(&p, r.ResultStatus, []ResultStatus{ResultFinal, ResultPartial}, "result_status")
	}
	if r.Interpretation != "" {
		rules.OneOf(&p, r.Interpretation, interpretations, "interpretation")
	}
	roles := slices.Sorted(maps.Keys(r.Orders))
	switch {
	case r.OrderSource == MatchTestRunProvided && ok && !slices.Equal(roles, slices.Sorted(slices.Values(rule.OrderRoles))):
		p.Add("roles", "has exactly the roles of the case", "orders")
	case r.OrderSource == MatchTestRunManaged && len(roles) > 0:
		p.Add("roles", "goes with provided orders only", "orders")
	case r.OrderSource == MatchTestRunManaged && r.Case == MatchWrongCollection:
		p.Add("source", "is provided in this case", "order_source")
	}
	if r.WrongLabTestID != nil && (r.Case != MatchWrongLab || r.OrderSource != MatchTestRunManaged) {
		p.Add("case", "goes with wrong_lab and managed orders only", "wrong_lab_test_id")
	}
	return p.Err()
}

// trials returns the store of test runs, for a team that has them.
func (s *Service) trials(ctx context.Context, team healthlab.TeamID) (MatchTestRunStore, error) {
	if s.opts.Environment != healthlab.Sandbox {
		return nil, rules.Missing(SandboxOnly, "test runs are for sandboxes")
	}
	if err := s.allowed(ctx, team, func(have Settings) bool { return have.UnmatchedResults && have.UnmatchedTestRuns }); err != nil {
		return nil, err
	}
	if s.opts.MatchTestRuns == nil || s.opts.Reviews == nil {
		return nil, fmt.Errorf("%w: no store for test runs", healthlab.Unimplemented)
	}
	return s.opts.MatchTestRuns, nil
}

// MatchTestRunCases returns what each case of test runs needs. NotFound in production.
func (s *Service) MatchTestRunCases(ctx context.Context, team healthlab.TeamID) ([]MatchTestRunRule, error) {
	if _, err := s.trials(ctx, team); err != nil {
		return nil, err
	}
	return MatchTestRunRules(), nil
}

// StartMatchTestRun asks for a test run, which background work ([Service.Run]) then does.
// The same key with the same request returns the run that there is. Invalid lists every
// problem; IDEMPOTENCY_KEY_REUSED for another request; ORDER_NOT_FOUND.
func (s *Service) StartMatchTestRun(ctx context.Context, team healthlab.TeamID, key string, req MatchTestRunRequest) (MatchTestRun, error) {
	store, err := s.trials(ctx, team)
	if err != nil {
		return MatchTestRun{}, err
	}
	if n := utf8.RuneCountInString(key); n < 1 || n > maxKey || !utf8.ValidString(key) {
		var p healthlab.Problems
		p.Add("string_length", fmt.Sprintf("has 1 to %d characters", maxKey), "idempotency_key")
		return MatchTestRun{}, p.Err()
	}
	if err := req.Check(); err != nil {
		return MatchTestRun{}, err
	}
	for _, id := range req.Orders {
		if _, err := s.Get(ctx, team, id); err != nil {
			return MatchTestRun{}, err
		}
	}
	text, err := json.Marshal(req)
	if err != nil {
		return MatchTestRun{}, fmt.Errorf("fingerprint: %w", err)
	}
	sum := sha256.Sum256(text)
	if req.ResultStatus == "" {
		req.ResultStatus = ResultFinal
	}
	at := healthlab.At(s.now())
	kept, fresh, err := store.StartMatchTestRun(ctx, MatchTestRunRecord{
		Team: team, Key: key, Fingerprint: hex.EncodeToString(sum[:]), Request: req, Due: at.Time,
		MatchTestRun: MatchTestRun{RunID: MatchTestRunID{s.opts.NewID()}, Status: MatchTestRunQueued, Stage: "queued", Case: req.Case, OrderSource: req.OrderSource,
			ResultStatus: req.ResultStatus, Orders: map[string]MatchTestRunOrder{}, CreatedAt: at, UpdatedAt: at},
	})
	if err != nil {
		return MatchTestRun{}, fmt.Errorf("start test run: %w", err)
	}
	if !fresh && kept.Fingerprint != hex.EncodeToString(sum[:]) {
		return MatchTestRun{}, &healthlab.RuleError{Kind: healthlab.Conflict, Type: IdempotencyKeyReused, Msg: "x-idempotency-key was sent before with another body; send a new key for a new request"}
	}
	return kept.MatchTestRun, nil
}

// MatchTestRun returns a test run. NotFound if the team has none of this id.
func (s *Service) MatchTestRun(ctx context.Context, team healthlab.TeamID, id MatchTestRunID) (MatchTestRun, error) {
	store, err := s.trials(ctx, team)
	if err != nil {
		return MatchTestRun{}, err
	}
	t, err := store.MatchTestRun(ctx, team, id)
	if err != nil {
		return MatchTestRun{}, fmt.Errorf("get test run: %w", rules.NotFound(err, MatchTestRunNotFound, "the team has no such test run"))
	}
	return t.MatchTestRun, nil
}

// TryOut does the test runs that are due, and returns how many: for hosts that bring
// their own scheduler.
func (s *Service) TryOut(ctx context.Context) (int, error) {
	return s.trying().Once(ctx, 10)
}

func (s *Service) trying() *work.Loop[MatchTestRunRecord] {
	loop := newLoop(s, "test runs", s.opts.MatchTestRuns.ClaimMatchTestRuns, s.tryOut)
	loop.Workers = 1
	return loop
}

// tryOut does one run, and records how it ends. A fault of a rule ends it; any other
// fault leaves it to the next claim.
func (s *Service) tryOut(ctx context.Context, t MatchTestRunRecord) error {
	run := trialRun{Service: s, kept: t}
	err := run.all(ctx)
	var rule *healthlab.RuleError
	var invalid *healthlab.InvalidError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &rule):
		return run.end(ctx, MatchTestRunFailed, &MatchTestRunFault{rule.Type, rule.Msg})
	case errors.As(err, &invalid):
		return run.end(ctx, MatchTestRunFailed, &MatchTestRunFault{MatchTestRunBroken, "the run made a request that is not valid"})
	}
	return fmt.Errorf("test run: %w", err)
}

// trialRun is a test run under way. What it makes has ids that follow from its own, so
// that doing it again makes nothing twice.
type trialRun struct {
	*Service
	kept    MatchTestRunRecord
	test    catalogue.LabTest
	wrong   catalogue.LabTest // what a result from the wrong lab is of
	records map[string]Order
}

func (r *trialRun) all(ctx context.Context) error {
	for _, step := range []struct {
		stage MatchTestRunStage
		do    func(context.Context) error
	}{
		{"validating", r.validate}, {"selecting_configuration", r.configure}, {"creating_orders", r.create},
		{"transitioning_orders", r.transition}, {"writing_result", r.write},
		{"matching_result", func(context.Context) error { return nil }}, {"verifying_review", r.verify},
	} {
		if err := r.stage(ctx, step.stage); err != nil {
			return err
		}
		if err := step.do(ctx); err != nil {
			return err
		}
	}
	return r.end(ctx, MatchTestRunSucceeded, nil)
}

func (r *trialRun) stage(ctx context.Context, stage MatchTestRunStage) error {
	at := healthlab.At(r.now())
	kept, err := r.opts.MatchTestRuns.UpdateMatchTestRun(ctx, r.kept.Team, r.kept.RunID, func(t *MatchTestRunRecord) error {
		t.Status, t.Stage, t.UpdatedAt = MatchTestRunRunning, stage, at
		if t.StartedAt == nil {
			t.StartedAt = &at
		}
		return nil
	})
	r.kept = kept
	return err
}

func (r *trialRun) end(ctx context.Context, status MatchTestRunStatus, fault *MatchTestRunFault) error {
	at := healthlab.At(r.now())
	_, err := r.opts.MatchTestRuns.UpdateMatchTestRun(ctx, r.kept.Team, r.kept.RunID, func(t *MatchTestRunRecord) error {
		t.Status, t.Stage, t.Error, t.UpdatedAt, t.CompletedAt, t.Due = status, MatchTestRunStage(status), fault, at, &at, time.Time{}
		return nil
	})
	return err
}

func (r *trialRun) rule() MatchTestRunRule {
	rule, _ := trialRule(r.kept.Case)
	return rule
}

// named is an id that follows from the run's.
func (r *trialRun) named(what string) uuid.UUID { return uuid.NewSHA1(r.kept.RunID.UUID, []byte(what)) }

// validate looks at the team's own orders.
func (r *trialRun) validate(ctx context.Context) error {
	r.records = map[string]Order{}
	for role, id := range r.kept.Request.Orders {
		o, err := r.Get(ctx, r.kept.Team, id)
		if err != nil {
			return err
		}
		if want := r.rule().RequiredStatuses[role]; o.LowLevel() != want && (want == Completed || want == Cancelled) {
			return rules.Broken(MatchTestRunOrderStatus, "an order does not stand where the case needs it: "+string(want))
		}
		if o.PatientDetails == nil {
			return rules.Broken(MatchTestRunOrderStatus, "an order has no patient")
		}
		if r.kept.Case == MatchWrongCollection && o.Method() != catalogue.AtHomePhlebotomy {
			return rules.Broken(MatchTestRunOrderStatus, "the order is not for at_home_phlebotomy")
		}
		r.records[role] = o
	}
	return nil
}

// configure chooses what is ordered, and where the result comes from.
func (r *trialRun) configure(ctx context.Context) error {
	labs, err := r.catalogue.Labs(ctx)
	if err != nil {
		return err
	}
	switch id := r.kept.Request.LabTestID; {
	case r.kept.OrderSource == MatchTestRunProvided && len(r.records) > 0:
		for _, o := range r.records {
			r.test = o.LabTest
		}
	case id != nil:
		if r.test, err = r.catalogue.LabTest(ctx, r.kept.Team, nil, *id); err != nil {
			return err
		}
	default:
		page, err := r.catalogue.LabTests(ctx, nil, catalogue.LabTestQuery{Team: r.kept.Team, Status: catalogue.LabTestActive, Method: catalogue.WalkInTest, Limit: 1})
		if err != nil {
			return err
		}
		if len(page.Tests) == 0 {
			return rules.Broken(MatchTestRunNoTest, "the team has no active walk-in test")
		}
		r.test = page.Tests[0]
	}
	if r.test.Lab == nil {
		return rules.Broken(MatchTestRunNoTest, "the lab test has no lab")
	}
	if r.kept.Case != MatchWrongLab {
		return nil
	}
	return r.configureWrong(ctx, labs)
}

// configureWrong chooses what the result is of that comes from the wrong lab: the test
// that was named, else any of another lab, else one of its markers.
func (r *trialRun) configureWrong(ctx context.Context, labs []catalogue.Lab) error {
	if id := r.kept.Request.WrongLabTestID; id != nil {
		other, err := r.catalogue.LabTest(ctx, r.kept.Team, nil, *id)
		if err != nil {
			return err
		}
		if r.wrong = other; r.wrong.Lab == nil || r.wrong.Lab.Slug == r.test.Lab.Slug {
			return rules.Broken(MatchTestRunNoTest, "the wrong test is of the same lab")
		}
		return nil
	}
	for _, l := range labs {
		if l.Slug == r.test.Lab.Slug {
			continue
		}
		page, err := r.catalogue.LabTests(ctx, nil, catalogue.LabTestQuery{Team: r.kept.Team, LabSlug: l.Slug, Status: catalogue.LabTestActive, Limit: 1})
		if err != nil {
			return err
		}
		if len(page.Tests) > 0 {
			r.wrong = page.Tests[0]
			return nil
		}
		markers, err := r.catalogue.Markers(ctx, r.kept.Team, nil, catalogue.MarkerQuery{LabSlug: l.Slug, Size: 1})
		if err != nil {
			return fmt.Errorf("find markers: %w", err)
		}
		if len(markers.Markers) > 0 {
			r.wrong = catalogue.LabTest{Lab: &l, Markers: []catalogue.Marker{markers.Markers[0].Marker}}
			return nil
		}
	}
	return rules.Broken(MatchTestRunNoTest, "there is no other lab with anything to measure")
}

// create makes the orders of a managed run.
func (r *trialRun) create(ctx context.Context) error {
	if r.kept.OrderSource == MatchTestRunManaged {
		for _, role := range r.rule().OrderRoles {
			if r.opts.MatchTestRunUser == nil {
				return fmt.Errorf("%w: nobody makes users for test runs", healthlab.Unimplemented)
			}
			user, err := r.opts.MatchTestRunUser(ctx, r.kept.Team, "unmatched-test-"+r.kept.RunID.String()+"-"+role)
			if err != nil {
				return fmt.Errorf("make user: %w", err)
			}
			o, err := r.PlaceAs(ctx, r.kept.Team, OrderID{r.named("order " + role)}, r.request(user))
			if err != nil {
				return err
			}
			r.records[role] = o
		}
	}
	return r.note(ctx, func(t *MatchTestRunRecord) {
		t.Orders = map[string]MatchTestRunOrder{}
		for role, o := range r.records {
			t.Orders[role] = MatchTestRunOrder{o.ID, o.UserID, o.OrderTransaction.ID}
		}
	})
}

func (r *trialRun) note(ctx context.Context, edit func(*MatchTestRunRecord)) error {
	kept, err := r.opts.MatchTestRuns.UpdateMatchTestRun(ctx, r.kept.Team, r.kept.RunID, func(t *MatchTestRunRecord) error {
		edit(t)
		return nil
	})
	r.kept = kept
	return err
}

// trialName is the last name of invented patients: letters that follow from the run.
func (r *trialRun) trialName() string {
	name := []byte("Run")
	for _, b := range r.named("name") {
		name = append(name, 'a'+b%26)
	}
	return string(name)
}

// request orders the test for an invented patient, the same for every role.
func (r *trialRun) request(user healthlab.UserID) PlaceRequest {
	req := PlaceRequest{
		UserID: user, OrderSet: &catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{r.test.ID}},
		Physician: &people.PhysicianInput{FirstName: "Test", LastName: "Physician", NPI: "1000000004"},
		PatientDetails: people.PatientDetailsInput{FirstName: "Test", LastName: r.trialName(), Gender: people.Female, PhoneNumber: "+15550100",
			DOB: healthlab.Date{Year: 1985, Month: 6, Day: 15}, Email: "test@example.com"},
		PatientAddress: people.PatientAddressInput{FirstLine: "1 Test Street", City: "Phoenix", State: "AZ", Zip: "85004", Country: rules.HomeCountry},
	}
	for marker, q := range r.test.Questions() {
		if _, preset := q.Preset(r.test.Fasting, r.opts.FastingCodes); preset || !q.Required {
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

// transition brings the orders to where the case needs them.
func (r *trialRun) transition(ctx context.Context) error {
	for role, want := range r.rule().RequiredStatuses {
		o, err := r.Get(ctx, r.kept.Team, r.records[role].ID)
		if err != nil {
			return err
		}
		if o.LowLevel() != want {
			if o, err = r.Simulate(ctx, r.kept.Team, o.ID, StatusOf(o.Method(), want), SimulationFlags{}); err != nil {
				return err
			}
		}
		r.records[role] = o
	}
	return nil
}

// write hands in the result, as a lab would.
func (r *trialRun) write(ctx context.Context) error {
	at := healthlab.At(r.now())
	m := Message{ID: "test run " + r.kept.RunID.String(), Team: r.kept.Team, On: FinalResult, At: at.Time, Lab: r.test.Lab.Slug}
	if r.kept.ResultStatus == ResultPartial {
		m.On = PartialResult
	}
	o := Order{ID: OrderID{r.named("result")}, LabTest: r.test}
	for _, role := range r.rule().OrderRoles {
		o = r.records[role]
	}
	of := o
	if r.kept.Case == MatchWrongLab {
		of.LabTest = r.wrong
	}
	expected, err := r.catalogue.ExpectedResults(ctx, of.LabTest.MarkerIDs())
	if err != nil {
		return fmt.Errorf("find expected results: %w", err)
	}
	results := Simulated(&of, expected, SimulationFlags{Interpretation: r.kept.Request.Interpretation}, FinalResult, at.Time)
	m.Results = &results
	m.Patient = &ReportedPatient{FirstName: "Nobody", LastName: r.trialName(), DOB: healthlab.Date{Year: 1901, Month: 2, Day: 3}}
	if p := o.PatientDetails; p != nil && r.kept.Case != MatchSampleMismatch && r.kept.Case != MatchNone {
		m.Patient = &ReportedPatient{DOB: p.DOB, Gender: p.Gender}
		if p.FirstName != nil {
			m.Patient.FirstName = *p.FirstName
		}
		if p.LastName != nil {
			m.Patient.LastName = *p.LastName
		}
	}
	switch r.kept.Case {
	case MatchCompleted, MatchCancelled, MatchWrongCollection, MatchSampleMismatch:
		m.Order = o.ID
		if o.SampleID != nil {
			m.SampleID = *o.SampleID
		}
	case MatchWrongLab:
		m.Lab = r.wrong.Lab.Slug
	default:
	}
	if err := r.Receive(ctx, m); err != nil {
		return err
	}
	id := m.rawID()
	return r.note(ctx, func(t *MatchTestRunRecord) { t.RawResultID = &id })
}

// verify checks that the result waits, for the reason of the case.
func (r *trialRun) verify(ctx context.Context) error {
	item, err := r.opts.Reviews.Result(ctx, r.kept.Team, *r.kept.RawResultID)
	if errors.Is(err, healthlab.NotFound) {
		return rules.Broken(MatchTestRunOtherOutcome, "the result went to an order by itself")
	}
	if err != nil {
		return err
	}
	if item.DecisionCode != r.kept.Case {
		return rules.Broken(MatchTestRunOtherOutcome, "the result was held as "+string(item.DecisionCode))
	}
	return nil
}
