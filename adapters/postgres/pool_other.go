//go:build !linux

package postgres

import "syscall"

func limitUnreceived(string, string, syscall.RawConn) error { return nil }
