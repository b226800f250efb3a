//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Freeze suspends all processes of the server with SIGSTOP: its sockets stay open and nothing answers. thaw resumes
// them; call it before the server ends.
func (s *Server) Freeze() (thaw func(), err error) {
	text, err := os.ReadFile(filepath.Join(s.dir, "data", "postmaster.pid"))
	if err != nil {
		return nil, fmt.Errorf("freeze: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	parent, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return nil, fmt.Errorf("freeze: %w", err)
	}
	frozen := []int{parent}
	thaw = func() {
		for _, pid := range slices.Backward(frozen) {
			_ = syscall.Kill(pid, syscall.SIGCONT) // fails only for a process that has ended
		}
	}
	// The parent is stopped first, so that it starts no more processes.
	if err := syscall.Kill(parent, syscall.SIGSTOP); err != nil {
		return nil, fmt.Errorf("freeze: %w", err)
	}
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output() //nolint:noctx // it ends by itself
	if err != nil {
		thaw()
		return nil, fmt.Errorf("freeze: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		var pid, of int
		if _, err := fmt.Sscan(line, &pid, &of); err == nil && of == parent && syscall.Kill(pid, syscall.SIGSTOP) == nil {
			frozen = append(frozen, pid)
		}
	}
	return thaw, nil
}
