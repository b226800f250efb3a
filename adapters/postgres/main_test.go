package postgres

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

func TestMain(m *testing.M) {
	if crashChild() {
		return
	}
	os.Exit(pgtest.Main(m, func(ctx context.Context, conn *pgx.Conn) error { return Migrate(ctx, conn) }))
}

// ServeCrashChild is what a child process of the crash test does; it does not return.
var ServeCrashChild func(address string)

// crashChild reports whether this process is such a child, and is one until it is
// killed.
func crashChild() bool {
	address := os.Getenv("HEALTHLAB_CRASH_CHILD")
	if address == "" {
		return false
	}
	ServeCrashChild(address)
	return true
}
