package archtest_test

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// size is what is written by hand in a folder, tests left out.
type size struct {
	lines int
	// names and methods are the exported ones, where a host can import the package.
	names, methods int
}

// Prints lines and exported names of the tree, written by hand and outside of tests, and of each package.
// Nothing is generated, main or internal among the names.
//
//	go test ./internal/archtest -run TestSourceSize_countsLinesAndExportedNames -v
func TestSourceSize_countsLinesAndExportedNames(t *testing.T) {
	root := filepath.Join("..", "..")
	of := map[string]*size{}
	generated := 0
	for _, name := range tracked(t, root) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted and not yet committed
		}
		require.NoError(t, err)
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		if ast.IsGenerated(file) {
			generated += bytes.Count(text, []byte("\n"))
			continue
		}
		s := of[path.Dir(name)]
		if s == nil {
			s = &size{}
			of[path.Dir(name)] = s
		}
		s.lines += bytes.Count(text, []byte("\n"))
		if file.Name.Name == "main" || strings.Contains("/"+name, "/internal/") {
			continue
		}
		for _, d := range file.Decls {
			s.names += len(exported(d))
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.IsExported() && ast.IsExported(receiverName(f)) {
				s.methods++
			}
		}
	}
	var all, names, methods int
	dirs := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(cmp.Compare(of[b].lines, of[a].lines), cmp.Compare(a, b)) })
	t.Log(" lines names methods")
	for _, dir := range dirs {
		s := of[dir]
		t.Logf("%6d %5d %7d %s", s.lines, s.names, s.methods, dir)
		all, names, methods = all+s.lines, names+s.names, methods+s.methods
	}
	t.Logf("%6d %5d %7d all of %d packages; %d lines are generated", all, names, methods, len(dirs), generated)
	require.Greater(t, len(dirs), 80)
	require.Greater(t, names, 1000)
}

func receiverName(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	if p, ok := of.(*ast.StarExpr); ok {
		of = p.X
	}
	switch g := of.(type) {
	case *ast.IndexExpr:
		of = g.X
	case *ast.IndexListExpr:
		of = g.X
	}
	return of.(*ast.Ident).Name
}
