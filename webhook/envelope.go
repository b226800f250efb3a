package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/healthlab-dev/healthlab"
)

// MaxBody is the largest body of a message, in bytes. Producers of events keep
// their data below it, by splitting or shortening.
const MaxBody = 1 << 20

// Envelope says how bodies are made. The zero value is the default.
type Envelope struct {
	// Sequence adds the event's Seq to the body, as "sequence", where it has one.
	// It is part of what is signed.
	Sequence bool
}

// Render returns the body of the message about e, as the default [Envelope] makes it.
func Render(e healthlab.Event, clientUserID *string) ([]byte, error) {
	return Envelope{}.Render(e, clientUserID)
}

// Render returns the body of the message about e: one JSON object with event_type,
// data, team_id, user_id and client_user_id. The bytes of e.Data go in as they are.
// clientUserID is the customer's own reference to the user; nil, or an event about
// no user, is written as null.
//
// A body is made once, when the event is written, and stored. Invalid if the type's
// name is not one, the team is missing, the data is not a JSON object, or the body
// is larger than [MaxBody].
func (v Envelope) Render(e healthlab.Event, clientUserID *string) ([]byte, error) {
	switch data := bytes.TrimLeft(e.Data, " \t\r\n"); {
	case !ValidType(e.Type):
		return nil, fmt.Errorf("%w: the name of an event type does not fit the grammar", healthlab.Invalid)
	case e.Team.IsZero():
		return nil, fmt.Errorf("%w: an event needs a team", healthlab.Invalid)
	case len(data) == 0, data[0] != '{', !json.Valid(data):
		return nil, fmt.Errorf("%w: the data of an event is a JSON object", healthlab.Invalid)
	}
	b := make([]byte, 0, len(e.Data)+256)
	b = append(b, `{"event_type":"`...)
	b = append(b, e.Type...)
	b = append(b, `","data":`...)
	b = append(b, e.Data...)
	b = append(b, `,"team_id":"`...)
	b = append(b, e.Team.String()...)
	b = append(b, `","user_id":`...)
	if e.User.IsZero() {
		b = append(b, `null,"client_user_id":null`...)
	} else {
		b = append(b, '"')
		b = append(b, e.User.String()...)
		b = append(b, `","client_user_id":`...)
		b = appendText(b, clientUserID)
	}
	if v.Sequence && e.Seq > 0 {
		b = append(b, `,"sequence":`...)
		b = strconv.AppendInt(b, e.Seq, 10)
	}
	b = append(b, '}')
	if len(b) > MaxBody {
		return nil, fmt.Errorf("%w: the body of a message is at most %d bytes", healthlab.Invalid, MaxBody)
	}
	return b, nil
}

// appendText appends s as a JSON string, or null.
func appendText(b []byte, s *string) []byte {
	if s == nil {
		return append(b, "null"...)
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(*s) // a string always encodes
	return append(b, bytes.TrimRight(buf.Bytes(), "\n")...)
}
