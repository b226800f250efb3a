package archtest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/dependencies.md has a row for each direct module of the modules of the workspace, and for no
// other. The root module has at most 12.
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
	var direct []string
	for _, folder := range read("go.work", `(?m)^\t(\S+)$`) {
		for _, path := range read(filepath.Join(folder, "go.mod"), `(?m)^(?:\t|require )(\S+) v\S+$`) {
			if path != module && !strings.HasPrefix(path, module+"/") && !slices.Contains(direct, path) {
				direct = append(direct, path)
			}
		}
	}
	require.Greater(t, len(direct), 20)
	require.LessOrEqual(t, len(read("go.mod", `(?m)^\t(\S+) v\S+$`)), 12)
	require.ElementsMatch(t, direct, read(filepath.Join("docs", "dependencies.md"), "(?m)^\\| `([^`]+)` \\|"))
}
