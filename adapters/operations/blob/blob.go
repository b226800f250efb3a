// Package blob stores files: reports that people uploaded, documents of orders. They are health data, so they are
// encrypted, in a folder or in a bucket of an S3-compatible service.
//
// [New] makes a [Store] of a place and a sealer. It implements the BlobStore interface of every package that has
// one:
//
//	place, err := blob.OpenDirectory("/var/lib/lab/files", nil)
//	files, err := blob.New(place, sealer, &blob.Options{Keys: keys})
//	reports, err := labreport.New(jobs, files, users, extractors, &labreport.Options{Environment: healthlab.Production})
//
// Each file has its own key, which encrypts it piece by piece (the age format, version 1: ChaCha20-Poly1305 over 64
// KiB), so that a large file is never in memory and no part of a damaged piece is returned. The key of the person
// whom the file concerns (package personkey) encrypts the file's key, bound to the file's name. Once the person's
// key is deleted, neither the file nor a copy of it can be read. Without [Options].Keys, the host's
// [healthlab.Sealer] encrypts the file's key, and the header of the file names the sealing key.
package blob

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"

	"filippo.io/age"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

// Place stores encrypted files: a [Directory] or a [Bucket].
//
// A name consists of letters, digits, hyphens, underscores and slashes. Write stores the whole content under a name,
// replacing existing content, or changes nothing: a caller that opens the name reads the old content or the new,
// never a part, even if the process dies or reading the content fails. Open of a missing name returns
// [healthlab.NotFound]; Remove of one returns nil. List calls name for each name, in any order, and stops at the
// first error that name returns. Temporary errors are [healthlab.Unavailable]. Implementations are safe for
// concurrent use, also by several processes.
type Place interface {
	Write(ctx context.Context, name string, content io.Reader) error
	Open(ctx context.Context, name string) (io.ReadCloser, error)
	Remove(ctx context.Context, name string) error
	List(ctx context.Context, name func(string) error) error
}

// Store stores encrypted files in a [Place]. Safe for concurrent use.
type Store struct {
	place Place
	seal  healthlab.Sealer
	keys  *personkey.Keys
}

// Options adjusts a Store. The zero value, and nil, mean the defaults.
type Options struct {
	// Keys encrypts each file with the key of its user. Default: none; the sealer encrypts all files. A Store with
	// Keys cannot open files that the sealer encrypted, and a Store without Keys opens only those.
	Keys *personkey.Keys
}

var (
	_ labreport.BlobStore = (*Store)(nil)
	_ orders.BlobStore    = (*Store)(nil)
)

// New returns a Store. place and seal are required.
func New(place Place, seal healthlab.Sealer, opts *Options) (*Store, error) {
	if place == nil || seal == nil {
		return nil, fmt.Errorf("blob.New: %w: the arguments place and seal must not be nil", healthlab.Invalid)
	}
	s := &Store{place: place, seal: seal}
	if opts != nil {
		s.keys = opts.Keys
	}
	return s, nil
}

func (s *Store) envelope(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string) *envelope {
	return &envelope{ctx: ctx, seal: s.seal, keys: s.keys, owner: personkey.Ref{Team: team, User: user}, key: key}
}

// Put stores content under a key and replaces existing content. After any error nothing is stored. It returns Invalid
// if the key has other characters than letters, digits, hyphens, underscores and single slashes between them, or more
// than 512 bytes. An error of content is returned unchanged (errors.Is works). It returns NotFound if the user's key
// was deleted.
func (s *Store) Put(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string, content io.Reader) error {
	if err := checkKey(key); err != nil {
		return fmt.Errorf("keep file: %w", err)
	}
	sealed, err := age.EncryptReader(&whole{ctx: ctx, r: content}, s.envelope(ctx, team, user, key))
	if err != nil {
		return fmt.Errorf("keep file: %w", err)
	}
	if err := s.place.Write(ctx, key, sealed); err != nil {
		return fmt.Errorf("keep file: %w", err)
	}
	return nil
}

// Get returns the content; the caller must close it. It returns NotFound if there is none or the user's key was
// deleted, Invalid if the file belongs to another user, is damaged or was stored under another key, and Unavailable if
// the sealer lacks the file's sealing key. If a later part of the file is damaged, Read returns an error when it
// reaches that part. A reader that reaches io.EOF has read exactly what was stored.
func (s *Store) Get(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string) (io.ReadCloser, error) {
	if err := checkKey(key); err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	sealed, err := s.place.Open(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	e := s.envelope(ctx, team, user, key)
	plain, err := age.Decrypt(&noted{r: sealed, err: &e.broken}, e)
	if err != nil {
		_ = sealed.Close()
		return nil, fmt.Errorf("read file: %w", e.openError(ctx, err))
	}
	return &opened{plain: plain, sealed: sealed, e: e}, nil
}

// Delete removes a file. It returns nil if the file does not exist.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return fmt.Errorf("delete file: %w", err)
	}
	if err := s.place.Remove(ctx, key); err != nil {
		return fmt.Errorf("delete file: %w", err)
	}
	return nil
}

var reKey = regexp.MustCompile(`^[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*$`)

// longest is the length of the longest key, in bytes.
const longest = 512

func checkKey(key string) error {
	if len(key) > longest || !reKey.MatchString(key) {
		return fmt.Errorf("%w: key: must consist of letters, digits, hyphens, underscores and single slashes between them, in at most %d bytes", healthlab.Invalid, longest)
	}
	return nil
}

// envelope encrypts and decrypts the random key with which one file is encrypted.
type envelope struct {
	ctx    context.Context //nolint:containedctx // age's interfaces have no context; the envelope lives as long as one call
	seal   healthlab.Sealer
	keys   *personkey.Keys // Options.Keys; may be nil
	owner  personkey.Ref
	key    string
	broken error // error that the sealer, the keys or the [Place] returned
}

// Types of this package's entry in the header of a file. A sealedStanza holds the file's key encrypted with a key of
// the host, which its argument names; a personStanza with the key of a person.
const (
	sealedStanza = "healthlab-sealed"
	personStanza = "healthlab-person"
)

func (e *envelope) bound() string { return personkey.RowFile(e.key) }

// Wrap implements age.Recipient.
func (e *envelope) Wrap(fileKey []byte) ([]*age.Stanza, error) {
	if e.keys != nil {
		box, err := e.keys.Seal(e.ctx, e.owner, e.bound(), fileKey)
		if err != nil {
			return nil, fmt.Errorf("encrypt key of file: %w", err)
		}
		return []*age.Stanza{{Type: personStanza, Body: box}}, nil
	}
	box, err := e.seal.Seal(e.ctx, fileKey, []byte(e.bound()))
	if err != nil {
		return nil, fmt.Errorf("seal key of file: %w", err)
	}
	return []*age.Stanza{{Type: sealedStanza, Args: []string{base64.RawStdEncoding.EncodeToString([]byte(box.KeyID))}, Body: box.Box}}, nil
}

// Unwrap implements age.Identity.
func (e *envelope) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	h, ok := parseHead(stanzas)
	if !ok {
		return nil, age.ErrIncorrectIdentity
	}
	var key []byte
	var err error
	switch {
	case h.personal:
		key, err = e.keys.Open(e.ctx, e.owner, e.bound(), h.body)
	case e.keys != nil:
		err = fmt.Errorf("%w: the sealer encrypted the file; open it with a Store without Options.Keys", healthlab.Invalid)
	default:
		key, err = e.seal.Open(e.ctx, healthlab.Sealed{KeyID: h.keyID, Box: h.body}, []byte(e.bound()))
	}
	if err != nil {
		e.broken = err
		return nil, fmt.Errorf("open key of file: %w", err)
	}
	return key, nil
}

// openError returns the error of a file that cannot be opened. If neither the sealer, the keys nor the [Place] returned
// an error, the file is damaged.
func (e *envelope) openError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case e.broken != nil:
		return e.broken
	}
	return fmt.Errorf("%w: the file is damaged: %v", healthlab.Invalid, err)
}

// head is the stanza of this package in the age header of a file: the encrypted file key.
type head struct {
	personal bool   // encrypted with the key of a person
	keyID    string // id of the host's key, if personal is false
	body     []byte
}

// parseHead returns the stanza of this package, which must be the only one in the header of a file.
func parseHead(stanzas []*age.Stanza) (h head, ok bool) {
	if len(stanzas) != 1 {
		return head{}, false
	}
	switch s := stanzas[0]; {
	case s.Type == personStanza && len(s.Args) == 0 && personkey.Sealed(s.Body):
		return head{personal: true, body: s.Body}, true
	case s.Type == sealedStanza && len(s.Args) == 1:
		id, err := base64.RawStdEncoding.DecodeString(s.Args[0])
		return head{keyID: string(id), body: s.Body}, err == nil
	}
	return head{}, false
}

// whole is a reader that returns the error of its context when the context ends.
type whole struct {
	ctx context.Context //nolint:containedctx // it lives as long as one call
	r   io.Reader
}

func (w *whole) Read(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.r.Read(b)
}

// noted is a reader that also stores an error of r in err, because package age would report it as damage of the file.
type noted struct {
	r   io.Reader
	err *error
}

func (n *noted) Read(b []byte) (int, error) {
	k, err := n.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		*n.err = err
	}
	return k, err
}

// opened is the decrypted content of a file, as Store.Get returns it.
type opened struct {
	plain  io.Reader
	sealed io.Closer
	e      *envelope
}

func (o *opened) Read(b []byte) (int, error) {
	n, err := o.plain.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("read file: %w", o.e.openError(o.e.ctx, err))
	}
	return n, err
}

func (o *opened) Close() error { return o.sealed.Close() }
