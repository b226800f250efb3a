package postgres

import (
	"context"
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/internal/prove"
)

func TestMain(m *testing.M) {
	if child() {
		return
	}
	setChecks()
	os.Exit(pgtest.Main(m, func(ctx context.Context, conn *pgx.Conn) error {
		if err := Migrate(ctx, conn); err != nil {
			return err
		}
		if pgtest.Spread() {
			if err := Distribute(ctx, conn, 4); err != nil {
				return err
			}
		}
		_, err := conn.Exec(ctx, `
			do $$ begin create role `+RestrictedRole+`; exception when duplicate_object or unique_violation then end $$;
			grant usage on schema healthlab to `+RestrictedRole+`;
			grant select, insert, update, delete on all tables in schema healthlab to `+RestrictedRole)
		return err
	}))
}

// setChecks sets -rapid.checks, the number of random sequences of each model test. The memory
// store runs the same models at rapid's own number. A value on the command line wins.
func setChecks() {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "rapid.checks" })
	if f := flag.Lookup("rapid.checks"); f != nil && !set {
		_ = f.Value.Set(strconv.Itoa(prove.Counts(20, 100, 200))) // a number is always valid
	}
}

// RestrictedRole may read and write the tables of every database of a test, and owns
// none, so that row-level security holds for it. A server that is not ours keeps it.
const RestrictedRole = "healthlab_test_restricted"

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
