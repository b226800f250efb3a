package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/pdftext"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
)

// childEnv marks a process that is the server itself, with the arguments that it got.
const childEnv = "HEALTHLABTEST_SERVER_CHILD"

func TestMain(m *testing.M) {
	pdftext.Child()
	if os.Getenv(childEnv) == "" {
		os.Exit(pgtest.Main(m, nil))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		panic(err)
	}
}

func spawn(t *testing.T, args ...string) (*program, *os.Process) {
	t.Helper()
	return spawnWith(t, nil, args...)
}

// spawnWith is spawn through a command that runs the command after it.
func spawnWith(t *testing.T, through []string, args ...string) (*program, *os.Process) {
	t.Helper()
	command := slices.Concat(through, []string{os.Args[0], "-addr", "127.0.0.1:0"}, inMemory(args))
	child := exec.CommandContext(t.Context(), command[0], command[1:]...)
	child.Env = append(os.Environ(), childEnv+"=1")
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	p := &program{T: t, lines: make(chan string, 1000), done: make(chan error, 1)}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		p.done <- child.Wait()
		close(p.lines)
	}()
	p.listens(args)
	return p, child.Process
}

func (p *program) kill(process *os.Process) {
	p.Helper()
	require.NoError(p, process.Kill())
	for range p.lines { // until it is gone
	}
}

// names returns the team's users.
func (p *program) names() (out []string) {
	p.Helper()
	var page struct {
		Users []struct {
			ClientUserID string `json:"client_user_id"`
		} `json:"users"`
	}
	p.get("/v2/user/", &page)
	for _, u := range page.Users {
		out = append(out, u.ClientUserID)
	}
	return out
}

func secretFile(t *testing.T) string { return filepath.Join(t.TempDir(), "secret") }

func TestDatabase_keepsDataAndKeyOverARestart(t *testing.T) {
	t.Parallel()
	args := []string{"-database-url", pgtest.Empty(t), "-secret-file", secretFile(t), "-files", t.TempDir()}
	p := start(t, args...)
	key := p.key
	post(p, "/v2/user/", `{"client_user_id":"a"}`)
	require.Equal(t, []string{"stopping", "stopped: everything is in the database"}, p.quit())

	p = start(t, args...)
	require.Equal(t, key, p.key, "the key is made of the secret")
	require.Equal(t, []string{"a"}, p.names())
	p.quit()
}

// Two processes on one database act as one service, and the service continues if one of them
// ends.
func TestDatabase_twoProcessesActAsOneService(t *testing.T) {
	t.Parallel()
	args := []string{"-database-url", pgtest.Empty(t), "-secret-file", secretFile(t), "-files", t.TempDir()}
	one, process := spawn(t, args...)
	two, other := spawn(t, args...)
	require.Equal(t, one.key, two.key)
	post(one, "/v2/user/", `{"client_user_id":"a"}`)
	require.Equal(t, []string{"a"}, two.names())
	one.kill(process)
	post(two, "/v2/user/", `{"client_user_id":"b"}`)
	one, process = spawn(t, args...)
	require.ElementsMatch(t, []string{"a", "b"}, one.names())
	one.kill(process)
	two.kill(other)
}

// What is in a folder is there after a stop, and after the process is killed. A second process on the
// folder is refused.
func TestDataFolder_keepsDataOverStopAndKill(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	args := []string{"-data", dir}
	p := start(t, args...)
	key := p.key
	post(p, "/v2/user/", `{"client_user_id":"a"}`)
	require.Equal(t, []string{"stopping", "stopped: everything is in the folder " + dir}, p.quit())
	for _, name := range []string{dataFile, keysFile, secretName} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, "%s is its owner's alone", name)
	}

	p, process := spawn(t, args...)
	require.Equal(t, key, p.key)
	post(p, "/v2/user/", `{"client_user_id":"b"}`)
	err := run(t.Context(), append([]string{"-addr", "127.0.0.1:0"}, args...), io.Discard, io.Discard)
	require.ErrorContains(t, err, "another process has the file open")
	p.kill(process)

	p = start(t, args...)
	require.ElementsMatch(t, []string{"a", "b"}, p.names())
	p.quit()
}

// Folders that cannot be used are refused at the start.
func TestDataFolder_unusableFolderIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	newer := filepath.Join(t.TempDir(), "newer")
	p := start(t, "-data", newer)
	p.quit()
	db, err := sqlite3.Open(filepath.Join(newer, dataFile))
	require.NoError(t, err)
	require.NoError(t, db.Exec("pragma user_version=1000"))
	require.NoError(t, db.Close())
	for dir, says := range map[string]string{file: "-data", filepath.Join(file, "under"): "-data", newer: "use a newer program"} {
		err := run(t.Context(), []string{"-addr", "127.0.0.1:0", "-data", dir}, io.Discard, io.Discard)
		require.ErrorContains(t, err, says)
	}
}

func TestFlags_invalidDatabaseSettingsAreNamedWithoutSecrets(t *testing.T) {
	t.Parallel()
	short := secretFile(t)
	require.NoError(t, os.WriteFile(short, []byte("c2hvcnQ=\n"), 0o600))
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "letter"), nil, 0o600))
	for _, c := range []struct {
		name, says string
		kind       healthlab.ErrorKind
		args       []string
	}{
		{"no secret file", "needs -secret-file", healthlab.Unknown, []string{"-database-url", "postgres://nobody@127.0.0.1:1/none"}},
		{"a short secret", "32 bytes", healthlab.Unknown, []string{"-secret-file", short}},
		{"no folder for the secret", "-secret-file", healthlab.Unknown, []string{"-secret-file", filepath.Join(full, "no", "secret")}},
		{"no address", "must be a postgres:// URL", healthlab.Unknown, []string{"-database-url", "marker://x:y", "-secret-file", secretFile(t), "-files", full}},
		{"nobody there", "database", healthlab.Unavailable,
			[]string{"-database-url", "postgres://nobody@127.0.0.1:1/none", "-secret-file", secretFile(t), "-files", full}},
	} {
		var out strings.Builder
		err := run(t.Context(), append([]string{"-addr", "127.0.0.1:0"}, inMemory(c.args)...), &out, &out)
		require.ErrorContains(t, err, c.says, c.name)
		require.Equal(t, c.kind, healthlab.KindOf(err), c.name)
		require.NotContains(t, err.Error(), "marker", c.name)
	}
}

func TestSecretFile_isCreatedOnceAndReadableByItsOwnerOnly(t *testing.T) {
	t.Parallel()
	file := secretFile(t)
	one, err := newMaster(file)
	require.NoError(t, err)
	two, err := newMaster(file)
	require.NoError(t, err)
	require.Equal(t, one, two)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	entries, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left beside it")
	sealing, err := one.derive("sealing")
	require.NoError(t, err)
	signing, err := one.derive("link tokens")
	require.NoError(t, err)
	require.NotEqual(t, sealing, signing)
}
