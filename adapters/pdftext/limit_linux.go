package pdftext

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attributes makes the child end with its parent.
func attributes(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// limitSelf gives the process its limits: its data, with a little room above what the
// parent watches for; no core file, which would hold health data; no large files; and
// everything else on the machine goes first.
func limitSelf(memory int64) {
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10)
	room := uint64(memory + 96<<20)
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: room, Max: room})
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	_ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 64 << 20, Max: 64 << 20})
}

// resident returns the memory that a process has in use, in bytes.
func resident(pid int) (int64, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0, false
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0, false
	}
	n, err := strconv.ParseInt(f[1], 10, 64)
	return n * int64(os.Getpagesize()), err == nil
}
