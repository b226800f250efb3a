package main

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The program has the data of its first run at the second, and counts no step twice.
func TestRun_secondRunCountsNoStepTwice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "inprocess.db")
	for range 2 {
		var out bytes.Buffer
		run(t.Context(), file, time.Date(2026, 3, 8, 9, 0, 0, 0, time.UTC), &out)
		require.Equal(t, "2026-03-02 1000\n2026-03-03 1000\n2026-03-04 1000\n2026-03-05 1000\n2026-03-06 1000\n2026-03-07 1000\n", out.String())
	}
}
