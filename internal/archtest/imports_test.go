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

// listed holds the fields of a package that go list prints.
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

func (p listed) rel() string { return relative(p.ImportPath) }

func relative(importPath string) string {
	if importPath == module {
		return "."
	}
	return strings.TrimPrefix(importPath, module+"/")
}

var packages = sync.OnceValues(func() ([]listed, error) {
	cmd := exec.Command("go", "list", "-json=Dir,ImportPath,Name,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,"+
		"Imports,TestImports,XTestImports", "work")
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

const record = "to allow it, record the decision in docs/adr, then change the table in internal/archtest"

func TestImports_followTheRules(t *testing.T) {
	for _, p := range every(t) {
		if _, ok := row(mayImport, p.rel()); !ok {
			t.Errorf("%s: no row in mayImport; %s", p.rel(), record)
			continue
		}
		tests := slices.Concat(p.TestImports, p.XTestImports)
		for _, violation := range slices.Concat(violations(p.rel(), p.Imports, false), violations(p.rel(), tests, true)) {
			t.Errorf("%s; %s", violation, record)
		}
	}
}

// violations returns the imports of pkg, or of its tests, that the tables do not allow.
func violations(pkg string, imports []string, test bool) []string {
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

func TestImports_violationsAreReported(t *testing.T) {
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
		{"root imports nothing", ".", false, ours("internal/fsm"), []string{". imports internal/fsm"}},
		{"domain package imports root and internal/work", "orders", false,
			append(ours(".", "internal/fsm", "internal/work", "healthdata"), "context", "github.com/google/uuid"), nil},
		{"domain package does not import a sibling", "labreport", false, ours("orders", "healthdata"),
			[]string{"labreport imports orders", "labreport imports healthdata"}},
		{"domain package does not import upwards", "healthdata", false, ours("aggregate", "adapters/memory"),
			[]string{"healthdata imports aggregate", "healthdata imports adapters/memory"}},
		{"internal part of a domain package", "labreport/internal/text", false, ours(".", "orders"),
			[]string{"labreport/internal/text imports orders"}},
		{"own internal packages", "labreport", false, ours("labreport/internal/text"), nil},
		{"receiver imports every domain package", "webhook/receiver", false,
			append(ours("orders", "healthdata", "webhook"), "net/http"), nil},
		{"webhook imports net/http", "webhook", false, []string{"net/http", "net/http/httptrace"}, nil},
		{"other domain packages do not import net/http", "linking", false, []string{"net/http", "net/http/cookiejar", "database/sql/driver"},
			[]string{"linking imports net/http", "linking imports net/http/cookiejar", "linking imports database/sql/driver"}},
		{"adapter does not import testing", "adapters/memory", false, []string{"testing", "testing/fstest", "github.com/stretchr/testify/require"},
			[]string{"adapters/memory imports testing", "adapters/memory imports testing/fstest",
				"adapters/memory imports github.com/stretchr/testify/require"}},
		{"suites import testing", "webhook/webhooktest", false,
			append(ours("orders", "internal/prove"), "testing", "github.com/stretchr/testify/require"), nil},
		{"adapter imports its internal packages", "adapters/httpapi", false,
			ours("orders", "adapters/httpapi/internal/wire"), nil},
		{"adapter does not import another adapter", "adapters/httpapi", false, ours("adapters/memory", "adapters/postgres"),
			[]string{"adapters/httpapi imports adapters/memory", "adapters/httpapi imports adapters/postgres"}},
		{"test of an adapter imports memory and suites", "adapters/postgres", true, ours("adapters/postgres", "adapters/memory", "orders/orderstest",
			"adapters/postgres/pgtest"), nil},
		{"test of an adapter does not import postgres", "adapters/memory", true, ours("adapters/postgres"),
			[]string{"a test of adapters/memory imports adapters/postgres"}},
		{"example imports adapters", "examples/server", false, ours("adapters/postgres", "orders", "webhook/receiver"), nil},
		{"example imports no internal package", "examples/server", false, ours("internal/work", "adapters/httpapi/internal/wire"),
			[]string{"examples/server imports internal/work", "examples/server imports adapters/httpapi/internal/wire"}},
		{"no test imports the benchmarks", "adapters/memory", true, ours("internal/bench"),
			[]string{"a test of adapters/memory imports internal/bench"}},
		{"module allowed", "aggregate/parquet", false, []string{"github.com/parquet-go/parquet-go/compress/zstd"}, nil},
		{"module not allowed", "aggregate", false, []string{"github.com/parquet-go/parquet-go", "github.com/jackc/pgx/v5"},
			[]string{"aggregate imports github.com/parquet-go/parquet-go", "aggregate imports github.com/jackc/pgx/v5"}},
		{"module whose path starts alike", "webhook", false, []string{"github.com/google/uuidx"},
			[]string{"webhook imports github.com/google/uuidx"}},
		{"testify without assert", "orders", true, []string{"github.com/stretchr/testify/require", "github.com/stretchr/testify/assert"},
			[]string{"a test of orders imports github.com/stretchr/testify/assert"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, violations(tt.pkg, tt.imports, tt.test))
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

// The database engines in internal/bench need cgo and many modules. A module of their own,
// outside the workspace, keeps them out of the dependencies of the others.
func TestBench_isASeparateModule(t *testing.T) {
	for _, p := range every(t) {
		require.False(t, within(p.rel(), "internal/bench"), "%s belongs to the module in internal/bench", p.rel())
	}
}
