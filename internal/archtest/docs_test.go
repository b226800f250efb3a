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
func TestDocsNameFilesThatExist(t *testing.T) {
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
