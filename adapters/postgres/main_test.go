package postgres

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

func TestMain(m *testing.M) {
	if child() {
		return
	}
	os.Exit(pgtest.Main(m, func(ctx context.Context, conn *pgx.Conn) error { return Migrate(ctx, conn) }))
}

// Children are what this program is as a child of a test, by name. They do not return
// until they are killed.
var Children = map[string]func(address string){}

// Child is the variable that names the child, and ChildAddress its database.
const (
	Child        = "HEALTHLAB_CHILD"
	ChildAddress = "HEALTHLAB_CHILD_ADDRESS"
)

// child reports whether this process is a child, and is one until it is killed.
func child() bool {
	be, ok := Children[os.Getenv(Child)]
	if ok {
		be(os.Getenv(ChildAddress))
	}
	return ok
}
