//go:build !unix

package embedded

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/healthlab-dev/healthlab"
)

func handOver(string) error {
	return fmt.Errorf("%w: a private server needs a Unix system", healthlab.Unimplemented)
}

func apart(*exec.Cmd) {}

func tryLock(*os.File) error { return nil }
