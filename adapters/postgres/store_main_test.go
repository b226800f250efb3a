package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/internal/eventlog"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/store/storetest"
)

// RowSchema is the schema of RowTables.
const RowSchema = "rows"

// RowTables returns the tables that every database of a test has: those of a service, of the keys of
// persons, and of tests.
func RowTables() []store.Definition {
	var out []store.Definition
	for _, d := range slices.Concat(stores.Tables(), personkey.Tables(), storetest.Tables(), eventlog.Tables()) {
		if !slices.ContainsFunc(out, func(o store.Definition) bool { return o.Name == d.Name }) {
			out = append(out, d)
		}
	}
	return out
}

// migrateRows makes the tables, which [RestrictedRole] may read and write; on a cluster it spreads them.
func migrateRows(ctx context.Context, conn *pgx.Conn) error {
	if err := Migrate(ctx, conn, RowTables(), &Options{Schema: RowSchema}); err != nil {
		return err
	}
	if pgtest.Spread() {
		return Distribute(ctx, conn, RowTables(), 8, &Options{Schema: RowSchema})
	}
	_, err := conn.Exec(ctx, `
		grant usage on schema `+RowSchema+` to `+RestrictedRole+`;
		grant select, insert, update, delete on all tables in schema `+RowSchema+` to `+RestrictedRole)
	return err
}
