package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/store"
)

// A store of everything. The server is away here, so that this example runs anywhere; the caller learns
// that it may try again later.
func Example() {
	ctx := context.Background()
	config, err := postgres.PoolConfig("postgres://healthlab@127.0.0.1:1/healthlab")
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	engine, err := postgres.Open(ctx, pool, stores.Tables(), nil)
	if err != nil {
		fmt.Println(err)
		fmt.Println("try again later:", errors.Is(err, healthlab.Unavailable))
		return
	}
	all := stores.New(engine, &stores.Options{Events: stores.Outbox})
	fmt.Println(all.Backlog(ctx))
	// Output:
	// migrate the store: unavailable: no connection to PostgreSQL
	// try again later: true
}

// A host commits its own rows together with those of the store.
func ExampleStore_WithTx() {
	ctx, tables := context.Background(), []store.Definition{{Name: "host_note"}}
	config, err := postgres.PoolConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	if err := postgres.Migrate(ctx, pool, tables, nil); err != nil {
		fmt.Println(err)
		return
	}
	s, err := postgres.New(ctx, pool, tables, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "insert into booking (id) values (1)"); err != nil {
			return err
		}
		return s.Update(s.WithTx(ctx, tx), func(_ context.Context, tx store.Tx) error {
			tx.Put(store.Row{Key: store.Key{Table: "host_note", ID: "first"}, Doc: []byte("call back")})
			return nil
		})
	})
	fmt.Println(err)
}
