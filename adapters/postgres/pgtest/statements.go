package pgtest

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// PrepareStatements checks that the server can prepare every statement, so that each of them
// fits the schema. The statements have the names of their constants.
func PrepareStatements(t *testing.T, statements map[string]string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for name, sql := range statements {
		if _, err := conn.Prepare(t.Context(), name, sql); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// CheckListed fails the test if a constant of the package in this folder holds a statement and is
// not in statements. except names files and constants that are left out.
func CheckListed(t *testing.T, statements map[string]string, except ...string) {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") || slices.Contains(except, e.Name()) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			name := spec.Names[0].Name
			if statements[name] == "" && isStatement(spec.Values[0], statements) && !slices.Contains(except, name) {
				t.Errorf("%s: %s is not among the statements of the test", e.Name(), name)
			}
			return true
		})
	}
}

// isStatement reports whether an expression is a text that begins as a statement does.
func isStatement(e ast.Expr, statements map[string]string) bool {
	if sum, ok := e.(*ast.BinaryExpr); ok {
		if name, ok := sum.X.(*ast.Ident); ok {
			return statements[name.Name] != ""
		}
		return isStatement(sum.X, statements)
	}
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return false
	}
	first, _, _ := strings.Cut(strings.TrimSpace(strings.Trim(lit.Value, "`\"")), " ")
	return slices.Contains([]string{"select", "insert", "update", "delete", "with"}, first)
}
