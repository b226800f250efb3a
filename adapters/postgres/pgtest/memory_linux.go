package pgtest

import (
	"os"
	"syscall"
)

// minShm is the free space of /dev/shm that a server needs. The largest test program uses an eighth of it.
const minShm = 4 << 30

// fastDir creates a folder in /dev/shm, where creating and removing the files of hundreds
// of databases is cheap, or in the default folder if /dev/shm is too small.
func fastDir() (string, error) {
	const memory = "/dev/shm"
	var fs syscall.Statfs_t
	if syscall.Statfs(memory, &fs) == nil && fs.Bavail*uint64(fs.Bsize) >= minShm {
		if dir, err := os.MkdirTemp(memory, "pgtest"); err == nil {
			return dir, nil
		}
	}
	return os.MkdirTemp("", "pgtest")
}
