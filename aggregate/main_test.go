package aggregate

import (
	"os"
	"testing"

	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// PostgreSQL answers the same questions; its databases have no schema of ours.
func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, nil)) }
