package healthlab

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

// Event records that an object has changed. It is written in the transaction of the change and never edited.
// Package webhook delivers events to endpoints.
type Event struct {
	// ID is unique. The webhook-id of every delivery is derived from it.
	ID uuid.UUID
	// Type is an event type from the list of the package that emits it.
	Type string
	// Team is the team of the event.
	Team TeamID
	// User is the user that the event is about; zero for none.
	User UserID
	// Key orders deliveries: events of one key arrive in order. Keys are unique
	// within a team.
	Key string
	// Seq grows with every event of one Key. A Store sets it when it writes the event, while it holds the lock
	// that orders writes of that key; the code that makes an event leaves it zero.
	Seq int64
	// At is the time of the change, in UTC.
	At time.Time
	// Trace is the traceparent (W3C Trace Context) of the request that caused the change; empty for none. If it
	// is empty, a Store sets it from the context of the write; see [TraceOf].
	Trace string
	// Data is the payload, with the state at the time of the change.
	Data json.RawMessage
}

// LogValue logs the type and the ids, and nothing of the payload.
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

// Format writes the result of String for every verb.
func (e Event) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.String()) }

// Mode is how events with the same key are delivered: each alone, all in order, or only the newest.
type Mode uint8

const (
	// Independent events are delivered without waiting for others.
	Independent Mode = iota
	// Ordered events are all delivered, in order.
	Ordered
	// Latest events replace each other: only the newest of a key matters, and an older one that was not sent
	// yet may be dropped.
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

// EventType describes a type of event. Each domain package lists the types that it emits; a host passes all
// lists to package webhook.
type EventType struct {
	// Name is the event_type in the HTTP API: "labtest.order.updated".
	Name string
	// Mode is how events of this type with the same key are delivered.
	Mode Mode
	// Data is a value, usually zero, of the Go type that is encoded in Event.Data.
	Data any
	// Doc states, in one sentence, when the event is emitted.
	Doc string
}
