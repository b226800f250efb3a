package memory

// SeenLen returns how many ids and keys are kept, each of which is in the heap once.
func SeenLen(s *Seen) int {
	if len(s.expiries) != len(s.ids)+len(s.keys) {
		return -1
	}
	return len(s.ids) + len(s.keys)
}
