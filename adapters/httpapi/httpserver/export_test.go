package httpserver

// Waiting returns how many open connections wait for their callers.
func (s *Server) Waiting() (n int) {
	s.connections.mu.Lock()
	defer s.connections.mu.Unlock()
	now := clock()
	for _, list := range s.connections.of {
		for c := range list {
			if _, waits := c.waitsSince(now); waits {
				n++
			}
		}
	}
	return n
}
