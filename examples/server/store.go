package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/embedded"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
	"github.com/healthlab-dev/healthlab/personkey"
	"github.com/healthlab-dev/healthlab/webhook"
)

// storage is the store that the flags name, with what comes with it.
type storage struct {
	service.Store
	// blobs keeps files where the flags name no folder; nil with a database, which needs
	// one.
	blobs labreport.BlobStore
	// journal keeps the messages to and from a laboratory that speaks HL7.
	journal labjournal.Store
	// backlog counts what is not delivered, and volatile says that it would be lost with
	// this process.
	backlog func(context.Context) (webhook.Backlog, error)
	// foldLag is how long the first series has been due to be folded; nil without folding.
	foldLag  func(context.Context) (time.Duration, error)
	volatile bool
	// pool is that of the database; nil for none.
	pool *pgxpool.Pool
	// ended is closed when the storage has ended by itself; nil where it cannot.
	ended <-chan struct{}
	// close gives everything back.
	close func(context.Context) error
}

// keysAt says where the keys of persons are, and what seals them. Without a sealer personal
// data is neither encrypted nor read.
type keysAt struct {
	sealer  healthlab.Sealer
	address string // of another database; empty for the schema healthlab_keys of that of the data
	samples bool   // samples that are written are encrypted too
}

// openStorage opens what -database-url names. tracer sees its statements; nil for none.
func openStorage(ctx context.Context, address string, at keysAt, tracer pgx.QueryTracer) (*storage, error) {
	if address == "" {
		var keys *personkey.Keys
		if at.sealer != nil {
			keys = personkey.New(memory.NewPersonKeys(), at.sealer, nil)
		}
		store := memory.New(&memory.Options{Keys: keys, EncryptSamples: at.samples})
		return &storage{Store: store, blobs: store.Blobs(), journal: store.LabJournal(), backlog: store.Backlog, volatile: true, close: func(context.Context) error { return nil }}, nil
	}
	dir, private := strings.CutPrefix(address, embeddedPrefix)
	if !private {
		return openPostgres(ctx, address, at, tracer)
	}
	server, err := embedded.Start(ctx, dir, nil)
	if err != nil {
		return nil, err
	}
	s, err := openPostgres(ctx, server.URL("postgres"), at, tracer)
	if err != nil {
		return nil, errors.Join(err, server.Stop(ctx))
	}
	closePool := s.close
	s.ended = server.Done()
	s.close = func(ctx context.Context) error { return errors.Join(closePool(ctx), server.Stop(ctx)) }
	return s, nil
}

// spread spreads the users of a Citus cluster, where the flags say so.
func (c *config) spread(ctx context.Context, kept *storage) error {
	switch {
	case c.distribute == 0:
		return nil
	case kept.pool == nil:
		return errors.New("-distribute needs -database-url")
	}
	return postgres.Distribute(ctx, kept.pool, c.distribute)
}

// embeddedPrefix goes before the folder of a private server.
const embeddedPrefix = "embedded:"

// connections is how many connections a process has where the address does not say.
const connections = 16

func openPostgres(ctx context.Context, address string, at keysAt, tracer pgx.QueryTracer) (*storage, error) {
	config, err := postgres.PoolConfig(address)
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
	err = postgres.MigrateWith(ctx, pool, func(name string, n, total int) {
		slog.InfoContext(ctx, "migrated", "file", name, "n", n, "of", total)
	})
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("database: %w", err)
	}
	keys, closeKeys, err := openKeys(ctx, address, at)
	if err != nil {
		pool.Close()
		return nil, err
	}
	store := postgres.New(pool, &postgres.Options{Keys: keys, EncryptSamples: at.samples})
	return &storage{
		Store: store, journal: store.LabJournal(), backlog: store.Backlog, foldLag: store.FoldLag, pool: pool,
		close: func(context.Context) error {
			closePools(pool.Close, closeKeys)
			return nil
		},
	}, nil
}

// poolGrace is how long the end of the program waits for its connections. A server that does
// not answer keeps a pool open for longer, and the end of the process closes them, too.
const poolGrace = 2 * time.Second

func closePools(closers ...func()) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for _, closer := range closers {
			closer()
		}
	}()
	timer := time.NewTimer(poolGrace)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
}

// keyConnections is how many connections a process has for keys of persons, apart from those
// for data. Opened keys are kept in memory, so that few are read.
const keyConnections = 4

// openKeys opens the keys of persons beside a database, or in one of their own.
func openKeys(ctx context.Context, address string, at keysAt) (*personkey.Keys, func(), error) {
	if at.sealer == nil {
		return nil, func() {}, nil
	}
	config, err := postgres.PoolConfig(cmp.Or(at.address, address))
	if err != nil {
		return nil, nil, errors.New("-keys-url is not an address of PostgreSQL") // err may quote it
	}
	config.MaxConns = keyConnections
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	if err := postgres.MigratePersonKeys(ctx, pool); err != nil {
		pool.Close()
		return nil, nil, err
	}
	return personkey.New(postgres.NewPersonKeys(pool), at.sealer, nil), pool.Close, nil
}
