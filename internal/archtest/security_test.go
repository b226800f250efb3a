package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each control of docs/security.md names a test or a suite that proves it, and each that is named exists,
// in the package that is named before it.
func TestSecurityPage_namesTestsThatExist(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "## Controls")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	code := regexp.MustCompile("`(?:([a-z0-9_./]+): )?((?:Test|Run|Fuzz)[A-Za-z0-9_]+)`")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 6 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[1]) == "control" {
			continue
		}
		rows++
		named := code.FindAllStringSubmatch(cells[4], -1)
		require.NotEmpty(t, named, "no test: %s", cells[1])
		folder := ""
		for _, m := range named {
			if m[1] != "" {
				folder = m[1]
			}
			require.NotEmpty(t, folder, "no package: %s", m[2])
			require.True(t, declares(t, filepath.Join(root, folder), m[2]), "%s has no %s", folder, m[2])
		}
	}
	require.Greater(t, rows, 30)
}

// declares reports whether a Go file of a folder declares a function.
func declares(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == name {
				return true
			}
		}
	}
	return false
}
