package aggregate

import (
	"os"
	"testing"

	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

// PostgreSQL answers the same questions; its databases have no schema of ours.
func TestMain(m *testing.M) {
	prove.SetChecks(30, 100, 100)
	os.Exit(pgtest.Main(m, nil))
}
