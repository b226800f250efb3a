//go:build unix

package httpserver

import (
	"math"
	"syscall"
)

// fileHandles returns how many file handles this process may have open; 0 for no limit.
func fileHandles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > math.MaxInt32 {
		return 0
	}
	return int(limit.Cur)
}
