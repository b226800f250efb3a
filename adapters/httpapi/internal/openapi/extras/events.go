package extras

import (
	"reflect"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/webhook"
)

// eventSchemas maps the Go type of event data to the name of its schema. A test compares each type with its schema.
var eventSchemas = map[reflect.Type]string{
	reflect.TypeFor[healthdata.Historical]():         "HistoryComplete",
	reflect.TypeFor[healthdata.Batch]():              "SampleBatch",
	reflect.TypeFor[healthdata.StreamNotice]():       "StreamNotice",
	reflect.TypeFor[healthdata.SummaryDeleted]():     "SummaryDeleted",
	reflect.TypeFor[healthdata.SamplesDeleted]():     "SamplesDeleted",
	reflect.TypeFor[healthdata.Activity]():           "Activity",
	reflect.TypeFor[healthdata.Body]():               "Body",
	reflect.TypeFor[healthdata.Electrocardiogram]():  "Electrocardiogram",
	reflect.TypeFor[healthdata.Meal]():               "Meal",
	reflect.TypeFor[healthdata.MenstrualCycle]():     "MenstrualCycle",
	reflect.TypeFor[healthdata.Profile]():            "Profile",
	reflect.TypeFor[healthdata.Sleep]():              "Sleep",
	reflect.TypeFor[healthdata.SleepCycle]():         "SleepCycle",
	reflect.TypeFor[healthdata.Workout]():            "Workout",
	reflect.TypeFor[healthdata.Device]():             "Device",
	reflect.TypeFor[healthdata.ConnectionCreated]():  "ConnectionCreated",
	reflect.TypeFor[healthdata.ConnectionFailed]():   "ConnectionFailed",
	reflect.TypeFor[healthdata.ConnectionDeleted]():  "ConnectionDeleted",
	reflect.TypeFor[healthdata.ConsentWithdrawn]():   "ConsentWithdrawn",
	reflect.TypeFor[orders.Order]():                  "Order",
	reflect.TypeFor[orders.Appointment]():            "Appointment",
	reflect.TypeFor[critical.Notice]():               "CriticalResult",
	reflect.TypeFor[critical.AcknowledgedNotice]():   "CriticalResultAcknowledged",
	reflect.TypeFor[critical.UnacknowledgedNotice](): "CriticalResultUnacknowledged",
	reflect.TypeFor[exchange.MatchReviewNotice]():    "MatchReviewNotice",
	reflect.TypeFor[continuous.ResultTableChange]():  "ResultTableChange",
	reflect.TypeFor[labreport.PublishedJob]():        "LabReportJob",
	reflect.TypeFor[webhook.AttemptExhausted]():      "AttemptExhausted",
	reflect.TypeFor[webhook.EndpointDisabled]():      "EndpointDisabled",
}

// EventTypes returns all events that a team can receive.
func EventTypes() []healthlab.EventType {
	return slices.Concat(healthdata.EventTypes(), orders.EventTypes(), exchange.EventTypes(), continuous.EventTypes(), labreport.EventTypes(), webhook.EventTypes())
}

// EventSchema returns the name of the schema of an event's data; empty if it has none.
func EventSchema(e healthlab.EventType) string {
	t := reflect.TypeOf(e.Data)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return eventSchemas[t]
}

type object = map[string]any

func ref(kind, name string) object { return object{"$ref": "#/components/" + kind + "/" + name} }

// delivery holds a sentence for the contract about each delivery mode of events: in which order they arrive.
var delivery = map[healthlab.Mode]string{
	healthlab.Independent: "Each event is delivered on its own, in any order.",
	healthlab.Ordered:     "Events of one key are delivered in their order, each once the one before was taken.",
	healthlab.Latest:      "Of several events of one key that wait, the latest is delivered alone.",
}

// eventWebhooks returns the webhooks of the contract: one per event type.
func eventWebhooks() object {
	out := object{}
	nullable := []string{"string", "null"}
	for _, e := range EventTypes() {
		body := object{
			"type":     "object",
			"required": []string{"event_type", "data", "team_id", "user_id", "client_user_id"},
			"properties": object{
				"event_type":     object{"type": "string", "const": e.Name},
				"data":           ref("schemas", EventSchema(e)),
				"team_id":        object{"type": "string", "format": "uuid"},
				"user_id":        object{"type": nullable, "format": "uuid", "description": "Null for an event about no user."},
				"client_user_id": object{"type": nullable, "description": "The team's own reference to the user; null if it has none."},
				"sequence": object{"type": "integer", "description": "Grows with every event of its key. " +
					"It is there where the service is set up to send it."},
			},
		}
		out[e.Name] = object{"post": object{
			"operationId": "receive_" + strings.ReplaceAll(e.Name, ".", "_"),
			"tags":        []string{"events"},
			"summary":     "Receive " + e.Name,
			"description": e.Doc + " " + delivery[e.Mode],
			"security":    []object{},
			"parameters":  []object{ref("parameters", "MessageID"), ref("parameters", "MessageTimestamp"), ref("parameters", "MessageSignature")},
			"requestBody": object{"required": true, "content": object{"application/json": object{"schema": body}}},
			"responses":   object{"2XX": ref("responses", "MessageTaken")},
		}}
	}
	return out
}
