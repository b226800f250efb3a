//go:build unix

package embedded_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest/embedded"
)

// folderEnv names the folder that a child process runs a server in, until it is killed.
const folderEnv = "HEALTHLABTEST_EMBEDDED_FOLDER"

func TestMain(m *testing.M) {
	dir := os.Getenv(folderEnv)
	if dir == "" {
		os.Exit(run(m))
	}
	if _, err := embedded.Start(context.Background(), dir, nil); err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("up\n")
	select {}
}

// run runs the tests with a folder that a server has used.
func run(m *testing.M) int {
	parent, err := os.MkdirTemp("", "embedded")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(parent) }()
	if err := os.Chmod(parent, 0o755); err != nil { // the server's user enters it
		panic(err)
	}
	made = sync.OnceValues(func() (string, error) {
		dir := filepath.Join(parent, "db")
		s, err := embedded.Start(context.Background(), dir, nil)
		if err != nil {
			return "", err
		}
		return dir, s.Stop(context.Background())
	})
	return m.Run()
}

func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	return filepath.Join(dir, "db")
}

// made returns a folder in which a server has run, and makes it once.
var made func() (string, error)

// used returns a folder in which a server has run, or skips where none is installed.
func used(t *testing.T) string {
	t.Helper()
	from, err := made()
	if healthlab.KindOf(err) == healthlab.Unimplemented && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	dir := folder(t)
	require.NoError(t, exec.CommandContext(t.Context(), "cp", "-a", from, dir).Run())
	return dir
}

// start starts a server, or skips where there is none installed.
func start(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), dir, nil)
	if healthlab.KindOf(err) == healthlab.Unimplemented && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	return s
}

// ask runs statements and returns the answer of the last one, which is one number.
func ask(t *testing.T, s *embedded.Server, statements ...string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL("postgres"))
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	for _, sql := range statements[:len(statements)-1] {
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	require.NoError(t, conn.QueryRow(t.Context(), statements[len(statements)-1]).Scan(&n))
	return n
}

func TestServer_keepsItsDataAfterStopAndCrash(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := start(t, dir)
	require.Equal(t, 7, ask(t, s, "create table note as select 7 n", "select n from note"))
	require.NoError(t, s.Stop(t.Context()))
	<-s.Done()
	require.NoError(t, s.Stop(t.Context()), "it has ended")

	s = start(t, dir)
	require.Equal(t, 8, ask(t, s, "update note set n = 8", "select n from note"))
	s.Crash()
	require.NoError(t, s.Up(t.Context()))
	require.Equal(t, 8, ask(t, s, "select n from note"))
}

// The server ends when its program is killed, and the next program starts it again with all
// data.
func TestServer_endsWithAKilledProgramAndRestartsWithItsData(t *testing.T) {
	t.Parallel()
	dir := used(t)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), folderEnv+"="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "up\n", line)
	url := "postgres://postgres@/postgres?port=5432&host=" + dir
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "create table note as select 7 n")
	require.NoError(t, err)
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())

	s := start(t, dir)
	require.Equal(t, 7, ask(t, s, "select n from note"))
	require.Error(t, conn.Ping(t.Context()), "the server before ended")
}

func TestStart_refusesAFolderInUse(t *testing.T) {
	t.Parallel()
	dir := used(t)
	s := start(t, dir)
	_, err := embedded.Start(t.Context(), dir, nil)
	require.ErrorIs(t, err, healthlab.Precondition)
	require.ErrorIs(t, s.Up(t.Context()), healthlab.Precondition)
	require.Equal(t, 1, ask(t, s, "select 1"))
}

// Other users cannot enter the folder, and no log holds the text of statements.
func TestServer_isPrivateAndLogsNoStatements(t *testing.T) {
	t.Parallel()
	dir := used(t)
	s := start(t, dir)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	conn, err := pgx.Connect(t.Context(), s.URL("postgres"))
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Exec(t.Context(), "select 'marker'::int")
	require.Error(t, err)
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "ready to accept connections")
	require.NotContains(t, string(log), "marker")
	require.Equal(t, 0, ask(t, s, "select count(*)::int from pg_settings where name = 'listen_addresses' and setting <> ''"))
}

func TestStart_refusesForeignAndOldFolders(t *testing.T) {
	t.Parallel()
	used(t) // skips where there is no server
	full := folder(t)
	require.NoError(t, os.MkdirAll(full, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(full, "letter"), nil, 0o600))
	old := folder(t)
	require.NoError(t, os.MkdirAll(filepath.Join(old, "data"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(old, "data", "PG_VERSION"), []byte("9\n"), 0o600))
	for _, c := range []struct {
		name, dir, programs string
		want                error
		says                string
	}{
		{"foreign folder", full, "", healthlab.Invalid, "must be empty or contain the data of a PostgreSQL server"},
		{"a long name", "/" + strings.Repeat("x", 100), "", healthlab.Invalid, "folder: the absolute path must have at most 90 bytes, and has 101"},
		{"no programs", folder(t), t.TempDir(), healthlab.Unimplemented, "install the server package"},
		{"data of another version", old, "", healthlab.Precondition, "the folder has data of PostgreSQL version 9"},
	} {
		_, err := embedded.Start(t.Context(), c.dir, &embedded.Options{Programs: c.programs})
		require.ErrorIs(t, err, c.want, c.name)
		require.ErrorContains(t, err, c.says, c.name)
	}
	entries, err := os.ReadDir(full)
	require.NoError(t, err)
	require.Len(t, entries, 1, "it was left alone")
}

// A setting that the server does not take: the error says what the server said.
func TestStart_errorHasTheServersMessage(t *testing.T) {
	t.Parallel()
	_, err := embedded.Start(t.Context(), used(t), &embedded.Options{Settings: map[string]string{"nonsense": "1"}})
	require.ErrorIs(t, err, healthlab.Unavailable)
	require.ErrorContains(t, err, "nonsense")
}

// The next start repairs a folder that an interrupted start has left.
func TestStart_repairsAnInterruptedStart(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data.new"), 0o700))
	require.NoError(t, os.Chmod(filepath.Join(dir, "data.new"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data.new", "PG_VERSION"), []byte("15\n"), 0o600))
	require.Equal(t, 1, ask(t, start(t, dir), "select 1"))
}
