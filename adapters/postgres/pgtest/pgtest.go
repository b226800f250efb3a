// Package pgtest provides tests with databases on a real PostgreSQL server. Every test
// gets a migrated database of its own. A database to which a test wrote only rows is
// emptied and reused by a later test.
//
// The server is the one that TEST_POSTGRES_URL names; its user needs the right to create
// databases and roles. If the variable is not set, pgtest starts a private server from the
// installed server programs and removes it when the test program ends. Without server
// programs the tests are skipped with a message; if the environment variable CI is set,
// they fail.
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

// Env is the environment variable with the URL of the server to use.
const Env = "TEST_POSTGRES_URL"

// Migrate creates the tables in the empty database to which conn is connected.
type Migrate func(ctx context.Context, conn *pgx.Conn) error

var errNoServer = errors.New("no PostgreSQL: install the server package (on Debian: postgresql), or set " + Env)

// run holds the server and the template database of the test program.
var run struct {
	sync.Mutex
	migrate  Migrate
	started  bool
	err      error
	url      string // of the maintenance database
	template string
	server   *Server
	cluster  *Cluster // in place of server, with TEST_CITUS
	used     *reuse
}

// Main runs the tests of a package and returns the exit status. Databases of the tests are created with migrate. The
// first test that needs the server starts it, and Main removes it.
func Main(m *testing.M, migrate Migrate) int {
	run.migrate = migrate
	defer stop()
	setParallel()
	return m.Run()
}

// setParallel sets -test.parallel to twice the number of processors, because tests spend
// much of their time waiting for the server. A value on the command line wins.
func setParallel() {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if f := flag.Lookup("test.parallel"); f != nil && !set {
		_ = f.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0))) // a number is always valid
	}
}

// URL returns the URL of a migrated database without rows of other tests. When the test ends, its sessions are
// terminated, the database is emptied for reuse, and functions that the test replaced are restored. A database
// is dropped instead if the test failed, if it changed tables or rights, or after mostUses tests.
func URL(t testing.TB) string {
	t.Helper()
	base, template := ensureServer(t)
	return run.used.acquire(t, base, template)
}

// Fresh returns the URL of a migrated database that no test has used, for tests that depend on how full the pages of
// tables are. The database is dropped when the test ends.
func Fresh(t testing.TB) string {
	t.Helper()
	base, template := ensureServer(t)
	return create(t, base, "create database "+newName()+" template "+template)
}

// Empty returns the URL of a new database without migrations. The database is dropped when
// the test ends.
func Empty(t testing.TB) string {
	t.Helper()
	base, _ := ensureServer(t)
	return create(t, base, "create database "+newName()+" template template0")
}

// Copy returns the URL of a copy of the database at address. No session may be connected to
// it. The copy is dropped when the test ends.
func Copy(t testing.TB, address string) string {
	t.Helper()
	base, _ := ensureServer(t)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return create(t, base, "create database "+newName()+" template "+strings.TrimPrefix(u.Path, "/"))
}

// Pool returns a pool for a database of [URL]. The pool is closed when the test ends.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Connect(t, URL(t))
}

// Connect returns a pool for the database at address. The pool is closed when the test ends.
func Connect(t testing.TB, address string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), address)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		// A failed test may never release its connection; the database is dropped anyway.
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			pool.Close()
		}()
		select {
		case <-closed:
		case <-time.After(time.Minute):
			t.Error("pgtest: a connection of the pool was not given back")
		}
	})
	return pool
}

// ensureServer starts the server and creates the template database, once. It returns the URL of the database postgres,
// and the name of the template. If there is no server, it skips the test; if CI is set, the test fails.
func ensureServer(t testing.TB) (base, template string) {
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
	switch {
	case Spread():
		cluster, err := StartCluster(ctx, Fast, 2)
		if err != nil {
			return err
		}
		run.cluster, run.url = cluster, cluster.URL()
	case run.url == "":
		server, err := Start(ctx, Fast)
		if err != nil {
			return err
		}
		run.server, run.url = server, server.URL("postgres")
	}
	run.template = "template_" + unique()
	if err := createOn(ctx, run.url, "create database "+run.template+" template template0"); err != nil {
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
	if run.used, err = newReuse(ctx, conn); err != nil || run.cluster == nil {
		return err
	}
	return errors.Join(conn.Close(ctx), run.cluster.freeze(ctx, run.template))
}

// createOn runs a "create database" statement on the server at the URL base, or on all nodes of the cluster.
func createOn(ctx context.Context, base, statement string) error {
	if run.cluster == nil {
		return execute(ctx, base, statement)
	}
	name, template := nameOf(statement)
	err := run.cluster.build(ctx, name, template)
	if err == nil && template == "template0" {
		err = run.cluster.join(ctx, name)
	}
	return err
}

// stop removes the server that this package started. On a server that TEST_POSTGRES_URL names, it drops the databases.
func stop() {
	run.Lock()
	defer run.Unlock()
	switch {
	case run.cluster != nil:
		run.cluster.Remove()
	case run.server != nil:
		run.server.Remove()
	case run.started && run.template != "":
		if run.used != nil {
			run.used.drop(run.url)
		}
		_ = execute(context.Background(), run.url, "drop database if exists "+run.template)
	}
}

// create runs a "create database" statement on the server at the URL base. It returns the URL of the database, which is
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
	// PostgreSQL copies a template in one session at a time.
	run.Lock()
	err := createOn(context.Background(), base, statement)
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
	name := strings.TrimPrefix(u.Path, "/")
	if run.cluster != nil {
		return run.cluster.drop(context.Background(), name)
	}
	return execute(context.Background(), base, "drop database if exists "+name+" with (force)")
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

// database returns the URL of the database name on the server of the URL address.
func database(address, name string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return "", fmt.Errorf("%s: must be a postgres:// URL", Env)
	}
	u.Path = "/" + name
	return u.String(), nil
}

func newName() string { return "test_" + unique() }

func unique() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return fmt.Sprintf("%x", b)
}
