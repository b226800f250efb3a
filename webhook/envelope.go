package webhook

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// MaxBody is the largest body of a message, in bytes. Producers of events must split or shorten larger data.
const MaxBody = 1 << 20

// Envelope configures how bodies are made. The zero value is the default.
type Envelope struct {
	// Sequence adds the event's Seq to the signed body as "sequence", if the event has one.
	Sequence bool
}

// Render returns the body of the message about e: one JSON object with event_type,
// data, team_id, user_id and client_user_id. The bytes of e.Data go in as they are.
// clientUserID is the customer's own reference to the user; nil, or an event about
// no user, is written as null.
//
// A body is made once, when the event is written, and stored. Invalid if the event type has an invalid name, the team
// is missing, the data is not a JSON object, or the body is larger than [MaxBody].
func (v Envelope) Render(e healthlab.Event, clientUserID *string) ([]byte, error) {
	switch data := bytes.TrimLeft(e.Data, " \t\r\n"); {
	case !ValidType(e.Type):
		return nil, fmt.Errorf("%w: event: type: %s", healthlab.Invalid, badTypeName)
	case e.Team.IsZero():
		return nil, fmt.Errorf("%w: event: team: must be set", healthlab.Invalid)
	case len(data) == 0, data[0] != '{', !json.Valid(data):
		return nil, fmt.Errorf("%w: event: data: must be a JSON object", healthlab.Invalid)
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
		return nil, fmt.Errorf("%w: event: data: must be smaller: the body of the message must have at most %d bytes, and has %d", healthlab.Invalid, MaxBody, len(b))
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
	_ = enc.Encode(*s) // encoding a string cannot fail
	return append(b, bytes.TrimRight(buf.Bytes(), "\n")...)
}

// messageIDLen is the number of base-62 digits of 20 bytes.
const messageIDLen = 27

// MessageID returns the webhook-id of the message about the event with this id:
// "msg_" and 27 characters of 0-9A-Za-z. They are the 16 bytes of the id and the
// first 4 of their SHA-256, read as one number in base 62. So it is the same for
// every endpoint, attempt and replay, and never holds a full stop.
func MessageID(event uuid.UUID) string { return "msg_" + base62(event) }

func testMessageID(id uuid.UUID) string { return "msg_test" + base62(id) }

func base62(id uuid.UUID) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	const five = 62 * 62 * 62 * 62 * 62
	sum := sha256.Sum256(id[:])
	var n [5]uint32 // the number, most significant part first
	for i := range 4 {
		n[i] = binary.BigEndian.Uint32(id[4*i:])
	}
	n[4] = binary.BigEndian.Uint32(sum[:])
	var out [messageIDLen]byte
	for i := messageIDLen; i > 0; {
		rest := uint64(0) // divides by 62^5 at a time
		for j, part := range n {
			part := rest<<32 | uint64(part)
			n[j], rest = uint32(part/five), part%five
		}
		for end := max(i-5, 0); i > end; rest /= 62 {
			i--
			out[i] = digits[rest%62]
		}
	}
	return string(out[:])
}
