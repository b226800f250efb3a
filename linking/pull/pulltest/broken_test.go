package pulltest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

func TestBrokenStores_eachFailsTheSuite(t *testing.T) {
	conformance.RunBroken(t, brokenStores)
}
