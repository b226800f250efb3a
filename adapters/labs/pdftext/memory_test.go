package pdftext_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// watchMemory notes the most memory that any child process had in use, where the
// system shows it. The function that it returns ends it.
func watchMemory(peak *atomic.Int64) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(10 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				for _, f := range childStats() {
					if n := residentOf(f); n > peak.Load() {
						peak.Store(n)
					}
				}
			}
		}
	}()
	return func() { close(done); <-ended }
}

func childStats() []string {
	var out []string
	me := strconv.Itoa(os.Getpid())
	tasks, _ := filepath.Glob("/proc/" + me + "/task/*/children")
	for _, f := range tasks {
		b, _ := os.ReadFile(f)
		for _, pid := range strings.Fields(string(b)) {
			out = append(out, "/proc/"+pid+"/statm")
		}
	}
	return out
}

func residentOf(statm string) int64 {
	b, err := os.ReadFile(statm)
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.ParseInt(f[1], 10, 64)
	return n * int64(os.Getpagesize())
}
