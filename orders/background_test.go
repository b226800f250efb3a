package orders_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
)

// TestBackground_ordersCompleteAfterALabOutage runs the loops as a host does, in time that passes by itself, through
// an outage of the lab.
func TestBackground_ordersCompleteAfterALabOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, func(o *options) { o.Now = time.Now })
		d.lab = sandbox.NewLab(&sandbox.LabOptions{Step: time.Hour})
		lab := &outage{LabBackend: d.lab, until: time.Now().Add(10 * time.Hour)}
		var logged syncBuffer
		service, err := d.newServices(book(t), lab, &options{orderOptions: orders.Options{Environment: healthlab.Production, Background: orders.Background{Log: slog.New(slog.NewTextHandler(&logged, nil))}}})
		require.NoError(t, err)
		d.services = service
		o := d.placed("kit", func(r *orders.PlaceRequest) { r.PatientDetails.DOB.Year = 1950 }) // the clock begins in 2000
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- service.Run(ctx) }()
		time.Sleep(9 * time.Hour)
		require.Equal(t, orders.Ordered, d.get(o).LowLevel())
		require.Less(t, strings.Count(logged.String(), `work="lab updates"`), 10*60, "a line each minute of the outage")
		require.LessOrEqual(t, strings.Count(logged.String(), `level=WARN msg="job failed" work="lab updates" job.lab=lab kind=unavailable cause="lab updates: unavailable"`), 10,
			"one at WARN each hour, with the laboratory and the cause")
		require.Contains(t, logged.String(), `level=WARN msg="job failed" work="lab updates" job.lab=lab`)
		time.Sleep(24 * time.Hour)
		require.Equal(t, orders.Completed, d.get(o).LowLevel(), "it went on by itself")
		stop()
		require.NoError(t, <-done)
	})
}

// syncBuffer is a log that many write to.
type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// outage is a lab that is away until a time.
type outage struct {
	exchange.LabBackend
	until time.Time
}

func (o *outage) Submit(ctx context.Context, s exchange.Submission) (exchange.Accepted, error) {
	if time.Now().Before(o.until) {
		<-ctx.Done() // no answer at all
		return exchange.Accepted{}, ctx.Err()
	}
	return o.LabBackend.Submit(ctx, s)
}

func (o *outage) Updates(ctx context.Context, cursor string, n int) (exchange.Batch, error) {
	if time.Now().Before(o.until) {
		return exchange.Batch{}, errors.New("connection refused")
	}
	return o.LabBackend.Updates(ctx, cursor, n)
}
