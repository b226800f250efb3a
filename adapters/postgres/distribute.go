package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// Distribute distributes the tables per user (see [store.Definition]) over the machines of a Citus cluster, in the
// given number of shards; all rows of a user are on one machine. Other tables stay on the coordinator, to which db
// is connected. [Migrate] must have made the tables. Existing rows are moved; writers wait meanwhile. A table that
// is distributed already is skipped, so the call can be repeated.
//
// A Store that was made before the call still treats the tables as local: restart its process.
//
// It returns healthlab.Invalid if shards is below 1, and healthlab.Precondition if the database lacks the extension
// citus or a table.
func Distribute(ctx context.Context, db interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}, tables []store.Definition, shards int, opts *Options) error {
	if shards < 1 {
		return fmt.Errorf("%w: shards: must be 1 or more", healthlab.Invalid)
	}
	schema := engineOptions(opts).Schema
	declared, err := newTables(schema, tables)
	if err != nil {
		return err
	}
	if err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error { return distribute(ctx, tx, schema, declared, shards) }); err != nil {
		return fmt.Errorf("distribute the store: %w", classify(ctx, err))
	}
	return nil
}

func distribute(ctx context.Context, tx pgx.Tx, schema string, tables map[string]*table, shards int) error {
	if _, err := tx.Exec(ctx, fmt.Sprintf("select pg_advisory_xact_lock(%d)", int64(engineLock))); err != nil {
		return err
	}
	missing, err := missingRelations(ctx, tx, schema, tables)
	if err == nil && len(missing) > 0 {
		err = missingError(missing)
	}
	if err != nil {
		return err
	}
	known, citus, err := clusterTables(ctx, tx, schema)
	if err != nil {
		return err
	}
	if !citus {
		return fmt.Errorf("%w: the database must have the extension citus", healthlab.Precondition)
	}
	if !known[commitTable] {
		name := pgx.Identifier{schema, commitTable}.Sanitize()
		_, err := tx.Exec(ctx, "create table "+name+" (n integer)")
		if err == nil {
			_, err = tx.Exec(ctx, "select citus_add_local_table_to_metadata($1)", name)
		}
		if err != nil {
			return err
		}
	}
	beside := "none" // a table that joins others has as many shards as they have
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		t := tables[name]
		if t.def.PerUser && known[name] {
			beside = t.sql
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		t := tables[name]
		if !t.def.PerUser || known[name] {
			continue
		}
		_, err := tx.Exec(ctx, "select create_distributed_table($1, 'user_id', shard_count => case when $2 = 'none' then $3::integer end, colocate_with => $2)",
			t.sql, beside, shards)
		if err != nil {
			return err
		}
		beside = t.sql
	}
	return nil
}

// clusterTables returns the tables of a schema that Citus distributes. citus reports whether the extension is
// installed.
func clusterTables(ctx context.Context, tx pgx.Tx, schema string) (known map[string]bool, citus bool, err error) {
	if err := tx.QueryRow(ctx, "select to_regclass('pg_catalog.pg_dist_partition') is not null").Scan(&citus); err != nil || !citus {
		return nil, false, err
	}
	rows, err := tx.Query(ctx, `select c.relname from pg_catalog.pg_dist_partition p join pg_class c on c.oid = p.logicalrelid
		join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1`, schema)
	if err != nil {
		return nil, false, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	known = map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	return known, true, err
}

// findDistributed marks the tables that Citus distributes, and sets the statements that distributed tables require.
func (e *Store) findDistributed(ctx context.Context) error {
	return pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error {
		known, _, err := clusterTables(ctx, tx, e.opts.Schema)
		for name, t := range e.tables {
			if known[name] && t.def.PerUser {
				t.spread, e.spread = true, true
				t.one.update = t.updateRow() // a plain update: the commit checks the number of changed rows instead
			}
		}
		if err == nil && e.spread && e.opts.RowSecurity {
			err = fmt.Errorf("%w: RowSecurity: must be false on a Citus cluster, because workers do not get the team of a session", healthlab.Precondition)
		}
		e.commitBoth = "delete from " + pgx.Identifier{e.opts.Schema, commitTable}.Sanitize() + " where n = 0"
		return err
	})
}
