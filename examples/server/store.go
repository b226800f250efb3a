package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/embedded"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/webhook"
)

// storage is the store that the flags name, with what comes with it.
type storage struct {
	service.Store
	// blobs keeps files where the flags name no folder; nil with a database, which needs
	// one.
	blobs labreport.BlobStore
	// backlog counts what is not delivered, and volatile says that it would be lost with
	// this process.
	backlog  func(context.Context) (webhook.Backlog, error)
	volatile bool
	// pool is that of the database; nil for none.
	pool *pgxpool.Pool
	// ended is closed when the storage has ended by itself; nil where it cannot.
	ended <-chan struct{}
	// close gives everything back.
	close func(context.Context) error
}

// openStorage opens what -database-url names. tracer sees its statements; nil for none.
func openStorage(ctx context.Context, address string, tracer pgx.QueryTracer) (*storage, error) {
	if address == "" {
		store := memory.New(nil)
		return &storage{Store: store, blobs: store.Blobs(), backlog: store.Backlog, volatile: true, close: func(context.Context) error { return nil }}, nil
	}
	dir, private := strings.CutPrefix(address, embeddedPrefix)
	if !private {
		return openPostgres(ctx, address, tracer)
	}
	server, err := embedded.Start(ctx, dir, nil)
	if err != nil {
		return nil, err
	}
	s, err := openPostgres(ctx, server.URL("postgres"), tracer)
	if err != nil {
		return nil, errors.Join(err, server.Stop(ctx))
	}
	closePool := s.close
	s.ended = server.Done()
	s.close = func(ctx context.Context) error { return errors.Join(closePool(ctx), server.Stop(ctx)) }
	return s, nil
}

// embeddedPrefix goes before the folder of a private server.
const embeddedPrefix = "embedded:"

// connections is how many connections a process has where the address does not say.
const connections = 16

func openPostgres(ctx context.Context, address string, tracer pgx.QueryTracer) (*storage, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, errors.New("-database-url is not an address of PostgreSQL") // err may quote it
	}
	if !strings.Contains(address, "pool_max_conns") {
		config.MaxConns = connections
	}
	config.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := postgres.Migrate(ctx, pool); err != nil {
		pool.Close()
		return nil, fmt.Errorf("database: %w", err)
	}
	store := postgres.New(pool, nil)
	return &storage{
		Store: store, backlog: store.Backlog, pool: pool,
		close: func(context.Context) error {
			pool.Close()
			return nil
		},
	}, nil
}
