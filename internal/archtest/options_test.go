package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A host can set each field of an exported struct of options. A test, an example, a page of docs or another
// package names the field: what nothing sets is a constant.
func TestOptions_eachIsSetByATestExampleOrPage(t *testing.T) {
	root := filepath.Join("..", "..")
	type option struct{ file, of, field string }
	var options []option
	users := map[string]map[string]bool{} // the folders that name a word, and ! for a test or a page
	inGo := regexp.MustCompile(`\.(\w+)|(\w+):`)
	inPages := regexp.MustCompile(`\w+`)
	for _, name := range tracked(t, root) {
		if !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".md") || name == "CHANGELOG.md" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // deleted and not yet committed
		}
		shows := strings.HasSuffix(name, ".md") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "examples/")
		words := inGo
		if strings.HasSuffix(name, ".md") {
			words = inPages
		}
		for _, m := range words.FindAllStringSubmatch(string(text), -1) {
			word, place := strings.Trim(m[0], ".:"), path.Dir(name)
			if users[word] == nil {
				users[word] = map[string]bool{}
			}
			if shows {
				place = "!"
			}
			users[word][place] = true
		}
		if shows || strings.Contains(name, "testdata/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() || !strings.HasSuffix(spec.Name.Name, "Options") {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					for _, id := range f.Names {
						if id.IsExported() {
							options = append(options, option{name, spec.Name.Name, id.Name})
						}
					}
				}
			}
			return false
		})
	}
	require.Greater(t, len(options), 300)
	for _, o := range options {
		used := users[o.field]
		delete(used, path.Dir(o.file))
		if len(used) == 0 {
			t.Errorf("%s: nothing sets %s.%s: test it, show it in a page, or make it a constant", o.file, o.of, o.field)
		}
		used[path.Dir(o.file)] = true
	}
}
