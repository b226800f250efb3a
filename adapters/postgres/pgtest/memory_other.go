//go:build !linux

package pgtest

import "os"

// fastDir creates a folder in the default place for temporary files.
func fastDir() (string, error) { return os.MkdirTemp("", "pgtest") }
