package receiver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/webhook"
)

// EventTypes lists every event type that this package decodes, from all packages that send events.
func EventTypes() []healthlab.EventType {
	return slices.Concat(
		healthdata.EventTypes(), orders.EventTypes(), exchange.EventTypes(), labreport.EventTypes(), continuous.EventTypes(), webhook.EventTypes(),
	)
}

// retired are event types that are no longer sent and may occur in an archive.
var retired = map[string]any{
	"daily.timeseries.hypnogram.created":      healthdata.Batch{},
	"daily.timeseries.hypnogram.updated":      healthdata.Batch{},
	"historical.timeseries.hypnogram.created": healthdata.Historical{},
}

// types maps each event type to the Go type of its payload.
type types map[string]reflect.Type

func newTypes(lists ...[]healthlab.EventType) types {
	out := types{}
	for name, v := range retired {
		out[name] = reflect.TypeOf(v)
	}
	for _, list := range lists {
		for _, t := range list {
			if g := payloadType(t.Data); g != nil {
				out[t.Name] = g
			}
		}
	}
	return out
}

// payloadType returns the type of v or, if v is a pointer, the type to which it points.
func payloadType(v any) reflect.Type {
	t := reflect.TypeOf(v)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

var ours = sync.OnceValue(func() types { return newTypes(EventTypes()) })

// Decode reads the body of a message of any type without checking a signature, for archives and for messages
// from a queue. An event of an unknown type has a nil Value. ID and Sent, which are not in the body, are left
// empty.
//
// Invalid if the body is not an envelope, or the payload of a known type does not fit
// its Go type.
func Decode(body []byte) (Event, error) {
	e, err := envelope(body)
	if err == nil {
		err = ours().decode(&e)
	}
	if err != nil {
		return Event{}, fmt.Errorf("decode message: %w", err)
	}
	return e, nil
}

// envelope reads all fields of a message's body except Value. Unknown keys are ignored.
func envelope(body []byte) (Event, error) {
	var in struct {
		EventType    string           `json:"event_type"`
		Data         json.RawMessage  `json:"data"`
		TeamID       healthlab.TeamID `json:"team_id"`
		UserID       healthlab.UserID `json:"user_id"`
		ClientUserID string           `json:"client_user_id"`
		Sequence     int64            `json:"sequence"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Event{}, fmt.Errorf("%w: body: must be the JSON object of a webhook message", healthlab.Invalid)
	}
	var p healthlab.Problems
	if in.EventType == "" {
		p.Add("missing", "is required", "event_type")
	}
	if in.TeamID.IsZero() {
		p.Add("missing", "is required", "team_id")
	}
	if data := bytes.TrimLeft(in.Data, " \t\r\n"); len(data) == 0 || data[0] != '{' && data[0] != '[' {
		p.Add("wrong_type", "must be an object or a list of objects", "data")
	}
	if err := p.Err(); err != nil {
		return Event{}, err
	}
	name, _ := ParseName(in.EventType)
	return Event{
		Type: in.EventType, Name: name, Team: in.TeamID, User: in.UserID,
		ClientUserID: in.ClientUserID, Sequence: max(in.Sequence, 0), Data: in.Data,
	}, nil
}

// decode sets e.Value to the decoded payload, if the event type is known.
func (t types) decode(e *Event) error {
	g, ok := t[e.Type]
	if !ok {
		return nil
	}
	v := reflect.New(g)
	if err := json.Unmarshal(e.Data, v.Interface()); err != nil {
		// The decoder's error text could contain a part of the payload.
		return fmt.Errorf("%w: data: must be JSON that fits %s, the Go type of %s", healthlab.Invalid, g, e.Type)
	}
	e.Value = v.Interface()
	upgradePayload(e.Value)
	return nil
}

// upgradePayload converts a payload that an earlier version of the service sent to the current form.
func upgradePayload(value any) {
	switch v := value.(type) {
	case *healthdata.Batch:
		normalizeSource(&v.Source)
	case *healthdata.StreamNotice:
		normalizeSource(&v.Source)
	case *healthdata.ConnectionCreated:
		if v.Provider.Slug == "" {
			v.Provider = v.Source
		}
		if v.Source.Slug == "" {
			v.Source = v.Provider
		}
	case healthdata.Summary:
		normalizeSource(&healthdata.HeadOf(v).Source)
	}
}

// The two JSON keys of the distance in a wheelchair.
const (
	wheelchair    = "wheelchair_pushing"
	oldWheelchair = "wheelchair_push"
)

// normalizeSource sets Provider and Slug, of which earlier versions sent only one, and replaces an empty AppID or Sport
// by null. It sets an empty Type to SourceUnknown, and replaces the old name of a sport.
func normalizeSource(s *healthdata.Source) {
	if s.Provider == "" {
		s.Provider = s.Slug
	}
	if s.Slug == "" {
		s.Slug = s.Provider
	}
	if s.Type == "" {
		s.Type = healthdata.SourceUnknown
	}
	if s.AppID != nil && *s.AppID == "" {
		s.AppID = nil
	}
	switch {
	case s.Sport == nil:
	case *s.Sport == "":
		s.Sport = nil
	case *s.Sport == oldWheelchair:
		*s.Sport = wheelchair
	}
}
