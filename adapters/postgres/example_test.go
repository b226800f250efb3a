package postgres_test

import (
	"context"
	"log"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// A host writes its own rows and ours in one transaction. (There is no output to check
// here: it needs a server. The tests of hosts' transactions run it.)
func ExampleNew_transaction() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	if err := postgres.Migrate(ctx, pool); err != nil {
		log.Fatal(err)
	}

	visit := func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(ctx) }()
		_, err = postgres.New(tx, nil).Users().Update(ctx, team, user, func(u *healthdata.User) ([]healthlab.Event, error) {
			return nil, nil
		})
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into visits (user_id) values ($1)`, user.UUID); err != nil {
			return err
		}
		return tx.Commit(ctx) // both, or neither
	}
	_ = visit
}
