// Package pgtest gives tests a real PostgreSQL: every test a database of its own, in
// the form that a migration has left. A database that a test has only written rows to
// serves the next one, without them.
//
// The server is that of TEST_POSTGRES_URL (its user must be allowed to create databases
// and roles), or else a private one, started from the installed server programs and
// removed when the test program ends, however it ends. Without either the tests are
// skipped with a message, and fail where the environment says CI, because there a
// skipped test is a hole that nobody sees.
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, migrate)) }
//
//	func TestUsers(t *testing.T) {
//		pool := pgtest.Pool(t)
//		…
//	}
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Env is the variable that names a server to use.
const Env = "TEST_POSTGRES_URL"

// Migrate brings an empty database into the form that tests want.
type Migrate func(ctx context.Context, conn *pgx.Conn) error

// errNoServer says that no PostgreSQL is at hand. The text says what to do.
var errNoServer = errors.New("no PostgreSQL: install the server package (on Debian: postgresql), or set " + Env)

// run is the one server and the one template of a test program.
var run struct {
	sync.Mutex
	migrate  Migrate
	started  bool
	err      error
	url      string // of the maintenance database
	template string
	server   *Server
	used     *reuse
}

// Main runs the tests of a package and returns the exit status. The server is started
// by the first test that asks for it, and removed at the end.
func Main(m *testing.M, migrate Migrate) int {
	run.migrate = migrate
	defer stop()
	sideBySide()
	return m.Run()
}

// sideBySide lets twice as many tests run at a time as there are processors, unless the
// command says how many: much of their time they wait for the server.
func sideBySide() {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if f := flag.Lookup("test.parallel"); f != nil && !said {
		_ = f.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0))) // a number is what it takes
	}
}

// URL returns the address of a database as the migration has left it. When the test ends
// all its sessions do, and another test may get the database, emptied; one whose tables,
// functions or rights a test has changed is dropped.
func URL(t testing.TB) string {
	t.Helper()
	base, template := start(t)
	return run.used.take(t, base, template)
}

// Fresh returns the address of a database with the migration applied that no test has
// used, for one that minds how full its pages are. It is dropped when the test ends.
func Fresh(t testing.TB) string {
	t.Helper()
	base, template := start(t)
	return create(t, base, "create database "+newName()+" template "+template)
}

// Empty returns the address of a fresh database to which no migration was applied. It
// is dropped when the test ends.
func Empty(t testing.TB) string {
	t.Helper()
	base, _ := start(t)
	return create(t, base, "create database "+newName()+" template template0")
}

// Copy returns the address of a fresh copy of a database of the test, to which nobody may
// be connected. It is dropped when the test ends.
func Copy(t testing.TB, address string) string {
	t.Helper()
	base, _ := start(t)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return create(t, base, "create database "+newName()+" template "+strings.TrimPrefix(u.Path, "/"))
}

// Pool returns connections to a database of [URL]. They are closed when the test ends.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Connect(t, URL(t))
}

// Connect returns connections to a database of the test. They are closed when the test
// ends.
func Connect(t testing.TB, address string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), address)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		// A test that failed may hold a connection for ever; the database goes anyway.
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			pool.Close()
		}()
		select {
		case <-closed:
		case <-time.After(5 * time.Second):
			t.Error("pgtest: a connection of the pool was not given back")
		}
	})
	return pool
}

// start starts the server and makes the template, once.
func start(t testing.TB) (base, template string) {
	t.Helper()
	run.Lock()
	defer run.Unlock()
	if !run.started {
		run.started = true
		run.err = prepare()
	}
	switch {
	case errors.Is(run.err, errNoServer) && os.Getenv("CI") == "":
		t.Skip(run.err)
	case run.err != nil:
		t.Fatalf("pgtest: %v", run.err)
	}
	return run.url, run.template
}

func prepare() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	run.url = os.Getenv(Env)
	if run.url == "" {
		server, err := Start(ctx, Fast)
		if err != nil {
			return err
		}
		run.server, run.url = server, server.URL("postgres")
	}
	run.template = "template_" + unique()
	if err := execute(ctx, run.url, "create database "+run.template+" template template0"); err != nil {
		return err
	}
	address, err := database(run.url, run.template)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if run.migrate != nil {
		if err := run.migrate(ctx, conn); err != nil {
			return err
		}
	}
	run.used, err = newReuse(ctx, conn)
	return err
}

// stop removes what start made.
func stop() {
	run.Lock()
	defer run.Unlock()
	switch {
	case run.server != nil:
		run.server.Remove()
	case run.started && run.template != "":
		if run.used != nil {
			run.used.drop(run.url)
		}
		_ = execute(context.Background(), run.url, "drop database if exists "+run.template)
	}
}

// create makes a database by a statement that ends in its name and a template. It is
// dropped when the test ends.
func create(t testing.TB, base, statement string) string {
	t.Helper()
	address, err := build(base, statement)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := remove(base, address); err != nil {
			t.Logf("pgtest: the database is left behind: %v", err)
		}
	})
	return address
}

func build(base, statement string) (string, error) {
	var name string
	if _, err := fmt.Sscanf(statement, "create database %s", &name); err != nil {
		return "", err
	}
	// One at a time: the server copies a template for one session only.
	run.Lock()
	err := execute(context.Background(), base, statement)
	run.Unlock()
	if err != nil {
		return "", err
	}
	return database(base, name)
}

func remove(base, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	return execute(context.Background(), base, "drop database if exists "+strings.TrimPrefix(u.Path, "/")+" with (force)")
}

func execute(ctx context.Context, address, sql string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql)
	return err
}

// database returns the address of another database of the same server.
func database(address, name string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return "", fmt.Errorf("%s is not a postgres:// URL", Env)
	}
	u.Path = "/" + name
	return u.String(), nil
}

func newName() string { return "test_" + unique() }

// unique returns a few random letters: several runs may share a server.
func unique() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return fmt.Sprintf("%x", b)
}
