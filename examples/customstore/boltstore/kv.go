package boltstore

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// maps is a [store.KV] inside a transaction of bbolt. Bytes that bbolt returns are valid only until the
// transaction ends, so methods return copies.
type maps struct{ rows, marks *bbolt.Bucket }

func mapsOf(tx *bbolt.Tx) maps { return maps{tx.Bucket(rowBucket), tx.Bucket(markBucket)} }

// Get returns a row.
func (m maps) Get(key string) (store.Row, bool, error) {
	v := m.rows.Get([]byte(key))
	if v == nil {
		return store.Row{}, false, nil
	}
	r, err := decode(v)
	return r, err == nil, err
}

// Set stores a row under key, and replaces an existing one.
func (m maps) Set(key string, r store.Row) error {
	return unavailable(m.rows.Put([]byte(key), encode(r)))
}

// Remove removes a row.
func (m maps) Remove(key string) error { return unavailable(m.rows.Delete([]byte(key))) }

// Mark stores the mark of the row with this key. See [store.KV].
func (m maps) Mark(mark, key string) error {
	return unavailable(m.marks.Put([]byte(mark), []byte(key)))
}

// Unmark removes a mark.
func (m maps) Unmark(mark string) error { return unavailable(m.marks.Delete([]byte(mark))) }

// Walk calls each with the rows of from <= key < to, in descending order with desc, until each returns false. An empty
// to means no upper bound.
func (m maps) Walk(from, to string, desc bool, each func(store.Row) bool) (err error) {
	walk(m.rows, from, to, desc, func(_, v []byte) bool {
		var r store.Row
		r, err = decode(v)
		return err == nil && each(r)
	})
	return err
}

// WalkMarks calls each with the marks of from <= mark < to and their keys, as [maps.Walk] does for rows.
func (m maps) WalkMarks(from, to string, desc bool, each func(mark, key string) bool) error {
	walk(m.marks, from, to, desc, func(k, v []byte) bool { return each(string(k), string(v)) })
	return nil
}

// walk calls each with the entries of from <= key < to, descending with desc, until it returns false. No to: no bound.
func walk(b *bbolt.Bucket, from, to string, desc bool, each func(k, v []byte) bool) {
	c, low, high := b.Cursor(), []byte(from), []byte(to)
	below := func(k []byte) bool { return to == "" || bytes.Compare(k, high) < 0 }
	if !desc {
		for k, v := c.Seek(low); k != nil && below(k) && each(k, v); k, v = c.Next() {
		}
		return
	}
	var k, v []byte
	if to != "" {
		k, _ = c.Seek(high) // the first that is not below to
	}
	if k != nil {
		k, v = c.Prev()
	} else {
		k, v = c.Last()
	}
	for ; k != nil && bytes.Compare(k, low) >= 0 && each(k, v); k, v = c.Prev() {
	}
}

// fields is the number of values of a row before its document.
const fields = 8

// encode returns a row as bytes: values with their lengths, then the document.
func encode(r store.Row) []byte {
	due := ""
	if !r.Due.IsZero() {
		due = store.Time(r.Due)
	}
	var b []byte
	for _, v := range [fields]string{
		r.Table, store.UUID(r.Team.UUID), store.UUID(r.User.UUID), r.ID, due, r.Index[0], r.Index[1], store.Int(r.Revision),
	} {
		b = append(binary.AppendUvarint(b, uint64(len(v))), v...)
	}
	return append(b, r.Doc...)
}

// decode returns the row that [encode] encoded. It shares no memory with b.
func decode(b []byte) (store.Row, error) {
	var v [fields]string
	for i := range v {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return store.Row{}, damaged()
		}
		v[i], b = string(b[size:size+int(n)]), b[size+int(n):]
	}
	if len(v[1]) != 16 || len(v[2]) != 16 || len(v[4])%8 != 0 || len(v[7]) != 8 {
		return store.Row{}, damaged()
	}
	r := store.Row{
		Key: store.Key{
			Table: v[0], Team: healthlab.TeamID{UUID: store.ParseUUID(v[1])}, User: healthlab.UserID{UUID: store.ParseUUID(v[2])}, ID: v[3],
		},
		Index: [2]string{v[5], v[6]}, Revision: store.ParseInt(v[7]), Doc: bytes.Clone(b),
	}
	if v[4] != "" {
		r.Due = store.ParseTime(v[4])
	}
	return r, nil
}

func damaged() error { return fmt.Errorf("%w: a row of the file is damaged", healthlab.Unavailable) }
