package linkingtest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

func TestBroken(t *testing.T) {
	conformance.RunBroken(t,
		conformance.Of("store", brokenStores),
		conformance.Of("grants", brokenGrantStores),
		conformance.Of("apps", brokenAppStores),
		conformance.Of("clients", brokenClientStores),
	)
}
