package exchange

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// AcceptRequest assigns a result under review to an order, or to a user.
type AcceptRequest struct {
	// UserID is the patient. If OrderID is given, its order must be of this user; else a new order is created for
	// the user.
	UserID *healthlab.UserID `json:"user_id"`
	// OrderID is the order for the result. If it cannot take the result, a new order replaces it.
	OrderID *orders.OrderID `json:"order_id"`
	Note    *string         `json:"note"`
}

// Accept assigns a result to an order, and returns that order. This is the order OrderID if it is in progress or
// completed and at the lab of the result. Otherwise it is the order that replaced OrderID, if that one has the specimen
// of the result, else a new order that replaces OrderID in its transaction. With UserID alone, it is a new order in a
// new transaction. Without both, OrderID is the order that the result names, or for a result of the wrong lab the
// patient's only open order; some decision codes require a choice.
//
// The other results of the order stay; the accepted ones are added, or correct those of the same tests. They stay in
// later reports of the laboratory until it reports their tests for the order. The order is completed if the accepted
// report is final, or if the laboratory awaits only results that are attached; a completed order is corrected.
//
// If the order has no specimen, it gets the specimen of the result, unless another order has that specimen.
//
// The decision and its effects are one transaction. Of two concurrent decisions, the second returns NotFound.
//
// RuleErrors: UNMATCHED_RESULTS_NOT_ENABLED; NotFound for a result that is not open, a user or an order that the team
// does not have; Invalid: REVIEW_SELECTION_REQUIRED, REVIEW_SELECTION_INCONSISTENT, REVIEW_NOT_POSSIBLE.
func (v Reviews) Accept(ctx context.Context, team healthlab.TeamID, id RawResultID, req AcceptRequest) (orders.Order, error) {
	store, err := v.s.reviews(ctx, team)
	if err != nil {
		return orders.Order{}, err
	}
	return v.s.acceptAs(ctx, store, team, id, req, MatchPendingCustomer)
}

// acceptAs accepts a result if its review has the given status: MatchPendingCustomer for a decision of the team,
// MatchPendingOps for one of operations.
func (s *Service) acceptAs(ctx context.Context, store ReviewStore, team healthlab.TeamID, id RawResultID, req AcceptRequest, status MatchStatus) (orders.Order, error) {
	var p healthlab.Problems
	rules.Check{Problems: &p}.Optional(req.Note, "note", rules.MaxNotes)
	if err := p.Err(); err != nil {
		return orders.Order{}, err
	}
	o, err := s.accept(ctx, store, team, id, req, status)
	if err != nil {
		return orders.Order{}, fmt.Errorf("accept unmatched result: %w", err)
	}
	return o, nil
}

func (s *Service) accept(ctx context.Context, store ReviewStore, team healthlab.TeamID, id RawResultID, req AcceptRequest, status MatchStatus) (orders.Order, error) {
	item, err := store.Result(ctx, team, id)
	if err != nil {
		return orders.Order{}, rules.NotFound(err, RawResultNotFound, "the team has no such result")
	}
	if item.Status != status {
		return orders.Order{}, notReviewable()
	}
	if req.UserID == nil && req.OrderID == nil {
		if req.OrderID, err = s.defaultOrder(ctx, item); err != nil {
			return orders.Order{}, err
		}
	}
	g := acceptance{item: item, req: req, specimen: item.Message.SampleID, at: s.now(), settings: orders.Settings{}}
	if g.settings, err = s.orders.Settings(ctx, team); err != nil {
		return orders.Order{}, err
	}
	if req.UserID != nil {
		if err := s.orders.CheckUser(ctx, team, *req.UserID); err != nil {
			return orders.Order{}, err
		}
	}
	var to Assignment
	var of catalogue.LabTest
	if req.OrderID != nil {
		was, err := s.store.Get(ctx, team, *req.OrderID)
		if err != nil {
			return orders.Order{}, rules.NotFound(err, orders.OrderNotFound, "the team has no such order")
		}
		if g.needsNewOrder(&was) {
			if was, err = s.successor(ctx, item.Message, was); err != nil {
				return orders.Order{}, fmt.Errorf("find order of specimen: %w", err)
			}
		}
		if req.UserID != nil && was.UserID != *req.UserID {
			return orders.Order{}, reviewError(ReviewInconsistent, "order_id: must be an order of the given user")
		}
		to.Order, of = was.ID, was.LabTest
		if g.needsNewOrder(&was) {
			if to.New, err = s.replacement(ctx, item, was, g.at); err != nil {
				return orders.Order{}, err
			}
		}
		g.made = to.New != nil
	} else {
		if to.New, err = s.firstOrder(ctx, item, *req.UserID, g.at); err != nil {
			return orders.Order{}, err
		}
		g.made = true
	}
	if to.New != nil {
		if err := s.catalogue.StoreBuilt(ctx, team, &to.New.LabTest, g.at); err != nil {
			return orders.Order{}, err
		}
		of = to.New.LabTest
	}
	if g.completion, err = s.completion(ctx, of); err != nil {
		return orders.Order{}, err
	}
	file, err := s.fetchReport(ctx, item.Message)
	if err != nil {
		return orders.Order{}, err
	}
	for range 12 {
		g.ids = append(g.ids, s.shared.NewID())
	}
	done, err := store.AssignResult(ctx, team, id, to, g.assign)
	if errors.Is(err, healthlab.Conflict) && g.specimen != "" {
		g.specimen = "" // another order has the specimen; the order gets the result without it, as a person decided
		done, err = store.AssignResult(ctx, team, id, to, g.assign)
	}
	if err != nil {
		return orders.Order{}, rules.NotFound(err, RawResultNotFound, "the team has no such result")
	}
	s.moveReport(ctx, item.Message, *done.ResolvedOrderID, file)
	return s.orders.Get(ctx, team, *done.ResolvedOrderID)
}

func reviewError(rule, msg string) error {
	return &healthlab.RuleError{Kind: healthlab.Invalid, Type: rule, Msg: msg}
}

// defaultOrder returns the id of the order that a result names, or for MatchWrongLab that of the patient's only open
// order. REVIEW_SELECTION_REQUIRED if there is none, and for decision codes other than MatchCompleted, MatchCancelled,
// MatchWrongCollection and MatchWrongLab.
func (s *Service) defaultOrder(ctx context.Context, item RawResult) (*orders.OrderID, error) {
	w, err := s.evaluate(ctx, item.Message)
	if err != nil {
		return nil, err
	}
	switch item.DecisionCode {
	case MatchCompleted, MatchCancelled, MatchWrongCollection:
		if w.named != nil {
			return &w.named.ID, nil
		}
	case MatchWrongLab:
		if w.named != nil {
			return &w.named.ID, nil
		}
		open := slices.DeleteFunc(slices.Clone(w.patientMatches), func(o orders.Order) bool { return o.LowLevel().Final() })
		if len(open) == 1 {
			return &open[0].ID, nil
		}
	default:
	}
	return nil, reviewError(ReviewNeedsChoice, "order_id or user_id is required, because the result matches several orders or none")
}

// acceptance is a decision to accept a result, with the data that the rules need.
type acceptance struct {
	item RawResult
	// completion completes the report of the order that gets the result.
	completion *completion
	// specimen is the specimen id for an order without one; empty for none.
	specimen string
	req      AcceptRequest
	at       time.Time
	settings orders.Settings
	ids      []uuid.UUID
	// made is true if a new order gets the result.
	made bool
}

func (g *acceptance) needsNewOrder(was *orders.Record) bool {
	low := was.LowLevel()
	elsewhere := g.item.Message.Lab != "" && was.LabTest.Lab != nil && was.LabTest.Lab.Slug != g.item.Message.Lab
	e, _ := orders.EndingOf(low)
	return elsewhere || low.Final() && !e.TakesResult
}

// assign stores the result in the order made, or in was if made is nil, and ends the review. It returns the events for
// the team. It is pure, as [AssignChange] requires.
func (g *acceptance) assign(item *RawResult, was, made *orders.Record) ([]healthlab.Event, error) {
	if item.Status != g.item.Status {
		return nil, notReviewable()
	}
	if was != nil {
		switch {
		case g.req.UserID != nil && was.UserID != *g.req.UserID:
			return nil, reviewError(ReviewInconsistent, "order_id: must be an order of the given user")
		case !was.Facts().PatientKnown():
			return nil, reviewError(ReviewNotPossible, "order_id: the testkit of the order must be registered first")
		case g.needsNewOrder(was) != g.made, made != nil && made.UserID != was.UserID:
			return nil, reviewError(ReviewNotPossible, "the order has changed since the result was read; read the result again and repeat the decision")
		}
	}
	ids := slices.Clone(g.ids)
	next := func() orders.Step {
		st := orders.Step{At: g.at, EventID: ids[0], NotifyPartial: g.settings.PartialWebhooks}
		ids = ids[1:]
		return st
	}
	var events []healthlab.Event
	do := func(more []healthlab.Event, err error) error {
		events = append(events, more...)
		return err
	}
	to := was
	if made != nil {
		to = made
		if err := do(g.beginOrder(was, made, next(), next())); err != nil {
			return nil, err
		}
	}
	if specimen := g.specimen; specimen != "" && to.SampleID == nil {
		to.SampleID = &specimen
	}
	if slices.Contains(to.Messages, g.item.Message.ID) {
		return nil, reviewError(ReviewNotPossible, "order_id: must be an order without this result")
	}
	if to.ReportedAt.IsZero() {
		to.ReportedAt = item.CreatedAt.Time
	}
	if err := do(applyResult(to, g.item.Message, g.completion, next())); err != nil {
		return nil, err
	}
	to.LatestReportAt = item.CreatedAt.Time
	planCriticalMessage(to, g.at)
	at := healthlab.At(g.at)
	action, shown := ReviewAccept, item.visibleToTeam()
	if g.req.Note != nil || item.Open() {
		item.Note = g.req.Note
	}
	item.Status, item.Escalated, item.ResolutionAction = MatchResolved, false, &action
	item.ResolvedUserID, item.ResolvedOrderID, item.ReviewedAt, item.UpdatedAt = &to.UserID, &to.ID, &at, at
	if !shown {
		return events, nil
	}
	if err := do(item.newEvent(EventMatchReviewUpdated, next().EventID, at)); err != nil {
		return nil, err
	}
	return events, nil
}

// beginOrder begins the new order made. If made replaces the order was, it cancels was if that is possible. If was has
// ended, has no results and has the specimen of the result, it loses the specimen, so that made can have it. st is the
// step of was, first that of made.
func (g *acceptance) beginOrder(was, made *orders.Record, st, first orders.Step) ([]healthlab.Event, error) {
	if was == nil {
		return orders.Begin(&made.Order, g.at, first.EventID)
	}
	on := orders.Trigger("")
	if was.Cancellable() {
		on = orders.CancelRequested
	}
	dead := on != "" || was.LowLevel().Final()
	if dead && was.Results == nil && was.SampleID != nil && *was.SampleID == g.specimen {
		was.SampleID = nil
	}
	return orders.AddChild(was, made, st, on, first.EventID)
}

// applyResult adds a result to the results of an order that a person chose, whatever the order's status, and changes
// the status accordingly. c completes the report of the order. It returns the events for the team.
func applyResult(r *orders.Record, m Message, c *completion, st orders.Step) ([]healthlab.Event, error) {
	r.Messages = append(slices.Clone(r.Messages), m.ID)
	r.NoteCollection(m.CollectedAt)
	file := m.ReportFile
	ending, _ := orders.EndingOf(r.LowLevel())
	m = m.attach(r, c, st.At)
	st.Corrected = setResults(r, m, st.At)
	if file != "" && !slices.Contains(r.Files, file) {
		r.Files = append(slices.Clone(r.Files), file)
	}
	r.Lab.Kit, r.Lab.Requisition = true, true // the lab has results, so the order is not submitted any more
	to := orders.Completed
	switch {
	case ending.TakesResult:
		to = orders.Corrected
	case m.On == orders.PartialResult && r.Method() == catalogue.Testkit:
		r.UpdatedAt = healthlab.At(st.At)
		r.RefreshTransaction()
		r.PlanSubmission(st.At)
		return nil, nil
	case m.On == orders.PartialResult:
		to = orders.PartialResults
	}
	return r.Enter(to, st)
}

// replacement returns a new order that replaces was, which cannot take the result. The new order is at the lab that
// sent the result. It is not stored.
func (s *Service) replacement(ctx context.Context, item RawResult, was orders.Record, at time.Time) (*orders.Record, error) {
	r := was.Reorder(orders.OrderID{UUID: s.shared.NewID()}, orders.OriginRecreation, healthlab.At(at))
	r.Details = orders.NewDetails(was.Method(), s.shared.NewID(), s.shared.NewID(), healthlab.At(at))
	r.ShippingDetails = nil
	if slug := item.Message.Lab; slug != "" && was.LabTest.Lab != nil && was.LabTest.Lab.Slug != slug {
		if err := s.changeLab(ctx, &r, item); err != nil {
			return nil, err
		}
	}
	return &r, nil
}

// changeLab replaces the lab test of an order by a test of the lab that sent the result, with the measured markers.
func (s *Service) changeLab(ctx context.Context, r *orders.Record, item RawResult) error {
	t, account, err := s.measuredTest(ctx, r.TeamID, item)
	if err != nil {
		return err
	}
	t.Method, t.Fasting = r.Method(), r.LabTest.Fasting
	r.LabTest, r.LabAccountID, r.LabAccountNumber, r.AOEAnswers = t, nil, "", nil
	if account != nil {
		r.LabAccountID, r.LabAccountNumber = &account.ID, account.ProviderAccountID
	}
	return nil
}

// measuredTest returns a lab test of the markers in a result, which it finds by the lab's codes, and the team's account
// at the lab. REVIEW_NOT_POSSIBLE if the catalogue does not have the lab or has none of the markers, and if the account
// is not certain.
func (s *Service) measuredTest(ctx context.Context, team healthlab.TeamID, item RawResult) (catalogue.LabTest, *catalogue.LabAccount, error) {
	var codes []string
	for _, one := range item.Message.Results.Results {
		for _, m := range one.SourceMarkers {
			if m.ProviderID != nil {
				codes = append(codes, *m.ProviderID)
			}
		}
		if one.ProviderID != nil {
			codes = append(codes, *one.ProviderID)
		}
	}
	slices.Sort(codes)
	found, err := s.catalogue.Find(ctx, team, catalogue.Selection{ProviderIDs: slices.Compact(codes)})
	if err != nil {
		return catalogue.LabTest{}, nil, err
	}
	i := slices.IndexFunc(found.Labs, func(l catalogue.Lab) bool { return l.Slug == item.Lab.Slug })
	if i < 0 {
		return catalogue.LabTest{}, nil, reviewError(ReviewNotPossible, "the laboratory of the result is not in the catalogue")
	}
	lab := found.Labs[i]
	here := slices.DeleteFunc(found.Markers, func(m catalogue.Marker) bool { return m.LabID == nil || *m.LabID != lab.ID })
	if len(here) == 0 {
		return catalogue.LabTest{}, nil, reviewError(ReviewNotPossible, "the catalogue has no marker of the laboratory with the codes of the result")
	}
	accounts, err := s.catalogue.Accounts(ctx, team)
	if err != nil {
		return catalogue.LabTest{}, nil, fmt.Errorf("find lab accounts: %w", err)
	}
	account, err := catalogue.AccountFor(&lab, nil, accounts, true)
	var rule *healthlab.RuleError
	if errors.As(err, &rule) {
		return catalogue.LabTest{}, nil, reviewError(ReviewNotPossible, "the team must have exactly one account at the laboratory "+lab.Slug)
	}
	if err != nil {
		return catalogue.LabTest{}, nil, err
	}
	return catalogue.BuildLabTest(nil, here, &lab, lab.DefaultMethod(), s.shared.NewID()), account, nil
}

// firstOrder returns a new order of a user for a result that belongs to none of the user's orders. Its tests are the
// measured markers; its patient is that of the user's newest order, else the user's demographics. It is not stored.
func (s *Service) firstOrder(ctx context.Context, item RawResult, user healthlab.UserID, at time.Time) (*orders.Record, error) {
	t, account, err := s.measuredTest(ctx, item.Team, item)
	if err != nil {
		return nil, err
	}
	r := s.orders.Draft(item.Team, user, catalogue.Chosen{LabTest: t, Method: t.Method}, account, at)
	page, err := s.store.List(ctx, orders.Query{Team: item.Team, User: user, Today: rules.UTCDay(at), Page: 1, Size: catalogue.MaxPageSize, Sort: orders.SortCreatedAt, Direction: catalogue.Descending})
	if err != nil {
		return nil, fmt.Errorf("find orders of user: %w", err)
	}
	for _, o := range page.Orders {
		if o.PatientDetails != nil {
			r.PatientDetails, r.PatientAddress = o.PatientDetails, o.PatientAddress
			return &r, nil
		}
	}
	info, err := s.orders.People().UserInfo(ctx, item.Team, user)
	if err == nil {
		r.PatientDetails, r.PatientAddress = patientOf(info)
		return &r, nil
	}
	if !errors.Is(err, healthlab.NotFound) {
		return nil, fmt.Errorf("find demographics: %w", err)
	}
	return nil, reviewError(ReviewNotPossible, "user_id: the user must have demographics; set them first")
}

// patientOf returns the patient data of a user.
func patientOf(u people.UserInfo) (*people.PatientDetails, *people.PatientAddress) {
	a := u.Address
	return &people.PatientDetails{
			FirstName: &u.FirstName, LastName: &u.LastName, DOB: u.DOB, Gender: people.Gender(strings.ToLower(strings.TrimSpace(u.Gender))), PhoneNumber: &u.PhoneNumber,
			Email: &u.Email, MedicalProxy: u.MedicalProxy, Race: u.Race, Ethnicity: u.Ethnicity,
			SexualOrientation: u.SexualOrientation, GenderIdentity: u.GenderIdentity,
		}, &people.PatientAddress{
			ReceiverName: u.FirstName + " " + u.LastName, FirstLine: a.FirstLine, SecondLine: a.SecondLine, City: a.City, State: a.State,
			Zip: cmp.Or(a.Zip, a.ZipCode), Country: a.Country, PhoneNumber: &u.PhoneNumber, AccessNotes: a.AccessNotes,
		}
}
