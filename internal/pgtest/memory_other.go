//go:build !linux

package pgtest

import "os"

// fastDir makes a folder in the usual place.
func fastDir() (string, error) { return os.MkdirTemp("", "pgtest") }
