// Package embedded runs a private PostgreSQL for one program, out of the server programs that are installed on the
// machine: durable storage without an administrator.
//
//	server, err := embedded.Start(ctx, "/var/lib/health", nil)
//	pool, err := pgxpool.New(ctx, server.URL("postgres"))
//	…
//	pool.Close()
//	err = server.Stop(ctx)
//
// The folder holds everything: data, log, socket. Only its owner can enter it. The server listens only on the
// socket, so there is neither a port nor a password. As root the server runs as the user postgres (or nobody, if
// there is no such user), who then owns the folder.
//
// The server ends with the program. [Server.Stop] ends it gracefully. If the program is killed, the server stops at
// once, and recovers at the next start. Committed data survives both. Two programs cannot use one folder at the same
// time.
//
// The package works on Unix systems with a shell. It does not do clusters of several machines, backups, or upgrades
// of the data from one major version to the next.
package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
)

// Options adjusts a Server. The zero value, and nil, mean the defaults.
type Options struct {
	// Programs is the folder with the programs initdb and postgres. Default: those of the search path, else the newest
	// installed version. If the data folder has data, the default is the version that made the data.
	Programs string
	// Settings are additional settings of the server, such as shared_buffers.
	Settings map[string]string
	// Temporary removes the folder when the server stops, and creates the data without fsync.
	Temporary bool
}

// Server is a running server. Safe for concurrent use.
type Server struct {
	dir  string
	opts Options

	mu    sync.Mutex
	leash io.WriteCloser // pipe to the guard process, which stops the server when the pipe is closed
	done  chan struct{}  // closed when the guard process has ended
}

const (
	oldest = 15 // the oldest supported major version
	// maxPath is the largest number of bytes of the folder's name. The path of a socket in the folder has a limit of
	// about 100 bytes.
	maxPath = 90
	// lockTime is how long a start waits for the lock of the folder, which a server that is ending may still hold.
	lockTime = 6 * time.Second
	// startTime is how long a server may take to answer, recovery included.
	startTime = 2 * time.Minute
)

// Start starts a server in a folder, creates the folder if it is missing, and waits until the server answers.
//
// Errors: healthlab.Unimplemented if PostgreSQL is not installed or too old, or the system is not Unix; Invalid if the
// folder has files that no server made, or its name is too long; Precondition if another program uses the folder, or if
// the PostgreSQL version that made the folder is not installed; Unavailable if the server does not start.
func Start(ctx context.Context, dir string, opts *Options) (*Server, error) {
	s := &Server{}
	if opts != nil {
		s.opts = *opts
	}
	var err error
	if s.dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("embedded PostgreSQL: %w", err)
	}
	if err := s.prepare(ctx); err != nil {
		return nil, fmt.Errorf("embedded PostgreSQL: %w", err)
	}
	if err := s.Up(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// prepare finds the server's programs and creates the folder.
func (s *Server) prepare(ctx context.Context) error {
	if len(s.dir) > maxPath {
		return fmt.Errorf("%w: folder: the absolute path must have at most %d bytes, and has %d", healthlab.Invalid, maxPath, len(s.dir))
	}
	made, err := os.ReadFile(filepath.Join(s.data(), "PG_VERSION"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	version, _ := strconv.Atoi(strings.TrimSpace(string(made)))
	if version == 0 {
		if err := s.checkVacant(); err != nil {
			return err
		}
	}
	if s.opts.Programs, err = find(ctx, s.opts.Programs, version); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(s.dir, 0o700); err != nil { //nolint:gosec // a folder is entered, not run
		return err
	}
	return chownToServer(s.dir)
}

// checkVacant returns an error if the folder has files that no start of a server creates.
func (s *Server) checkVacant() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !slices.Contains([]string{lockName, logName, newName}, e.Name()) && !strings.HasPrefix(e.Name(), ".s.PGSQL.") {
			return fmt.Errorf("%w: the folder must be empty or contain the data of a PostgreSQL server", healthlab.Invalid)
		}
	}
	return nil
}

// The names of files in the folder.
const (
	dataName = "data"
	newName  = "data.new"
	logName  = "log"
	lockName = "lock"
)

func (s *Server) data() string { return filepath.Join(s.dir, dataName) }

// URL returns the address of a database of the server. The database postgres always exists.
func (s *Server) URL(database string) string {
	q := url.Values{"host": {s.dir}, "port": {"5432"}}
	return (&url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/" + database, RawQuery: q.Encode()}).String()
}

// script is the guard, a shell process that stops the server when this process ends. If there is no data, the guard
// creates the data in a temporary folder, which it renames when it is complete. The guard starts the server with the
// arguments of the script, and then sends the server the signals whose names it reads from a pipe. When the pipe ends,
// because this process closed it or died, the guard stops the server at once.
const script = `trap '' INT TERM HUP
initdb=$1 remove=$2; shift 2
exec >log 2>&1 4<&0
if [ ! -d data ]; then
	rm -rf data.new
	"$initdb" --pgdata data.new --username postgres --auth trust --encoding UTF8 --locale C --data-checksums \
		${remove:+--no-sync} </dev/null && mv data.new data || exit 1
fi
"$@" </dev/null 4<&- &
pid=$!
(while read signal; do kill -"$signal" $pid; done; kill -QUIT $pid) <&4 2>/dev/null &
reader=$!
wait $pid
kill -KILL $reader
[ -z "$remove" ] || [ -e keep ] || rm -rf "$PWD"`

// arguments returns the arguments of the server. The log contains no statements, so that it contains no values of
// people.
func (s *Server) arguments() []string {
	args := []string{
		filepath.Join(s.opts.Programs, "postgres"), "-D", s.data(), "-k", s.dir,
		"-c", "listen_addresses=", "-c", "unix_socket_permissions=0700", "-c", "log_min_messages=log",
		"-c", "log_min_error_statement=panic", "-c", "log_error_verbosity=terse",
	}
	for _, name := range slices.Sorted(maps.Keys(s.opts.Settings)) {
		args = append(args, "-c", name+"="+s.opts.Settings[name])
	}
	return args
}

// Up restarts the server after [Server.Stop] or [Server.Crash], and waits until it answers. It returns the errors of
// [Start].
func (s *Server) Up(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leash != nil {
		return fmt.Errorf("embedded PostgreSQL: %w: the server is already running", healthlab.Precondition)
	}
	if err := s.up(ctx); err != nil {
		return fmt.Errorf("embedded PostgreSQL: %w", err)
	}
	if err := s.await(ctx); err != nil {
		s.down()
		return fmt.Errorf("embedded PostgreSQL: %w", err)
	}
	return nil
}

// up locks the folder and starts the guard process, which starts the server.
func (s *Server) up(ctx context.Context) error {
	lock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // the guard and the server keep the lock
	remove := ""
	if s.opts.Temporary {
		remove = "yes"
	}
	args := append([]string{"-c", script, "sh", filepath.Join(s.opts.Programs, "initdb"), remove}, s.arguments()...)
	guard := exec.Command("/bin/sh", args...) //nolint:gosec,noctx // it outlives the context of its starter
	guard.Dir = s.dir
	guard.ExtraFiles = []*os.File{lock}
	detach(guard)
	leash, err := guard.StdinPipe()
	if err != nil {
		return err
	}
	if err := guard.Start(); err != nil {
		return fmt.Errorf("%w: the server's user cannot start in the folder, or in one above it: %w", healthlab.Unavailable, err)
	}
	done := make(chan struct{})
	go func() {
		_ = guard.Wait() // how it ended is in the log
		close(done)
	}()
	s.leash, s.done = leash, done
	return nil
}

// lock locks the folder. The server inherits the lock, so the lock is held until its last process has ended.
func (s *Server) lock(ctx context.Context) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	lock, err := os.OpenFile(filepath.Join(s.dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := tryLock(lock); err == nil {
			return lock, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("%w: another program uses the folder", healthlab.Precondition), lock.Close())
		}
	}
}

// await waits until the server answers.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-tick.C:
		case <-s.done:
			return fmt.Errorf("%w: the server ended: %s", healthlab.Unavailable, s.lastLogLine())
		case <-ctx.Done():
			return fmt.Errorf("%w: the server does not answer: %w", healthlab.Unavailable, ctx.Err())
		}
	}
}

// lastLogLine returns the last line of the server's log. The log contains no statements.
func (s *Server) lastLogLine() string {
	f, err := os.Open(filepath.Join(s.dir, logName))
	if err != nil {
		return "there is no log"
	}
	defer func() { _ = f.Close() }()
	last := "the log is empty"
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text := strings.TrimSpace(lines.Text()); text != "" {
			last = text
		}
	}
	return last
}

// Done returns a channel that is closed when the server has ended. [Server.Up] replaces it.
func (s *Server) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

// Stop stops the server gracefully and waits for it. If ctx ends first, it stops the server at once, without loss of
// data, and returns the error of the context. It returns nil if the server has already ended.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leash == nil {
		return nil
	}
	if _, err := io.WriteString(s.leash, "INT\n"); err == nil {
		select {
		case <-s.done:
		case <-ctx.Done():
			s.down()
			return fmt.Errorf("embedded PostgreSQL: stop: %w", ctx.Err())
		}
	}
	s.down()
	return nil
}

// Crash kills the server as a power cut would. It keeps the folder, even a temporary one. For tests.
func (s *Server) Crash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := filepath.Join(s.dir, "keep")
	if s.opts.Temporary {
		_ = os.WriteFile(keep, nil, 0o600)
		defer func() { _ = os.Remove(keep) }()
	}
	s.down()
}

// down closes the pipe to the guard process, which stops the server at once, and waits for the guard.
func (s *Server) down() {
	if s.leash == nil {
		return
	}
	_ = s.leash.Close()
	<-s.done
	s.leash = nil
}
