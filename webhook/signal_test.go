package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/webhook"
)

// wire is a Signal in one process, which notes when something was sent.
type wire struct {
	mu      sync.Mutex
	sent    []time.Time
	began   int // to listen
	broken  bool
	arrives chan struct{}
}

func (w *wire) Send(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, time.Now())
	if w.broken {
		return errors.New("broken")
	}
	return nil
}

func (w *wire) tries() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.began
}

func (w *wire) Listen(ctx context.Context, heard func()) error {
	w.mu.Lock()
	w.began++
	broken := w.broken
	w.mu.Unlock()
	if broken {
		return errors.New("broken")
	}
	heard()
	for {
		select {
		case _, ok := <-w.arrives:
			if !ok {
				return errors.New("cut")
			}
			heard()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A signal makes another process send what the first one has routed and has no slot for.
// Neither polls.
func TestSignal_wakesADispatcherOfAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		h.create(t)
		w := &wire{arrives: make(chan struct{})}
		h.opts.Idle, h.opts.Busy, h.opts.Signal = 24*time.Hour, 24*time.Hour, w
		stop := h.run(t)
		synctest.Wait()
		time.Sleep(time.Hour)
		began := time.Now()
		h.write(t, "labtest.order.updated", "k")
		_, err := h.store.Deliveries().Route(t.Context(), h.types.Modes(), 10) // by another process
		require.NoError(t, err)
		w.arrives <- struct{}{}
		synctest.Wait()
		stop()
		require.Len(t, h.to.all(), 1)
		require.Equal(t, began, h.to.all()[0].when)
		require.Empty(t, w.sent, "it has routed nothing itself")
	})
}

func TestSignal_isSentAtMostTwentyTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		h.create(t)
		w := &wire{}
		h.opts.Signal = w
		d, err := webhook.NewDispatcher(h.types, h.store.Webhooks(), h.to, h.sealer, &h.opts)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- d.Run(ctx) }()
		began := time.Now()
		for range 1000 {
			h.write(t, "labtest.order.updated", "k")
			d.Wake()
			time.Sleep(time.Millisecond)
		}
		last := time.Now()
		time.Sleep(time.Second)
		cancel()
		require.NoError(t, <-ended)
		require.Equal(t, began, w.sent[0], "the first at once")
		for i := 1; i < len(w.sent); i++ {
			require.GreaterOrEqual(t, w.sent[i].Sub(w.sent[i-1]), 50*time.Millisecond)
		}
		require.GreaterOrEqual(t, len(w.sent), 19)
		require.WithinRange(t, w.sent[len(w.sent)-1], last.Add(-time.Millisecond), last.Add(50*time.Millisecond), "nothing is left unsaid")
	})
}

// A broken connection is made again, at growing intervals and without a warning in the log.
// Meanwhile polling finds the messages.
func TestSignal_lostConnectionIsRenewedWhilePollingGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		h.create(t)
		w := &wire{broken: true}
		h.opts.Signal = w
		stop := h.run(t)
		for range 10 {
			h.write(t, "labtest.order.updated", "k")
			time.Sleep(6 * time.Second)
		}
		synctest.Wait()
		require.Len(t, h.to.all(), 10)
		require.InDelta(t, 43, w.tries(), 2, "every second and a half in the end")

		w.mu.Lock()
		w.broken, w.arrives = false, make(chan struct{})
		w.mu.Unlock()
		time.Sleep(6 * time.Second)
		tries := w.tries()
		close(w.arrives)
		time.Sleep(150 * time.Millisecond)
		require.Greater(t, w.tries(), tries, "one that has worked is made again at once")
		stop()
		require.Empty(t, h.logs.String())
	})
}

// A dispatcher that is woken after a commit delivers at once.
func TestWake_deliversACommittedEventAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t)
		h.create(t)
		h.opts.Idle, h.opts.Busy = time.Hour, time.Hour
		d, err := webhook.NewDispatcher(h.types, h.store.Webhooks(), h.to, h.sealer, &h.opts)
		require.NoError(t, err)
		h.written = d.Wake
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- d.Run(ctx) }()
		time.Sleep(time.Minute)
		for i := range 5 {
			h.write(t, "labtest.order.updated", fmt.Sprint(i))
			time.Sleep(10 * time.Millisecond)
			require.Len(t, h.to.all(), i+1)
		}
		stop()
		require.NoError(t, <-done)
	})
}
