package orders

import (
	"context"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// Settings are the settings of a team. In the zero value every feature is off.
type Settings struct {
	// PartialWebhooks sends an event for every partial result. Default: only partial results that correct an earlier
	// result cause an event.
	PartialWebhooks bool
	// Redraws allows a second draw for the patient if the lab lost a result.
	Redraws bool
	// OnSiteCollection allows the team to draw samples itself.
	OnSiteCollection bool
	// OrderImport allows importing orders that were placed elsewhere.
	OrderImport bool
	// Minors allows patients under 18, with a medical proxy.
	Minors bool
	// InsuranceRead allows reading insurance records.
	InsuranceRead bool
	// OwnPayors allows payors that only the team sees.
	OwnPayors bool
	// CompendiumTools allows searching the compendium.
	CompendiumTools bool
	// SMSOff and EmailOff disable messages to patients by that channel. Reminders enables reminders.
	SMSOff, EmailOff, Reminders bool
	// CriticalEmail is the address for messages about critical results; empty for none.
	CriticalEmail string
	// Paper is the paper size of documents. Default: letter.
	Paper Paper
	// UnmatchedResults lets the team decide about results that match no order with certainty. Default: the operators of
	// the service decide (exchange.Service.Operations).
	UnmatchedResults bool
	// UnmatchedTestRuns allows test runs of the review queue, in a sandbox.
	UnmatchedTestRuns bool
	// PSCScheduling allows appointments at patient service centers.
	PSCScheduling bool
	// PreRequisitionBooking allows booking an appointment before the lab has accepted the order.
	PreRequisitionBooking bool
	// PatientManagedPSC allows providers whose appointments only the patient can change.
	PatientManagedPSC bool
	// CachedAvailability allows answers about free slots that are some minutes old.
	CachedAvailability bool
	// BookingIdempotency allows an idempotency key for bookings at centers.
	BookingIdempotency bool
	// AsyncConfirmation allows bookings at centers that are confirmed later.
	AsyncConfirmation bool
	// RequiredConsents are the consents that a patient must have given when the service's own physicians order.
	RequiredConsents []people.ConsentType
}

// Paper is the size of a document's pages.
type Paper string

// Paper sizes. The zero value of a Paper is Letter.
const (
	Letter Paper = "letter"
	A4     Paper = "a4"
)

// CoverageNotice lists the tests of an order that the patient's insurance will probably not pay, as the
// laboratory reports them. Printing or logging it shows nothing.
type CoverageNotice struct {
	healthlab.Private

	Items []CoverageItem
	// Note is a note of the laboratory; empty for none.
	Note string
}

// CoverageItem is one test or service that is probably not covered.
type CoverageItem struct {
	healthlab.Private

	// Name is the name of the test or service.
	Name string
	// Reason is the reason for which it is probably not covered.
	Reason string
	// CostMinor is the estimated cost in cents.
	CostMinor int64
}

// BlobStore stores the files of orders. They are health data: an implementation must encrypt them. Put and Get
// receive the user of the file: if the host has a key for each person, the file is encrypted with that user's
// key and cannot be decrypted for another user. Once the key is deleted, Get returns [healthlab.NotFound].
//
// A key consists of letters, digits, hyphens, underscores and single slashes between them, at most 512 bytes;
// others are [healthlab.Invalid]. Put stores the whole content in place of the old one, or nothing after an
// error. Put and Delete may be called again after any error. Get of a missing file is [healthlab.NotFound];
// Delete of one is no error. Once ctx has ended, a call returns the context's error and changes nothing.
// Implementations are safe for concurrent use.
type BlobStore interface {
	Put(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string, content io.Reader) error
	// Get returns the content; the caller closes it.
	Get(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string) (io.ReadCloser, error)
	Delete(ctx context.Context, key string) error
}

// Channel is the channel of a message to a patient.
type Channel string

// Channels of messages.
const (
	SMS   Channel = "sms"
	Email Channel = "email"
)

// Moment is the occasion of a message: a low-level status of the order, or a reminder.
type Moment string

// Reminders.
const (
	// RemindKit: the patient has the kit and has not sent the sample.
	RemindKit Moment = "kit_reminder"
	// RemindVisit: the patient can go to the lab and has not booked.
	RemindVisit Moment = "visit_reminder"
	// RemindAppointment: the patient's appointment is near.
	RemindAppointment Moment = "appointment_reminder"
)

// AlertTeam is the occasion of a message to the team at [Settings].CriticalEmail: a result is critical.
const AlertTeam Moment = "critical_result"

// PatientMessage is a message to a patient, or to the patient's team. Printing or logging it shows nothing.
type PatientMessage struct {
	healthlab.Private

	// ID is the same in every call with the message.
	ID      uuid.UUID
	Team    healthlab.TeamID
	Order   OrderID
	User    healthlab.UserID
	Channel Channel
	// To is the phone number or the e-mail address.
	To     string
	Moment Moment
	Method catalogue.CollectionMethod
	// FirstName is the first name of the patient; it may be empty, and is empty in messages to the team.
	FirstName string
	// At is the time of the occasion; for a reminder of an appointment, the start of the appointment.
	At time.Time
}

// Messenger sends messages to patients and teams.
//
// Send may be called again with the same message after any error or timeout; an implementation recognizes its
// ID and sends it once. Errors: Invalid (the address is invalid: no retry); after any other error it is called
// again later. An error contains neither the address nor the person. Once ctx has ended, Send returns its error
// and sends nothing. Implementations must be safe for concurrent use.
type Messenger interface {
	Send(ctx context.Context, m PatientMessage) error
}

// SimulationFlags control the results of a simulated lab.
type SimulationFlags struct {
	// Interpretation is the worst interpretation of the generated results; normal if empty.
	Interpretation labresult.Interpretation `json:"interpretation"`
	// ResultTypes are the types of the results: the first result has the first type, and after the last type follows
	// the first. If empty, a marker with a known LOINC code gets a value with the marker's unit and reference interval,
	// or a qualitative result; the other markers get a numeric, a comment and a range result alternately.
	ResultTypes []labresult.Type `json:"result_types"`
	// HasMissingResults, if true, generates a report in which one of the expected results is missing.
	HasMissingResults *bool `json:"has_missing_results"`
}
