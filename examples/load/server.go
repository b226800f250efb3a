package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// server is a running process of examples/server.
type server struct {
	url, key string
	process  *exec.Cmd
}

// folder creates a temporary folder. The system user that runs PostgreSQL may enter it, so that a data folder can
// be inside.
func folder() (string, error) {
	dir, err := os.MkdirTemp("", "load")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // see above
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// build compiles examples/server into dir, and returns the path of the program. If binary is not empty, it is the
// path of a compiled server and is returned.
func build(ctx context.Context, binary, dir string) (string, error) {
	if binary != "" {
		return binary, nil
	}
	binary = filepath.Join(dir, "server")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/healthlab-dev/healthlab/examples/server").CombinedOutput() //nolint:gosec // the folder is ours
	if err != nil {
		return "", fmt.Errorf("build the server: %w: %s", err, out)
	}
	return binary, nil
}

// startServer starts the server on a free port with these flags, and waits until it listens. The server's output goes
// to log.
func startServer(binary string, log io.Writer, flags ...string) (*server, error) {
	s := &server{process: exec.Command(binary, append([]string{"-addr", "127.0.0.1:0", "-sandbox-users", "1000000"}, flags...)...)} //nolint:gosec,noctx // its stop is orderly
	s.process.Stderr = log
	out, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for (s.url == "" || s.key == "") && lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			s.url = at
		}
		if key, ok := strings.CutPrefix(lines.Text(), "api key: "); ok {
			s.key = key
		}
	}
	if s.key == "" {
		return nil, errors.Join(errors.New("the server has ended"), s.process.Wait())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return s, nil
}

func (s *server) stop() error {
	return errors.Join(s.process.Process.Signal(os.Interrupt), s.process.Wait())
}

func (s *server) kill() error {
	err := s.process.Process.Kill()
	_ = s.process.Wait() // its error only says that the process was killed
	return err
}

// drained waits until the server has delivered every event, and returns how long that took.
func (s *server) drained(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	for {
		left, err := s.backlog(ctx)
		if err != nil || left == 0 {
			return time.Since(began), err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// backlog returns the number of events and deliveries that the server has not yet delivered, from its metrics.
func (s *server) backlog(ctx context.Context) (float64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var total float64
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "healthlab_webhook_backlog{") {
			fields := strings.Fields(lines.Text())
			n, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			if err != nil {
				return 0, err
			}
			total += n
		}
	}
	return total, lines.Err()
}

// usage is the processor time that each program has used.
type usage struct{ server, database, load time.Duration }

func (u usage) minus(v usage) usage {
	return usage{u.server - v.server, u.database - v.database, u.load - v.load}
}

// usage reads the processor time of the server, its PostgreSQL and this program from /proc; zero on a system
// without /proc.
func (s *server) usage() (u usage) {
	const hertz = 100 // clock ticks per second in /proc
	parents, ticks := map[int]int{}, map[int]time.Duration{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 15 {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parents[pid], _ = strconv.Atoi(fields[1])
		var sum int
		for _, f := range fields[11:15] { // user and system time of the process and of its ended children
			n, _ := strconv.Atoi(f)
			sum += n
		}
		ticks[pid] = time.Duration(sum) * time.Second / hertz
	}
	for pid, took := range ticks {
		switch {
		case pid == os.Getpid():
			u.load += took
		case pid == s.process.Process.Pid:
			u.server += took
		default:
			for p := parents[pid]; p > 1; p = parents[p] {
				if p == s.process.Process.Pid {
					u.database += took
				}
			}
		}
	}
	return u
}

// receiver is an HTTP server that receives events and records when each arrived.
type receiver struct {
	url    string
	server *http.Server
	mu     sync.Mutex
	at     []time.Time
}

// newReceiver starts a receiver. It calls take with the id and body of each event before it answers; take may be
// nil.
func newReceiver(take func(id string, body []byte)) (*receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // close ends it
	if err != nil {
		return nil, err
	}
	r := &receiver{url: "http://" + listener.Addr().String()}
	r.server = &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		body, err := io.ReadAll(in.Body)
		if err != nil { // the sender has disconnected
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		r.at = append(r.at, time.Now())
		r.mu.Unlock()
		if take != nil {
			take(in.Header.Get("webhook-id"), body)
		}
		w.WriteHeader(http.StatusNoContent)
	})}
	go func() { _ = r.server.Serve(listener) }()
	return r, nil
}

func (r *receiver) close() { _ = r.server.Close() }

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.at)
}

// since returns when each event arrived, as the duration since began. It omits events that arrived before began.
func (r *receiver) since(began time.Time) (out []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range r.at {
		if d := at.Sub(began); d >= 0 {
			out = append(out, d)
		}
	}
	return out
}
