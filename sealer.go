package healthlab

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// Sealed is an encrypted value, with the id of its key. The zero value is empty.
type Sealed struct {
	// KeyID identifies the key; it is not secret.
	KeyID string
	// Box is the ciphertext with the data that the sealer needs to decrypt it, such as a nonce.
	Box []byte
}

// Sealer encrypts values that a store must not hold in clear: signing secrets, header values and credentials at
// providers. A host with a key vault writes its own. Implementations must be safe for concurrent use.
type Sealer interface {
	// Seal encrypts plain with the current key. bound is additional data that is neither secret nor stored;
	// decryption requires the same bytes, so that a value which is copied to another row cannot be decrypted.
	// Neither argument is changed.
	Seal(ctx context.Context, plain, bound []byte) (Sealed, error)
	// Open decrypts a box with the key that it names. Unavailable if the sealer does not have that key, Invalid
	// if the decryption fails; neither returns any plaintext.
	Open(ctx context.Context, box Sealed, bound []byte) ([]byte, error)
}

// aesKeyLen is the length of an AES-256 key in bytes.
const aesKeyLen = 32

// AESSealer is a [Sealer] with keys in memory: AES-256-GCM (NIST SP 800-38D) with a random nonce, which
// precedes the ciphertext. Immutable; safe for concurrent use.
//
// To rotate keys, make an AESSealer whose current key is the new one and which still has the old ones: new
// values are then encrypted with the new key.
type AESSealer struct {
	current string
	keys    map[string]cipher.AEAD
}

// NewAESSealer returns a sealer that encrypts with the key named current and decrypts with any of keys, each 32
// random bytes. Invalid if a key has another length, or keys lacks current.
func NewAESSealer(current string, keys map[string][]byte) (*AESSealer, error) {
	s := &AESSealer{current: current, keys: map[string]cipher.AEAD{}}
	for id, key := range keys {
		switch {
		case id == "":
			return nil, fmt.Errorf("%w: the name of a sealing key must not be empty", Invalid)
		case len(key) != aesKeyLen:
			return nil, fmt.Errorf("%w: sealing key %q: must have %d bytes; it has %d", Invalid, id, aesKeyLen, len(key))
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
		return nil, fmt.Errorf("%w: the current sealing key is %q; it must be one of: %s", Invalid, current, strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
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

// Open decrypts a box with the key that it names. Unavailable if the sealer does not have that key, Invalid if
// the decryption fails.
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

// String returns the id of the current key, and no key.
func (s *AESSealer) String() string { return "sealer with key " + s.current }

// Format writes the result of String for every verb.
func (s *AESSealer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue logs the result of String.
func (s *AESSealer) LogValue() slog.Value { return slog.StringValue(s.String()) }
