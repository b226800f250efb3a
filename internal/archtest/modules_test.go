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
func TestModules_eachDirectModuleIsDocumented(t *testing.T) {
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

// Every module of the workspace stands in the page about releases, at most eight of them are nested,
// and that of the client requires no other module.
func TestModules_areListedInTheReleasePage(t *testing.T) {
	root := filepath.Join("..", "..")
	read := func(name ...string) string {
		text, err := os.ReadFile(filepath.Join(append([]string{root}, name...)...))
		require.NoError(t, err)
		return string(text)
	}
	page := read("docs", "release.md")
	var nested []string
	for _, m := range regexp.MustCompile(`(?m)^\t\./(\S+)$`).FindAllStringSubmatch(read("go.work"), -1) {
		nested = append(nested, m[1])
		require.Contains(t, page, "`"+m[1]+"`")
		require.Contains(t, read(m[1], "go.mod"), "module "+module+"/"+m[1]+"\n")
	}
	require.Contains(t, nested, "adapters/client")
	require.LessOrEqual(t, len(nested), 8)
	require.NotContains(t, read("adapters", "client", "go.mod"), "require")
}
