package archtest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/dependencies.md has a row for each direct module, and for no other.
func TestModulesAreExplained(t *testing.T) {
	root := filepath.Join("..", "..")
	read := func(name string, form string) (out []string) {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(form).FindAllStringSubmatch(string(text), -1) {
			out = append(out, m[1])
		}
		return out
	}
	direct := read("go.mod", `(?m)^\t(\S+) v\S+$`)
	require.Greater(t, len(direct), 20)
	require.ElementsMatch(t, direct, read(filepath.Join("docs", "dependencies.md"), "(?m)^\\| `([^`]+)` \\|"))
}
