package orders

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
)

// SubmitDue hands over what is due now, and returns how many orders it took up: for
// hosts that bring their own scheduler. The first error that left an order's outcome
// unrecorded is returned; a lab that fails is not an error.
func (s *Service) SubmitDue(ctx context.Context) (int, error) {
	return s.submissionLoop().Once(ctx, batchSize)
}

func (s *Service) submissionLoop() *work.Loop[Record] {
	return newLoop(s, "placing", s.allOrders.Claim, s.submit)
}

// submit tells the lab the next thing of a claimed order, and records the outcome.
func (s *Service) submit(ctx context.Context, r Record) error {
	if r.UserDeleted && r.Cancellable() {
		var err error
		if r, err = s.cancelOfDeleted(ctx, r); err != nil {
			return err
		}
	}
	t := r.task()
	var accepted Accepted
	var refused error
	call, cancel := context.WithTimeout(ctx, s.opts.LabTimeout)
	defer cancel()
	switch t {
	case sendKit, sendRequisition:
		stage := SubmitRequisition
		if t == sendKit {
			stage = SubmitKit
		}
		sub := Submission{
			Stage: stage, Order: r.Order, AccountNumber: r.LabAccountNumber, Comment: s.RequisitionComment(&r),
			Physician: r.PhysicianInput, AOEAnswers: r.AOEAnswers,
		}
		if a := r.PatientAddress; a != nil {
			own := *a
			own.AccessNotes = nil
			sub.Order.PatientAddress = &own
		}
		accepted, refused = s.lab.Submit(call, sub)
	case sendCancel:
		refused = s.lab.Cancel(call, r.TeamID, r.ID)
	case nothing:
	}
	if ctx.Err() != nil {
		return ctx.Err() // stopping; the lease brings the order back
	}
	return s.recordSubmission(ctx, r, t, accepted, refused)
}

// recordSubmission writes what the lab answered. If the order has moved on in the meantime, only
// what is still true of it counts.
func (s *Service) recordSubmission(ctx context.Context, claimed Record, t task, accepted Accepted, refused error) error {
	st := Step{At: s.now(), EventID: s.opts.NewID()}
	if t == sendRequisition && refused == nil && accepted.SampleID != "" {
		st.FormURL = s.formURL(ctx, &claimed, st.At)
	}
	_, err := s.allOrders.Update(ctx, claimed.TeamID, claimed.ID, func(r *Record) ([]healthlab.Event, error) {
		if r.Lab.Lease.Equal(claimed.Lab.Lease) {
			r.Lab.Lease = time.Time{}
		}
		if refused != nil {
			return r.recordRefused(t, st, refused, s.opts.Retry)
		}
		return r.recordAccepted(t, st, accepted)
	})
	if errors.Is(err, healthlab.Conflict) && refused == nil {
		// The lab may give another sample id at the next attempt.
		return s.recordSubmission(ctx, claimed, t, Accepted{}, errSampleIDRepeated)
	}
	if err != nil {
		return fmt.Errorf("record handover: %w", err)
	}
	if refused != nil {
		s.opts.Log.WarnContext(ctx, "lab did not take an order", "lab", s.opts.LabName, "order", claimed, "attempts", claimed.Lab.Attempts,
			"kind", healthlab.KindOf(refused).Error(), "cause", work.Cause(refused))
	}
	return nil
}

// errSampleIDRepeated says that the lab accepted an order with the sample id of another one.
var errSampleIDRepeated = fmt.Errorf("%w: the laboratory gave two orders one sample id; Accepted.SampleID must differ between orders", healthlab.Conflict)

// recordAccepted notes what the lab took.
func (r *Record) recordAccepted(t task, st Step, a Accepted) ([]healthlab.Event, error) {
	sample := a.SampleID
	var events []healthlab.Event
	switch t {
	case sendKit:
		r.Lab.Kit = true
	case sendRequisition:
		r.Lab.Requisition = true
		r.setNotice(a.Notice)
	case sendCancel:
		r.Lab.Cancel = true
	case nothing:
	}
	if sample != "" && r.SampleID == nil {
		r.SampleID = &sample
	}
	// An empty sample id means that the lab's acceptance comes later, as a message.
	if low := r.LowLevel(); t == sendRequisition && sample != "" && (low == Ordered || low == Registered) {
		st.On = LabAccepted
		accepted, err := r.apply(st)
		if err != nil {
			return nil, err
		}
		events = accepted
	}
	r.planSubmission(st.At)
	return events, nil
}

func (r *Record) setNotice(n *CoverageNotice) {
	// Once the lab has accepted the order there is one notice, which may have been printed.
	if n == nil || len(n.Items) == 0 || r.Notice != nil && r.HasRequisition() {
		return
	}
	r.Notice, r.HasABN = n, r.HasRequisition()
}

// recordRefused notes that the lab did not take something: for good, or until later.
func (r *Record) recordRefused(t task, st Step, cause error, retry func(int) time.Duration) ([]healthlab.Event, error) {
	kind := healthlab.KindOf(cause)
	if now := r.task(); now != t {
		r.planSubmission(st.At) // the order has moved on; so does what is to be told
		return nil, nil
	}
	switch {
	case t == sendCancel && kind == healthlab.Precondition:
		r.Lab.Cancel = true // too late; what the lab reports is decided when it arrives
		r.planSubmission(st.At)
		return nil, nil
	case t != sendCancel && kind == healthlab.Invalid:
		// The lab refuses the order for good. A kit has a status for that.
		st.On, st.Detail = CancelRequested, OrderRefused
		if _, ok := Next(r.Method(), r.LowLevel(), Stopped, r.Facts()); ok {
			st.On, st.Detail = Stopped, FulfillmentError
		}
		events, err := r.apply(st)
		r.Lab.Cancel = true // it has nothing to cancel
		r.planSubmission(st.At)
		return events, err
	}
	r.Lab.Due = st.At.Add(retry(r.Lab.Attempts))
	if t != sendCancel && r.ActivateBy != nil && r.ActivateBy.At(time.UTC).After(r.Lab.Due) {
		r.Lab.Due = r.ActivateBy.At(time.UTC) // the day was changed while the lab was asked
	}
	return nil, nil
}

// RequisitionComment is what the requisition of an order says beside it; empty for a laboratory
// that takes no comments.
func (s *Service) RequisitionComment(r *Record) string {
	if labs := s.opts.CentralLabs; labs != nil && (r.LabTest.Lab == nil || !slices.Contains(labs, r.LabTest.Lab.Slug)) {
		return ""
	}
	return r.Comment
}
