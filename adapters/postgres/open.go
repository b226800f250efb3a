package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/healthlab-dev/healthlab/store"
)

// Open creates missing tables like [Migrate], and returns the store.
func Open(ctx context.Context, pool *pgxpool.Pool, tables []store.Definition, opts *Options) (*Store, error) {
	if err := Migrate(ctx, pool, tables, opts); err != nil {
		return nil, err
	}
	return New(ctx, pool, tables, opts)
}
