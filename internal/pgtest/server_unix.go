//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// servant returns the user to run the server as: PostgreSQL refuses root.
func servant() (uid, gid int, ok bool) {
	if os.Getuid() != 0 {
		return 0, 0, false
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil {
			continue
		}
		gid, err := strconv.Atoi(u.Gid)
		if err == nil {
			return uid, gid, true
		}
	}
	return 65534, 65534, true
}

// handOver gives a folder to the server's user.
func handOver(dir string) error {
	uid, gid, ok := servant()
	if !ok {
		return nil
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		return fmt.Errorf("hand the folder over to the server: %w", err)
	}
	return nil
}

// unprivileged makes a command run as the server's user.
func unprivileged(cmd *exec.Cmd) {
	if uid, gid, ok := servant(); ok {
		attributes(cmd).Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
}

// apart takes a command out of reach of the terminal's interrupt.
func apart(cmd *exec.Cmd) { attributes(cmd).Setpgid = true }

func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}
