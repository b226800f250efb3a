package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/embedded"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
	"github.com/healthlab-dev/healthlab/linking/pull"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/webhook"
)

// keeper is a store of everything, wherever it keeps it.
type keeper interface {
	Users() healthdata.Users
	Teams() healthdata.TeamStore
	Organisations() organisation.Store
	Data() healthdata.Data
	Orders() orders.Store
	OrderKeys() orders.Keys
	LabTests() catalogue.LabTestStore
	Persons() orders.PersonStore
	Continuous() aggregate.ContinuousStore
	ContinuousWork() aggregate.ContinuousWork
	Priorities() aggregate.PriorityStore
	SlotCache() orders.SlotCache
	Reviews() orders.ReviewStore
	MatchTestRuns() orders.MatchTestRunStore
	Linking() linking.Store
	TeamClients() linking.TeamClients
	Grants() linking.Grants
	Pulls() pull.Store
	Bulk() bulk.Store
	Apps() linking.AppSessions
	ParsingJobs() labreport.Store
	Deliveries() webhook.Deliveries
	Endpoints() webhook.Endpoints
	WebhookLog() webhook.Log
}

// storage is the keeper that the flags name, with what comes with it.
type storage struct {
	keeper
	// blobs keeps files where the flags name no folder; nil with a database, which needs
	// one.
	blobs labreport.BlobStore
	// loops is its background work by name.
	loops map[string]func(context.Context) error
	// signal tells processes of each other's messages; nil where there is only one.
	signal webhook.Signal
	// news wakes the dispatcher of this process.
	news *news
	// held counts what would be lost with this process; nil where nothing would.
	held func() (unrouted, unfinished int)
	// ended is closed when the storage has ended by itself; nil where it cannot.
	ended <-chan struct{}
	// close gives everything back.
	close func(context.Context) error
}

// news tells a dispatcher, once there is one, that events were written.
type news struct {
	to atomic.Pointer[webhook.Dispatcher]
}

func (n *news) written() {
	if d := n.to.Load(); d != nil {
		d.Wake()
	}
}

// openStorage opens what -database-url names.
func openStorage(ctx context.Context, address string) (*storage, error) {
	if address == "" {
		told := &news{}
		store := memory.New(&memory.Options{Written: told.written})
		return &storage{keeper: store, news: told, blobs: store.Blobs(), held: store.Backlog, close: func(context.Context) error { return nil }}, nil
	}
	dir, private := strings.CutPrefix(address, embeddedPrefix)
	if !private {
		return openPostgres(ctx, address)
	}
	server, err := embedded.Start(ctx, dir, nil)
	if err != nil {
		return nil, err
	}
	s, err := openPostgres(ctx, server.URL("postgres"))
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

func openPostgres(ctx context.Context, address string) (*storage, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, errors.New("-database-url is not an address of PostgreSQL") // err may quote it
	}
	if !strings.Contains(address, "pool_max_conns") {
		config.MaxConns = connections
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := postgres.Migrate(ctx, pool); err != nil {
		pool.Close()
		return nil, fmt.Errorf("database: %w", err)
	}
	told := &news{}
	store := postgres.New(pool, &postgres.Options{Written: told.written})
	return &storage{
		keeper: store,
		news:   told,
		signal: store.Signal(),
		loops:  map[string]func(context.Context) error{"folding": store.RunFolding, "retention": store.RunRetention},
		close: func(context.Context) error {
			pool.Close()
			return nil
		},
	}, nil
}
