package postgres

import "context"

// Waiting returns how many writes of samples wait to be gathered.
func Waiting(s *Store) int {
	s.writes.mu.Lock()
	defer s.writes.mu.Unlock()
	return len(s.writes.waiting)
}

// MigrateSome applies the first n files, as an older version of this library would.
func MigrateSome(ctx context.Context, db DB, n int) error { return migrateFiles(ctx, db, n) }
