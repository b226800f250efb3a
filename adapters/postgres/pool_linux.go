package postgres

import (
	"strings"
	"syscall"
)

// userTimeout is the socket option TCP_USER_TIMEOUT.
const userTimeout = 0x12

// limitUnreceived makes the kernel close a connection if sent data stays unacknowledged for lostTime.
func limitUnreceived(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout, int(lostTime.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return failed
}
