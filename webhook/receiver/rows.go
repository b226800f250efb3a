package receiver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// forgetBatch is the largest number of outdated rows that one call of a method removes.
const forgetBatch = 16

// NewSeen returns a [Seen] on a store with the tables of [Tables]. Several processes may share it. Outdated rows
// are removed.
func NewSeen(s store.Store) Seen { return seenRows{s} }

// Tables declares the tables of [NewSeen].
func Tables() []store.Definition { return []store.Definition{sightings.Definition()} }

// sighting is the stored state of one message id or one object key.
type sighting struct {
	ID        string    `json:"-"`
	Holder    uuid.UUID `json:",omitzero"`
	HeldUntil time.Time `json:",omitzero"`
	Until     time.Time `json:",omitzero"` // until when Version, or that the id was handled, is remembered
	Version   Version   `json:",omitzero"`
}

// sightings has a row for each message id and each object key. A row is due when no claim holds it, and
// neither its version nor that its id was handled is remembered any longer. The row ids are digests, because a key may
// identify a person.
var sightings = store.Table[sighting]{
	Name: "webhook_seen", Clear: true,
	Row: func(s *sighting) store.Row {
		r := store.Row{Key: store.Key{ID: s.ID}, Due: s.HeldUntil}
		if s.Until.After(r.Due) {
			r.Due = s.Until
		}
		return r
	},
	Decode: func(r store.Row, s *sighting) error {
		s.ID = r.ID
		return json.Unmarshal(r.Doc, s)
	},
}

func (s *sighting) claimed(now time.Time) bool    { return now.Before(s.HeldUntil) }
func (s *sighting) remembered(now time.Time) bool { return now.Before(s.Until) }

func (s *sighting) claimFor(token uuid.UUID, until time.Time) { s.Holder, s.HeldUntil = token, until }

func (s *sighting) drop(token uuid.UUID) {
	if s.Holder == token {
		s.Holder, s.HeldUntil = uuid.Nil, time.Time{}
	}
}

func sightingID(kind, name string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + name))
	return string(sum[:])
}

type seenRows struct{ s store.Store }

// sight has the rows of a claim's message id and object key.
type sight struct {
	now time.Time
	id  *store.Entry[sighting]
	key *store.Entry[sighting] // nil without a key
}

// update calls run with the rows of a claim, and writes them if run returns true. what names the operation in errors.
func (r seenRows) update(ctx context.Context, what string, c Claim, run func(*sight) (change bool)) error {
	if c.ID == "" || strings.ContainsRune(c.ID, 0) || strings.ContainsRune(c.Key, 0) {
		return fmt.Errorf("%s: %w: claim: ID must not be empty, and ID and Key must not contain NUL", what, healthlab.Invalid)
	}
	err := r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		s, old, err := readSightings(tx, c)
		if err != nil {
			return err
		}
		for _, o := range old {
			if o.ID != s.id.Value.ID && (s.key == nil || o.ID != s.key.Value.ID) {
				tx.Delete(o.Key)
			}
		}
		if !run(s) {
			return nil
		}
		if err := put(tx, s.id); err != nil || s.key == nil {
			return err
		}
		return put(tx, s.key)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// readSightings reads and locks the rows of a claim. It also returns some outdated rows, which may include those of the
// claim.
func readSightings(tx store.Tx, c Claim) (*sight, []store.Row, error) {
	s := &sight{now: tx.Now(), id: &store.Entry[sighting]{Value: sighting{ID: sightingID("id", c.ID)}}}
	old := store.Query{Key: sightings.Key(store.Key{}), By: store.ByDue, Until: s.now, Limit: forgetBatch, Lock: store.Skip, Bare: true}
	read := []store.Query{old, sightings.One(store.Key{ID: s.id.Value.ID}, store.Held)}
	entries := []**store.Entry[sighting]{&s.id}
	if c.Key != "" {
		s.key = &store.Entry[sighting]{Value: sighting{ID: sightingID("key", c.Key)}}
		read = append(read, sightings.One(store.Key{ID: s.key.Value.ID}, store.Held))
		entries = append(entries, &s.key)
	}
	got, err := tx.Read(read...)
	if err != nil {
		return nil, nil, err
	}
	for i, e := range entries {
		found, err := sightings.Decoded(got[1+i])
		if err != nil {
			return nil, nil, err
		}
		if len(found) > 0 {
			*e = found[0]
		}
	}
	return s, got[0], nil
}

// put writes the row of a message id or key. If the row has neither a claim nor something to remember, it deletes the
// row.
func put(tx store.Tx, e *store.Entry[sighting]) error {
	switch v := &e.Value; {
	case !v.HeldUntil.IsZero() || !v.Until.IsZero():
		return sightings.Put(tx, e)
	case e.Revision > 0:
		sightings.Delete(tx, e)
	}
	return nil
}

// Claim implements [Seen].
func (r seenRows) Claim(ctx context.Context, c Claim) (Verdict, error) {
	var verdict Verdict
	err := r.update(ctx, "claim", c, func(s *sight) bool {
		if verdict = s.verdict(c); verdict != Fresh {
			return false
		}
		until := s.now.Add(c.Lease)
		s.id.Value.claimFor(c.Token, until)
		if s.key != nil {
			s.key.Value.claimFor(c.Token, until)
		}
		return true
	})
	if err != nil {
		return 0, err
	}
	return verdict, nil
}

// verdict returns the verdict of a claim, by the rules of [Seen].
func (s *sight) verdict(c Claim) Verdict {
	switch id := &s.id.Value; {
	case id.remembered(s.now):
		return Repeated
	case id.claimed(s.now):
		return Busy
	case s.key == nil:
		return Fresh
	}
	switch key := &s.key.Value; {
	case key.remembered(s.now) && c.Version.Before(key.Version):
		return Outdated
	case key.claimed(s.now):
		return Busy
	}
	return Fresh
}

// Done implements [Seen].
func (r seenRows) Done(ctx context.Context, c Claim) error {
	return r.update(ctx, "done", c, func(s *sight) bool {
		id := &s.id.Value
		id.Until = s.now.Add(c.Keep)
		id.drop(c.Token)
		if s.key == nil {
			return true
		}
		key := &s.key.Value
		if !key.remembered(s.now) || !c.Version.Before(key.Version) {
			key.Version, key.Until = c.Version, s.now.Add(c.KeepVersion)
		}
		key.drop(c.Token)
		return true
	})
}

// Release implements [Seen].
func (r seenRows) Release(ctx context.Context, c Claim) error {
	return r.update(ctx, "release", c, func(s *sight) bool {
		s.id.Value.drop(c.Token)
		if s.key != nil {
			s.key.Value.drop(c.Token)
		}
		return true
	})
}
