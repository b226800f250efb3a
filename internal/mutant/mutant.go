// Package mutant tests conformance suites: it runs a suite over implementations that break
// one promise each, and demands that the suite fails at the case of that promise.
//
//	func TestMutants(t *testing.T) {
//		mutant.Run(t, []mutant.Mutant{
//			{Name: "sends repeats", Suite: suite(sendsRepeats), Case: "Repeat"},
//		})
//	}
//
// Only tests import it.
package mutant

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Mutant is an implementation that breaks one promise.
type Mutant struct {
	// Name says what it does. Names are unique in a list.
	Name string
	// Suite runs the suite over it.
	Suite func(t *testing.T)
	// Case is the subtest that must fail: "Claim/LeaseEnds".
	Case string
}

// env names the mutant that a process runs.
const env = "HEALTHLAB_MUTANT"

// Run runs each mutant in a process of its own, since only a failing test shows that a test
// fails. It must be the first call of the test.
func Run(t *testing.T, mutants []Mutant) {
	t.Helper()
	if name, child := os.LookupEnv(env); child {
		i := slices.IndexFunc(mutants, func(m Mutant) bool { return m.Name == name })
		require.GreaterOrEqual(t, i, 0, "no mutant of this name")
		t.Run("Mutant", mutants[i].Suite)
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, m := range mutants {
		require.False(t, seen[m.Name], "two mutants are called %q", m.Name)
		seen[m.Name] = true
		path := t.Name() + "/Mutant/" + m.Case
		t.Run(m.Name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), self, "-test.timeout=2m", "-test.v", "-test.run="+pattern(path))
			cmd.Env = append(os.Environ(), env+"="+m.Name)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "the suite passes the mutant:\n%s", out)
			require.Contains(t, string(out), "--- FAIL: "+path+" ", "the suite fails elsewhere:\n%s", out)
		})
	}
}

// pattern matches one test by its whole path.
func pattern(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = "^" + p + "$"
	}
	return strings.Join(parts, "/")
}
