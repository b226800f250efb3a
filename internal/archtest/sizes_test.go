package archtest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A program links what it uses: health data and queries in process, and a mount of health data alone, stay
// small. go test ./internal/archtest -run TestSizes_programsLinkOnlyWhatTheyUse -v prints their sizes without symbols.
func TestSizes_programsLinkOnlyWhatTheyUse(t *testing.T) {
	for program, most := range map[string]int64{"process": 9_000_000, "mount": 18_000_000} {
		file := filepath.Join(t.TempDir(), program)
		out, err := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, "./testdata/sizes/"+program).CombinedOutput()
		require.NoError(t, err, "%s", out)
		info, err := os.Stat(file)
		require.NoError(t, err)
		t.Logf("%s: %d bytes", program, info.Size())
		require.Less(t, info.Size(), most, program)
	}
}
