package bulktest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

func TestBrokenStores_eachFailsTheSuite(t *testing.T) {
	conformance.RunBroken(t,
		conformance.Of("held", brokenHeldStores),
		conformance.Of("ops", brokenOpStores),
		conformance.Of("imports", brokenImportStores),
	)
}
