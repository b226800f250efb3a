package postgres

import (
	"strings"
	"syscall"
)

// userTimeout is the socket option TCP_USER_TIMEOUT.
const userTimeout = 0x12

// limitUnreceived limits how long data of a connection may be without a receipt.
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
