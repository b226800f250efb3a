package archtest_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// listed is what go list says of a package.
type listed struct {
	Dir          string
	ImportPath   string
	Name         string
	GoFiles      []string
	CgoFiles     []string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// rel returns the package's name from the module's root.
func (p listed) rel() string { return relative(p.ImportPath) }

func relative(importPath string) string {
	if importPath == module {
		return "."
	}
	return strings.TrimPrefix(importPath, module+"/")
}

var packages = sync.OnceValues(func() ([]listed, error) {
	cmd := exec.Command("go", "list", "-json=Dir,ImportPath,Name,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,"+
		"Imports,TestImports,XTestImports", "./...")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var all []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
})

func every(t *testing.T) []listed {
	t.Helper()
	all, err := packages()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

const record = "if it is right, say why in docs/adr first, then change the table in internal/archtest"

func TestImports(t *testing.T) {
	for _, p := range every(t) {
		if _, ok := row(mayImport, p.rel()); !ok {
			t.Errorf("%s: the layout has no such package; %s", p.rel(), record)
			continue
		}
		tests := slices.Concat(p.TestImports, p.XTestImports)
		for _, fault := range slices.Concat(faults(p.rel(), p.Imports, false), faults(p.rel(), tests, true)) {
			t.Errorf("%s; %s", fault, record)
		}
	}
}

// faults returns which imports of pkg, or of its tests, the law does not allow.
func faults(pkg string, imports []string, test bool) []string {
	var out []string
	who := pkg
	if test {
		who = "a test of " + pkg
	}
	for _, imp := range imports {
		first, _, _ := strings.Cut(imp, "/")
		switch {
		case imp == module || strings.HasPrefix(imp, module+"/"):
			if !permits(pkg, relative(imp), test) {
				out = append(out, who+" imports "+relative(imp))
			}
		case strings.Contains(first, "."):
			allowed, _ := row(modules, pkg)
			if test {
				allowed = slices.Concat(allowed, testModules)
			}
			if !slices.ContainsFunc(allowed, func(m string) bool { return within(imp, m) }) {
				out = append(out, who+" imports "+imp)
			}
		case !test:
			// A rule for net/http holds for net/http/httptest too, unless that has its own.
			for p := imp; p != "."; p = parent(p) {
				if ok := std[p]; ok != nil {
					if !ok(pkg) {
						out = append(out, who+" imports "+imp)
					}
					break
				}
			}
		}
	}
	return out
}

func parent(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return "."
}

// The law itself: what it must let through and what it must not.
func TestLaw(t *testing.T) {
	ours := func(names ...string) []string {
		for i, n := range names {
			names[i] = strings.TrimSuffix(module+"/"+n, "/.")
		}
		return names
	}
	for _, tt := range []struct {
		name, pkg string
		test      bool
		imports   []string
		want      []string
	}{
		{"the root stands alone", ".", false, ours("internal/fsm"), []string{". imports internal/fsm"}},
		{"a domain package uses the root and the machinery", "orders", false,
			append(ours(".", "internal/fsm", "internal/work", "healthdata"), "context", "github.com/google/uuid"), nil},
		{"neighbours do not", "labreport", false, ours("orders", "healthdata"),
			[]string{"labreport imports orders", "labreport imports healthdata"}},
		{"arrows run down", "healthdata", false, ours("aggregate", "adapters/memory"),
			[]string{"healthdata imports aggregate", "healthdata imports adapters/memory"}},
		{"part of a domain package", "labreport/internal/text", false, ours(".", "orders"),
			[]string{"labreport/internal/text imports orders"}},
		{"its own parts", "labreport", false, ours("labreport/internal/text"), nil},
		{"the receiver decodes all", "webhook/receiver", false,
			append(ours("orders", "healthdata", "webhook"), "net/http"), nil},
		{"HTTP is webhook's", "webhook", false, []string{"net/http", "net/http/httptrace"}, nil},
		{"and nobody else's", "linking", false, []string{"net/http", "net/http/cookiejar", "database/sql/driver"},
			[]string{"linking imports net/http", "linking imports net/http/cookiejar", "linking imports database/sql/driver"}},
		{"test code", "adapters/memory", false, []string{"testing", "testing/fstest", "github.com/stretchr/testify/require"},
			[]string{"adapters/memory imports testing", "adapters/memory imports testing/fstest",
				"adapters/memory imports github.com/stretchr/testify/require"}},
		{"in the suites", "adapters/storetest", false,
			append(ours("orders", "internal/prove"), "testing", "github.com/stretchr/testify/require"), nil},
		{"adapters and their parts", "adapters/httpapi", false,
			ours("orders", "adapters/httpapi/internal/wire"), nil},
		{"never another adapter", "adapters/httpapi", false, ours("adapters/memory", "adapters/postgres"),
			[]string{"adapters/httpapi imports adapters/memory", "adapters/httpapi imports adapters/postgres"}},
		{"their tests", "adapters/postgres", true, ours("adapters/postgres", "adapters/memory", "adapters/storetest",
			"internal/pgtest"), nil},
		{"their tests neither", "adapters/memory", true, ours("adapters/postgres"),
			[]string{"a test of adapters/memory imports adapters/postgres"}},
		{"wiring", "examples/server", false, ours("adapters/postgres", "orders", "webhook/receiver"), nil},
		{"wiring sees what is public", "examples/server", false, ours("internal/work", "adapters/httpapi/internal/wire"),
			[]string{"examples/server imports internal/work", "examples/server imports adapters/httpapi/internal/wire"}},
		{"nobody imports the benchmarks", "adapters/memory", true, ours("internal/bench"),
			[]string{"a test of adapters/memory imports internal/bench"}},
		{"a module where it belongs", "aggregate", false, []string{"github.com/parquet-go/parquet-go/compress/zstd"}, nil},
		{"and where it does not", "orders", false, []string{"github.com/parquet-go/parquet-go", "github.com/jackc/pgx/v5"},
			[]string{"orders imports github.com/parquet-go/parquet-go", "orders imports github.com/jackc/pgx/v5"}},
		{"a module with a longer name", "webhook", false, []string{"github.com/google/uuidx"},
			[]string{"webhook imports github.com/google/uuidx"}},
		{"require alone", "orders", true, []string{"github.com/stretchr/testify/require", "github.com/stretchr/testify/assert"},
			[]string{"a test of orders imports github.com/stretchr/testify/assert"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, faults(tt.pkg, tt.imports, tt.test))
		})
	}
	for pkg, want := range map[string]bool{
		"orders": true, "orders/internal/x": true, "adapters/anything": true, "examples/x": true,
		"util": false, "internal/util": false, "adapters": true, ".": true,
	} {
		_, ok := row(mayImport, pkg)
		require.Equal(t, want, ok, pkg)
	}
}

// The engines we compare with need cgo and many modules; no host may inherit them.
func TestBenchIsAModuleOfItsOwn(t *testing.T) {
	for _, p := range every(t) {
		require.False(t, within(p.rel(), "internal/bench"), "%s needs its own go.mod, in internal/bench", p.rel())
	}
}
