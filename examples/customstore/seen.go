package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/bbolt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

// Seen is a [receiver.Seen] in a file of bbolt. A transaction of bbolt is a call's atomic
// step, since bbolt has one writer at a time. Safe for concurrent use.
type Seen struct {
	db  *bbolt.DB
	now func() time.Time
}

var _ receiver.Seen = (*Seen)(nil)

// The buckets: entries by message id, and by the key of what a message is about.
var ids, keys = []byte("ids"), []byte("keys")

// entry is what is known of one id or key.
type entry struct {
	Holder    uuid.UUID
	HeldUntil time.Time
	KeptUntil time.Time
	Version   receiver.Version
}

// NewSeen makes the buckets. now is the clock by which leases end.
func NewSeen(db *bbolt.DB, now func() time.Time) (*Seen, error) {
	err := db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{ids, keys} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
	return &Seen{db, now}, err
}

// change runs one call as a transaction. do gets the entries of the id and of the key, edits
// them, and reports whether to write them. The entry of an empty key is not written.
func (s *Seen) change(ctx context.Context, c receiver.Claim, do func(now time.Time, id, key *entry) (write bool)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.ID == "" || strings.ContainsRune(c.ID+c.Key, 0) {
		return fmt.Errorf("%w: the id of a message is not empty, and has no NUL", healthlab.Invalid)
	}
	return s.db.Update(func(tx *bbolt.Tx) error {
		var id, key entry
		now := s.now()
		if err := load(tx.Bucket(ids), c.ID, &id); err != nil {
			return err
		}
		if err := load(tx.Bucket(keys), c.Key, &key); err != nil {
			return err
		}
		if !do(now, &id, &key) {
			return nil
		}
		if err := save(tx.Bucket(ids), c.ID, id); err != nil || c.Key == "" {
			return err
		}
		return save(tx.Bucket(keys), c.Key, key)
	})
}

// load reads an entry; one that is not there is zero.
func load(b *bbolt.Bucket, name string, e *entry) error {
	doc := b.Get([]byte(name))
	if doc == nil {
		return nil
	}
	return json.Unmarshal(doc, e)
}

func save(b *bbolt.Bucket, name string, e entry) error {
	doc, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return b.Put([]byte(name), doc)
}

// Claim asks for a message before it is handled. See [receiver.Seen].
func (s *Seen) Claim(ctx context.Context, c receiver.Claim) (receiver.Verdict, error) {
	verdict := receiver.Fresh
	err := s.change(ctx, c, func(now time.Time, id, key *entry) bool {
		switch {
		case now.Before(id.KeptUntil):
			verdict = receiver.Repeated
		case now.Before(id.HeldUntil):
			verdict = receiver.Busy
		case now.Before(key.KeptUntil) && c.Version.Before(key.Version):
			verdict = receiver.Outdated
		case now.Before(key.HeldUntil):
			verdict = receiver.Busy
		default:
			id.Holder, id.HeldUntil = c.Token, now.Add(c.Lease)
			key.Holder, key.HeldUntil = c.Token, now.Add(c.Lease)
			return true
		}
		return false
	})
	if err != nil {
		return 0, fmt.Errorf("claim: %w", err)
	}
	return verdict, nil
}

// Done remembers that a message was applied. See [receiver.Seen].
func (s *Seen) Done(ctx context.Context, c receiver.Claim) error {
	err := s.change(ctx, c, func(now time.Time, id, key *entry) bool {
		id.KeptUntil = now.Add(c.Keep)
		if !now.Before(key.KeptUntil) || !c.Version.Before(key.Version) {
			key.Version, key.KeptUntil = c.Version, now.Add(c.KeepVersion)
		}
		id.release(c.Token)
		key.release(c.Token)
		return true
	})
	if err != nil {
		return fmt.Errorf("done: %w", err)
	}
	return nil
}

// Release gives a message back. See [receiver.Seen].
func (s *Seen) Release(ctx context.Context, c receiver.Claim) error {
	err := s.change(ctx, c, func(_ time.Time, id, key *entry) bool {
		id.release(c.Token)
		key.release(c.Token)
		return true
	})
	if err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}

// release ends what a token holds.
func (e *entry) release(token uuid.UUID) {
	if e.Holder == token {
		e.Holder, e.HeldUntil = uuid.Nil, time.Time{}
	}
}

// Prune deletes the entries that count no longer. A program calls it once a day.
func (s *Seen) Prune() error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		now := s.now()
		for _, name := range [][]byte{ids, keys} {
			var ended [][]byte
			err := tx.Bucket(name).ForEach(func(k, doc []byte) error {
				var e entry
				if err := json.Unmarshal(doc, &e); err != nil {
					return err
				}
				if !now.Before(e.KeptUntil) && !now.Before(e.HeldUntil) {
					ended = append(ended, k)
				}
				return nil
			})
			if err != nil {
				return err
			}
			for _, k := range ended {
				if err := tx.Bucket(name).Delete(k); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
