package healthlab

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

// Event says that something happened to a subject. It is written with the change it
// describes, in the same commit, and never edited. What becomes of it afterwards,
// which endpoints get it and how often, is the business of package webhook.
type Event struct {
	// ID is unique. The webhook-id of every delivery is made from it.
	ID uuid.UUID
	// Type is a name from the list of the package that emits it.
	Type string
	// Team is whose event it is.
	Team TeamID
	// User is whom it is about; zero if it is about no user.
	User UserID
	// Key orders deliveries: events of one key arrive in order. Keys are unique
	// within a team.
	Key string
	// Seq grows with every event of one Key. A Store draws it when it writes the
	// event, while it holds the lock that orders writes of that key; the code that makes
	// an event leaves it zero.
	Seq int64
	// At is when it happened, in UTC.
	At time.Time
	// Trace is the traceparent (W3C Trace Context) of the request that caused it; empty
	// for none. A Store sets it from the context of the write if it is empty; see [TraceOf].
	Trace string
	// Data is the published payload, fixed at the moment of the change.
	Data json.RawMessage
}

// LogValue shows what happened to which thing, and nothing of the payload.
func (e Event) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("id", e.ID.String()),
		slog.String("type", e.Type),
		slog.String("team", e.Team.String()),
		slog.Int64("seq", e.Seq),
	)
}

// String returns the type and the id, and nothing of the payload.
func (e Event) String() string { return e.Type + " " + e.ID.String() }

// Format writes String, whatever the verb.
func (e Event) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.String()) }

// Mode says what the order of events of one key means.
type Mode uint8

const (
	// Independent events wait for nothing.
	Independent Mode = iota
	// Ordered events each count, in order.
	Ordered
	// Latest events replace each other: only the newest of a key counts, and an
	// older one that was not sent yet need not be.
	Latest
)

// String returns the mode in lower case.
func (m Mode) String() string {
	switch m {
	case Ordered:
		return "ordered"
	case Latest:
		return "latest"
	default:
		return "independent"
	}
}

// EventType describes one type of event. Each domain package lists the types that it
// emits; a host hands the sum of the lists to package webhook.
type EventType struct {
	// Name is the event_type of the wire: "labtest.order.updated".
	Name string
	// Mode says what order means for it.
	Mode Mode
	// Data is a value of the Go type that the payload decodes into.
	Data any
	// Doc says, in one sentence, when it is emitted.
	Doc string
}
