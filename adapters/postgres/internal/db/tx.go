package db

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
	// RollbackTime is how long a rollback may take before its connection is given up.
	RollbackTime = 2 * time.Second
)

// Access is what a transaction does.
type Access string

const (
	// Writing sees what is committed when each statement begins.
	Writing Access = "begin isolation level read committed"
	// Reading sees one state of the database for as long as it lasts.
	Reading Access = "begin isolation level repeatable read read only"
)

// setTeam names the team to the policies of row-level security.
const setTeam = `select set_config('healthlab.team', $1, true)`

// AllTeams is the team of work that is not one team's.
var AllTeams healthlab.TeamID

// setSteady keeps the plans of statements about series as they are. The server thinks of
// another one for every number of rows, which takes it longer than the rows do, and
// reads all of a table that was small when it looked last.
const setSteady = `select ` + KeepPlans + `,
	set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)`

// KeepPlans plans statements without their arguments. Citus needs them: to know whose machine a
// statement is for, and to write to a table that is local to the coordinator.
const KeepPlans = `set_config('plan_cache_mode', case when to_regclass('pg_catalog.pg_dist_partition') is null then 'force_generic_plan' else 'auto' end, true)`

// Tx is a transaction. Its statements go in batches, one round trip each; on a pool
// the first batch begins it and the last one commits it, without trips of their own.
// In a host's transaction it is a savepoint.
type Tx struct {
	db     *DB
	team   healthlab.TeamID
	access Access

	conn *pgxpool.Conn // on a pool
	tx   pgx.Tx        // elsewhere

	begun, done bool
	wrote       bool // events
	last        bool // the batch that commits is on its way
}

// Do runs a transaction about a team, and repeats it if it lost against another one or a
// connection broke before anything could be committed. run ends it with [Tx.Commit] or
// [Tx.Alone]; otherwise it is undone. In a host's transaction it runs once.
func (d *DB) Do(ctx context.Context, team healthlab.TeamID, a Access, run func(*Tx) error) error {
	for try := 1; ; try++ {
		again, err := d.once(ctx, team, a, run)
		if err == nil || !again || d.Host || try == maxTries || ctx.Err() != nil {
			return Finish(ctx, err)
		}
		if err := pause(ctx, d.FirstPause<<(try-1)); err != nil {
			return err
		}
	}
}

// Finish classifies the error of the last try of a transaction.
func Finish(ctx context.Context, err error) error {
	if errors.Is(err, ErrChanged) {
		return fmt.Errorf("%w: gave up under contention", healthlab.Unavailable)
	}
	return Classify(ctx, err)
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

func (d *DB) once(ctx context.Context, team healthlab.TeamID, a Access, run func(*Tx) error) (again bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	u := &Tx{db: d, team: team, access: a}
	if d.Pool != nil {
		u.conn, err = d.Pool.Acquire(ctx)
	} else {
		u.tx, err = d.Begin(ctx)
	}
	if err != nil {
		return Lost(err), err
	}
	defer u.close(ctx)
	if err = run(u); err == nil {
		if u.wrote && d.Written != nil && !d.Host {
			d.Written()
		}
		return false, nil
	}
	var said answer
	if errors.As(err, &said) {
		return false, err
	}
	return contended(err) || Lost(err) && !u.last || pgconn.SafeToRetry(err), err
}

// close undoes what was not committed and gives the connection back.
func (u *Tx) close(ctx context.Context) {
	if u.conn != nil {
		defer u.conn.Release() // closes the connection if it could not be rolled back
	}
	if u.done || u.tx == nil && (!u.begun || u.conn.Conn().IsClosed()) {
		return // without the timer, which costs a small write as much as its arguments do
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RollbackTime)
	defer cancel()
	if u.tx != nil {
		_ = u.tx.Rollback(ctx)
	} else {
		_, _ = u.conn.Conn().Exec(ctx, "rollback")
	}
}

// Batch returns an empty batch, or one that begins the transaction.
func (u *Tx) Batch() *pgx.Batch {
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
func (u *Tx) scope(b *pgx.Batch) {
	if !u.db.RowSecurity {
		return
	}
	name := "all"
	if u.team != AllTeams {
		name = u.team.String()
	}
	b.Queue(setTeam, name)
}

// PlanHints adds the settings for statements about series to a batch that begins a transaction
// on a pool.
func (u *Tx) PlanHints(b *pgx.Batch) {
	if u.conn != nil {
		b.Queue(setSteady)
	}
}

// Tune adds statements that change settings of the transaction to a batch. A host's own
// transaction keeps its settings.
func (u *Tx) Tune(b *pgx.Batch, sql ...string) {
	if u.db.Host {
		return
	}
	for _, s := range sql {
		b.Queue(s)
	}
}

// Wrote says that the transaction writes events.
func (u *Tx) Wrote() { u.wrote = true }

// Once says that the transaction is not repeated when its connection breaks.
func (u *Tx) Once() { u.last = true }

// Begun reports whether a batch of the transaction was made.
func (u *Tx) Begun() bool { return u.begun }

// Send runs a batch.
func (u *Tx) Send(ctx context.Context, b *pgx.Batch) error {
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

// Commit runs a batch and commits.
func (u *Tx) Commit(ctx context.Context, b *pgx.Batch) error {
	u.last = true
	if u.conn == nil {
		if err := u.Send(ctx, b); err != nil {
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
	if err := u.Send(ctx, b); err != nil {
		return err
	}
	u.done = true
	return nil
}

// Alone runs a single batch as a transaction of its own, in one round trip where there
// is a pool.
func (u *Tx) Alone(ctx context.Context, queue func(*pgx.Batch)) error {
	if u.conn == nil {
		b := u.Batch()
		queue(b)
		return u.Commit(ctx, b)
	}
	b := &pgx.Batch{}
	u.scope(b)
	queue(b)
	u.last = true
	return u.Send(ctx, b)
}

// Read runs a single batch that changes nothing.
func (d *DB) Read(ctx context.Context, team healthlab.TeamID, queue func(*pgx.Batch)) error {
	return d.Do(ctx, team, Reading, func(u *Tx) error {
		err := u.Alone(ctx, queue)
		u.last = false // repeating it does no harm
		return err
	})
}
