package store

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Text encodes s so that encoded texts sort, byte by byte, as the texts do, and no encoding is the prefix of
// another. So further values may follow it in an ID. A zero byte becomes 00 FF, and 00 01 ends the text.
func Text(s string) string { return strings.ReplaceAll(s, "\x00", "\x00\xff") + "\x00\x01" }

// CutText decodes the text that [Text] encoded at the start of s, and returns the rest of s behind it. False if s
// does not begin with such a text.
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

// Int encodes n as 8 bytes. The bytes of two numbers sort as the numbers do, negative ones included.
func Int(n int64) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(n)^1<<63))
}

// ParseInt decodes the number that [Int] encoded at the start of s. s must have at least 8 bytes.
func ParseInt(s string) int64 {
	return int64(binary.BigEndian.Uint64([]byte(s[:8])) ^ 1<<63)
}

// Time encodes t, to the microsecond, as 8 bytes that sort by time.
func Time(t time.Time) string { return Int(t.UnixMicro()) }

// ParseTime decodes the time, in UTC, that [Time] encoded at the start of s. s must have at least 8 bytes.
func ParseTime(s string) time.Time { return time.UnixMicro(ParseInt(s)).UTC() }

// UUID returns the 16 bytes of an id as a string, for use in an ID or an index value.
func UUID(id uuid.UUID) string { return string(id[:]) }

// ParseUUID decodes the id that [UUID] encoded at the start of s. s must have at least 16 bytes.
func ParseUUID(s string) (id uuid.UUID) {
	copy(id[:], s)
	return id
}

// Reverse inverts every bit of s. Strings of one length, such as those of [Int] and [Time], then sort in the
// opposite order.
func Reverse(s string) string {
	b := []byte(s)
	for i := range b {
		b[i] = ^b[i]
	}
	return string(b)
}

// End returns the exclusive end of the range that begins with prefix and has all values with this prefix; "" if the
// range has no end, because every byte of prefix is 255.
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
