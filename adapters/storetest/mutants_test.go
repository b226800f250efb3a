package storetest_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutant is a store that breaks one promise on purpose. The suite must notice, in the
// subtest of that promise.
type mutant struct {
	name    string
	suite   func(t *testing.T)
	subtest string // of the suite: "Claim/LeaseEnds"; empty if it has none
}

// mutants are those of all seams.
var mutants = slices.Concat(webhookMutants, seenMutants, linkingMutants, orderErasureMutants)

// mutantEnv names the mutant that a subprocess is to be.
const mutantEnv = "STORETEST_MUTANT"

// TestMutants runs each mutant in a process of its own, for only a failing test can
// show that a test fails.
func TestMutants(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			path := strings.TrimSuffix("TestMutant/"+m.subtest, "/")
			cmd := exec.CommandContext(t.Context(), self, "-test.timeout=2m", "-test.v", "-rapid.nofailfile", "-rapid.shrinktime=0s", "-test.run="+pattern(path))
			cmd.Env = append(os.Environ(), mutantEnv+"="+m.name)
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "the mutant lives")
			require.Contains(t, string(out), "--- FAIL: "+path+" ", "the mutant dies elsewhere")
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

// TestMutant is what a subprocess runs.
func TestMutant(t *testing.T) {
	name := os.Getenv(mutantEnv)
	if name == "" {
		t.Skip("TestMutants runs this, once for each mutant")
	}
	i := slices.IndexFunc(mutants, func(m mutant) bool { return m.name == name })
	require.GreaterOrEqual(t, i, 0)
	mutants[i].suite(t)
}

func TestMutantNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range mutants {
		require.False(t, seen[m.name], m.name)
		seen[m.name] = true
	}
}
