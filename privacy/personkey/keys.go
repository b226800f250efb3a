// Package personkey encrypts personal data with a key of its own for each person. Deleting the
// key makes the person's data in backups, logs and copies unreadable as well.
//
//	keys := personkey.New(store, sealer, nil)
//	box, err := keys.Seal(ctx, personkey.Ref{Team: team, User: user}, "order/"+id, doc)
//	doc, err := keys.Open(ctx, personkey.Ref{Team: team, User: user}, "order/"+id, box)
//	err = keys.Delete(ctx, personkey.Ref{Team: team, User: user}) // no box of the person opens
//
// The names to know: [Keys] encrypts (seals) and decrypts (opens) values; [Store] stores the
// encrypted keys, which a host backs up apart from the data; [Ref] identifies the person of a
// key; [Keys.Tokens] turns terms into numbers that can be searched for equality; [Keys.Rotate]
// encrypts the keys under a newer key of the host.
//
// [Keys.Sealer] encrypts secrets of the installation and of its teams. A file has a random key
// of its own, and this package encrypts that key (see adapters/operations/blob).
package personkey

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Ref identifies a key. With a User it is the key of this person; with a zero User it is the key of the team, for
// data about no person. The zero Ref is the key of the installation's operator.
type Ref struct {
	Team healthlab.TeamID
	User healthlab.UserID
}

// ErrErased says that the key was deleted, or that this store never had it. It is a [healthlab.NotFound] error.
var ErrErased = fmt.Errorf("%w: the key of the person was deleted", healthlab.NotFound)

// Options are the options of Keys. The zero value, and nil, mean the defaults.
type Options struct {
	// Cached is the highest number of decrypted keys in memory. Default 10,000.
	Cached int
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Keys encrypts data, each person's with a key of its own. A nil *Keys encrypts nothing. Keys is safe for
// concurrent use.
type Keys struct {
	healthlab.Private

	store  Store
	sealer healthlab.Sealer
	opts   Options

	mu     sync.Mutex // protects opened
	opened map[Ref]cached
}

type cached struct {
	key   *key
	until time.Time
}

// key is the decrypted key of a person, a team or the operator. Two keys are derived from it: one for AES-256-GCM
// encrypts values, one for HMAC-SHA-256 makes digests and tokens.
type key struct {
	aead cipher.AEAD
	mac  []byte
}

// lifetime is the time for which a decrypted key stays in memory. If another process deletes the key, this process
// can still decrypt data for at most that time.
const lifetime = 5 * time.Minute

// keyBytes is the length of a key in bytes.
const keyBytes = 32

// New returns Keys that are stored in store. sealer encrypts the keys before they are stored.
func New(store Store, sealer healthlab.Sealer, opts *Options) *Keys {
	k := &Keys{store: store, sealer: sealer, opened: map[Ref]cached{}}
	if opts != nil {
		k.opts = *opts
	}
	if k.opts.Cached <= 0 {
		k.opts.Cached = 10_000
	}
	if k.opts.Now == nil {
		k.opts.Now = time.Now
	}
	return k
}

// format is the first byte of every encrypted value. Unencrypted values in a store never begin with it: neither
// UTF-8 text nor encoded samples do.
const format = 0x81

// Seal encrypts plain with the key of ref, and creates the key if ref never had one. bound is the name of the
// value's row and column: Open must get the same ref and bound, so a value that is copied to another row cannot be
// decrypted. ErrErased if the key was deleted. A nil *Keys returns plain.
func (k *Keys) Seal(ctx context.Context, ref Ref, bound string, plain []byte) ([]byte, error) {
	if k == nil {
		return plain, nil
	}
	key, err := k.ensure(ctx, ref)
	if err != nil {
		return nil, err
	}
	return key.sealBox(ref, bound, plain)
}

// Sealed reports whether a stored value is encrypted, by its first byte.
func Sealed(data []byte) bool { return len(data) > 0 && data[0] == format }

// OpenBytes is [Keys.Open] for bytes of any form, such as files. A nil *Keys returns them unchanged, even if they
// begin like an encrypted value.
func (k *Keys) OpenBytes(ctx context.Context, ref Ref, bound string, box []byte) ([]byte, error) {
	if k == nil {
		return box, nil
	}
	return k.Open(ctx, ref, bound, box)
}

// Open decrypts a value that Seal encrypted with the same ref and bound; an empty value stays empty. ErrErased if
// the key was deleted. Invalid if the value is of another row, damaged or not encrypted. A nil *Keys returns
// unencrypted values, and Unavailable for an encrypted one.
func (k *Keys) Open(ctx context.Context, ref Ref, bound string, box []byte) ([]byte, error) {
	switch {
	case len(box) == 0:
		return box, nil
	case k == nil && !Sealed(box):
		return box, nil
	case k == nil:
		return nil, fmt.Errorf("decrypt: %w: the data is encrypted: the store must be made with keys", healthlab.Unavailable)
	case !Sealed(box):
		return nil, fmt.Errorf("decrypt: %w: the data is not encrypted: the store must be made without keys", healthlab.Invalid)
	}
	key, err := k.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	return key.openBox(ref, bound, box)
}

func extra(ref Ref, bound string) []byte {
	b := make([]byte, 0, 32+len(bound))
	b = append(append(b, ref.Team.UUID[:]...), ref.User.UUID[:]...)
	return append(b, bound...)
}

// Digest returns 32 bytes that are equal for equal data of one ref, and reveal nothing about the data without its
// key. A nil *Keys returns the SHA-256.
func (k *Keys) Digest(ctx context.Context, ref Ref, data []byte) ([]byte, error) {
	if k == nil {
		sum := sha256.Sum256(data)
		return sum[:], nil
	}
	key, err := k.ensure(ctx, ref)
	if err != nil {
		return nil, err
	}
	return key.sum(data), nil
}

func (k *key) sum(data []byte) []byte {
	h := hmac.New(sha256.New, k.mac)
	h.Write(data)
	return h.Sum(nil)
}

// Tokens returns a number for each term, so that a store can find rows by an encrypted term. Equal terms of one
// team have equal numbers. A number is the HMAC of the term with the team's key, cut to 64 bits. With a nil *Keys
// it is a hash that anyone can compute.
func (k *Keys) Tokens(ctx context.Context, team healthlab.TeamID, terms []string) ([]int64, error) {
	out := make([]int64, 0, len(terms))
	if len(terms) == 0 {
		return out, nil
	}
	sum := func(data []byte) []byte { s := sha256.Sum256(data); return s[:] }
	if k != nil {
		key, err := k.ensure(ctx, Ref{Team: team})
		if err != nil {
			return nil, err
		}
		sum = key.sum
	}
	for _, t := range terms {
		out = append(out, int64(binary.BigEndian.Uint64(sum([]byte("term "+t)))))
	}
	return out, nil
}

// Load fetches and decrypts the keys of many persons with one call of the Store, so that later calls of Open need
// no Store. It skips deleted keys.
func (k *Keys) Load(ctx context.Context, refs []Ref) error {
	if k == nil {
		return nil
	}
	var missing []Ref
	seen := map[Ref]bool{}
	for _, ref := range refs {
		if k.remembered(ref) == nil && !seen[ref] {
			missing = append(missing, ref)
			seen[ref] = true
		}
	}
	if len(missing) == 0 {
		return nil
	}
	found, err := k.store.Find(ctx, missing)
	if err != nil {
		return fmt.Errorf("find the keys of persons: %w", err)
	}
	for _, e := range found {
		if _, err := k.open(ctx, e); err != nil && !errors.Is(err, ErrErased) {
			return err
		}
	}
	return nil
}

// Delete removes a key permanently. Data that was encrypted with it can no longer be decrypted, and no new key is
// ever created for the ref. Deleting twice is no error.
func (k *Keys) Delete(ctx context.Context, ref Ref) error {
	if k == nil {
		return nil
	}
	if err := k.store.Delete(ctx, ref); err != nil {
		return fmt.Errorf("delete the key of a person: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.opened, ref)
	return nil
}

// EachDeleted calls do for every ref whose key was deleted. It stops at the first error of do and returns it unchanged.
func (k *Keys) EachDeleted(ctx context.Context, do func(Ref) error) error {
	const page = 500
	for after := (Ref{}); ; {
		refs, err := k.store.Deleted(ctx, after, page)
		if err != nil {
			return fmt.Errorf("find deleted keys: %w", err)
		}
		for _, ref := range refs {
			if err := do(ref); err != nil {
				return err
			}
			after = ref
		}
		if len(refs) < page {
			return nil
		}
	}
}

// find returns the decrypted key of a ref. ErrErased if the ref has no key.
func (k *Keys) find(ctx context.Context, ref Ref) (*key, error) {
	if key := k.remembered(ref); key != nil {
		return key, nil
	}
	found, err := k.store.Find(ctx, []Ref{ref})
	if err != nil {
		return nil, fmt.Errorf("find the key of a person: %w", err)
	}
	if len(found) == 0 {
		return nil, ErrErased
	}
	return k.open(ctx, found[0])
}

// ensure returns the decrypted key of a ref. It creates a key if the ref never had one. ErrErased if it was
// deleted.
func (k *Keys) ensure(ctx context.Context, ref Ref) (*key, error) {
	if key := k.remembered(ref); key != nil {
		return key, nil
	}
	found, err := k.store.Find(ctx, []Ref{ref})
	if err != nil {
		return nil, fmt.Errorf("find the key of a person: %w", err)
	}
	if len(found) > 0 {
		return k.open(ctx, found[0])
	}
	secret := make([]byte, keyBytes)
	if _, err := rand.Read(secret); err != nil {
		return nil, fmt.Errorf("make the key of a person: %w", err)
	}
	sealed, err := k.sealer.Seal(ctx, secret, extra(ref, ofKey))
	if err != nil {
		return nil, fmt.Errorf("seal the key of a person: %w", err)
	}
	kept, err := k.store.Insert(ctx, Entry{ref, sealed})
	if err != nil {
		return nil, fmt.Errorf("keep the key of a person: %w", err)
	}
	return k.open(ctx, kept)
}

// ofKey is authenticated together with the Ref when the Sealer encrypts a key, so no other sealed value is taken
// for a key.
const ofKey = "person key"

// open decrypts a stored key and keeps it in memory for [lifetime].
func (k *Keys) open(ctx context.Context, e Entry) (*key, error) {
	if e.Key.KeyID == "" {
		return nil, ErrErased
	}
	secret, err := k.sealer.Open(ctx, e.Key, extra(e.Ref, ofKey))
	if err != nil {
		return nil, fmt.Errorf("open the key of a person: %w", err)
	}
	key, err := derive(secret)
	if err != nil {
		return nil, err
	}
	now := k.opts.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	for old, c := range k.opened { // remove keys in random order until there is room
		if len(k.opened) < k.opts.Cached && now.Before(c.until) {
			break
		}
		delete(k.opened, old)
	}
	k.opened[e.Ref] = cached{key, now.Add(lifetime)}
	return key, nil
}

func derive(secret []byte) (*key, error) {
	boxes, err := hkdf.Key(sha256.New, secret, nil, "healthlab person: boxes", keyBytes)
	if err != nil {
		return nil, fmt.Errorf("derive from the key of a person: %w", err)
	}
	mac, err := hkdf.Key(sha256.New, secret, nil, "healthlab person: digests", keyBytes)
	if err != nil {
		return nil, fmt.Errorf("derive from the key of a person: %w", err)
	}
	block, err := aes.NewCipher(boxes)
	if err != nil {
		return nil, fmt.Errorf("derive from the key of a person: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	return &key{aead, mac}, err
}

// remembered returns the decrypted key of a ref from memory; nil if it is not there or its lifetime has ended.
func (k *Keys) remembered(ref Ref) *key {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, ok := k.opened[ref]
	if !ok || !k.opts.Now().Before(c.until) {
		return nil
	}
	return c.key
}
