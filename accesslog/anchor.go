package accesslog

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Anchor is a signed head of a chain.
type Anchor struct {
	Head
	// At is when the anchor was signed.
	At time.Time
	// KeyID names the public key; see [KeyID].
	KeyID string
	// Signature is the Ed25519 signature of Message.
	Signature []byte
}

// KeyID returns the name of a public key: the first 16 hexadecimal digits of its SHA-256.
func KeyID(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:8])
}

// Message returns the text that is signed.
func (a *Anchor) Message() []byte {
	return fmt.Appendf(nil, "healthlab access log anchor\n%s\n%d\n%s\n%s\n", a.Team, a.Seq, a.Hash, a.At.UTC().Format(TimeForm))
}

// Sign returns the anchor of a head.
func Sign(head Head, at time.Time, key ed25519.PrivateKey) Anchor {
	a := Anchor{Head: head, At: at.UTC().Truncate(time.Microsecond), KeyID: KeyID(key.Public().(ed25519.PublicKey))}
	a.Signature = ed25519.Sign(key, a.Message())
	return a
}

// Verify fails unless key signed the anchor.
func (a *Anchor) Verify(key ed25519.PublicKey) error {
	if a.KeyID != KeyID(key) || !ed25519.Verify(key, a.Message(), a.Signature) {
		return fmt.Errorf("%w: access log: the signature of the anchor of line %d is wrong", healthlab.Conflict, a.Seq)
	}
	return nil
}
