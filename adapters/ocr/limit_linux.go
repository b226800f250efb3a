package ocr

import (
	"os/exec"
	"syscall"
)

// attributes makes the program end with us.
func attributes(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
