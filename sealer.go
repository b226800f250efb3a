package healthlab

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
)

// Sealed is something encrypted, and the name of the key that opens it. The zero value
// is nothing.
type Sealed struct {
	// KeyID names the key, which is not the key.
	KeyID string
	// Box is the ciphertext with whatever the sealer needs to open it.
	Box []byte
}

// Sealer encrypts what a store must not hold in clear: signing secrets, header values and
// credentials at providers. A host whose keys are in a vault implements its own.
// Implementations must be safe for concurrent use.
type Sealer interface {
	// Seal encrypts plain with the current key. bound is neither secret nor stored;
	// the box opens with the same bytes alone, so that a box copied to another
	// row does not open. Neither argument is changed.
	Seal(ctx context.Context, plain, bound []byte) (Sealed, error)
	// Open decrypts a box with the key that it names. Unavailable if that key is not at
	// hand, Invalid if the box does not open; neither returns any plaintext.
	Open(ctx context.Context, box Sealed, bound []byte) ([]byte, error)
}

// aesKeyLen is the length of a key of AES-256.
const aesKeyLen = 32

// AESSealer is a [Sealer] with keys in memory: AES-256-GCM (NIST SP 800-38D) under a
// random nonce, which goes before the ciphertext. Immutable; safe for concurrent use.
//
// To rotate, make one whose current key is the new one and which still has the old
// ones: what is written from then on is under the new key.
type AESSealer struct {
	current string
	keys    map[string]cipher.AEAD
}

// NewAESSealer returns a sealer that seals with the key named current and opens with any
// of keys, each 32 random bytes. Invalid if one is not, or current is not among them.
func NewAESSealer(current string, keys map[string][]byte) (*AESSealer, error) {
	s := &AESSealer{current: current, keys: map[string]cipher.AEAD{}}
	for id, key := range keys {
		if len(key) != aesKeyLen || id == "" {
			return nil, fmt.Errorf("%w: a sealing key must have a name and %d bytes", Invalid, aesKeyLen)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("sealing key: %w", err)
		}
		if s.keys[id], err = cipher.NewGCM(block); err != nil {
			return nil, fmt.Errorf("sealing key: %w", err)
		}
	}
	if s.keys[current] == nil {
		return nil, fmt.Errorf("%w: the name of the current sealing key must be one of the keys' names", Invalid)
	}
	return s, nil
}

// Seal encrypts plain with the current key.
func (s *AESSealer) Seal(_ context.Context, plain, bound []byte) (Sealed, error) {
	aead := s.keys[s.current]
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(plain)+aead.Overhead())
	if _, err := rand.Read(nonce); err != nil {
		return Sealed{}, fmt.Errorf("seal: %w", err)
	}
	return Sealed{KeyID: s.current, Box: aead.Seal(nonce, nonce, plain, bound)}, nil
}

// Open decrypts a box with the key that it names. Unavailable if the sealer does not
// have that key, Invalid if the box does not open.
func (s *AESSealer) Open(_ context.Context, box Sealed, bound []byte) ([]byte, error) {
	aead := s.keys[box.KeyID]
	if aead == nil {
		return nil, fmt.Errorf("decrypt: %w: no sealing key has the name that the encrypted value gives", Unavailable)
	}
	if len(box.Box) < aead.NonceSize() {
		return nil, fmt.Errorf("decrypt: %w: the encrypted value is too short", Invalid)
	}
	nonce, text := box.Box[:aead.NonceSize()], box.Box[aead.NonceSize():]
	plain, err := aead.Open(nil, nonce, text, bound)
	if err != nil {
		return nil, fmt.Errorf("decrypt: %w: the encrypted value does not match its key", Invalid)
	}
	return plain, nil
}

// String names the current key and shows none.
func (s *AESSealer) String() string { return "sealer with key " + s.current }

// Format writes String, whatever the verb.
func (s *AESSealer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue is String.
func (s *AESSealer) LogValue() slog.Value { return slog.StringValue(s.String()) }
