package webhook

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"

	"github.com/healthlab-dev/healthlab"
)

// sealKeyLen is the length of a key of AES-256.
const sealKeyLen = 32

// AESSealer is a [Sealer] that holds its keys in memory: AES-256-GCM with a random
// nonce, which goes before the ciphertext. Immutable; safe for concurrent use.
//
// To rotate, make a sealer whose current key is the new one and which still has the
// old one; what is written from then on is under the new key.
type AESSealer struct {
	current string
	keys    map[string]cipher.AEAD
	random  io.Reader
}

// NewAESSealer returns a sealer that seals with the key named current and opens with
// any of keys. Each key is 32 random bytes. Invalid if one is not, or if there is no
// key of that name.
func NewAESSealer(current string, keys map[string][]byte) (*AESSealer, error) {
	s := &AESSealer{current: current, keys: map[string]cipher.AEAD{}, random: rand.Reader}
	for id, key := range keys {
		if len(key) != sealKeyLen || id == "" {
			return nil, fmt.Errorf("%w: a sealing key has a name and %d bytes", healthlab.Invalid, sealKeyLen)
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
		return nil, fmt.Errorf("%w: the current sealing key is not among the keys", healthlab.Invalid)
	}
	return s, nil
}

// Seal encrypts plain with the current key.
func (s *AESSealer) Seal(_ context.Context, plain, bound []byte) (Sealed, error) {
	aead := s.keys[s.current]
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(plain)+aead.Overhead())
	if _, err := io.ReadFull(s.random, nonce); err != nil {
		return Sealed{}, fmt.Errorf("seal: %w", err)
	}
	return Sealed{KeyID: s.current, Box: aead.Seal(nonce, nonce, plain, bound)}, nil
}

// Open decrypts a box with the key that it names. Unavailable if the sealer does not
// have that key; Invalid if the box does not open.
func (s *AESSealer) Open(_ context.Context, box Sealed, bound []byte) ([]byte, error) {
	aead := s.keys[box.KeyID]
	if aead == nil {
		return nil, fmt.Errorf("open: %w: the sealing key is not at hand", healthlab.Unavailable)
	}
	if len(box.Box) < aead.NonceSize() {
		return nil, fmt.Errorf("open: %w: the box is too short", healthlab.Invalid)
	}
	nonce, text := box.Box[:aead.NonceSize()], box.Box[aead.NonceSize():]
	plain, err := aead.Open(nil, nonce, text, bound)
	if err != nil {
		return nil, fmt.Errorf("open: %w: the box does not open with its key", healthlab.Invalid)
	}
	return plain, nil
}

// String names the current key and shows none.
func (s *AESSealer) String() string { return "sealer with key " + s.current }

// GoString names the current key and shows none.
func (s *AESSealer) GoString() string { return s.String() }

// LogValue names the current key and shows none.
func (s *AESSealer) LogValue() slog.Value { return slog.StringValue(s.String()) }

// The places that boxes are bound to. A box copied to another row does not open.
func secretPlace(e *Endpoint, id fmt.Stringer) []byte {
	return []byte("secret " + e.Team.String() + " " + e.ID.String() + " " + id.String())
}

func headerPlace(e *Endpoint, name string) []byte {
	return []byte("header " + e.Team.String() + " " + e.ID.String() + " " + name)
}
