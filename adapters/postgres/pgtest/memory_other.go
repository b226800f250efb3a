//go:build !linux

package pgtest

import "os"

func fastDir() (string, error) { return os.MkdirTemp("", "pgtest") }
