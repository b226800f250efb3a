package outbox

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/webhook"
)

const (
	sendSignal = `select pg_notify('healthlab_routed', $1)`
	hearSignal = `listen healthlab_routed`

	// listenQuiet is after how much silence a connection is asked whether it is still
	// there.
	listenQuiet = 30 * time.Second
	// listenPing is how long the answer may take.
	listenPing = 30 * time.Second
)

// Signal returns a [webhook.Signal] for one dispatcher; nil unless the database is a pool.
func (s *Store) Signal() webhook.Signal {
	if s.db.Pool == nil {
		return nil
	}
	return &Signal{s: s, name: rand.Text(), Quiet: listenQuiet}
}

// Signal is the [webhook.Signal] of one dispatcher.
type Signal struct {
	s     *Store
	name  string // of who sends
	Quiet time.Duration
}

// Send implements [webhook.Signal].
func (g *Signal) Send(ctx context.Context) error {
	_, err := g.s.db.Exec(ctx, sendSignal, g.name)
	return db.Classify(ctx, err)
}

// Listen implements [webhook.Signal].
func (g *Signal) Listen(ctx context.Context, heard func()) error {
	return db.Classify(ctx, g.listen(ctx, heard))
}

func (g *Signal) listen(ctx context.Context, heard func()) error {
	held, err := g.s.db.Pool.Acquire(ctx)
	if err != nil {
		return err
	}
	conn := held.Hijack() // the pool makes another one in its place
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), db.RollbackTime)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, hearSignal); err != nil {
		return err
	}
	heard()
	for {
		quiet, cancel := context.WithTimeout(ctx, g.Quiet)
		n, err := conn.WaitForNotification(quiet)
		cancel()
		switch {
		case err == nil:
			if n.Payload != g.name {
				heard()
			}
		case ctx.Err() != nil || !pgconn.Timeout(err):
			return err
		default:
			if err := ping(ctx, conn); err != nil {
				return err
			}
		}
	}
}

// ping asks whether the other end of a connection is still there.
func ping(ctx context.Context, conn interface{ Ping(context.Context) error }) error {
	ctx, cancel := context.WithTimeout(ctx, listenPing)
	defer cancel()
	return conn.Ping(ctx)
}
