package store

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Text returns s as ordered bytes that may be followed by further values: texts compare as
// before, and none is the beginning of another. A zero byte becomes 00 FF, and 00 01 ends it.
func Text(s string) string { return strings.ReplaceAll(s, "\x00", "\x00\xff") + "\x00\x01" }

// CutText returns the text at the begin of what [Text] made, and the rest. False if there is none.
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

// Int returns n as 8 bytes in the order of the numbers, negative ones included.
func Int(n int64) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(n)^1<<63))
}

// ParseInt returns the number that [Int] made. s has at least 8 bytes.
func ParseInt(s string) int64 {
	return int64(binary.BigEndian.Uint64([]byte(s[:8])) ^ 1<<63)
}

// Time returns t as 8 bytes in the order of time, to the microsecond.
func Time(t time.Time) string { return Int(t.UnixMicro()) }

// ParseTime returns the instant that [Time] made, in UTC. s has at least 8 bytes.
func ParseTime(s string) time.Time { return time.UnixMicro(ParseInt(s)).UTC() }

// UUID returns the 16 bytes of an id.
func UUID(id uuid.UUID) string { return string(id[:]) }

// ParseUUID returns the id that [UUID] made. s has at least 16 bytes.
func ParseUUID(s string) (id uuid.UUID) {
	copy(id[:], s)
	return id
}

// Reverse returns the complement of ordered bytes of a fixed length, which sorts the other way.
func Reverse(s string) string {
	b := []byte(s)
	for i := range b {
		b[i] = ^b[i]
	}
	return string(b)
}

// End returns the lowest value above all values that begin with prefix; "" if there is none.
// From prefix To End(prefix) is the range of the values with that beginning.
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
