package conformance

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "pgregory.net/rapid" // defines the flag -rapid.checks in every test binary that runs broken stores

	"github.com/healthlab-dev/healthlab/internal/prove"
)

// Broken is a conformance suite, run on an implementation that deliberately breaks one promise of its interface.
// The suite must fail, and must fail in the subtest that checks this promise.
type Broken struct {
	Name    string
	Suite   func(t *testing.T)
	Subtest string // the one that must fail, such as "Claim/LeaseEnds"; empty if the suite has no subtests
}

// Of prefixes the names of the broken implementations with the name of their interface, so that names in several
// lists are unique.
func Of(name string, list []Broken) []Broken {
	list = slices.Clone(list)
	for i := range list {
		list[i].Name = name + " " + list[i].Name
	}
	return list
}

// brokenEnv is the environment variable with the name of the broken implementation that a child process tests.
const brokenEnv = "HEALTHLABTEST_BROKEN"

// RunBroken runs each suite in a child process of its own, because a failing suite would fail this test. It
// requires that each suite fails in the expected subtest. It skips outside make prove and CI (see [prove.All]).
// Each child process runs the same test again, so RunBroken must be its last call.
func RunBroken(t *testing.T, lists ...[]Broken) {
	list := slices.Concat(lists...)
	if name := os.Getenv(brokenEnv); name != "" {
		i := slices.IndexFunc(list, func(b Broken) bool { return b.Name == name })
		require.GreaterOrEqual(t, i, 0)
		list[i].Suite(t)
		return
	}
	names := map[string]bool{}
	for _, b := range list {
		require.False(t, names[b.Name], "two of them are named %q", b.Name)
		names[b.Name] = true
	}
	if !prove.All() {
		t.Skip("make prove and CI run the broken implementations (HEALTHLABTEST_PROVE=1)")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	for _, b := range list {
		path := strings.TrimSuffix(t.Name()+"/"+b.Subtest, "/")
		t.Run(b.Name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), self, "-test.timeout=2m", "-test.v", "-rapid.nofailfile", "-rapid.shrinktime=0s", "-rapid.checks=5000", "-test.run="+pattern(path)) //nolint:gosec // this test's own program
			cmd.Env = append(os.Environ(), brokenEnv+"="+b.Name)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "the suite passes:\n%s", out)
			require.Contains(t, string(out), "--- FAIL: "+path+" ", "the suite fails in another subtest:\n%s", out)
		})
	}
}

// pattern returns a regular expression for -test.run that matches only the test with this full path.
func pattern(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = "^" + p + "$"
	}
	return strings.Join(parts, "/")
}

// Pause sleeps, so that all concurrent callers of a broken store read the same value before one of them writes.
func Pause() { time.Sleep(10 * time.Millisecond) }
