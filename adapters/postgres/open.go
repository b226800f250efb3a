package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/healthlab-dev/healthlab/store"
)

// Open makes what the database lacks of the tables, as [MigrateEngine] does, and returns the store.
func Open(ctx context.Context, pool *pgxpool.Pool, tables []store.Definition, opts *EngineOptions) (*Engine, error) {
	if err := MigrateEngine(ctx, pool, tables, opts); err != nil {
		return nil, err
	}
	return NewEngine(ctx, pool, tables, opts)
}
