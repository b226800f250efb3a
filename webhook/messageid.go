package webhook

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/uuid"
)

// messageIDLen is how many base-62 digits 20 bytes need.
const messageIDLen = 27

// MessageID returns the webhook-id of the message about the event with this id:
// "msg_" and 27 characters of 0-9A-Za-z. They are the 16 bytes of the id and the
// first 4 of their SHA-256, read as one number in base 62. So it is the same for
// every endpoint, attempt and replay, and never holds a full stop.
func MessageID(event uuid.UUID) string { return "msg_" + base62(event) }

// testMessageID names a message that was sent to try an endpoint out.
func testMessageID(id uuid.UUID) string { return "msg_test" + base62(id) }

func base62(id uuid.UUID) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	const five = 62 * 62 * 62 * 62 * 62
	sum := sha256.Sum256(id[:])
	var n [5]uint32 // the number, its highest part first
	for i := range 4 {
		n[i] = binary.BigEndian.Uint32(id[4*i:])
	}
	n[4] = binary.BigEndian.Uint32(sum[:])
	var out [messageIDLen]byte
	for i := messageIDLen; i > 0; {
		rest := uint64(0) // five digits at a time
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
