package postgres

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/healthlab-dev/healthlab/webhook"
)

const (
	sendSignal = `select pg_notify('healthlab_routed', $1)`
	hearSignal = `listen healthlab_routed`

	// listenQuiet is how long a listening connection may receive nothing before it is pinged.
	listenQuiet = 30 * time.Second
	// listenPing is the longest time for the answer to a ping.
	listenPing = 30 * time.Second
	// closeTime is the longest time to close a connection.
	closeTime = 2 * time.Second
)

// Signal returns a [webhook.Signal] for one dispatcher, by LISTEN and NOTIFY. Listening uses one connection in addition
// to those of the pool. The dispatcher does not receive its own signals.
//
// Signals do not pass a connection pooler in transaction mode. Dispatchers then find new messages at their next poll.
func (e *Store) Signal() webhook.Signal {
	return &signal{pool: e.pool, name: rand.Text(), quiet: listenQuiet}
}

// signal is the [webhook.Signal] of one dispatcher.
type signal struct {
	pool  *pgxpool.Pool
	name  string // random name by which a dispatcher recognizes its own signals
	quiet time.Duration
}

// Send implements [webhook.Signal].
func (g *signal) Send(ctx context.Context) error {
	_, err := g.pool.Exec(ctx, sendSignal, g.name)
	return classify(ctx, err)
}

// Listen implements [webhook.Signal].
func (g *signal) Listen(ctx context.Context, heard func()) error {
	return classify(ctx, g.listen(ctx, heard))
}

func (g *signal) listen(ctx context.Context, heard func()) error {
	held, err := g.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	conn := held.Hijack() // the listening connection no longer counts as one of the pool
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, hearSignal); err != nil {
		return err
	}
	heard()
	for {
		quiet, cancel := context.WithTimeout(ctx, g.quiet)
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

func ping(ctx context.Context, conn interface{ Ping(context.Context) error }) error {
	ctx, cancel := context.WithTimeout(ctx, listenPing)
	defer cancel()
	return conn.Ping(ctx)
}
