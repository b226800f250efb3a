package postgres

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

func TestMain(m *testing.M) {
	if child() {
		return
	}
	prove.SetChecks(10, 100, 200)
	os.Exit(pgtest.Main(m, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `do $$ begin create role `+RestrictedRole+`; exception when duplicate_object or unique_violation then end $$`)
		if err != nil {
			return err
		}
		return migrateRows(ctx, conn)
	}))
}

// RestrictedRole may read and write the tables of every database of a test, and owns
// none, so that row-level security holds for it. A server that is not ours keeps it.
const RestrictedRole = "healthlab_test_restricted"

// Children are what this program is as a child of a test, by name. They do not return
// until they are killed.
var Children = map[string]func(address string){}

// Child is the variable that names the child, and ChildAddress its database.
const (
	Child        = "HEALTHLABTEST_CHILD"
	ChildAddress = "HEALTHLABTEST_CHILD_ADDRESS"
)

// child reports whether this process is a child, and is one until it is killed.
func child() bool {
	be, ok := Children[os.Getenv(Child)]
	if ok {
		be(os.Getenv(ChildAddress))
	}
	return ok
}
