package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/healthlab-dev/healthlab"
)

const (
	// maxTries is how often a transaction is run, the first time included.
	maxTries = 4
	// firstPause is about how long to wait before the second try; the pauses double.
	firstPause = 10 * time.Millisecond
	// rollbackTime is how long a rollback may take before its connection is given up.
	rollbackTime = 2 * time.Second
)

// access is what a transaction does.
type access string

const (
	writing access = "begin isolation level read committed"
	// looking sees one state of the database for as long as it lasts.
	looking access = "begin isolation level repeatable read read only"
)

// setTeam names the team to the policies of row-level security.
const setTeam = `select set_config('healthlab.team', $1, true)`

// allTeams is the team of work that is not one team's.
var allTeams healthlab.TeamID

// setSteady keeps the plans of statements about series as they are. The server thinks of
// another one for every number of rows, which takes it longer than the rows do, and
// reads all of a table that was small when it looked last.
const setSteady = `select ` + keepPlans + `,
	set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)`

// keepPlans plans statements without their arguments. Citus needs them: to know whose machine a
// statement is for, and to write to a table that is local to the coordinator.
const keepPlans = `set_config('plan_cache_mode', case when to_regclass('pg_catalog.pg_dist_partition') is null then 'force_generic_plan' else 'auto' end, true)`

// unit is a transaction. Its statements go in batches, one round trip each; on a pool
// the first batch begins it and the last one commits it, without trips of their own.
// In a host's transaction it is a savepoint.
type unit struct {
	db     *database
	team   healthlab.TeamID
	access access

	conn *pgxpool.Conn // on a pool
	tx   pgx.Tx        // elsewhere

	begun, done bool
	wrote       bool // events
	last        bool // the batch that commits is on its way
}

// do runs a transaction, and repeats it if it lost against another one or a connection broke
// before anything could be committed. run ends it with commit; otherwise it is undone.
func (d *database) do(ctx context.Context, team healthlab.TeamID, a access, run func(*unit) error) error {
	for try := 1; ; try++ {
		again, err := d.once(ctx, team, a, run)
		if err == nil || !again || d.host || try == maxTries || ctx.Err() != nil {
			return finish(ctx, err)
		}
		if err := pause(ctx, d.firstPause<<(try-1)); err != nil {
			return err
		}
	}
}

// finish classifies the error of the last try of a transaction.
func finish(ctx context.Context, err error) error {
	if errors.Is(err, errAgain) {
		return fmt.Errorf("%w: gave up under contention", healthlab.Unavailable)
	}
	return classify(ctx, err)
}

// pause waits for about that long, at random, so that two transactions that met do not wait equally long.
func pause(ctx context.Context, wait time.Duration) error {
	jitter := rand.Float64() //nolint:forbidigo // nothing but the length of a pause depends on it
	t := time.NewTimer(wait/2 + time.Duration(jitter*float64(wait)))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *database) once(ctx context.Context, team healthlab.TeamID, a access, run func(*unit) error) (again bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	u := &unit{db: d, team: team, access: a}
	if d.pool != nil {
		u.conn, err = d.pool.Acquire(ctx)
	} else {
		u.tx, err = d.Begin(ctx)
	}
	if err != nil {
		return lost(err), err
	}
	defer u.close(ctx)
	if err = run(u); err == nil {
		if u.wrote && d.written != nil && !d.host {
			d.written()
		}
		return false, nil
	}
	var said answer
	if errors.As(err, &said) {
		return false, err
	}
	return contended(err) || lost(err) && !u.last || pgconn.SafeToRetry(err), err
}

// close undoes what was not committed and gives the connection back.
func (u *unit) close(ctx context.Context) {
	if u.conn != nil {
		defer u.conn.Release() // closes the connection if it could not be rolled back
	}
	if u.done || u.tx == nil && (!u.begun || u.conn.Conn().IsClosed()) {
		return // without the timer, which costs a small write as much as its arguments do
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
	defer cancel()
	if u.tx != nil {
		_ = u.tx.Rollback(ctx)
	} else {
		_, _ = u.conn.Conn().Exec(ctx, "rollback")
	}
}

// batch returns an empty batch, or one that begins the transaction.
func (u *unit) batch() *pgx.Batch {
	b := &pgx.Batch{}
	if u.begun {
		return b
	}
	u.begun = true
	if u.conn != nil {
		b.Queue(string(u.access))
	}
	u.scope(b)
	return b
}

// scope says which team the transaction is about, where policies ask for it.
func (u *unit) scope(b *pgx.Batch) {
	if !u.db.rowSecurity {
		return
	}
	name := "all"
	if u.team != allTeams {
		name = u.team.String()
	}
	b.Queue(setTeam, name)
}

// steady adds setSteady to a batch that begins a transaction, where it is ours.
func (u *unit) steady(b *pgx.Batch) {
	if u.conn != nil {
		b.Queue(setSteady)
	}
}

// tune adds statements that change settings of the transaction to a batch. A host's own
// transaction keeps its settings.
func (u *unit) tune(b *pgx.Batch, sql ...string) {
	if u.db.host {
		return
	}
	for _, s := range sql {
		b.Queue(s)
	}
}

// Wrote says that the transaction writes events.
func (u *unit) Wrote() { u.wrote = true }

// Once says that the transaction is not repeated when its connection breaks.
func (u *unit) Once() { u.last = true }

// Begun reports whether a batch of the transaction was made.
func (u *unit) Begun() bool { return u.begun }

// send runs a batch.
func (u *unit) send(ctx context.Context, b *pgx.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	for _, q := range b.QueuedQueries {
		plainArguments(q.Arguments)
	}
	if u.conn != nil {
		return u.conn.SendBatch(ctx, b).Close()
	}
	return u.tx.SendBatch(ctx, b).Close()
}

// commit runs a batch and commits.
func (u *unit) commit(ctx context.Context, b *pgx.Batch) error {
	u.last = true
	if u.conn == nil {
		if err := u.send(ctx, b); err != nil {
			return err
		}
		u.done = true
		return u.tx.Commit(ctx)
	}
	b.Queue("commit").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return pgx.ErrTxCommitRollback
		}
		return nil
	})
	if err := u.send(ctx, b); err != nil {
		return err
	}
	u.done = true
	return nil
}

// alone runs a single batch as a transaction of its own, in one round trip where there
// is a pool.
func (u *unit) alone(ctx context.Context, queue func(*pgx.Batch)) error {
	if u.conn == nil {
		b := u.batch()
		queue(b)
		return u.commit(ctx, b)
	}
	b := &pgx.Batch{}
	u.scope(b)
	queue(b)
	u.last = true
	return u.send(ctx, b)
}

// read runs a single batch that changes nothing.
func (d *database) read(ctx context.Context, team healthlab.TeamID, queue func(*pgx.Batch)) error {
	return d.do(ctx, team, looking, func(u *unit) error {
		err := u.alone(ctx, queue)
		u.last = false // repeating it does no harm
		return err
	})
}
