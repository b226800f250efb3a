package personkey

import (
	"bytes"
	"context"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// keyTable stores the keys of persons and teams, ordered by user, then team. The host's Sealer has encrypted them.
// Rows have no User, because the mark of a deleted key must stay when the person is erased.
var keyTable = store.Table[Entry]{Name: "person_key", Clear: true, Row: func(e *Entry) store.Row {
	return store.Row{Key: refKey(e.Ref)}
}}

func refKey(r Ref) store.Key {
	return store.Key{ID: store.UUID(r.User.UUID) + store.UUID(r.Team.UUID)}
}

// Tables returns the tables that the store passed to [NewStore] must have.
func Tables() []store.Definition { return []store.Definition{keyTable.Definition()} }

// NewStore returns a Store of keys in s, whose tables must include [Tables]. s must not be the store of the data,
// and its backups must be separate. Only then does deleting a key make the person's data in backups unreadable.
func NewStore(s store.Store) Store { return rowStore{s} }

type rowStore struct{ s store.Store }

func (r rowStore) Insert(ctx context.Context, e Entry) (Entry, error) {
	kept := e
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		kept = e
		found, err := keyTable.Get(tx, refKey(e.Ref), store.Held)
		switch {
		case err != nil:
			return err
		case found != nil:
			kept = found.Value
			return nil
		}
		return keyTable.Insert(tx, &e)
	})
	return kept, err
}

func (r rowStore) Find(ctx context.Context, refs []Ref) ([]Entry, error) {
	q := make([]store.Query, len(refs))
	for i, ref := range refs {
		q[i] = keyTable.One(refKey(ref), store.Plain)
	}
	got, err := r.s.Read(ctx, q...)
	if err != nil {
		return nil, err
	}
	var out []Entry
	for _, rows := range got {
		entries, err := keyTable.Decoded(rows)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			out = append(out, e.Value)
		}
	}
	return out, nil
}

// change edits the entry of a ref in one transaction. It writes nothing if edit returns false.
func (r rowStore) change(ctx context.Context, ref Ref, edit func(*Entry) bool) error {
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		e, err := keyTable.Get(tx, refKey(ref), store.Held)
		if err != nil {
			return err
		}
		if e == nil {
			e = &store.Entry[Entry]{Value: Entry{Ref: ref}}
		}
		if !edit(&e.Value) {
			return nil
		}
		return keyTable.Put(tx, e)
	})
}

func (r rowStore) Delete(ctx context.Context, ref Ref) error {
	return r.change(ctx, ref, func(e *Entry) bool { e.Key = healthlab.Sealed{}; return true })
}

func (r rowStore) Replace(ctx context.Context, was, e Entry) error {
	return r.change(ctx, was.Ref, func(kept *Entry) bool {
		if kept.Key.KeyID != was.Key.KeyID || !bytes.Equal(kept.Key.Box, was.Key.Box) {
			return false
		}
		kept.Key = e.Key
		return true
	})
}

// walk calls each with the stored entries that follow a ref, in the order of refs, until each returns false.
func (r rowStore) walk(ctx context.Context, after Ref, each func(Entry) bool) error {
	const page = 500
	last := ""
	if after != (Ref{}) {
		last = refKey(after).ID
	}
	for {
		entries, err := keyTable.Look(ctx, r.s, store.Query{By: store.ByID}.After(last, page))
		if err != nil {
			return err
		}
		for _, e := range entries {
			last = refKey(e.Value.Ref).ID
			if !each(e.Value) {
				return nil
			}
		}
		if len(entries) < page {
			return nil
		}
	}
}

func (r rowStore) Others(ctx context.Context, keyID string, after Ref, n int) ([]Entry, error) {
	var out []Entry
	err := r.walk(ctx, after, func(e Entry) bool {
		if e.Key.KeyID != "" && e.Key.KeyID != keyID && len(out) < n {
			out = append(out, e)
		}
		return len(out) < n
	})
	return out, err
}

func (r rowStore) Deleted(ctx context.Context, after Ref, n int) ([]Ref, error) {
	var out []Ref
	err := r.walk(ctx, after, func(e Entry) bool {
		if e.Key.KeyID == "" && len(out) < n {
			out = append(out, e.Ref)
		}
		return len(out) < n
	})
	return out, err
}

func (r rowStore) Count(ctx context.Context) (map[string]int, error) {
	out := map[string]int{}
	err := r.walk(ctx, Ref{}, func(e Entry) bool {
		if e.Key.KeyID != "" {
			out[e.Key.KeyID]++
		}
		return true
	})
	return out, err
}
