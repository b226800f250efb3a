package peopletest_test

import (
	"testing"

	"github.com/healthlab-dev/healthlab/internal/conformance"
)

func TestBroken(t *testing.T) {
	conformance.RunBroken(t, brokenStores)
}
