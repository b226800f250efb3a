package memory

// Backlog counts what the store still has to tell: events that are not routed yet, and
// deliveries that have not come to an end. A program that stops says so, because with
// the process it is gone.
func (s *Store) Backlog() (unrouted, unfinished int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.outbox.pending), len(s.queue.rows)
}
