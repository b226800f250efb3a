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
	// Name, Unique, Clear, PerUser and Secret are those of the [Definition].
	Name    string
	Unique  [2]bool
	Clear   bool
	PerUser bool
	Secret  [2]bool
	// Row returns the key, the due time and the index values of a value. Table, Revision and Doc of the result
	// are ignored.
	Row func(*T) Row
	// Encode and Decode convert between a value and its document. The default is JSON, in which
	// text that is not UTF-8 or has NUL is healthlab.Invalid. Decode gets the row as well, for
	// values that are not repeated in the document.
	Encode func(*T) ([]byte, error)
	Decode func(Row, *T) error
}

// Entry is a stored value with the revision that was read. A zero Revision means that the value is not stored
// yet.
type Entry[T any] struct {
	Value    T
	Revision int64
}

// Definition declares the table to an engine.
func (t *Table[T]) Definition() Definition {
	return Definition{Name: t.Name, Unique: t.Unique, Clear: t.Clear, PerUser: t.PerUser, Secret: t.Secret}
}

// Key returns the key with the name of the table.
func (t *Table[T]) Key(k Key) Key {
	k.Table = t.Name
	return k
}

// One returns the query for the row of a key.
func (t *Table[T]) One(k Key, lock Lock) Query { return Query{Key: t.Key(k), Lock: lock} }

// Get returns the value of a key, read with a lock; nil if there is none.
func (t *Table[T]) Get(tx Tx, k Key, lock Lock) (*Entry[T], error) {
	return first(t.Find(tx, t.One(k, lock)))
}

// Bare returns the row of a key without its document, read with a lock; nil if there is none. It also finds a
// row whose document cannot be decrypted, which Get leaves out.
func (t *Table[T]) Bare(tx Tx, k Key, lock Lock) (*Row, error) {
	q := t.One(k, lock)
	q.Bare = true
	got, err := tx.Read(q)
	if err != nil || len(got[0]) == 0 {
		return nil, err
	}
	return &got[0][0], nil
}

// Find returns the values that match a query. The query's table is that of t.
func (t *Table[T]) Find(tx Tx, q Query) ([]*Entry[T], error) {
	q.Table = t.Name
	got, err := tx.Read(q)
	if err != nil {
		return nil, err
	}
	return t.Decoded(got[0])
}

// Look returns the values that match a query, outside of a transaction or in that of ctx, without locks. The
// query's table is that of t.
func (t *Table[T]) Look(ctx context.Context, s Store, q Query) ([]*Entry[T], error) {
	q.Table = t.Name
	got, err := s.Read(ctx, q)
	if err != nil {
		return nil, err
	}
	return t.Decoded(got[0])
}

// LookOne is Look for the value of one key; nil if there is none.
func (t *Table[T]) LookOne(ctx context.Context, s Store, k Key) (*Entry[T], error) {
	return first(t.Look(ctx, s, Query{Key: k}))
}

func first[T any](entries []*Entry[T], err error) (*Entry[T], error) {
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	return entries[0], nil
}

// Decoded returns the values of rows of the table.
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

// DecodedOne is Decoded for the rows of a query for a key; nil if there is none.
func (t *Table[T]) DecodedOne(rows []Row) (*Entry[T], error) { return first(t.Decoded(rows)) }

// Copy returns a deep copy of v, encoded and decoded as if it had been stored.
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

// Insert puts a new value.
func (t *Table[T]) Insert(tx Tx, v *T) error { return t.put(tx, v, 0) }

// Put writes a new value, or one that was read as Held. It sets the Revision of the entry to the one that the
// commit stores.
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

// Delete removes a value that was read as Held.
func (t *Table[T]) Delete(tx Tx, e *Entry[T]) { tx.Delete(t.Key(t.Row(&e.Value).Key)) }

// JSON encodes a value. healthlab.Invalid if a text in it is not UTF-8 or has NUL.
func JSON[T any](v *T) ([]byte, error) {
	doc, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(doc); i++ { // the encoder writes either as an escape
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
