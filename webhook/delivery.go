package webhook

import (
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// State is where a delivery, one message to one endpoint, stands.
type State string

const (
	// Pending means that it was never started.
	Pending State = "pending"
	// Sending means that a worker holds it.
	Sending State = "sending"
	// Retrying means that an attempt failed and another one is due.
	Retrying State = "waiting"
	// Succeeded means that the receiver accepted it.
	Succeeded State = "succeeded"
	// Failed means that nothing more is tried, unless a replay is requested.
	Failed State = "failed"
	// Cancelled means that it was not worth sending any more; the reason says why.
	Cancelled State = "cancelled"
)

// Final reports whether nothing more will be tried.
func (s State) Final() bool { return s == Succeeded || s == Failed || s == Cancelled }

// Reason says why a delivery ended otherwise than by success, or why an attempt
// changed nothing.
type Reason string

const (
	// ReasonExhausted: the last attempt of the schedule failed.
	ReasonExhausted Reason = "exhausted"
	// ReasonExpired: it was too old to be worth sending.
	ReasonExpired Reason = "expired"
	// ReasonBlocked: it held up others of its lane for longer than allowed.
	ReasonBlocked Reason = "blocked"
	// ReasonPoison: it was started again and again without an outcome.
	ReasonPoison Reason = "poison"
	// ReasonSuperseded: a newer event of its key took its place.
	ReasonSuperseded Reason = "superseded"
	// ReasonDisabled: the endpoint was disabled.
	ReasonDisabled Reason = "disabled"
	// ReasonDeleted: the endpoint was deleted.
	ReasonDeleted Reason = "deleted"
	// ReasonUnwanted: the team does not want events of this type, or none there.
	ReasonUnwanted Reason = "unwanted"
	// ReasonLeaseLost: the attempt's lease had gone to another process, so its
	// outcome is in the log and nowhere else.
	ReasonLeaseLost Reason = "lease_lost"
)

// Trigger says what made a delivery.
type Trigger string

// The triggers.
const (
	TriggerEvent   Trigger = "event"   // the event itself
	TriggerRetry   Trigger = "retry"   // a caller asked for this one message
	TriggerRecover Trigger = "recover" // a caller asked for all since a time
)

// DeliveryID names a delivery within its store.
type DeliveryID int64

// Lease is the right to deliver. It ends at its time, and before that when a process
// else gets the delivery; Token tells two leases of one delivery apart.
type Lease struct {
	Team     healthlab.TeamID
	Delivery DeliveryID
	Token    int64
}

// Delivery is one message to one endpoint, as a claim hands it out.
type Delivery struct {
	Lease
	Endpoint EndpointID
	Event    uuid.UUID
	Type     string
	Key      string
	Seq      int64
	At       time.Time // when the event happened
	Trace    string    // of the event
	Body     []byte    // the stored bytes; not to be changed
	Trigger  Trigger

	Attempts      int       // finished ones, of this delivery
	Starts        int       // claims since the last outcome, this one included
	QueuedAt      time.Time // when it came into its lane, by the store's clock
	FirstFailedAt time.Time // zero if no attempt has failed
	Superseded    bool      // a newer version of its key waits behind it
	Blocking      bool      // something waits behind it
}

// LogValue shows which delivery it is, and nothing of the body or the key.
func (d Delivery) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int64("delivery", int64(d.Delivery)),
		slog.String("endpoint", d.Endpoint.String()),
		slog.String("event", d.Event.String()),
		slog.String("type", d.Type),
		slog.Int("attempts", d.Attempts),
	)
}

// Attempt is one line of the log: one request, or one decision not to send.
type Attempt struct {
	At       time.Time // when it ended, by the store's clock
	Endpoint EndpointID
	Event    uuid.UUID
	Type     string
	Delivery DeliveryID
	N        int // from 1; 0 for a delivery that ended before any attempt
	Trigger  Trigger
	Status   int   // 0 if there was none
	Class    Class // empty if nothing was sent
	Duration time.Duration
	State    State // of the delivery, after it
	Reason   Reason
	// Head is the head of the receiver's answer: the status line and the header fields, a
	// line each, at most 2 KiB, without the values of those that look like credentials. Nil
	// if there was no answer.
	Head     []byte
	Response []byte // the beginning of the body of the answer, if the host keeps it
}

// Outcome is what came of a claimed delivery.
type Outcome struct {
	// Delivery is what was claimed; its body is not looked at.
	Delivery Delivery
	// State is Succeeded, Retrying, Failed or Cancelled.
	State  State
	Reason Reason
	// Delay is when a Retrying delivery is due again, counted from the recording by
	// the store's clock.
	Delay time.Duration
	// Quiet is how long the lane starts nothing more, whatever it is; it matters
	// after an attempt that the receiver may still be working on.
	Quiet time.Duration
	// Sent reports whether an attempt was made; a decision not to send uses none.
	Sent     bool
	Status   int
	Class    Class
	Duration time.Duration
	Head     []byte // see Attempt
	Response []byte
	// Events are written in the same commit, if the lease still holds.
	Events []healthlab.Event
}

// Backlog is what a store still has to deliver, for metrics and for a program that stops.
type Backlog struct {
	// Unrouted are the events that are not handed to endpoints yet, and Unfinished the
	// deliveries that have not come to an end.
	Unrouted, Unfinished int
	// Oldest is the age of the oldest of them; zero if there are none.
	Oldest time.Duration
}
