package personkey

import (
	"context"

	"github.com/healthlab-dev/healthlab"
)

// Entry is a stored key, encrypted by the host's [healthlab.Sealer]. A zero Key means that the key was deleted.
type Entry struct {
	Ref
	Key healthlab.Sealed
}

// Store stores encrypted keys. Its backups must be separate from those of the data: after a restore of the
// data, the keys of erased persons are still deleted.
//
// All methods are atomic and safe for concurrent use. A Store must not call another Store, because it is called
// while transactions of others are open. Refs are ordered by user, then team.
type Store interface {
	// Insert stores a key if the ref has none and never had one, and returns the stored entry: the given key,
	// an earlier one, or the mark that it was deleted.
	Insert(ctx context.Context, e Entry) (Entry, error)
	// Find returns the stored entries of refs, in no order. Refs that never had a key are left out.
	Find(ctx context.Context, refs []Ref) ([]Entry, error)
	// Delete removes a key and leaves a mark, also for a ref that had no key.
	Delete(ctx context.Context, ref Ref) error
	// Others returns up to n keys that are encrypted under another key than keyID, after a ref, in order.
	Others(ctx context.Context, keyID string, after Ref, n int) ([]Entry, error)
	// Replace replaces the key was by e. It does nothing if the stored key is not was any more.
	Replace(ctx context.Context, was, e Entry) error
	// Deleted returns up to n refs whose key was deleted, after a ref, in order.
	Deleted(ctx context.Context, after Ref, n int) ([]Ref, error)
	// Count returns the number of keys by the id of the key that encrypts them.
	Count(ctx context.Context) (map[string]int, error)
}
