package lake_test

import (
	"os"
	"testing"

	"github.com/healthlab-dev/healthlab/internal/prove"
)

func TestMain(m *testing.M) {
	prove.SetChecks(30, 100, 100)
	os.Exit(m.Run())
}
