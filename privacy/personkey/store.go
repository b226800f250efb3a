package personkey

import (
	"context"

	"github.com/healthlab-dev/healthlab"
)

// Entry is the stored key of a Ref, encrypted by the host's [healthlab.Sealer]. A zero Key is the mark that the key
// was deleted.
type Entry struct {
	Ref
	Key healthlab.Sealed
}

// Store stores encrypted keys. Its backups must be separate from those of the data, so that a restore of the data
// does not restore the keys of erased persons.
//
// All methods are atomic and safe for concurrent use. A Store is called while transactions of the data may be open,
// so it must not use the store of the data. Refs are ordered by user, then team.
type Store interface {
	// Insert stores a key if its ref never had one, and returns the entry that is stored now: the given key, an
	// earlier one, or the mark of a deleted one.
	Insert(ctx context.Context, e Entry) (Entry, error)
	// Find returns the stored entries of refs, in any order, with the marks of deleted keys. Refs that never had a
	// key are left out.
	Find(ctx context.Context, refs []Ref) ([]Entry, error)
	// Delete replaces a key by the mark that it was deleted. The mark is also stored for a ref that had no key.
	Delete(ctx context.Context, ref Ref) error
	// Others returns up to n entries whose key is encrypted under another key than keyID, in the order of refs,
	// beginning after the ref after. Marks of deleted keys are left out.
	Others(ctx context.Context, keyID string, after Ref, n int) ([]Entry, error)
	// Replace stores e in place of was. It is a no-op if the stored key is no longer was.
	Replace(ctx context.Context, was, e Entry) error
	// Deleted returns up to n refs whose key was deleted, in order, beginning after the ref after.
	Deleted(ctx context.Context, after Ref, n int) ([]Ref, error)
	// Count returns how many keys are encrypted under each key of the host, by that key's id.
	Count(ctx context.Context) (map[string]int, error)
}
