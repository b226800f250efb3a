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

// Wherever an exported function takes options by pointer, nil means the defaults: the function, or the one
// of its package that it hands them to, compares them with nil before it reads a field.
func TestOptions_nilMeansTheDefaults(t *testing.T) {
	taken := 0
	for _, p := range every(t) {
		functions := functionsOf(t, p.Dir)
		for _, list := range functions {
			for _, f := range list {
				param := optionsOf(f)
				if param == "" || !f.Name.IsExported() {
					continue
				}
				taken++
				if reader := readsNil(functions, f, param, 0); reader != "" {
					t.Errorf("%s: %s takes options, and %s reads or keeps them before it compares them with nil", p.rel(), f.Name.Name, reader)
				}
			}
		}
	}
	require.Greater(t, taken, 90)
}

// functionsOf returns the functions and methods of a package, without those of its tests, by name.
func functionsOf(t *testing.T, dir string) map[string][]*ast.FuncDecl {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	out := map[string][]*ast.FuncDecl{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				out[f.Name.Name] = append(out[f.Name.Name], f)
			}
		}
	}
	return out
}

// optionsOf returns the name of the parameter of a function that is a pointer to options.
func optionsOf(f *ast.FuncDecl) string {
	for _, p := range f.Type.Params.List {
		star, ok := p.Type.(*ast.StarExpr)
		if !ok || len(p.Names) != 1 {
			continue
		}
		of := star.X
		if s, ok := of.(*ast.SelectorExpr); ok {
			of = s.Sel
		}
		if id, ok := of.(*ast.Ident); ok && strings.HasSuffix(id.Name, "Options") {
			return p.Names[0].Name
		}
	}
	return ""
}

// readsNil returns the function, f or one that f hands the options to, that reads or keeps them without a
// look at whether they are nil. A function of another package is looked at there.
func readsNil(functions map[string][]*ast.FuncDecl, f *ast.FuncDecl, param string, depth int) string {
	is := func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return ok && id.Name == param
	}
	handed := map[ast.Expr]bool{}
	bad, compared := "", false
	hand := func(name string, paramOf func(*ast.FuncDecl) string) {
		for _, to := range functions[name] {
			if p := paramOf(to); p != "" && depth < 4 && bad == "" {
				bad = readsNil(functions, to, p, depth+1)
			}
		}
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			compared = compared || (n.Op == token.EQL || n.Op == token.NEQ) && is(n.X)
		case *ast.KeyValueExpr:
			handed[n.Key] = true // the name of a field
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && is(s.X) {
				handed[s.X] = true
				hand(s.Sel.Name, receiverOf)
			}
			for _, a := range n.Args {
				if is(a) {
					handed[a] = true
					if to, ok := n.Fun.(*ast.Ident); ok {
						hand(to.Name, optionsOf)
					}
				}
			}
		case *ast.SelectorExpr:
			handed[n.Sel] = true // the name of a field
		case *ast.Ident:
			if is(n) && !handed[n] && bad == "" {
				bad = f.Name.Name
			}
		}
		return !compared && bad == ""
	})
	return bad
}

// receiverOf returns the receiver of a method of options. One that takes a copy reads them.
func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List[0].Names) != 1 {
		return ""
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if id, ok := of.(*ast.Ident); !ok || !strings.HasSuffix(id.Name, "Options") {
		return ""
	}
	return f.Recv.List[0].Names[0].Name
}
