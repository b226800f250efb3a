package storetest_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/prove"
)

// mutant is a store that breaks one promise on purpose. The suite must notice, in the
// subtest of that promise.
type mutant struct {
	name    string
	suite   func(t *testing.T)
	subtest string // of the suite: "Claim/LeaseEnds"; empty if it has none
}

// mutants are those of all seams.
var mutants = slices.Concat(
	of("users", usersMutants),
	of("blobs", blobMutants),
	of("sealer", sealerMutants),
	of("messenger", messengerMutants),
	of("data", dataMutants),
	of("orders", ordersMutants),
	of("orders", orderErasureMutants),
	of("persons", personMutants),
	of("visits", visitsMutants),
	of("bookings", bookingMutants),
	of("slot cache", slotCacheMutants),
	of("centers", centersMutants),
	of("reviews", reviewMutants),
	of("lab tests", labTestMutants),
	of("parsing jobs", parsingJobMutants),
	of("webhook", webhookMutants),
	of("webhook", webhookMutantsToo),
	of("seen", seenMutants),
	of("linking", linkingMutants),
	of("linking", grantsMutants),
	of("linking", appMutants),
	of("linking", clientMutants),
	of("linking", bulkMutants),
	of("linking", bulkOpMutants),
	of("linking", bulkImportMutants),
	of("pulls", pullsMutants),
	of("continuous", continuousMutants),
	of("priorities", priorityMutants),
	of("teams", teamMutants),
	of("organisations", organisationMutants),
	of("access log", accessMutants),
)

// of gives mutants the name of their seam, for two seams may be broken in one way.
func of(seam string, list []mutant) []mutant {
	for i := range list {
		list[i].name = seam + " " + list[i].name
	}
	return list
}

// mutantEnv names the mutant that a subprocess is to be.
const mutantEnv = "STORETEST_MUTANT"

// TestMutants runs each mutant in a process of its own, for only a failing test can
// show that a test fails. It runs under make prove and in CI.
func TestMutants(t *testing.T) {
	if !prove.All() {
		t.Skip("make prove and CI run the mutants (HEALTHLAB_PROVE=1)")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			path := strings.TrimSuffix("TestMutant/"+m.subtest, "/")
			cmd := exec.CommandContext(t.Context(), self, "-test.timeout=2m", "-test.v", "-rapid.nofailfile", "-rapid.shrinktime=0s", "-rapid.checks=5000", "-test.run="+pattern(path))
			cmd.Env = append(os.Environ(), mutantEnv+"="+m.name)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "the mutant lives:\n%s", out)
			require.Contains(t, string(out), "--- FAIL: "+path+" ", "the mutant dies elsewhere:\n%s", out)
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

// pausing is long enough for all who race to read the same before one of them writes.
func pausing() { time.Sleep(10 * time.Millisecond) }

func TestMutantNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range mutants {
		require.False(t, seen[m.name], m.name)
		seen[m.name] = true
	}
}
