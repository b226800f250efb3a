package orders

import (
	"time"

	"github.com/healthlab-dev/healthlab"
)

// task is the next call to a lab about an order.
type task uint8

const (
	nothing task = iota
	sendKit
	sendRequisition
	sendCancel
)

// task returns the next call to the lab. It is a pure function of the record.
func (r *Record) task() task {
	switch low := r.LowLevel(); {
	case endings[low].TakeBack:
		if r.Lab.Started && !r.Lab.Cancel {
			return sendCancel
		}
	case low == AwaitingRegistration && !r.Lab.Kit:
		return sendKit
	case (low == Ordered || low == Registered) && patientKnown(r.Facts()) && !r.Lab.Requisition:
		return sendRequisition
	}
	return nothing
}

// planSubmission sets when the lab is called about the order in its present state: at once, or at the
// first instant (UTC) of the day for which it is scheduled. A process that is talking to
// the lab about it has a lease, so a cancellation does not overtake the order.
func (r *Record) planSubmission(at time.Time) {
	r.planMessages()
	r.Lab.Attempts = 0
	t := r.task()
	switch {
	case t == nothing:
		r.Lab.Due = time.Time{}
	case r.ActivateBy != nil && t != sendCancel && r.ActivateBy.At(time.UTC).After(at):
		r.Lab.Due = r.ActivateBy.At(time.UTC)
	default:
		r.Lab.Due = at
	}
}

// apply is Apply for a record; it also plans the call to the lab.
func (r *Record) apply(st Step) ([]healthlab.Event, error) {
	was := *r
	r.noteDraw(st.On, st.At)
	r.HasABN = r.HasABN || r.Notice != nil && st.On == LabAccepted // told with the requisition
	to, _ := Next(r.Method(), r.LowLevel(), st.On, r.Facts())
	if endings[to].WithdrawResults {
		r.withdrawResults()
	}
	if r.endsVisit(to, st) != "" {
		r.showVisit(nil) // the event of the order must not name it
	}
	events, err := Apply(&r.Order, st)
	if err != nil {
		*r = was
		return nil, err
	}
	more, err := r.followOrder(st)
	r.planSubmission(st.At)
	return append(events, more...), err
}

// withdrawResults takes back what was reported of a sample that the lab cannot use. A report of
// missing results alone says why, and stays.
func (r *Record) withdrawResults() {
	r.Interpretation, r.ReportFile = nil, ""
	if r.Results == nil || len(r.Results.Results) > 0 || len(r.Results.MissingResults) == 0 {
		r.Results, r.HasMissingResults = nil, nil
	}
}
