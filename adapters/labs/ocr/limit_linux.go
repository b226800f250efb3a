package ocr

import (
	"os/exec"
	"syscall"
)

// attributes makes the program end with us.
func attributes(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// giveWay lets everything else on the machine go first.
func giveWay(pid int) { _ = syscall.Setpriority(syscall.PRIO_PROCESS, pid, 10) }
