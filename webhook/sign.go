package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
)

const (
	secretPrefix  = "whsec_"
	secretLen     = 32 // length of a generated secret, in bytes
	secretLenMin  = 24
	secretLenMax  = 64
	secretForLogs = secretPrefix + "[redacted]"
)

// Secret is a key that a sender and a receiver share. Printing, logging and marshalling do not show it; only
// [Secret.Text] returns it. The zero value is no secret: it signs and verifies nothing. Immutable.
type Secret struct {
	healthlab.Private

	key string
}

// ParseSecret reads the text form: "whsec_" (which may be missing) and the standard
// base64, padded, of 24 to 64 bytes. Anything else is Invalid.
func ParseSecret(text string) (Secret, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(text, secretPrefix))
	if err != nil || strings.ContainsAny(text, "\r\n") || len(b) < secretLenMin || len(b) > secretLenMax {
		return Secret{}, fmt.Errorf("%w: secret: must be whsec_ and the base64 of %d to %d bytes",
			healthlab.Invalid, secretLenMin, secretLenMax)
	}
	return Secret{key: string(b)}, nil
}

// GenerateSecret makes a secret of 32 bytes from random, which must be a
// cryptographic source (crypto/rand.Reader).
func GenerateSecret(random io.Reader) (Secret, error) {
	b := make([]byte, secretLen)
	if _, err := io.ReadFull(random, b); err != nil {
		return Secret{}, fmt.Errorf("generate secret: %w", err)
	}
	return Secret{key: string(b)}, nil
}

// IsZero reports whether s is the zero value.
func (s Secret) IsZero() bool { return s.key == "" }

// Text returns the text form for the receiver; empty for the zero value.
func (s Secret) Text() string {
	if s.IsZero() {
		return ""
	}
	return secretPrefix + base64.StdEncoding.EncodeToString([]byte(s.key))
}

// MarshalText returns a placeholder and not the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(secretForLogs), nil }

// The headers of a signed message in Standard Webhooks 1.0.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// Sign returns the signature of one message, as Standard Webhooks 1.0 defines it for
// shared secrets: "v1," and the base64 of HMAC-SHA256 over id, a full stop, the Unix
// second of at, a full stop, and the body. id must not hold a full stop. The zero
// secret signs nothing: the signature is empty.
func Sign(secret Secret, id string, at time.Time, body []byte) string {
	if secret.IsZero() {
		return ""
	}
	return sign(secret, id, strconv.FormatInt(at.Unix(), 10), body)
}

func sign(secret Secret, id, timestamp string, body []byte) string {
	var room, text [64]byte // enough for most messages, with one allocation
	head := append(append(append(append(room[:0], id...), '.'), timestamp...), '.')
	mac := hmac.New(sha256.New, []byte(secret.key))
	mac.Write(head)
	mac.Write(body)
	sum := mac.Sum(room[:0])
	return string(base64.StdEncoding.AppendEncode(append(text[:0], "v1,"...), sum))
}

// SetSignature sets the three signature headers on h. secrets are the active ones, the newest first; each of
// them signs, so that a receiver who still has the old one can verify during a rotation.
func SetSignature(h http.Header, id string, at time.Time, body []byte, secrets ...Secret) {
	signatures := make([]string, 0, len(secrets))
	for _, s := range secrets {
		if !s.IsZero() {
			signatures = append(signatures, Sign(s, id, at, body))
		}
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
	h.Set(HeaderSignature, strings.Join(signatures, " "))
}
