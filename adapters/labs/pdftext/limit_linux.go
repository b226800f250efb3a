package pdftext

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

func attributes(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// limitSelf limits the process: its memory, no core file (which would contain health data), no large files, and the
// lowest priority.
func limitSelf(memory int64) {
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10)
	data, _ := pages(os.Getpid(), 5)
	room := uint64(data + memory)
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: room, Max: room})
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	_ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 64 << 20, Max: 64 << 20})
}

func resident(pid int) (int64, bool) { return pages(pid, 1) }

// pages returns a field of a process's /proc/PID/statm, in bytes.
func pages(pid, field int) (int64, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0, false
	}
	f := strings.Fields(string(b))
	if len(f) <= field {
		return 0, false
	}
	n, err := strconv.ParseInt(f[field], 10, 64)
	return n * int64(os.Getpagesize()), err == nil
}
