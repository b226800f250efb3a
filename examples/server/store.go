package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/sqlite"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

// storage is the store that the flags ask for, with the parts that depend on it.
type storage struct {
	*stores.Stores
	// place is a text for people about where the data is stored.
	place string
	// blobs stores files if the flags name no folder; nil with a durable store, which needs a folder.
	blobs labreport.BlobStore
	// volatile is true if undelivered events are lost at the end of this process.
	volatile bool
	// pool is the pool of database connections; nil without a database.
	pool *pgxpool.Pool
	// close closes all parts.
	close func(context.Context) error
}

// keysAt is the place of the keys of persons, with their sealer. Without a sealer personal data is neither
// encrypted nor decrypted.
type keysAt struct {
	sealer  healthlab.Sealer
	address string // address of another database; empty for the schema healthlab_keys of the data's database
	samples bool   // samples that are written are encrypted too
}

// storeAt is the place of the data: a folder, a database, or if both are empty, memory.
type storeAt struct {
	dir      string
	database string // an address of PostgreSQL
	shards   int    // number of shards of users' data on a cluster; 0 leaves it unchanged
	keys     keysAt
	// pipelines is true if changes are marked for pushing to FHIR servers of their team.
	pipelines bool
	log       *slog.Logger // nil for none
}

func (at *storeAt) erasing(team healthlab.TeamID, user healthlab.UserID, rows int) {
	if at.log != nil {
		at.log.Info("user is being erased", "team", team, "user", user, "rows", rows)
	}
}

func (at *storeAt) migrating(n, total int, name string) {
	if at.log != nil {
		at.log.Info("database is being migrated", "step", n, "of", total, "makes", name)
	}
}

// openStorage opens the store. tracer is told about each statement of a database; it may be nil.
func openStorage(ctx context.Context, at storeAt, tracer pgx.QueryTracer) (*storage, error) {
	switch {
	case at.database != "":
		return openPostgres(ctx, at, tracer)
	case at.dir != "":
		return openFolder(ctx, at)
	}
	var keys *personkey.Keys
	if at.keys.sealer != nil {
		keys = personkey.New(memory.NewPersonKeys(), at.keys.sealer, nil)
	}
	store := memory.New(&memory.Options{Keys: keys, EncryptSamples: at.keys.samples, Pipelines: at.pipelines})
	return &storage{
		Stores: store.Stores, place: "memory, until the process ends", blobs: store.Blobs(), volatile: true,
		close: func(context.Context) error { return nil },
	}, nil
}

// Files in the folder of the data. The keys of persons are in a file of their own, so that a backup of the data
// alone cannot be read once the keys of erased persons are deleted.
const (
	dataFile   = "healthlab.db"
	keysFile   = "keys.db"
	filesDir   = "files"
	secretName = "secret"
)

// openFolder opens the store in a folder, and creates a missing folder.
func openFolder(ctx context.Context, at storeAt) (*storage, error) {
	dir := at.dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("-data: %w", err)
	}
	data, err := sqlite.Open(ctx, filepath.Join(dir, dataFile), stores.Tables(), nil)
	if err != nil {
		return nil, fmt.Errorf("-data: %w", err)
	}
	closers := []func() error{data.Close}
	closeAll := func() error {
		var err error
		for _, closer := range closers {
			err = errors.Join(err, closer())
		}
		return err
	}
	var keys *personkey.Keys
	if at.keys.sealer != nil {
		kept, err := sqlite.Open(ctx, filepath.Join(dir, keysFile), personkey.Tables(), nil)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("-data: %w", err), closeAll())
		}
		closers = append(closers, kept.Close)
		keys = personkey.New(personkey.NewStore(kept), at.keys.sealer, nil)
	}
	return &storage{
		Stores: stores.New(data, &stores.Options{Keys: keys, Events: stores.Outbox, EncryptSamples: at.keys.samples, Erasing: at.erasing, Pipelines: at.pipelines}), place: "the folder " + dir,
		close: func(context.Context) error { return closeAll() },
	}, nil
}

// connections is the number of database connections of a process, unless the address sets it.
const connections = 16

func openPostgres(ctx context.Context, at storeAt, tracer pgx.QueryTracer) (*storage, error) {
	config, err := postgres.PoolConfig(at.database)
	if err != nil {
		return nil, errors.New("-database-url must be a postgres:// URL") // err may quote the address
	}
	if !strings.Contains(at.database, "pool_max_conns") {
		config.MaxConns = connections
	}
	config.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	engine, err := openEngine(ctx, pool, at.shards, &postgres.Options{Migrating: at.migrating})
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("database: %w", err)
	}
	keys, closeKeys, err := openKeys(ctx, at.database, at.keys)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &storage{
		Stores: stores.New(engine, &stores.Options{Keys: keys, Events: stores.Outbox, EncryptSamples: at.keys.samples, Erasing: at.erasing, Pipelines: at.pipelines}), place: "the database", pool: pool,
		close: func(context.Context) error {
			closePools(pool.Close, closeKeys)
			return nil
		},
	}, nil
}

// openEngine opens the store in a database. If shards is positive, it distributes the tables of users over the
// cluster.
func openEngine(ctx context.Context, pool *pgxpool.Pool, shards int, opts *postgres.Options) (*postgres.Store, error) {
	tables := stores.Tables()
	if shards == 0 {
		return postgres.Open(ctx, pool, tables, opts)
	}
	err := postgres.Migrate(ctx, pool, tables, opts)
	if err == nil {
		err = postgres.Distribute(ctx, pool, tables, shards, opts)
	}
	if err != nil {
		return nil, err
	}
	return postgres.New(ctx, pool, tables, opts)
}

// poolGrace is the time for closing connections at the end of the program. A server that does not answer keeps
// a pool open for longer; the end of the process then closes its connections.
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

// keyConnections is the number of connections of a process for keys of persons, apart from those for data. It
// is small, because decrypted keys are cached in memory.
const keyConnections = 4

// openKeys opens the store of the keys of persons, in the data's database or in a separate one.
func openKeys(ctx context.Context, address string, at keysAt) (*personkey.Keys, func(), error) {
	if at.sealer == nil {
		return nil, func() {}, nil
	}
	config, err := postgres.PoolConfig(cmp.Or(at.address, address))
	if err != nil {
		return nil, nil, errors.New("-keys-url must be a postgres:// URL") // err may quote the address
	}
	config.MaxConns = keyConnections
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	engine, err := postgres.Open(ctx, pool, personkey.Tables(), &postgres.Options{Schema: keySchema})
	if err != nil {
		pool.Close()
		return nil, nil, fmt.Errorf("keys of persons: %w", err)
	}
	return personkey.New(personkey.NewStore(engine), at.sealer, nil), pool.Close, nil
}

// keySchema is the schema of the keys of persons.
const keySchema = "healthlab_keys"
