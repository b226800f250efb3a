package personkey

import (
	"context"

	"github.com/healthlab-dev/healthlab"
)

// Entry is a key as it is kept: sealed by the host's [healthlab.Sealer]. A zero Key says that
// the key was deleted.
type Entry struct {
	Ref
	Key healthlab.Sealed
}

// Store keeps sealed keys. Its backups are not those of the data: a backup of the data that
// is restored finds the keys as they are at that time, and those of erased persons are gone.
//
// All methods are atomic and safe for concurrent use. A Store calls no other Store: it is
// called while transactions of others are open. Refs are ordered by user, then team.
type Store interface {
	// Insert keeps a key if the ref has none and never had one, and returns what is kept: the
	// given key, an earlier one, or the mark that it was deleted.
	Insert(ctx context.Context, e Entry) (Entry, error)
	// Find returns what is kept of refs, in no order. Refs that never had a key are left out.
	Find(ctx context.Context, refs []Ref) ([]Entry, error)
	// Delete removes a key and leaves a mark, also for a ref that had no key.
	Delete(ctx context.Context, ref Ref) error
	// Others returns up to n keys that are not sealed under keyID, after a ref, in order.
	Others(ctx context.Context, keyID string, after Ref, n int) ([]Entry, error)
	// Replace keeps e in place of was. It does nothing if the key is another one meanwhile.
	Replace(ctx context.Context, was, e Entry) error
	// Deleted returns up to n refs whose key was deleted, after a ref, in order.
	Deleted(ctx context.Context, after Ref, n int) ([]Ref, error)
	// Count returns how many keys there are by the id of the key that seals them.
	Count(ctx context.Context) (map[string]int, error)
}
