package webhook

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// DispatcherStore is what a [Dispatcher] keeps its state in. A [Store] is one.
type DispatcherStore interface {
	Deliveries
	Endpoints
}

// ServiceStore is what a [Service] keeps its state in; it is a [DispatcherStore] too. A
// [Store] is one.
type ServiceStore interface {
	Deliveries
	Endpoints
	Log
}

// Outbox takes events that are not written together with a change: a host's own, or
// a test's. Stores of the domain packages write theirs with the change itself.
type Outbox interface {
	// Append writes the events, all or none, in the order given. It draws Seq for
	// each that has a key, and makes the body. Invalid if one cannot be rendered
	// (see Render) or has no id; Conflict if an id is taken, by another of these events too. A refused
	// call draws no Seq. No events are no error.
	Append(ctx context.Context, events []healthlab.Event) error
}

// Deliveries is the queue: events that were written and not yet routed, and the
// deliveries that are not finished. The store's own clock decides what is due; no
// method takes an instant from its caller, but for the bounds of a replay.
//
// Every method is atomic and safe for concurrent use, by several processes too.
// A method that returns an error has changed nothing, unless the error is about the
// connection, after which the outcome is unknown; every method may then be called again.
type Deliveries interface {
	// Route takes at most max written events, oldest first, and puts a delivery of
	// each into the lane (LaneOf) of every endpoint that wants it (Endpoint.Wants),
	// where Place says. modes holds the mode of each type; see ModeOf. It takes
	// nothing if there is nothing, or if another process is routing. Events of
	// one key are routed in the order of their Seq, in any process. What Place replaces
	// ends as Cancelled, superseded, in the log; an event that Place drops does too.
	Route(ctx context.Context, modes map[string]healthlab.Mode, max int) (Routed, error)

	// Due returns the endpoints for which Claim has something, in no order.
	Due(ctx context.Context) ([]EndpointID, error)

	// Claim hands out heads of lanes that are due and not leased, at most Max of
	// each endpoint named, the longest due first, and leases them. An endpoint that
	// is paused (Health.PausedUntil is later than now) yields nothing. One that is
	// on probation (Health.PauseStep is above 0) yields one delivery, that with the
	// fewest attempts, and none while another of its deliveries is leased. A token
	// is never used twice.
	Claim(ctx context.Context, c Claim) (Claimed, error)

	// RecordOutcomes records outcomes. An outcome whose lease holds (the token is the
	// delivery's; the time of the lease may have passed) is applied:
	//
	//   - a final state ends the delivery, and the next of the lane becomes its
	//     head, due at once;
	//   - Retrying counts the attempt, and makes it due after Delay; if a newer
	//     version of its key waits, it ends as Cancelled, superseded, instead;
	//   - Quiet keeps what is left in the lane from being claimed for so long;
	//   - Events are appended as Outbox.Append does.
	//
	// Each applied outcome is one line of the log. One whose lease is gone is a line
	// of the log with state Retrying and reason lease_lost, and changes nothing; the
	// same outcome a second time is not even that. Outcomes of one call do not
	// depend on each other.
	RecordOutcomes(ctx context.Context, outcomes []Outcome) (RecordedOutcomes, error)

	// Release gives leases back: the deliveries were not started, no attempt and no
	// start is counted, and they are due again after the delay given. Leases that
	// are gone are passed over.
	Release(ctx context.Context, back []Released) error

	// Replay puts messages that were routed before into lanes again.
	//
	// With Event set, it is that one message: NotFound if the team has no such
	// message or no such endpoint. By the mode of its type:
	//
	//   - Latest: Precondition if a newer event of its key that the endpoint
	//     matches exists, for that one would be overtaken; else it is sent again.
	//   - Ordered: it and every later event of its key that the endpoint matches
	//     are sent again, in order.
	//   - Independent: it is sent again.
	//
	// Precondition, too, if the endpoint is disabled or does not match the message,
	// or while one of the deliveries concerned is being sent. What waits is put at
	// its place in the new order, with attempts counted from the start.
	//
	// With Event zero, it recovers: of the messages written at or after Since and
	// before Until, and not before the endpoint was made, it takes those that ended as Failed or
	// Cancelled (but not superseded), and those that never had a delivery. Latest
	// sends the newest of its key, if that is one of them; Ordered rewinds its key
	// from the first of them; a delivery that is being sent stays as it is.
	// It looks at most Max messages, from After on, and says where to go on.
	Replay(ctx context.Context, r Replay) (Replayed, error)
}

// Routed says what was routed.
type Routed struct {
	Events int // how many were taken
	// Endpoints are those that one of them went to, each once, in no order: there may be
	// something to claim now.
	Endpoints []EndpointID
}

// Claim asks for work.
type Claim struct {
	Quotas []Quota
	Lease  time.Duration
}

// Quota is how many deliveries of one endpoint may be handed out.
type Quota struct {
	Endpoint EndpointID
	Max      int
}

// Claimed is work to do.
type Claimed struct {
	// At is the store's clock at the moment of the claim. What needs an instant
	// counts on from it, so that a worker whose own clock is wrong does no harm.
	// A claim without quotas says no more than this.
	At         time.Time
	Deliveries []Delivery
}

// RecordedOutcomes says what came of outcomes.
type RecordedOutcomes struct {
	// Locked were not recorded, because another transaction holds their rows: record them again
	// in a moment.
	Locked []Lease
	// Lost had lost their lease.
	Lost []Lease
}

// Released is a lease that is given back.
type Released struct {
	Lease Lease
	Delay time.Duration
}

// Replay asks for messages to be sent again.
type Replay struct {
	Team     healthlab.TeamID
	Endpoint EndpointID
	Modes    map[string]healthlab.Mode
	Event    uuid.UUID // one message; zero to recover
	Since    time.Time // when recovering
	Until    time.Time // when recovering: only messages written before; zero means all
	After    string    // when recovering: Replayed.Next of the page before
	Max      int       // when recovering: how many messages to look at; default 500
}

// Replayed says what a replay did.
type Replayed struct {
	// Queued is how many deliveries were put into lanes.
	Queued int
	// Next is where recovering goes on; empty if there is no more.
	Next string
}

// Endpoints keeps endpoints, with their secrets, headers and health.
//
// All methods are atomic and safe for concurrent use. A team reaches nothing but its
// own endpoints; those of others are NotFound. Values that go in or come out share
// no memory with what is stored. Times are kept in UTC to the microsecond.
type Endpoints interface {
	// Insert adds e with revision 1. Conflict if its id is taken; Exhausted if the
	// team has max endpoints already.
	Insert(ctx context.Context, e Endpoint, max int) error

	// Get returns one endpoint. NotFound if the team has none of this id.
	Get(ctx context.Context, team healthlab.TeamID, id EndpointID) (Endpoint, error)

	// Update loads the endpoint, lets change edit it, and writes it back with the
	// returned events and the next revision. An error of change is returned as it
	// is, and nothing is written. change may run more than once, so it must be pure.
	// Concurrent updates behave as if they ran one after another. ID, Team,
	// CreatedAt and Revision stay as they are, whatever change does to them.
	//
	// Two changes reach into the queue in the same write: when Disabled is set, the
	// endpoint's unfinished deliveries end as Cancelled, disabled, those that are
	// being sent too; when Health.PauseStep goes back to 0, all heads of its lanes
	// are due at once, but for the quiet time of their lane.
	Update(ctx context.Context, team healthlab.TeamID, id EndpointID,
		change func(*Endpoint) ([]healthlab.Event, error)) (Endpoint, error)

	// List returns one page of a team's endpoints, the newest first; ties by id,
	// descending. Invalid if the cursor is not one of this list.
	List(ctx context.Context, q EndpointQuery) (EndpointPage, error)

	// Delete removes the endpoint, its secrets and its headers; its unfinished
	// deliveries end as Cancelled, deleted. NotFound if the team has none of this id.
	Delete(ctx context.Context, team healthlab.TeamID, id EndpointID) error

	// Armed returns the enabled endpoints, of all teams, whose Health.ArmedAt is set
	// and at or before the instant, in no order.
	Armed(ctx context.Context, until time.Time) ([]Endpoint, error)
}

// EndpointQuery asks for one page of endpoints.
type EndpointQuery struct {
	Team   healthlab.TeamID
	Cursor string // empty for the first page
	Size   int    // default 50
}

// EndpointPage is one page of endpoints.
type EndpointPage struct {
	Endpoints []Endpoint
	Next      string // the cursor of the next page; empty if there is none
}

// Log answers questions about the past. It keeps messages and attempts for a time
// (30 days unless the store says otherwise). Safe for concurrent use.
type Log interface {
	// Attempts returns one page of a team's attempts, the latest first. Invalid if
	// the cursor is not one of this list. An endpoint or a message that the team
	// does not have has no attempts.
	Attempts(ctx context.Context, q AttemptQuery) (AttemptPage, error)

	// Message returns one stored message. NotFound if the team has none of this id.
	Message(ctx context.Context, team healthlab.TeamID, event uuid.UUID) (Message, error)
}

// AttemptQuery asks for one page of attempts. Zero fields do not filter.
type AttemptQuery struct {
	Team     healthlab.TeamID
	Endpoint EndpointID
	Event    uuid.UUID
	Cursor   string // empty for the first page
	Size     int    // default 50
}

// AttemptPage is one page of attempts.
type AttemptPage struct {
	Attempts []Attempt
	Next     string // the cursor of the next page; empty if there is none
}

// Message is an event as it is stored and sent.
type Message struct {
	Event uuid.UUID
	Type  string
	Team  healthlab.TeamID
	User  healthlab.UserID
	Key   string
	Seq   int64
	At    time.Time
	Body  []byte
}

// Notifier hands one message to one receiver.
//
// Notify may be called again with the same message after any result, by another
// process too; the receiver tells repeats by the message id. It makes one request
// and never retries one of which a byte was written. It returns soon after ctx ends.
// A failure is a Result, not an error. Implementations must be safe for concurrent
// use.
type Notifier interface {
	Notify(ctx context.Context, n Notification) Result
}

// Notification is one message to one receiver.
type Notification struct {
	URL     string
	Team    healthlab.TeamID
	Type    string      // of the event
	Trace   string      // of the event: a traceparent, or empty
	Headers http.Header // custom ones
	ID      string      // the message id
	At      time.Time   // the timestamp to sign
	Secrets []Secret    // the newest first
	Body    []byte
}

// ByScheme is a [Notifier] that has another one for each scheme of the URLs of endpoints:
// an [HTTP] for "https", and one of a broker's adapter for what is in Guard.Brokers. A
// message for which there is none is [ClassBlocked].
type ByScheme map[string]Notifier

// Notify hands the message to the Notifier of its scheme.
func (s ByScheme) Notify(ctx context.Context, n Notification) Result {
	scheme, _, _ := strings.Cut(n.URL, "://")
	if to, ok := s[scheme]; ok {
		return to.Notify(ctx, n)
	}
	return Result{Class: ClassBlocked}
}

// Result is what came of one request.
type Result struct {
	Class      Class
	Status     int           // 0 if there was none
	RetryAfter time.Duration // what the receiver asked for; 0 if nothing
	Duration   time.Duration
	Head       []byte // of the answer; see Attempt
	Response   []byte // the beginning of the body of the answer, if it is kept
	Reused     bool   // the connection was an old one
}
