package webhook

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/healthlab-dev/healthlab"
)

const (
	secretPrefix  = "whsec_"
	secretLen     = 32 // of a generated secret, in bytes
	secretLenMin  = 24
	secretLenMax  = 64
	secretForLogs = secretPrefix + "[redacted]"
)

// Secret is a key that a sender and a receiver share. It prints, logs and marshals
// without showing itself; [Secret.Text] is the one way to read it. The zero value is
// no secret: it signs and verifies nothing. Immutable.
type Secret struct{ key string }

// ParseSecret reads the text form: "whsec_" (which may be missing) and the standard
// base64, padded, of 24 to 64 bytes. Anything else is Invalid.
func ParseSecret(text string) (Secret, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(text, secretPrefix))
	if err != nil || strings.ContainsAny(text, "\r\n") || len(b) < secretLenMin || len(b) > secretLenMax {
		return Secret{}, fmt.Errorf("%w: a secret is whsec_ and the base64 of %d to %d bytes",
			healthlab.Invalid, secretLenMin, secretLenMax)
	}
	return Secret{string(b)}, nil
}

// GenerateSecret makes a secret of 32 bytes from random, which must be a
// cryptographic source (crypto/rand.Reader).
func GenerateSecret(random io.Reader) (Secret, error) {
	b := make([]byte, secretLen)
	if _, err := io.ReadFull(random, b); err != nil {
		return Secret{}, fmt.Errorf("generate secret: %w", err)
	}
	return Secret{string(b)}, nil
}

// IsZero reports whether s is no secret.
func (s Secret) IsZero() bool { return s.key == "" }

// Text returns the text form, for the receiver to keep. Empty for no secret.
func (s Secret) Text() string {
	if s.IsZero() {
		return ""
	}
	return secretPrefix + base64.StdEncoding.EncodeToString([]byte(s.key))
}

// String does not show the secret.
func (s Secret) String() string { return secretForLogs }

// GoString does not show the secret.
func (s Secret) GoString() string { return secretForLogs }

// LogValue does not show the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(secretForLogs) }

// MarshalText does not show the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(secretForLogs), nil }
