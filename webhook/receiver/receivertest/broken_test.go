package receivertest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

func TestBrokenStores_eachFailsTheSuite(t *testing.T) {
	conformance.RunBroken(t, brokenSeenStores)
}
