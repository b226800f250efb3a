package aggregatetest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

func TestBroken(t *testing.T) {
	conformance.RunBroken(t,
		conformance.Of("continuous", brokenContinuousStores),
		conformance.Of("priorities", brokenPriorityStores),
	)
}
