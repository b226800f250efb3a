package exchange

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// maxMessages is the highest number of received message ids that are stored in an order.
const maxMessages = 200

// Receive processes one message of a lab. It ignores a message without an error, so that the lab's feed continues, if
// the message was received before, is about an unknown order or another patient, names an order and the specimen of
// another one, or does not fit the order's status. If such a message has results and was not received before, Receive
// stores the results for review ([Service.Reviews]). After an error the caller must pass the message again.
func (s *Service) Receive(ctx context.Context, m Message) error {
	if m.reportsResults() {
		return s.receiveResults(ctx, m)
	}
	return s.receive(ctx, m)
}

// receiveResults stores the results of a message in the order that they certainly belong to. If there is none, it
// stores them for review.
func (s *Service) receiveResults(ctx context.Context, m Message) error {
	if held, err := s.isUnderReview(ctx, m); held || err != nil {
		return err
	}
	const tries = 4 // an order may change between the judgement and its effect
	contradicted := false
	for range tries {
		w, err := s.evaluate(ctx, m)
		if err != nil {
			return fmt.Errorf("evaluate lab results: %w", err)
		}
		if contradicted {
			w.judgement = judgement{code: MatchSampleMismatch, reason: "the order cannot have the specimen of the result"}
		}
		if w.named != nil && slices.Contains(w.named.Messages, m.ID) {
			return nil
		}
		if w.to.IsZero() {
			settings, err := s.orders.Settings(ctx, m.Team)
			if err != nil {
				return err
			}
			if err := s.opts.Accessed(ctx, m.Team, healthlab.UserID{}); err != nil {
				return fmt.Errorf("record access: %w", err)
			}
			return s.holdForReview(ctx, m, w, settings)
		}
		// From here on the message names the order that the match found.
		m.Order = w.to
		err = s.receive(ctx, m)
		contradicted = errors.Is(err, errSampleTaken)
		if !contradicted && !errors.Is(err, errOrderChanged) {
			return err
		}
	}
	return fmt.Errorf("take in lab results: %w: the order changed in each of %d attempts to store the results; retry", healthlab.Unavailable, tries)
}

var (
	// errOrderChanged means that a result can no longer be stored in the order that it was matched to, because the
	// order has changed since.
	errOrderChanged = errors.New("the order has changed since the results were evaluated")
	// errSampleTaken means that another order has the sample id of a result.
	errSampleTaken = errors.New("the laboratory reported the specimen for another order")
)

func (s *Service) receive(ctx context.Context, m Message) error {
	r, err := s.orderOfMessage(ctx, m)
	if errors.Is(err, healthlab.NotFound) && m.reportsResults() {
		return errOrderChanged
	}
	if errors.Is(err, healthlab.NotFound) {
		s.shared.Log.Warn("lab message matches no order", "message", m.ID, "on", string(m.On))
		return nil
	}
	if err != nil {
		return fmt.Errorf("find order of lab message: %w", err)
	}
	if err := s.opts.Accessed(ctx, m.Team, r.UserID); err != nil {
		return fmt.Errorf("record access: %w", err)
	}
	if !m.reportsResults() && m.contradicts(&r.Order) {
		s.shared.Log.Warn("lab message is about another patient than the order's", "message", m.ID, "on", string(m.On))
		return nil
	}
	c, err := s.completion(ctx, r.LabTest)
	if err != nil {
		return err
	}
	settings, err := s.orders.Settings(ctx, m.Team)
	if err != nil {
		return err
	}
	at := s.now()
	ids := s.newSteps(orders.MaxImplied+1, at, settings)
	if m.On != "" {
		s.formURLs(ctx, &r, ids)
	}
	if child, ok := s.redraw(&r, m, c, settings); ok && !r.UserDeleted {
		return s.offerRedraw(ctx, r.ID, child, m, c, ids)
	}
	var refused error
	_, err = s.allOrders.Update(ctx, m.Team, r.ID, func(r *orders.Record) ([]healthlab.Event, error) {
		refused = nil
		if err := markReceived(r, m); err != nil {
			return nil, err
		}
		if m.reportsResults() && m.contradicts(&r.Order) {
			return nil, errOrderChanged
		}
		events, err := applyMessage(r, m, c, ids)
		var transition *orders.TransitionError
		var rule *healthlab.RuleError
		if errors.As(err, &transition) && m.reportsResults() {
			return nil, errOrderChanged
		}
		if errors.As(err, &transition) || m.Visit != nil && errors.As(err, &rule) {
			refused = err
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		planCriticalMessage(r, at)
		return events, nil
	})
	switch {
	case errors.Is(err, errDuplicate):
		return nil
	case errors.Is(err, healthlab.Conflict) && m.reportsResults():
		return errSampleTaken
	case errors.Is(err, healthlab.Conflict), errors.Is(err, healthlab.Invalid):
		s.logRejected(m, err)
	case errors.Is(err, errOrderChanged):
		return err
	case err != nil:
		return fmt.Errorf("take in lab message: %w", err)
	case refused != nil:
		s.shared.Log.Warn("lab message makes no sense", "message", m.ID, "fault", refused.Error())
	}
	return nil
}

func (s *Service) logRejected(m Message, err error) {
	// The message is dropped, because a repeat would fail too, and the feed must continue.
	s.shared.Log.Warn("lab message cannot be taken in", "message", m.ID, "kind", healthlab.KindOf(err).Error(), "cause", work.Cause(err))
}

// offerRedraw stores a final report with results that the lab lost by its own fault: the order id ends with the status
// redraw_available, and child becomes the order for the redraw.
func (s *Service) offerRedraw(ctx context.Context, id orders.OrderID, child orders.Record, m Message, c *completion, steps []orders.Step) error {
	first := s.shared.NewID()
	_, _, err := s.store.InsertAfter(ctx, id, child, func(p, child *orders.Record) ([]healthlab.Event, error) {
		if err := markReceived(p, m); err != nil {
			return nil, err
		}
		if m.contradicts(&p.Order) {
			return nil, errOrderChanged
		}
		path, ok := p.ImpliedPath(orders.RedrawOffered)
		if !ok {
			return nil, errOrderChanged
		}
		last := len(path) - 1
		at := steps[last].At
		setSampleID(p, m)
		p.NoteCollection(m.CollectedAt)
		steps = slices.Clone(steps)
		whole := m.withAttached(p, c)
		steps[last].Corrected = setResults(p, whole, at)
		events, err := applyPath(p, path[:last], whole, steps)
		if err != nil {
			return nil, err
		}
		offered, err := orders.AddChild(p, child, steps[last], orders.RedrawOffered, first)
		if err != nil {
			return nil, err
		}
		planCriticalMessage(p, at)
		return append(events, offered...), nil
	})
	switch {
	case errors.Is(err, errDuplicate):
		return nil
	case errors.Is(err, healthlab.Conflict):
		return errSampleTaken
	case errors.Is(err, healthlab.Invalid):
		s.logRejected(m, err)
	case err != nil:
		return fmt.Errorf("offer redraw: %w", err)
	}
	return nil
}

// markReceived adds the message's id to the order; errDuplicate if the order has it already.
func markReceived(r *orders.Record, m Message) error {
	if slices.Contains(r.Messages, m.ID) {
		return errDuplicate
	}
	r.Messages = append(slices.Clone(r.Messages), m.ID)
	if n := len(r.Messages) - maxMessages; n > 0 {
		r.Messages = r.Messages[n:]
	}
	return nil
}

// errDuplicate means that the order has received the message before. It makes the update change nothing.
var errDuplicate = errors.New("the laboratory's message was processed before")

// applyMessage applies a message to an order and returns the events for the team. c completes the message's report.
// steps are the steps to use for the message's trigger and the triggers that it implies. It changes only r.
func applyMessage(r *orders.Record, m Message, c *completion, steps []orders.Step) ([]healthlab.Event, error) {
	if m.Visit != nil {
		return r.ReceiveVisitUpdate(m.Visit, steps[0].At, steps[0].EventID)
	}
	m = m.withAttached(r, c)
	path, ok := r.ImpliedPath(m.On)
	// A partial result of a kit is stored and can be read, without a change of the order's status.
	silent := !ok && m.On == orders.PartialResult && r.TakesSilentPartial()
	if !ok && !silent {
		return nil, r.Refused(m.On)
	}
	at := steps[0].At
	setSampleID(r, m)
	if m.On == orders.LabAccepted {
		setNotice(r, m.Notice)
	}
	updateTracking(r, m.Tracking, healthlab.At(at))
	if back := m.ReturnTracking; back != nil {
		updateTracking(r, &Tracking{Inbound: true, Number: back.Number, URL: back.URL, Courier: back.Courier}, healthlab.At(at))
	}
	r.NoteCollection(m.CollectedAt)
	var corrected []labresult.CorrectedMarker
	if m.Results != nil {
		corrected = setResults(r, m, at)
		steps = slices.Clone(steps)
		steps[min(max(len(path)-1, 0), len(steps)-1)].Corrected = corrected
	}
	if silent {
		r.UpdatedAt = healthlab.At(at)
		r.RefreshTransaction()
		if len(corrected) == 0 {
			return nil, nil
		}
		return r.NewEvent(orders.EventOrderUpdated, steps[0].EventID, healthlab.At(at))
	}
	return applyPath(r, path, m, steps)
}

// applyPath applies the triggers in path one after another, the i-th with steps[i], and returns the events for the
// team. It changes only r.
func applyPath(r *orders.Record, path []orders.Trigger, m Message, steps []orders.Step) (events []healthlab.Event, err error) {
	for i, on := range path {
		st := steps[min(i, len(steps)-1)]
		st.On = on
		if on == m.On {
			st.Detail = m.Detail
		}
		more, err := r.Apply(st)
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
		if on == orders.LabAccepted {
			r.Lab.Requisition = true // the lab has the requisition, even if our call failed
			r.PlanSubmission(st.At)
		}
	}
	return events, nil
}

func setSampleID(r *orders.Record, m Message) {
	if m.SampleID != "" && r.SampleID == nil {
		r.SampleID = &m.SampleID
	}
}

// updateTracking stores the tracking data of a parcel in the order of a kit; it is a no-op for nil and for other
// orders.
func updateTracking(r *orders.Record, t *Tracking, at healthlab.Time) {
	if t == nil || r.Details.Testkit == nil || r.Details.Testkit.Shipment == nil {
		return
	}
	kit, ship := *r.Details.Testkit, *r.Details.Testkit.Shipment
	number, url, courier := &ship.OutboundTrackingNumber, &ship.OutboundTrackingURL, &ship.OutboundCourier
	if t.Inbound {
		number, url, courier = &ship.InboundTrackingNumber, &ship.InboundTrackingURL, &ship.InboundCourier
	}
	for _, n := range []struct {
		field **string
		news  string
	}{{number, t.Number}, {url, t.URL}, {courier, t.Courier}} {
		if n.news != "" {
			*n.field = &n.news
		}
	}
	ship.UpdatedAt, kit.UpdatedAt = at, at
	kit.Shipment = &ship
	r.Details.Testkit = &kit
}

func (m Message) contradicts(o *orders.Order) bool {
	return !m.Attached && m.patient().Contradicts(o.PatientDetails)
}

// isUnderReview reports whether the results of a message were stored for review before, open or decided.
func (s *Service) isUnderReview(ctx context.Context, m Message) (bool, error) {
	_, err := s.reviewStore.Result(ctx, m.Team, m.RawID())
	if errors.Is(err, healthlab.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find result under review: %w", err)
	}
	return true, nil
}

// holdForReview stores the results of a message for review. It is a no-op if they are stored already.
func (s *Service) holdForReview(ctx context.Context, m Message, w evaluation, settings orders.Settings) error {
	j := w.judgement
	at := healthlab.At(s.now())
	r := RawResult{Team: m.Team, Message: m, UnmatchedResult: UnmatchedResult{
		ID: m.RawID(), Status: MatchPendingCustomer, DecisionCode: j.code, SubReasonCodes: rules.NonNil(j.sub), Reason: j.reason,
		Lab: MatchLab{Slug: w.labSlug(m)}, Markers: []MatchMarker{}, CreatedAt: at, UpdatedAt: at,
	}}
	if p := m.patient(); p != (orders.ReportedPatient{}) {
		r.Patient = &ReviewPatient{
			FirstName: rules.NonEmpty(p.FirstName), LastName: rules.NonEmpty(cmp.Or(p.LastName, p.FullName)),
			SecondName: p.SecondName, Suffix: p.Suffix, Gender: rules.NonEmpty(string(p.Gender)), DOBText: p.DOBText,
		}
		if !p.DOB.IsZero() {
			dob := healthlab.At(p.DOB.At(time.UTC))
			r.Patient.DOB = &dob
		}
	}
	labs, err := s.catalogue.Labs(ctx)
	if err != nil {
		return fmt.Errorf("find labs: %w", err)
	}
	if i := slices.IndexFunc(labs, func(l catalogue.Lab) bool { return l.Slug == r.Lab.Slug }); i >= 0 {
		r.Lab.ID, r.Lab.Name = labs[i].ID, labs[i].Name
	}
	for _, one := range m.Results.Results {
		name := one.Name
		r.Markers = append(r.Markers, MatchMarker{ProviderID: one.ProviderID, Name: &name, Result: one.Result, Unit: rules.TextOf(one.Unit)})
	}
	c, err := s.completion(ctx, w.orderedTest())
	if err != nil {
		return err
	}
	worst, status := labresult.Worst(c.complete(m, false).Results.Results), labresult.Final
	if m.On == orders.PartialResult {
		status = labresult.Partial
	}
	r.Interpretation, r.ResultStatus, r.Subject = &worst, &status, w.subject()
	var events []healthlab.Event
	if settings.UnmatchedResults {
		if events, err = r.newEvent(EventMatchReviewCreated, s.shared.NewID(), at); err != nil {
			return err
		}
	} else {
		r.Status = MatchPendingOps
	}
	err = s.reviewStore.InsertResult(ctx, r, events)
	switch {
	case errors.Is(err, healthlab.Conflict):
		return nil
	case errors.Is(err, healthlab.Invalid), errors.Is(err, healthlab.NotFound): // erased meanwhile
		s.logRejected(m, err)
		return nil
	case err != nil:
		return fmt.Errorf("hold result: %w", err)
	}
	s.shared.Log.Info("result is held for review", "result", r.ID.String(), "decision", string(j.code))
	return nil
}

// newSteps returns n steps at the time at, without triggers, each with a new event id.
func (s *Service) newSteps(n int, at time.Time, settings orders.Settings) []orders.Step {
	steps := make([]orders.Step, n)
	for i := range steps {
		steps[i] = orders.Step{At: at, EventID: s.shared.NewID(), NotifyPartial: settings.PartialWebhooks}
	}
	return steps
}

func (s *Service) redraws(r *orders.Record, settings orders.Settings) bool {
	return settings.Redraws && r.Method() == catalogue.WalkInTest && r.Origin == orders.OriginInitial &&
		r.LabTest.Lab != nil && slices.Contains(s.opts.RedrawLabs, r.LabTest.Lab.Slug) &&
		!slices.ContainsFunc(r.OrderTransaction.Orders, func(o orders.TransactionMember) bool { return o.Origin == orders.OriginRedraw })
}

// redraw returns a new order that repeats the tests whose results the lab lost by its own fault; false if no redraw is
// due. Only the first order of a transaction, for a walk-in test, gets a redraw, once, if team and lab allow redraws.
func (s *Service) redraw(r *orders.Record, m Message, c *completion, settings orders.Settings) (orders.Record, bool) {
	known := *r
	m = m.withAttached(&known, c) // an attached result is not lost
	if m.On != orders.FinalResult || m.Results == nil || !s.redraws(r, settings) {
		return orders.Record{}, false
	}
	if _, ok := r.ImpliedPath(orders.RedrawOffered); !ok {
		return orders.Record{}, false
	}
	var lost []catalogue.Marker
	for _, marker := range r.LabTest.Markers {
		if slices.ContainsFunc(m.Results.MissingResults, func(missing labresult.Missing) bool {
			return missing.InferredFailureType == labresult.InternalLabFailure && slices.ContainsFunc(missing.SourceMarkers,
				func(source labresult.SourceMarker) bool { return source.MarkerID == marker.ID })
		}) {
			lost = append(lost, marker)
		}
	}
	if len(lost) == 0 {
		return orders.Record{}, false
	}
	at := healthlab.At(s.now())
	child := r.Reorder(orders.OrderID{UUID: s.shared.NewID()}, orders.OriginRedraw, at)
	child.Details = orders.NewDetails(catalogue.WalkInTest, s.shared.NewID(), s.shared.NewID(), at)
	child.LabTest.Markers = lost
	child.LabTest.CommonTATDays = catalogue.SlowestTurnaround(lost, func(m catalogue.Marker) *int { return m.CommonTATDays })
	child.LabTest.WorstCaseTATDays = catalogue.SlowestTurnaround(lost, func(m catalogue.Marker) *int { return m.WorstCaseTATDays })
	return child, true
}
