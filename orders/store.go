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

// Record is an order as it is kept: what is published, and what is not.
type Record struct {
	Order
	// Revision grows by one with every write; the first is 1. The Store sets it.
	Revision int64
	// LabAccountID is the account that the order uses; null for a lab without
	// accounts.
	LabAccountID *catalogue.LabAccountID
	// LabAccountNumber is the lab's own number of that account.
	LabAccountNumber string
	// Comment is what the requisition says: the order's comment and the account's.
	Comment string
	// Scheduled: the order was created with a date of activation. It stays true when
	// the date is cleared.
	Scheduled bool
	// PhysicianInput is the team's own physician, as submitted.
	PhysicianInput *people.PhysicianInput
	// HealthInsurance is what the patient's card said, as submitted.
	HealthInsurance *people.HealthInsuranceInput
	Consents        []people.Consent
	AOEAnswers      []catalogue.AOEAnswer
	// CreatorMemberID is who placed it, as the team says.
	CreatorMemberID *uuid.UUID
	// Lab is how far the lab has been told.
	Lab LabSubmission
	// Messages are the ids of the lab's messages that were taken in, oldest first,
	// so that one that comes again changes nothing.
	Messages []string
	// Results is what the lab reported; nil before the first report, and after the lab
	// could not use the sample.
	Results *labresult.Report
	// ReportedPatient is whom Results are about, as the lab wrote it; nil if it wrote nothing.
	ReportedPatient *ReportedPatient
	// ReportedAt is when the first report came; zero before it.
	ReportedAt time.Time
	// LatestReportAt is when the report of Results came; zero before the first one.
	LatestReportAt time.Time
	// Files are the laboratory's own reports that are kept, by id, oldest first;
	// ReportFile is the one that says what Results say. Empty for none.
	Files      []string
	ReportFile string
	// Notice is what the patient's insurance will probably not pay; nil for nothing.
	Notice *CoverageNotice
	// CriticalSent: a message to the team is planned about every critical result in Results.
	CriticalSent bool
	// Visits are the appointments of the order, oldest first. At most one is active.
	Visits []Visit
	// VisitWork is when something is to be done about them.
	VisitWork Work
	// ReplacedBy is an order for another person that took this one's place, in a
	// transaction of its own; zero for none.
	ReplacedBy OrderID
	// SMSEnabled is what was said of this order; nil means as the team's.
	SMSEnabled *bool
	// Notifications is the state of the planned messages and of the critical result alarm.
	Notifications Notifications
	// Simulation is under way; nil for none. SimulationWork is when its next step is to happen.
	Simulation     *Simulation
	SimulationWork Work
	// UserDeleted: the same store keeps the order's user, who is deleted. It is not kept;
	// the store sets it when it reads.
	UserDeleted bool `json:"-"`
	// StoreTime is the store's clock while a [Change] or an [AssignChange] runs, in UTC; zero
	// otherwise. Leases that a change reads or writes count from it. It is not kept.
	StoreTime time.Time `json:"-"`
}

// LabSubmission is how far a laboratory has been told of an order, and when to go on.
type LabSubmission struct {
	// Due is the time of the next call to the lab; zero for none. [Store.Claim]
	// looks for it.
	Due time.Time
	// Lease is until when, on the store's clock, a process that claimed the order may be
	// talking to the lab; zero if none is.
	Lease time.Time
	// Attempts counts the calls that were started since the last successful one.
	Attempts int
	// Started: some attempt was made, so the lab may know of the order, whatever
	// became of the attempt.
	Started bool
	// Kit, Requisition and Cancel are true once the lab took each of them.
	Kit, Requisition, Cancel bool
}

// Change edits a record and returns the events that explain the edit. It may run more
// than once, so it is pure apart from the record: no I/O, no call of a Store, no
// reading of the clock. An error leaves everything as it was.
type Change func(*Record) ([]healthlab.Event, error)

// PairChange is a [Change] of two orders of one transaction.
type PairChange func(parent, child *Record) ([]healthlab.Event, error)

// Store keeps orders and the events that explain them.
//
// All methods are safe for concurrent use and atomic: either everything a call writes
// is there, or nothing is. Text that contains NUL, or is not UTF-8, is refused with
// [healthlab.Invalid]. Times are kept in UTC to the microsecond. What a method hands
// out is the caller's to edit. A Store never decides who may do what; it only sees to
// it that a team reaches nothing but its own orders. Once ctx has ended, a call
// returns the context's error and writes nothing.
//
// Where the same store keeps users, erasing one removes the user's orders as well, and
// what Keys knows of the requests that placed them; an order of another user in the
// same transaction stays. Nothing else removes an order. While the user is deleted, the
// user's orders are in no list and in no transaction that is read for another order, no
// notification of them is claimed, and everything else returns them with
// [Record.UserDeleted] set: laboratories report on them until they are erased, and an
// undone deletion brings them back as they are then. [Service] hides them from callers.
//
// Leases run on the store's own clock. What is due goes by the caller's: a caller whose
// clock is fast or slow claims early or late, and never what another process has.
//
// Four things of an order are drawn when it is read, not kept with it:
//
//   - OrderTransaction shows all orders with its id as they are now ([NewTransaction]
//     over [Order.Member]); of the written value, only the id and the parent of the
//     order itself count.
//   - Markers of the LabTest that do not say so can be ordered ([catalogue.LabTest.Fill]).
//   - CriticalHistory is that of its critical results (package critical).
//   - NextEventID, whenever a Change runs, is greater than the ids of the order's events. No other order
//     of the team gets it or the 99 ids behind it.
type Store interface {
	// Insert adds the order that change makes of r, with its events and revision 1.
	// NotFound if the store keeps the team's users, and the order's is none of them,
	// or was deleted; so an erasure leaves no order, whichever comes first.
	// Conflict if the order's id is taken, or its sample id is taken by any order; a
	// [*ReservedError] if another order of the team has one of its [Record.Reservations].
	// Invalid if r names no team or no id.
	Insert(ctx context.Context, r Record, change Change) (Record, error)

	// InsertAfter adds child to the transaction of an order of the same team, as
	// change makes it, and writes what change made of the parent: both or neither.
	// The child's transaction need not be set; it, and the child's parent, are when
	// change runs. change may give the child a new transaction of its own instead.
	// Errors as Insert and Update.
	InsertAfter(ctx context.Context, parent OrderID, child Record, change PairChange) (Record, Record, error)

	// Get returns one order. NotFound if the team has no such order, whether or not
	// another team has.
	Get(ctx context.Context, team healthlab.TeamID, id OrderID) (Record, error)

	// Update loads the order, lets change edit it, and writes it back with the
	// returned events and the next revision. Neither id nor team can be changed:
	// Invalid. Conflict if another order has the new sample id; a [*ReservedError] if
	// another order of the team has one of its [Record.Reservations]. An error from change
	// is returned unchanged (errors.Is works) and nothing is written. Concurrent
	// updates of the orders of one transaction behave as if they ran one after
	// another. NotFound as in Get; Unavailable if the store gave up under contention.
	Update(ctx context.Context, team healthlab.TeamID, id OrderID, change Change) (Record, error)

	// List returns one page in the order that the query asks for; ties by id
	// ascending. A page past the end has no orders and the true total. In a restored
	// backup, orders of persons whose key was deleted are left out of pages; the total has them.
	List(ctx context.Context, q Query) (Page, error)

	// CountByStatus returns the number of a team's orders in each latest status; a status
	// without orders is absent. It counts the orders that List returns without filters.
	CountByStatus(ctx context.Context, team healthlab.TeamID) (map[LowLevel]int, error)

	// OfUser returns the ids of all orders of a user, by id, deleted user or not.
	OfUser(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]OrderID, error)

	// FindSample returns the team's order with this sample id, compared byte for
	// byte. NotFound if there is none; Invalid for text that is refused.
	FindSample(ctx context.Context, team healthlab.TeamID, sampleID string) (Record, error)

	// Claim takes up to n orders of any team whose Lab.Due is set and not after now, and
	// whose Lab.Lease has ended: the longest due first. It sets their Lab.Lease to the end
	// of the lease, adds one to their Lab.Attempts, sets Lab.Started, and returns them so;
	// that is no new revision and no event. Two claims that run at the same time never
	// return the same order. Orders of persons whose key was deleted are not returned by any
	// claim; each is passed over until its lease ends.
	Claim(ctx context.Context, n int, now time.Time, lease time.Duration) ([]Record, error)

	// ClaimNotifications is Claim for Notifications.Due and Notifications.Lease; it changes
	// nothing else.
	ClaimNotifications(ctx context.Context, n int, now time.Time, lease time.Duration) ([]Record, error)

	// ClaimSimulations is Claim for SimulationWork; it changes nothing else.
	ClaimSimulations(ctx context.Context, n int, now time.Time, lease time.Duration) ([]Record, error)

	// ClaimFeed takes the feed of a lab's messages for the caller alone for the time of a
	// lease. It returns the cursor where reading continues, which is empty at the very
	// start, and the end of the lease; a zero end means that another process has the feed.
	ClaimFeed(ctx context.Context, lab string, lease time.Duration) (cursor string, until time.Time, err error)

	// MoveFeed keeps the cursor and gives the feed back, if the claim that ends at
	// until is still the latest; Precondition if it is not, and nothing is kept.
	MoveFeed(ctx context.Context, lab string, until time.Time, cursor string) error
}

// VisitStore is a [Store] that finds the orders whose appointments need something. A
// Service looks for it once, in its constructor; without it there are no appointments.
type VisitStore interface {
	// ClaimVisits takes up to n orders of any team whose VisitWork.Due is set and not
	// after now, and whose VisitWork.Lease has ended: the longest due first. It sets their
	// VisitWork.Lease to the end of the lease, and returns them so; that is no new revision
	// and no event. Two claims that run at the same time never return the same order. Once
	// ctx has ended, it returns the context's error and claims nothing.
	ClaimVisits(ctx context.Context, n int, now time.Time, lease time.Duration) ([]Record, error)
}

// Page is one page of a list.
type Page struct {
	Orders []Order
	// Total counts all matches.
	Total int
}

// ReachedAt returns when the order reached a status for the last time; zero if it never did.
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

// Notifications are the messages that are planned for an order.
type Notifications struct {
	// Due is when the next of them is to be sent; zero means none is. [Store.ClaimNotifications]
	// looks for it.
	Due time.Time
	// Lease is until when, on the store's clock, a process may be doing it; zero if none is.
	Lease time.Time
	// Notify: the patient gets messages.
	Notify bool
	// Alarmed is when a critical result was found, of which the team may get an e-mail;
	// zero for never.
	Alarmed time.Time
	// Sent are the ids of the messages that were sent or are too late to send.
	Sent []uuid.UUID `json:"Told"`
}

// Simulation is a walk of an order that takes its time.
type Simulation struct {
	Final Status
	Flags SimulationFlags
	// Delay is between two steps.
	Delay time.Duration
	Next  time.Time
}
