//go:build !unix

package httpserver

// fileHandles returns how many file handles this process may have; 0 for no limit.
func fileHandles() int { return 0 }
