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

// storage is the store that the flags ask for, with what depends on its kind.
type storage struct {
	*stores.Stores
	// place is a text for people that says where the data is stored.
	place string
	// blobs stores files in memory if the flags name no folder for them. It is nil with a durable store, which
	// needs such a folder.
	blobs labreport.BlobStore
	// volatile is true if all data is in memory, so undelivered events are lost when the process ends.
	volatile bool
	// pool is the pool of database connections; nil without a database.
	pool *pgxpool.Pool
	// close closes the store and its connections.
	close func(context.Context) error
}

// keysAt names the store of the keys of persons, and the sealer that encrypts them. Without a sealer, personal data is
// not encrypted.
type keysAt struct {
	sealer  healthlab.Sealer
	address string // address of another database for the keys; empty: schema healthlab_keys in the database of the data
	samples bool   // encrypt new samples too
}

// storeAt names the store of the data: a folder, a database or, if both are empty, memory.
type storeAt struct {
	dir      string
	database string // URL of a PostgreSQL database
	shards   int    // number of shards of a cluster over which to distribute users' data; 0: no change
	keys     keysAt
	// pipelines is true if changes of data are recorded, to be sent to the FHIR server of their team.
	pipelines bool
	log       *slog.Logger // nil: nothing is logged
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

// openStorage opens the store. tracer, which may be nil, records each database statement.
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

// Names in the data folder. The keys of persons are in a file of their own: a backup of the data file cannot be
// read for a person whose key is deleted.
const (
	dataFile   = "healthlab.db"
	keysFile   = "keys.db"
	filesDir   = "files"
	secretName = "secret"
)

// openFolder opens the store in a folder, and creates the folder if it is missing.
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

// connections is the highest number of database connections of a process, unless the database address sets another.
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

// openEngine opens the store in a database. If shards is positive, it first distributes the tables of users over
// the cluster.
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

// poolGrace is the time for closing database connections when the program ends. If the database does not answer in
// this time, the end of the process closes them.
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

// keyConnections is the number of database connections of a process for keys of persons, in addition to those for
// data. Few are needed, because decrypted keys stay in memory.
const keyConnections = 4

// openKeys opens the store of the keys of persons, in the database that at names or else in the data's database at
// address. It returns the keys, nil without a sealer, and a function that closes the store.
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

// keySchema is the name of the database schema with the keys of persons.
const keySchema = "healthlab_keys"
