package receiver

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Event is one received message. Printing or logging it shows only its id and type.
type Event struct {
	// ID is the webhook-id: the same whenever this message arrives.
	ID string
	// Sent is the timestamp of this attempt, by the sender's clock; zero for a
	// message that did not come over HTTP.
	Sent time.Time
	// Type is the event_type, Name its parts.
	Type string
	Name Name
	// Team is the team of the event.
	Team healthlab.TeamID
	// User is the user of the event; zero if it has none.
	User healthlab.UserID
	// ClientUserID is the team's own id of the user; empty if the event has no user.
	ClientUserID string
	// Sequence increases with every event about one object; 0 if the sender leaves it out.
	Sequence int64
	// Data is the payload as it was sent.
	Data json.RawMessage
	// Value points to the payload as the Go type of its event type, such as *healthdata.Sleep; nil if the type
	// is unknown.
	Value any
}

// testIDLen is the length of the ids of test messages. The prefix alone is not enough, because an ordinary id
// may begin with it by chance.
const testIDLen = len("msg_test") + 27

// IsTest reports whether the message is a test message with invented data.
func (e Event) IsTest() bool {
	return len(e.ID) == testIDLen && strings.HasPrefix(e.ID, "msg_test")
}

// String returns the type and the id.
func (e Event) String() string { return e.Type + " " + e.ID }

// Format writes String, whatever the verb.
func (e Event) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.String()) }

// LogValue contains the id and the type, and nothing of the payload.
func (e Event) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", e.ID), slog.String("type", e.Type), slog.String("team", e.Team.String()))
}

// Name has the parts of an event_type.
type Name struct {
	// Family is daily or historical for health data; otherwise the domain: labtest, provider, message, …
	Family string
	// Resource is the object of the event: sleep, heartrate, order. It is empty for a name of two parts.
	Resource string
	// Verb is the kind of change: created, updated, deleted, … Treat created and updated alike: insert or
	// replace.
	Verb string
}

// ParseName splits an event_type: daily.data.sleep.created is a daily sleep that was created. ok is false if the
// name does not match the grammar of event types.
func ParseName(eventType string) (n Name, ok bool) {
	parts := strings.Split(eventType, ".")
	_, old := retired[eventType]
	switch {
	case !old && !webhook.ValidType(eventType):
		return Name{}, false
	case len(parts) == 4 && parts[0] == "labtest": // labtest.result.critical.acknowledged
		return Name{parts[0], parts[1] + "." + parts[2], parts[3]}, true
	case len(parts) == 4: // daily.data.sleep.created
		return Name{parts[0], parts[2], parts[3]}, true
	case len(parts) == 3: // labtest.order.created
		return Name{parts[0], parts[1], parts[2]}, true
	default: // endpoint.disabled
		return Name{Family: parts[0], Verb: parts[1]}, true
	}
}
