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

// pages returns the text of each page for readers, by its path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, path := range tracked(t, filepath.Join("..", "..")) {
		if filepath.Ext(path) != ".md" || path == "CHANGELOG.md" || strings.HasPrefix(path, "docs/adr/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", "..", path))
		require.NoError(t, err)
		out[path] = string(text)
	}
	return out
}

// plain returns the lines of code without indentation.
func plain(code string) string {
	var out strings.Builder
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

// Go in a page is an excerpt of a file that is compiled and tested. What is none is parsed, and
// each name that it uses of a package of ours is there.
func TestDocs_goSnippetsCompile(t *testing.T) {
	var sources strings.Builder
	for _, path := range tracked(t, filepath.Join("..", "..")) {
		if filepath.Ext(path) == ".go" {
			text, err := os.ReadFile(filepath.Join("..", "..", path))
			require.NoError(t, err)
			sources.WriteString("\n" + plain(string(text)))
		}
	}
	names := map[string]map[string]bool{}
	for _, p := range every(t) {
		if p.Name == "main" || strings.HasSuffix(p.Name, "_test") {
			continue
		}
		if names[p.Name] == nil {
			names[p.Name] = map[string]bool{}
		}
		for _, f := range parse(t, p, false) {
			for _, decl := range f.Decls {
				for _, name := range exported(decl) {
					names[p.Name][name] = true
				}
			}
		}
	}
	fence := regexp.MustCompile("(?s)\n( *)```go\n(.*?)\n *```")
	excerpts := 0
	for path, text := range pages(t) {
		for _, m := range fence.FindAllStringSubmatch(text, -1) {
			code := m[2]
			if strings.Contains(sources.String(), "\n"+plain(code)) {
				excerpts++
				continue
			}
			code = strings.NewReplacer(", ...}", "}", "\n...\n", "\n").Replace(code)
			file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {\n"+code+"\n}", 0)
			if err != nil {
				file, err = parser.ParseFile(token.NewFileSet(), "", "package p\n"+code, 0)
			}
			require.NoError(t, err, "%s:\n%s", path, code)
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && names[x.Name] != nil && s.Sel.IsExported() {
						require.True(t, names[x.Name][s.Sel.Name], "%s: %s.%s is not there:\n%s", path, x.Name, s.Sel.Name, code)
					}
				}
				return true
			})
		}
	}
	require.GreaterOrEqual(t, excerpts, 12)
}

// Commands in a page name programs, flags and targets that are there.
func TestDocs_commandsNameExistingPrograms(t *testing.T) {
	root := filepath.Join("..", "..")
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	command := regexp.MustCompile(`go (?:run|build|test|doc) [^\n|` + "`" + `]*?(\./[a-z0-9_/-]+)([^\n` + "`" + `]*)`)
	flags := regexp.MustCompile(` -([a-z][a-z0-9-]*)`)
	target := regexp.MustCompile("(?m)(?:^ *|`)make ([a-z]+)")
	programs := 0
	for path, text := range pages(t) {
		for _, m := range command.FindAllStringSubmatch(strings.ReplaceAll(text, "\\\n", " "), -1) {
			files, err := filepath.Glob(filepath.Join(root, m[1], "*.go"))
			require.NoError(t, err)
			require.NotEmpty(t, files, "%s: %s", path, m[0])
			programs++
			if !strings.HasPrefix(m[0], "go run") {
				continue
			}
			var source strings.Builder
			for _, file := range files {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				source.Write(text)
			}
			for _, f := range flags.FindAllStringSubmatch(m[2], -1) {
				require.Contains(t, source.String(), `"`+f[1]+`"`, "%s: %s has no flag -%s", path, m[1], f[1])
			}
		}
		for _, m := range target.FindAllStringSubmatch(text, -1) {
			require.Contains(t, string(makefile), "\n"+m[1]+":", "%s: make %s", path, m[1])
		}
	}
	require.Greater(t, programs, 12)
}
