package aggregatetest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

//go:generate go run ../../internal/conformance/gen brokenPriorities=aggregate.PriorityStore

func TestBrokenStores_eachFailsTheSuite(t *testing.T) {
	conformance.RunBroken(t,
		conformance.Of("continuous", brokenContinuousStores),
		conformance.Of("priorities", brokenPriorityStores),
	)
}
