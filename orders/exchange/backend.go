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

// LabBackend submits orders to laboratories, and reads their messages.
//
// Implementations must be safe for concurrent use.
type LabBackend interface {
	// Submit submits an order for a kit, or a requisition. After any error or timeout it may be called again with the
	// same order and stage: an implementation must recognize repeats, place no second order, and return the first
	// answer again. Invalid means that the lab refuses the content permanently; after any other error the service
	// repeats the call later. A timeout does not mean that the lab has not received the order.
	Submit(ctx context.Context, s Submission) (Accepted, error)
	// Cancel cancels an order at the lab. It may be called again: an order that the lab does not know or has cancelled
	// already is no error. Precondition means that the order can no longer be cancelled; the service does not repeat
	// the call. After a cancellation, Updates must not report later events of the order.
	Cancel(ctx context.Context, team healthlab.TeamID, id orders.OrderID) error
	// Updates returns at most n messages that follow the cursor, in the order in which the lab sent them, and the
	// cursor after the last of them. An empty cursor means the first message. A call with the same cursor returns the
	// same messages again, and may return newer ones after them; without newer messages the batch is empty. Messages
	// with results have the patient and the numbers as the laboratory reported them, not those of the order: the
	// service decides to which order the results belong.
	Updates(ctx context.Context, cursor string, n int) (Batch, error)
}

// SubmissionStage distinguishes the submissions of an order to a laboratory.
type SubmissionStage string

// Stages of a submission. An order for a registrable kit has both stages; other orders have SubmitRequisition
// only.
const (
	// SubmitKit asks the lab to send a kit whose patient is not known yet.
	SubmitKit SubmissionStage = "kit"
	// SubmitRequisition asks the lab to test the patient's sample.
	SubmitRequisition SubmissionStage = "requisition"
)

// Submission is the content of a submission to a laboratory.
type Submission struct {
	healthlab.Private

	Stage SubmissionStage
	// Order is the order without access notes, which only the visiting provider gets (visits.Booking).
	Order orders.Order
	// AccountNumber is the lab's number of the account; empty for none.
	AccountNumber string
	// Comment is the text for the requisition; empty for none.
	Comment    string
	Physician  *people.PhysicianInput
	AOEAnswers []catalogue.AOEAnswer
}

// Accepted is a laboratory's answer to a submission.
type Accepted struct {
	// SampleID is the lab's id of order and specimen: the requisition number, or the id printed on the kit. Empty if
	// the lab reports it later in a message. It must differ between the orders of a team. If another order has it, the id
	// of the order takes its place, or of a kit none, and results with the lab's number wait for review.
	SampleID string
	// Notice lists what the patient's insurance will probably not pay; nil for nothing. Only answers to
	// [SubmitRequisition] may have it.
	Notice *orders.CoverageNotice
}

// Batch is a part of a lab's messages.
type Batch struct {
	Messages []Message
	// Cursor is the cursor of the next call; unchanged if there are no new messages.
	Cursor string
}

// Message is an event that a laboratory, or the carrier of its kits, reports.
type Message struct {
	healthlab.Private

	// ID is unique at the lab. A repeated message is ignored.
	ID string
	// Team and Order identify the submitted order. If Order is zero, SampleID identifies it.
	Team  healthlab.TeamID
	Order orders.OrderID
	// SampleID is the lab's id of the specimen; empty if unknown.
	SampleID string
	// LabNumbers are further ids in the lab's message, of which one may be the sample id of an order. The service uses
	// them if neither Order nor SampleID identifies an order. ForeignNumbers are reported order numbers that do not
	// belong to Order; a result with such a number waits for review.
	LabNumbers, ForeignNumbers []string
	// Attached is true if a person has decided that the results belong to Order. The patient and the numbers
	// are then not compared.
	Attached bool
	// On is the event that happened.
	On orders.Trigger
	// At is the time at which the event On happened.
	At time.Time
	// Detail is a finer reason; empty for none.
	Detail orders.StatusDetail
	// Tracking has new tracking data of one parcel. ReturnTracking is the tracking data of the return label in the kit,
	// and comes with KitShipped. Nil for none.
	Tracking, ReturnTracking *Tracking
	// CollectedAt is the time of the collection; zero if unknown.
	CollectedAt time.Time
	// Patient is the patient as the lab reported it, never as in the order. If it is nil, the service uses the patient
	// in the metadata of Results. Results without name and birth date wait for review.
	Patient *orders.ReportedPatient
	// Lab is the slug of the lab, and AccountNumber its number of the account; empty if unknown.
	Lab           string
	AccountNumber string
	// Visit is an update of an appointment of the order; On is then empty. Nil for none.
	Visit *orders.VisitUpdate
	// Results come with PartialResult, FinalResult and CorrectedResult, and, if they have missing results only, with
	// SampleRejected; nil otherwise. If results are missing, the service may offer a redraw. The service adds what the
	// lab leaves out, from the catalogue or the order: LOINC codes, the markers of results, limits and flags that
	// follow from a reference range, and the metadata. In a final report it adds required results that are not
	// mentioned as missing. A result with CorrectedAt corrects the earlier result, in a partial report too. If no
	// result of a CorrectedResult has CorrectedAt, every result that differs from the earlier one counts as corrected.
	Results *labresult.Report
	// Awaited are the ids of the ordered markers of which the lab has not reported a final result. It comes with
	// PartialResult; nil means that the lab does not say. If the message names no order, Awaited is empty, or nil if a
	// result may still change. With it the service knows that an order is complete if the awaited results were
	// reported without the order, and a person attached them.
	Awaited []int
	// ReportFile is the id of the lab's own report of Results, as it was passed to [orders.Files.StoreReport];
	// empty for none.
	ReportFile string
	// Notice comes with LabAccepted; see [Accepted]. Nil for none.
	Notice *orders.CoverageNotice
}

// Tracking has the tracking data of a parcel. An empty field leaves the stored value unchanged.
type Tracking struct {
	// Inbound is true for the parcel with the sample to the lab, false for the kit to the patient.
	Inbound              bool
	Number, URL, Courier string
}

// Simulator decides what a simulated laboratory does: see package simulation. Its methods are pure and safe for
// concurrent use.
type Simulator interface {
	// Route returns the triggers that lead an order from its present status to the status to; false if there is no such
	// sequence.
	Route(o *orders.Order, to orders.LowLevel) ([]orders.Trigger, bool)
	// Report returns the lab's message for a trigger of an order. It includes the sample id, tracking or results if
	// a lab reports them with the trigger. expected maps the id of a marker to its expected results.
	Report(o *orders.Order, on orders.Trigger, at time.Time, flags orders.SimulationFlags, expected map[int][]catalogue.ExpectedResult) Message
}
