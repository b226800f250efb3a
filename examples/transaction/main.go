// Transaction is a program of a clinic that has its own members in PostgreSQL, with healthlab in
// the same process and the same database: one transaction adds a member and the member's
// health record, so both are stored or neither.
//
//	go run ./examples/transaction -database-url postgres://localhost/clinic
//	curl -d name=Kim http://127.0.0.1:8080/members
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/httpserver"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/service"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

// team is the id of the healthlab team to which all members of the clinic belong.
var team = healthlab.TeamID{UUID: uuid.MustParse("6f0a1c1e-0000-4000-8000-000000000001")}

func main() {
	database := flag.String("database-url", "", "postgres://… of the clinic's database")
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *database, *addr, func(string) {}); err != nil {
		fmt.Fprintln(os.Stderr, "transaction:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. It calls ready with the program's URL once it listens at addr.
func run(ctx context.Context, database, addr string, ready func(url string)) error {
	config, err := postgres.PoolConfig(database)
	if err != nil {
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	engine, err := postgres.Open(ctx, pool, stores.Tables(), nil)
	if err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, `create table if not exists member (id uuid primary key, name text not null)`); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	url := "http://" + listener.Addr().String()
	keys, err := newKeys(ctx, pool)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	health, err := assemble(ctx, engine, keys, url)
	if err != nil {
		return errors.Join(err, listener.Close())
	}

	// The clinic's own pages and the API of healthlab are in one mux.
	mux := http.NewServeMux()
	mux.Handle("/", health.Handler())
	mux.HandleFunc("POST /members", func(w http.ResponseWriter, r *http.Request) {
		id, err := addMember(r.Context(), pool, engine, health.Health, r.FormValue("name"))
		if err != nil {
			http.Error(w, "the member was not added", http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, id)
	})
	server := httpserver.New(mux, nil)
	work := make(chan error, 1)
	go func() { work <- health.Run(ctx) }()
	go func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = server.Shutdown(grace)
	}()
	ready(url)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-work
}

// newKeys returns the keys that encrypt personal data, one for each member. They are stored in a schema that backups of
// the database must leave out, and encrypted with a key of the host. In this example that key is random, so the next
// start of the program cannot decrypt the data. A real program stores that key apart from the database, or uses a
// Sealer that calls a KMS.
func newKeys(ctx context.Context, pool *pgxpool.Pool) (*personkey.Keys, error) {
	kept, err := postgres.Open(ctx, pool, personkey.Tables(), &postgres.Options{Schema: "healthlab_keys"})
	if err != nil {
		return nil, err
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	sealer, err := healthlab.NewAESSealer("2026", map[string][]byte{"2026": key})
	if err != nil {
		return nil, err
	}
	return personkey.New(personkey.NewStore(kept), sealer, nil), nil
}

// assemble makes the healthlab service, which is reached at url. A real program gives it a stored secret, and a store
// of files on a disk (adapters/operations/blob).
func assemble(ctx context.Context, engine *postgres.Store, keys *personkey.Keys, url string) (*service.Service, error) {
	providers, err := healthdata.NewProviders([]healthdata.Provider{{Slug: "manual", Name: "Manual entry", Class: "manual", Category: "app"}})
	if err != nil {
		return nil, err
	}
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	return service.New(ctx, service.Config{
		Environment: healthlab.Production, URL: url, Secret: secret, Providers: providers,
		Stores: stores.New(engine, &stores.Options{Keys: keys, Events: stores.Outbox}), Files: memory.New(&memory.Options{Keys: keys}).Blobs(),
	})
}

// addMember adds a member of the clinic, and a user of healthlab with the member's id, in one transaction. What
// healthlab writes with the context of WithTx, events included, commits together with the program's own rows.
func addMember(ctx context.Context, pool *pgxpool.Pool, engine *postgres.Store, health *healthdata.Service, name string) (uuid.UUID, error) {
	id := uuid.New()
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := health.CreateUser(engine.WithTx(ctx, tx), team, healthdata.NewUser{ClientUserID: id.String()}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `insert into member (id, name) values ($1, nullif($2, ''))`, id, name)
		return err
	})
	return id, err
}
