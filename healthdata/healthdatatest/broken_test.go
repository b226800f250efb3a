package healthdatatest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

func TestBroken(t *testing.T) {
	conformance.RunBroken(t,
		conformance.Of("users", brokenUserStores),
		conformance.Of("data", brokenDataStores),
		conformance.Of("teams", brokenTeamStores),
	)
}
