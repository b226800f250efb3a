package webhook

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Event types about deliveries. They are sent to the team's other endpoints, never to the one that they are
// about. A failed delivery of such an event causes no further event.
const (
	typeExhausted = "message.attempt.exhausted"
	typeDisabled  = "endpoint.disabled"
)

// EventTypes lists the event types that this package sends.
func EventTypes() []healthlab.EventType {
	return []healthlab.EventType{
		{
			Name: typeExhausted, Mode: healthlab.Independent, Data: AttemptExhausted{},
			Doc: "The last retry of a message to one endpoint has failed.",
		},
		{
			Name: typeDisabled, Mode: healthlab.Independent, Data: EndpointDisabled{},
			Doc: "An endpoint was disabled automatically.",
		},
	}
}

func operational(eventType string) bool {
	return eventType == typeExhausted || eventType == typeDisabled
}

// AttemptExhausted is the data of message.attempt.exhausted.
type AttemptExhausted struct {
	MessageID    string      `json:"message_id"`
	EventType    string      `json:"event_type"` // type of the message that failed
	EndpointID   string      `json:"endpoint_id"`
	AttemptCount int         `json:"attempt_count"`
	LastAttempt  LastAttempt `json:"last_attempt"`
}

// LastAttempt is the result of a message's last attempt.
type LastAttempt struct {
	At         healthlab.Time `json:"at"`
	StatusCode *int           `json:"status_code"` // null if no status was received
	Error      *string        `json:"error"`       // class of the failure; without a class, the reason
}

// EndpointDisabled is the data of endpoint.disabled.
type EndpointDisabled struct {
	EndpointID string         `json:"endpoint_id"`
	URL        string         `json:"url"`
	Reason     DisabledReason `json:"reason"` // failing or gone
	At         healthlab.Time `json:"at"`
}

// newEndpointEvent returns an event about an endpoint with data as JSON. Its key is the endpoint's id, so that the
// event is not sent to that endpoint.
func newEndpointEvent(id uuid.UUID, eventType string, team healthlab.TeamID, endpoint EndpointID, at time.Time, data any) healthlab.Event {
	raw, err := json.Marshal(data)
	if err != nil {
		panic("webhook: an event of this package does not encode")
	}
	return healthlab.Event{
		ID: id, Type: eventType, Team: team, Key: endpoint.String(), At: at, Data: raw,
	}
}
