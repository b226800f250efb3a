package appointmenttest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

func TestBroken(t *testing.T) {
	conformance.RunBroken(t,
		conformance.Of("slot cache", brokenSlotCaches),
		conformance.Of("centers", brokenCenterLists),
	)
}
