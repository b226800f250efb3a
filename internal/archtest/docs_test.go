package archtest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file that a page names, as `folder/file.go` or as a link, is there. Records of decisions
// and the changelog name what was there at their time.
func TestDocs_nameFilesThatExist(t *testing.T) {
	root := filepath.Join("..", "..")
	code := regexp.MustCompile("`([a-z0-9_]+(?:/[a-z0-9_.-]+)+\\.(?:go|json|sql|md|yaml))`")
	link := regexp.MustCompile(`\]\(([A-Za-z0-9_./-]+)\)`)
	checked := 0
	for _, path := range tracked(t, root) {
		if filepath.Ext(path) != ".md" || path == "CHANGELOG.md" || strings.HasPrefix(path, "docs/adr/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		for _, m := range code.FindAllStringSubmatch(string(text), -1) {
			require.FileExists(t, filepath.Join(root, m[1]), path)
			checked++
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			_, err := os.Stat(filepath.Join(root, filepath.Dir(path), m[1]))
			require.NoError(t, err, "%s: %s", path, m[1])
			checked++
		}
	}
	require.Greater(t, checked, 100)
}

// The hosts of the guide are programs with a test, whose main.go has 60 lines at most.
func TestExampleHosts_haveAtMost60LinesAndATest(t *testing.T) {
	root := filepath.Join("..", "..")
	guide, err := os.ReadFile(filepath.Join(root, "docs/guides/embed.md"))
	require.NoError(t, err)
	hosts := regexp.MustCompile("(?m)^\\| .* \\| `(examples/[a-z]+)` \\|").FindAllStringSubmatch(string(guide), -1)
	require.Len(t, hosts, 5)
	for _, host := range hosts {
		text, err := os.ReadFile(filepath.Join(root, host[1], "main.go"))
		require.NoError(t, err)
		require.LessOrEqual(t, strings.Count(string(text), "\n"), 60, host[1])
		require.FileExists(t, filepath.Join(root, host[1], "main_test.go"))
	}
}
