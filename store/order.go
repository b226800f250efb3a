package store

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Text encodes s as ordered bytes that may be followed by further values: the encodings sort as the texts, and
// none is a prefix of another. A zero byte becomes 00 FF, and 00 01 ends the text.
func Text(s string) string { return strings.ReplaceAll(s, "\x00", "\x00\xff") + "\x00\x01" }

// CutText decodes the text at the start of s, which [Text] encoded, and returns the rest. False if there is
// none.
func CutText(s string) (text, rest string, ok bool) {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, 0)
		if i < 0 || i+1 >= len(s) {
			return "", "", false
		}
		b.WriteString(s[:i])
		if s[i+1] == 1 {
			return b.String(), s[i+2:], true
		}
		b.WriteByte(0)
		s = s[i+2:]
	}
}

// Int encodes n as 8 bytes that sort as the numbers, negative ones included.
func Int(n int64) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(n)^1<<63))
}

// ParseInt decodes a number of [Int]. s must have at least 8 bytes.
func ParseInt(s string) int64 {
	return int64(binary.BigEndian.Uint64([]byte(s[:8])) ^ 1<<63)
}

// Time encodes t as 8 bytes that sort by time, to the microsecond.
func Time(t time.Time) string { return Int(t.UnixMicro()) }

// ParseTime decodes an instant of [Time], in UTC. s must have at least 8 bytes.
func ParseTime(s string) time.Time { return time.UnixMicro(ParseInt(s)).UTC() }

// UUID returns the 16 bytes of an id.
func UUID(id uuid.UUID) string { return string(id[:]) }

// ParseUUID decodes an id of [UUID]. s must have at least 16 bytes.
func ParseUUID(s string) (id uuid.UUID) {
	copy(id[:], s)
	return id
}

// Reverse returns the complement of ordered bytes of a fixed length, which sorts in the opposite order.
func Reverse(s string) string {
	b := []byte(s)
	for i := range b {
		b[i] = ^b[i]
	}
	return string(b)
}

// End returns the lowest value above all values with the prefix; "" if there is none. The range from prefix to
// End(prefix) has all values with the prefix.
func End(prefix string) string {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 255 {
			b[i]++
			return string(b[:i+1])
		}
	}
	return ""
}
