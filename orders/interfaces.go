package orders

import (
	"context"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// Settings is what a team has switched on. The zero value has everything off.
type Settings struct {
	// PartialWebhooks: an event for every partial result. Without it, there is one for those that
	// correct an earlier result alone.
	PartialWebhooks bool
	// Redraws: the patient may come again when the lab lost a result.
	Redraws bool
	// OnSiteCollection: the team draws samples itself.
	OnSiteCollection bool
	// OrderImport: orders placed elsewhere may be tracked here.
	OrderImport bool
	// Minors: patients under 18, with a medical proxy.
	Minors bool
	// InsuranceRead: insurance records may be read back.
	InsuranceRead bool
	// OwnPayors: payors that only the team sees.
	OwnPayors bool
	// CompendiumTools: the compendium may be searched.
	CompendiumTools bool
	// SMSOff and EmailOff: patients get no message that way. Reminders: they are
	// reminded.
	SMSOff, EmailOff, Reminders bool
	// CriticalEmail is the address for messages about critical results; empty for none.
	CriticalEmail string
	// Paper is what documents are printed on. Default: letter.
	Paper Paper
	// UnmatchedResults: results that match no order for certain wait for the team's
	// decision. Without it, operations alone see them: [Service.Operations].
	UnmatchedResults bool
	// UnmatchedTestRuns: trials of that queue, in a sandbox.
	UnmatchedTestRuns bool
	// PSCScheduling: appointments at patient service centers can be made.
	PSCScheduling bool
	// PreRequisitionBooking: an appointment can be made before the lab has accepted
	// the order.
	PreRequisitionBooking bool
	// PatientManagedPSC: providers may be used whose appointments only the patient
	// can change.
	PatientManagedPSC bool
	// CachedAvailability: answers about free slots may be some minutes old.
	CachedAvailability bool
	// BookingIdempotency: bookings at centers take an idempotency key.
	BookingIdempotency bool
	// AsyncConfirmation: bookings at centers may be confirmed later.
	AsyncConfirmation bool
	// RequiredConsents are those that a patient must have given when the service's
	// own physicians order.
	RequiredConsents []people.ConsentType
}

func (s Settings) appointments() appointment.Settings {
	return appointment.Settings{PSCScheduling: s.PSCScheduling, PatientManagedPSC: s.PatientManagedPSC, CachedAvailability: s.CachedAvailability}
}

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
	Cancel(ctx context.Context, team healthlab.TeamID, id OrderID) error
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
	Order Order
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
	Notice *CoverageNotice
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
	Order OrderID
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
	On Trigger
	// At is when it happened.
	At time.Time
	// Detail is a finer reason; empty for none.
	Detail StatusDetail
	// Tracking is news of the parcel, and ReturnTracking of the label in a kit for the way of the
	// sample to the lab, which comes with KitShipped; nil for none.
	Tracking, ReturnTracking *Tracking
	// CollectedAt is when the sample was taken; zero if not known.
	CollectedAt time.Time
	// Patient is whom the results are about, as the lab says, and never what the order
	// says. Nil: what can be read from the head of Results counts. Results without name and
	// birth date wait for review.
	Patient *ReportedPatient
	// Lab is the slug of the lab, and AccountNumber its number of the account; empty
	// if not known.
	Lab           string
	AccountNumber string
	// Visit is news of an appointment of the order; On is then empty. Nil for none.
	Visit *VisitUpdate
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
	Notice *CoverageNotice
}

// Tracking is where a parcel can be followed. Empty text means no news.
type Tracking struct {
	// Inbound: the way of the sample to the lab, not of the kit to the patient.
	Inbound              bool
	Number, URL, Courier string
}

// Paper is the size of a document's pages.
type Paper string

// The sizes. The zero value of a Paper is Letter.
const (
	Letter Paper = "letter"
	A4     Paper = "a4"
)

// CoverageNotice is what a laboratory knows of an order that the patient's insurance
// will probably not pay for. Printing or logging it shows nothing.
type CoverageNotice struct {
	healthlab.Private

	Items []CoverageItem
	// Note is a further word of the laboratory; empty for none.
	Note string
}

// CoverageItem is one thing that is probably not paid for.
type CoverageItem struct {
	healthlab.Private

	// Name is what it is, in words.
	Name string
	// Reason is why it is probably not paid for.
	Reason string
	// CostMinor is the estimated cost in cents.
	CostMinor int64
}

// BlobStore keeps the files of orders. They are health data: an implementation encrypts
// them. Put and Get name the user whom the file is about: where a host has keys of persons, the
// file is encrypted with that user's key, and opens for no other user. Once the key is
// deleted, Get is [healthlab.NotFound].
//
// A key is letters, digits, hyphens, underscores and single slashes between them, at
// most 512 bytes; another one is [healthlab.Invalid]. Put keeps the whole content, in
// place of what was there, or after any error nothing of it; it may be called again
// after any error, as Delete may. Get of what is not there is [healthlab.NotFound];
// Delete of it is no error. Once ctx has ended, a call returns the context's error and
// changes nothing. Implementations are safe for concurrent use.
type BlobStore interface {
	Put(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string, content io.Reader) error
	// Get returns the content; the caller closes it.
	Get(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string) (io.ReadCloser, error)
	Delete(ctx context.Context, key string) error
}

// Channel is how a message reaches a patient.
type Channel string

// The channels.
const (
	SMS   Channel = "sms"
	Email Channel = "email"
)

// Moment is what a message is about: a low-level status of the order, or a reminder.
type Moment string

// The reminders.
const (
	// RemindKit: the patient has the kit and has not sent the sample.
	RemindKit Moment = "kit_reminder"
	// RemindVisit: the patient can go to the lab and has not booked.
	RemindVisit Moment = "visit_reminder"
	// RemindAppointment: the patient's appointment is near.
	RemindAppointment Moment = "appointment_reminder"
)

// AlertTeam is the one moment that is not the patient's: the team is told that a result is
// critical, at [Settings].CriticalEmail.
const AlertTeam Moment = "critical_result"

// PatientMessage is a message to a patient, or to the team that looks after one. Printing or
// logging it shows nothing.
type PatientMessage struct {
	healthlab.Private

	// ID is the same each time that the message is handed over.
	ID      uuid.UUID
	Team    healthlab.TeamID
	Order   OrderID
	User    healthlab.UserID
	Channel Channel
	// To is the phone number or the e-mail address.
	To     string
	Moment Moment
	Method catalogue.CollectionMethod
	// FirstName is the patient's; it may be empty, and is of a message to the team.
	FirstName string
	// At is when what it is about happened, or, of an appointment that is near, when it
	// begins.
	At time.Time
}

// Messenger sends messages to patients and teams.
//
// Send may be called again with the same message after any error or timeout; an
// implementation recognises its ID and sends it once. Errors: Invalid (the address is no
// good: it is not tried again), anything else: it is tried again later. An error names neither
// the address nor the person. Once ctx has ended, Send returns its error and sends nothing.
// Implementations must be safe for concurrent use.
type Messenger interface {
	Send(ctx context.Context, m PatientMessage) error
}

// SimulationFlags says what a simulated lab finds.
type SimulationFlags struct {
	// Interpretation of the order as a whole; normal if empty.
	Interpretation labresult.Interpretation `json:"interpretation"`
	// ResultTypes are taken in turn. If empty, a marker with a known LOINC code has a
	// value with the unit and the reference interval of the marker, or a qualitative
	// result; the others are numeric, comment and range in turn.
	ResultTypes []labresult.Type `json:"result_types"`
	// HasMissingResults: one of the expected results is missing.
	HasMissingResults *bool `json:"has_missing_results"`
}

func (f *SimulationFlags) check(final Status) error {
	var p healthlab.Problems
	if final != "" {
		if _, ok := ParseStatus(string(final)); !ok {
			rules.OneOf(&p, final, Statuses(), "final_status")
		}
	}
	if f.Interpretation != "" {
		rules.OneOf(&p, f.Interpretation, labresult.Interpretations(), "interpretation")
	}
	for i, t := range f.ResultTypes {
		rules.OneOf(&p, t, []labresult.Type{labresult.Numeric, labresult.Range, labresult.Comment, labresult.CodedValue}, "result_types", i)
	}
	return p.Err()
}

// Simulator says what a simulated laboratory does: see package simulation. Its methods are
// pure and safe for concurrent use.
type Simulator interface {
	// Route returns the triggers that lead an order from where it stands to a status; false
	// if none do.
	Route(o *Order, to LowLevel) ([]Trigger, bool)
	// Report returns what the laboratory says when a trigger happens to an order. A sample
	// id, tracking and results come with the triggers that bring them. Expected are the
	// results that each marker brings.
	Report(o *Order, on Trigger, at time.Time, flags SimulationFlags, expected map[int][]catalogue.ExpectedResult) Message
}
