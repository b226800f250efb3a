package webhook

import (
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// State is the state of a delivery of one message to one endpoint.
type State string

const (
	// Pending means that no attempt was started.
	Pending State = "pending"
	// Sending means that a worker has claimed the delivery.
	Sending State = "sending"
	// Retrying means that an attempt failed and another one is due.
	Retrying State = "waiting"
	// Succeeded means that the receiver accepted the message.
	Succeeded State = "succeeded"
	// Failed means that the delivery was given up. Only a replay sends the message again.
	Failed State = "failed"
	// Cancelled means that sending is no longer useful. The Reason states why.
	Cancelled State = "cancelled"
)

// Final reports whether there is no further attempt.
func (s State) Final() bool { return s == Succeeded || s == Failed || s == Cancelled }

// Reason is why a delivery ended without success, or why an attempt was not counted.
type Reason string

const (
	// ReasonExhausted: the last attempt of the schedule failed.
	ReasonExhausted Reason = "exhausted"
	// ReasonExpired: the message was too old.
	ReasonExpired Reason = "expired"
	// ReasonBlocked: the delivery held up the later ones of its key for longer than allowed.
	ReasonBlocked Reason = "blocked"
	// ReasonPoison: the delivery was started repeatedly without an outcome, for example because each start crashed.
	ReasonPoison Reason = "poison"
	// ReasonSuperseded: a newer event of the same key replaced the message.
	ReasonSuperseded Reason = "superseded"
	// ReasonDisabled: the endpoint was disabled.
	ReasonDisabled Reason = "disabled"
	// ReasonDeleted: the endpoint was deleted.
	ReasonDeleted Reason = "deleted"
	// ReasonUnwanted: the team has disabled events of this type, or the kind of endpoint.
	ReasonUnwanted Reason = "unwanted"
	// ReasonLeaseLost: another process had claimed the delivery, so the outcome of the attempt is only logged.
	ReasonLeaseLost Reason = "lease_lost"
)

// Trigger is the cause of a delivery.
type Trigger string

// Triggers of deliveries.
const (
	TriggerEvent   Trigger = "event"   // the message was routed after its event was written
	TriggerRetry   Trigger = "retry"   // [Service.Retry] resent the message
	TriggerRecover Trigger = "recover" // [Service.Recover] resent all lost messages since a time
)

// DeliveryID is the id of a delivery in its store.
type DeliveryID int64

// Lease is the exclusive right of a process to send a delivery until a time. It ends earlier if another process
// claims the delivery. Token distinguishes leases of one delivery.
type Lease struct {
	Team     healthlab.TeamID
	Delivery DeliveryID
	Token    int64
}

// Delivery is one claimed message to one endpoint.
type Delivery struct {
	Lease
	Endpoint EndpointID
	Revision int64 // revision of the endpoint at the claim; 0 if it is not known
	Event    uuid.UUID
	Type     string
	Key      string
	Seq      int64
	At       time.Time // when the event happened
	Trace    string    // traceparent of the change that caused the event; may be empty
	Body     []byte    // the stored bytes of the message; not to be changed
	Trigger  Trigger

	Attempts      int       // finished attempts of this delivery
	Starts        int       // claims since the last outcome, including this one
	QueuedAt      time.Time // time at which the delivery entered its lane (its queue), by the store's clock
	FirstFailedAt time.Time // zero if no attempt has failed
	Superseded    bool      // a newer version of the same object waits behind the delivery
	Blocking      bool      // another delivery waits behind this one
}

// LogValue contains the ids of the delivery, and not the body or the key.
func (d Delivery) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int64("delivery", int64(d.Delivery)),
		slog.String("endpoint", d.Endpoint.String()),
		slog.String("event", d.Event.String()),
		slog.String("type", d.Type),
		slog.Int("attempts", d.Attempts),
	)
}

// Attempt is one log entry: one request, or one decision not to send.
type Attempt struct {
	At       time.Time // when it ended, by the store's clock
	Endpoint EndpointID
	Event    uuid.UUID
	Type     string
	Delivery DeliveryID
	N        int // number of the attempt, from 1; 0 for a delivery that ended before any attempt
	Trigger  Trigger
	Status   int   // 0 if no status was received
	Class    Class // empty if nothing was sent
	Duration time.Duration
	State    State // state of the delivery after the attempt
	Reason   Reason
	// Head is the head of the receiver's response: the status line and the header fields, one per line, at most
	// 2 KiB, without values that look like credentials. It is nil without a response.
	Head     []byte
	Response []byte // the start of the response body, if the host keeps it
}

// Outcome is the result of sending a claimed delivery.
type Outcome struct {
	// Delivery is the claimed delivery; its body is ignored.
	Delivery Delivery
	// State is Succeeded, Retrying, Failed or Cancelled.
	State  State
	Reason Reason
	// Delay is when a Retrying delivery is due again, from the time of recording by the store's clock.
	Delay time.Duration
	// Quiet is how long no other delivery of the lane (the queue) starts, after an attempt that the receiver
	// may still be processing.
	Quiet time.Duration
	// Sent reports whether a request was made. If not, the outcome is a decision not to send.
	Sent     bool
	Status   int
	Class    Class
	Duration time.Duration
	Head     []byte // status line and header fields, as in Attempt
	Response []byte
	// Events are written in the transaction that records the outcome, if the claim of the delivery is still valid.
	Events []healthlab.Event
}

// Backlog has the numbers of undelivered events and deliveries, for metrics and for stopping a program.
type Backlog struct {
	// Unrouted is the number of events without deliveries yet, and Unfinished the number of unfinished
	// deliveries.
	Unrouted, Unfinished int
	// Oldest is the age of the oldest undelivered event or delivery; zero if there are none.
	Oldest time.Duration
}
