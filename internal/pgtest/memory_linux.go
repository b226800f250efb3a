package pgtest

import (
	"os"
	"syscall"
)

// roomy is how much must be free in the machine's memory before a server is kept there.
// The largest of our test programs takes an eighth of it.
const roomy = 4 << 30

// fastDir makes a folder in memory, where making and removing the files of hundreds of
// databases costs little; or, where memory has no room, in the usual place.
func fastDir() (string, error) {
	const memory = "/dev/shm"
	var fs syscall.Statfs_t
	if syscall.Statfs(memory, &fs) == nil && fs.Bavail*uint64(fs.Bsize) >= roomy {
		if dir, err := os.MkdirTemp(memory, "pgtest"); err == nil {
			return dir, nil
		}
	}
	return os.MkdirTemp("", "pgtest")
}
