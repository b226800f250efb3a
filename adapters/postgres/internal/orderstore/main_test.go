package orderstore_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/orderstore"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

func TestMain(m *testing.M) {
	orderstore.Migrate = func(ctx context.Context, database db.Handle) error { return postgres.Migrate(ctx, database) }
	os.Exit(pgtest.Main(m, func(ctx context.Context, conn *pgx.Conn) error { return postgres.Migrate(ctx, conn) }))
}
