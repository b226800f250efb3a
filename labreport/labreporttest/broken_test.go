package labreporttest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

func TestBroken(t *testing.T) {
	conformance.RunBroken(t,
		conformance.Of("jobs", brokenStores),
		conformance.Of("blobs", brokenBlobStores),
	)
}
