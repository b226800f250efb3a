package exchange

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// LabBackend hands orders to laboratories, and brings what they report.
//
// Implementations must be safe for concurrent use.
type LabBackend interface {
	// Submit hands over a kit to be sent, or a requisition. It may be called again
	// with the same order and stage after any error or timeout: an implementation
	// must recognise them and not place a second order, and answers as the first
	// time. Sample ids differ between orders. Errors: Invalid (the lab refuses the content for good), anything else:
	// the call is made again later. A deadline that ends says nothing of what the
	// lab did.
	Submit(ctx context.Context, s Submission) (Accepted, error)
	// Cancel takes an order back. It may be called again; an order that the lab
	// never got, or has cancelled already, is no error. Precondition means that it
	// is too late: it is not called again. Updates reports nothing that happens to a
	// cancelled order later.
	Cancel(ctx context.Context, team healthlab.TeamID, id orders.OrderID) error
	// Updates returns at most n messages that come after a cursor, in the order in
	// which they were sent, and the cursor after the last of them. The empty cursor
	// is the start. The same cursor returns the same messages again, and perhaps
	// more; no messages means that there are none now. Messages with results say what the
	// laboratory reported of the patient and the numbers, not what the order says: the service
	// decides whose they are.
	Updates(ctx context.Context, cursor string, n int) (Batch, error)
}

// SubmissionStage is what a laboratory is asked to do.
type SubmissionStage string

// The stages of a submission. An order for a registrable kit has both, others only
// the second.
const (
	// SubmitKit asks to send a kit whose patient is not known yet.
	SubmitKit SubmissionStage = "kit"
	// SubmitRequisition asks to test the patient's sample.
	SubmitRequisition SubmissionStage = "requisition"
)

// Submission is what a laboratory gets.
type Submission struct {
	healthlab.Private

	Stage SubmissionStage
	// Order has no access notes: they go to the provider that visits, in a [Booking].
	Order orders.Order
	// AccountNumber is the lab's own number of the account; empty for none.
	AccountNumber string
	// Comment is the text for the requisition; empty for none.
	Comment    string
	Physician  *people.PhysicianInput
	AOEAnswers []catalogue.AOEAnswer
}

// Accepted is a laboratory's answer.
type Accepted struct {
	// SampleID is the lab's id of order and specimen: the requisition number, or the
	// id printed on the kit. Empty if the lab will say so later in a message. It differs
	// between the orders of a team; the Service tries an order again whose sample id
	// another order has.
	SampleID string
	// Notice is what the patient's insurance will probably not pay; nil for nothing. It
	// counts in answer to [SubmitRequisition].
	Notice *orders.CoverageNotice
}

// Batch is a part of a lab's messages.
type Batch struct {
	Messages []Message
	// Cursor is the cursor of the next call; unchanged if there are no new messages.
	Cursor string
}

// Message is one thing that a laboratory, or the carrier of its kits, reports.
type Message struct {
	healthlab.Private

	// ID is unique at the lab. A message that comes again changes nothing.
	ID string
	// Team and Order name the order, as they were submitted. If Order is zero, the
	// order is found by SampleID.
	Team  healthlab.TeamID
	Order orders.OrderID
	// SampleID is the lab's id of the specimen; empty if not known.
	SampleID string
	// LabNumbers are further numbers of the lab, of which one may be the sample id of an order:
	// they count if neither Order nor SampleID names one. ForeignNumbers are order numbers that
	// the lab reports and that are not Order's: with one, a result waits for review.
	LabNumbers, ForeignNumbers []string
	// Attached: a person has decided that the results belong to Order. Neither the patient
	// nor the numbers are compared.
	Attached bool
	// On is what happened.
	On orders.Trigger
	// At is when it happened.
	At time.Time
	// Detail is a finer reason; empty for none.
	Detail orders.StatusDetail
	// Tracking is news of the parcel, and ReturnTracking of the label in a kit for the way of the
	// sample to the lab, which comes with KitShipped; nil for none.
	Tracking, ReturnTracking *Tracking
	// CollectedAt is when the sample was taken; zero if not known.
	CollectedAt time.Time
	// Patient is whom the results are about, as the lab says, and never what the order
	// says. Nil: what can be read from the head of Results counts. Results without name and
	// birth date wait for review.
	Patient *orders.ReportedPatient
	// Lab is the slug of the lab, and AccountNumber its number of the account; empty
	// if not known.
	Lab           string
	AccountNumber string
	// Visit is news of an appointment of the order; On is then empty. Nil for none.
	Visit *orders.VisitUpdate
	// Results come with PartialResult, FinalResult and CorrectedResult, and with
	// SampleRejected if there are missing results alone; nil otherwise: a redraw is offered
	// by the service, where results are missing. What they leave out and
	// the catalogue or the order knows is filled in: LOINC codes, the markers that results
	// come from, bounds and flags that follow from a reference range, the head; and, in a
	// report that is all there will be, required results of which it does not say a word
	// are missing. A result with CorrectedAt corrects the one before it, in a partial report too;
	// of a CorrectedResult in which no result has it, all that differ are corrected.
	Results *labresult.Report
	// ReportFile is the id of the lab's own report of Results, as [Service.StoreReport]
	// was given it; empty for none.
	ReportFile string
	// Notice comes with LabAccepted; see [Accepted]. Nil for none.
	Notice *orders.CoverageNotice
}

// Tracking is where a parcel can be followed. Empty text means no news.
type Tracking struct {
	// Inbound: the way of the sample to the lab, not of the kit to the patient.
	Inbound              bool
	Number, URL, Courier string
}

// Simulator says what a simulated laboratory does: see package simulation. Its methods are
// pure and safe for concurrent use.
type Simulator interface {
	// Route returns the triggers that lead an order from where it stands to a status; false
	// if none do.
	Route(o *orders.Order, to orders.LowLevel) ([]orders.Trigger, bool)
	// Report returns what the laboratory says when a trigger happens to an order. A sample
	// id, tracking and results come with the triggers that bring them. Expected are the
	// results that each marker brings.
	Report(o *orders.Order, on orders.Trigger, at time.Time, flags orders.SimulationFlags, expected map[int][]catalogue.ExpectedResult) Message
}
