package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
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
)

// Safety says what a private server does for its data.
type Safety bool

const (
	// Fast does not wait for the disk. What is answered may be lost with the machine,
	// which a test does not outlive anyway.
	Fast Safety = false
	// Durable waits for the disk, as a real server does.
	Durable Safety = true
)

// Server is a private PostgreSQL, reached through a socket in its own folder. Safe for
// concurrent use.
type Server struct {
	dir    string // what is removed at the end
	bin    string
	safety Safety

	mu    sync.Mutex
	guard *exec.Cmd      // the shell that watches over the server
	leash io.WriteCloser // its end ends the server
	pid   int
}

// Start makes a server in a temporary folder. If this process ends without removing it,
// it ends and removes itself.
func Start(ctx context.Context, safety Safety) (*Server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, bin: bin, safety: safety}
	if err := s.init(ctx); err != nil {
		s.Remove()
		return nil, err
	}
	return s, nil
}

func (s *Server) init(ctx context.Context) error {
	if err := handOver(s.dir); err != nil {
		return err
	}
	return s.Up(ctx)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// URL returns the address of one of its databases.
func (s *Server) URL(database string) string {
	q := url.Values{"host": {s.dir}, "port": {"5432"}}
	return (&url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/" + database, RawQuery: q.Encode()}).String()
}

// script starts the server given as arguments, whose files it makes first if there are
// none, and prints its pid; when its own input ends, because whoever holds it said so or
// is no more, it stops the server at once.
const script = `trap '' INT TERM HUP
[ -d "$DATA" ] || "$INITDB" --pgdata "$DATA" --username postgres --auth trust --encoding UTF8 --locale C --no-sync \
	</dev/null >>"$LOG" 2>&1
"$@" </dev/null >>"$LOG" 2>&1 &
pid=$!
echo $pid
cat >/dev/null
kill -QUIT $pid 2>/dev/null
wait $pid
[ -z "$REMOVE" ] || [ -e "$KEEP" ] || rm -rf "$REMOVE"`

// Up starts the server again after [Server.Crash], and waits until it answers.
func (s *Server) Up(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guard != nil {
		return errors.New("the server is up")
	}
	args := []string{
		"-c", script, "sh", filepath.Join(s.bin, "postgres"), "-D", s.data(), "-k", s.dir,
		"-c", "listen_addresses=", "-c", "max_connections=200", "-c", "shared_buffers=64MB", "-c", "max_wal_size=2GB",
		"-c", "unix_socket_permissions=0777",
	}
	if s.safety == Fast {
		args = append(args, "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")
	}
	guard := exec.Command("/bin/sh", args...) //nolint:gosec,noctx // it outlives the context of whoever starts it
	guard.Dir = s.dir
	guard.Env = append(os.Environ(), "DATA="+s.data(), "INITDB="+filepath.Join(s.bin, "initdb"), "LOG="+filepath.Join(s.dir, "log"), "REMOVE="+s.dir, "KEEP="+filepath.Join(s.dir, "keep"))
	unprivileged(guard)
	apart(guard)
	leash, err := guard.StdinPipe()
	if err != nil {
		return err
	}
	out, err := guard.StdoutPipe()
	if err != nil {
		return err
	}
	if err := guard.Start(); err != nil {
		return err
	}
	s.guard, s.leash = guard, leash
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	if s.pid, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	return s.await(ctx)
}

// await waits until the server answers.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("PostgreSQL does not answer: %w: %s", err, log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Crash stops the server at once, as a power cut would its processes: nothing is
// written that was not. [Server.Up] starts it again.
func (s *Server) Crash() {
	keep := filepath.Join(s.dir, "keep")
	_ = os.WriteFile(keep, nil, 0o600)
	s.down()
	_ = os.Remove(keep)
}

// Remove stops the server and deletes everything.
func (s *Server) Remove() {
	s.down()
	_ = os.RemoveAll(s.dir) // where the server was down already
}

// down lets go of the leash and waits for the server.
func (s *Server) down() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guard == nil {
		return
	}
	_ = s.leash.Close()
	_ = s.guard.Wait()
	s.guard, s.leash = nil, nil
}

// programs returns the folder of the newest installed server.
func programs() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	var found []string
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin/initdb", "/usr/pgsql-*/bin/initdb", "/opt/homebrew/opt/postgresql*/bin/initdb"} {
		some, _ := filepath.Glob(pattern)
		found = append(found, some...)
	}
	if len(found) == 0 {
		return "", errNoServer
	}
	slices.SortFunc(found, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(found[len(found)-1]), nil
}

// version returns the number in a path: postgresql/15/bin.
func version(path string) int {
	digits := strings.FieldsFunc(path, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(digits[0])
	return n
}
