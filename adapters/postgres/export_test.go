package postgres

// Waiting returns how many writes of samples wait to be gathered.
func Waiting(s *Store) int {
	s.writes.mu.Lock()
	defer s.writes.mu.Unlock()
	return len(s.writes.waiting)
}
