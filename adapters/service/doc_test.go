package service_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The program of the package comment is the function serve of the Example, as written.
func TestPackageComment_equalsTheExample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("service.go")
	require.NoError(t, err)
	comment, _, _ := strings.Cut(string(text), "\npackage service")
	var code strings.Builder
	for line := range strings.Lines(comment) {
		if rest, ok := strings.CutPrefix(line, "//\t"); ok {
			code.WriteString("\t" + rest)
		}
	}
	require.NotEmpty(t, code.String())
	example, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	require.Contains(t, string(example), code.String())
}
