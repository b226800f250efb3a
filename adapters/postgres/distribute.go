package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
)

// spreadTables are the tables that Distribute spreads by user: what people measure, and what is
// computed of it. The first decides how many shards there are; the others are kept with it.
var spreadTables = [...]string{"series", "chunk", "segment", "record", "continuous_result"}

// committedTable stays on the coordinator, and Citus knows of it: so a transaction that writes
// an event and a user's data commits both or none. Every event is written to it.
const committedTable = "webhook_pending"

const selectCitus = `select to_regclass('pg_catalog.pg_dist_partition') is not null`

// Distribute spreads what people measure over the machines of a Citus cluster, by user, in as
// many pieces as shards says; the rest stays on the coordinator, which database is connected to. The
// schema must be there; see [Migrate]. Tables may hold rows, which are moved; writers wait
// meanwhile. What is spread already is left alone, so that the call can be repeated.
//
// A Store that was made before the call does not know of it: restart the processes.
//
// [healthlab.Invalid] if shards is below 1, [healthlab.Precondition] if the database has no
// extension citus.
func Distribute(ctx context.Context, database DB, shards int) error {
	if shards < 1 {
		return fmt.Errorf("%w: shards: a number of 1 or more", healthlab.Invalid)
	}
	if err := distribute(ctx, database, shards); err != nil {
		return fmt.Errorf("distribute: %w", db.Classify(ctx, err))
	}
	return nil
}

func distribute(ctx context.Context, database DB, shards int) error {
	tx, err := database.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1)", int64(db.MigrationLock)); err != nil {
		return err
	}
	citus := false
	if err := tx.QueryRow(ctx, selectCitus).Scan(&citus); err != nil {
		return err
	}
	if !citus {
		return fmt.Errorf("%w: the database has no extension citus", healthlab.Precondition)
	}
	beside := "none"
	for _, table := range spreadTables {
		// A table that joins others has as many pieces as they have.
		err := once(ctx, tx, table, "select create_distributed_table($1, 'user_id', shard_count => case when $2 = 'none' then $3::integer end, colocate_with => $2)",
			schema+table, beside, shards)
		if err != nil {
			return err
		}
		beside = schema + spreadTables[0]
	}
	err = once(ctx, tx, committedTable, "select citus_add_local_table_to_metadata($1)", schema+committedTable)
	if err != nil {
		return err
	}
	return tx.Commit(ctx)
}

const schema = "healthlab."

// once runs a statement about a table that Citus does not know.
func once(ctx context.Context, tx pgx.Tx, table, sql string, args ...any) error {
	known := false
	err := tx.QueryRow(ctx, "select exists (select from pg_catalog.pg_dist_partition where logicalrelid = $1::regclass)", schema+table).Scan(&known)
	if err != nil || known {
		return err
	}
	_, err = tx.Exec(ctx, sql, args...)
	return err
}

// isSpread reports whether users may be spread over machines, so that a statement about series
// or records is about one user. The first answer holds for as long as the store.
func (s *Store) isSpread(ctx context.Context) (bool, error) {
	if s.asked.Load() {
		return s.spread.Load(), nil
	}
	citus := false
	if err := s.db.QueryRow(ctx, selectCitus).Scan(&citus); err != nil {
		return false, db.Classify(ctx, err)
	}
	s.spread.Store(citus)
	s.asked.Store(true)
	return citus, nil
}
