package orders

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// Record is a stored order: the published fields, and internal ones.
type Record struct {
	Order
	// Revision grows by one with every write, from 1. The Store sets it.
	Revision int64
	// LabAccountID is the lab account of the order; null for a lab without accounts.
	LabAccountID *catalogue.LabAccountID
	// LabAccountNumber is the lab's own number of that account.
	LabAccountNumber string
	// Comment is the comment on the requisition: the order's notes and the lab account's default notes.
	Comment string
	// Scheduled is true if the order was created with a date of activation. It stays true when the date is
	// cleared.
	Scheduled bool
	// PhysicianInput is the team's own physician, as submitted.
	PhysicianInput *people.PhysicianInput
	// HealthInsurance is the data of the patient's insurance card, as submitted.
	HealthInsurance *people.HealthInsuranceInput
	Consents        []people.Consent
	AOEAnswers      []catalogue.AOEAnswer
	// CreatorMemberID is the team member who placed the order, according to the team.
	CreatorMemberID *uuid.UUID
	// Lab is the state of the submission to the lab.
	Lab LabSubmission
	// Messages are the ids of the received lab messages, oldest first, so that a repeated message is ignored.
	Messages []string
	// Results are the reported results; nil before the first report, and after the lab rejected the sample.
	Results *labresult.Report
	// Attached has the results that persons attached to the order, which are also in Results; nil if there are none.
	Attached *AttachedResults
	// Awaited are the ids of the ordered markers of which the laboratory's latest report has no final result; nil if it
	// does not say, or if the report is final.
	Awaited []int
	// ReportedPatient is the patient of Results, as the lab reported it; nil if the lab reported none.
	ReportedPatient *ReportedPatient
	// ReportedAt is the time of the first report; zero before it.
	ReportedAt time.Time
	// LatestReportAt is the time of the report of Results; zero before the first one.
	LatestReportAt time.Time
	// Files are the ids of the stored reports of the laboratory, oldest first. ReportFile is the id of the report
	// of the present Results. Both are empty for none.
	Files      []string
	ReportFile string
	// Notice lists the tests that the patient's insurance will probably not pay; nil for none.
	Notice *CoverageNotice
	// CriticalSent is true if a message to the team about every critical result in Results is planned or was sent.
	CriticalSent bool
	// Visits are the appointments of the order, oldest first. At most one is active.
	Visits []Visit
	// VisitWork is the time of the next background work on the appointments.
	VisitWork Work
	// ReplacedBy is an order for another person that replaced this one, in a transaction of its own; zero for
	// none.
	ReplacedBy OrderID
	// SMSEnabled is true if the patient of this order may get SMS; nil means that the team's setting decides.
	SMSEnabled *bool
	// Notifications is the state of the planned messages and of the critical result alarm.
	Notifications Notifications
	// Simulation is the running simulation; nil for none. SimulationWork is the time of its next step.
	Simulation     *Simulation
	SimulationWork Work
	// UserDeleted is true if the same store has the order's user, who is deleted. It is not stored; the store
	// sets it on reads.
	UserDeleted bool `json:"-"`
	// StoreTime is the store's clock while a [Change] or an exchange.AssignChange runs, in UTC; zero otherwise. The
	// leases that a change reads or writes are by this clock. It is not stored.
	StoreTime time.Time `json:"-"`
}

// AttachedResults are results that persons attached to an order, because the laboratory had not reported them for it.
// The laboratory's reports of the order do not have them, so the service adds them to each. Printing or logging it shows
// nothing.
type AttachedResults struct {
	healthlab.Private

	// Report has the results that no later report of the laboratory has replaced, with their samples.
	Report labresult.Report
	// Final are the ids of the ordered markers whose results in Report are final.
	Final []int
	// Lab is the laboratory's latest report of the order, without Report; nil before the first.
	Lab *labresult.Report
}

// LabSubmission is the state of an order's submission to a laboratory.
type LabSubmission struct {
	// Due is the time of the next call to the lab; zero for none. [Store.Claim] finds orders by it.
	Due time.Time
	// Lease is the time, on the store's clock, until which the process that claimed the order may be calling
	// the lab; zero if none is.
	Lease time.Time
	// Attempts is the number of calls that were started since the last successful one.
	Attempts int
	// Started is true if any call was started, so that the lab may know the order, whatever the result of the
	// call.
	Started bool
	// Kit, Requisition and Cancel are true once the lab has accepted the respective call.
	Kit, Requisition, Cancel bool
}

// Change edits a record and returns the events about the edit. It may run more than once, so it must be pure
// apart from the record: no I/O, no call of a Store, no clock. After an error nothing is written.
type Change func(*Record) ([]healthlab.Event, error)

// PairChange is a [Change] of two orders of one transaction.
type PairChange func(parent, child *Record) ([]healthlab.Event, error)

// Store stores orders and the events about them.
//
// All methods are safe for concurrent use and atomic: either everything a call writes is there, or nothing is.
// Text that contains NUL, or is not UTF-8, is refused with [healthlab.Invalid]. Times are kept in UTC to the
// microsecond. The caller may edit returned values. A Store checks no permissions; it only limits a team to its
// own orders. Once ctx has ended, a call returns the context's error and writes nothing.
//
// If the same store has the users, erasing a user also removes the user's orders, and the idempotency keys of
// the requests that placed them; an order of another user in the same transaction stays. Nothing else removes
// an order. While a user is deleted, the user's orders are in no list and in no transaction that is read for
// another order, and no notification of them is claimed. All other reads return them with [Record.UserDeleted]
// set, because laboratories report about them until they are erased, and an undone deletion makes them visible
// again. [Service] hides them from callers.
//
// Leases use the store's own clock; due times use the caller's. A caller whose clock is fast or slow claims
// early or late, and never what another process has leased.
//
// Four fields of an order are computed at each read and not stored:
//
// - OrderTransaction has all orders with its id in their present state ([NewTransaction] over [Order.Member]).
// Of the written value, only the id and the parent of the order itself are stored.
//
// - Markers of the LabTest without IsOrderable can be ordered ([catalogue.LabTest.Fill]).
//
// - CriticalHistory is the history of its critical results (package critical).
//
// - NextEventID, whenever a Change runs, is greater than the ids of the order's events. No other order of the
// team gets it or the 99 ids after it.
type Store interface {
	// Insert adds the order that change makes of r, with its events and revision 1. NotFound if the store has
	// the team's users, and the order's user is unknown or deleted; so an erasure leaves no order, whichever
	// comes first. Conflict if an order with the id, or any order with the sample id, exists; a
	// [*ReservedError] if another order of the team has one of its [Record.Reservations]. Invalid if r has no
	// team or no id.
	Insert(ctx context.Context, r Record, change Change) (Record, error)

	// InsertAfter adds child to the transaction of an order of the same team, as change makes it, and writes
	// the changed parent: both or neither. The store sets the child's transaction and parent before change
	// runs. change may give the child a new transaction of its own instead. Errors as Insert and Update.
	InsertAfter(ctx context.Context, parent OrderID, child Record, change PairChange) (Record, Record, error)

	// Get returns one order. NotFound if the team has no such order, whether or not
	// another team has.
	Get(ctx context.Context, team healthlab.TeamID, id OrderID) (Record, error)

	// Update loads the order, lets change edit it, and writes it back with the returned events and the next
	// revision. A changed id or team is Invalid. Conflict if another order has the new sample id; a
	// [*ReservedError] if another order of the team has one of its [Record.Reservations]. An error from change
	// is returned unchanged (errors.Is works) and nothing is written. Concurrent updates of the orders of one
	// transaction behave as if they ran one after another. NotFound as in Get; Unavailable if the store gave up
	// under contention.
	Update(ctx context.Context, team healthlab.TeamID, id OrderID, change Change) (Record, error)

	// List returns one page in the sort order of the query, then by id ascending. A page after the last one has
	// no orders and the true total. In a restored backup, orders of persons whose key was deleted are missing
	// in pages, but counted in the total.
	List(ctx context.Context, q Query) (Page, error)

	// CountByStatus returns the number of a team's orders in each latest status; a status without orders is
	// missing. It counts the orders that List returns without filters.
	CountByStatus(ctx context.Context, team healthlab.TeamID) (map[LowLevel]int, error)

	// OfUser returns the ids of all orders of a user, sorted, whether or not the user is deleted.
	OfUser(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]OrderID, error)

	// FindSample returns the team's order with this sample id, compared byte for
	// byte. NotFound if there is none; Invalid for text that is refused.
	FindSample(ctx context.Context, team healthlab.TeamID, sampleID string) (Record, error)

	// Claim claims up to n orders of any team whose Lab.Due is set and not after now, and whose Lab.Lease has
	// ended: the longest due first. It sets their Lab.Lease to the end of the lease, adds one to their
	// Lab.Attempts, sets Lab.Started, and returns the changed orders, without a new revision or event. Two
	// concurrent claims never return the same order. No claim returns orders of persons whose key was deleted;
	// such an order is skipped until its lease ends.
	Claim(ctx context.Context, n int, now time.Time, lease time.Duration) ([]Record, error)

	// ClaimNotifications is Claim for Notifications.Due and Notifications.Lease; it changes
	// nothing else.
	ClaimNotifications(ctx context.Context, n int, now time.Time, lease time.Duration) ([]Record, error)

	// ClaimSimulations is Claim for SimulationWork; it changes nothing else.
	ClaimSimulations(ctx context.Context, n int, now time.Time, lease time.Duration) ([]Record, error)

	// ClaimFeed claims the feed of a lab's messages for the time of a lease. It returns the cursor at which
	// reading continues, which is empty at first, and the end of the lease; a zero end means that another
	// process has the lease.
	ClaimFeed(ctx context.Context, lab string, lease time.Duration) (cursor string, until time.Time, err error)

	// MoveFeed stores the cursor and ends the lease, if the claim that ends at until is still the latest;
	// otherwise it returns Precondition, and stores nothing.
	MoveFeed(ctx context.Context, lab string, until time.Time, cursor string) error
}

// VisitStore is a [Store] that finds the orders whose appointments are due for background work. The constructor
// of a Service checks whether its Store implements it; without it there are no appointments.
type VisitStore interface {
	// ClaimVisits claims up to n orders of any team whose VisitWork.Due is set and not after now, and whose
	// VisitWork.Lease has ended: the longest due first. It sets their VisitWork.Lease to the end of the lease,
	// and returns the changed orders, without a new revision or event. Two concurrent claims never return the
	// same order. Once ctx has ended, it returns the context's error and claims nothing.
	ClaimVisits(ctx context.Context, n int, now time.Time, lease time.Duration) ([]Record, error)
}

// Page is one page of a list.
type Page struct {
	Orders []Order
	// Total is the number of all matches.
	Total int
}

// ReachedAt returns the time at which the order last reached a status; zero if it never did.
func (r *Record) ReachedAt(l LowLevel) time.Time {
	for _, e := range slices.Backward(r.Events) {
		if e.Status.LowLevel() == l {
			return e.CreatedAt.Time
		}
	}
	return time.Time{}
}

// HasResults reports whether the order has results of a known patient.
func (r *Record) HasResults() bool { return r.Results != nil && r.Facts().PatientKnown() }

// Notifications is the state of an order's messages to the patient and the team.
type Notifications struct {
	// Due is the time of the next message; zero means none. [Store.ClaimNotifications] finds orders by it.
	Due time.Time
	// Lease is the time, on the store's clock, until which a process may be sending the message; zero if none
	// is.
	Lease time.Time
	// Notify is true if the patient gets messages.
	Notify bool
	// Alarmed is the time at which a critical result was found, about which the team may get an e-mail; zero
	// for never.
	Alarmed time.Time
	// Sent are the ids of the messages that were sent or are too late to send.
	Sent []uuid.UUID `json:"Told"`
}

// Simulation is a simulation with a delay between its steps.
type Simulation struct {
	Final Status
	Flags SimulationFlags
	// Delay is the time between two steps.
	Delay time.Duration
	Next  time.Time
}
