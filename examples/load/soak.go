package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest/embedded"
)

// soak is a run of the mix of requests against two servers on one PostgreSQL. Now and then it kills one of the
// servers, or PostgreSQL.
type soak struct {
	config
	killEvery time.Duration
	dir       string
	binary    string
	database  *embedded.Server
	hook      *receiver
	truth     truth
	inbox     inbox
	began     atomic.Pointer[time.Time] // when the load began; nil before

	aside sync.WaitGroup // goroutines that retry orders whose idempotency key a killed server has locked

	mu       sync.Mutex
	servers  [2]*server // nil while it is down; only the second one is killed
	logs     [2]*os.File
	kills    []time.Duration // when a server or PostgreSQL was killed, from the start of the load
	failures map[string]int  // number of failed attempts by HTTP status
	wrong    []string        // answers that an outage does not explain
}

const (
	// patience is the time after which a request that never succeeded is given up and reported.
	patience = 2 * time.Minute
	// The receiver is slow for slowFor in each slowEvery: each answer then takes slowBy.
	slowEvery, slowFor, slowBy = time.Minute, 15 * time.Second, time.Second
	// walLimit is PostgreSQL's max_wal_size, in bytes.
	walLimit = 256 << 20
	// uploadsPerUser is the highest number of uploads of a user. Each upload continues the user's samples, which
	// must not reach the present.
	uploadsPerUser = 2000
)

func runSoak(ctx context.Context, args []string, out io.Writer) error {
	s := &soak{config: config{days: 1}, failures: map[string]int{}}
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	f.StringVar(&s.server, "server", "", "`file` of the built server (default: it is built)")
	f.Float64Var(&s.rate, "rate", 100, "requests a second")
	f.DurationVar(&s.duration, "duration", 30*time.Minute, "how long to send")
	f.DurationVar(&s.killEvery, "kill-every", time.Minute, "`time` from one kill to the next; a server and PostgreSQL take turns")
	f.IntVar(&s.users, "users", 100, "`number` of users, each with a day of data")
	f.IntVar(&s.workers, "workers", 32, "the most requests in flight")
	f.StringVar(&s.report, "report", "soak.html", "`file` of the report")
	f.StringVar(&s.note, "note", "", "`text` for the report, such as what else the machine did")
	if err := f.Parse(args); err != nil {
		return err
	}
	s.queues = s.workers // one queue for each worker, so that a user's writes keep their order
	if err := checkLoad(s.rate, s.duration, s.users, s.workers); err != nil {
		return err
	}
	if s.killEvery < time.Second {
		return errors.New("-kill-every must be 1s or more")
	}
	uploads := s.rate * s.duration.Seconds() * float64(operations[0].weight) / 100
	if least := int(math.Ceil(uploads / uploadsPerUser)); s.users < least {
		return fmt.Errorf("-users must be at least %d: the program makes at most %d uploads for each user", least, uploadsPerUser)
	}
	found, err := s.run(ctx, out)
	if err != nil {
		return err
	}
	if err := found.write(s.report); err != nil {
		return err
	}
	found.print(out)
	fmt.Fprintln(out, "report:", s.report)
	if n := found.violations(); n > 0 {
		return fmt.Errorf("%d checks failed", n)
	}
	return nil
}

// run starts PostgreSQL, the servers and the receiver, sends the load, and then checks the stored data and the
// events.
func (s *soak) run(ctx context.Context, out io.Writer) (found *soakResult, err error) {
	if s.hook, err = newReceiver(s.receive); err != nil {
		return nil, err
	}
	defer s.hook.close()
	if s.dir, err = folder(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	m := newMix(s.config, s.anyServer)
	m.do = func(ctx context.Context, d due) error { return s.do(ctx, m, d) }
	fmt.Fprintf(out, "%d users with a day of data …\n", s.users)
	if err := m.seed(ctx); err != nil {
		return nil, fmt.Errorf("seed: %w", err)
	}
	s.truth.recordSeed(m.people, s.days)
	fmt.Fprintf(out, "%.0f requests a second for %v, a kill every %v …\n", s.rate, s.duration, s.killEvery)
	began := time.Now()
	s.began.Store(&began)
	background, stop := context.WithCancel(ctx)
	defer stop()
	var working sync.WaitGroup
	var killed error
	var readings []reading
	working.Go(func() { killed = s.disturb(background) })
	working.Go(func() { readings = s.watch(background) })
	samples, err := m.send(ctx, s.duration)
	took := time.Since(began)
	stop()
	working.Wait()
	s.aside.Wait()
	if err = errors.Join(err, killed); err != nil {
		return nil, err
	}
	fmt.Fprintln(out, "checking …")
	checks, drained, err := s.check(ctx, m)
	if err != nil {
		return nil, err
	}
	checks = append(checks, growth(readings, s.duration)...)
	return &soakResult{
		result: result{config: s.config, samples: samples, took: took, drained: drained, arrivals: s.hook.since(began), events: s.hook.count()},
		soak:   s, readings: readings, checks: checks,
	}, nil
}

// start starts PostgreSQL and both servers.
func (s *soak) start(ctx context.Context) (err error) {
	if s.binary, err = build(ctx, s.server, s.dir); err != nil {
		return err
	}
	s.database, err = embedded.Start(ctx, filepath.Join(s.dir, "db"), &embedded.Options{Settings: map[string]string{
		"max_wal_size": fmt.Sprint(walLimit>>20, "MB"),
	}})
	if err != nil {
		return err
	}
	for i := range s.servers {
		if s.logs[i], err = os.Create(filepath.Join(s.dir, fmt.Sprint("server-", i+1, ".log"))); err != nil {
			return err
		}
		if err := s.startServer(i); err != nil {
			return err
		}
	}
	return nil
}

// startServer starts server i, 0 or 1. Its output goes to its log file.
func (s *soak) startServer(i int) error {
	made, err := startServer(s.binary, s.logs[i],
		"-database-url", s.database.URL("postgres"), "-secret-file", filepath.Join(s.dir, "secret"), "-files", filepath.Join(s.dir, "files"),
		"-webhook-url", s.hook.url, "-lease", "10s", "-sandbox-speed", "8640") // an order takes a step in ten seconds
	if err != nil {
		return fmt.Errorf("server %d: %w", i+1, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers[i] = made
	return nil
}

// close stops the servers and PostgreSQL, and removes their folder.
func (s *soak) close() error {
	var err error
	for i, one := range s.servers {
		if one != nil {
			err = errors.Join(err, one.stop())
		}
		if s.logs[i] != nil {
			err = errors.Join(err, s.logs[i].Close())
		}
	}
	if s.database != nil {
		s.database.Crash()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

func (s *soak) anyServer() *server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.servers[rand.N(len(s.servers))], s.servers[0])
}

// disturb kills and restarts the second server and PostgreSQL, in turn, until ctx ends.
func (s *soak) disturb(ctx context.Context) error {
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(s.killEvery):
		}
		s.mu.Lock()
		s.kills = append(s.kills, time.Since(*s.began.Load()))
		second := s.servers[1]
		if n%2 == 0 {
			s.servers[1] = nil
		}
		s.mu.Unlock()
		var err error
		if n%2 == 0 {
			err = second.kill()
			time.Sleep(pause)
			err = errors.Join(err, s.startServer(1))
		} else {
			s.database.Crash()
			err = s.database.Up(context.WithoutCancel(ctx))
		}
		if err != nil {
			return err
		}
	}
}

// do sends a request until it succeeds, as a device or a customer's program would. If a killed server has locked the
// idempotency key of an order, do returns nil and another goroutine retries the order, because the lock lasts up to a
// minute.
func (s *soak) do(ctx context.Context, m *mix, d due) error {
	if operations[d.op].name == placeOrder {
		d.key = uuid.NewString()
	}
	until := time.Now().Add(patience)
	err := s.sendWithRetry(ctx, m, d, until)
	if errors.Is(err, errHeld) {
		s.aside.Go(func() {
			for errors.Is(err, errHeld) {
				time.Sleep(pause)
				err = s.sendWithRetry(ctx, m, d, until)
			}
		})
		return nil
	}
	return err
}

// errHeld says that a server, perhaps a killed one, has locked the idempotency key of a request.
var errHeld = errors.New("the server still holds the idempotency key")

// sendWithRetry sends a request until it succeeds, a server has locked its idempotency key, or the instant until has
// passed. It records a successful write in s.truth.
func (s *soak) sendWithRetry(ctx context.Context, m *mix, d due, until time.Time) error {
	var placed struct {
		Order struct {
			ID string `json:"id"`
		} `json:"order"`
	}
	var out any
	if d.key != "" {
		out = &placed
	}
	for {
		err := m.call(ctx, d.request, out)
		if err == nil {
			s.truth.acknowledged(d, placed.Order.ID)
			return nil
		}
		var answer *statusError
		errors.As(err, &answer)
		held := answer != nil && answer.status == http.StatusConflict && d.key != ""
		s.mu.Lock()
		switch {
		case answer == nil:
			s.failures["no answer"]++
		default:
			s.failures[http.StatusText(answer.status)]++
			if answer.status != http.StatusServiceUnavailable && !held {
				s.wrong = append(s.wrong, answer.text) // an outage does not explain this status
			}
		}
		over := time.Now().After(until) || ctx.Err() != nil
		if over {
			s.wrong = append(s.wrong, fmt.Sprintf("%s: no success within %v", operations[d.op].name, patience))
		}
		s.mu.Unlock()
		switch {
		case over:
			return err
		case held:
			return errHeld
		}
		time.Sleep(pause)
	}
}

func (s *soak) receive(id string, body []byte) {
	s.inbox.record(id, body)
	if began := s.began.Load(); began != nil && time.Since(*began)%slowEvery > slowEvery-slowFor {
		time.Sleep(slowBy)
	}
}

func (s *soak) connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.Connect(ctx, s.database.URL("postgres"))
}
