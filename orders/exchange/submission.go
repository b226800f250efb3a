package exchange

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// SubmitDue submits due orders, at most 100, and returns the number of processed orders. Hosts with a scheduler of
// their own call it in place of [Service.Run]. A failing lab is no error. An error means that orders could not be
// claimed, or that the outcome of an order was not stored.
func (s *Service) SubmitDue(ctx context.Context) (int, error) {
	return s.submissionLoop().Once(ctx, batchSize)
}

func (s *Service) submissionLoop() *work.Loop[orders.Record] {
	return s.loop("placing", s.allOrders.Claim, s.submit)
}

// submit makes the next call to the lab for a claimed order, and records the outcome.
func (s *Service) submit(ctx context.Context, r orders.Record) error {
	if r.UserDeleted && r.Cancellable() {
		var err error
		if r, err = s.cancelOrderOfDeletedUser(ctx, r); err != nil {
			return err
		}
	}
	t := r.NextCall()
	var accepted Accepted
	var refused error
	call, cancel := context.WithTimeout(ctx, s.shared.LabTimeout)
	defer cancel()
	switch t {
	case orders.SendKit, orders.SendRequisition:
		stage := SubmitRequisition
		if t == orders.SendKit {
			stage = SubmitKit
		}
		sub := Submission{
			Stage: stage, Order: r.Order, AccountNumber: r.LabAccountNumber, Comment: s.orders.RequisitionComment(&r),
			Physician: r.PhysicianInput, AOEAnswers: r.AOEAnswers,
		}
		if a := r.PatientAddress; a != nil {
			own := *a
			own.AccessNotes = nil
			sub.Order.PatientAddress = &own
		}
		accepted, refused = s.lab.Submit(call, sub)
	case orders.SendCancel:
		refused = s.lab.Cancel(call, r.TeamID, r.ID)
	case orders.NoCall:
	}
	if ctx.Err() != nil {
		return ctx.Err() // the process stops; after the lease the call is repeated
	}
	return s.recordSubmission(ctx, r, t, accepted, refused)
}

// recordSubmission stores the outcome of the call t to the lab in the order: the answer accepted, or the error refused.
// If the order has changed since the call, it stores only the part that still applies.
func (s *Service) recordSubmission(ctx context.Context, claimed orders.Record, t orders.LabCall, accepted Accepted, refused error) error {
	st := orders.Step{At: s.now(), EventID: s.shared.NewID()}
	if t == orders.SendRequisition && refused == nil && accepted.SampleID != "" {
		st.FormURL = s.formURL(ctx, &claimed, st.At)
	}
	_, err := s.allOrders.Update(ctx, claimed.TeamID, claimed.ID, func(r *orders.Record) ([]healthlab.Event, error) {
		if r.Lab.Lease.Equal(claimed.Lab.Lease) {
			r.Lab.Lease = time.Time{}
		}
		if refused != nil {
			return recordRefused(r, t, st, refused, s.shared.Retry)
		}
		return recordAccepted(r, t, st, accepted)
	})
	if other := replacementSampleID(&claimed, t); errors.Is(err, healthlab.Conflict) && refused == nil && accepted.SampleID != other {
		s.shared.Log.WarnContext(ctx, "laboratory gave two orders one sample id", "lab", s.opts.LabName, "order", claimed)
		accepted.SampleID = other
		return s.recordSubmission(ctx, claimed, t, accepted, nil)
	}
	if err != nil {
		return fmt.Errorf("record submission: %w", err)
	}
	if refused != nil {
		s.shared.Log.WarnContext(ctx, "lab did not take an order", "lab", s.opts.LabName, "order", claimed, "attempts", claimed.Lab.Attempts,
			"kind", healthlab.KindOf(refused).Error(), "cause", work.Cause(refused))
	}
	return nil
}

func replacementSampleID(r *orders.Record, t orders.LabCall) string {
	if t == orders.SendKit {
		return "" // a kit has the id that is printed on it; the lab may report it later
	}
	return r.ID.String() // no other order has it; a repeated call would return the first answer again
}

// recordAccepted stores in r that the lab accepted the call t, with the lab's answer a, and plans the next call. It
// returns the events for the team.
func recordAccepted(r *orders.Record, t orders.LabCall, st orders.Step, a Accepted) ([]healthlab.Event, error) {
	sample := a.SampleID
	var events []healthlab.Event
	switch t {
	case orders.SendKit:
		r.Lab.Kit = true
	case orders.SendRequisition:
		r.Lab.Requisition = true
		setNotice(r, a.Notice)
	case orders.SendCancel:
		r.Lab.Cancel = true
	case orders.NoCall:
	}
	if sample != "" && r.SampleID == nil {
		r.SampleID = &sample
	}
	// An empty sample id means that the lab's acceptance comes later, as a message.
	if low := r.LowLevel(); t == orders.SendRequisition && sample != "" && (low == orders.Ordered || low == orders.Registered) {
		st.On = orders.LabAccepted
		accepted, err := r.Apply(st)
		if err != nil {
			return nil, err
		}
		events = accepted
	}
	r.PlanSubmission(st.At)
	return events, nil
}

func setNotice(r *orders.Record, n *orders.CoverageNotice) {
	// After the lab has accepted the order, its first notice stays, because it may have been printed.
	if n == nil || len(n.Items) == 0 || r.Notice != nil && r.HasRequisition() {
		return
	}
	r.Notice, r.HasABN = n, r.HasRequisition()
}

// recordRefused stores in r that the call t to the lab failed with cause: permanently, or until the next attempt, whose
// wait retry returns. It returns the events for the team.
func recordRefused(r *orders.Record, t orders.LabCall, st orders.Step, cause error, retry func(int) time.Duration) ([]healthlab.Event, error) {
	kind := healthlab.KindOf(cause)
	if now := r.NextCall(); now != t {
		r.PlanSubmission(st.At) // the order has changed since the call, and another call may be due
		return nil, nil
	}
	switch {
	case t == orders.SendCancel && kind == healthlab.Precondition:
		r.Lab.Cancel = true // the lab can no longer cancel; its later messages are handled when they arrive
		r.PlanSubmission(st.At)
		return nil, nil
	case t != orders.SendCancel && kind == healthlab.Invalid:
		// The lab refuses the order permanently. A kit order becomes do_not_process, any other one cancelled.
		st.On, st.Detail = orders.CancelRequested, orders.OrderRefused
		if _, ok := orders.Next(r.Method(), r.LowLevel(), orders.Stopped, r.Facts()); ok {
			st.On, st.Detail = orders.Stopped, orders.FulfillmentError
		}
		events, err := r.Apply(st)
		r.Lab.Cancel = true // the lab did not take the order, so it need not cancel it
		r.PlanSubmission(st.At)
		return events, err
	}
	r.Lab.Due = st.At.Add(retry(r.Lab.Attempts))
	if t != orders.SendCancel && r.ActivateBy != nil && r.ActivateBy.At(time.UTC).After(r.Lab.Due) {
		r.Lab.Due = r.ActivateBy.At(time.UTC) // the activation day was changed during the call
	}
	return nil, nil
}

// cancelOrderOfDeletedUser cancels a claimed order of a deleted user, and returns the order as stored. It returns
// claimed unchanged if the order can no longer be cancelled.
func (s *Service) cancelOrderOfDeletedUser(ctx context.Context, claimed orders.Record) (orders.Record, error) {
	st := orders.Step{On: orders.CancelRequested, At: s.now(), EventID: s.shared.NewID()}
	r, err := s.allOrders.Update(ctx, claimed.TeamID, claimed.ID, func(r *orders.Record) ([]healthlab.Event, error) {
		if !r.UserDeleted || !r.Cancellable() {
			return nil, rules.Broken(orders.CancelNotAllowed, "the order can no longer be cancelled, because the laboratory has its sample")
		}
		return r.Apply(st)
	})
	var rule *healthlab.RuleError
	if errors.As(err, &rule) {
		return claimed, nil
	}
	if err != nil {
		return orders.Record{}, fmt.Errorf("cancel order of deleted user: %w", err)
	}
	return r, nil
}
