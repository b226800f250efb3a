package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// A store on a pool. The server is away here, so that this example runs anywhere; a
// caller learns that it may try again later, after the store has tried a few times.
func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://app@127.0.0.1:1/health")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()

	store := postgres.New(pool, nil)
	_, err = store.Users().Get(ctx, healthlab.TeamID{}, healthlab.UserID{})
	fmt.Println(err)
	fmt.Println("try again later:", errors.Is(err, healthlab.Unavailable))
	// Output:
	// unavailable: no connection to PostgreSQL
	// try again later: true
}

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
