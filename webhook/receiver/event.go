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

// Event is one message as it was received. Printing or logging one shows its id and
// type, and nothing of the person.
type Event struct {
	// ID is the webhook-id: the same whenever this message arrives.
	ID string
	// Sent is the timestamp of this attempt, by the sender's clock; zero for a
	// message that did not come over HTTP.
	Sent time.Time
	// Type is the event_type, Name its parts.
	Type string
	Name Name
	// Team is whose event it is.
	Team healthlab.TeamID
	// User is whom it is about; zero if it is about no user.
	User healthlab.UserID
	// ClientUserID is the team's own id of that user; empty if it is about no user.
	ClientUserID string
	// Sequence grows with every event about one thing; 0 if the sender leaves it out.
	Sequence int64
	// Data is the payload as it was sent.
	Data json.RawMessage
	// Value points to the payload as the Go type of its event type, such as
	// *healthdata.Sleep; nil if the type is not known here.
	Value any
}

// testIDLen is the length of the ids of messages that try an endpoint out. The prefix
// alone does not tell: an ordinary id may begin so by chance.
const testIDLen = len("msg_test") + 27

// IsTest reports whether the message was sent by hand to try the endpoint out. What it
// says is made up.
func (e Event) IsTest() bool {
	return len(e.ID) == testIDLen && strings.HasPrefix(e.ID, "msg_test")
}

// String returns the type and the id.
func (e Event) String() string { return e.Type + " " + e.ID }

// Format writes String, whatever the verb.
func (e Event) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.String()) }

// LogValue shows which message it is, and nothing of the payload.
func (e Event) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", e.ID), slog.String("type", e.Type), slog.String("team", e.Team.String()))
}

// Name is an event_type in its parts.
type Name struct {
	// Family is daily or historical for health data; otherwise the domain: labtest,
	// provider, message, …
	Family string
	// Resource is what it is about: sleep, heartrate, order. Empty for a name of
	// two parts.
	Resource string
	// Verb is what happened: created, updated, deleted, … Treat created and updated alike:
	// insert or replace.
	Verb string
}

// ParseName takes an event_type apart: daily.data.sleep.created is a daily sleep that
// was created. ok is false if it does not fit the grammar of event types.
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
