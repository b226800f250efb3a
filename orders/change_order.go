package orders

import (
	"context"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Cancel cancels an order. RuleError CANCEL_NOT_ALLOWED if its status does not allow that, or if it is already
// cancelled. The lab is called in the background.
func (s *Service) Cancel(ctx context.Context, team healthlab.TeamID, id OrderID) (Order, error) {
	o, err := s.changeOrder(ctx, team, id, CancelRequested, func(r *Record) error {
		if !r.Cancellable() {
			return rules.Broken(CancelNotAllowed, "the order cannot be cancelled in the status "+string(r.LastEvent.Status))
		}
		return nil
	})
	if err != nil {
		return Order{}, fmt.Errorf("cancel order: %w", err)
	}
	return o, nil
}

// DrawCompleted records that the team has drawn the sample of an order for on-site collection. Forbidden unless
// on-site collection is enabled for the team.
func (s *Service) DrawCompleted(ctx context.Context, team healthlab.TeamID, id OrderID) (Order, error) {
	settings, err := s.Settings(ctx, team)
	if err == nil && !settings.OnSiteCollection {
		err = rules.NotEnabled("on-site collection")
	}
	if err != nil {
		return Order{}, fmt.Errorf("complete draw: %w", err)
	}
	o, err := s.changeOrder(ctx, team, id, SampleDrawn, func(r *Record) error {
		if r.Method() != catalogue.OnSiteCollection {
			return rules.Broken(catalogue.MethodNotSupported, "collection_method of the order must be on_site_collection to report a draw")
		}
		return nil
	})
	if err != nil {
		return Order{}, fmt.Errorf("complete draw: %w", err)
	}
	return o, nil
}

// SetActivation changes the day on which a scheduled order is submitted to the lab; nil submits the order at
// once. RuleErrors: ORDER_NOT_MODIFIABLE after the submission, ORDER_NOT_SCHEDULED if the order was created
// without a day, ACTIVATE_BY_IN_PAST.
func (s *Service) SetActivation(ctx context.Context, team healthlab.TeamID, id OrderID, day *healthlab.Date) (Order, error) {
	at := s.now()
	if day != nil {
		var p healthlab.Problems
		if checkActivation(&p, *day, rules.UTCDay(at)); p.Err() != nil {
			return Order{}, p.Err()
		}
	}
	r, err := s.store.Update(ctx, team, id, func(r *Record) ([]healthlab.Event, error) {
		switch low := r.LowLevel(); {
		case low != Ordered && low != AwaitingRegistration:
			return nil, rules.Broken(OrderNotModifiable, "the order was already submitted to the laboratory")
		case !r.Scheduled:
			return nil, rules.Broken(OrderNotScheduled, "the order was created without activate_by, so its day of activation cannot be changed")
		case day != nil && day.Before(rules.UTCDay(at)):
			return nil, rules.Broken(ActivateByInPast, "activate_by must be today or later")
		}
		r.ActivateBy, r.UpdatedAt = day, healthlab.At(at)
		r.RefreshTransaction()
		r.PlanSubmission(at)
		return nil, nil
	})
	if err != nil {
		return Order{}, fmt.Errorf("set activation: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	return r.Order, nil
}

// changeOrder applies the trigger on to an order. If allowed returns an error, changeOrder returns that error and
// leaves the order unchanged.
func (s *Service) changeOrder(ctx context.Context, team healthlab.TeamID, id OrderID, on Trigger, allowed func(*Record) error) (Order, error) {
	settings, err := s.Settings(ctx, team)
	if err != nil {
		return Order{}, err
	}
	st := Step{On: on, At: s.now(), EventID: s.opts.NewID(), NotifyPartial: settings.PartialWebhooks}
	r, err := s.store.Update(ctx, team, id, func(r *Record) ([]healthlab.Event, error) {
		if err := allowed(r); err != nil {
			return nil, err
		}
		return r.Apply(st)
	})
	return r.Order, rules.NotFound(err, OrderNotFound, "the team has no such order")
}

// LabCall is a call to a laboratory about an order.
type LabCall uint8

// Calls to a laboratory. NoCall: no call is due.
const (
	NoCall LabCall = iota
	SendKit
	SendRequisition
	SendCancel
)

// NextCall returns the call to the laboratory that the order's status requires and that the laboratory has not accepted
// yet; [NoCall] if there is none. It changes nothing.
func (r *Record) NextCall() LabCall {
	switch low := r.LowLevel(); {
	case endings[low].TakeBack:
		if r.Lab.Started && !r.Lab.Cancel {
			return SendCancel
		}
	case low == AwaitingRegistration && !r.Lab.Kit:
		return SendKit
	case (low == Ordered || low == Registered) && r.Facts().PatientKnown() && !r.Lab.Requisition:
		return SendRequisition
	}
	return NoCall
}

// PlanSubmission sets Lab.Due, the time of the next call to the lab: at, or the start (UTC) of the activation day if
// that is later; a cancellation is always due at once. It also plans the next message to the patient. While a process
// calls the lab, its lease keeps other processes from calling about the order, so the lab gets a cancellation after the
// order.
func (r *Record) PlanSubmission(at time.Time) {
	r.PlanMessages()
	r.Lab.Attempts = 0
	t := r.NextCall()
	switch {
	case t == NoCall:
		r.Lab.Due = time.Time{}
	case r.ActivateBy != nil && t != SendCancel && r.ActivateBy.At(time.UTC).After(at):
		r.Lab.Due = r.ActivateBy.At(time.UTC)
	default:
		r.Lab.Due = at
	}
}

// Apply applies a step to the order as the function [Apply] does. It also changes the order's appointment and
// plans the next call to the lab.
func (r *Record) Apply(st Step) ([]healthlab.Event, error) {
	was := *r
	r.noteDraw(st.On, st.At)
	r.HasABN = r.HasABN || r.Notice != nil && st.On == LabAccepted // the lab reports the notice when it accepts the requisition
	to, _ := Next(r.Method(), r.LowLevel(), st.On, r.Facts())
	if endings[to].WithdrawResults {
		r.withdrawResults()
	}
	if r.endingTrigger(to, st) != "" {
		r.setShownVisit(nil) // the event about the order must not name the ended appointment
	}
	events, err := Apply(&r.Order, st)
	if err != nil {
		*r = was
		return nil, err
	}
	more, err := r.followOrder(st)
	r.PlanSubmission(st.At)
	return append(events, more...), err
}

// Enter puts the order into the status to, whatever its present status, for results that a person assigned to the
// order. Enter ignores the trigger of the step. It also plans the next call to the lab, and ends the order's
// appointment if the status to is one in which orders end.
func (r *Record) Enter(to LowLevel, st Step) ([]healthlab.Event, error) {
	if r.endingTrigger(to, st) != "" {
		r.setShownVisit(nil)
	}
	events, err := appendEvent(&r.Order, to, st)
	if err != nil {
		return nil, err
	}
	more, err := r.endVisit(st)
	r.PlanSubmission(st.At)
	return append(events, more...), err
}

func (r *Record) withdrawResults() {
	// A report with only missing results is kept, because it says why they are missing.
	r.Interpretation, r.ReportFile, r.Attached, r.Awaited = nil, "", nil, nil
	if r.Results == nil || len(r.Results.Results) > 0 || len(r.Results.MissingResults) == 0 {
		r.Results, r.ReportedPatient, r.HasMissingResults = nil, nil, nil
	}
}
