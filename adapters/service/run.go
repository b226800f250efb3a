package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Run does all background work until ctx ends: it sends events, fetches data from providers, hands orders
// to the laboratory, escalates critical results, reads reports, runs continuous queries and bulk
// operations, erases deleted users, exports data of persons, and runs Config.Loops. Then it waits until
// running work has ended, and returns nil. If one kind of work fails, Run ends the others and returns its
// error. Any number of processes may call Run on one store. A Service can run only once: a further call
// returns Precondition.
func (s *Service) Run(ctx context.Context) error {
	parts := []work.Part{
		{Name: "deliveries", Run: s.Deliveries.Run},
		{Name: "access log", Run: s.Access.Run},
		{Name: "users", Run: s.Health.Deletions().Run},
		{Name: "continuous queries", Run: s.Continuous.Run},
		{Name: "pulls", Run: s.Pulls.Run},
		{Name: "bulk operations", Run: s.Bulk.Run},
		{Name: "exports", Run: s.Exports.Run},
	}
	if s.Orders != nil {
		parts = append(parts, work.Part{Name: "patient messages", Run: s.Orders.PatientMessages().Run}, work.Part{Name: "laboratory", Run: s.Exchange.Run},
			work.Part{Name: "appointments", Run: s.Visits.Run}, work.Part{Name: "idempotency keys", Run: s.Idempotency.Run},
			work.Part{Name: "critical results", Run: s.Critical.Run}, work.Part{Name: "test runs", Run: s.MatchTests.Run})
	}
	if s.Reports != nil {
		parts = append(parts, work.Part{Name: "lab reports", Run: s.Reports.Run})
	}
	for _, l := range s.loops {
		parts = append(parts, work.Part(l))
	}
	s.mu.Lock()
	if s.work != notStarted {
		s.mu.Unlock()
		return fmt.Errorf("%w: Run must be called only once; make another service", healthlab.Precondition)
	}
	s.work = running
	s.mu.Unlock()
	err := work.Together(ctx, parts)
	s.mu.Lock()
	s.work, s.failure = ended, err
	s.mu.Unlock()
	return err
}

// workState is the state of the background work.
type workState int

const (
	notStarted workState = iota
	running
	ended
)

// Methods that an engine of the store may have.
type (
	pinger interface {
		Ping(ctx context.Context) error
	}
	signaler interface{ Signal() webhook.Signal }
)

// pingTime is the longest time for the store to answer [Service.Ready].
const pingTime = 2 * time.Second

// Ready returns nil if Run is running and the store answers within 2 seconds that it can be used. Otherwise the error
// names the reason, without any value of a person.
func (s *Service) Ready(ctx context.Context) error {
	if err := s.backgroundError(); err != nil {
		return err
	}
	if store, ok := s.config.Stores.Engine().(pinger); ok {
		ctx, stop := context.WithTimeout(ctx, pingTime)
		defer stop()
		if err := store.Ping(ctx); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	return nil
}

// backgroundError returns nil while Run runs, and otherwise an error that says why the background work does not run.
func (s *Service) backgroundError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.work == running:
		return nil
	case s.failure != nil:
		return fmt.Errorf("the background work has ended: %w", s.failure)
	case s.work == ended:
		return errors.New("the background work has ended")
	}
	return errors.New("the background work has not started: call Service.Run")
}

// withHealth answers /healthz with 200 whenever the process answers, and /readyz with 200 if
// [Service.Ready] returns nil, otherwise 503. Other requests go to next; the first that arrives while Run
// is not running is logged.
func (s *Service) withHealth(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz":
			answer(w, http.StatusOK, "ok")
		case "/readyz":
			if err := s.Ready(r.Context()); err != nil {
				s.config.Log.WarnContext(r.Context(), "not ready", "error", err)
				w.Header().Set("Retry-After", "5")
				answer(w, http.StatusServiceUnavailable, "not ready")
				return
			}
			answer(w, http.StatusOK, "ready")
		default:
			if s.backgroundError() != nil {
				s.warn.Do(func() { s.config.Log.Warn("requests are answered, but no background work runs: call Service.Run") })
			}
			next.ServeHTTP(w, r)
		}
	})
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text)
}
