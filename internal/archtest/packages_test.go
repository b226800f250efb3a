package archtest_test

import (
	"bytes"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rootNames lists the exported names of the root package. The root holds only what two or
// more domain packages share.
var rootNames = []string{
	"AESSealer",
	"At", "BareText", "CheckText",
	"Conflict",
	"Date",
	"DateOf",
	"Environment",
	"ErrorKind",
	"Event",
	"EventType",
	"Exhausted", "FoldText",
	"Forbidden",
	"Independent",
	"Invalid",
	"InvalidError",
	"KindOf",
	"Latest",
	"Mode",
	"NewAESSealer",
	"NotFound",
	"Ordered",
	"ParseDate",
	"ParseNumber",
	"ParseOffset",
	"ParseTime",
	"ParseTimeOffset",
	"ParseTimeZone",
	"Precondition",
	"Private",
	"Problem",
	"Problems",
	"Production",
	"RuleError",
	"Sandbox",
	"Sealed",
	"Sealer",
	"TeamID",
	"Time",
	"TraceOf",
	"Unauthenticated",
	"Unavailable",
	"Unimplemented",
	"Unknown",
	"UserID",
	"Version",
	"WithTrace",
}

func TestRootPackage_exportsOnlyTheListedNames(t *testing.T) {
	var names []string
	for _, f := range parse(t, pkg(t, "."), false) {
		for _, decl := range f.Decls {
			names = append(names, exported(decl)...)
		}
	}
	slices.Sort(names)
	require.Equal(t, rootNames, names, "a new name in the root package needs an ADR (docs/adr); then add it to this list")
}

// exported returns the exported names that decl declares.
func exported(decl ast.Decl) []string {
	var idents []*ast.Ident
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			idents = append(idents, d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				idents = append(idents, s.Name)
			case *ast.ValueSpec:
				idents = append(idents, s.Names...)
			}
		}
	}
	var names []string
	for _, id := range idents {
		if id.IsExported() {
			names = append(names, id.Name)
		}
	}
	return names
}

func TestPackages_haveOnePackageComment(t *testing.T) {
	for _, p := range every(t) {
		if len(p.GoFiles) == 0 {
			continue
		}
		var comments []string
		for _, f := range parse(t, p, false) {
			if f.Doc != nil {
				comments = append(comments, f.Doc.Text())
			}
		}
		if len(comments) != 1 {
			t.Errorf("%s: %d package comments; one file has it", p.rel(), len(comments))
		} else if p.Name != "main" && !strings.HasPrefix(comments[0], "Package "+p.Name+" ") {
			t.Errorf("%s: the package comment starts with \"Package %s\"", p.rel(), p.Name)
		}
	}
}

// Every importable package has a func Example() with checked output.
func TestPackages_haveAnExampleWithOutput(t *testing.T) {
	for _, p := range every(t) {
		private := p.rel() != "internal/fsm" && p.rel() != "internal/work" &&
			strings.Contains("/"+p.rel()+"/", "/internal/")
		if p.Name == "main" || private || within(p.rel(), "adapters/postgres/pgtest") || slices.Contains(suites, p.rel()) {
			continue
		}
		shown := slices.ContainsFunc(doc.Examples(parse(t, p, true)...), func(e *doc.Example) bool {
			return e.Name == "" && e.Output != ""
		})
		if !shown {
			t.Errorf("%s: no func Example() with an Output comment", p.rel())
		}
	}
}

func TestFiles_haveAtMost700Lines(t *testing.T) {
	const most = 700
	for _, p := range every(t) {
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.TestGoFiles, p.XTestGoFiles) {
			if strings.HasSuffix(name, "_gen.go") {
				continue
			}
			b, err := os.ReadFile(filepath.Join(p.Dir, name))
			require.NoError(t, err)
			if n := bytes.Count(b, []byte("\n")); n > most {
				t.Errorf("%s/%s: %d lines; split files over %d lines", p.rel(), name, n, most)
			}
		}
	}
}

func pkg(t *testing.T, rel string) listed {
	t.Helper()
	for _, p := range every(t) {
		if p.rel() == rel {
			return p
		}
	}
	t.Fatalf("no package %s", rel)
	return listed{}
}

// parse returns the syntax trees of the package's files, or of its test files.
func parse(t *testing.T, p listed, tests bool) []*ast.File {
	t.Helper()
	names := slices.Concat(p.GoFiles, p.CgoFiles)
	if tests {
		names = slices.Concat(p.TestGoFiles, p.XTestGoFiles)
	}
	var files []*ast.File
	fset := token.NewFileSet()
	for _, name := range names {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, f)
	}
	return files
}

// go doc of a domain package opens with how its service is made and used, and fits a screen or two.
func TestDomainPackages_openWithTheConstructor(t *testing.T) {
	for _, dir := range []string{"healthdata", "linking", "orders", "aggregate", "labreport", "webhook"} {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", dir, "doc.go"), nil, parser.ParseComments)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(file.Doc.Text()), "\n")
		require.LessOrEqual(t, len(lines), 40, dir)
		require.True(t, slices.ContainsFunc(lines[:12], func(l string) bool {
			return strings.HasPrefix(l, "\t") && strings.Contains(l, dir+".New")
		}), dir)
	}
	for _, dir := range append(slices.Clone(domain), "webhook/receiver") {
		for _, f := range parse(t, listed{Dir: filepath.Join("..", "..", dir), GoFiles: goFiles(t, dir)}, false) {
			require.LessOrEqual(t, strings.Count(strings.TrimSpace(f.Doc.Text()), "\n")+1, 40, dir)
		}
	}
}

// A constructor has at most five parameters, a context and the options included: what is required stays
// positional, and the rest are options by name.
func TestConstructors_haveAtMostFiveParameters(t *testing.T) {
	const most = 5
	for _, p := range every(t) {
		for _, f := range parse(t, p, false) {
			for _, decl := range f.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok || !strings.HasPrefix(fn.Name.Name, "New") {
					continue
				}
				if n := fn.Type.Params.NumFields(); n > most {
					t.Errorf("%s: %s has %d parameters; make at most %d of them, the rest options", p.rel(), fn.Name.Name, n, most)
				}
			}
		}
	}
}

// A type outside of adapters has at most 45 exported methods and 60 in all. Handlers of adapters have one method for
// each operation that they serve, and are not counted.
func TestTypes_haveAtMost45ExportedMethodsAnd60InAll(t *testing.T) {
	const mostExported, most = 45, 60
	for _, p := range every(t) {
		if strings.HasPrefix(p.rel(), "adapters/") {
			continue
		}
		exported, all := map[string]int{}, map[string]int{}
		for _, f := range parse(t, p, false) {
			for _, decl := range f.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil {
					all[receiverName(fn)]++
					if fn.Name.IsExported() {
						exported[receiverName(fn)]++
					}
				}
			}
		}
		for name, n := range all {
			if n > most || exported[name] > mostExported {
				t.Errorf("%s: %s has %d exported methods and %d in all; make it at most %d and %d: give a group of them a type of its own",
					p.rel(), name, exported[name], n, mostExported, most)
			}
		}
	}
}

// goFiles returns the names of the files of a package that are no tests.
func goFiles(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
	require.NoError(t, err)
	var names []string
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			names = append(names, filepath.Base(path))
		}
	}
	return names
}
