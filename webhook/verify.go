package webhook

import (
	"crypto/hmac"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// DefaultTolerance is how far the timestamp of a message may be from the receiver's
// clock, either way, inclusive.
const DefaultTolerance = 300 * time.Second

// VerifyReason is the reason for refusing a signed message.
type VerifyReason string

// The values of [VerifyReason], in the order in which [Verifier] checks them.
const (
	MissingHeader       VerifyReason = "missing_header"
	BadTimestamp        VerifyReason = "bad_timestamp"
	TimestampTooOld     VerifyReason = "timestamp_too_old"
	TimestampTooNew     VerifyReason = "timestamp_too_new"
	NoMatchingSignature VerifyReason = "no_matching_signature"
)

// VerifyError reports why a message was refused. It unwraps to [healthlab.Unauthenticated].
type VerifyError struct{ Reason VerifyReason }

// Error returns a text with the Reason and nothing of the message.
func (e *VerifyError) Error() string { return "webhook message refused: " + string(e.Reason) }

// Unwrap returns [healthlab.Unauthenticated].
func (e *VerifyError) Unwrap() error { return healthlab.Unauthenticated }

// Verifier checks signed messages. The zero value is the default. Immutable; safe
// for concurrent use.
type Verifier struct {
	// Tolerance is how far the timestamp may be from the receiver's clock. Default
	// [DefaultTolerance].
	Tolerance time.Duration
	// Prefix is another prefix of the three headers, used if the header with "webhook-" is missing. Empty means
	// none.
	Prefix string
}

// Verify checks a message as the default [Verifier] does.
func Verify(body []byte, h http.Header, at time.Time, secrets ...Secret) error {
	return Verifier{}.Verify(body, h, at, secrets...)
}

// VerifyArchived checks a message as the default [Verifier] does, but not its timestamp.
func VerifyArchived(body []byte, h http.Header, secrets ...Secret) error {
	return Verifier{}.VerifyArchived(body, h, secrets...)
}

// Verify checks that the message was signed with one of the secrets and that its timestamp is near at, the
// receiver's clock. body is the raw body: parse it only after Verify returned nil, and use the webhook-id to
// detect repeats.
//
// The error is a [*VerifyError], or Invalid if a secret is empty.
func (v Verifier) Verify(body []byte, h http.Header, at time.Time, secrets ...Secret) error {
	return v.verify(body, h, secrets, func(ts int64) VerifyReason {
		tolerance := v.Tolerance
		if tolerance == 0 {
			tolerance = DefaultTolerance
		}
		now, slack := at.Unix(), int64(tolerance/time.Second)
		switch {
		case ts < now-slack:
			return TimestampTooOld
		case ts > now+slack:
			return TimestampTooNew
		default:
			return ""
		}
	})
}

// VerifyArchived is Verify without the check of the timestamp, for stored messages.
func (v Verifier) VerifyArchived(body []byte, h http.Header, secrets ...Secret) error {
	return v.verify(body, h, secrets, func(int64) VerifyReason { return "" })
}

func (v Verifier) verify(body []byte, h http.Header, secrets []Secret, age func(int64) VerifyReason) error {
	for i, s := range secrets {
		if s.IsZero() {
			return fmt.Errorf("%w: secrets[%d]: must not be the zero Secret; ParseSecret returns one from its text", healthlab.Invalid, i)
		}
	}
	id, timestamp, signatures := v.header(h, "id"), v.header(h, "timestamp"), v.header(h, "signature")
	if id == "" || timestamp == "" || signatures == "" {
		return &VerifyError{MissingHeader}
	}
	ts, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || strconv.FormatInt(ts, 10) != timestamp {
		return &VerifyError{BadTimestamp}
	}
	if f := age(ts); f != "" {
		return &VerifyError{f}
	}
	// With a full stop in the id, one signature could match two messages.
	if strings.Contains(id, ".") || !matches(signatures, expected(secrets, id, timestamp, body)) {
		return &VerifyError{NoMatchingSignature}
	}
	return nil
}

func expected(secrets []Secret, id, timestamp string, body []byte) [][]byte {
	out := make([][]byte, len(secrets))
	for i, s := range secrets {
		out[i] = []byte(sign(s, id, timestamp, body))
	}
	return out
}

// matches reports whether the signature header has one of the expected signatures. It skips signatures of unknown
// versions.
func matches(header string, expected [][]byte) bool {
	for item := range strings.SplitSeq(header, " ") {
		if !strings.HasPrefix(item, "v1,") {
			continue
		}
		for _, e := range expected {
			if hmac.Equal([]byte(item), e) {
				return true
			}
		}
	}
	return false
}

// header returns the value of the header "webhook-" and suffix, or else of that with v.Prefix, ignoring case; empty if
// there is neither.
func (v Verifier) header(h http.Header, suffix string) string {
	for _, prefix := range []string{"webhook-", v.Prefix} {
		if prefix == "" {
			continue
		}
		for name, values := range h {
			if len(values) > 0 && values[0] != "" && strings.EqualFold(name, prefix+suffix) {
				return values[0]
			}
		}
	}
	return ""
}
