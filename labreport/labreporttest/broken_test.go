package labreporttest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

//go:generate go run ../../internal/conformance/gen overriddenJobs=labreport.Store

func TestBrokenStores_eachFailsTheSuite(t *testing.T) {
	conformance.RunBroken(t,
		conformance.Of("jobs", brokenStores),
		conformance.Of("blobs", brokenBlobStores),
		conformance.Of("encryption", brokenEncryption),
	)
}
