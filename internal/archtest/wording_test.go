package archtest_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Patterns that no tracked file may contain. They are concatenated from pieces so that
// this file does not match them.
var (
	// machinePath matches absolute paths of one machine. A slash after a letter is part of
	// another path.
	machinePath = regexp.MustCompile(`(?:^|[^A-Za-z0-9_.\-/])/` + `(?:work/|root/|farm/|tmp/[A-Za-z])`)
	registry    = regexp.MustCompile(strings.Join([]string{
		`proxy\.golang` + `\.org`, `registry\.npmjs` + `\.org`, `deb\.debian` + `\.org`,
	}, "|"))
	outside = regexp.MustCompile(`\.\./` + `shared[A-Za-z/_-]*`)
)

// complaints returns the rules that line of the file at path violates.
func complaints(path, line string) []string {
	var out []string
	if machinePath.MatchString(line) {
		out = append(out, "a path of one machine")
	}
	if registry.MatchString(line) {
		out = append(out, "the host of a registry")
	}
	for _, place := range outside.FindAllString(line, -1) {
		// A test may name the default location of optional test data.
		rest := strings.TrimPrefix(place, "../"+"shared")
		if !strings.HasSuffix(path, "_test.go") || (rest != "/data" && !strings.HasPrefix(rest, "/data/")) {
			out = append(out, "a path outside the project")
		}
	}
	return out
}

func TestWording_filesHoldNoForbiddenText(t *testing.T) {
	root := filepath.Join("..", "..")
	files := tracked(t, root)
	watch(t, root, files)
	for _, path := range files {
		b, err := os.ReadFile(filepath.Join(root, path))
		if os.IsNotExist(err) {
			continue // deleted, and not yet committed
		}
		require.NoError(t, err)
		if bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 {
			continue // not text
		}
		n := 0
		for line := range bytes.Lines(b) {
			n++
			for _, c := range complaints(path, string(line)) {
				t.Errorf("%s:%d: %s", path, n, c)
			}
		}
	}
}

// watch reads every folder, so that the go command does not reuse a cached result after a
// file was added or removed. The go command does not see what go list and git read.
func watch(t *testing.T, root string, files []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, path := range files {
		for dir := filepath.Dir(path); !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			if _, err := os.ReadDir(filepath.Join(root, dir)); !os.IsNotExist(err) {
				require.NoError(t, err)
			}
		}
	}
}

// tracked returns the files of the repository, including files that are not ignored and not
// yet added. Outside a git checkout it returns all files.
func tracked(t *testing.T, root string) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err == nil && len(out) > 0 {
		return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	}
	var files []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		files = append(files, rel)
		return err
	}))
	return files
}

func TestWording_findsForbiddenText(t *testing.T) {
	for _, tt := range []struct {
		name, path, line string
		want             int
	}{
		{"plain", "a.go", "package a", 0},
		{"machine", "a.go", "see /" + "work/main", 1},
		{"home of the superuser", "a.md", "`/" + "root/go`", 1},
		{"temporary", "a.md", "/" + "tmp/x", 1},
		{"the temporary folder itself", "a.md", "in /" + "tmp/ and /" + "tmp", 0},
		{"our own package", "a.md", "internal/" + "work/work.go", 0},
		{"relative", "a.md", "./" + "work/x", 0},
		{"registry", "Makefile", "GOPROXY=https://proxy.golang" + ".org", 1},
		{"outside", "a.go", "../" + "shared/data", 1},
		{"outside, optional data of a test", "a_test.go", `"../../../` + `shared/data/real"`, 0},
		{"outside, other things in a test", "a_test.go", `"../` + `shared/spec"`, 1},
		{"outside, a name that begins alike", "a_test.go", `"../` + `shared/database"`, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Len(t, complaints(tt.path, tt.line), tt.want)
		})
	}
}
