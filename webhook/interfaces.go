package webhook

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// DispatcherStore is the storage of a [Dispatcher]. [Store] implements it.
type DispatcherStore interface {
	Deliveries
	Endpoints
}

// ServiceStore is the storage of a [Service]; it is a [DispatcherStore] too. [Store] implements it.
type ServiceStore interface {
	Deliveries
	Endpoints
	Log
}

// Outbox appends events that are not part of a change, such as a host's own events or those of a test. Domain
// packages append their events in the transaction of the change.
type Outbox interface {
	// Append writes the events, all or none, in the order given. It sets the Seq of each event with a key, and
	// renders the body. Invalid if one cannot be rendered (see Render) or has no id; Conflict if an id is taken,
	// by another of these events too. A refused call uses no Seq. An empty list is no error.
	Append(ctx context.Context, events []healthlab.Event) error
}

// Deliveries is the queue of written events that are not yet routed, and of unfinished deliveries. The store's clock
// decides what is due.
//
// Every method is atomic and safe for concurrent use, by several processes too. If a method returns an error, nothing
// has changed, unless the connection to the database broke: then the outcome is unknown. In both cases the call may be
// repeated.
type Deliveries interface {
	// Route takes at most max written events, oldest first, and adds a delivery of each to the lane (LaneOf) of
	// every endpoint that is enabled and subscribes to its type, at the position that Place returns. modes holds the mode
	// of each type; a type without one is ordered. It takes nothing if there are no events, or if another process is
	// routing. Events of one key are routed in the order of their Seq, in any process. A delivery that Place replaces,
	// or an event that Place drops, is logged as Cancelled with the reason superseded.
	Route(ctx context.Context, modes map[string]healthlab.Mode, max int) (Routed, error)

	// Due returns the endpoints with claimable deliveries, in no order.
	Due(ctx context.Context) ([]EndpointID, error)

	// Claim leases and returns due deliveries: those at the head of a lane without a lease, at most Max for
	// each given endpoint, the longest due first. An endpoint that is paused (Health.PausedUntil is later than
	// now) yields nothing. An endpoint on probation (Health.PauseStep is above 0) yields one delivery, the one
	// with the fewest attempts, and none while another of its deliveries is leased. A token is never used
	// twice. Delivery.Revision is the endpoint's revision, at least that of the last Update before the delivery
	// was routed.
	Claim(ctx context.Context, c Claim) (Claimed, error)

	// RecordOutcomes records outcomes. An outcome is applied if its token is still the token of the delivery, even if the
	// lease has expired:
	//
	//   - a final state ends the delivery, and the next delivery of the lane (its queue) becomes the head, due at once;
	//   - Retrying counts the attempt, and makes the delivery due after Delay; if a newer event that replaces it waits,
	//     the delivery ends as Cancelled, superseded, instead;
	//   - for the duration Quiet, no other delivery of the lane can be claimed;
	//   - Events are appended as Outbox.Append does.
	//
	// Each applied outcome is logged as one line. An outcome with an outdated token changes nothing and is logged with
	// state Retrying and reason lease_lost; if it is recorded a second time, it is not logged. Outcomes of one call do not
	// depend on each other.
	RecordOutcomes(ctx context.Context, outcomes []Outcome) (RecordedOutcomes, error)

	// Release ends the leases of deliveries that were not started. No attempt and no start is counted, and the
	// deliveries are due again after the given delay. Leases that have already ended are skipped.
	Release(ctx context.Context, back []Released) error

	// Replay puts messages that were routed before into lanes again.
	//
	// With Event set, Replay resends that message, and returns NotFound if the team has no such message or endpoint. The
	// mode of the event type decides:
	//
	//   - Latest: it is sent again. Precondition if the endpoint matches a newer event of the key, because the older one
	//     must not arrive after it.
	//   - Ordered: it and every later event of its key that the endpoint matches
	//     are sent again, in order.
	//   - Independent: it is sent again.
	//
	// Precondition, too, if the endpoint is disabled or does not match the message, or while one of the deliveries
	// concerned is being sent. Waiting deliveries of these messages move to their place in the new order, with attempts
	// counted from the start.
	//
	// With Event zero, Replay recovers lost messages: of those written at or after Since and before Until, and not before
	// the endpoint was made, it takes those that ended as Failed or Cancelled (but not superseded), and those that never
	// had a delivery. Of mode Latest it sends only the newest of a key, if that one is lost; of mode Ordered all of a key
	// from the first lost one on. A delivery that is being sent does not change. One call checks at most Max messages
	// after the cursor After, and returns the next cursor.
	Replay(ctx context.Context, r Replay) (Replayed, error)
}

// Routed is the result of routing events.
type Routed struct {
	Events int // number of routed events
	// Endpoints are the endpoints with new deliveries, without duplicates, in no order.
	Endpoints []EndpointID
}

// Claim is a request to lease due deliveries for the duration Lease.
type Claim struct {
	Quotas []Quota
	Lease  time.Duration
}

// Quota is the highest number of deliveries to claim for one endpoint.
type Quota struct {
	Endpoint EndpointID
	Max      int
}

// Claimed is the result of a claim.
type Claimed struct {
	// At is the store's clock at the claim. Workers compute instants from it, so that a wrong clock of a process
	// does not matter. A claim without quotas returns only At.
	At         time.Time
	Deliveries []Delivery
}

// RecordedOutcomes is the result of recording outcomes.
type RecordedOutcomes struct {
	// Locked are the leases whose outcome was not recorded, because another transaction has locked their rows: record
	// them again soon.
	Locked []Lease
	// Lost are the leases whose outcome was not applied, because the delivery was claimed again, was released or has
	// ended.
	Lost []Lease
}

// Released is a lease to end without an outcome.
type Released struct {
	Lease Lease
	Delay time.Duration
}

// Replay is a request to resend messages.
type Replay struct {
	Team     healthlab.TeamID
	Endpoint EndpointID
	Modes    map[string]healthlab.Mode
	Event    uuid.UUID // id of the one message to resend; zero to recover lost ones
	Since    time.Time // to recover: messages written at or after this time
	Until    time.Time // to recover: messages written before this time; zero means no end
	After    string    // to recover: Replayed.Next of the previous page
	Max      int       // to recover: greatest number of messages to check; default 500
}

// Replayed is the result of a replay.
type Replayed struct {
	// Queued is the number of queued deliveries.
	Queued int
	// Next is the cursor of the next page of a recovery; empty if there is none.
	Next string
}

// Endpoints stores endpoints with their secrets, headers and health.
//
// All methods are atomic and safe for concurrent use. Endpoints of other teams are NotFound. Arguments and
// results are copies. Times are kept in UTC to the microsecond.
type Endpoints interface {
	// Insert adds e with revision 1. It returns Conflict if its id is taken, and Exhausted if the team already
	// has max endpoints.
	Insert(ctx context.Context, e Endpoint, max int) error

	// Get returns one endpoint. It returns NotFound if the team has no endpoint with this id.
	Get(ctx context.Context, team healthlab.TeamID, id EndpointID) (Endpoint, error)

	// Update loads the endpoint, lets change edit it, and writes it back with the returned events and the next
	// revision. An error of change is returned as it is, and nothing is written. change may run more than once,
	// so it must be pure. Concurrent updates behave as if they ran one after another. ID, Team, CreatedAt and
	// Revision cannot be changed.
	//
	// Two changes also change the queue in the same write: when Disabled is set, all unfinished deliveries of the endpoint
	// end as Cancelled, disabled; when Health.PauseStep goes back to 0, the first delivery of each of its lanes is due at
	// once, or at the end of the lane's quiet time.
	Update(ctx context.Context, team healthlab.TeamID, id EndpointID,
		change func(*Endpoint) ([]healthlab.Event, error)) (Endpoint, error)

	// List returns one page of a team's endpoints, the newest first, then by id, descending. It returns Invalid
	// if the cursor is not from this list.
	List(ctx context.Context, q EndpointQuery) (EndpointPage, error)

	// Delete removes the endpoint, its secrets and its headers; its unfinished deliveries end as Cancelled,
	// deleted. It returns NotFound if the team has no endpoint with this id.
	Delete(ctx context.Context, team healthlab.TeamID, id EndpointID) error

	// Armed returns the enabled endpoints, of all teams, whose Health.ArmedAt is set
	// and at or before the instant, in no order.
	Armed(ctx context.Context, until time.Time) ([]Endpoint, error)
}

// EndpointQuery selects a page of endpoints.
type EndpointQuery struct {
	Team   healthlab.TeamID
	Cursor string // Next of the previous page; empty for the first one
	Size   int    // default 50
}

// EndpointPage is one page of endpoints.
type EndpointPage struct {
	Endpoints []Endpoint
	Next      string // the cursor of the next page; empty if there is none
}

// Log reads stored messages and attempts. They are kept for 30 days, unless the store is configured otherwise.
// It is safe for concurrent use.
type Log interface {
	// Attempts returns one page of a team's attempts, the latest first. It returns Invalid if the cursor is not
	// from this list. An unknown endpoint or message has no attempts.
	Attempts(ctx context.Context, q AttemptQuery) (AttemptPage, error)

	// Message returns one stored message. It returns NotFound if the team has no message with this id.
	Message(ctx context.Context, team healthlab.TeamID, event uuid.UUID) (Message, error)
}

// AttemptQuery selects a page of attempts. A zero field is no filter.
type AttemptQuery struct {
	Team     healthlab.TeamID
	Endpoint EndpointID
	Event    uuid.UUID
	Cursor   string // Next of the previous page; empty for the first one
	Size     int    // default 50
}

// AttemptPage is one page of attempts.
type AttemptPage struct {
	Attempts []Attempt
	Next     string // the cursor of the next page; empty if there is none
}

// Message is an event with its body.
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

// Notifier sends one message to one receiver.
//
// Notify may be called again with the same message after any result, also by another process. The receiver recognizes
// repeats by the message id. Notify makes one request, and never repeats a request of which a byte was written. It
// returns soon after ctx ends. A failure is a Result, not an error. Implementations must be safe for concurrent use.
type Notifier interface {
	Notify(ctx context.Context, n Notification) Result
}

// Notification is one message to one receiver.
type Notification struct {
	URL     string
	Team    healthlab.TeamID
	Type    string      // type of the event
	Trace   string      // traceparent of the event, or empty
	Headers http.Header // custom headers
	ID      string      // the message id
	At      time.Time   // timestamp to sign
	Secrets []Secret    // newest first
	Body    []byte
}

// ByScheme is a [Notifier] with one Notifier per URL scheme: an [HTTP] for "https", and that of a broker's
// adapter for each scheme of Guard.Brokers. A message with another scheme is [ClassBlocked].
type ByScheme map[string]Notifier

// Notify sends the message with the Notifier of its URL scheme.
func (s ByScheme) Notify(ctx context.Context, n Notification) Result {
	scheme, _, _ := strings.Cut(n.URL, "://")
	if to, ok := s[scheme]; ok {
		return to.Notify(ctx, n)
	}
	return Result{Class: ClassBlocked}
}

// Result is the result of one request.
type Result struct {
	Class      Class
	Status     int           // 0 if no status was received
	RetryAfter time.Duration // the delay that the receiver requested; 0 if none
	Duration   time.Duration
	Head       []byte // head of the response; see Attempt
	Response   []byte // start of the response body, if it is kept
	Reused     bool   // an existing connection was used
}
