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
