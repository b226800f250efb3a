package personkey

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// Encrypt returns a Store that encrypts the documents of inner. The rows of a user are encrypted with the user's
// key, other rows of a team with the team's key, and rows without a team with the operator's key. New documents of
// tables that are declared Clear are not encrypted, except for rows that the table's Sealed selects. If keys is
// nil, no new document is encrypted, and reading an encrypted one returns healthlab.Unavailable. An unencrypted
// document must not begin like an encrypted one (see [Sealed]). Row keys and index values are not encrypted; but
// index values that are declared Secret are replaced by digests made with the team's key.
//
// A row whose encryption key was deleted is missing in every answer, as if it did not exist.
//
// No key is fetched while a transaction is open: an Update that needs a key which is not in memory rolls back,
// fetches the key and runs again.
func Encrypt(inner store.Store, keys *Keys, tables []store.Definition) store.Store {
	if keys == nil {
		return plain{inner}
	}
	e := &encrypted{inner: inner, keys: keys, tables: map[string]store.Definition{}}
	for _, d := range tables {
		e.tables[d.Name] = d
	}
	return e
}

// plain is a store that does not encrypt. Reading a document that is encrypted returns healthlab.Unavailable.
type plain struct{ store.Store }

func (p plain) Update(ctx context.Context, run func(context.Context, store.Tx) error) error {
	return p.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error { return run(ctx, plainTx{tx}) })
}

func (p plain) Read(ctx context.Context, q ...store.Query) ([][]store.Row, error) {
	return inClear(p.Store.Read(ctx, q...))
}

type plainTx struct{ store.Tx }

func (t plainTx) Read(q ...store.Query) ([][]store.Row, error) { return inClear(t.Tx.Read(q...)) }

func inClear(answers [][]store.Row, err error) ([][]store.Row, error) {
	for _, rows := range answers {
		for i := range rows {
			if Sealed(rows[i].Doc) {
				return nil, fmt.Errorf("%w: table %s has encrypted rows: the store must be made with keys", healthlab.Unavailable, rows[i].Table)
			}
		}
	}
	return answers, err
}

type encrypted struct {
	inner  store.Store
	keys   *Keys
	tables map[string]store.Definition
}

// session has the decrypted keys of one Update or Read, for all its runs.
type session struct {
	opened  map[Ref]*key // a nil key was deleted, or never created
	missing map[Ref]bool // keys to fetch before the next run; true if a missing key must be created
	refused error        // why the first row that the present run could not encrypt was refused
}

// inSession is the context key under which the session of a store is found.
type inSession struct{ of *encrypted }

// maxRounds is the highest number of runs of one Update or Read. A run that needs keys which are not in memory is
// followed by another one with these keys.
const maxRounds = 1000

var errRounds = fmt.Errorf("%w: the keys of a transaction's users were not found in %d runs", healthlab.Unavailable, maxRounds)

// errMissing rolls back a run that needs keys which are not in memory.
var errMissing = errors.New("personkey: the key of the user must be fetched before the transaction goes on")

// Update implements [store.Store].
func (e *encrypted) Update(ctx context.Context, run func(context.Context, store.Tx) error) error {
	if s, ok := ctx.Value(inSession{e}).(*session); ok {
		return e.inner.Update(ctx, func(ctx context.Context, tx store.Tx) error {
			return run(ctx, &encryptedTx{tx, e, s})
		})
	}
	s := &session{opened: map[Ref]*key{}}
	for range maxRounds {
		err := e.inner.Update(context.WithValue(ctx, inSession{e}, s), func(ctx context.Context, tx store.Tx) error {
			s.missing, s.refused = map[Ref]bool{}, nil
			err := run(ctx, &encryptedTx{tx, e, s})
			switch {
			case len(s.missing) > 0:
				return errMissing
			case err == nil:
				return s.refused
			}
			return err
		})
		if len(s.missing) == 0 {
			return err
		}
		if err := e.fetch(ctx, s); err != nil {
			return err
		}
	}
	return errRounds
}

// fetch fetches the keys that the last run needed and did not have.
func (e *encrypted) fetch(ctx context.Context, s *session) error {
	refs := make([]Ref, 0, len(s.missing))
	for ref := range s.missing {
		refs = append(refs, ref)
	}
	if err := e.keys.Load(ctx, refs); err != nil {
		return err
	}
	for ref, create := range s.missing {
		get := e.keys.find
		if create {
			get = e.keys.ensure
		}
		k, err := get(ctx, ref)
		if err != nil && !errors.Is(err, ErrErased) {
			return err
		}
		s.opened[ref] = k
	}
	s.missing = nil
	return nil
}

// Read implements [store.Store].
func (e *encrypted) Read(ctx context.Context, q ...store.Query) ([][]store.Row, error) {
	s, joined := ctx.Value(inSession{e}).(*session)
	if !joined {
		s = &session{opened: map[Ref]*key{}, missing: map[Ref]bool{}}
	}
	read := func(q ...store.Query) ([][]store.Row, error) { return e.inner.Read(ctx, q...) }
	for range maxRounds {
		rows, err := e.read(s, read, q)
		if joined || len(s.missing) == 0 {
			return rows, err
		}
		if err := e.fetch(ctx, s); err != nil {
			return nil, err
		}
		s.missing = map[Ref]bool{}
	}
	return nil, errRounds
}

// read answers queries with decrypted rows. Rows whose key was deleted are left out; if a query has a limit, read
// asks for more rows in their place.
func (e *encrypted) read(s *session, read func(...store.Query) ([][]store.Row, error), q []store.Query) ([][]store.Row, error) {
	asked := slices.Clone(q)
	for i := range asked {
		if err := e.digestQuery(s, &asked[i]); err != nil {
			return nil, err
		}
	}
	got, err := read(asked...)
	if err != nil {
		return nil, err
	}
	for i := range q {
		wide := asked[i]
		for {
			open, err := e.open(s, got[i])
			if err != nil {
				return nil, err
			}
			gone := len(got[i]) - len(open)
			if gone == 0 || wide.Limit == 0 || len(got[i]) < wide.Limit || len(open) >= q[i].Limit {
				got[i] = open[:min(len(open), cmp.Or(q[i].Limit, len(open)))]
				break
			}
			wide.Limit = q[i].Limit + 2*gone
			again, err := read(wide)
			if err != nil {
				return nil, err
			}
			got[i] = again[0]
		}
	}
	if len(s.missing) > 0 {
		return nil, errMissing
	}
	return got, nil
}

func refOf(k store.Key) Ref {
	if k.Team.IsZero() {
		return Ref{}
	}
	return Ref{Team: k.Team, User: k.User}
}

func boundTo(k store.Key) string { return "row/" + k.Table + "/" + k.ID }

// key returns an encryption key from memory. If it is not there, key returns false and adds the ref to s.missing, so
// that the key is fetched before the next run. If create is true, a key that does not exist is created then.
func (e *encrypted) key(s *session, ref Ref, create bool) (*key, bool) {
	k, ok := s.opened[ref]
	if !ok {
		k = e.keys.remembered(ref)
		ok = k != nil
		if ok {
			s.opened[ref] = k
		}
	}
	if !ok {
		s.missing[ref] = create || s.missing[ref]
	}
	return k, ok
}

// open decrypts rows. It leaves out rows whose key was deleted or must be fetched first.
func (e *encrypted) open(s *session, rows []store.Row) ([]store.Row, error) {
	out := make([]store.Row, 0, len(rows))
	for _, r := range rows {
		if d := e.tables[r.Table]; len(r.Doc) == 0 || (d.Clear || d.ReadClear) && !Sealed(r.Doc) {
			out = append(out, r)
			continue
		}
		k, ok := e.key(s, refOf(r.Key), false)
		if !ok || k == nil {
			continue
		}
		plain, err := k.openBox(refOf(r.Key), boundTo(r.Key), r.Doc)
		if err != nil {
			return nil, err
		}
		r.Doc = plain
		out = append(out, r)
	}
	return out, nil
}

// digestQuery replaces the value that a query compares with a secret index by the value's digest.
func (e *encrypted) digestQuery(s *session, q *store.Query) error {
	i := int(q.By) - int(store.ByFirst)
	if i < 0 || i > 1 || !e.tables[q.Table].Secret[i] {
		return nil
	}
	if q.To != q.From+"\x00" {
		return fmt.Errorf("personkey: table %s: index %d is encrypted: a query must compare it for equality", q.Table, i)
	}
	k, ok := e.key(s, Ref{Team: q.Team}, true)
	if !ok {
		return errMissing
	}
	if k == nil {
		return ErrErased
	}
	*q = q.Equal(k.digest(q.Table, q.From))
	return nil
}

func (k *key) digest(table, value string) string {
	return string(k.sum([]byte("index " + table + "\x00" + value)))
}

// encryptedTx is a transaction that encrypts the documents it writes and decrypts those it reads.
type encryptedTx struct {
	store.Tx
	e *encrypted
	s *session
}

// Read implements [store.Tx].
func (t *encryptedTx) Read(q ...store.Query) ([][]store.Row, error) {
	return t.e.read(t.s, t.Tx.Read, q)
}

// Put implements [store.Tx].
func (t *encryptedTx) Put(rows ...store.Row) {
	for _, r := range rows {
		if !t.digest(&r) {
			continue
		}
		d := t.e.tables[r.Table]
		if (!d.Clear || d.Sealed != nil && d.Sealed(r.ID)) && len(r.Doc) > 0 {
			k, ok := t.e.key(t.s, refOf(r.Key), true)
			if !ok {
				continue
			}
			box, err := k.sealBox(refOf(r.Key), boundTo(r.Key), r.Doc)
			if err != nil {
				if t.s.refused == nil {
					t.s.refused = fmt.Errorf("encrypt a row of table %s: %w", r.Table, err)
				}
				continue
			}
			r.Doc = box
		}
		t.Tx.Put(r)
	}
}

// digest replaces the secret index values of a row by their digests. False if the team's key is not in memory or
// was deleted.
func (t *encryptedTx) digest(r *store.Row) bool {
	for i, secret := range t.e.tables[r.Table].Secret {
		if !secret || r.Index[i] == "" {
			continue
		}
		k, ok := t.e.key(t.s, Ref{Team: r.Team}, true)
		if !ok {
			return false
		}
		if k == nil {
			t.s.refused = ErrErased
			return false
		}
		r.Index[i] = k.digest(r.Table, r.Index[i])
	}
	return true
}

// sealBox encrypts plain so that it can only be decrypted with the same ref and bound. ErrErased if the key is nil.
func (k *key) sealBox(ref Ref, bound string, plain []byte) ([]byte, error) {
	if k == nil {
		return nil, ErrErased
	}
	box := make([]byte, 1+k.aead.NonceSize(), 1+k.aead.NonceSize()+len(plain)+k.aead.Overhead())
	box[0] = format
	if _, err := rand.Read(box[1:]); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return k.aead.Seal(box, box[1:], plain, extra(ref, bound)), nil //nolint:gosec // the nonce was read from rand
}

// openBox decrypts an encrypted value. Invalid if the value is damaged, or was encrypted with another ref or bound.
func (k *key) openBox(ref Ref, bound string, box []byte) ([]byte, error) {
	nonce := k.aead.NonceSize()
	if len(box) < 1+nonce {
		return nil, fmt.Errorf("decrypt: %w: the encrypted value is too short", healthlab.Invalid)
	}
	plain, err := k.aead.Open([]byte{}, box[1:1+nonce], box[1+nonce:], extra(ref, bound))
	if err != nil {
		return nil, fmt.Errorf("decrypt: %w: the encrypted value does not match the key of its user", healthlab.Invalid)
	}
	return plain, nil
}
