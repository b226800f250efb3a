// Package personkey encrypts personal data with a key of its own for each person. Who deletes
// the key erases the person from backups, logs and copies as well.
//
//	keys := personkey.New(store, sealer, nil)
//	box, err := keys.Seal(ctx, personkey.Ref{Team: team, User: user}, "order/"+id, doc)
//	doc, err := keys.Open(ctx, personkey.Ref{Team: team, User: user}, "order/"+id, box)
//	err = keys.Delete(ctx, personkey.Ref{Team: team, User: user}) // no box of the person opens
//
// The names to know: [Keys] seals and opens; [Store] keeps the sealed keys, which a host
// backs up apart from the data; [Ref] names whose key it is; [Keys.Tokens] makes what is
// searched by equality; [Keys.Rotate] seals the keys under a newer key of the host.
//
// [Keys.Sealer] encrypts secrets of the installation and of its teams. Of a file the package
// encrypts the file's own key (adapters/operations/blob).
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

// Ref identifies a key: that of a user or, with a zero User, that of the team for data about no user. The zero
// Ref is the key of the installation's operator.
type Ref struct {
	Team healthlab.TeamID
	User healthlab.UserID
}

// ErrErased is a [healthlab.NotFound] error: the key was deleted, or never was in this store.
var ErrErased = fmt.Errorf("%w: the key of the person was deleted", healthlab.NotFound)

// Options are the options of Keys. The zero value, and nil, mean the defaults.
type Options struct {
	// Cached is the number of decrypted keys in memory. Default 10,000.
	Cached int
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Keys encrypts data with the keys of persons. A nil *Keys encrypts nothing: it returns the plaintext. Safe for
// concurrent use.
type Keys struct {
	healthlab.Private

	store  Store
	sealer healthlab.Sealer
	opts   Options

	mu     sync.Mutex // guards opened
	opened map[Ref]cached
}

type cached struct {
	key   *key
	until time.Time
}

// key is a decrypted key: AES-256-GCM for values, HMAC-SHA-256 for digests and tokens, each under a key derived
// from it.
type key struct {
	aead cipher.AEAD
	mac  []byte
}

// lifetime is the time for which a decrypted key stays in memory. After a deletion in another process, this
// process can decrypt data for at most that time.
const lifetime = 5 * time.Minute

// keyBytes is the length of a key.
const keyBytes = 32

// New returns Keys over a store. sealer encrypts the keys themselves.
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

// format is the first byte of an encrypted value. No plaintext in a store begins with it: UTF-8 text does not,
// and encoded samples do not.
const format = 0x81

// Seal encrypts plain with the key of a person, which it creates if there is none. bound identifies the row: a
// value that is copied to another row cannot be decrypted. ErrErased if the key was deleted.
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

// Sealed reports whether a stored value is encrypted.
func Sealed(data []byte) bool { return len(data) > 0 && data[0] == format }

// OpenBytes is [Keys.Open] for data of any form, such as files. With a nil *Keys it returns all bytes
// unchanged, also those that begin like an encrypted value.
func (k *Keys) OpenBytes(ctx context.Context, ref Ref, bound string, box []byte) ([]byte, error) {
	if k == nil {
		return box, nil
	}
	return k.Open(ctx, ref, bound, box)
}

// Open decrypts a value; an empty value gives nothing. ErrErased if the key was deleted, Invalid if the value
// is another row's, damaged or not encrypted. With a nil *Keys it returns plaintext, and Unavailable for an
// encrypted value.
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

// Digest returns 32 bytes that are equal for equal data of one person, and reveal nothing without the key. With
// a nil *Keys it is the SHA-256.
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

// Tokens returns a number for each term: the same for the same term within a team, so that a
// store finds rows by equality. It is the HMAC of the term under the team's own key, cut to
// 64 bits. With a nil *Keys it is a hash that anyone can compute.
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

// Load fetches the keys of many persons with one call of the Store, so that later calls of Open need none.
// Deleted keys are skipped.
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

// Delete removes the key of a person permanently: data that was encrypted with it cannot be decrypted, and no
// new key is created for the person. Deleting twice is no error.
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

// EachDeleted calls do for every person whose key was deleted, until it returns an error.
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

// find returns the key of a person. ErrErased if there is none.
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

// ensure returns the key of a person, and creates one for a person who never had a key.
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

// ofKey is additional data with which keys are encrypted, besides their Ref.
const ofKey = "person key"

// open decrypts a key and stores it in memory.
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
	for old, c := range k.opened { // any one makes room; an ended one does no harm
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

// remembered returns a decrypted key from memory; nil if it is not there.
func (k *Keys) remembered(ref Ref) *key {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, ok := k.opened[ref]
	if !ok || !k.opts.Now().Before(c.until) {
		return nil
	}
	return c.key
}
