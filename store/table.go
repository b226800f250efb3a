package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/healthlab-dev/healthlab"
)

// Table describes how values of type T are stored. It is immutable and safe for concurrent use.
type Table[T any] struct {
	// Name, Unique, Clear, PerUser and Secret become the fields of the table's [Definition].
	Name    string
	Unique  [2]bool
	Clear   bool
	PerUser bool
	Secret  [2]bool
	// Row returns the Key, Due and Index of the row that stores a value. Table, Revision and Doc of the result are
	// ignored.
	Row func(*T) Row
	// Encode and Decode convert between a value and the document of its row. The default is JSON, which returns
	// healthlab.Invalid for text that is not UTF-8 or contains NUL. Decode gets the whole row, because a document
	// may omit what the key and the index values repeat.
	Encode func(*T) ([]byte, error)
	Decode func(Row, *T) error
}

// Entry is a stored value with the revision of the row from which it was read. Revision 0 means that the value is
// not stored yet.
type Entry[T any] struct {
	Value    T
	Revision int64
}

// Definition returns the declaration of the table for an engine.
func (t *Table[T]) Definition() Definition {
	return Definition{Name: t.Name, Unique: t.Unique, Clear: t.Clear, PerUser: t.PerUser, Secret: t.Secret}
}

// Key returns k with the name of the table.
func (t *Table[T]) Key(k Key) Key {
	k.Table = t.Name
	return k
}

// One returns the query that finds the row with this key.
func (t *Table[T]) One(k Key, lock Lock) Query { return Query{Key: t.Key(k), Lock: lock} }

// Get returns the value with this key, read with a lock; nil if there is none.
func (t *Table[T]) Get(tx Tx, k Key, lock Lock) (*Entry[T], error) {
	return first(t.Find(tx, t.One(k, lock)))
}

// Bare returns the row with this key, without its document, read with a lock; nil if there is none. It also finds a
// row whose encryption key was deleted, which Get leaves out.
func (t *Table[T]) Bare(tx Tx, k Key, lock Lock) (*Row, error) {
	q := t.One(k, lock)
	q.Bare = true
	got, err := tx.Read(q)
	if err != nil || len(got[0]) == 0 {
		return nil, err
	}
	return &got[0][0], nil
}

// Find returns the values of the table that match a query. The Table of the query may be empty.
func (t *Table[T]) Find(tx Tx, q Query) ([]*Entry[T], error) {
	q.Table = t.Name
	got, err := tx.Read(q)
	if err != nil {
		return nil, err
	}
	return t.Decoded(got[0])
}

// Look returns the values of the table that match a query, without locks. It reads in the transaction of ctx if ctx
// has one. The Table of the query may be empty.
func (t *Table[T]) Look(ctx context.Context, s Store, q Query) ([]*Entry[T], error) {
	q.Table = t.Name
	got, err := s.Read(ctx, q)
	if err != nil {
		return nil, err
	}
	return t.Decoded(got[0])
}

// LookOne returns the value with this key, read like Look; nil if there is none.
func (t *Table[T]) LookOne(ctx context.Context, s Store, k Key) (*Entry[T], error) {
	return first(t.Look(ctx, s, Query{Key: k}))
}

func first[T any](entries []*Entry[T], err error) (*Entry[T], error) {
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	return entries[0], nil
}

// Decoded decodes rows of the table, such as those of a [Tx.Read], to values.
func (t *Table[T]) Decoded(rows []Row) ([]*Entry[T], error) {
	out := make([]*Entry[T], len(rows))
	for i, r := range rows {
		e := &Entry[T]{Revision: r.Revision}
		decode := t.Decode
		if decode == nil {
			decode = func(r Row, v *T) error { return json.Unmarshal(r.Doc, v) }
		}
		if err := decode(r, &e.Value); err != nil {
			return nil, fmt.Errorf("decode a row of table %s: %w", t.Name, err)
		}
		out[i] = e
	}
	return out, nil
}

// DecodedOne decodes the first of the rows, such as the answer of a query for one key; nil if there is no row.
func (t *Table[T]) DecodedOne(rows []Row) (*Entry[T], error) { return first(t.Decoded(rows)) }

// Copy returns a deep copy of v. It encodes and decodes v, so the copy equals what would be read after v was
// stored.
func (t *Table[T]) Copy(v *T) (T, error) {
	r, err := t.row(v)
	if err != nil {
		return *new(T), err
	}
	e, err := t.Decoded([]Row{r})
	if err != nil {
		return *new(T), err
	}
	return e[0].Value, nil
}

// Insert writes a new value at the commit. The commit fails if a row with its key exists.
func (t *Table[T]) Insert(tx Tx, v *T) error { return t.put(tx, v, 0) }

// Put writes an entry at the commit: a new one, or one that was read with the lock Held. It sets the entry's
// Revision to the stored one.
func (t *Table[T]) Put(tx Tx, e *Entry[T]) error {
	if err := t.put(tx, &e.Value, e.Revision); err != nil {
		return err
	}
	e.Revision++
	return nil
}

func (t *Table[T]) put(tx Tx, v *T, revision int64) error {
	r, err := t.row(v)
	if err != nil {
		return err
	}
	r.Revision = revision
	tx.Put(r)
	return nil
}

func (t *Table[T]) row(v *T) (Row, error) {
	r := t.Row(v)
	r.Table = t.Name
	encode := t.Encode
	if encode == nil {
		encode = JSON[T]
	}
	var err error
	if r.Doc, err = encode(v); err != nil {
		return Row{}, fmt.Errorf("encode a row of table %s: %w", t.Name, err)
	}
	return r, nil
}

// Delete removes an entry, which was read with the lock Held, at the commit.
func (t *Table[T]) Delete(tx Tx, e *Entry[T]) { tx.Delete(t.Key(t.Row(&e.Value).Key)) }

// JSON encodes a value. It returns healthlab.Invalid if a text in the value is not UTF-8 or contains NUL.
func JSON[T any](v *T) ([]byte, error) {
	doc, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(doc); i++ { // the encoder writes NUL and invalid UTF-8 as the escapes below
		if doc[i] != '\\' {
			continue
		}
		if rest := doc[i:]; bytes.HasPrefix(rest, []byte(`\u0000`)) || bytes.HasPrefix(rest, []byte(`\ufffd`)) {
			return nil, fmt.Errorf("%w: text must be UTF-8 without NUL", healthlab.Invalid)
		}
		i++
	}
	return doc, nil
}
