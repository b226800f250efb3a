package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shortLines is how many lines a function has at most whose body says what a comment would.
const shortLines = 6

func TestShortFunctions_haveNoComment(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, path := range tracked(t, root) {
		if !strings.HasSuffix(path, ".go") || strings.Contains(path, "testdata/") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, filepath.Join(root, path), nil, parser.ParseComments)
		if err != nil || ast.IsGenerated(file) {
			continue // deleted and not yet committed, or not written by hand
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Name.IsExported() || f.Body == nil || f.Name.Name == "main" || f.Name.Name == "init" || f.Doc.Text() == "" {
				continue
			}
			lines := files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1
			require.Greater(t, lines, shortLines, "%s: %s has %d lines: its name and body say what it does, and a reason stands in the body",
				path, f.Name.Name, lines)
		}
	}
}
